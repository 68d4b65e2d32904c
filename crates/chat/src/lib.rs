//! The chat service: a conversation with a model that obeys hooks.
//!
//! [`ChatService`] holds the history, a queue that can be written while an answer arrives, and the hooks.
//! [`ChatService::send`] is the loop: drain the queue, ask the model, show the chunks to the hooks, run tools,
//! ask again. What happens on the way is told as [`ChatEvent`]s.
//!
//! ```
//! use hookgate_chat::{ChatService, Role};
//! use hookgate_llm::Scripted;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let service = ChatService::builder(Scripted::demo()).build()?;
//! service.add_message(Role::User, "hello");
//! let answer = service.send().await?;
//! println!("{}", answer.text());
//! # Ok(()) }
//! ```
//!
//! This crate knows no wire format (that is `hookgate-llm`) and no rule (that is `hookgate-core`).

mod builder;
mod event;
mod history;
mod lifecycle;
mod means;
mod message;
mod request;
mod response;
mod service;
mod subagent;
pub mod tools;
mod turn;

pub use builder::{BuildError, ChatBuilder, MAX_TOOL_CALL_ROUNDS_VARIABLE};
pub use event::{ChatEvent, log_lines};
pub use means::can;
pub use message::ChatMessage;
pub use service::{ChatService, Interrupt, Reload, Status, Wanted};
pub use subagent::Subagents;
pub use tools::{Tool, ToolError, Toolbox};
pub use turn::{Answer, Outcome, SendError};

pub use hookgate_core::event::{Origin, Role};

/// Compiles and runs the README's example.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
