//! The service that an application holds.

use crate::builder::ChatBuilder;
use crate::event::ChatEvent;
use crate::history::Conversation;
use crate::lifecycle::Lifecycle;
use crate::message::ChatMessage;
use crate::tools::Toolbox;
use crate::turn::{Outcome, SendError, Sink, Turn};
use hookgate_core::define::Problem;
use hookgate_core::dispatch::Dispatcher;
use hookgate_core::effect::{Effect, EffectKind};
use hookgate_core::event::{Chunk, Message, Origin, Role, WatchEvent};
use hookgate_core::facts::LifeEvent;
use hookgate_core::hook::HookListing;
use hookgate_core::point::Point;
use hookgate_core::verdict::Block;
use hookgate_handlers::folder::OnInvalid;
use hookgate_handlers::sources::Sources;
use hookgate_llm::{Model, Request};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Sees every event of the service, also outside a send.
pub(crate) type Observer = Arc<dyn Fn(&ChatEvent<'_>) + Send + Sync>;

/// A conversation with a model that obeys hooks. Clones share the conversation.
#[derive(Clone)]
pub struct ChatService {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) model: Arc<dyn Model>,
    pub(crate) tools: Toolbox,
    /// Model name and parameters; messages and tools are filled in for each request.
    pub(crate) request: Request,
    pub(crate) system: Option<String>,
    pub(crate) max_tool_call_rounds: u32,
    pub(crate) max_resends: u32,
    pub(crate) dispatcher: Arc<Dispatcher>,
    pub(crate) lifecycle: Lifecycle,
    pub(crate) sources: Sources,
    pub(crate) status: Mutex<Status>,
    pub(crate) observer: Option<Observer>,
    pub(crate) conversation: Mutex<Conversation>,
    /// One send at a time; others wait in order.
    pub(crate) turn: tokio::sync::Mutex<()>,
}

/// Whether the hooks are those that the folder says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Status {
    /// What was wrong at the last load; empty: all is well.
    pub problems: Vec<Problem>,
    /// What is allowed but probably not meant.
    pub warnings: Vec<Problem>,
}

impl Status {
    /// True if something in the folder is not in force.
    pub fn is_degraded(&self) -> bool {
        !self.problems.is_empty()
    }
}

/// What a reload did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reload {
    /// The new set is in force.
    Installed {
        /// How many hooks it has.
        hooks: usize,
    },
    /// Something is wrong; the last good set stays in force.
    KeptLastGood {
        /// What is wrong.
        problems: Vec<Problem>,
    },
    /// There is no hooks folder.
    NoFolder,
}

/// What hooks want of the caller of [`ChatService::tell`].
#[derive(Debug, Clone, PartialEq, Default)]
#[must_use = "an interrupt or a block that nobody looks at guards nothing"]
pub struct Wanted {
    /// Drop the response.
    pub interrupt: Option<Interrupt>,
    /// Do not run the tool; only for one that is about to run.
    pub block: Option<Block>,
}

/// A hook that drops the response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interrupt {
    /// Which.
    pub hook: String,
    /// Then ask again.
    pub resend: bool,
}

/// What the hooks of one event asked the loop to do. The first interrupt counts.
#[derive(Debug, Default)]
pub(crate) struct Wishes {
    pub(crate) interrupt: Option<(String, bool)>,
    pub(crate) resend: Option<String>,
    /// The first hook that stops the tool.
    pub(crate) block: Option<Block>,
}

impl ChatService {
    /// Begins to build a service on this model.
    pub fn builder(model: impl Model + 'static) -> ChatBuilder {
        ChatBuilder::new(Arc::new(model))
    }

    /// Adds a message to the history now and fires the chat hooks. What they queue waits for the next send; an
    /// interrupt or a resend has nothing to act on here.
    ///
    /// Where a hook is a gate on prompts, it must have its say before anybody sees what the user wrote: then the message,
    /// and what is added behind it, waits in the queue for the next send.
    pub fn add_message(&self, role: Role, content: impl Into<String>) {
        let origin = match role {
            Role::User => Origin::User,
            Role::Assistant | Role::Reasoning => Origin::Model,
            Role::Tool => Origin::Tool,
        };
        let gated = role == Role::User && self.inner.dispatcher.current().listens_at(Point::UserPromptSubmit);
        let mut conversation = self.inner.conversation();
        let message = conversation.compose(role, content.into(), origin);
        if gated || conversation.queue.iter().any(|waiting| waiting.unasked) {
            conversation.queue.push_back(message);
            return;
        }
        drop(conversation);
        self.inner.enter(message, &mut |_| {});
    }

