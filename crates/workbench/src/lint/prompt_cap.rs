//! A question to a model without a cap of its own: it may be asked twenty times in a turn.

use super::rule::{Notes, Rule};
use hookgate_core::handler::HandlerKind;
use hookgate_core::hook::{Hook, Work};

pub(super) const RULE: Rule = Rule {
    id: "prompt-cap",
    about: "a prompt hook that does not say how often it may ask",
    look: Some(look),
};

fn look(hooks: &[&Hook], notes: &mut Notes<'_>) {
    for hook in hooks {
        if let Work::Handler { spec, .. } = &hook.work
            && let HandlerKind::Prompt { max_per_turn: None, .. } = &spec.kind
        {
            let message =
                "without `max_per_turn` the hook asks its model up to 20 times a turn, then it fails"
                    .to_owned();
            notes.add(
                hook,
                "handler",
                message,
                "say how many questions a turn is worth: `\"max_per_turn\": 5`",
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::rule::tests::check;
    use super::RULE;

    #[test]
    fn questions_without_a_cap() {
        let prompt = |fields: &str, want: &[&str]| {
            let text = format!(
                r#"{{"event":"pre_tool_use","matcher":"exec","handler":{{"type":"prompt","prompt":"no"{fields}}}}}"#
            );
            check(RULE.id, &text, want);
        };
        prompt("", &["handler: without `max_per_turn`"]);
        prompt(r#","max_per_turn":5"#, &[]);
    }
}
