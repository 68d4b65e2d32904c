//! What is kept of a hook's run: one record for each hook that ran, whatever the outcome. Only here is input hashed.

use crate::canonical;
use crate::effect::HookName;
use crate::explain::FilterTrace;
use crate::facts::{Facts, Head};
use crate::firings::Fired;
use crate::future::BoxFuture;
use crate::verdict::{Cause, Decision};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::{HashSet, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Characters of an error that are kept in the open.
const LONGEST_ERROR: usize = 256;

/// One run of one hook.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// The hook's key.
    pub hook: Arc<str>,
    /// Its name for people, which survives the hook.
    pub label: HookName,
    /// The version of its definition.
    pub hook_version: Arc<str>,
    /// The session.
    pub session_id: String,
    /// The tenant.
    pub tenant_id: Option<String>,
    /// The agent.
    pub agent_id: Option<String>,
    /// The event's id; with the hook's key it makes the record unique.
    pub event_id: String,
    /// The point.
    pub event: &'static str,
    /// The tool, at points that have one.
    pub tool_name: Option<String>,
    /// The recorder's digest of the canonical JSON of the input as the hook saw it.
    pub input_hash: InputHash,
    /// How it ended.
    pub decision: Decision,
    /// What lies behind a decision that is not the hook's own.
    pub cause: Option<Cause>,
    /// How long it took.
    pub duration: Duration,
    /// What went wrong, or why it blocked: no credentials, at most 256 characters.
    pub error: Option<String>,
    /// The same in full, for the sealed column.
    pub error_detail: Option<String>,
    /// Fields that the hook wanted to change and may not.
    pub refused_fields: Vec<String>,
    /// Tokens that a question to a model cost.
    pub tokens: Option<u64>,
    /// How many firings the record stands for: 1, but for a JSON hook on the chunks of an answer.
    pub times: u64,
    /// The trace that the event is part of.
    pub trace_id: Option<String>,
}

/// What stands for an input in a record. Shown in lower-case hex.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct InputHash(pub [u8; 32]);

/// Keeps records. A gate waits for it: when the future is done, the record is as safe as the store promises.
pub trait Recorder: Send + Sync + std::fmt::Debug {
    /// Keeps one record; a second one of the same hook and event is dropped.
    fn record(&self, record: Record) -> BoxFuture<'_, Result<(), RecordError>>;

    /// The digest that stands for an input. A store with a key gives one that nobody can look up without the key.
    fn digest(&self, canonical: &[u8]) -> [u8; 32] {
        Sha256::digest(canonical).into()
    }

    /// Keeps a record that nobody waits for: it is safe after an orderly end of the process. What must wait to keep one
    /// says here how it is done without.
    fn record_soon(&self, record: Record) {
        let mut kept = self.record(record);
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        // those that keep at once are done with the first look
        let _ = kept.as_mut().poll(&mut context);
    }

    /// Keeps what a JSON hook did, without waiting.
    fn fired(&self, fired: Fired, head: &Head) {
        self.record_soon(fired.record(head, |canonical| self.digest(canonical)));
    }

    /// Told with each load that went well which hooks a folder has now, by their keys.
    fn installed(&self, folder: &str, hooks: Vec<String>) {
        let _ = (folder, hooks);
    }

    /// Whether it is to be told which hooks each event concerned. That costs time with every event.
    fn wants_traces(&self) -> bool {
        false
    }

    /// Takes such a report. Must not wait.
    fn trace(&self, trace: FilterTrace) {
        let _ = trace;
    }
}

/// The record could not be kept; a gate must not go on without it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct RecordError(pub String);

/// `input_hash` of an event without a key: SHA-256.
pub fn input_hash(facts: &Facts) -> InputHash {
    hash_with(facts, |canonical| Sha256::digest(canonical).into())
}

