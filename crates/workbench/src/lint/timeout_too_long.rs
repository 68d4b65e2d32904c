//! A time limit that the chain of hooks does not have.

use super::rule::{Notes, Rule};
use hookgate_core::hook::{Hook, Work};
use hookgate_core::point::Stage;
use std::time::Duration;

pub(super) const RULE: Rule = Rule {
    id: "timeout-too-long",
    about: "a time limit beyond that of all hooks together",
    look: Some(look),
};

/// What all hooks of one event have together in every door that is told nothing else.
const CHAIN: Duration = Duration::from_secs(60);

fn look(hooks: &[&Hook], notes: &mut Notes<'_>) {
    for hook in hooks {
        // nobody waits for what is only watched
        let is_waited_for = hook.listens.point().stage() != Stage::Watch;
        if let Work::Handler { spec, .. } = &hook.work
            && is_waited_for
            && spec.timeout > CHAIN
        {
            let message = format!(
                "the hooks of an event have {} seconds together, so this one never gets its {}",
                CHAIN.as_secs(),
                spec.timeout.as_secs_f64()
            );
            notes.add(
                hook,
                "timeout_ms",
                message,
                "a door may be given more: `chain_budget_ms` in hookgate.toml",
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::rule::tests::check;
    use super::RULE;

    #[test]
    fn limits_beyond_the_chain_s() {
        let hook = |event: &str, ms: u64, want: &[&str]| {
            let text = format!(
                r#"{{"event":"{event}","timeout_ms":{ms},"handler":{{"type":"script","source":"x"}}}}"#
            );
            check(RULE.id, &text, want);
        };
        hook(
            "pre_tool_use",
            90_500,
            &["timeout_ms: the hooks of an event have 60 seconds together, so this one never gets its 90.5"],
        );
        hook("pre_response", 120_000, &["60 seconds"]);
        hook("pre_tool_use", 60_000, &[]);
        hook("post_tool_use", 120_000, &[]);
    }
}
