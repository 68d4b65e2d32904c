//! A piece of an event that is read without being copied.

use std::borrow::Cow;

use serde::Deserialize;

/// A text that is borrowed where it has no escapes. (Of an `Option<Cow<str>>` serde borrows nothing.)
#[derive(Debug, Deserialize)]
pub(super) struct Text<'a>(#[serde(borrow)] pub(super) Cow<'a, str>);

/// Never there: only `null` is read as an option of it.
#[derive(Debug, Deserialize)]
pub(super) enum Nothing {}
