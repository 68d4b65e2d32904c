//! Hooks that are loaded and can never fire.

use super::rule::{Notes, Rule};
use hookgate_core::event::ChunkKind;
use hookgate_core::hook::{Hook, Listens};
use hookgate_core::word::Word;

pub(super) const RULE: Rule =
    Rule { id: "never-fires", about: "a hook that can never fire", look: Some(look) };

fn look(hooks: &[&Hook], notes: &mut Notes<'_>) {
    for hook in hooks {
        if hook.max_triggers == Some(0) {
            let message = "with `maxTriggers` 0 the hook never fires".to_owned();
            notes.add(
                hook,
                "maxTriggers",
                message,
                "leave it out for no limit; `\"enabled\": false` switches a hook off",
            );
        }
        match &hook.listens {
            Listens::Chunk { kinds, regex: Some(_) } if only_finish(|kind| kinds.contains(kind)) => {
                let message = "a finish has no text, so the pattern is never found in it".to_owned();
                notes.add(hook, "chunks", message, "leave `regex` out, or listen to `content`");
            }
            Listens::Point { filter, .. } => {
                if let Some(condition) = &filter.if_expr
                    && condition.source().trim() == "false"
                {
                    let message = "the condition is never met".to_owned();
                    notes.add(hook, "if_expr", message, "`\"enabled\": false` switches a hook off");
                }
            }
            _ => {}
        }
    }
}

fn only_finish(contains: impl Fn(ChunkKind) -> bool) -> bool {
    ChunkKind::ALL.iter().all(|(_, kind)| contains(*kind) == (*kind == ChunkKind::Finish))
}

#[cfg(test)]
mod tests {
    use super::super::rule::tests::check;
    use super::RULE;

    #[test]
    fn hooks_that_never_fire() {
        check(RULE.id, r#"{"target":"chat","maxTriggers":0}"#, &["maxTriggers: with `maxTriggers` 0"]);
        check(RULE.id, r#"{"target":"chat","maxTriggers":1}"#, &[]);
        check(RULE.id, r#"{"target":"stream","chunks":["finish"],"regex":"stop"}"#, &["chunks: a finish"]);
        check(RULE.id, r#"{"target":"stream","chunks":["finish","content"],"regex":"stop"}"#, &[]);
        check(RULE.id, r#"{"target":"stream","chunks":["finish"]}"#, &[]);
        let gate = |condition: &str, want: &[&str]| {
            let text = format!(
                r#"{{"event":"stop","if_expr":"{condition}","handler":{{"type":"script","source":"x"}}}}"#
            );
            check(RULE.id, &text, want);
        };
        gate(" false", &["if_expr: the condition is never met"]);
        gate("depth == 0", &[]);
    }
}
