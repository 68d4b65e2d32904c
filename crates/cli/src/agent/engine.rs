//! Asks and tells core what an agent's payload was about, and puts together what came out.
//!
//! | what a hook wants | becomes |
//! |---|---|
//! | block, at a gate | block |
//! | interrupt by a JSON hook, at a gate | block |
//! | block of a watching hook after a tool | the model is told |
//! | block of a watching hook at the end of a turn, resend by a JSON hook on the answer | keep going, a few times |
//! | changed `toolInput`, `rawInput` | changed input or text |
//! | queued message | context |
//! | appended or sent text at `pre_response` | the longer answer |
//! | log line | `agents.log` |
//!
//! What the agent cannot express is the adapter's matter.

use super::journal::Journal;
use super::memory::Memory;
use hookgate_agents::outcome::{Outcome, Word};
use hookgate_agents::read::{Read, Told};
use hookgate_core::dispatch::Dispatcher;
use hookgate_core::effect::{Effect, EffectKind};
use hookgate_core::event::{Message, Origin, Role, ToolOutcome, ToolRun, WatchEvent};
use hookgate_core::facts::{GateEvent, Head, LifeEvent, ShapeEvent};
use hookgate_core::gate::Surroundings;
use hookgate_core::point::Point;
use hookgate_core::session::Session;
use hookgate_core::verdict::{Block, Decision, Trace, Verdict, WarningCode};
use hookgate_core::word::Word as _;
use hookgate_handlers::watchers::{Limits, Watchers};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What watching hooks get of the time at least, whatever the others took.
const LEAST: Duration = Duration::from_millis(20);

/// The engine for one call.
pub(crate) struct Engine<'a> {
    pub(crate) dispatcher: Dispatcher,
    pub(crate) around: Surroundings,
    pub(crate) head: Head,
    pub(crate) memory: &'a Memory,
    pub(crate) journal: &'a Journal,
    /// When watching hooks are waited for no longer.
    pub(crate) until: Instant,
}

/// What JSON hooks asked for.
#[derive(Default)]
struct Wishes {
    block: Option<String>,
    interrupt: Option<String>,
    again: Option<String>,
    context: Vec<String>,
}

