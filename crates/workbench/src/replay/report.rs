//! What came out of a replay. Serialised, it is what `--json` prints.

use super::deed::What;
use super::format::Format;
use super::judge::Rules;
use super::tally::{Count, Tally};
use hookgate_core::effect::HookName;
use hookgate_core::word::Word;
use serde::{Serialize, Serializer};
use std::collections::{BTreeMap, HashSet};

/// Findings that are listed in full; beyond that they are only counted.
pub const MOST_FINDINGS: usize = 10_000;
/// Damaged places that are named.
const MOST_DAMAGE: usize = 1_000;
/// Sessions that are listed: those in which something was found.
const MOST_SESSIONS: usize = 2_000;
/// Files that are named as unread.
const MOST_UNREAD: usize = 1_000;

/// Everything.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Report {
    /// The hooks, as the user named them.
    pub hooks: String,
    /// The hooks that they are compared with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub against: Option<String>,
    /// Files that were read.
    pub files: u64,
    /// Files by format.
    pub formats: BTreeMap<&'static str, u64>,
    /// Sessions in them.
    pub sessions: u64,
    /// Events that hooks were asked about or told of.
    pub events: u64,
    /// One a hook and thing that it does, the gravest first.
    pub rows: Vec<Row>,
    /// Hooks that did nothing, by name and set.
    pub silent: Vec<Silent>,
    /// The first findings.
    pub findings: Vec<Finding>,
    /// Findings beyond those.
    pub unlisted: u64,
    /// Lines that could not be used.
    pub damaged: u64,
    /// The first of them.
    pub damage: Vec<Damage>,
    /// Files that are no history, or could not be read.
    pub unread: Vec<Unread>,
    /// How many these are.
    pub n_unread: u64,
    /// How many of these were meant to be read.
    pub n_lost: u64,
    /// Sessions in which something was found, the first of them.
    pub found_in: Vec<Session>,
}

/// Which of two hook sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// The one that was named first.
    #[serde(rename = "hooks")]
    First = 0,
    /// The one that it is compared with.
    #[serde(rename = "against")]
    Second = 1,
}

/// How often a hook would have done a thing.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// What.
    #[serde(serialize_with = "word")]
    pub what: What,
    /// The hook.
    pub hook: String,
    /// How often.
    pub times: u64,
    /// How often in the set that is compared with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub times_against: Option<u64>,
    /// How often where the other set does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub only_hooks: Option<u64>,
    /// How often only the other set does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub only_against: Option<u64>,
    /// In how many sessions; of two sets, where only one does it.
    pub sessions: u64,
    /// The first time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<Finding>,
}

/// One thing that one hook would have done.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// The history.
    pub file: String,
    /// The line in it.
    pub line: u64,
    /// The session.
    pub session: String,
    /// Which session of the file, from 0.
    #[serde(skip)]
    pub in_file: usize,
    /// Which event of its session it was, from 1.
    pub nth: u64,
    /// When, as the history writes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
    /// Which set does it.
    pub side: Side,
    /// What.
    #[serde(serialize_with = "word")]
    pub what: What,
    /// The hook.
    pub hook: String,
    /// The point.
    pub event: &'static str,
    /// The tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// A part of what the event was about.
    pub excerpt: String,
    /// The reason, or the text that the hook makes.
    pub text: String,
}

/// A session in which something was found.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Session {
    /// The history.
    pub file: String,
    /// Where it begins.
    pub line: u64,
    /// Its id, or a name made from the file's.
    pub id: String,
    /// How many events.
    pub events: u64,
    /// How many findings.
    pub found: u64,
    /// Which session of the file, from 0.
    #[serde(skip)]
    pub in_file: usize,
}

/// A line that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Damage {
    /// The history.
    pub file: String,
    /// The line.
    pub line: u64,
    /// Why.
    pub why: String,
}

/// A file that was not read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unread {
    /// The file.
    pub file: String,
    /// Why.
    pub why: String,
    /// It was meant to be read: it was named, or nobody could look whether it is a history. Else it is only something else
    /// in a folder.
    pub is_lost: bool,
}

/// A hook that did nothing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Silent {
    /// In which set.
    pub side: Side,
    /// Its name.
    pub hook: String,
}

fn word<S: Serializer>(what: &What, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(what.as_str())
}

