//! Many files at once: a file is one thread's, its sessions are played in order, and the report is put together in the
//! order of the files, whoever is done first.
//!
//! A file is read line by line; only a list of messages that is written over several lines is held in memory whole.

use super::find::Found;
use super::format::Format;
use super::judge::Rules;
use super::lines::{LONGEST_LINE, Line, Lines};
use super::player::{Place, Player, Who};
use super::read::{self, Reader};
use super::report::{Gathering, Outcome, Report, Unread};
use super::step::{Step, Told};
use super::tally::Tally;
use hookgate_agents::agent::Agent;
use hookgate_core::word::Word;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError, mpsc};
use std::thread;

/// Lines at the head of a file in which its format must show.
const HEAD: usize = 50;
/// A larger document is not held in memory.
const LARGEST_DOCUMENT: u64 = 256 << 20;
/// Files that may be done before an earlier one.
const AHEAD: usize = 64;

/// How to read, and for whom.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// What all files are; none: each file's content tells.
    pub format: Option<Format>,
    /// Whose tools lists of messages name; none: their names are taken as they are.
    pub tools_of: Option<&'static dyn Agent>,
    /// The tenant, for hooks that are bound to one.
    pub tenant: Option<String>,
    /// The agent, for hooks that are bound to some.
    pub agent: Option<String>,
    /// Threads at most.
    pub threads: usize,
}

/// Plays all files to one hook set, or to two that are compared. `progress` is told how many bytes were read since it
/// was told the last time, from several threads.
///
/// # Errors
/// No thread could be started, or none that can wait for handlers.
pub fn run(
    files: &[Found],
    rules: &[Rules],
    options: &Options,
    progress: &(dyn Fn(u64) + Sync),
) -> io::Result<Report> {
    let threads = options.threads.clamp(1, files.len().max(1));
    let runtimes: Vec<_> = (0..threads)
        .map(|_| tokio::runtime::Builder::new_current_thread().enable_all().build())
        .collect::<io::Result<_>>()?;
    let line = Queue { next: AtomicUsize::new(0), merged: Mutex::new(0), moved: Condvar::new() };
    let (done, outcomes) = mpsc::channel();
    thread::scope(|scope| {
        for runtime in runtimes {
            let (done, line) = (done.clone(), &line);
            let work = move || {
                while let Some((place, file)) = line.take(files) {
                    let outcome = runtime.block_on(play(file, place, rules, options, progress));
                    if done.send((place, outcome)).is_err() {
                        break;
                    }
                }
            };
            thread::Builder::new().name("hookgate-replay".into()).spawn_scoped(scope, work)?;
        }
        drop(done);
        let mut gathering = Gathering::new();
        let mut waiting = BTreeMap::new();
        let mut next = 0usize;
        for (place, outcome) in outcomes {
            waiting.insert(place, outcome);
            while let Some(outcome) = waiting.remove(&next) {
                gathering.add(outcome);
                next = next.saturating_add(1);
                line.merged(next);
            }
        }
        Ok(gathering.done(rules))
    })
}

/// Hands out files, not too far ahead of what is in the report.
struct Queue {
    next: AtomicUsize,
    merged: Mutex<usize>,
    moved: Condvar,
}

impl Queue {
    fn take<'f>(&self, files: &'f [Found]) -> Option<(usize, &'f Found)> {
        let place = self.next.fetch_add(1, Ordering::Relaxed);
        let file = files.get(place)?;
        let merged = self.merged.lock().unwrap_or_else(PoisonError::into_inner);
        let is_far = |merged: &mut usize| place >= merged.saturating_add(AHEAD);
        drop(self.moved.wait_while(merged, is_far).unwrap_or_else(PoisonError::into_inner));
        Some((place, file))
    }

    fn merged(&self, next: usize) {
        *self.merged.lock().unwrap_or_else(PoisonError::into_inner) = next;
        self.moved.notify_all();
    }
}