    /// Puts a message into the queue, also while a send runs: it joins the next request.
    pub fn queue_message(&self, role: Role, content: impl Into<String>) {
        let mut conversation = self.inner.conversation();
        let message = conversation.compose(role, content.into(), Origin::User);
        conversation.queue.push_back(message);
    }

    /// Shows an event of a loop of your own to the hooks: what they queue is queued here. What else they want is
    /// the caller's to do.
    pub fn tell(&self, event: &WatchEvent<'_>) -> Wanted {
        let Wishes { interrupt, block, .. } = self.inner.fire(event, &mut |_| {});
        if interrupt.is_some() {
            self.end_response();
        }
        Wanted { interrupt: interrupt.map(|(hook, resend)| Interrupt { hook, resend }), block }
    }

    /// Says that an answer of a loop of your own broke off: the next chunk begins a new one.
    pub fn end_response(&self) {
        self.inner.conversation().session.end_response();
        self.inner.keep_firings();
    }

    /// Sends the conversation and runs the loop to its end. Calls wait for each other. Dropping the future stops
    /// the request and leaves a history that can be sent again.
    pub async fn send(&self) -> Result<Outcome, SendError> {
        self.send_with(|_| {}).await
    }

    /// The same, telling `sink` what happens as it happens.
    pub async fn send_with(&self, mut sink: impl FnMut(ChatEvent<'_>) + Send) -> Result<Outcome, SendError> {
        let _turn = self.inner.turn.lock().await;
        Turn::new(&self.inner, &mut sink).run().await
    }

    /// Ends the session: the watching hooks are told, and what is under way in the background gets `limit` to
    /// finish. Gives how many runs were left undone.
    pub async fn close(&self, limit: Duration) -> usize {
        self.end_response();
        self.inner.watch(LifeEvent::SessionEnd);
        self.inner.lifecycle.watchers.drain(limit).await
    }

    /// Works on what is due in the outbox, at most `limit`, as a session does in the background. Gives how many runs
    /// were left undone.
    pub async fn deliver(&self, limit: Duration) -> usize {
        self.inner.lifecycle.watchers.resume();
        self.inner.lifecycle.watchers.drain(limit).await
    }

    /// How many runs of watching hooks failed and wait in the outbox for their next try.
    pub fn postponed_watches(&self) -> usize {
        self.inner.lifecycle.watchers.postponed()
    }

    /// How many runs of watching hooks were dropped so far because too many waited.
    pub fn dropped_watches(&self) -> u64 {
        self.inner.lifecycle.watchers.overflowed()
    }

    /// The messages so far.
    pub fn history(&self) -> Vec<ChatMessage> {
        self.inner.conversation().history.clone()
    }

    /// What waits for the next request.
    pub fn queue(&self) -> Vec<ChatMessage> {
        self.inner.conversation().queue.iter().cloned().collect()
    }

    /// The loaded JSON hooks: label (empty if none was given) and target, in order.
    pub fn json_hooks(&self) -> Vec<HookListing> {
        let mut listing = self.inner.dispatcher.current().listing();
        listing.retain(|hook| hook.target.is_some());
        listing
    }

    /// What was wrong with the hooks folder when it was last read.
    pub fn status(&self) -> Status {
        self.inner.status().clone()
    }

    /// All loaded hooks, in run order.
    pub fn hooks(&self) -> Vec<HookListing> {
        self.inner.dispatcher.current().listing()
    }

    /// Reads the hooks folder again. The new set is in force at once and as a whole, or, if anything is wrong
    /// with it, not at all: a broken edit takes no rule away.
    pub fn reload(&self) -> Reload {
        self.inner.reload()
    }
}

impl std::fmt::Debug for ChatService {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChatService").field("model", &self.inner.model.name()).finish_non_exhaustive()
    }
}

