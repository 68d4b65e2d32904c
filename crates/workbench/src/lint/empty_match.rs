//! A pattern that can match the empty text is found in every text. Those of `regex` are noticed when they are read; here
//! are those of conditions.

use super::condition_pattern::patterns;
use super::rule::{Notes, Rule};
use hookgate_core::hook::Hook;
use regex::Regex;

pub(super) const RULE: Rule =
    Rule { id: "empty-match", about: "a pattern that is found in every text", look: Some(look) };

fn look(hooks: &[&Hook], notes: &mut Notes<'_>) {
    for hook in hooks {
        for pattern in patterns(hook) {
            // with anchors at both ends it asks for more than a place where nothing is
            if Regex::new(&pattern).is_ok_and(|regex| regex.is_match("") && regex.is_match("\u{1}")) {
                let message =
                    format!("`{pattern}` can match the empty text, so `matches()` finds it in every text");
                let help = "let it need at least one character, such as `+` in the place of `*`";
                notes.add(hook, "if_expr", message, help);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::rule::tests::check;
    use super::RULE;

    #[test]
    fn patterns_that_match_nothing_at_all() {
        let regex = |regex: &str, want: &[&str]| {
            check(RULE.id, &format!(r#"{{"target":"chat","regex":"{regex}"}}"#), want);
        };
        regex("(secret)*", &["regex: the pattern can match the empty text"]);
        regex("a|b|", &["the empty text"]);
        regex("secret", &[]);
        let gate = |fields: &str, want: &[&str]| {
            let text =
                format!(r#"{{"event":"pre_tool_use",{fields},"handler":{{"type":"script","source":"x"}}}}"#);
            check(RULE.id, &text, want);
        };
        gate(r#""if_expr":"toolName.matches('x*')""#, &["if_expr: `x*` can match the empty text"]);
        gate(r#""if_expr":"toolName.matches('^$')""#, &[]);
        // no tool has an empty name
        gate(r#""matcher":".*""#, &[]);
    }
}
