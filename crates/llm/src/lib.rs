//! Wire formats of language models, server-sent events, a small client and a scripted model. Knows no hooks.
//!
//! The path of one answer, in the order of the modules: a [`Request`] made of [`Message`]s goes to a [`Model`]. The
//! [`Client`] encodes it for its [`Provider`] (`wire`), sends it, cuts the answer into events ([`sse`]) and decodes
//! them into [`Delta`]s; [`Scripted`] plays them from a file instead. [`Answer`] folds deltas into one message.
//!
//! Who stands between a client and a provider reads and writes both through [`proxy`].
//!
//! Parsers are pure and take any input: [`sse::Parser`], the decoders in [`wire`] and [`Script::parse`]. This crate
//! reads no file and no environment.

mod message;
mod request;

mod answer;
mod delta;
mod finish;
mod usage;

mod error;
mod model;

pub mod sse;
pub mod wire;

pub mod proxy;

mod client;
mod provider;
pub mod scripted;

pub use answer::Answer;
pub use client::{Client, ClientBuilder};
pub use delta::Delta;
pub use error::{Error, Fault, Limit, Refusal};
pub use finish::{Finish, FinishReason};
pub use message::{Message, Reasoning, Role, ToolCall};
pub use model::{DeltaStream, Model};
pub use provider::{Provider, UnknownProvider};
pub use request::{Request, ToolChoice, ToolSpec};
pub use scripted::{Script, ScriptError, Scripted};
pub use usage::Usage;
