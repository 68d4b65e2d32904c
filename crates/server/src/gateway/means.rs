//! What the gateway can do of what hooks wish, for who compares hooks with it. `tests/it/means.rs` plays it.

use hookgate_core::event::{ChunkKind, Role};
use hookgate_core::point::Point;
use hookgate_core::wish::{Can, Spot, Wish};

/// What becomes of a wish at a spot.
pub fn can(spot: Spot, wish: Wish) -> Can {
    match (spot, wish) {
        // thoughts pass as chunks only; sub-agents are the client's matter
        (Spot::Message(Role::Reasoning), _) => Can::Never,
        (Spot::At(Point::SubagentStart | Point::SubagentStop), _) => Can::Never,
        // these are seen in a request, before the provider has answered it
        (
            Spot::Message(Role::User | Role::Tool) | Spot::At(Point::PostToolUse | Point::ToolError),
            Wish::Retry | Wish::Resend,
        ) => Can::No("the request has not gone out yet, and it goes on as if nothing had been wished"),
        (Spot::At(Point::PreToolUse) | Spot::Chunk(ChunkKind::ToolCallDelta), Wish::Resend) => {
            Can::No("the agent asks again itself, with what the tool gave; what is queued joins that")
        }
        (Spot::At(Point::PreResponse), Wish::Send) => {
            Can::No("an answer is one message on all wires but responses, so what is sent stands at its end")
        }
        (
            Spot::Message(_) | Spot::Chunk(_) | Spot::At(_),
            Wish::Queue
            | Wish::Interrupt
            | Wish::Retry
            | Wish::Resend
            | Wish::Redact
            | Wish::Block
            | Wish::Append
            | Wish::Send,
        ) => Can::Yes,
    }
}