impl Inner {
    /// Short lock; never held while an observer or a tool runs.
    pub(crate) fn conversation(&self) -> MutexGuard<'_, Conversation> {
        self.conversation.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn status(&self) -> MutexGuard<'_, Status> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn next_queued(&self) -> Option<ChatMessage> {
        self.conversation().queue.pop_front()
    }

    pub(crate) fn tell_observers(&self, sink: Sink<'_>, event: ChatEvent<'_>) {
        if let Some(observer) = &self.observer {
            observer(&event);
        }
        sink(event);
    }

    /// Brings a message into the history and fires the chat hooks.
    pub(crate) fn enter(&self, message: ChatMessage, sink: Sink<'_>) -> Wishes {
        let about = (message.role, message.origin);
        let content = message.content.clone();
        self.keep(message, sink);
        let event = Message { role: about.0, content: &content, origin: about.1 };
        let wishes = self.fire(&WatchEvent::Message(event), sink);
        self.watch(LifeEvent::Message { role: about.0, content });
        wishes
    }

    /// Brings a message into the history without hooks.
    pub(crate) fn keep(&self, message: ChatMessage, sink: Sink<'_>) {
        self.tell_observers(sink, ChatEvent::Message(&message));
        self.conversation().history.push(message);
    }

    /// Fires the hooks of an event and carries out what they want, as far as it is not the loop's to do.
    pub(crate) fn fire(&self, event: &WatchEvent<'_>, sink: Sink<'_>) -> Wishes {
        let mut effects = Vec::new();
        self.dispatcher.tell(&mut self.conversation().session, event, &mut effects);
        if !effects.is_empty() || matches!(event, WatchEvent::Chunk(Chunk::Finish { .. })) {
            self.keep_firings();
        }
        if effects.is_empty() {
            return Wishes::default();
        }
        self.carry_out(effects, sink)
    }

    fn carry_out(&self, effects: Vec<Effect>, sink: Sink<'_>) -> Wishes {
        let mut wishes = Wishes::default();
        for Effect { hook, kind } in effects {
            match kind {
                EffectKind::Fired => self.tell_observers(sink, ChatEvent::Fired { hook: &hook }),
                EffectKind::Log { level, text } => {
                    self.tell_observers(sink, ChatEvent::Log { hook: &hook, level, text: &text });
                }
                EffectKind::Queue { role, content } => {
                    let message = {
                        let mut conversation = self.conversation();
                        let message = conversation.compose(role, content, Origin::Hook);
                        conversation.queue.push_back(message.clone());
                        message
                    };
                    self.tell_observers(sink, ChatEvent::Queued { hook: &hook, message: &message });
                }
                // chunks are shown as they come: what was shown cannot be changed, only withdrawn
                EffectKind::Redact { .. } => wishes.interrupt = Some((hook.to_string(), false)),
                EffectKind::Interrupt { resend } => {
                    self.tell_observers(sink, ChatEvent::Interrupt { hook: &hook, resend });
                    let (_, wanted) = wishes.interrupt.get_or_insert_with(|| (hook.to_string(), resend));
                    *wanted |= resend;
                }
                EffectKind::Resend => {
                    self.tell_observers(sink, ChatEvent::Resend { hook: &hook });
                    wishes.resend = Some(hook.to_string());
                }
                EffectKind::Block { reason } => {
                    wishes.block.get_or_insert_with(|| Block::by_hook(hook, &reason));
                }
            }
        }
        wishes
    }

    fn reload(&self) -> Reload {
        if self.sources.is_empty() {
            return Reload::NoFolder;
        }
        let loaded = self.sources.load();
        self.sources.tell_installed(&loaded, &*self.lifecycle.around.recorder);
        let warnings = loaded.warnings.clone();
        let (set, problems) = loaded.into_set(OnInvalid::Refuse);
        *self.status() = Status { problems: problems.clone(), warnings };
        match set {
            Some(set) => {
                let hooks = set.hooks().len();
                self.dispatcher.install(set);
                Reload::Installed { hooks }
            }
            None => Reload::KeptLastGood { problems },
        }
    }
}
