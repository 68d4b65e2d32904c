//! The tool `task`: the model starts a sub-agent, a conversation of its own. Its events meet the same hooks, one
//! level deeper.

use crate::builder::new_session_id;
use crate::event::ChatEvent;
use crate::history::Conversation;
use crate::lifecycle::{Lifecycle, Who};
use crate::message::ChatMessage;
use crate::service::{Inner, Observer, Status};
use crate::tools::{Tool, ToolError, Toolbox};
use crate::turn::{Outcome, Turn};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use hookgate_core::dispatch::Dispatcher;
use hookgate_core::event::{Origin, Role};
use hookgate_core::facts::{GateEvent, LifeEvent};
use hookgate_core::gate::Surroundings;
use hookgate_core::verdict::Verdict;
use hookgate_handlers::prompt::Turns;
use hookgate_handlers::sources::Sources;
use hookgate_handlers::watchers::Watchers;
use hookgate_llm::{Model, Request, ToolSpec};
use serde_json::{Map, Value, json};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How far sub-agents may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subagents {
    /// Deepest nesting; 1: sub-agents have no sub-agents. Hooks are never asked beyond
    /// [`DEEPEST`](hookgate_core::gate::DEEPEST).
    pub max_depth: u32,
    /// Rounds of tool calls that one may make.
    pub max_tool_call_rounds: u32,
    /// How long one may take.
    pub time: Duration,
}

impl Default for Subagents {
    fn default() -> Self {
        Subagents { max_depth: 1, max_tool_call_rounds: 10, time: Duration::from_secs(300) }
    }
}

/// The tool.
pub(crate) struct Task {
    limits: Subagents,
    model: Arc<dyn Model>,
    request: Request,
    tools: Toolbox,
    dispatcher: Arc<Dispatcher>,
    around: Surroundings,
    watchers: Arc<Watchers>,
    turns: Turns,
    parent: Who,
    system: Option<String>,
    max_resends: u32,
    observer: Option<Observer>,
}

/// Only what hooks do is told of a sub-agent: its chunks and messages are not the answer.
fn of_hooks_only(observer: Observer) -> Observer {
    Arc::new(move |event| match event {
        ChatEvent::Fired { .. }
        | ChatEvent::Log { .. }
        | ChatEvent::Queued { .. }
        | ChatEvent::Decided { .. }
        | ChatEvent::Warning { .. }
        | ChatEvent::Blocked { .. } => observer(event),
        ChatEvent::Request { .. }
        | ChatEvent::Chunk(_)
        | ChatEvent::Usage(_)
        | ChatEvent::Other(_)
        | ChatEvent::Message(_)
        | ChatEvent::Tool(_)
        | ChatEvent::Interrupt { .. }
        | ChatEvent::Append { .. }
        | ChatEvent::Send { .. }
        | ChatEvent::Resend { .. } => {}
    })
}

impl Task {
    /// The tool for the agent that is being built.
    pub(crate) fn new(agent: &Inner, limits: Subagents) -> Task {
        Task {
            limits,
            model: agent.model.clone(),
            system: agent.system.clone(),
            request: agent.request.clone(),
            tools: agent.tools.clone(),
            dispatcher: agent.dispatcher.clone(),
            around: agent.lifecycle.around.clone(),
            watchers: agent.lifecycle.watchers.clone(),
            turns: agent.lifecycle.turns.clone(),
            parent: agent.lifecycle.who.clone(),
            max_resends: agent.max_resends,
            observer: agent.observer.clone(),
        }
    }

