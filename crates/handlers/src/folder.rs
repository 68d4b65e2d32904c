//! A directory of hook files: which files count, in which order, and what a bad one does.
//!
//! Files are read in name order. A rule file ends in `.json` and does not begin with a dot; everything else
//! (editors' backups, swap and lock files, READMEs) is passed over, and so are sub-folders. Links are followed.
//! A file that ends in `.test.json` holds tests of the rules beside it ([`test_files`]) and is never taken for one.
//! What looks like a rule file and cannot be read is a problem, never silence.

use hookgate_core::action::ActionKinds;
use hookgate_core::define::{self, Problem};
use hookgate_core::hook::{Hook, HookListing, Reach, Source};
use hookgate_core::set::HookSet;
use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The environment variable that names the hooks folder (first text, Configuration).
pub const HOOKS_DIR_VARIABLE: &str = "LLM_CHAT_HOOKS_DIR";

/// How the names of test files end.
pub const TEST_ENDING: &str = ".test.json";

/// A larger file is no hook file.
const LARGEST_FILE: u64 = 8 * 1024 * 1024;
/// More hooks than this in one folder are a mistake.
const MOST_HOOKS: usize = 50_000;

/// What a bad definition does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnInvalid {
    /// The whole set is refused; after a reload the last good set stays.
    #[default]
    Refuse,
    /// The good definitions are used, the rest is reported.
    Skip,
}

/// A folder of hook files.
#[derive(Debug, Clone)]
pub struct HookFolder {
    path: PathBuf,
    source: Source,
    kinds: ActionKinds,
}

/// What a folder gave.
#[derive(Debug, Default)]
pub struct Loaded {
    /// The good hooks, in load order.
    pub hooks: Vec<Hook>,
    /// Every fault, in load order.
    pub problems: Vec<Problem>,
    /// What is allowed but probably not meant.
    pub warnings: Vec<Problem>,
}

/// The folder to use: the configured value, else the environment's, else none. An empty value is not set.
pub fn resolve(configured: Option<PathBuf>, environment: Option<OsString>) -> Option<PathBuf> {
    let set = |path: &PathBuf| !path.as_os_str().is_empty();
    configured.filter(set).or_else(|| environment.map(PathBuf::from).filter(set))
}

impl HookFolder {
    /// The folder at `path`, whose hooks are the user's.
    pub fn new(path: impl Into<PathBuf>) -> HookFolder {
        HookFolder { path: path.into(), source: Source::User, kinds: ActionKinds::standard() }
    }

    /// The folder at `path`, which the operator's configuration marks as trusted.
    pub fn of_operator(path: impl Into<PathBuf>) -> HookFolder {
        HookFolder { source: Source::Operator, ..HookFolder::new(path) }
    }

    /// The same, with these actions known to its files.
    #[must_use]
    pub fn with_actions(mut self, kinds: ActionKinds) -> HookFolder {
        self.kinds = kinds;
        self
    }

    /// The folder's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads all files. Never fails as a whole: what is wrong stands in `problems`.
    pub fn load(&self) -> Loaded {
        let mut loaded = Loaded::default();
        let files = match rule_files(&self.path) {
            Ok(files) => files,
            Err(error) => {
                let message = format!("the hooks folder cannot be read: {}", plain(&error));
                loaded.problems.push(Problem::of_file(&self.path.display().to_string(), message));
                return loaded;
            }
        };
        for path in files {
            let name = path.display().to_string();
            match read_text(&path) {
                Ok(text) => {
                    let definitions = define::read(&name, &text, self.source, &self.kinds);
                    loaded.hooks.extend(definitions.hooks);
                    loaded.problems.extend(definitions.problems);
                    loaded.warnings.extend(definitions.warnings);
                }
                Err(message) => loaded.problems.push(Problem::of_file(&name, message)),
            }
        }
        if loaded.hooks.len() > MOST_HOOKS {
            let message = format!("{} hooks; at most {MOST_HOOKS} are allowed", loaded.hooks.len());
            loaded.problems.push(Problem::of_file(&self.path.display().to_string(), message));
        }
        loaded.refuse_repeated_ids();
        loaded
    }
}

impl Loaded {
    /// What is loaded, in load order.
    pub fn listing(&self) -> Vec<HookListing> {
        self.hooks.iter().map(Hook::listing).collect()
    }

    /// Adds what another place gave; an id that is already used is refused there.
    pub fn append(&mut self, other: Loaded) {
        self.hooks.extend(other.hooks);
        self.problems.extend(other.problems);
        self.warnings.extend(other.warnings);
        self.refuse_repeated_ids();
    }

