//! What a caller sees of a conversation as it goes on.

use crate::message::ChatMessage;
use hookgate_core::effect::{HookName, Level};
use hookgate_core::event::{Chunk, ToolRun};
use hookgate_core::verdict::{Block, Ran, Warning};
use hookgate_llm::Usage;
use std::io::Write;
use std::sync::Mutex;

/// One thing that happened, in the order in which it happened.
#[derive(Debug, Clone, Copy)]
pub enum ChatEvent<'a> {
    /// The history goes to the model, before it is mapped to a provider's format.
    Request {
        /// All messages.
        messages: &'a [ChatMessage],
    },
    /// A piece of the answer arrived and no hook interrupted on it.
    Chunk(Chunk<'a>),
    /// The provider counted tokens.
    Usage(&'a Usage),
    /// The provider sent something unknown: its type and raw text.
    Other(&'a str),
    /// A message entered the history.
    Message(&'a ChatMessage),
    /// A tool is about to run, ran, or failed.
    Tool(ToolRun<'a>),
    /// A hook fires; what it wants follows.
    Fired {
        /// Which hook.
        hook: &'a HookName,
    },
    /// A hook writes a line.
    Log {
        /// Which hook.
        hook: &'a HookName,
        /// At which level.
        level: Level,
        /// The line.
        text: &'a str,
    },
    /// A hook queued a message.
    Queued {
        /// Which hook.
        hook: &'a HookName,
        /// The message.
        message: &'a ChatMessage,
    },
    /// A hook interrupts: the response that was arriving is void.
    Interrupt {
        /// Which hook.
        hook: &'a HookName,
        /// Whether the request is sent again.
        resend: bool,
    },
    /// A lifecycle hook was asked and decided.
    Decided {
        /// Which hook, what, and how long it took.
        ran: &'a Ran,
    },
    /// Something about a lifecycle hook was odd but stopped nothing.
    Warning {
        /// What.
        warning: &'a Warning,
    },
    /// Lifecycle hooks stopped something.
    Blocked {
        /// What was stopped: `prompt`, `response`, or the tool's name.
        what: &'a str,
        /// Who stopped it, and why.
        block: &'a Block,
    },
    /// Text that hooks add to the answer; it belongs behind what was streamed.
    Append {
        /// The text.
        text: &'a str,
    },
    /// A message of its own that hooks send behind the answer.
    Send {
        /// The message.
        message: &'a ChatMessage,
    },
    /// A hook asks for one more request after this response.
    Resend {
        /// Which hook.
        hook: &'a HookName,
    },
}

/// An observer that writes the hooks' log lines, as the JSON-hooks text shows them, to `out` (standard error,
/// say). Debug lines are left out. Lines that cannot be written are lost: a log must not stop the agent.
pub fn log_lines(out: impl Write + Send + 'static) -> impl Fn(&ChatEvent<'_>) + Send + Sync + 'static {
    let out = Mutex::new(out);
    move |event| {
        let ChatEvent::Log { level, text, .. } = event else { return };
        if *level == Level::Debug {
            return;
        }
        if let Ok(mut out) = out.lock() {
            let _ = writeln!(out, "{text}");
        }
    }
}
