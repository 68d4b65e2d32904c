//! A judge that answers what a case says, and what can be said about its questions.

use futures_util::future::BoxFuture;
use futures_util::{FutureExt, stream};
use hookgate_llm::{Delta, DeltaStream, Error, Finish, Model, Request, Role};
use serde_json::Value;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The judge of a case.
pub(super) struct Judge {
    answers: Vec<Value>,
    requests: Mutex<Vec<Request>>,
}

impl Judge {
    pub(super) fn new(answers: &Value) -> Judge {
        Judge { answers: answers.as_array().cloned().unwrap_or_default(), requests: Mutex::default() }
    }

    pub(super) fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn answer(&self, request: Request) -> Option<Value> {
        let asked: String = request.messages.iter().map(|message| message.content.as_str()).collect();
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = self.answers.get(requests.len()).or(self.answers.last()).cloned();
        requests.push(request);
        let mut answer = answer?;
        let wanted = answer.get("if_prompt_contains").and_then(Value::as_str);
        if wanted.is_some_and(|words| !asked.contains(words)) {
            let other = answer.get("else_text").cloned().unwrap_or_default();
            answer.as_object_mut()?.insert("text".into(), other);
        }
        Some(answer)
    }
}

impl Model for Judge {
    fn name(&self) -> &str {
        "judge"
    }

    fn stream(&self, request: Request) -> BoxFuture<'_, Result<DeltaStream, Error>> {
        async move {
            let broken = |message: String| Error::Model { message, retry: false };
            let answer = self.answer(request).ok_or_else(|| broken("the case has no answer".into()))?;
            let number = |key: &str| answer.get(key).and_then(Value::as_u64);
            if let Some(ms) = number("delay_ms") {
                tokio::time::sleep(Duration::from_millis(ms)).await;
            }
            if let Some(status) = number("status").filter(|status| *status != 200) {
                return Err(broken(format!("the provider answered {status}")));
            }
            let text = answer.get("text").and_then(Value::as_str).unwrap_or_default().to_owned();
            let deltas = [Ok(Delta::Content(text)), Ok(Delta::Finish(Finish::from_word("stop")))];
            let stream: DeltaStream = Box::pin(stream::iter(deltas));
            Ok(stream)
        }
        .boxed()
    }
}

/// The parts of a question: the system's, the data between its marks, the closing mark, and everything else.
pub(super) struct Parts {
    pub(super) system: String,
    pub(super) data: String,
    pub(super) closing: String,
    pub(super) outside: String,
}

impl Parts {
    /// Takes a question apart. The first line of the user message is the opening mark.
    pub(super) fn of(request: &Request) -> Result<Parts, String> {
        let text = |role: Role| {
            let texts = request.messages.iter().filter(|message| message.role == role);
            texts.map(|message| message.content.as_str()).collect::<Vec<_>>().join("\n")
        };
        let (system, user) = (text(Role::System), text(Role::User));
        let (opening, rest) = user.split_once('\n').ok_or("the question has no opening mark")?;
        let closing = opening.replacen('<', "</", 1);
        let (data, after) = rest.split_once(&closing).ok_or("the question has no closing mark")?;
        let outside = format!("{system}\n{opening}\n{closing}{after}");
        Ok(Parts { data: data.to_owned(), outside, closing, system })
    }
}
