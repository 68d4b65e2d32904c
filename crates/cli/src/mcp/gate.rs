//! The hooks of a relay: asked before a call, told of what came back.

use super::message::Call;
use hookgate_core::dispatch::Dispatcher;
use hookgate_core::effect::{Effect, EffectKind};
use hookgate_core::event::{ToolOutcome, ToolRun, WatchEvent};
use hookgate_core::facts::{GateEvent, Head, LifeEvent};
use hookgate_core::gate::Surroundings;
use hookgate_core::session::Session;
use hookgate_core::verdict::{Block, Verdict};
use hookgate_handlers::watchers::Watchers;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Our name for tools of such servers.
const TOOL: &str = "mcp";

/// The hooks and what they need. One session for one client.
pub(crate) struct Gate {
    pub(crate) dispatcher: Dispatcher,
    pub(crate) around: Surroundings,
    pub(crate) watchers: Watchers,
    /// The server's name in rules.
    pub(crate) server: String,
    pub(crate) head: Head,
    pub(crate) session: Mutex<Session>,
    pub(crate) n_events: AtomicU64,
}

/// What becomes of a call.
pub(super) enum Ruled {
    /// Passed on as it came.
    AsItCame,
    /// Passed on with these arguments.
    Changed(Value),
    /// Not passed on.
    Refused(String),
}

impl Gate {
    /// Asks about a call.
    pub(super) async fn ask(&self, call: &Call) -> Ruled {
        let input = self.input(call);
        let before = ToolRun { name: TOOL, args: &input, outcome: ToolOutcome::Before };
        if let Some(reason) = self.tell(&call.tool, &WatchEvent::Tool(before)) {
            return Ruled::Refused(reason);
        }
        let event = GateEvent::PreToolUse { tool_name: TOOL.into(), tool_input: input.clone() };
        let ruling = self.dispatcher.ask(&self.around, &self.head(&call.tool), event).await;
        if let Verdict::Block(Block { reason, .. }) = ruling.verdict {
            return Ruled::Refused(reason);
        }
        match ruling.updated.into_iter().find(|(member, _)| member == "toolInput") {
            Some((_, mut changed)) => {
                // a server that has a member of this name got it from the client
                if call.arguments.get("mcp").is_none()
                    && let Some(members) = changed.as_object_mut()
                {
                    members.shift_remove("mcp");
                }
                Ruled::Changed(changed)
            }
            None => Ruled::AsItCame,
        }
    }

    /// Tells of what came back. Nobody waits.
    pub(super) fn told(&self, call: &Call, result: Result<Value, String>) {
        let tool_input = self.input(call);
        let outcome = match &result {
            Ok(output) => ToolOutcome::Result(output),
            Err(error) => ToolOutcome::Error(error),
        };
        self.tell(&call.tool, &WatchEvent::Tool(ToolRun { name: TOOL, args: &tool_input, outcome }));
        let tool_name = TOOL.to_owned();
        let event = match result {
            Ok(tool_output) => LifeEvent::PostToolUse { tool_name, tool_input, tool_output },
            Err(error) => LifeEvent::ToolError { tool_name, tool_input, error },
        };
        self.watchers.submit(self.dispatcher.watch(&self.head(&call.tool), event));
    }

    /// The session begins, or is over.
    pub(super) fn session(&self, event: LifeEvent) {
        self.watchers.submit(self.dispatcher.watch(&self.head(""), event));
    }

    /// The arguments with server and tool beside them.
    fn input(&self, call: &Call) -> Value {
        let mut input = match &call.arguments {
            Value::Object(_) => call.arguments.clone(),
            other => json!({"raw": other}),
        };
        if let Some(members) = input.as_object_mut()
            && !members.contains_key("mcp")
        {
            members.insert("mcp".into(), json!({"server": self.server, "tool": call.tool}));
        }
        input
    }

    fn head(&self, tool: &str) -> Head {
        let number = self.n_events.fetch_add(1, Ordering::Relaxed);
        let names = || vec![tool.to_owned(), format!("mcp__{}__{tool}", self.server)];
        Head {
            event_id: format!("{}-{number}", self.head.session_id),
            tool_names: if tool.is_empty() { Vec::new() } else { names() },
            ..self.head.clone()
        }
    }

    /// Tells JSON hooks; gives the reason to stop, if there is one. Their log lines go to standard error.
    fn tell(&self, tool: &str, event: &WatchEvent<'_>) -> Option<String> {
        let mut effects = Vec::new();
        let mut session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        session.set_tool_names(vec![tool.to_owned(), format!("mcp__{}__{tool}", self.server)]);
        session.keep_firings();
        self.dispatcher.tell(&mut session, event, &mut effects);
        let fired = session.take_firings();
        drop(session);
        if !fired.is_empty() {
            let head = self.head(tool);
            fired.into_iter().for_each(|fired| self.around.recorder.fired(fired, &head));
        }
        let mut reason = None;
        for Effect { hook, kind } in effects {
            match kind {
                EffectKind::Log { level, text } => super::relay::tell(&format!("{level}: {text}")),
                EffectKind::Block { reason: words } => {
                    reason.get_or_insert_with(|| Block::by_hook(hook, &words).reason);
                }
                EffectKind::Interrupt { .. } | EffectKind::Redact { .. } => {
                    reason.get_or_insert_with(|| format!("hook {hook} interrupted"));
                }
                // there is no conversation here to put a message into
                EffectKind::Fired | EffectKind::Queue { .. } | EffectKind::Resend => {}
            }
        }
        reason
    }
}

impl std::fmt::Debug for Gate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gate").field("server", &self.server).finish_non_exhaustive()
    }
}
