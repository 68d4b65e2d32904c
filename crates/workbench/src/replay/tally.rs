//! Counts what hooks would have done in the sessions of one file, and keeps the first of it in full.

use super::deed::{Deed, What};
use super::judge::Rules;
use super::player::Place;
use super::report::{Damage, Finding, Session, Side};
use super::step::Outcome;
use hookgate_agents::call::Call;
use hookgate_core::effect::HookName;
use hookgate_core::point::Point;
use hookgate_core::word::Word;
use serde_json::Value;
use std::collections::BTreeMap;

/// Findings of one file that are kept in full.
const MOST_FINDINGS: usize = 2_000;
/// Damaged places of one file that are named.
const MOST_DAMAGE: usize = 100;
/// Characters of a text that are shown.
const LONGEST: usize = 240;
/// Characters before a match that are shown.
const BEFORE: usize = 60;

/// What an event was about; its text is cut out only where something was found.
pub(crate) struct Scene<'a> {
    at: Place<'a>,
    point: Point,
    about: About<'a>,
}

enum About<'a> {
    Text(&'a str),
    Call(&'a Call, Option<&'a Outcome>),
}

/// The counts of one file.
pub(crate) struct Tally<'r> {
    rules: &'r [Rules],
    file: String,
    pub(crate) events: u64,
    pub(crate) sessions: Vec<Session>,
    pub(crate) counts: BTreeMap<(What, HookName), Count>,
    pub(crate) findings: Vec<Finding>,
    pub(crate) unlisted: u64,
    pub(crate) damage: Vec<Damage>,
    pub(crate) n_damaged: u64,
}

/// How often one hook would have done one thing.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Count {
    /// In the first set, and in the second.
    pub(crate) times: [u64; 2],
    /// Where the other set does nothing of the kind.
    pub(crate) only: [u64; 2],
    pub(crate) sessions: u64,
    last_session: Option<usize>,
    pub(crate) sample: Option<Finding>,
}

impl<'a> Scene<'a> {
    pub(crate) fn text(at: Place<'a>, point: Point, text: &'a str) -> Scene<'a> {
        Scene { at, point, about: About::Text(text) }
    }

    pub(crate) fn call(
        at: Place<'a>,
        point: Point,
        call: &'a Call,
        outcome: Option<&'a Outcome>,
    ) -> Scene<'a> {
        Scene { at, point, about: About::Call(call, outcome) }
    }

    fn tool(&self) -> Option<&str> {
        match self.about {
            About::Text(_) => None,
            About::Call(call, _) => Some(&call.tool_name),
        }
    }

    /// The part of it that people need to see.
    fn excerpt(&self, rules: &Rules, hook: &str) -> String {
        let cut = |text: &str| cut_around(text, rules.find(hook, text).map_or(0, |range| range.start));
        match &self.about {
            About::Text(text) => cut(text),
            About::Call(call, outcome) => match outcome {
                Some(Outcome::Error(error)) => cut(error),
                Some(Outcome::Output(Value::String(output))) => cut(output),
                Some(Outcome::Output(output)) => cut(&output.to_string()),
                None => cut(&main_part(&call.tool_input)),
            },
        }
    }
}

impl<'r> Tally<'r> {
    pub(crate) fn new(rules: &'r [Rules], file: String) -> Tally<'r> {
        Tally {
            rules,
            file,
            events: 0,
            sessions: Vec::new(),
            counts: BTreeMap::new(),
            findings: Vec::new(),
            unlisted: 0,
            damage: Vec::new(),
            n_damaged: 0,
        }
    }

    /// Another session begins.
    pub(crate) fn begin(&mut self, id: String, line: u64) {
        self.sessions.push(Session { file: self.file.clone(), id, line, ..Session::default() });
    }

    /// Something in the file cannot be used.
    pub(crate) fn damaged(&mut self, line: u64, why: impl Into<String>) {
        self.n_damaged = self.n_damaged.saturating_add(1);
        if self.damage.len() < MOST_DAMAGE {
            self.damage.push(Damage { file: self.file.clone(), line, why: why.into() });
        }
    }

    /// Counts an event, and takes what the hooks of each set wanted.
    pub(crate) fn event<'d>(&mut self, scene: Scene<'_>, deeds: impl Iterator<Item = &'d mut Vec<Deed>>) {
        self.events = self.events.saturating_add(1);
        if let Some(session) = self.sessions.last_mut() {
            session.events = session.events.saturating_add(1);
        }
        let mut sides: [Option<&mut Vec<Deed>>; 2] = [None, None];
        sides.iter_mut().zip(deeds).for_each(|(side, deeds)| *side = Some(deeds));
        match sides {
            [Some(first), None] if !first.is_empty() => {
                for deed in std::mem::take(first) {
                    self.count(&scene, deed, Side::First, true);
                }
            }
            [Some(first), Some(second)] if !first.is_empty() || !second.is_empty() => {
                let (first, second) = (std::mem::take(first), std::mem::take(second));
                self.compare(&scene, first, second);
            }
            _ => {}
        }
    }

