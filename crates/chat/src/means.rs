//! What the chat service can do of what hooks wish, for who compares hooks with it. `tests/means.rs` plays it.

use hookgate_core::wish::{Can, Spot, Wish};

/// What becomes of a wish at a spot.
pub fn can(spot: Spot, wish: Wish) -> Can {
    match wish {
        Wish::Redact if matches!(spot, Spot::Chunk(_)) => {
            Can::No("chunks are shown as they come, so the whole answer is withdrawn instead")
        }
        // every point is told of, and the send loop is ours
        Wish::Queue
        | Wish::Interrupt
        | Wish::Retry
        | Wish::Resend
        | Wish::Redact
        | Wish::Block
        | Wish::Append
        | Wish::Send => Can::Yes,
    }
}
