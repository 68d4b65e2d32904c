//! Words and rules of Hookgate, without any IO.
//!
//! The path of one event: a door builds a [`WatchEvent`](event::WatchEvent) and hands it to
//! [`Dispatcher::tell`](dispatch::Dispatcher::tell). The [`HookSet`](set::HookSet) names the hooks that it
//! concerns, the [`Session`](session::Session) counts them, their [`actions`](action) say which
//! [`Effect`](effect::Effect)s they want, and the door carries these out.
//!
//! This crate reads no file, environment, socket, process or wall clock, and knows no agent's or provider's
//! field names.

pub mod future;
pub mod word;

pub mod event;
pub mod facts;
pub mod point;

pub mod action;
pub mod define;
pub mod expr;
pub mod filter;
pub mod handler;
pub mod hook;
pub mod pattern;
pub mod template;

pub mod dispatch;
pub mod effect;
pub mod reading;
pub mod scan;
pub mod session;
pub mod set;

pub mod canonical;
pub mod depth;
pub mod explain;
pub mod firings;
pub mod gate;
mod guard;
pub mod record;
pub mod verdict;
pub mod version;
pub mod wish;