async fn play<'r>(
    file: &Found,
    place: usize,
    rules: &'r [Rules],
    options: &Options,
    progress: &(dyn Fn(u64) + Sync),
) -> Outcome<'r> {
    let name = file.path.display().to_string();
    let mut stage = Stage::new(file, place, rules, options);
    let result = stage.file(file, options, progress).await;
    stage.close().await;
    let unread =
        |why: Unusable| Unread { file: name, is_lost: file.is_named || why.is_broken, why: why.text };
    match result {
        Ok(format) => Outcome { format: Some(format), unread: None, tally: stage.tally },
        Err(why) => Outcome { format: None, unread: Some(unread(why)), tally: stage.tally },
    }
}

/// Why a file cannot be used.
struct Unusable {
    text: String,
    /// It may be a history: nobody could look.
    is_broken: bool,
}

impl Unusable {
    fn broken(error: impl std::fmt::Display) -> Unusable {
        Unusable { text: format!("cannot be read: {error}"), is_broken: true }
    }

    fn other(text: impl Into<String>) -> Unusable {
        Unusable { text: text.into(), is_broken: false }
    }
}

/// The sessions of one file.
struct Stage<'r> {
    rules: &'r [Rules],
    tally: Tally<'r>,
    /// The user's agent and its sub-agents.
    players: BTreeMap<Option<String>, Player<'r>>,
    who: Who,
    /// What a session without an id is called.
    stem: String,
    tag: String,
    line: u64,
}

/// A file whose format is known, with the lines that were read to know it.
enum Opened {
    Lines(Format, Vec<(u64, Result<Value, String>)>, Lines<BufReader<File>>),
    Document(Vec<(u64, Value)>),
}

