//! Plays events to a hook set, in the order in which a door does, and keeps what happened. There is no model, no tool and
//! no record: what comes of an event is only looked at.
//!
//! | step | order |
//! |---|---|
//! | tool | JSON hooks `before`, the gate, then what is said to come of it: watching hooks, JSON hooks, the message |
//! | answer | chunks, finish, messages, `pre_response` |
//! | prompt | the gate, the message |

use crate::desk::Desk;
use crate::happened::{Happened, Played, Stopped};
use crate::step::{Piece, Step, Then, What, Whose};
use hookgate_core::dispatch::Dispatcher;
use hookgate_core::effect::{Effect, EffectKind};
use hookgate_core::event::{Chunk, ChunkKind, Message, Origin, Role, ToolOutcome, ToolRun, WatchEvent};
use hookgate_core::facts::{Facts, GateEvent, Head, LifeEvent, ShapeEvent};
use hookgate_core::gate::Surroundings;
use hookgate_core::point::Point;
use hookgate_core::record::Memory;
use hookgate_core::session::{Channel, Session};
use hookgate_core::set::HookSet;
use hookgate_core::verdict::Verdict;
use hookgate_handlers::clock::TokioTimer;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// A hook set to play to. Many sessions may be played at once.
#[derive(Debug)]
pub struct Stage {
    dispatcher: Dispatcher,
    around: Surroundings,
}

/// One session on a stage.
#[derive(Debug)]
pub struct Scene<'a> {
    stage: &'a Stage,
    desk: Arc<Desk>,
    session: Session,
    session_id: String,
    whose: Whose,
    n_events: u64,
    /// The texts of the answer that arrives chunk by chunk.
    arriving: HashMap<ChunkKind, Arriving>,
    /// That answer has ended: the next chunk begins another.
    is_over: bool,
    n_answers: u64,
}

/// The text of a channel as it arrives.
#[derive(Debug, Default)]
struct Arriving {
    text: String,
    /// Bytes of the text as it was, and what stands in their place.
    redactions: Vec<(std::ops::Range<u64>, String)>,
    withdrawn: bool,
}

impl Stage {
    /// A stage for these hooks. `budget`: how long all hooks of one event may take.
    pub fn new(set: HookSet, budget: Duration) -> Stage {
        let around = Surroundings {
            timer: Arc::new(TokioTimer::new()),
            // a record tells of what happened; here nothing did
            recorder: Arc::new(Memory::new(0)),
            budget,
        };
        Stage { dispatcher: Dispatcher::new(set), around }
    }

    /// The hooks.
    pub fn set(&self) -> Arc<HookSet> {
        self.dispatcher.current()
    }

    /// Begins a session: `whose` are its events where they do not say it, `session_id` is its name where nobody does.
    pub fn begin(&self, desk: Arc<Desk>, session_id: &str, whose: Whose) -> Scene<'_> {
        Scene {
            stage: self,
            desk,
            session: Session::new(),
            session_id: session_id.to_owned(),
            whose,
            n_events: 0,
            arriving: HashMap::new(),
            is_over: true,
            n_answers: 0,
        }
    }
}