/// What one file gave.
pub(crate) struct Outcome<'r> {
    pub(crate) format: Option<Format>,
    pub(crate) unread: Option<Unread>,
    pub(crate) tally: Tally<'r>,
}

/// A report that is being put together, file by file in their order.
pub(crate) struct Gathering {
    report: Report,
    counts: BTreeMap<(What, HookName), Count>,
}

impl Gathering {
    pub(crate) fn new() -> Gathering {
        Gathering { report: Report::default(), counts: BTreeMap::new() }
    }

    pub(crate) fn add(&mut self, outcome: Outcome<'_>) {
        let Outcome { format, unread, tally } = outcome;
        let report = &mut self.report;
        if let Some(unread) = unread {
            report.n_unread = report.n_unread.saturating_add(1);
            report.n_lost = report.n_lost.saturating_add(u64::from(unread.is_lost));
            keep(&mut report.unread, [unread], MOST_UNREAD);
        }
        if let Some(format) = format {
            report.files = report.files.saturating_add(1);
            let files = report.formats.entry(format.as_str()).or_default();
            *files = files.saturating_add(1);
        }
        report.sessions = report.sessions.saturating_add(count_of(tally.sessions.len()));
        report.events = report.events.saturating_add(tally.events);
        report.damaged = report.damaged.saturating_add(tally.n_damaged);
        keep(&mut report.damage, tally.damage, MOST_DAMAGE);
        let found = tally.sessions.into_iter().enumerate().filter(|(_, session)| session.found > 0);
        let found = found.map(|(in_file, session)| Session { in_file, ..session });
        keep(&mut report.found_in, found, MOST_SESSIONS);
        let left = keep(&mut report.findings, tally.findings, MOST_FINDINGS);
        report.unlisted = report.unlisted.saturating_add(tally.unlisted).saturating_add(left);
        for (key, count) in tally.counts {
            self.counts.entry(key).or_default().add(count);
        }
    }

    pub(crate) fn done(self, rules: &[Rules]) -> Report {
        let Gathering { mut report, counts } = self;
        let mut spoke: HashSet<(Side, String)> = HashSet::new();
        let two = rules.len() > 1;
        for ((what, hook), count) in counts {
            let [times, times_against] = count.times;
            let [only_hooks, only_against] = count.only;
            for (side, times) in [(Side::First, times), (Side::Second, times_against)] {
                if times > 0 {
                    spoke.insert((side, hook.to_string()));
                }
            }
            report.rows.push(Row {
                what,
                hook: hook.to_string(),
                times,
                times_against: two.then_some(times_against),
                only_hooks: two.then_some(only_hooks),
                only_against: two.then_some(only_against),
                sessions: count.sessions,
                first: count.sample,
            });
        }
        // the gravest first, then what happens most
        report.rows.sort_by(|one, other| {
            let times = |row: &Row| row.times.max(row.times_against.unwrap_or(0));
            (one.what, times(other)).cmp(&(other.what, times(one)))
        });
        for (side, rules) in [Side::First, Side::Second].into_iter().zip(rules) {
            let names: std::collections::BTreeSet<String> =
                rules.hooks().iter().map(|hook| hook.name.to_string()).collect();
            let silent = names.into_iter().filter(|hook| !spoke.contains(&(side, hook.clone())));
            report.silent.extend(silent.map(|hook| Silent { side, hook }));
        }
        report
    }
}

impl Count {
    fn add(&mut self, other: Count) {
        let sum = |ours: &mut [u64; 2], theirs: [u64; 2]| {
            ours.iter_mut().zip(theirs).for_each(|(ours, theirs)| *ours = ours.saturating_add(theirs));
        };
        sum(&mut self.times, other.times);
        sum(&mut self.only, other.only);
        self.sessions = self.sessions.saturating_add(other.sessions);
        if self.sample.is_none() {
            self.sample = other.sample;
        }
    }
}

/// Adds what there is room for, and gives how many are left out.
fn keep<T>(into: &mut Vec<T>, items: impl IntoIterator<Item = T>, most: usize) -> u64 {
    let mut left = 0u64;
    for item in items {
        if into.len() < most {
            into.push(item);
        } else {
            left = left.saturating_add(1);
        }
    }
    left
}

fn count_of(n: usize) -> u64 {
    u64::try_from(n).unwrap_or(u64::MAX)
}