    /// The set to use under a policy, with all problems; with `Refuse` any problem means no set.
    pub fn into_set(self, on_invalid: OnInvalid) -> (Option<HookSet>, Vec<Problem>) {
        let mut problems = self.problems;
        if on_invalid == OnInvalid::Refuse && !problems.is_empty() {
            return (None, problems);
        }
        match HookSet::new(self.hooks) {
            Ok(set) => (Some(set), problems),
            Err(problem) => {
                problems.push(*problem);
                (None, problems)
            }
        }
    }

    /// An id names one rule: records and counters depend on it. The same rule may stand in several scopes, but not in
    /// places that are trusted differently: who is trusted less would put a rule of his own in place of another's.
    fn refuse_repeated_ids(&mut self) {
        let mut seen: HashMap<Arc<str>, Vec<(Source, Reach, String)>> = HashMap::new();
        let mut kept = Vec::with_capacity(self.hooks.len());
        for hook in self.hooks.drain(..) {
            let same = seen.entry(hook.key.clone()).or_default();
            let taken = same.iter().find(|(source, reach, _)| *source != hook.source || *reach == hook.reach);
            match taken {
                Some((_, _, first)) => self.problems.push(Problem {
                    hook: Some(define::HookRef { index: hook.index, label: Some(hook.key.to_string()) }),
                    field: Some("id".into()),
                    ..Problem::of_file(
                        &hook.file,
                        format!("the id `{}` is already used in {first}", hook.key),
                    )
                }),
                None => {
                    same.push((hook.source, hook.reach.clone(), hook.file.clone()));
                    kept.push(hook);
                }
            }
        }
        self.hooks = kept;
    }
}

/// The test files of a folder, in name order.
///
/// # Errors
/// The folder cannot be read.
pub fn test_files(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.ends_with(TEST_ENDING) && !name.starts_with('.') && !is_folder(&entry) {
            files.push(entry.path());
        }
    }
    files.sort();
    Ok(files)
}

/// The rule files of a folder, in name order.
fn rule_files(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if is_rule_file(&entry.file_name().to_string_lossy()) && !is_folder(&entry) {
            files.push(entry.path());
        }
    }
    files.sort();
    Ok(files)
}

/// Whether it is a folder, or a link to one. Of most entries the list of names tells; the system is asked about links.
fn is_folder(entry: &fs::DirEntry) -> bool {
    match entry.file_type() {
        Ok(kind) if !kind.is_symlink() => kind.is_dir(),
        _ => entry.path().is_dir(),
    }
}

fn is_rule_file(name: &str) -> bool {
    name.ends_with(".json") && !name.starts_with('.') && !name.ends_with(TEST_ENDING)
}

/// The text of a rule file or test file, or why it has none: one sentence.
///
/// # Errors
/// It is no regular file, too large, no UTF-8 text, or cannot be read.
pub fn read_text(path: &Path) -> Result<String, String> {
    let unread = |error: std::io::Error| format!("cannot be read: {}", plain(&error));
    let mut file = open(path).map_err(unread)?;
    let about = file.metadata().map_err(unread)?;
    if !about.is_file() {
        // a pipe would be waited for, a device never ends
        return Err("not a regular file".into());
    }
    let too_large = || format!("larger than {} MiB, which no hook file is", LARGEST_FILE / (1024 * 1024));
    if about.len() > LARGEST_FILE {
        return Err(too_large());
    }
    // one byte more shows the end of the file to the same read
    let room = usize::try_from(about.len()).unwrap_or(0).saturating_add(1);
    let mut bytes = Vec::with_capacity(room);
    (&mut file).take(LARGEST_FILE.saturating_add(1)).read_to_end(&mut bytes).map_err(unread)?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > LARGEST_FILE {
        return Err(too_large());
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        match error.as_bytes() {
            [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => "is UTF-16; hook files are UTF-8".into(),
            _ => format!("is not UTF-8 text (byte {at})"),
        }
    })
}

/// Opens a file without waiting for anybody at the other end of what may be a pipe.
fn open(path: &Path) -> std::io::Result<fs::File> {
    let mut options = fs::OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(
        &mut options,
        i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or_default(),
    );
    options.open(path)
}

