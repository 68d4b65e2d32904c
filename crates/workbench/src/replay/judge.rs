//! One hook set, asked and told about past events the way a door does it.
//!
//! [`Rules`] is the set, ready for any number of sessions at once; a `Judge` is one session of it. What hooks want is
//! noted as [`Deed`]s; nothing of it is done.

use super::deed::{Deed, What};
use super::dry;
use hookgate_agents::call::Call as ToolCall;
use hookgate_core::dispatch::Dispatcher;
use hookgate_core::effect::{Effect, EffectKind, HookName};
use hookgate_core::event::{Chunk, Message, Origin, Role, ToolOutcome, ToolRun, WatchEvent};
use hookgate_core::facts::{GateEvent, Head, LifeEvent, ShapeEvent};
use hookgate_core::future::BoxFuture;
use hookgate_core::gate::{Surroundings, Timer};
use hookgate_core::handler::{Answer, Call, Fault, Handler, Mode};
use hookgate_core::hook::{Hook, Listens, Work};
use hookgate_core::point::Point;
use hookgate_core::record::{Record, RecordError, Recorder};
use hookgate_core::session::Session;
use hookgate_core::set::HookSet;
use hookgate_core::verdict::{Decision, Ruling, Trace, Verdict, WarningCode};
use hookgate_handlers::folder::{Loaded, OnInvalid};
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::step::Outcome;

/// How long the hooks of one event may take together.
const BUDGET: Duration = Duration::from_secs(60);

/// A hook set, ready to be asked about the past.
pub struct Rules {
    dispatcher: Dispatcher,
    set: Arc<HookSet>,
    around: Surroundings,
    ears: Ears,
    by_name: HashMap<HookName, usize>,
}

/// One session as the hooks of one set see it.
pub(crate) struct Judge<'r> {
    rules: &'r Rules,
    session: Session,
    effects: Vec<Effect>,
    /// What hooks would have done since this was taken the last time.
    pub(crate) deeds: Vec<Deed>,
}

/// What handlers said, by the event that they were asked about: the engine's answers do not say whose words are whose.
#[derive(Clone, Default)]
struct Ears(Arc<Mutex<HashMap<String, Vec<Heard>>>>);

/// What one handler said.
struct Heard {
    key: Arc<str>,
    additions: Vec<(Option<Mode>, String)>,
    change: Option<Map<String, Value>>,
}

/// A handler whose words are noted.
#[derive(Debug)]
struct Overheard {
    inner: Arc<dyn Handler>,
    ears: Ears,
}

/// Nothing of a replay enters a trail.
#[derive(Debug)]
struct NoTrail;

impl Recorder for NoTrail {
    fn record(&self, _: Record) -> BoxFuture<'_, Result<(), RecordError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn digest(&self, _: &[u8]) -> [u8; 32] {
        [0; 32]
    }
}

impl Rules {
    /// The rules that were loaded, each with its handler.
    ///
    /// # Errors
    /// Something is wrong with them; all of it.
    pub fn new(
        mut loaded: Loaded,
        on_invalid: OnInvalid,
        timer: Arc<dyn Timer>,
    ) -> Result<Rules, Vec<hookgate_core::define::Problem>> {
        let ears = Ears::default();
        for hook in &mut loaded.hooks {
            if let Work::Handler { run: Some(run), .. } = &mut hook.work {
                *run = Arc::new(Overheard { inner: run.clone(), ears: ears.clone() });
            }
        }
        let (set, problems) = loaded.into_set(on_invalid);
        let Some(set) = set else { return Err(problems) };
        let dispatcher = Dispatcher::new(set);
        let set = dispatcher.current();
        // of hooks with the same name the first stands for all
        let by_name =
            set.hooks().iter().enumerate().rev().map(|(place, hook)| (hook.name.clone(), place)).collect();
        let around = Surroundings { timer, recorder: Arc::new(NoTrail), budget: BUDGET };
        Ok(Rules { dispatcher, set, around, ears, by_name })
    }

    /// The hooks.
    pub fn hooks(&self) -> &[Hook] {
        self.set.hooks()
    }

    /// The first hook with this name.
    pub(crate) fn hook(&self, name: &str) -> Option<&Hook> {
        self.set.hooks().get(*self.by_name.get(name)?)
    }

    /// Where in a text the hook's pattern is found.
    pub(crate) fn find(&self, name: &str, text: &str) -> Option<Range<usize>> {
        match &self.hook(name)?.listens {
            Listens::Point { filter, .. } => filter.regex.as_ref()?.find(text),
            other => other.regex()?.find(text),
        }
    }

    fn name_of(&self, key: &str) -> HookName {
        let hook = self.set.hooks().iter().find(|hook| *hook.key == *key);
        hook.map_or_else(|| key.into(), |hook| hook.name.clone())
    }
}

