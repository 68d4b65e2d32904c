//! An action that no door carries out, whatever its hook sees: what stands beside it in the same hook leaves it nothing.
//! What one door cannot do and another can is the matter of `door-cannot`.

use super::rule::{Notes, Rule};
use hookgate_core::define::{Node, NodeValue};
use hookgate_core::hook::Hook;
use hookgate_core::wish::Wish;

pub(super) const RULE: Rule =
    Rule { id: "no-effect", about: "an action that no door carries out", look: Some(look) };

fn look(hooks: &[&Hook], notes: &mut Notes<'_>) {
    for hook in hooks {
        let mut before = Vec::new();
        let wishes = Wish::of(hook);
        let drops = wishes.iter().any(|(_, wish)| matches!(wish, Wish::Interrupt | Wish::Retry));
        for (index, wish) in wishes {
            let Some(index) = index else { continue };
            let field = format!("actions[{index}].type");
            if wish == Wish::Redact && drops {
                let message =
                    "the hook drops the response as well, so nothing stands in the place of the match";
                notes.add(hook, &field, message.to_owned(), "take one of them out");
            } else if wish != Wish::Queue && before.contains(&wish) {
                notes.add(
                    hook,
                    &field,
                    format!("{wish} again: only the first of a hook counts"),
                    "take one of them out",
                );
            }
            before.push(wish);
        }
        for index in worded_interrupts(hook, notes) {
            let message = "an interrupt says nothing, so nobody reads its `message`".to_owned();
            let help = "print it with `warn`, or tell the model with `queue-message`, before the interrupt";
            notes.add(hook, &format!("actions[{index}].message"), message, help);
        }
    }
}

/// The interrupts that are given a text.
fn worded_interrupts(hook: &Hook, notes: &Notes<'_>) -> Vec<usize> {
    let Some(Node { value: NodeValue::List(actions), .. }) = notes.written.field(hook, "actions") else {
        return Vec::new();
    };
    let text = |action: &Node, name: &str| match &action.value {
        NodeValue::Object(entries) => {
            entries.iter().find(|entry| entry.key == name).and_then(|entry| match &entry.node.value {
                NodeValue::Text(text) => Some(text.clone()),
                _ => None,
            })
        }
        _ => None,
    };
    let worded = actions.iter().enumerate().filter(|(_, action)| {
        text(action, "type").as_deref() == Some("interrupt") && text(action, "message").is_some()
    });
    worded.map(|(index, _)| index).collect()
}

#[cfg(test)]
mod tests {
    use super::super::rule::tests::check;
    use super::RULE;

    fn actions(listens: &str, actions: &str, want: &[&str]) {
        check(RULE.id, &format!(r#"{{{listens},"actions":[{actions}]}}"#), want);
    }

    #[test]
    fn what_is_said_twice() {
        let (stop, again) = (r#"{"type":"interrupt"}"#, r#"{"type":"interrupt","resend":true}"#);
        let (queue, resend) = (r#"{"type":"queue-message","message":"x"}"#, r#"{"type":"queue-resend"}"#);
        let chat = |list: &[&str], want: &[&str]| actions(r#""target":"chat""#, &list.join(","), want);
        chat(&[stop, stop], &["actions[1].type: `interrupt` again: only the first"]);
        chat(&[again, queue, again], &["actions[2].type: `interrupt` with `resend` again"]);
        chat(&[resend, resend], &["actions[1].type: `queue-resend` again"]);
        for fine in [&[stop, again] as &[&str], &[queue, queue], &[resend, stop], &[r#"{"type":"log"}"#; 2]] {
            chat(fine, &[]);
        }
        let block = r#"{"type":"block","message":"a"},{"type":"block","message":"b"}"#;
        actions(r#""target":"tool","event":"before""#, block, &["actions[1].type: `block` again"]);
    }

    #[test]
    fn a_redaction_of_what_is_dropped() {
        let stream = |list: &str, want: &[&str]| actions(r#""target":"stream","regex":"x""#, list, want);
        let told = &["the hook drops the response as well"];
        stream(r#"{"type":"redact"},{"type":"interrupt"}"#, told);
        stream(r#"{"type":"interrupt","resend":true},{"type":"redact"}"#, told);
        stream(r#"{"type":"redact"},{"type":"redact","with":"y"}"#, &["actions[1].type: `redact` again"]);
        stream(r#"{"type":"redact"},{"type":"queue-resend"}"#, &[]);
    }

    #[test]
    fn words_of_an_interrupt() {
        let chat = |list: &str, want: &[&str]| actions(r#""target":"chat""#, list, want);
        chat(r#"{"type":"interrupt","message":"why"}"#, &["actions[0].message: an interrupt says nothing"]);
        chat(r#"{"type":"warn","message":"why"},{"type":"interrupt"}"#, &[]);
    }
}