/// `input_hash` of an event with a digest of the recorder's choice.
pub fn hash_with(facts: &Facts, digest: impl FnOnce(&[u8]) -> [u8; 32]) -> InputHash {
    let mut canonical = Vec::with_capacity(256);
    canonical::write_object(facts.input(), &mut canonical);
    InputHash(digest(&canonical))
}

impl fmt::Display for InputHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for InputHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A hook's error as it may stand in the open: what it repeats of the event's input goes out first, whole texts of
/// it as they are and as JSON writes them, then as [`open_text`].
pub fn open_error(error: &str, facts: &Facts) -> String {
    let mut texts = Vec::new();
    for (_, value) in facts.input().filter(|(name, _)| !matches!(*name, "event" | "toolName")) {
        collect_texts(Some(value), error.len(), &mut texts);
    }
    // the longest first, so that a text that holds another goes out whole
    texts.sort_by_key(|text| std::cmp::Reverse(text.len()));
    let mut open = error.to_owned();
    for text in texts {
        let quoted = serde_json::to_string(text).unwrap_or_default();
        let json = quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(text);
        for shape in [json, text] {
            if open.contains(shape) {
                open = open.replace(shape, "[input]");
            }
        }
    }
    open_text(&open)
}

/// The texts of an input that are long enough to mean something and short enough to be found.
fn collect_texts<'a>(value: Option<&'a Value>, longest: usize, texts: &mut Vec<&'a str>) {
    const SHORTEST: usize = 6;
    match value {
        Some(Value::String(text)) if (SHORTEST..=longest).contains(&text.len()) => texts.push(text),
        Some(Value::Array(items)) => items.iter().for_each(|item| collect_texts(Some(item), longest, texts)),
        Some(Value::Object(members)) => {
            members.values().for_each(|member| collect_texts(Some(member), longest, texts));
        }
        _ => {}
    }
}

/// An error's text as it may stand in the open: credentials and addresses out first, then cut between characters.
pub fn open_text(error: &str) -> String {
    let clean = redact(error);
    match clean.char_indices().nth(LONGEST_ERROR.saturating_sub(1)) {
        Some((edge, last)) if edge.saturating_add(last.len_utf8()) < clean.len() => {
            let mut cut = clean.get(..edge).unwrap_or_default().to_owned();
            cut.push('…');
            cut
        }
        _ => clean,
    }
}

/// Takes what looks like a credential or a mail address out, word by word.
fn redact(text: &str) -> String {
    const SECRET_WORDS: [&str; 9] =
        ["token", "key", "secret", "password", "passwd", "pwd", "authorization", "cookie", "credential"];
    let mut out = String::with_capacity(text.len());
    let mut after_scheme = false;
    for piece in
        text.split_inclusive(|c: char| c.is_whitespace() || matches!(c, ',' | ';' | '(' | ')' | '<' | '>'))
    {
        let word = piece
            .trim_end_matches(|c: char| c.is_whitespace() || matches!(c, ',' | ';' | '(' | ')' | '<' | '>'));
        let rest = piece.get(word.len()..).unwrap_or_default();
        let lower = word.to_lowercase();
        let named = word.split_once(['=', ':']).filter(|(name, value)| {
            let name = name.to_lowercase();
            !value.is_empty() && SECRET_WORDS.iter().any(|secret| name.contains(secret))
        });
        if after_scheme && word.len() >= 6 {
            out.push_str("[redacted]");
        } else if let Some((name, _)) = named {
            out.push_str(name);
            out.push_str("=[redacted]");
        } else if is_mail_address(word) || looks_random(word) {
            out.push_str("[redacted]");
        } else {
            out.push_str(word);
        }
        let scheme = lower.trim_end_matches(':');
        let announces =
            lower.ends_with([':', '=']) && SECRET_WORDS.iter().any(|secret| lower.contains(secret));
        after_scheme = matches!(scheme, "bearer" | "basic" | "token") || announces;
        out.push_str(rest);
    }
    out
}

