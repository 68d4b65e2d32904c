//! What a rule is, and the run of all rules.

use super::{RULES, Written};
use hookgate_core::define::{HookRef, Problem};
use hookgate_core::hook::{Hook, Source};
use std::collections::HashMap;

/// The rule of warnings about one agent's means; whoever knows the agent notices them.
pub const AGENT_CANNOT: &str = "agent-cannot";

/// The same of another door's means.
pub const DOOR_CANNOT: &str = "door-cannot";

/// A rule.
#[derive(Debug)]
pub struct Rule {
    /// Its lasting name.
    pub id: &'static str,
    /// What it finds, a phrase.
    pub about: &'static str,
    /// Looks for it; none where the reader of the files notices it.
    pub(super) look: Option<Look>,
}

/// Looks at all hooks, in the order in which they run.
pub(super) type Look = fn(&[&Hook], &mut Notes<'_>);

/// A rule whose warnings are made elsewhere.
pub(super) const fn noticed(id: &'static str, about: &'static str) -> Rule {
    Rule { id, about, look: None }
}

/// What the rules say about hooks. Hooks of the program are not looked at: nobody could mend them.
pub fn warnings(hooks: &[Hook], written: &Written) -> Vec<Problem> {
    let mut in_order: Vec<&Hook> = hooks.iter().filter(|hook| hook.source != Source::Builtin).collect();
    // as the set arranges them
    in_order.sort_by_key(|hook| (std::cmp::Reverse(hook.priority), hook.reach.scope() as u8));
    let mut found = Vec::new();
    for rule in RULES {
        if let Some(look) = rule.look {
            let mut notes = Notes { rule: rule.id, written, found: Vec::new() };
            look(&in_order, &mut notes);
            found.append(&mut notes.found);
        }
    }
    let mut places = HashMap::new();
    let placed = found.into_iter().map(|(problem, at)| {
        let of_file = places.entry(problem.file.clone()).or_insert_with(|| written.places(&problem.file));
        Problem { place: of_file.as_ref().zip(at).map(|(places, at)| places.of(at)), ..problem }
    });
    placed.collect()
}

/// Takes what a rule has to say.
pub(super) struct Notes<'a> {
    rule: &'static str,
    /// How the hooks are written.
    pub(super) written: &'a Written,
    /// Each with its offset in its file.
    found: Vec<(Problem, Option<usize>)>,
}

impl Notes<'_> {
    /// Notes something about a field, a path such as `handler.url`.
    pub(super) fn add(&mut self, hook: &Hook, field: &str, message: String, help: &str) {
        let about = HookRef { index: hook.index, label: Some(hook.name.to_string()) };
        let at = self.written.offset(&hook.file, about.index, field);
        let problem = Problem {
            hook: Some(about),
            field: Some(field.to_owned()),
            help: (!help.is_empty()).then(|| help.to_owned()),
            rule: Some(self.rule),
            ..Problem::of_file(&hook.file, message)
        };
        self.found.push((problem, at));
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use hookgate_core::action::ActionKinds;
    use hookgate_core::define;

    /// What one rule says about a file of this text, and nothing else about it: `field: message (help)`.
    pub(in crate::lint) fn said(rule: &str, text: &str) -> Vec<String> {
        let read = define::read("hooks/a.json", text, Source::Operator, &ActionKinds::standard());
        assert!(read.problems.is_empty(), "{:?}", read.problems);
        let written = Written::of(["hooks/a.json"], |_| Some(text.to_owned()));
        let mut found = read.warnings;
        found.extend(warnings(&read.hooks, &written));
        let of_rule = found.iter().filter(|problem| problem.rule == Some(rule));
        of_rule
            .map(|problem| {
                assert!(problem.place.is_some(), "{problem}");
                let help = problem.help.as_deref().unwrap_or_default();
                format!("{}: {} ({help})", problem.field.as_deref().unwrap_or_default(), problem.message)
            })
            .collect()
    }

    /// The rule says something with each of these words in it, one warning each, and nothing more.
    #[track_caller]
    pub(in crate::lint) fn check(rule: &str, text: &str, want: &[&str]) {
        let got = said(rule, text);
        assert_eq!(got.len(), want.len(), "{text}: {got:#?}");
        for (got, want) in got.iter().zip(want) {
            assert!(got.contains(want), "{got} lacks {want}");
        }
    }

    #[test]
    fn names_of_rules_are_unique_and_plain() {
        let mut ids: Vec<&str> = RULES.iter().map(|rule| rule.id).collect();
        assert!(ids.iter().all(|id| id.chars().all(|c| c.is_ascii_lowercase() || c == '-')), "{ids:?}");
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), RULES.len());
    }
}