impl<'r> Stage<'r> {
    fn new(file: &Found, place: usize, rules: &'r [Rules], options: &Options) -> Stage<'r> {
        let stem = file.path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Stage {
            rules,
            tally: Tally::new(rules, file.path.display().to_string()),
            players: BTreeMap::new(),
            who: Who { tenant_id: options.tenant.clone(), agent_id: options.agent.clone(), ..Who::default() },
            stem,
            tag: place.to_string(),
            line: 1,
        }
    }

    async fn file(
        &mut self,
        file: &Found,
        options: &Options,
        progress: &(dyn Fn(u64) + Sync),
    ) -> Result<Format, Unusable> {
        let mut told = Vec::new();
        match open(file, options.format)? {
            Opened::Document(parts) => {
                let mut reader = read::reader(Format::Messages, options.tools_of);
                for (line, part) in parts {
                    self.line(&mut *reader, line, Ok(part), &mut told).await;
                }
                progress(file.size);
                Ok(Format::Messages)
            }
            Opened::Lines(format, head, mut lines) => {
                let mut reader = read::reader(format, options.tools_of);
                for (line, value) in head {
                    self.line(&mut *reader, line, value, &mut told).await;
                }
                let mut reported = 0;
                loop {
                    let next = lines.next().map_err(Unusable::broken)?;
                    let Some(next) = next else { break };
                    let (line, value) = parse(next);
                    self.line(&mut *reader, line, value, &mut told).await;
                    if lines.bytes.saturating_sub(reported) > 1 << 18 {
                        progress(lines.bytes.saturating_sub(reported));
                        reported = lines.bytes;
                    }
                }
                progress(lines.bytes.saturating_sub(reported));
                Ok(format)
            }
        }
    }

    /// Plays a line. What is wrong with it is counted.
    async fn line(
        &mut self,
        reader: &mut dyn Reader,
        line: u64,
        value: Result<Value, String>,
        told: &mut Vec<Told>,
    ) {
        self.line = line;
        told.clear();
        if let Err(why) = value.and_then(|value| reader.line(line, value, told)) {
            self.tally.damaged(line, why);
        }
        for told in told.drain(..) {
            self.step(told).await;
        }
    }

    async fn step(&mut self, told: Told) {
        let Told { line, agent, time, step } = told;
        if let Step::Begin { session } = step {
            self.close().await;
            let n = self.tally.sessions.len();
            let unnamed = || match n {
                0 => self.stem.clone(),
                n => format!("{}#{}", self.stem, n.saturating_add(1)),
            };
            self.who.session = session.filter(|id| !id.is_empty()).unwrap_or_else(unnamed);
            self.tally.begin(self.who.session.clone(), line);
            return;
        }
        let at = Place { line, time: time.as_deref() };
        for (_, other) in self.players.iter_mut().filter(|(other, _)| **other != agent) {
            other.others_speak(at, &mut self.tally).await;
        }
        if !self.players.contains_key(&agent) {
            let who = Who { agent: agent.clone(), ..self.who.clone() };
            let tag = format!("{}.{}", self.tag, self.tally.sessions.len());
            let mut player = Player::new(self.rules, &who, tag);
            player.begin(at, &mut self.tally).await;
            self.players.insert(agent.clone(), player);
        }
        let Some(player) = self.players.get_mut(&agent) else { return };
        if let Err(why) = player.step(at, step, &mut self.tally).await {
            self.tally.damaged(line, why);
        }
    }

    /// Ends the session that is playing, the sub-agents first.
    async fn close(&mut self) {
        let at = Place { line: self.line, time: None };
        for (_, mut player) in std::mem::take(&mut self.players).into_iter().rev() {
            player.end(at, &mut self.tally).await;
        }
    }
}

/// Opens a file and finds out what it is.
fn open(file: &Found, named: Option<Format>) -> Result<Opened, Unusable> {
    // a pipe would be waited for, a device never ends
    if !std::fs::metadata(&file.path).map_err(Unusable::broken)?.is_file() {
        return Err(Unusable::other("it is not a regular file"));
    }
    let source = File::open(&file.path).map_err(Unusable::broken)?;
    let mut lines = Lines::new(BufReader::with_capacity(1 << 16, source));
    let mut head = Vec::new();
    let mut broken_document = None;
    while head.len() < HEAD {
        let next = lines.next().map_err(Unusable::broken)?;
        let Some(next) = next else { break };
        let is_open = matches!(next, Line::Text(_, text) if text.starts_with(b"{") || text.starts_with(b"["));
        let (line, value) = parse(next);
        // a first line that is only a part of something: the file may be one document
        if head.is_empty() && value.is_err() && is_open && matches!(named, None | Some(Format::Messages)) {
            match document(file) {
                Ok(parts) => return Ok(Opened::Document(parts)),
                Err(why) => broken_document = Some(why),
            }
        }
        let seen = named.or_else(|| value.as_ref().ok().and_then(Format::of));
        head.push((line, value));
        if let Some(format) = seen {
            return Ok(Opened::Lines(format, head, lines));
        }
    }
    if head.is_empty() {
        return Err(Unusable::other("it is empty"));
    }
    let known: Vec<&str> = Format::ALL.iter().map(|(name, _)| *name).collect();
    let why = broken_document.map(|why| format!(" ({why})")).unwrap_or_default();
    Err(Unusable::other(format!("it is no history that is known: none of {}{why}", known.join(", "))))
}

fn document(file: &Found) -> Result<Vec<(u64, Value)>, String> {
    if file.size > LARGEST_DOCUMENT {
        let most = LARGEST_DOCUMENT >> 20;
        return Err(format!(
            "as one document it is larger than {most} MiB; write one list of messages a line"
        ));
    }
    let source = File::open(&file.path).map_err(|error| format!("cannot be read: {error}"))?;
    let mut bytes = Vec::new();
    source
        .take(LARGEST_DOCUMENT)
        .read_to_end(&mut bytes)
        .map_err(|error| format!("cannot be read: {error}"))?;
    let text = String::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())?;
    read::document(text.strip_prefix('\u{feff}').unwrap_or(&text))
}

/// The JSON of a line.
fn parse(line: Line<'_>) -> (u64, Result<Value, String>) {
    match line {
        Line::TooLong(number) => (number, Err(format!("it is longer than {} MiB", LONGEST_LINE >> 20))),
        Line::Text(number, text) => {
            let value = serde_json::from_slice(text).map_err(|error| {
                let what = if error.is_eof() { "it ends too early" } else { "it is not JSON" };
                format!("{what} (column {})", error.column())
            });
            (number, value)
        }
    }
}
