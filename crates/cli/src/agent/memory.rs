//! What a session remembers from one hook process to the next: how often hooks with `maxTriggers` fired, and how often
//! the end of the turn was put off. One small file a session under `sessions` in the data directory, locked while it is
//! changed; it goes with the session's end, or a week after it was last used.
//!
//! Without a data directory nothing is remembered: each process counts for itself, and a turn is made to go on only
//! where the agent itself says whether that happened before.

use hookgate_core::session::Session;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A turn is made to go on at most so often.
pub(crate) const MOST_ROUNDS: u64 = 3;

/// Files that were not used for so long are deleted.
const FORGOTTEN: Duration = Duration::from_secs(7 * 24 * 3600);
/// Files that are looked at when old ones are deleted.
const AT_ONCE: usize = 2000;
/// A larger file is none of ours.
const LARGEST: u64 = 1 << 20;

/// The place of a session's file.
#[derive(Debug)]
pub(crate) struct Memory {
    file: Option<PathBuf>,
}

impl Memory {
    /// The memory of a session of an agent.
    pub(crate) fn of(dir: Option<&Path>, agent: &str, session: &str) -> Memory {
        let digest = Sha256::digest(format!("{agent}\n{session}"));
        let name: String = digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        Memory { file: dir.map(|dir| dir.join("sessions").join(format!("{name}.json"))) }
    }

    /// Counts a wish to make this turn go on. False: it was put off often enough, or nobody can tell.
    pub(crate) fn may_go_on(&self, turn: Option<&str>, went_on: Option<u64>) -> bool {
        if went_on.is_some_and(|times| times > 0) {
            return false;
        }
        let mut allowed = went_on.is_some() && self.file.is_none();
        let counted = self.change(|state| {
            if state.get("turn").and_then(Value::as_str) != turn {
                state.remove("rounds");
            }
            let rounds = state.get("rounds").and_then(Value::as_u64).unwrap_or(0);
            allowed = rounds < MOST_ROUNDS;
            state.insert("turn".into(), json!(turn));
            state.insert("rounds".into(), rounds.saturating_add(1).into());
        });
        // a count that cannot be kept is a loop that cannot be ended
        counted.is_ok() && allowed
    }

    /// A new turn begins.
    pub(crate) fn new_turn(&self) {
        if self.file.as_ref().is_some_and(|file| file.exists()) {
            // what is left of an old turn costs at most a round of this one
            let _ = self.change(|state| {
                state.remove("rounds");
            });
        }
    }

    /// Lets JSON hooks fire with the counts of the session so far, and keeps the new ones.
    pub(crate) fn counted<T>(&self, fire: impl FnOnce(&mut Session) -> T) -> io::Result<T> {
        let mut result = None;
        let mut fire = Some(fire);
        let kept = self.change(|state| {
            let fired = state.get("fired").and_then(Value::as_object).cloned().unwrap_or_default();
            let counts = fired.into_iter().filter_map(|(key, count)| Some((key, count.as_u64()?)));
            let mut session = Session::resumed(counts);
            result = fire.take().map(|fire| fire(&mut session));
            let fired: Map<String, Value> =
                session.fired().map(|(key, count)| (key.to_owned(), count.into())).collect();
            state.insert("fired".into(), fired.into());
        });
        match (result, fire) {
            (Some(result), _) => kept.map(|()| result),
            (None, Some(fire)) if self.file.is_none() => Ok(fire(&mut Session::new())),
            (None, _) => {
                Err(kept.err().unwrap_or_else(|| io::Error::other("the session's file was not read")))
            }
        }
    }

    /// Changes the state under a lock.
    fn change(&self, change: impl FnOnce(&mut Map<String, Value>)) -> io::Result<()> {
        let Some(path) = &self.file else { return Ok(()) };
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(path)?;
        file.lock()?;
        let mut state = read(&mut file)?;
        change(&mut state);
        let text = Value::Object(state).to_string();
        file.seek(SeekFrom::Start(0))?;
        file.set_len(0)?;
        file.write_all(text.as_bytes())
    }

    /// Forgets the session.
    pub(crate) fn end(&self) {
        if let Some(file) = &self.file {
            // there may be none
            let _ = fs::remove_file(file);
        }
    }

    /// Deletes what nobody came back to.
    pub(crate) fn tidy(&self) {
        let Some(folder) = self.file.as_deref().and_then(Path::parent) else { return };
        let Ok(entries) = fs::read_dir(folder) else { return };
        for entry in entries.flatten().take(AT_ONCE) {
            let age =
                entry.metadata().and_then(|about| about.modified()).ok().and_then(|at| at.elapsed().ok());
            if age.is_some_and(|age| age > FORGOTTEN) {
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

fn read(file: &mut File) -> io::Result<Map<String, Value>> {
    let mut text = String::new();
    file.take(LARGEST).read_to_string(&mut text)?;
    // a file that was cut short by a full disk begins anew
    Ok(serde_json::from_str(&text).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_goes_on_a_few_times_and_no_more() {
        let dir = tempfile::tempdir().unwrap();
        let memory = Memory::of(Some(dir.path()), "codex", "s");
        let ask = |turn, went_on| memory.may_go_on(turn, went_on);
        let rounds: Vec<bool> = (0..5).map(|_| ask(Some("t1"), Some(0))).collect();
        assert_eq!(rounds, [true, true, true, false, false]);
        assert!(ask(Some("t2"), None), "a new turn");
        assert!(!ask(Some("t3"), Some(1)), "the agent says that it went on already");
        memory.new_turn();
        let others = Memory::of(Some(dir.path()), "codex", "other");
        assert!(others.may_go_on(None, None) && others.may_go_on(None, None));
        memory.end();
        assert_eq!(fs::read_dir(dir.path().join("sessions")).unwrap().count(), 1);
    }

    #[test]
    fn without_a_place_only_the_agents_own_word_counts() {
        let memory = Memory::of(None, "goose", "s");
        assert!(!memory.may_go_on(None, None));
        assert!(memory.may_go_on(None, Some(0)));
        assert!(!memory.may_go_on(None, Some(1)));
    }
}
