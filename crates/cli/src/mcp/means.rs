//! What `hookgate mcp` can do of what hooks wish, for who compares hooks with it. A test below plays the gate,
//! `tests/cli/mcp.rs` the relay.

use hookgate_core::point::Point;
use hookgate_core::wish::{Can, Spot, Wish};

/// What becomes of a wish at a spot.
pub(crate) fn can(spot: Spot, wish: Wish) -> Can {
    use Point::{PostToolUse, PreToolUse, SessionEnd, SessionStart, ToolError};
    match (spot, wish) {
        (Spot::At(PreToolUse), Wish::Block | Wish::Interrupt) => Can::Yes,
        (Spot::At(PreToolUse), Wish::Retry) => {
            Can::No("the call is refused, but there is no model here that could be asked again")
        }
        (Spot::At(PreToolUse | PostToolUse | ToolError), Wish::Queue) => {
            Can::No("there is no conversation here that a message could join")
        }
        (Spot::At(PreToolUse | PostToolUse | ToolError), Wish::Resend) => {
            Can::No("there is no model here that could be asked again")
        }
        (Spot::At(PostToolUse | ToolError), Wish::Interrupt | Wish::Retry) => {
            Can::No("the result has been passed on before hooks are told of it")
        }
        // none of these can be written there
        (Spot::At(PreToolUse), Wish::Redact | Wish::Append | Wish::Send)
        | (Spot::At(PostToolUse | ToolError), Wish::Redact | Wish::Block | Wish::Append | Wish::Send)
        | (Spot::At(SessionStart | SessionEnd), _) => Can::Yes,
        // messages and answers go another way
        (Spot::Message(_) | Spot::Chunk(_) | Spot::At(_), _) => Can::Never,
    }
}

#[cfg(test)]
mod tests {
    use super::super::gate::{Gate, Ruled};
    use super::super::message::Call;
    use super::*;
    use hookgate_core::action::ActionKinds;
    use hookgate_core::define;
    use hookgate_core::dispatch::Dispatcher;
    use hookgate_core::facts::Head;
    use hookgate_core::gate::Surroundings;
    use hookgate_core::hook::Source;
    use hookgate_core::record::Memory;
    use hookgate_core::session::Session;
    use hookgate_core::set::HookSet;
    use hookgate_handlers::clock::TokioTimer;
    use hookgate_handlers::watchers::{Limits, Watchers};
    use serde_json::json;
    use std::sync::atomic::AtomicU64;
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    /// What becomes of a call when a hook before it does this.
    async fn ruled(action: &str) -> Ruled {
        let text =
            format!(r#"{{"label":"h","target":"tool","event":"before","actions":[{{"type":{action}}}]}}"#);
        let read = define::read("h.json", &text, Source::User, &ActionKinds::standard());
        assert!(read.problems.is_empty(), "{:?}", read.problems);
        let around = Surroundings {
            timer: Arc::new(TokioTimer::new()),
            recorder: Arc::new(Memory::new(10)),
            budget: Duration::from_secs(60),
        };
        let gate = Gate {
            dispatcher: Dispatcher::new(HookSet::new(read.hooks).unwrap()),
            watchers: Watchers::new(around.clone(), Limits::default()),
            around,
            server: "files".to_owned(),
            head: Head::default(),
            session: Mutex::new(Session::new()),
            n_events: AtomicU64::new(0),
        };
        let call = Call {
            text: "{}".to_owned(),
            id: Some("1".to_owned()),
            tool: "read".to_owned(),
            arguments: json!({}),
        };
        gate.ask(&call).await
    }

    #[tokio::test]
    async fn what_is_said_is_what_is_done_to_a_call() {
        let check = async |wish: Wish, action: &str, refused: bool, expected: bool| {
            assert_eq!(matches!(ruled(action).await, Ruled::Refused(_)), refused, "{wish}");
            assert_eq!(can(Spot::At(Point::PreToolUse), wish) == Can::Yes, expected, "{wish}");
        };
        check(Wish::Block, r#""block""#, true, true).await;
        check(Wish::Interrupt, r#""interrupt""#, true, true).await;
        // refused, and that is all
        check(Wish::Retry, r#""interrupt","resend":true"#, true, false).await;
        check(Wish::Queue, r#""queue-message""#, false, false).await;
        check(Wish::Resend, r#""queue-resend""#, false, false).await;
    }
}
