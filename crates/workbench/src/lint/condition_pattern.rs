//! A `matches()` whose pattern cannot be used: the condition can never be answered then, and the hook always runs.

use super::rule::{Notes, Rule};
use hookgate_core::define::glob_meant;
use hookgate_core::hook::{Hook, Listens};
use regex::Regex;

pub(super) const RULE: Rule =
    Rule { id: "condition-pattern", about: "a pattern in `matches()` that cannot be used", look: Some(look) };

fn look(hooks: &[&Hook], notes: &mut Notes<'_>) {
    for hook in hooks {
        for pattern in patterns(hook).iter().filter(|pattern| glob_meant(pattern).is_none()) {
            let Err(error) = Regex::new(pattern) else { continue };
            let message = format!(
                "`{pattern}` is no pattern that `matches()` can use, so the condition cannot be answered, and then the hook runs"
            );
            notes.add(hook, "if_expr", message, &help(pattern, &error));
        }
    }
}

/// The patterns that a hook's condition gives to `matches()`.
pub(super) fn patterns(hook: &Hook) -> Vec<String> {
    match &hook.listens {
        Listens::Point { filter, .. } => {
            filter.if_expr.as_ref().map(|condition| condition.patterns()).unwrap_or_default()
        }
        _ => Vec::new(),
    }
}

fn help(pattern: &str, error: &regex::Error) -> String {
    if ["(?=", "(?!", "(?<=", "(?<!"].iter().any(|mark| pattern.contains(mark)) {
        return "there is no look-around; join several questions: `x.matches('a') && !x.matches('b')`".into();
    }
    let text = error.to_string();
    let why = text.lines().rev().find_map(|line| line.trim().strip_prefix("error: ")).unwrap_or_default();
    why.to_owned()
}

#[cfg(test)]
mod tests {
    use super::super::rule::tests::check;
    use super::RULE;

    #[test]
    fn unusable_patterns() {
        let condition = |condition: &str, want: &[&str]| {
            let text = format!(
                r#"{{"event":"user_prompt_submit","if_expr":"{condition}","handler":{{"type":"script","source":"x"}}}}"#
            );
            check(RULE.id, &text, want);
        };
        condition("prompt.matches('a(b')", &["unclosed group"]);
        condition("prompt.matches('rm(?! -i)')", &["there is no look-around"]);
        condition("prompt.matches('^rm +-[a-z]*r')", &[]);
        condition("prompt.contains('a(b')", &[]);
        // told as a glob
        condition("prompt.matches('*.rs')", &[]);
    }
}
