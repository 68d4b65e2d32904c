//! A model and tools that play what a vector says.

use futures_util::future::BoxFuture;
use futures_util::{FutureExt, stream};
use hookgate_chat::{Tool, ToolError};
use hookgate_llm::{Delta, DeltaStream, Error, Finish, Model, Request, ToolSpec};
use serde_json::{Map, Value};
use std::sync::{Arc, Mutex, PoisonError};

/// Answers each request with the next list of chunks.
#[derive(Clone, Default)]
pub(super) struct Answers {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    answers: Vec<Vec<Value>>,
    repeat: bool,
    next: usize,
    requests: Vec<Request>,
}

impl Answers {
    pub(super) fn set(&self, answers: Vec<Vec<Value>>, repeat: bool) {
        let mut state = self.lock();
        *state = State { answers, repeat, next: 0, requests: Vec::new() };
    }

    /// The requests since the answers were set.
    pub(super) fn requests(&self) -> Vec<Request> {
        self.lock().requests.clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Model for Answers {
    fn name(&self) -> &str {
        "vector"
    }

    fn stream(&self, request: Request) -> BoxFuture<'_, Result<DeltaStream, Error>> {
        let mut state = self.lock();
        state.requests.push(request);
        let next = state.next;
        let answer = if state.repeat { state.answers.first() } else { state.answers.get(next) }.cloned();
        state.next += 1;
        let result: Result<DeltaStream, Error> = match answer {
            Some(chunks) => Ok(Box::pin(stream::iter(chunks.into_iter().map(|chunk| delta(&chunk))))),
            None => Err(broken(format!("the vector has no answer for request {}", next + 1))),
        };
        async move { result }.boxed()
    }
}

fn broken(message: String) -> Error {
    Error::Model { message, retry: false }
}

/// A chunk of a vector as a delta.
fn delta(chunk: &Value) -> Result<Delta, Error> {
    let text = |key: &str| chunk.get(key).and_then(Value::as_str).map(str::to_owned);
    let whole = || text("text").unwrap_or_default();
    match chunk.get("type").and_then(Value::as_str) {
        Some("content") => Ok(Delta::Content(whole())),
        Some("reasoning") => Ok(Delta::Reasoning(whole())),
        Some("tool_call_delta") => Ok(Delta::ToolCall {
            index: chunk
                .get("index")
                .and_then(Value::as_u64)
                .and_then(|i| u32::try_from(i).ok())
                .unwrap_or(0),
            id: text("toolCallId"),
            name: text("name"),
            arguments: whole(),
        }),
        Some("finish") => Ok(Delta::Finish(Finish::from_word(text("finishReason").unwrap_or_default()))),
        other => Err(broken(format!("unknown chunk type {other:?}"))),
    }
}

/// A tool that gives the results of a vector, one after the other.
pub(super) struct Played {
    name: String,
    outcomes: Vec<Value>,
    calls: Mutex<usize>,
    ran: Arc<Mutex<Vec<String>>>,
}

impl Played {
    /// `outcome` is `{"result"}` or `{"error"}`, or a list of these.
    pub(super) fn new(name: &str, outcome: &Value, ran: Arc<Mutex<Vec<String>>>) -> Played {
        let outcomes = match outcome {
            Value::Array(list) => list.clone(),
            one => vec![one.clone()],
        };
        Played { name: name.to_owned(), outcomes, calls: Mutex::new(0), ran }
    }
}

impl Tool for Played {
    fn spec(&self) -> ToolSpec {
        ToolSpec { name: self.name.clone(), ..ToolSpec::default() }
    }

    fn call(&self, _args: Map<String, Value>) -> BoxFuture<'_, Result<Value, ToolError>> {
        self.ran.lock().unwrap_or_else(PoisonError::into_inner).push(self.name.clone());
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        let outcome = self.outcomes.get(*calls).or(self.outcomes.last()).cloned().unwrap_or_default();
        *calls += 1;
        let result = match outcome.get("error").and_then(Value::as_str) {
            Some(error) => Err(ToolError(error.to_owned())),
            None => Ok(outcome.get("result").cloned().unwrap_or_default()),
        };
        async move { result }.boxed()
    }
}
