//! One request's way to its tenant's hooks: who it is about, and the calls that ask and tell.

use super::sessions::{Conversation, State};
use super::tenants::Tenant;
use super::{Happened, Shared, Story};
use hookgate_core::dispatch::Dispatcher;
use hookgate_core::effect::{Effect, EffectKind};
use hookgate_core::event::{Message, Origin, Role, ToolOutcome, ToolRun, WatchEvent};
use hookgate_core::facts::{GateEvent, Head, LifeEvent, ShapeEvent};
use hookgate_core::point::Point;
use hookgate_core::session::Answer;
use hookgate_core::verdict::{Additions, Block, Ruling, Trace};
use serde_json::Value;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// What one request needs of hooks.
pub(super) struct Door {
    pub(super) shared: Arc<Shared>,
    pub(super) tenant: Arc<Tenant>,
    /// The tenant's hooks as they were when the request came, and from the answer's head on as they were then: a reload
    /// in between must not make two sets judge one answer.
    pub(super) hooks: Dispatcher,
    pub(super) agent: Option<String>,
    /// The client wants several answers at once: there is no one conversation that could go on.
    pub(super) several: bool,
    pub(super) conversation: Arc<Conversation>,
    /// The request's own id; events are numbered behind it.
    pub(super) request_id: String,
    pub(super) trace_id: Option<String>,
    pub(super) n_events: AtomicU64,
    /// What observers are not told yet.
    pub(super) untold: Mutex<Vec<Effect>>,
    pub(super) story: Option<Arc<Story>>,
    /// Why the answer did not come to its own end, for the request's line.
    pub(super) trouble: Arc<OnceLock<String>>,
}

/// What hooks asked for while they were told something.
#[derive(Debug, Default)]
pub(super) struct Wishes {
    /// Drop the response: which hook, and whether to ask again.
    pub(super) interrupt: Option<(String, bool)>,
    /// A hook interrupted without asking again, whatever others asked for.
    pub(super) stops: Option<String>,
    /// Ask again once the response is complete.
    pub(super) resend: Option<String>,
    /// Do not run the tool.
    pub(super) block: Option<Block>,
    /// Something of the text is to be replaced.
    pub(super) redacts: bool,
    /// Some hook fired, whatever it wants.
    pub(super) fired: bool,
}

impl Wishes {
    /// Joins later wishes to these; what came first counts.
    pub(super) fn join(&mut self, later: Wishes) {
        match (&mut self.interrupt, later.interrupt) {
            (Some((_, resend)), Some((_, again))) => *resend |= again,
            (mine, theirs) => *mine = mine.take().or(theirs),
        }
        self.stops = self.stops.take().or(later.stops);
        self.resend = self.resend.take().or(later.resend);
        self.block = self.block.take().or(later.block);
        self.redacts |= later.redacts;
    }
}

impl Drop for Door {
    /// The request is done, or given up: what fired is over.
    fn drop(&mut self) {
        self.conversation.state().hooks.end_response();
        self.keep_firings();
        self.tell_observers();
    }
}

impl Door {
    /// The answer begins: from now on the hooks that are loaded now count, to its end.
    pub(super) fn begin_answer(&mut self) {
        self.hooks = self.tenant.dispatcher.pinned();
    }

    /// Notes why the answer does not come to its own end.
    pub(super) fn trouble(&self, why: &str) {
        // the first reason is the reason
        let _ = self.trouble.set(why.to_owned());
    }

    fn head(&self) -> Head {
        let number = self.n_events.fetch_add(1, Ordering::Relaxed);
        Head {
            event_id: format!("{}-{number}", self.request_id),
            session_id: self.conversation.id.clone(),
            root_session_id: None,
            tenant_id: self.tenant.id.clone(),
            agent_id: self.agent.clone(),
            depth: 0,
            trace_id: self.trace_id.clone(),
            // the wire has one name for a tool, the agent's own
            tool_names: Vec::new(),
        }
    }

    /// Whether a lifecycle hook listens at this point.
    pub(super) fn listens_at(&self, point: Point) -> bool {
        self.hooks.listens_at(point)
    }

    /// Tells the observer, and the request's story, what happened.
    pub(super) fn happened(&self, what: &Happened<'_>) {
        if let Some(story) = &self.story {
            story.happened(what);
        }
        self.shared.happened(what);
    }

    fn tell_trace(&self, trace: &Trace) {
        if let Some(story) = &self.story {
            story.asked(trace);
        }
        self.shared.tell_trace(&self.tenant, trace);
    }

    /// Asks the gate's hooks.
    pub(super) async fn ask(&self, event: GateEvent) -> Ruling {
        if !self.listens_at(event.point()) {
            return Ruling::allow();
        }
        let ruling = self.hooks.ask(&self.shared.around, &self.head(), event).await;
        self.tell_trace(&ruling.trace);
        ruling
    }

    /// Asks what to add to an answer.
    pub(super) async fn shape(&self, response: &str) -> Additions {
        if !self.listens_at(Point::PreResponse) {
            return Additions::default();
        }
        let event = ShapeEvent::PreResponse { response: response.to_owned() };
        let additions = self.hooks.shape(&self.shared.around, &self.head(), event).await;
        self.tell_trace(&additions.trace);
        additions
    }

