//! One answer for one client: what hooks decide about it, whether it comes as a stream or in one piece.

use super::door::Door;
use super::guard::{Guard, Looks, Todo};
use super::turn::arguments;
use super::{Happened, OnBlock};
use hookgate_core::event::{Origin, Role};
use hookgate_core::facts::LifeEvent;
use hookgate_core::verdict::Block;
use hookgate_llm::proxy::{Call, Channel, End, Exchange, RequestChange, rewritten};

/// An answer under way.
pub(super) struct Weave {
    pub(super) door: Door,
    pub(super) exchange: Box<dyn Exchange>,
    pub(super) guard: Guard,
    looks: Looks,
    /// What hookgate itself adds to texts, by choice; it goes before the choice's closing events.
    says: Vec<(u32, String)>,
    /// What it says behind them.
    sends: Vec<(u32, String)>,
    /// How often the provider was asked again after blocked calls, and for hooks.
    rounds: u32,
    resends: u32,
}

/// What follows beside writing on.
#[derive(Debug)]
pub(super) enum Turn {
    /// Ask the provider again, with these changes of the request. Nothing goes out any more of what came.
    Again(Vec<RequestChange>),
    /// The same, and what was said so far stands.
    More(Vec<RequestChange>),
    /// End the answer here; what was said so far stands.
    End(End),
    /// End it here, and nothing goes out any more of what came.
    Drop,
    /// End it with an error. Nothing goes out any more of what came.
    Fail(String),
    /// The same, and what was said so far stands.
    FailBehind(String),
}

impl Drop for Weave {
    /// The answer is out, or given up: what it said of itself is for the trace.
    fn drop(&mut self) {
        if let Some(story) = &self.door.story {
            story.named(self.exchange.names());
        }
    }
}

impl Weave {
    pub(super) fn new(door: Door, exchange: Box<dyn Exchange>, looks: Looks) -> Weave {
        Weave {
            door,
            exchange,
            guard: Guard::new(looks),
            looks,
            says: Vec::new(),
            sends: Vec::new(),
            rounds: 0,
            resends: 0,
        }
    }

    /// Whether something is to be done that takes time.
    pub(super) fn has_work(&self) -> bool {
        !self.guard.todo.is_empty() || self.guard.wishes.interrupt.is_some()
    }

    /// Does it. What hookgate itself says waits for [`say`](Weave::say).
    pub(super) async fn settle(&mut self) -> Option<Turn> {
        let turn = self.work_off().await;
        self.door.tell_observers();
        turn
    }

    async fn work_off(&mut self) -> Option<Turn> {
        if let Some(turn) = self.interrupted() {
            return Some(turn);
        }
        // all calls that are there first: the end of one choice may be the end of all
        self.guard.todo.make_contiguous().sort_by_key(|todo| matches!(todo, Todo::Close(..)));
        while let Some(todo) = self.guard.todo.pop_front() {
            match todo {
                Todo::Judge(channel, call) => self.judge(channel, call).await,
                Todo::Close(choice, reason) => {
                    if let Some(turn) = self.close(choice, &reason).await {
                        return Some(turn);
                    }
                }
            }
            if let Some(turn) = self.interrupted() {
                return Some(turn);
            }
        }
        None
    }

    /// Writes what hookgate itself adds to a choice, where the client stands now.
    pub(super) fn append(&mut self, choice: u32, out: &mut Vec<u8>) {
        for (_, text) in self.says.extract_if(.., |(of, _)| *of == choice) {
            self.exchange.say(choice, &text, out);
        }
    }

    /// Writes all that hookgate itself says in a choice.
    pub(super) fn say(&mut self, choice: u32, out: &mut Vec<u8>) {
        self.append(choice, out);
        for (_, text) in self.sends.extract_if(.., |(of, _)| *of == choice) {
            self.exchange.send(choice, &text, out);
        }
    }

    /// The same in all choices.
    pub(super) fn say_all(&mut self, out: &mut Vec<u8>) {
        for (choice, text) in self.says.drain(..) {
            self.exchange.say(choice, &text, out);
        }
        for (choice, text) in self.sends.drain(..) {
            self.exchange.send(choice, &text, out);
        }
    }

    /// The provider is asked again: what comes belongs to another answer.
    pub(super) fn next_answer(&mut self) {
        self.says.clear();
        self.sends.clear();
        self.exchange.next_answer();
        if let Some(story) = &self.door.story {
            story.next_answer();
        }
        self.guard = Guard::new(self.looks);
    }

    /// An interrupt drops what was not written yet.
    fn interrupted(&mut self) -> Option<Turn> {
        let (hook, resend) = self.guard.wishes.interrupt.take()?;
        let tenant = self.door.tenant.id.as_deref();
        self.door.happened(&Happened::Interrupted { tenant, hook: &hook, resend });
        match self.guard.wishes.resend.take().or(resend.then_some(hook)) {
            None => Some(Turn::Drop),
            Some(hook) => Some(self.resend(&hook, Vec::new())),
        }
    }