impl<'r> Judge<'r> {
    pub(crate) fn new(rules: &'r Rules) -> Judge<'r> {
        Judge { rules, session: Session::new(), effects: Vec::new(), deeds: Vec::new() }
    }

    fn listens_at(&self, point: Point) -> bool {
        self.rules.set.listens_at(point)
    }

    /// What the user wrote is about to enter.
    pub(crate) async fn prompt(&mut self, head: &Head, text: &str) {
        if self.listens_at(Point::UserPromptSubmit) {
            self.gate(head, GateEvent::UserPromptSubmit { raw_input: text.to_owned() }).await;
        }
    }

    /// A message entered the history.
    pub(crate) async fn message(&mut self, head: &Head, role: Role, origin: Origin, text: &str) {
        if self.rules.set.listens_to_messages() {
            self.tell(&WatchEvent::Message(Message { role, content: text, origin }));
        }
        self.life(head, Point::Message, || LifeEvent::Message { role, content: text.to_owned() }).await;
    }

    /// A piece of an answer came.
    pub(crate) fn chunk(&mut self, chunk: Chunk<'_>) {
        self.tell(&WatchEvent::Chunk(chunk));
    }

    /// Whether pieces of a call's arguments need to be told.
    pub(crate) fn wants_call_pieces(&self) -> bool {
        self.rules.set.listens_to_chunks(hookgate_core::event::ChunkKind::ToolCallDelta)
    }

    /// The answer was dropped.
    pub(crate) fn void(&mut self) {
        self.session.end_response();
    }

    /// A tool is about to run.
    pub(crate) async fn before(&mut self, head: &Head, call: &ToolCall) {
        self.run(call, ToolOutcome::Before);
        // a door does not ask on once it is told to stop
        let stopped = self.deeds.iter().any(|deed| matches!(deed.what, What::Block | What::Interrupt));
        if !stopped && self.listens_at(Point::PreToolUse) {
            let (tool_name, tool_input) = (call.tool_name.clone(), call.tool_input.clone());
            self.gate(head, GateEvent::PreToolUse { tool_name, tool_input }).await;
        }
    }

    /// A sub-agent is about to start.
    pub(crate) async fn subagent(&mut self, head: &Head, subagent: &Value) {
        if self.listens_at(Point::SubagentStart) {
            self.gate(head, GateEvent::SubagentStart { subagent: subagent.clone() }).await;
        }
    }

    /// A tool ran, or failed.
    pub(crate) async fn after(&mut self, head: &Head, call: &ToolCall, outcome: &Outcome) {
        let (tool_name, tool_input) = (|| call.tool_name.clone(), || call.tool_input.clone());
        match outcome {
            Outcome::Output(output) => {
                self.run(call, ToolOutcome::Result(output));
                let event = || LifeEvent::PostToolUse {
                    tool_name: tool_name(),
                    tool_input: tool_input(),
                    tool_output: output.clone(),
                };
                self.life(head, Point::PostToolUse, event).await;
            }
            Outcome::Error(error) => {
                self.run(call, ToolOutcome::Error(error));
                let event = || LifeEvent::ToolError {
                    tool_name: tool_name(),
                    tool_input: tool_input(),
                    error: error.clone(),
                };
                self.life(head, Point::ToolError, event).await;
            }
        }
    }

    /// An answer is about to be delivered.
    pub(crate) async fn answer(&mut self, head: &Head, text: &str) {
        if !self.listens_at(Point::PreResponse) {
            return;
        }
        let event = ShapeEvent::PreResponse { response: text.to_owned() };
        let additions = self.rules.dispatcher.shape(&self.rules.around, head, event).await;
        if let Some(block) = &additions.withheld {
            self.deeds.push(Deed::new(&block.by, What::Withhold, block.reason.clone()));
        }
        for heard in self.rules.ears.take(&head.event_id) {
            let name = self.rules.name_of(&heard.key);
            let usual = self.rules.set.hooks().iter().find(|hook| hook.key == heard.key).map(mode_of);
            for (mode, text) in heard.additions.into_iter().filter(|(_, text)| !text.is_empty()) {
                let what = match mode.or(usual).unwrap_or(Mode::Append) {
                    Mode::Append => What::Append,
                    Mode::Send => What::Send,
                };
                self.deeds.push(Deed::new(&name, what, text));
            }
        }
        self.trace(additions.trace);
    }

    /// Something else that is only watched.
    pub(crate) async fn life(&mut self, head: &Head, point: Point, event: impl FnOnce() -> LifeEvent) {
        if !self.listens_at(point) {
            return;
        }
        for watch in self.rules.dispatcher.watch(head, event()) {
            let attempt = watch.attempt(&self.rules.around).await;
            self.trace(attempt.trace);
        }
        self.rules.ears.take(&head.event_id);
    }

    /// Tells JSON hooks of a tool's run.
    fn run(&mut self, call: &ToolCall, outcome: ToolOutcome<'_>) {
        let run = ToolRun { name: &call.tool_name, args: &call.tool_input, outcome };
        if self.rules.set.listens_to_tools(run.moment()) {
            self.session.set_tool_names(call.tool_names.clone());
            self.tell(&WatchEvent::Tool(run));
        }
    }

    fn tell(&mut self, event: &WatchEvent<'_>) {
        self.rules.dispatcher.tell(&mut self.session, event, &mut self.effects);
        for Effect { hook, kind } in self.effects.drain(..) {
            let (what, text) = match kind {
                EffectKind::Fired => continue,
                EffectKind::Log { text, .. } => (What::Log, text),
                EffectKind::Queue { content, .. } => (What::Queue, content),
                EffectKind::Interrupt { resend: true } => (What::Interrupt, "and ask again".to_owned()),
                EffectKind::Interrupt { resend: false } => (What::Interrupt, String::new()),
                EffectKind::Resend => (What::Resend, String::new()),
                EffectKind::Redact { with } => (What::Redact, with),
                EffectKind::Block { reason } => (What::Block, reason),
            };
            self.deeds.push(Deed { hook, what, text });
        }
    }

    async fn gate(&mut self, head: &Head, event: GateEvent) {
        let Ruling { verdict, updated, trace } =
            self.rules.dispatcher.ask(&self.rules.around, head, event).await;
        let heard = self.rules.ears.take(&head.event_id);
        if let Verdict::Block(block) = verdict {
            self.deeds.push(Deed::new(&block.by, What::Block, block.reason));
        } else if !updated.is_empty() {
            for heard in heard {
                let names: Vec<&String> = heard.change.iter().flat_map(Map::keys).collect();
                let taken = updated.iter().filter(|(name, _)| names.contains(&name));
                let text: Vec<String> = taken.map(|(name, value)| format!("{name}: {value}")).collect();
                if !text.is_empty() {
                    let name = self.rules.name_of(&heard.key);
                    self.deeds.push(Deed::new(&name, What::Change, text.join(", ")));
                }
            }
        }
        self.trace(trace);
    }

    /// What the engine says of handlers that ran.
    fn trace(&mut self, trace: Trace) {
        for ran in trace.ran {
            if ran.console == dry::MARK {
                self.deeds.push(Deed::new(&ran.hook, What::Ask, ""));
            }
            match ran.decision {
                Decision::Timeout | Decision::Error => {
                    let why = ran.why.map(|why| why.to_string()).unwrap_or_default();
                    self.deeds.push(Deed::new(&ran.hook, What::Fault, why));
                }
                Decision::Block if ran.point.stage() == hookgate_core::point::Stage::Watch => {
                    self.deeds.push(Deed::new(&ran.hook, What::Object, ran.reason.unwrap_or_default()));
                }
                Decision::Block | Decision::Allow => {}
            }
        }
        // that a block is ignored is the objection above, and faults are told by what ran
        let told = [WarningCode::BlockIgnored, WarningCode::ErrorAllowed, WarningCode::TimeoutAllowed];
        for warning in trace.warnings.into_iter().filter(|warning| !told.contains(&warning.code)) {
            self.deeds.push(Deed::new(&warning.hook, What::Warn, warning.text));
        }
    }
}

fn mode_of(hook: &Hook) -> Mode {
    match &hook.work {
        Work::Handler { spec, .. } => spec.mode,
        Work::Actions(_) => Mode::Append,
    }
}

impl Ears {
    fn take(&self, event_id: &str) -> Vec<Heard> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(event_id).unwrap_or_default()
    }

    fn note(&self, call: Call<'_>, answer: &Answer) {
        if answer.additions.is_empty() && answer.updated_input.is_none() {
            return;
        }
        let heard = Heard {
            key: call.hook.clone(),
            additions: answer.additions.clone(),
            change: answer.updated_input.clone(),
        };
        let mut events = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        events.entry(call.facts.head().event_id.clone()).or_default().push(heard);
    }
}

impl fmt::Debug for Ears {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ears").finish_non_exhaustive()
    }
}

impl fmt::Debug for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rules").field("hooks", &self.set.hooks().len()).finish_non_exhaustive()
    }
}

impl Handler for Overheard {
    fn ask<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Result<Answer, Fault>> {
        Box::pin(async move {
            let answer = self.inner.ask(call).await?;
            self.ears.note(call, &answer);
            Ok(answer)
        })
    }
}