fn is_mail_address(word: &str) -> bool {
    word.split_once('@')
        .is_some_and(|(name, host)| !name.is_empty() && host.contains('.') && !name.contains('/'))
        || (word.contains("://") && word.split_once("://").is_some_and(|(_, rest)| rest.contains('@')))
}

/// Long words of letters and digits mixed, as keys are; paths and plain words are not.
fn looks_random(word: &str) -> bool {
    let key_like = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '+' | '=' | '.');
    word.len() >= 20
        && word.chars().all(key_like)
        && word.chars().any(|c| c.is_ascii_digit())
        && word.chars().any(|c| c.is_ascii_alphabetic())
        || ["sk-", "ghp_", "gho_", "xoxb-", "xoxp-", "AKIA", "eyJ"]
            .iter()
            .any(|head| word.starts_with(head) && word.len() > 12)
}

/// Keeps the newest records in memory: for tests, and for doors without a store.
#[derive(Debug)]
pub struct Memory {
    newest: usize,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    records: VecDeque<Record>,
    seen: HashSet<(Arc<str>, String)>,
}

impl Memory {
    /// Keeps at most `newest` records.
    pub fn new(newest: usize) -> Memory {
        Memory { newest, kept: Mutex::default() }
    }

    /// What is kept, oldest first.
    pub fn records(&self) -> Vec<Record> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).records.iter().cloned().collect()
    }
}

impl Recorder for Memory {
    fn record(&self, record: Record) -> BoxFuture<'_, Result<(), RecordError>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.seen.insert((record.hook.clone(), record.event_id.clone())) {
            kept.records.push_back(record);
            if kept.records.len() > self.newest
                && let Some(oldest) = kept.records.pop_front()
            {
                kept.seen.remove(&(oldest.hook, oldest.event_id));
            }
        }
        Box::pin(std::future::ready(Ok(())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_do_not_stay_in_the_open() {
        for (text, gone) in [
            ("401 for Bearer abcdefgh12345678 of user@example.test", "abcdefgh12345678"),
            ("401 for Bearer abcdefgh12345678 of user@example.test", "user@example.test"),
            ("token=tok_12345 refused", "tok_12345"),
            ("api_key: hunter22 is wrong", "hunter22"),
            ("https://user:pw@host.example/x failed", "pw@host"),
            ("bad sk-proj-0000000000000000", "sk-proj"),
        ] {
            let open = open_text(text);
            assert!(!open.contains(gone), "{open}");
            assert!(open.contains("[redacted]"), "{open}");
        }
        assert_eq!(open_text("connection refused (os error 111)"), "connection refused (os error 111)");
        assert_eq!(open_text("/srv/app/hooks/check.sh: not found"), "/srv/app/hooks/check.sh: not found");
    }

    #[test]
    fn an_error_does_not_repeat_the_input() {
        let command = r#"curl -H "Authorization: token x1""#;
        let tool_input = serde_json::json!({"command": command, "more": ["/home/me/notes"], "n": 1});
        let event = crate::facts::GateEvent::PreToolUse { tool_name: "exec".into(), tool_input };
        let facts = Facts::of_gate(&crate::facts::Head::default(), event);
        for (error, open) in [
            (format!("failed on {command}"), "failed on [input]"),
            (
                format!("failed on {}", serde_json::json!({"command": command})),
                r#"failed on {"command":"[input]"}"#,
            ),
            ("exec cannot read /home/me/notes".into(), "exec cannot read [input]"),
            ("no answer".into(), "no answer"),
        ] {
            assert_eq!(open_error(&error, &facts), open);
        }
    }

    #[test]
    fn errors_are_cut_between_characters() {
        let open = open_text(&"中".repeat(300));
        assert_eq!(open.chars().count(), 256);
        assert!(open.ends_with("中…"));
        assert_eq!(open_text(&"中".repeat(256)).chars().count(), 256);
    }
}
