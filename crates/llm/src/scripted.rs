//! A built-in model that plays a script: for first steps without a key, for tests, for demonstrations.
//!
//! A script is one JSON object. Unknown fields are refused, and so is what has no meaning.
//!
//! ```json
//! { "turns": [ { "reasoning": "A tool can tell.", "tool_calls": [ { "tool": "exec", "args": { "command": "date" } } ] },
//!              { "text": "It is {last_tool}." } ] }
//! ```
//!
//! | field | meaning |
//! |---|---|
//! | `turns` | the turns; at least one |
//! | `order` | `rounds` (default): a request gets the turn whose number is the number of rounds of tool calls since its last user message. Nothing is remembered between requests. `sequence`: the first request gets the first turn, the second the second, and so on |
//! | `repeat_last` | whether the last turn answers everything past the end. By default yes for `rounds`, no for `sequence`; then a request past the end is an error |
//!
//! | field of a turn | meaning |
//! |---|---|
//! | `text`, `reasoning` | what it says and what it thinks first. `{prompt}` stands for the last user message, `{last_tool}` for the last tool result |
//! | `tool_calls` | calls after the text: `tool`, and `args` (an object; its texts are filled in like `text`). If the request does not offer the tool, the turn says so in text instead |
//! | `chunks` | the exact pieces instead of the three above, in the order in which they are to be sent, see below |
//! | `words` | words per piece; 1 by default |
//! | `delay_ms` | pause before each piece; 0 by default. Any other value needs a tokio runtime with its clock on |
//! | `finish` | the finish word; by default `tool_calls` after calls, else `stop` |
//! | `error` | fails with this text: at once, or with `after`: *n* after that many pieces |
//! | `when` | plays only if one of these texts (or this one) stands in the last user message, where a word begins; case does not matter |
//! | `when_before` | the same for the user message before the last |
//!
//! Turns with the same conditions form one list, and the first turn whose conditions hold decides which list is
//! played. Turns without conditions are played when no condition holds.
//!
//! | `type` of a chunk | its other fields |
//! |---|---|
//! | `content`, `reasoning` | `text` (filled in like the turn's) |
//! | `tool_call_delta` | `text` (a piece of the arguments), `index`, `toolCallId`, `name`; all may be missing |
//! | `finish` | `finishReason`; must be the last one. Without it the turn's own finish follows |

mod play;
mod script;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_core::future::BoxFuture;

pub use script::{Script, ScriptError};

use crate::{DeltaStream, Error, Model, Request};

/// The model that plays a [`Script`]. Clones share their place in a `sequence`.
#[derive(Clone, Debug)]
pub struct Scripted {
    name: String,
    script: Arc<Script>,
    n_requests: Arc<AtomicUsize>,
}

impl Scripted {
    /// Plays this script under the name `scripted`.
    pub fn new(script: Script) -> Self {
        Scripted { name: "scripted".into(), script: Arc::new(script), n_requests: Arc::default() }
    }

    /// Plays the script in this JSON text.
    ///
    /// # Errors
    /// Those of [`Script::parse`].
    pub fn parse(json: &str) -> Result<Self, ScriptError> {
        Script::parse(json).map(Self::new)
    }

    /// The demonstration that comes with the program. It answers a greeting, and shows more when the prompt has
    /// `secret`, `think`, `run` or `tool`, `don't know` or `unsure` in it.
    pub fn demo() -> Self {
        Self::new(Script::demo())
    }

    /// Another name, for logs.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    fn play(&self, request: &Request) -> Result<DeltaStream, Error> {
        let n = self.n_requests.fetch_add(1, Ordering::Relaxed);
        play::open(&self.script, request, n)
    }
}

impl Model for Scripted {
    fn name(&self) -> &str {
        &self.name
    }

    fn stream(&self, request: Request) -> BoxFuture<'_, Result<DeltaStream, Error>> {
        Box::pin(async move { self.play(&request) })
    }
}