/// The system's words without its number.
fn plain(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workshop::Workshop;

    fn folder(files: &[(&str, &[u8])]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (name, bytes) in files {
            fs::write(dir.path().join(name), bytes).unwrap();
        }
        dir
    }

    fn check(files: &[(&str, &[u8])], labels: &[&str], problems: &[&str]) {
        let dir = folder(files);
        let loaded = HookFolder::new(dir.path()).load();
        let got: Vec<String> = loaded.hooks.iter().map(|hook| hook.label.clone()).collect();
        assert_eq!(got, labels);
        let texts: Vec<String> = loaded.problems.iter().map(ToString::to_string).collect();
        assert_eq!(texts.len(), problems.len(), "{texts:#?}");
        for (text, want) in texts.iter().zip(problems) {
            assert!(text.contains(want), "{text} lacks {want}");
        }
    }

    const A: &[u8] = br#"{"target":"chat","label":"a"}"#;

    #[test]
    fn only_rule_files_count_in_name_order() {
        check(
            &[
                ("b.json", br#"{"target":"chat","label":"b"}"#),
                ("a.json", A),
                ("a.json~", b"x"),
                (".hidden.json", b"x"),
                ("#a.json#", b"x"),
                ("README.md", b"x"),
                ("a.json.swp", b"x"),
                ("a.test.json", b"[{"),
            ],
            &["a", "b"],
            &[],
        );
    }

    #[test]
    fn test_files_are_no_rule_files() {
        let dir = folder(&[("b.test.json", b"["), ("a.test.json", A), ("a.json", A), (".c.test.json", b"x")]);
        let names: Vec<String> = test_files(dir.path())
            .unwrap()
            .iter()
            .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
            .collect();
        assert_eq!(names, ["a.test.json", "b.test.json"]);
        let loaded = HookFolder::new(dir.path()).load();
        assert_eq!((loaded.hooks.len(), loaded.problems.len()), (1, 0));
        assert_eq!(loaded.hooks[0].file, dir.path().join("a.json").display().to_string());
    }

    #[test]
    fn what_cannot_be_read_is_told() {
        check(&[("a.json", A), ("b.json", b"\x7fELF\x00\x01\xff")], &["a"], &["not UTF-8 text (byte 6)"]);
        check(&[("b.json", b"\xff\xfe{\x00}\x00")], &[], &["UTF-16"]);
        check(&[("b.json", &vec![b' '; 9 << 20])], &[], &["larger than 8 MiB"]);
        check(&[("b.json", b"{\"target\":\"chat\",\"label\":\"\0\"}")], &[], &["not valid JSON"]);
        let loaded = HookFolder::new("no/such/folder").load();
        assert!(loaded.problems[0].to_string().contains("no/such/folder"), "{:?}", loaded.problems);
        assert!(loaded.problems[0].to_string().contains("no such file"), "{:?}", loaded.problems);
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_and_broken_ones_told() {
        let dir = folder(&[("real", A)]);
        std::os::unix::fs::symlink(dir.path().join("real"), dir.path().join("a.json")).unwrap();
        std::os::unix::fs::symlink(dir.path().join("gone"), dir.path().join("b.json")).unwrap();
        let loaded = HookFolder::new(dir.path()).load();
        assert_eq!(loaded.hooks.len(), 1);
        assert!(loaded.problems[0].to_string().contains("b.json"), "{:?}", loaded.problems);
    }

    #[test]
    fn lifecycle_hooks_are_listed_and_cannot_run_yet() {
        let text = br#"{"id":"n","event":"pre_tool_use","handler":{"type":"script","source":"x"}}"#;
        let dir = folder(&[("a.json", A), ("l.json", text)]);
        let loaded = HookFolder::new(dir.path()).load();
        assert_eq!(loaded.listing().len(), 2);
        let (set, problems) = Workshop::empty().equip(loaded).into_set(OnInvalid::Refuse);
        assert!(set.is_none());
        assert!(problems[0].to_string().contains("`script` cannot run"), "{}", problems[0]);
    }

    #[test]
    fn an_id_names_one_rule() {
        let text = br#"[{"id":"n","event":"stop","handler":{"type":"script","source":"x"}},
                        {"id":"n","event":"stop","handler":{"type":"script","source":"y"}}]"#;
        check(&[("l.json", text)], &["n"], &["the id `n` is already used"]);
    }

    #[test]
    fn the_configured_folder_beats_the_environment() {
        assert_eq!(resolve(Some("a".into()), Some("b".into())), Some("a".into()));
        assert_eq!(resolve(None, Some("b".into())), Some("b".into()));
        assert_eq!(resolve(Some("".into()), Some("".into())), None);
        assert_eq!(resolve(None, None), None);
    }
}