impl Engine<'_> {
    /// Asks and tells everything in order; the first block ends it.
    ///
    /// # Errors
    /// The engine could not be asked; one sentence.
    pub(crate) async fn run(&self, read: &Read) -> Result<Outcome, String> {
        let mut outcome = Outcome::default();
        for told in &read.told {
            match told {
                Told::Gate(event) => self.gate(read, event, &mut outcome).await?,
                Told::Shape(ShapeEvent::PreResponse { response }) => self.shape(response, &mut outcome).await,
                Told::Life(event) => self.life(read, event, &mut outcome).await?,
            }
            if outcome.word != Word::Nothing {
                break;
            }
        }
        Ok(outcome)
    }

    async fn gate(&self, read: &Read, event: &GateEvent, outcome: &mut Outcome) -> Result<(), String> {
        if let GateEvent::PreToolUse { tool_name, tool_input } = event {
            let run = ToolRun { name: tool_name, args: tool_input, outcome: ToolOutcome::Before };
            let wishes = self.tell(read, Point::PreToolUse, &WatchEvent::Tool(run))?;
            if let Some(reason) = self.heed(wishes, outcome) {
                outcome.word = Word::Block(reason);
                return Ok(());
            }
        }
        let ruling = self.dispatcher.ask(&self.around, &self.head, event.clone()).await;
        self.note(&ruling.trace);
        if let Verdict::Block(Block { reason, .. }) = ruling.verdict {
            outcome.word = Word::Block(reason);
            return Ok(());
        }
        for (member, value) in ruling.updated {
            match (event, member.as_str()) {
                (GateEvent::PreToolUse { tool_input, .. }, "toolInput") => {
                    match read.native(tool_input, &value) {
                        Some(native) => outcome.input = Some(native),
                        None => {
                            let words = "a hook changes the input in a way that cannot be carried over to the agent's own";
                            outcome.word = Word::Block(words.to_owned());
                        }
                    }
                }
                (_, "rawInput") => outcome.text = value.as_str().map(str::to_owned),
                _ => {}
            }
        }
        Ok(())
    }

    async fn shape(&self, response: &str, outcome: &mut Outcome) {
        let event = ShapeEvent::PreResponse { response: response.to_owned() };
        let additions = self.dispatcher.shape(&self.around, &self.head, event).await;
        self.note(&additions.trace);
        if let Some(block) = additions.withheld {
            outcome.word = Word::Block(block.reason.clone());
            outcome.text = Some(format!("[{}]", block.reason));
        } else if !additions.append.is_empty() || !additions.send.is_empty() {
            let mut text = format!("{response}{}", additions.append.concat());
            for sent in additions.send {
                text.push_str("\n\n");
                text.push_str(&sent);
            }
            outcome.text = Some(text);
        }
    }

    async fn life(&self, read: &Read, event: &LifeEvent, outcome: &mut Outcome) -> Result<(), String> {
        let wishes = match event {
            LifeEvent::Message { role, content } => {
                let origin = match role {
                    Role::User => Origin::User,
                    Role::Tool => Origin::Tool,
                    Role::Assistant | Role::Reasoning => Origin::Model,
                };
                self.tell(
                    read,
                    Point::Message,
                    &WatchEvent::Message(Message { role: *role, content, origin }),
                )?
            }
            LifeEvent::PostToolUse { tool_name, tool_input, tool_output } => {
                let outcome = ToolOutcome::Result(tool_output);
                let run = ToolRun { name: tool_name, args: tool_input, outcome };
                self.tell(read, Point::PostToolUse, &WatchEvent::Tool(run))?
            }
            LifeEvent::ToolError { tool_name, tool_input, error } => {
                let run = ToolRun { name: tool_name, args: tool_input, outcome: ToolOutcome::Error(error) };
                self.tell(read, Point::ToolError, &WatchEvent::Tool(run))?
            }
            LifeEvent::SessionStart
            | LifeEvent::Stop
            | LifeEvent::SessionEnd
            | LifeEvent::SubagentStop { .. } => Wishes::default(),
        };
        let again = wishes.again.clone();
        let stopped = self.heed(wishes, outcome);
        let refusals = self.watch(event).await;
        match (event, stopped) {
            // the prompt has not been sent yet
            (LifeEvent::Message { role: Role::User, .. }, Some(reason)) => outcome.word = Word::Block(reason),
            (LifeEvent::Message { role: Role::Assistant, .. }, _) if again.is_some() => {
                let words = std::mem::take(&mut outcome.context).join("\n\n");
                let words = if words.is_empty() { again.unwrap_or_default() } else { words };
                self.go_on(read, words, outcome);
            }
            (LifeEvent::PostToolUse { .. } | LifeEvent::ToolError { .. }, stopped) => {
                let words: Vec<String> = stopped.into_iter().chain(refusals).collect();
                if !words.is_empty() {
                    outcome.word = Word::Block(words.join("\n"));
                }
            }
            (LifeEvent::Stop | LifeEvent::SubagentStop { .. }, _) if !refusals.is_empty() => {
                self.go_on(read, refusals.join("\n"), outcome);
            }
            _ => {}
        }
        Ok(())
    }

    /// Lets the turn go on, unless it did often enough.
    fn go_on(&self, read: &Read, words: String, outcome: &mut Outcome) {
        if self.memory.may_go_on(read.turn.as_deref(), read.went_on) {
            outcome.word = Word::Block(words);
        } else {
            self.journal.note(&format!("the turn ends, although a hook wants it to go on: {words}"));
        }
    }

    /// Tells JSON hooks, with the session's counts where a hook counts.
    fn tell(&self, read: &Read, point: Point, event: &WatchEvent<'_>) -> Result<Wishes, String> {
        let set = self.dispatcher.current();
        let mut listening = set
            .hooks()
            .iter()
            .filter(|hook| hook.listens.target().is_some() && hook.listens.point() == point);
        let Some(first) = listening.next() else { return Ok(Wishes::default()) };
        let counts = first.max_triggers.is_some() || listening.any(|hook| hook.max_triggers.is_some());
        let fire = |session: &mut Session| {
            let mut effects = Vec::new();
            session.set_tool_names(read.tool_names.clone());
            session.keep_firings();
            self.dispatcher.tell(session, event, &mut effects);
            for fired in session.take_firings() {
                self.around.recorder.fired(fired, &self.head);
            }
            effects
        };
        let effects = if counts {
            let failed = |error| format!("the session's counts cannot be kept: {error}");
            self.memory.counted(fire).map_err(failed)?
        } else {
            fire(&mut Session::new())
        };
        Ok(self.wishes(effects))
    }

    fn wishes(&self, effects: Vec<Effect>) -> Wishes {
        let mut wishes = Wishes::default();
        for Effect { hook, kind } in effects {
            match kind {
                EffectKind::Fired => {}
                EffectKind::Log { level, text } => self.journal.note(&format!("{}: {text}", level.as_str())),
                EffectKind::Queue { content, .. } => wishes.context.push(content),
                // what the agent has shown cannot be changed here, only stopped
                EffectKind::Redact { .. } => {
                    wishes.interrupt.get_or_insert_with(|| format!("hook {hook} redacts"));
                }
                EffectKind::Interrupt { resend } => {
                    let words = format!("hook {hook} interrupted");
                    if resend {
                        wishes.again.get_or_insert_with(|| words.clone());
                    }
                    wishes.interrupt.get_or_insert(words);
                }
                EffectKind::Resend => {
                    wishes.again.get_or_insert_with(|| format!("hook {hook} asks once more"));
                }
                EffectKind::Block { reason } => {
                    wishes.block.get_or_insert_with(|| Block::by_hook(hook, &reason).reason);
                }
            }
        }
        wishes
    }

    /// Takes the context over; gives the reason to stop, if there is one.
    fn heed(&self, wishes: Wishes, outcome: &mut Outcome) -> Option<String> {
        outcome.context.extend(wishes.context);
        wishes.block.or(wishes.interrupt)
    }

    /// Runs watching hooks and waits for them: after this process nobody else would. Gives the reasons of those that
    /// said no.
    async fn watch(&self, event: &LifeEvent) -> Vec<String> {
        let work = self.dispatcher.watch(&self.head, event.clone());
        if work.is_empty() {
            return Vec::new();
        }
        let traces: Arc<Mutex<Vec<Trace>>> = Arc::default();
        let told = traces.clone();
        let on_trace =
            move |trace: &Trace| told.lock().unwrap_or_else(PoisonError::into_inner).push(trace.clone());
        let watchers = Watchers::told(self.around.clone(), Limits::default(), Some(Box::new(on_trace)));
        watchers.submit(work);
        let left = watchers.drain(self.until.saturating_duration_since(Instant::now()).max(LEAST)).await;
        if left > 0 {
            self.journal.note(&format!("{left} watching hooks did not end in time"));
        }
        let mut reasons = Vec::new();
        for trace in traces.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            self.note(trace);
            for ran in trace.ran.iter().filter(|ran| ran.decision == Decision::Block) {
                let reason = ran.reason.as_deref().unwrap_or_default();
                reasons.push(Block::by_hook(ran.hook.clone(), reason).reason);
            }
        }
        reasons
    }

    fn note(&self, trace: &Trace) {
        // a block of a watching hook is not ignored here
        for warning in trace.warnings.iter().filter(|warning| warning.code != WarningCode::BlockIgnored) {
            self.journal.note(&format!("hook {}: {} {}", warning.hook, warning.code, warning.text));
        }
        for ran in trace.ran.iter().filter(|ran| !ran.console.is_empty()) {
            self.journal.note(&format!("hook {} says: {}", ran.hook, ran.console.trim_end()));
        }
        for ran in &trace.ran {
            if let Some(why) = &ran.why {
                self.journal.note(&format!("hook {} failed: {why}", ran.hook));
            }
        }
    }
}

/// The points at which the engine is asked or told of a payload.
pub(crate) fn points(read: &Read) -> Vec<Point> {
    let mut points: Vec<Point> = read.told.iter().map(|told| place_of(told).0).collect();
    points.dedup();
    points
}

/// Where the engine is asked or told, and the tool that it is about; empty if it is about none.
pub(super) fn place_of(told: &Told) -> (Point, &str) {
    match told {
        Told::Gate(event) => (event.point(), event.tool_name()),
        Told::Life(event) => (event.point(), event.tool_name()),
        Told::Shape(ShapeEvent::PreResponse { .. }) => (Point::PreResponse, ""),
    }
}
