//! The lifecycle's points in this conversation: who is asked when, and what is told of it.

use crate::event::ChatEvent;
use crate::service::Inner;
use crate::turn::Sink;
use hookgate_core::facts::{GateEvent, Head, LifeEvent, ShapeEvent};
use hookgate_core::gate::{DEEPEST, Surroundings};
use hookgate_core::point::Point;
use hookgate_core::verdict::{Additions, Ruling, Trace};
use hookgate_handlers::prompt::Turns;
use hookgate_handlers::watchers::Watchers;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Whom the events of a conversation are about.
#[derive(Debug, Clone, Default)]
pub(crate) struct Who {
    pub(crate) session_id: String,
    /// The session that the user talks to, for a sub-agent.
    pub(crate) root_session_id: Option<String>,
    pub(crate) tenant_id: Option<String>,
    pub(crate) agent_id: Option<String>,
    pub(crate) depth: u32,
}

/// What a conversation needs to ask lifecycle hooks.
pub(crate) struct Lifecycle {
    pub(crate) who: Who,
    pub(crate) around: Surroundings,
    /// Runs watching hooks in the background; shared with sub-agents.
    pub(crate) watchers: Arc<Watchers>,
    /// What prompt hooks have asked in each session's turn; shared with sub-agents.
    pub(crate) turns: Turns,
    pub(crate) n_events: AtomicU64,
    pub(crate) started: AtomicBool,
}

impl Lifecycle {
    /// The head of the next event. Its id is the session's with a number: the same conversation never gives one
    /// twice.
    fn next_head(&self) -> Head {
        let number = self.n_events.fetch_add(1, Ordering::Relaxed);
        Head {
            event_id: format!("{}-{number}", self.who.session_id),
            session_id: self.who.session_id.clone(),
            root_session_id: self.who.root_session_id.clone(),
            tenant_id: self.who.tenant_id.clone(),
            agent_id: self.who.agent_id.clone(),
            depth: self.who.depth,
            trace_id: None,
            tool_names: Vec::new(),
        }
    }
}

impl Inner {
    /// Asks the gate's hooks.
    pub(crate) async fn ask(&self, event: GateEvent, sink: Sink<'_>) -> Ruling {
        if self.lifecycle.who.depth <= DEEPEST && !self.dispatcher.listens_at(event.point()) {
            return Ruling::allow();
        }
        let head = self.lifecycle.next_head();
        let ruling = self.dispatcher.ask(&self.lifecycle.around, &head, event).await;
        self.tell_trace(&ruling.trace, sink);
        ruling
    }

    /// Asks what to add to an answer.
    pub(crate) async fn shape(&self, response: &str, sink: Sink<'_>) -> Additions {
        if !self.dispatcher.listens_at(Point::PreResponse) {
            return Additions::default();
        }
        let head = self.lifecycle.next_head();
        let event = ShapeEvent::PreResponse { response: response.to_owned() };
        let additions = self.dispatcher.shape(&self.lifecycle.around, &head, event).await;
        self.tell_trace(&additions.trace, sink);
        additions
    }

    /// Hands what is only watched to the background.
    pub(crate) fn watch(&self, event: LifeEvent) {
        if !self.dispatcher.listens_at(event.point()) {
            return;
        }
        let head = self.lifecycle.next_head();
        self.dispatcher.trace_watched(&*self.lifecycle.around.recorder, &head, &event);
        let work = self.dispatcher.watch(&head, event);
        if !work.is_empty() {
            self.lifecycle.watchers.submit(work);
        }
    }

    /// A turn begins; with the first one the session. A sub-agent's turn is a part of the user's.
    pub(crate) fn begin_turn(&self) {
        if self.lifecycle.who.depth > 0 {
            return;
        }
        let who = &self.lifecycle.who;
        self.lifecycle.turns.begin_of(who.tenant_id.as_deref(), &who.session_id);
        if !self.lifecycle.started.swap(true, Ordering::Relaxed) {
            self.lifecycle.watchers.resume();
            self.watch(LifeEvent::SessionStart);
        }
    }

    /// Hands what JSON hooks did to the recorder, which does not make anybody wait.
    pub(crate) fn keep_firings(&self) {
        let fired = self.conversation().session.take_firings();
        if fired.is_empty() {
            return;
        }
        let head = self.lifecycle.next_head();
        for fired in fired {
            self.lifecycle.around.recorder.fired(fired, &head);
        }
    }

    fn tell_trace(&self, trace: &Trace, sink: Sink<'_>) {
        for event in events_of(trace) {
            self.tell_observers(sink, event);
        }
    }
}

/// What observers get to see of hooks that ran.
pub(crate) fn events_of(trace: &Trace) -> impl Iterator<Item = ChatEvent<'_>> {
    let ran = trace.ran.iter().map(|ran| ChatEvent::Decided { ran });
    ran.chain(trace.warnings.iter().map(|warning| ChatEvent::Warning { warning }))
}
