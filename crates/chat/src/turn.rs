//! The send loop: drain the queue, ask the model, fire the hooks, run tools, ask again.
//!
//! An interrupt takes effect when all hooks of the current event are done. It drops the current response whole;
//! earlier tool rounds stay. A tool that has run stays in the history even then, with its result: the model must
//! not forget what was really done.

use crate::event::ChatEvent;
use crate::message::ChatMessage;
use crate::request;
use crate::response::{Complete, Response};
use crate::service::{Inner, Wishes};
use crate::tools::{self, Tool, ToolError};
use futures_util::StreamExt;
use hookgate_core::event::{Origin, Role, ToolOutcome, ToolRun, WatchEvent};
use hookgate_core::facts::{GateEvent, LifeEvent};
use hookgate_core::verdict::{Block, Verdict};
use hookgate_llm::{Delta, FinishReason, Request, ToolCall, Usage};
use serde_json::{Map, Value};

/// After this many chunks in a row the loop lets other tasks run: a model that never waits must not hold a thread.
const YIELD_EVERY: u32 = 512;

/// How a [`send`](crate::ChatService::send) ended without a fault.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// The model answered.
    Answered(Answer),
    /// A hook ended it; nothing of the response was kept.
    Interrupted {
        /// Which hook.
        hook: String,
    },
    /// Lifecycle hooks stopped the prompt or the response; it is not in the history.
    Blocked {
        /// Which hook.
        hook: String,
        /// Why.
        reason: String,
    },
}

/// A complete answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The text, with what hooks appended.
    pub text: String,
    /// Messages of their own that hooks sent behind it.
    pub sent: Vec<String>,
    /// Why it ended.
    pub finish: FinishReason,
    /// What the last request cost, if the provider said.
    pub usage: Option<Usage>,
}

impl Outcome {
    /// The answer's text; empty after an interrupt or a block.
    pub fn text(&self) -> &str {
        match self {
            Outcome::Answered(answer) => &answer.text,
            Outcome::Interrupted { .. } | Outcome::Blocked { .. } => "",
        }
    }
}

/// Why a send failed. The history is consistent after each of them.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// The model could not be asked, or broke off; the response was dropped.
    #[error("{0}")]
    Model(#[from] hookgate_llm::Error),
    /// Hooks asked for a resend more often than allowed.
    #[error(
        "stopped after {max} resends: hook `{hook}` asked for one more (set maxTriggers on the hook, or raise max_resends)"
    )]
    ResendLimit {
        /// The hook that asked last.
        hook: String,
        /// The limit.
        max: u32,
    },
    /// The model kept calling tools.
    #[error("stopped after {max} rounds of tool calls (raise max_tool_call_rounds to allow more)")]
    ToolRoundLimit {
        /// The limit.
        max: u32,
    },
}