    fn sub_agent(&self, task: &str) -> Inner {
        let who = Who {
            session_id: new_session_id(),
            root_session_id: self
                .parent
                .root_session_id
                .clone()
                .or_else(|| Some(self.parent.session_id.clone())),
            depth: self.parent.depth.saturating_add(1),
            ..self.parent.clone()
        };
        let mut conversation = Conversation::default();
        conversation.session.keep_firings();
        let mut first = ChatMessage::new(Role::User, task, Origin::Model);
        first.unasked = false;
        conversation.queue.push_back(first);
        let mut inner = Inner {
            model: self.model.clone(),
            tools: self.tools.clone(),
            request: self.request.clone(),
            system: self.system.clone(),
            max_tool_call_rounds: self.limits.max_tool_call_rounds,
            max_resends: self.max_resends,
            dispatcher: self.dispatcher.clone(),
            lifecycle: Lifecycle {
                who,
                around: self.around.clone(),
                watchers: self.watchers.clone(),
                turns: self.turns.clone(),
                n_events: AtomicU64::new(0),
                started: AtomicBool::new(false),
            },
            sources: Sources::default(),
            status: Mutex::new(Status::default()),
            observer: self.observer.clone().map(of_hooks_only),
            conversation: Mutex::new(conversation),
            turn: tokio::sync::Mutex::new(()),
        };
        if inner.lifecycle.who.depth < self.limits.max_depth {
            let nested = Task::new(&inner, self.limits);
            inner.tools.add(Arc::new(nested));
        }
        inner
    }

    async fn run(&self, name: &str, task: &str) -> Result<Value, ToolError> {
        let agent = self.sub_agent(task);
        let about = json!({"name": name, "task": task});
        let ruling = agent.ask(GateEvent::SubagentStart { subagent: about.clone() }, &mut |_| {}).await;
        if let Verdict::Block(block) = ruling.verdict {
            agent.tell_observers(&mut |_| {}, ChatEvent::Blocked { what: "task", block: &block });
            return Err(ToolError(block.reason));
        }
        let mut unseen = |_: ChatEvent<'_>| {};
        let mut stop = TellStop { agent: &agent, about, result: Err("the sub-agent was cancelled".into()) };
        let turn = Turn::new(&agent, &mut unseen).run();
        stop.result = match tokio::time::timeout(self.limits.time, turn).await {
            // a message of its own has no other way to the agent that asked
            Ok(Ok(Outcome::Answered(answer))) => {
                let mut text = answer.text;
                answer.sent.iter().for_each(|sent| text.extend(["\n\n", sent.as_str()]));
                Ok(text)
            }
            Ok(Ok(Outcome::Interrupted { hook })) => Err(format!("hook {hook} interrupted the sub-agent")),
            Ok(Ok(Outcome::Blocked { reason, .. })) => Err(reason),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err(format!("the sub-agent took longer than {} s", self.limits.time.as_secs())),
        };
        stop.result.clone().map(Value::String).map_err(ToolError)
    }
}

/// Tells the watching hooks how a sub-agent ended, also when it was given up.
struct TellStop<'a> {
    agent: &'a Inner,
    about: Value,
    result: Result<String, String>,
}

impl Drop for TellStop<'_> {
    fn drop(&mut self) {
        let mut told = std::mem::take(&mut self.about);
        if let Some(members) = told.as_object_mut() {
            let (name, value) = match &self.result {
                Ok(text) => ("result", text),
                Err(error) => ("error", error),
            };
            members.insert(name.into(), value.as_str().into());
        }
        self.agent.watch(LifeEvent::SubagentStop { subagent: told });
    }
}

impl Tool for Task {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "task".into(),
            description:
                "Gives a task to a sub-agent, which works on it with a conversation of its own and answers \
                          with its result."
                    .into(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "prompt": {"type": "string", "description": "The whole task; the sub-agent sees nothing else."},
                    "description": {"type": "string", "description": "A few words on what it is for."}
                },
                "required": ["prompt"]
            }),
        }
    }

    fn call(&self, args: Map<String, Value>) -> BoxFuture<'_, Result<Value, ToolError>> {
        async move {
            let text =
                |name: &str| args.get(name).and_then(Value::as_str).unwrap_or_default().trim().to_owned();
            let (prompt, name) = (text("prompt"), text("description"));
            if prompt.is_empty() {
                return Err(ToolError("`prompt` is missing: it is the whole task".into()));
            }
            self.run(if name.is_empty() { "task" } else { &name }, &prompt).await
        }
        .boxed()
    }
}