    /// What only one of two sets does. Who does it is not compared: a rule may have got another name.
    fn compare(&mut self, scene: &Scene<'_>, first: Vec<Deed>, second: Vec<Deed>) {
        let mut unmatched: Vec<bool> = vec![true; second.len()];
        for deed in first {
            let twin =
                second.iter().zip(&mut unmatched).find(|(other, free)| **free && is_same(&deed, other));
            let is_only = twin.is_none();
            twin.into_iter().for_each(|(_, free)| *free = false);
            self.count(scene, deed, Side::First, is_only);
        }
        for (deed, is_only) in second.into_iter().zip(unmatched) {
            self.count(scene, deed, Side::Second, is_only);
        }
    }

    fn count(&mut self, scene: &Scene<'_>, deed: Deed, side: Side, is_only: bool) {
        let session = self.sessions.len().checked_sub(1);
        let Deed { hook, what, text } = deed;
        let count = self.counts.entry((what, hook.clone())).or_default();
        let place = side as usize;
        if let Some(times) = count.times.get_mut(place) {
            *times = times.saturating_add(1);
        }
        if !is_only {
            return;
        }
        if let Some(only) = count.only.get_mut(place) {
            *only = only.saturating_add(1);
        }
        if count.last_session != session || count.sessions == 0 {
            count.last_session = session;
            count.sessions = count.sessions.saturating_add(1);
        }
        if let Some(session) = self.sessions.last_mut() {
            session.found = session.found.saturating_add(1);
        }
        if self.findings.len() >= MOST_FINDINGS && count.sample.is_some() {
            self.unlisted = self.unlisted.saturating_add(1);
            return;
        }
        let Some(rules) = self.rules.get(place) else { return };
        let finding = Finding {
            file: self.file.clone(),
            line: scene.at.line,
            session: self.sessions.last().map(|session| session.id.clone()).unwrap_or_default(),
            in_file: session.unwrap_or(0),
            nth: self.sessions.last().map_or(0, |session| session.events),
            time: scene.at.time.map(str::to_owned),
            side,
            what,
            excerpt: scene.excerpt(rules, &hook),
            hook: hook.to_string(),
            event: scene.point.as_str(),
            tool: scene.tool().map(str::to_owned),
            text: cut_around(&text, 0),
        };
        if count.sample.is_none() {
            count.sample = Some(finding.clone());
        }
        if self.findings.len() < MOST_FINDINGS {
            self.findings.push(finding);
        } else {
            self.unlisted = self.unlisted.saturating_add(1);
        }
    }
}

/// Whether two sets do the same there. Words that only name the hook, or tell of a failure, need not be the same.
fn is_same(one: &Deed, other: &Deed) -> bool {
    let by_text = matches!(
        one.what,
        What::Redact | What::Change | What::Append | What::Send | What::Queue | What::Log | What::Interrupt
    );
    one.what == other.what && (!by_text || one.text == other.text)
}

/// The member of an input that tells most, or all of it.
fn main_part(input: &Value) -> String {
    const TELLING: [&str; 6] = ["command", "path", "url", "query", "prompt", "raw"];
    let member = TELLING.iter().find_map(|name| input.get(name).and_then(Value::as_str));
    member.map_or_else(|| input.to_string(), str::to_owned)
}

/// A text around a place, on one line and cut between characters.
fn cut_around(text: &str, place: usize) -> String {
    let mut from = text
        .get(..place)
        .map_or(0, |before| before.char_indices().rev().nth(BEFORE).map_or(0, |(start, _)| start));
    // not worth three dots
    if from < 4 {
        from = 0;
    }
    let rest = text.get(from..).unwrap_or_default();
    let mut cut = String::with_capacity(rest.len().min(LONGEST.saturating_mul(2)));
    if from > 0 {
        cut.push('…');
    }
    let mut blank = false;
    let mut n = 0usize;
    for c in rest.trim_start().chars() {
        if n >= LONGEST {
            cut.push('…');
            break;
        }
        if c.is_whitespace() {
            blank = true;
            continue;
        }
        if std::mem::take(&mut blank) {
            cut.push(' ');
        }
        cut.push(c);
        n = n.saturating_add(1);
    }
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_around_a_place() {
        assert_eq!(cut_around("  a\n\n b\t", 0), "a b");
        let long = format!("{}needle{}", "x".repeat(100), "y".repeat(400));
        let cut = cut_around(&long, 100);
        assert!(cut.starts_with("…x") && cut.contains("needle") && cut.ends_with("y…"), "{cut}");
        let odd = "日".repeat(300);
        assert_eq!(cut_around(&odd, 1).chars().count(), LONGEST + 1);
        assert_eq!(cut_around(&odd, odd.len()).chars().count(), BEFORE + 2);
    }
}