    /// Asks again for a hook, within the bound.
    fn resend(&mut self, hook: &str, mut changes: Vec<RequestChange>) -> Turn {
        let max = self.door.shared.max_resends;
        if self.resends >= max {
            return Turn::Fail(format!(
                "stopped after {max} resends: hook `{hook}` asked for one more (set maxTriggers on the hook, or raise max_resends)"
            ));
        }
        self.resends = self.resends.saturating_add(1);
        self.door.happened(&Happened::Resent { tenant: self.door.tenant.id.as_deref(), hook });
        changes.extend(self.door.conversation.state().take_queued());
        Turn::Again(changes)
    }

    async fn judge(&mut self, channel: Channel, call: Call) {
        // as the client would get it: what a hook changes must not bring back what another one took out
        let shown = self.guard.shown(channel, &call.arguments);
        let input = arguments(&shown);
        let (block, changed, wishes) = self.door.judge(&call.name, &input).await;
        self.guard.wishes.join(wishes);
        match block {
            Some(block) => {
                let tenant = self.door.tenant.id.as_deref();
                self.door.happened(&Happened::Blocked { tenant, what: &call.name, block: &block });
                self.exchange.drop_call(channel);
                self.guard.block(channel, call, block);
            }
            None => {
                self.guard.allow(channel, changed.map(|value| rewritten(&shown, &value)));
                self.door.conversation.state().call(call);
            }
        }
    }

    /// A choice ended: blocked calls, the message, additions, what hooks still want.
    async fn close(&mut self, choice: u32, reason: &str) -> Option<Turn> {
        self.guard.finish(&self.door, choice, reason);
        if let Some(turn) = self.interrupted() {
            return Some(turn);
        }
        let (blocked, allowed) = self.guard.blocked(choice);
        let owned = |(call, block): (&Call, &Block)| (call.clone(), block.clone());
        let blocked: Vec<(Call, Block)> = blocked.into_iter().map(owned).collect();
        if !blocked.is_empty() {
            if allowed == 0 && self.may_tell_model() {
                self.rounds = self.rounds.saturating_add(1);
                return Some(Turn::More(self.told(blocked)));
            }
            for (call, block) in &blocked {
                let text = format!("[{} was not run: {}]\n", call.name, block.reason);
                self.says.push((choice, text));
            }
            if allowed == 0 && !self.door.several {
                return Some(Turn::End(End::Filtered));
            }
        }
        let calls_go_out = allowed > 0 || (reason == "tool_calls" && blocked.is_empty());
        if self.guard.looks_at_end()
            && !self.guard.failed
            && let Some(turn) = self.end_of_turn(choice, calls_go_out).await
        {
            return Some(turn);
        }
        // where calls go out the agent asks again itself, with what they gave; what is queued joins that
        if !calls_go_out && let Some(hook) = self.guard.wishes.resend.take() {
            let echo = vec![RequestChange::Echo(self.exchange.echo())];
            return Some(match self.resend(&hook, echo) {
                Turn::Again(changes) => Turn::More(changes),
                Turn::Fail(why) => Turn::FailBehind(why),
                other => other,
            });
        }
        if let Some(continues) = self.exchange.continues() {
            self.door.tenant.sessions.answered(&self.door.conversation, continues);
        }
        self.guard.close(choice);
        None
    }

    /// The answer as a message, and what is added to it where the turn ends here.
    async fn end_of_turn(&mut self, choice: u32, calls_go_out: bool) -> Option<Turn> {
        let content = std::mem::take(&mut self.guard.choice(choice).content);
        if !content.is_empty() {
            let wishes = self.door.message(
                &mut self.door.conversation.state(),
                Role::Assistant,
                &content,
                Origin::Model,
            );
            self.guard.wishes.join(wishes);
            if let Some(turn) = self.interrupted() {
                return Some(turn);
            }
        }
        if calls_go_out || self.guard.wishes.resend.is_some() {
            return None;
        }
        let additions = self.door.shape(&content).await;
        if let Some(block) = additions.withheld {
            let tenant = self.door.tenant.id.as_deref();
            self.door.happened(&Happened::Blocked { tenant, what: "response", block: &block });
            return Some(Turn::Drop);
        }
        for text in additions.append {
            self.says.push((choice, text));
        }
        for text in additions.send {
            match self.exchange.has_messages() {
                true => self.sends.push((choice, text)),
                false => self.says.push((choice, format!("\n\n{text}"))),
            }
        }
        self.door.watch(LifeEvent::Stop);
        None
    }

    fn may_tell_model(&self) -> bool {
        match self.door.shared.on_block {
            // with several choices there is no one conversation that could go on
            OnBlock::TellModel { most } => {
                self.rounds < most && !self.door.several && self.guard.n_choices() == 1
            }
            OnBlock::Refuse => false,
        }
    }

    /// What the model is to read: what it asked for, and why it was not done.
    fn told(&self, blocked: Vec<(Call, Block)>) -> Vec<RequestChange> {
        let mut changes = vec![RequestChange::Echo(self.exchange.echo())];
        changes.extend(blocked.into_iter().map(|(call, block)| RequestChange::Result {
            call,
            output: format!("error: {}", block.reason),
            is_error: true,
        }));
        changes.extend(self.door.conversation.state().take_queued());
        changes
    }
}