/// Receives what happens, in order.
pub(crate) type Sink<'a> = &'a mut (dyn FnMut(ChatEvent<'_>) + Send);

/// One run of the loop.
pub(crate) struct Turn<'a> {
    inner: &'a Inner,
    sink: Sink<'a>,
    /// The hook that asked for a resend once the response is complete.
    resend: Option<String>,
    resends: u32,
    rounds: u32,
}

/// How one request ended.
enum Step {
    /// The answer, and the number of its response.
    Answered(Answer, u64),
    ToolsRan,
    Interrupted {
        hook: String,
        resend: bool,
    },
    Blocked {
        hook: String,
        reason: String,
    },
}

impl<'a> Turn<'a> {
    pub(crate) fn new(inner: &'a Inner, sink: Sink<'a>) -> Self {
        Turn { inner, sink, resend: None, resends: 0, rounds: 0 }
    }

    pub(crate) async fn run(mut self) -> Result<Outcome, SendError> {
        self.inner.begin_turn();
        // told also when the turn is given up
        let _stop = TellStop(self.inner);
        self.rounds().await
    }

    async fn rounds(&mut self) -> Result<Outcome, SendError> {
        loop {
            let step = match self.take_in().await {
                Some(step) => step,
                None => self.request().await?,
            };
            match step {
                Step::ToolsRan => {}
                Step::Answered(answer, response) => {
                    // also an answer that is asked for once more has been shown, and carries its additions
                    let delivered = self.deliver(answer, response).await;
                    match self.resend.take() {
                        Some(hook) => self.count_resend(hook)?,
                        None => return Ok(delivered),
                    }
                }
                Step::Interrupted { hook, resend } => {
                    match self.resend.take().or(resend.then(|| hook.clone())) {
                        Some(asked_by) => self.count_resend(asked_by)?,
                        None => return Ok(Outcome::Interrupted { hook }),
                    }
                }
                Step::Blocked { hook, reason } => return Ok(Outcome::Blocked { hook, reason }),
            }
        }
    }

    fn count_resend(&mut self, hook: String) -> Result<(), SendError> {
        let max = self.inner.max_resends;
        if self.resends >= max {
            return Err(SendError::ResendLimit { hook, max });
        }
        self.resends = self.resends.saturating_add(1);
        Ok(())
    }

    /// Takes in what came since the last request: the gate is asked about what the user wrote, then the queue
    /// moves into the history, one message at a time, so that an interrupt or a block leaves the rest where it is.
    async fn take_in(&mut self) -> Option<Step> {
        loop {
            let Some(content) = self.inner.conversation().unasked().map(|message| message.content.clone())
            else {
                break;
            };
            match self.admit(content).await {
                Ok(admitted) => {
                    if let Some(message) = self.inner.conversation().unasked() {
                        message.content = admitted;
                        message.unasked = false;
                    }
                }
                Err(step) => {
                    self.inner.conversation().refuse_unasked();
                    return Some(step);
                }
            }
        }
        loop {
            let waiting = self.inner.conversation().queue.front().cloned()?;
            let admitted =
                if waiting.unasked { self.admit(waiting.content).await } else { Ok(waiting.content) };
            // only a turn takes from the queue, and there is one turn at a time: it is still the same message
            let message = self.inner.next_queued();
            let content = match admitted {
                Ok(content) => content,
                Err(step) => return Some(step),
            };
            let message = message.map(|message| ChatMessage { content, unasked: false, ..message })?;
            let wishes = self.inner.enter(message, self.sink);
            if let Some(step) = self.heed(wishes) {
                return Some(step);
            }
        }
    }

    /// Asks the gate about what the user wrote; gives the text that may enter.
    async fn admit(&mut self, text: String) -> Result<String, Step> {
        let ruling = self.inner.ask(GateEvent::UserPromptSubmit { raw_input: text.clone() }, self.sink).await;
        match ruling.verdict {
            Verdict::Allow => {
                let changed = ruling.updated.into_iter().find(|(name, _)| name == "rawInput");
                Ok(changed.and_then(|(_, value)| value.as_str().map(str::to_owned)).unwrap_or(text))
            }
            Verdict::Block(block) => {
                self.inner.tell_observers(self.sink, ChatEvent::Blocked { what: "prompt", block: &block });
                Err(Step::Blocked { hook: block.by.to_string(), reason: block.reason })
            }
        }
    }

    /// Asks what to add to the answer, and delivers the additions behind it.
    async fn deliver(&mut self, mut answer: Answer, response: u64) -> Outcome {
        let additions = self.inner.shape(&answer.text, self.sink).await;
        if let Some(block) = additions.withheld {
            self.inner.conversation().drop_response(response);
            self.inner.tell_observers(self.sink, ChatEvent::Blocked { what: "response", block: &block });
            return Outcome::Blocked { hook: block.by.to_string(), reason: block.reason };
        }
        for text in additions.append {
            self.inner.conversation().append_to(response, &text);
            self.inner.tell_observers(self.sink, ChatEvent::Append { text: &text });
            answer.text.push_str(&text);
        }
        for text in additions.send {
            let message = ChatMessage::new(Role::Assistant, text.clone(), Origin::Hook);
            self.inner.tell_observers(self.sink, ChatEvent::Send { message: &message });
            self.inner.conversation().history.push(message);
            answer.sent.push(text);
        }
        Outcome::Answered(answer)
    }

    /// Takes note of what hooks asked for; an interrupt becomes the step.
    fn heed(&mut self, wishes: Wishes) -> Option<Step> {
        if let Some(hook) = wishes.resend {
            self.resend = Some(hook);
        }
        wishes.interrupt.map(|(hook, resend)| Step::Interrupted { hook, resend })
    }

    /// One request and all that follows from its answer.
    async fn request(&mut self) -> Result<Step, SendError> {
        let (request, response) = self.compose();
        let arrived = match self.receive(request).await {
            Ok(Ok(arrived)) => arrived,
            Ok(Err(interrupted)) => {
                self.inner.conversation().drop_response(response);
                return Ok(interrupted);
            }
            Err(error) => {
                self.inner.conversation().drop_response(response);
                return Err(error);
            }
        };
        let Some(complete) = arrived.complete(response) else {
            self.inner.conversation().drop_response(response);
            return Err(SendError::Model(hookgate_llm::Error::Cut { said: None, source: None }));
        };
        self.accept(complete, response).await
    }

    fn compose(&mut self) -> (Request, u64) {
        let mut conversation = self.inner.conversation();
        let response = conversation.next_response();
        conversation.session.end_response();
        let history = conversation.history.clone();
        drop(conversation);
        self.inner.keep_firings();
        self.inner.tell_observers(self.sink, ChatEvent::Request { messages: &history });
        let mut request = self.inner.request.clone();
        request.messages = request::messages(self.inner.system.as_deref(), &history);
        request.tools = self.inner.tools.specs();
        (request, response)
    }

    /// Reads the answer to its end, showing each chunk to the hooks first. The inner error is an interrupt;
    /// returning drops the stream, which cancels the request.
    async fn receive(&mut self, request: Request) -> Result<Result<Response, Step>, SendError> {
        let mut stream = self.inner.model.stream(request).await?;
        let mut arrived = Response::default();
        let mut since_yield = 0u32;
        while let Some(next) = stream.next().await {
            let delta = match next {
                Ok(delta) => delta,
                // the answer is whole; what the connection does afterwards does not matter
                Err(_) if arrived.is_finished() => break,
                Err(error) => return Err(error.into()),
            };
            if let Some(step) = self.show(&delta) {
                return Ok(Err(step));
            }
            arrived.add(delta);
            since_yield = since_yield.saturating_add(1);
            if since_yield >= YIELD_EVERY {
                since_yield = 0;
                tokio::task::yield_now().await;
            }
        }
        Ok(Ok(arrived))
    }

    /// Fires the hooks on one delta and passes it on. A chunk that was interrupted on is not passed on.
    fn show(&mut self, delta: &Delta) -> Option<Step> {
        match Response::chunk(delta) {
            Some(chunk) => {
                let wishes = self.inner.fire(&WatchEvent::Chunk(chunk), self.sink);
                if let Some(step) = self.heed(wishes) {
                    return Some(step);
                }
                self.inner.tell_observers(self.sink, ChatEvent::Chunk(chunk));
            }
            None => match delta {
                Delta::Usage(usage) => self.inner.tell_observers(self.sink, ChatEvent::Usage(usage)),
                Delta::Other(text) => self.inner.tell_observers(self.sink, ChatEvent::Other(text)),
                _ => {}
            },
        }
        None
    }

    /// Brings a complete answer into the history and runs its calls.
    async fn accept(&mut self, complete: Complete, response: u64) -> Result<Step, SendError> {
        let Complete { messages, calls, finish, usage } = complete;
        let text = messages.last().map(|message| message.content.clone()).unwrap_or_default();
        let asked = messages.last().is_some_and(|message| !message.tool_calls.is_empty());
        // while this stands, a dropped future leaves a result for every call
        let settle = Settle { inner: self.inner, response, why: "the turn was cancelled" };
        for message in messages {
            let wishes = self.inner.enter(message, self.sink);
            if let Some(step) = self.heed(wishes) {
                self.inner.conversation().drop_response(response);
                return Ok(step);
            }
        }
        if calls.is_empty() {
            settle.with(&format!("the answer ended with `{}`", finish.as_str()), asked);
            let answer = Answer { text, sent: Vec::new(), finish: finish.reason, usage };
            return Ok(Step::Answered(answer, response));
        }
        if self.rounds >= self.inner.max_tool_call_rounds {
            let max = self.inner.max_tool_call_rounds;
            settle.with(&format!("the limit of {max} rounds of tool calls is reached"), true);
            return Err(SendError::ToolRoundLimit { max });
        }
        self.rounds = self.rounds.saturating_add(1);
        for call in &calls {
            if let Some(step) = self.run_call(call, response).await {
                settle.with("a hook interrupted the turn", true);
                return Ok(step);
            }
        }
        settle.with("", false);
        Ok(Step::ToolsRan)
    }

    /// Runs one call with its hooks. A step means that a hook interrupted.
    async fn run_call(&mut self, call: &ToolCall, response: u64) -> Option<Step> {
        let args = tools::parse_arguments(&call.arguments);
        let shown = match &args {
            Ok(args) => Value::Object(args.clone()),
            Err(_) => Value::String(call.arguments.clone()),
        };
        let ready = args.and_then(|args| Ok((self.inner.tools.get(&call.name)?, args)));
        let ran = match ready {
            Ok((tool, args)) => match self.run_tool(call, &*tool, args).await {
                Ok(ran) => ran,
                Err(step) => {
                    self.inner.conversation().drop_response(response);
                    return Some(step);
                }
            },
            Err(error) => Ran { input: shown, result: Err(error), blocked: false },
        };
        self.finish_call(call, response, ran)
    }

    /// The before-hooks, the gate, and the tool. Gives the input as it was run, and what came of it.
    async fn run_tool(
        &mut self,
        call: &ToolCall,
        tool: &dyn Tool,
        args: Map<String, Value>,
    ) -> Result<Ran, Step> {
        let mut input = Value::Object(args);
        let before = ToolRun { name: &call.name, args: &input, outcome: ToolOutcome::Before };
        let mut wishes = self.inner.fire(&WatchEvent::Tool(before), self.sink);
        let stopped = wishes.block.take();
        if let Some(step) = self.heed(wishes) {
            return Err(step);
        }
        if let Some(block) = stopped {
            return Ok(self.blocked(call, input, &block));
        }
        let event = GateEvent::PreToolUse { tool_name: call.name.clone(), tool_input: input.clone() };
        let ruling = self.inner.ask(event, self.sink).await;
        if let Verdict::Block(block) = &ruling.verdict {
            return Ok(self.blocked(call, input, block));
        }
        if let Some((_, changed)) = ruling.updated.into_iter().find(|(name, _)| name == "toolInput") {
            input = changed;
        }
        let before = ToolRun { name: &call.name, args: &input, outcome: ToolOutcome::Before };
        self.inner.tell_observers(self.sink, ChatEvent::Tool(before));
        let args = input.as_object().cloned().unwrap_or_default();
        let result = tool.call(args).await;
        let (tool_name, tool_input) = (call.name.clone(), input.clone());
        self.inner.watch(match &result {
            Ok(output) => LifeEvent::PostToolUse { tool_name, tool_input, tool_output: output.clone() },
            Err(ToolError(error)) => LifeEvent::ToolError { tool_name, tool_input, error: error.clone() },
        });
        Ok(Ran { input, result, blocked: false })
    }

    /// The user gets a line, the model the reason as the call's result.
    fn blocked(&mut self, call: &ToolCall, input: Value, block: &Block) -> Ran {
        self.inner.tell_observers(self.sink, ChatEvent::Blocked { what: &call.name, block });
        Ran { input, result: Err(ToolError(block.reason.clone())), blocked: true }
    }

    /// The after-hooks, and the result's way into the history.
    fn finish_call(&mut self, call: &ToolCall, response: u64, ran: Ran) -> Option<Step> {
        let Ran { input, result, blocked } = ran;
        let outcome = match &result {
            Ok(value) => ToolOutcome::Result(value),
            Err(ToolError(text)) => ToolOutcome::Error(text),
        };
        let after = ToolRun { name: &call.name, args: &input, outcome };
        self.inner.tell_observers(self.sink, ChatEvent::Tool(after));
        let wishes =
            if blocked { Wishes::default() } else { self.inner.fire(&WatchEvent::Tool(after), self.sink) };
        let interrupted = self.heed(wishes);
        let message = match result {
            Ok(Value::String(text)) => ChatMessage::tool_result(call, text, false, Origin::Tool),
            Ok(value) => ChatMessage::tool_result(call, value.to_string(), false, Origin::Tool),
            Err(ToolError(text)) => {
                ChatMessage::tool_result(call, format!("error: {text}"), true, Origin::Tool)
            }
        };
        let message = ChatMessage { response, ..message };
        if interrupted.is_some() {
            // the turn is over, but what was done stays known; chat hooks have nothing left to decide
            self.inner.keep(message, self.sink);
            return interrupted;
        }
        let wishes = self.inner.enter(message, self.sink);
        let interrupted = self.heed(wishes);
        if interrupted.is_some() {
            self.inner.conversation().drop_response(response);
        }
        interrupted
    }
}

/// Tells the watching hooks that the turn is over. A sub-agent's end is told by `subagent_stop`.
struct TellStop<'a>(&'a Inner);

impl Drop for TellStop<'_> {
    fn drop(&mut self) {
        self.0.conversation().session.end_response();
        self.0.keep_firings();
        if self.0.lifecycle.who.depth == 0 {
            self.0.watch(LifeEvent::Stop);
        }
    }
}

/// What came of a call.
struct Ran {
    /// The input as it was run.
    input: Value,
    result: Result<Value, ToolError>,
    /// A hook kept the tool from running: it did not fail, so no hook is told of a failure.
    blocked: bool,
}

/// Leaves no call of a response without a result, however the turn ends.
struct Settle<'a> {
    inner: &'a Inner,
    response: u64,
    why: &'a str,
}

impl Settle<'_> {
    /// The regular end: gives open calls this reason, if there can be any.
    fn with(self, why: &str, open: bool) {
        if open {
            self.inner.conversation().settle_calls(self.response, why);
        }
        std::mem::forget(self);
    }
}

impl Drop for Settle<'_> {
    fn drop(&mut self) {
        self.inner.conversation().settle_calls(self.response, self.why);
    }
}