impl Scene<'_> {
    /// Plays a step.
    pub async fn play(&mut self, step: &Step) -> Played {
        let desk = self.desk.clone();
        let mut played = Played::default();
        desk.rule(self.play_on(step, &mut played)).await;
        self.show(&mut played);
        played
    }

    async fn play_on(&mut self, step: &Step, played: &mut Played) {
        let whose = &step.whose;
        match &step.what {
            What::Gate(event) => drop(self.gate(whose, event.clone(), played).await),
            What::Shape(ShapeEvent::PreResponse { response }) => self.shape(whose, response, played).await,
            What::Life(event) => self.life(whose, event.clone(), played).await,
            What::Chunk(piece) => drop(self.chunk(whose, piece, played)),
            What::Prompt(text) => self.prompt(whose, text, played).await,
            What::Answer { text, reasoning } => self.answer(whose, text, reasoning, played).await,
            What::Tool { name, input, then } => self.tool(whose, name, input, then, played).await,
        }
    }

    async fn prompt(&mut self, whose: &Whose, text: &str, played: &mut Played) {
        let event = GateEvent::UserPromptSubmit { raw_input: text.to_owned() };
        let Some(updated) = self.gate(whose, event, played).await else { return };
        let admitted = updated.into_iter().find(|(name, _)| name == "rawInput");
        let content = admitted.and_then(|(_, value)| value.as_str().map(str::to_owned));
        let content = content.unwrap_or_else(|| text.to_owned());
        self.life(whose, LifeEvent::Message { role: Role::User, content }, played).await;
    }

    async fn tool(&mut self, whose: &Whose, name: &str, input: &Value, then: &Then, played: &mut Played) {
        let event = GateEvent::PreToolUse { tool_name: name.to_owned(), tool_input: input.clone() };
        let Some(updated) = self.gate(whose, event, played).await else { return };
        let changed = updated.into_iter().find(|(member, _)| member == "toolInput");
        let (tool_name, tool_input) =
            (name.to_owned(), changed.map_or_else(|| input.clone(), |(_, value)| value));
        let (event, content) = match then {
            Then::Nothing => return,
            Then::Output(output) => {
                let content = output.as_str().map_or_else(|| output.to_string(), str::to_owned);
                (LifeEvent::PostToolUse { tool_name, tool_input, tool_output: output.clone() }, content)
            }
            Then::Error(error) => (
                LifeEvent::ToolError { tool_name, tool_input, error: error.clone() },
                format!("error: {error}"),
            ),
        };
        self.life(whose, event, played).await;
        if !interrupted(played) {
            self.life(whose, LifeEvent::Message { role: Role::Tool, content }, played).await;
        }
    }

    async fn answer(&mut self, whose: &Whose, text: &[String], reasoning: &[String], played: &mut Played) {
        self.session.end_response();
        self.is_over = true;
        let pieces = [(ChunkKind::Reasoning, reasoning), (ChunkKind::Content, text)];
        let pieces =
            pieces.into_iter().flat_map(|(kind, texts)| texts.iter().map(move |text| (kind, text.as_str())));
        for (kind, text) in pieces.chain([(ChunkKind::Finish, "stop")]) {
            let piece = Piece { kind, text: text.to_owned(), index: 0, id: None };
            if !self.chunk(whose, &piece, played) {
                return;
            }
        }
        // hooks on messages see the model's own words, as at every door: what is replaced is only kept from the reader
        let written = |kind| self.arriving.get(&kind).map(|arriving| arriving.text.clone());
        let thoughts = written(ChunkKind::Reasoning).map(|content| (Role::Reasoning, content));
        let answer = written(ChunkKind::Content).unwrap_or_default();
        for (role, content) in thoughts.into_iter().chain([(Role::Assistant, answer.clone())]) {
            self.life(whose, LifeEvent::Message { role, content }, played).await;
            if interrupted(played) {
                self.withdraw();
                return;
            }
        }
        self.shape(whose, &answer, played).await;
        if played.events.last().is_some_and(|event| event.stopped.is_some()) {
            self.withdraw();
        }
    }

    /// Tells of a chunk. False: the answer ends here.
    fn chunk(&mut self, whose: &Whose, piece: &Piece, played: &mut Played) -> bool {
        let Piece { kind, text, index, id } = piece;
        let (chunk, channel) = match kind {
            ChunkKind::Content => (Chunk::Content(text), Some(Channel::Content)),
            ChunkKind::Reasoning => (Chunk::Reasoning(text), Some(Channel::Reasoning)),
            ChunkKind::ToolCallDelta => {
                let chunk = Chunk::ToolCallDelta { index: *index, id: id.as_deref(), text };
                (chunk, Some(Channel::Call(*index)))
            }
            ChunkKind::Finish => (Chunk::Finish { reason: text }, None),
        };
        if std::mem::take(&mut self.is_over) {
            self.n_answers = self.n_answers.saturating_add(1);
            self.arriving.clear();
        }
        let head = self.head(whose);
        let mut happened = Happened::at(Point::Chunk, head);
        self.tell(&mut happened, &WatchEvent::Chunk(chunk));
        if channel.is_some() {
            self.arriving.entry(*kind).or_default().text.push_str(text);
        }
        self.collect_redactions();
        let goes_on = !is_interrupted(&happened.effects);
        self.is_over = !goes_on || channel.is_none();
        played.events.push(happened);
        if !goes_on {
            self.session.end_response();
            self.withdraw();
        }
        goes_on
    }

    /// Asks a gate, JSON hooks first. Gives the changed input, or nothing where somebody stopped it.
    async fn gate(
        &mut self,
        whose: &Whose,
        event: GateEvent,
        played: &mut Played,
    ) -> Option<Vec<(String, Value)>> {
        let head = self.head(whose);
        let mut happened = Happened::at(event.point(), head.clone());
        if let GateEvent::PreToolUse { tool_name, tool_input } = &event {
            happened.tool_name = Some(tool_name.clone());
            let run = ToolRun { name: tool_name, args: tool_input, outcome: ToolOutcome::Before };
            self.tell(&mut happened, &WatchEvent::Tool(run));
        }
        if happened.stopped.is_none() {
            happened.looked.extend(self.stage.set().explain(&Facts::of_gate(&head, event.clone())));
            let ruling = self.stage.dispatcher.ask(&self.stage.around, &head, event).await;
            happened.asked = self.desk.take_asked();
            if let Verdict::Block(block) = ruling.verdict {
                happened.stopped = Some(Stopped::by(block, &ruling.trace));
            }
            happened.updated = ruling.updated;
            happened.trace = ruling.trace;
        }
        let updated = happened.stopped.is_none().then(|| happened.updated.clone());
        played.events.push(happened);
        updated
    }

    async fn shape(&mut self, whose: &Whose, response: &str, played: &mut Played) {
        let head = self.head(whose);
        let event = ShapeEvent::PreResponse { response: response.to_owned() };
        let mut happened = Happened::at(Point::PreResponse, head.clone());
        happened.looked = self.stage.set().explain(&Facts::of_shape(&head, event.clone()));
        let additions = self.stage.dispatcher.shape(&self.stage.around, &head, event).await;
        happened.asked = self.desk.take_asked();
        happened.stopped = additions.withheld.map(|block| Stopped::by(block, &additions.trace));
        if happened.stopped.is_none() {
            (happened.append, happened.send) = (additions.append, additions.send);
        }
        happened.trace = additions.trace;
        played.events.push(happened);
    }

    async fn life(&mut self, whose: &Whose, event: LifeEvent, played: &mut Played) {
        let head = self.head(whose);
        let mut happened = Happened::at(event.point(), head.clone());
        match &event {
            LifeEvent::Message { role, content } => {
                let message = Message { role: *role, content, origin: origin_of(*role) };
                self.tell(&mut happened, &WatchEvent::Message(message));
            }
            LifeEvent::PostToolUse { tool_name, tool_input, tool_output } => {
                happened.tool_name = Some(tool_name.clone());
                let outcome = ToolOutcome::Result(tool_output);
                let run = ToolRun { name: tool_name, args: tool_input, outcome };
                self.tell(&mut happened, &WatchEvent::Tool(run));
            }
            LifeEvent::ToolError { tool_name, tool_input, error } => {
                happened.tool_name = Some(tool_name.clone());
                let outcome = ToolOutcome::Error(error);
                let run = ToolRun { name: tool_name, args: tool_input, outcome };
                self.tell(&mut happened, &WatchEvent::Tool(run));
            }
            LifeEvent::SessionStart
            | LifeEvent::Stop
            | LifeEvent::SessionEnd
            | LifeEvent::SubagentStop { .. } => {}
        }
        happened.looked.extend(self.stage.set().explain(&Facts::of_life(&head, event.clone())));
        for watch in self.stage.dispatcher.watch(&head, event) {
            let trace = watch.run(&self.stage.around).await;
            happened.trace.ran.extend(trace.ran);
            happened.trace.warnings.extend(trace.warnings);
        }
        happened.asked = self.desk.take_asked();
        happened.stopped = happened.stopped.or_else(|| Stopped::said(&happened.trace.ran));
        played.events.push(happened);
    }

    /// Tells JSON hooks.
    fn tell(&mut self, happened: &mut Happened, event: &WatchEvent<'_>) {
        self.session.set_tool_names(happened.head.tool_names.clone());
        self.stage.dispatcher.tell(&mut self.session, event, &mut happened.effects);
        happened.looked = self.stage.set().explain_told(event, &happened.head.tool_names, &happened.effects);
        happened.stopped = Stopped::asked_for(&happened.effects);
    }

    fn head(&mut self, whose: &Whose) -> Head {
        let event_id = format!("{}-{}", self.session_id, self.n_events);
        self.n_events = self.n_events.saturating_add(1);
        whose.head(&self.whose, &self.session_id, event_id)
    }

    fn collect_redactions(&mut self) {
        for (kind, channel) in
            [(ChunkKind::Content, Channel::Content), (ChunkKind::Reasoning, Channel::Reasoning)]
        {
            let redactions = self.session.take_redactions(channel);
            if let Some(arriving) = self.arriving.get_mut(&kind) {
                arriving.redactions.extend(redactions.into_iter().map(|one| (one.range, one.with)));
            }
        }
    }

    fn withdraw(&mut self) {
        self.arriving.values_mut().for_each(|arriving| arriving.withdrawn = true);
    }

    /// Says what a reader has of the answer so far.
    fn show(&self, played: &mut Played) {
        let streamed = played.events.iter().any(|event| event.point == Point::Chunk);
        if streamed {
            let shown = |kind| self.arriving.get(&kind).map(Arriving::shown);
            played.answer = self.n_answers;
            (played.text, played.reasoning) = (shown(ChunkKind::Content), shown(ChunkKind::Reasoning));
        }
    }
}

impl Arriving {
    /// What a reader has of it.
    fn shown(&self) -> String {
        if self.withdrawn {
            return String::new();
        }
        let mut shown = String::new();
        let mut at = 0usize;
        for (range, with) in &self.redactions {
            let place = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX);
            shown.push_str(self.text.get(at..place(range.start)).unwrap_or_default());
            shown.push_str(with);
            at = place(range.end);
        }
        shown.push_str(self.text.get(at..).unwrap_or_default());
        shown
    }
}

/// Whether the last event's JSON hooks interrupted the answer.
fn interrupted(played: &Played) -> bool {
    played.events.last().is_some_and(|event| is_interrupted(&event.effects))
}

fn is_interrupted(effects: &[Effect]) -> bool {
    effects.iter().any(|effect| matches!(effect.kind, EffectKind::Interrupt { .. }))
}

fn origin_of(role: Role) -> Origin {
    match role {
        Role::User => Origin::User,
        Role::Tool => Origin::Tool,
        Role::Assistant | Role::Reasoning => Origin::Model,
    }
}