    /// Hands what is only watched to the background.
    pub(super) fn watch(&self, event: LifeEvent) {
        if self.listens_at(event.point()) {
            let head = self.head();
            self.hooks.trace_watched(&*self.shared.around.recorder, &head, &event);
            self.tenant.watchers.submit(self.hooks.watch(&head, event));
        }
    }

    /// Tells JSON hooks something, of the answer that `answer` stands for where it is about one.
    pub(super) fn tell(
        &self,
        state: &mut State,
        answer: Option<&mut Answer>,
        event: &WatchEvent<'_>,
    ) -> Wishes {
        let mut effects = std::mem::take(&mut state.effects);
        match answer {
            Some(answer) => {
                state.hooks.swap(answer);
                self.hooks.tell(&mut state.hooks, event, &mut effects);
                state.hooks.swap(answer);
            }
            None => self.hooks.tell(&mut state.hooks, event, &mut effects),
        }
        let wishes =
            if effects.is_empty() { Wishes::default() } else { self.carry_out(state, effects.drain(..)) };
        state.effects = effects;
        wishes
    }

    /// Hands what JSON hooks did to the recorder, which does not make anybody wait.
    fn keep_firings(&self) {
        let fired = self.conversation.state().hooks.take_firings();
        if fired.is_empty() {
            return;
        }
        let head = self.head();
        for fired in fired {
            self.shared.around.recorder.fired(fired, &head);
        }
    }

    /// Carries out what can be carried out at once; the rest is the caller's. What observers are to be told waits until
    /// nobody holds the conversation ([`Door::tell_observers`]).
    fn carry_out(&self, state: &mut State, effects: impl Iterator<Item = Effect>) -> Wishes {
        let mut wishes = Wishes { fired: true, ..Wishes::default() };
        let mut untold = self.untold.lock().unwrap_or_else(PoisonError::into_inner);
        for effect in effects {
            let hook = &effect.hook;
            match effect.kind {
                EffectKind::Fired | EffectKind::Log { .. } => untold.push(effect),
                EffectKind::Queue { role, content } => state.queue(role, content),
                EffectKind::Redact { .. } => wishes.redacts = true,
                EffectKind::Interrupt { resend } => {
                    let (_, wanted) = wishes.interrupt.get_or_insert_with(|| (hook.to_string(), resend));
                    *wanted |= resend;
                    if !resend {
                        wishes.stops.get_or_insert_with(|| hook.to_string());
                    }
                }
                EffectKind::Resend => wishes.resend = Some(hook.to_string()),
                EffectKind::Block { reason } => {
                    wishes.block.get_or_insert_with(|| Block::by_hook(effect.hook, &reason));
                }
            }
        }
        wishes
    }

    /// Tells observers what hooks did. Not to be called while the conversation is held.
    pub(super) fn tell_observers(&self) {
        let untold = std::mem::take(&mut *self.untold.lock().unwrap_or_else(PoisonError::into_inner));
        let tenant = self.tenant.id.as_deref();
        let session = &self.conversation.id;
        for Effect { hook, kind } in untold {
            match kind {
                EffectKind::Fired => self.shared.happened(&Happened::Fired { tenant, hook: &hook }),
                EffectKind::Log { level, text } => {
                    self.shared.happened(&Happened::Log { tenant, session, hook: &hook, level, text: &text });
                }
                _ => {}
            }
        }
    }

    /// Tells JSON hooks and watching hooks of a message.
    pub(super) fn message(&self, state: &mut State, role: Role, content: &str, origin: Origin) -> Wishes {
        let wishes = self.tell(state, None, &WatchEvent::Message(Message { role, content, origin }));
        if self.listens_at(Point::Message) {
            self.watch(LifeEvent::Message { role, content: content.to_owned() });
        }
        wishes
    }

    /// Tells JSON hooks and watching hooks what came of a tool.
    pub(super) fn tool_ran(
        &self,
        state: &mut State,
        name: &str,
        input: &Value,
        output: &str,
        is_error: bool,
    ) -> Wishes {
        let result = Value::String(output.to_owned());
        let outcome = if is_error { ToolOutcome::Error(output) } else { ToolOutcome::Result(&result) };
        let wishes = self.tell(state, None, &WatchEvent::Tool(ToolRun { name, args: input, outcome }));
        let (tool_name, tool_input) = (name.to_owned(), input.clone());
        self.watch(match is_error {
            true => LifeEvent::ToolError { tool_name, tool_input, error: output.to_owned() },
            false => LifeEvent::PostToolUse { tool_name, tool_input, tool_output: result },
        });
        wishes
    }

    /// Asks whether a tool call may go out; gives its input where a hook changed it.
    pub(super) async fn judge(&self, name: &str, input: &Value) -> (Option<Block>, Option<Value>, Wishes) {
        let before = ToolRun { name, args: input, outcome: ToolOutcome::Before };
        let mut wishes = self.tell(&mut self.conversation.state(), None, &WatchEvent::Tool(before));
        if let Some(block) = wishes.block.take() {
            return (Some(block), None, wishes);
        }
        if wishes.interrupt.is_some() {
            return (None, None, wishes);
        }
        let event = GateEvent::PreToolUse { tool_name: name.to_owned(), tool_input: input.clone() };
        let mut ruling = self.ask(event).await;
        let changed =
            ruling.updated.drain(..).find(|(field, _)| field == "toolInput").map(|(_, value)| value);
        (ruling.block().cloned(), changed, wishes)
    }
}
