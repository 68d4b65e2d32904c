//! How an agent is wired: which settings files there are, and what an entry looks like. Files are read and written by
//! the caller.

use crate::event::Event;
use serde_json::{Map, Value, json};
use std::time::Duration;

/// What an installation writes.
#[derive(Debug)]
pub struct Setup {
    /// The files, one a level.
    pub places: &'static [Place],
    /// What stands in them.
    pub shape: Shape,
    /// The limit that is written for each event, unless the agent waits less.
    pub limit: Duration,
    /// Settings that switch hooks off.
    pub switches: &'static [Switch],
    /// What the user must do after an installation, one sentence each.
    pub then: &'static [&'static str],
}

/// A settings file.
#[derive(Debug)]
pub struct Place {
    /// Whose it is.
    pub level: Level,
    /// Its path; `~/` is the home folder, a path without a root is in the project.
    pub path: &'static str,
}

/// Whose settings a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// The user's.
    User,
    /// One project's.
    Project,
    /// The machine's: no project can switch it off.
    Managed,
}

/// What a settings file holds.
#[derive(Debug)]
pub enum Shape {
    /// `hooks.EVENT` is a list of `{"hooks": [ENTRY]}`.
    Grouped(Entry),
    /// `hooks.EVENT` is a list of entries.
    Flat(Entry),
    /// `hookgate.EVENT` is a list: of groups for events of tools, of entries for the others.
    Named(Entry),
    /// A folder with one program an event.
    Programs,
    /// A file of program text that starts us.
    Plugin {
        /// The text, with `{{program}}` and `{{arguments}}` where the program and its first arguments stand as JSON.
        text: &'static str,
    },
}

/// How one entry is written.
#[derive(Debug)]
pub struct Entry {
    /// The key of the line.
    pub command: &'static str,
    /// The key of the limit, and how many of its units are a second; none: entries have no limit.
    pub timeout: Option<(&'static str, u64)>,
    /// The agent's own switch for "no answer means no".
    pub closed: Option<(&'static str, Closed)>,
    /// Whether the entry says that it is a command.
    pub typed: bool,
    /// Whether it has a name.
    pub named: bool,
    /// The format's version that must stand at the top.
    pub version: Option<u64>,
}

/// The value of a fail-closed switch.
#[derive(Debug, Clone, Copy)]
pub enum Closed {
    /// `true`
    True,
    /// `"block"`
    Block,
}

/// A setting that switches hooks off.
#[derive(Debug)]
pub struct Switch {
    /// The file; `~/` is the home folder, a path without a root is in the project.
    pub path: &'static str,
    /// The keys that lead to it.
    pub keys: &'static [&'static str],
    /// The value that switches hooks off.
    pub off: bool,
}

impl Entry {
    /// The usual entry: `{"type": "command", "command": LINE, "timeout": SECONDS}`.
    pub(crate) const COMMAND: Entry = Entry {
        command: "command",
        timeout: Some(("timeout", 1)),
        closed: None,
        typed: true,
        named: false,
        version: None,
    };

    /// The entry for a line.
    pub fn write(&self, line: &str, limit: Duration) -> Value {
        let mut entry = Map::new();
        if self.named {
            entry.insert("name".into(), "hookgate".into());
        }
        if self.typed {
            entry.insert("type".into(), "command".into());
        }
        entry.insert(self.command.into(), line.into());
        if let Some((key, units)) = self.timeout {
            let ms = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
            entry.insert(key.into(), (ms.saturating_mul(units) / 1000).max(1).into());
        }
        match self.closed {
            Some((key, Closed::True)) => entry.insert(key.into(), true.into()),
            Some((key, Closed::Block)) => entry.insert(key.into(), "block".into()),
            None => None,
        };
        Value::Object(entry)
    }
}

impl Setup {
    /// The place of a level.
    pub fn place(&self, level: Level) -> Option<&'static Place> {
        self.places.iter().find(|place| place.level == level)
    }

    /// The limit of an event: what is written into the settings.
    pub fn limit_of(&self, event: &Event) -> Duration {
        let limit = event.patience.map_or(self.limit, |patience| patience.min(self.limit));
        // what is written in whole seconds must not promise more than the line knows
        if limit > Duration::from_secs(1) { Duration::from_secs(limit.as_secs()) } else { limit }
    }

    /// The keys that lead to the table of events.
    pub fn table(&self) -> &'static str {
        match self.shape {
            Shape::Named(_) => "hookgate",
            _ => "hooks",
        }
    }

    /// What is added to the list of an event; none where the shape knows no such lists.
    pub fn item(&self, event: &Event, line: &str) -> Option<Value> {
        let limit = self.limit_of(event);
        match &self.shape {
            Shape::Grouped(entry) => Some(json!({"hooks": [entry.write(line, limit)]})),
            Shape::Named(entry) if event.means.ends_with("tool_use") => {
                Some(json!({"matcher": ".*", "hooks": [entry.write(line, limit)]}))
            }
            Shape::Flat(entry) | Shape::Named(entry) => Some(entry.write(line, limit)),
            Shape::Programs | Shape::Plugin { .. } => None,
        }
    }

    /// The version that must stand at the top.
    pub fn version(&self) -> Option<Value> {
        match &self.shape {
            Shape::Grouped(entry) | Shape::Flat(entry) | Shape::Named(entry) => {
                entry.version.map(Value::from)
            }
            Shape::Programs | Shape::Plugin { .. } => None,
        }
    }
}
