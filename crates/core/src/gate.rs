//! The lifecycle chain: snapshot of the set, filter, handler under its limit, guard, record, first block wins.
//!
//! [`Dispatcher::ask`] waits for a verdict, [`Dispatcher::shape`] collects additions, [`Dispatcher::watch`] gives
//! the work of a watching event to whoever runs it in the background.

use crate::depth::{self, DEEPEST_INPUT};
use crate::dispatch::Dispatcher;
use crate::effect::HookName;
use crate::expr::{Bound, Fit};
use crate::facts::{Facts, GateEvent, Head, LifeEvent, ShapeEvent};
use crate::future::BoxFuture;
use crate::guard;
use crate::handler::{Answer, Call, Fallback, Fault, Handler, HandlerSpec, Mode, Why};
use crate::hook::{Hook, Listens, Work};
use crate::point::{Point, Stage};
use crate::record::{Record, RecordError, Recorder, hash_with, open_error, open_text};
use crate::set::{HookSet, Slot};
use crate::verdict::{Additions, Block, Cause, Decision, Ran, Ruling, Trace, Verdict, Warning, WarningCode};
use serde_json::Value;
use std::collections::HashSet;
use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

/// Deeper nested agents are stopped, whatever the hooks say.
pub const DEEPEST: u32 = 3;

/// What a record may take at least, also when the chain's time is used up.
const LEAST_FOR_RECORD: Duration = Duration::from_millis(250);

/// A clock that the door brings: core has none.
pub trait Timer: Send + Sync + fmt::Debug {
    /// Time since some moment that does not change.
    fn now(&self) -> Duration;
    /// Waits this long.
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()>;
}

/// What the chain needs beside the hooks.
#[derive(Debug, Clone)]
pub struct Surroundings {
    /// The clock.
    pub timer: Arc<dyn Timer>,
    /// Where records go.
    pub recorder: Arc<dyn Recorder>,
    /// How long a whole chain may take; each hook gets what is left of it at most.
    pub budget: Duration,
}

/// A watching hook with its event, to be run in the background.
#[derive(Debug, Clone)]
pub struct Watch {
    set: Arc<HookSet>,
    slot: Slot,
    facts: Arc<Facts>,
    warnings: Vec<Warning>,
}

/// One try of a watching hook, not recorded yet: who may try again records only how it ended.
#[derive(Debug)]
#[must_use = "a hook that ran leaves a record"]
pub struct Attempt {
    /// What ran, and what was odd.
    pub trace: Trace,
    /// Why it failed, if it did.
    pub failed: Option<Failed>,
    record: Option<Record>,
}

/// Why a watching hook failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failed {
    /// In words that may stand in the open.
    pub error: String,
    /// Trying again later may help.
    pub passing: bool,
}

/// What one hook's run came to.
struct Outcome {
    decision: Decision,
    answer: Answer,
    fault: Option<(Why, String)>,
    passing: bool,
    took: Duration,
}

impl Outcome {
    /// The kind of failure, in words that hold nothing from outside.
    fn why(&self) -> Why {
        match self.decision {
            Decision::Timeout => Why::from("no answer in time"),
            _ => self.fault.as_ref().map_or(Why::from("it gave no verdict"), |(why, _)| *why),
        }
    }
}

impl Dispatcher {
    /// Asks the gate's hooks about an event, in run order; the first block ends it.
    pub async fn ask(&self, around: &Surroundings, head: &Head, event: GateEvent) -> Ruling {
        if head.depth > DEEPEST {
            let reason = format!("agents nest deeper than {DEEPEST}");
            return block_of("hookgate".into(), reason, Cause::Limit, Trace::default());
        }
        if !event.is_bounded() {
            event.take_apart();
            let reason = format!("the input nests deeper than {DEEPEST_INPUT} levels");
            return block_of("hookgate".into(), reason, Cause::Limit, Trace::default());
        }
        let Some((set, due)) = self.due(event.point(), event.tool_name(), head) else {
            if around.recorder.wants_traces() {
                self.current().trace(&*around.recorder, &Facts::of_gate(head, event));
            }
            return Ruling::allow();
        };
        let facts = Facts::of_gate(head, event);
        set.trace(&*around.recorder, &facts);
        // boxed, so that the usual case, in which nobody is asked, moves a small future
        Box::pin(Chain::new(around, &set, facts).ask(due)).await
    }

    /// Asks the hooks what to add to an answer. They cannot block it, but one that may not be missing can
    /// withhold it by giving no answer.
    pub async fn shape(&self, around: &Surroundings, head: &Head, event: ShapeEvent) -> Additions {
        let Some((set, due)) = self.due(Point::PreResponse, "", head) else {
            if around.recorder.wants_traces() {
                self.current().trace(&*around.recorder, &Facts::of_shape(head, event));
            }
            return Additions::default();
        };
        let facts = Facts::of_shape(head, event);
        set.trace(&*around.recorder, &facts);
        Box::pin(Chain::new(around, &set, facts).shape(due)).await
    }

    /// The background work of an event that is only watched; empty if no hook concerns it.
    pub fn watch(&self, head: &Head, event: LifeEvent) -> Vec<Watch> {
        let event = event.bounded();
        let Some((set, due)) = self.due(event.point(), event.tool_name(), head) else {
            return Vec::new();
        };
        let facts = Arc::new(Facts::of_life(head, event));
        let mut bound = Bound::default();
        let mut seen = HashSet::new();
        let mut work = Vec::new();
        for slot in due {
            let Some(hook) = set.hook(slot) else { continue };
            let mut warnings = Vec::new();
            if fits(hook, &facts, &mut bound, &mut warnings)
                && (!set.repeats() || seen.insert(hook.key.clone()))
            {
                work.push(Watch { set: set.clone(), slot, facts: facts.clone(), warnings });
            }
        }
        work
    }
}

impl Dispatcher {
    /// Tells a recorder that wants it which hooks an event that is only watched concerns. A door calls it beside
    /// [`watch`](Dispatcher::watch), which has no recorder.
    pub fn trace_watched(&self, recorder: &dyn Recorder, head: &Head, event: &LifeEvent) {
        if recorder.wants_traces() && self.listens_at(event.point()) {
            self.current().trace(recorder, &Facts::of_life(head, event.clone().bounded()));
        }
    }

    /// The work of one hook on an event that was kept for later. Its condition was answered then; `None` if the hook
    /// is gone or no longer sees such events.
    pub fn watch_again(&self, hook: &str, facts: Facts) -> Option<Watch> {
        let set = self.current();
        let slot = set.place_of(hook, &facts)?;
        Some(Watch { set, slot, facts: Arc::new(facts), warnings: Vec::new() })
    }
}

impl Watch {
    /// The hook's key.
    pub fn hook(&self) -> Option<&Arc<str>> {
        self.set.hook(self.slot).map(|hook| &hook.key)
    }

    /// The event.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// The hook.
    pub fn definition(&self) -> Option<&Hook> {
        self.set.hook(self.slot)
    }

    /// Runs the hook, records it, and tells what was odd. Nobody waits for a verdict here.
    pub async fn run(self, around: &Surroundings) -> Trace {
        self.attempt(around).await.keep(around).await
    }

    /// Runs the hook and leaves it to the caller to record it.
    pub async fn attempt(self, around: &Surroundings) -> Attempt {
        let mut chain = Chain::new(around, &self.set, (*self.facts).clone());
        chain.trace.warnings = self.warnings;
        let (mut record, mut failed) = (None, None);
        if let Some(hook) = self.set.hook(self.slot) {
            // it stands alone: nobody else's time is left for it, or taken by it
            if let Work::Handler { spec, .. } = &hook.work {
                chain.deadline = around.timer.now().saturating_add(spec.timeout);
            }
            let outcome = chain.run(hook).await;
            match outcome.decision {
                Decision::Allow => {}
                Decision::Block => {
                    let text = "a block where nothing can be blocked any more";
                    chain.warn(hook, WarningCode::BlockIgnored, text.into());
                }
                // told by what ran, see [`Ran::why`]
                Decision::Timeout | Decision::Error => {}
            }
            chain.vet(hook, &outcome);
            let (decision, passing) = (outcome.decision, outcome.passing);
            let noted = chain.note(hook, outcome);
            if matches!(decision, Decision::Timeout | Decision::Error) {
                failed = Some(Failed { error: noted.error.clone().unwrap_or_default(), passing });
            }
            record = Some(noted);
        }
        Attempt { trace: chain.trace, failed, record }
    }
}

impl Attempt {
    /// Records it: there will be no further try.
    pub async fn keep(self, around: &Surroundings) -> Trace {
        if let Some(record) = self.record {
            let kept = around.recorder.record(record);
            kept_within(&*around.timer, kept, around.budget.max(LEAST_FOR_RECORD)).await.ok();
        }
        self.trace
    }
}

/// One event on its way through the hooks of a set.
struct Chain<'a> {
    around: &'a Surroundings,
    set: &'a HookSet,
    facts: Facts,
    json: String,
    deadline: Duration,
    changed: Vec<String>,
    refused: Vec<String>,
    /// The ids that had their turn; kept only where one stands for several hooks.
    seen: HashSet<Arc<str>>,
    trace: Trace,
}

impl<'a> Chain<'a> {
    fn new(around: &'a Surroundings, set: &'a HookSet, facts: Facts) -> Self {
        let deadline = around.timer.now().saturating_add(around.budget);
        Chain {
            around,
            set,
            facts,
            json: String::new(),
            deadline,
            changed: Vec::new(),
            refused: Vec::new(),
            seen: HashSet::new(),
            trace: Trace::default(),
        }
    }

    /// The next hook whose condition lets the event through. A handler may have changed the event since the last one,
    /// so what is bound for conditions lives only from one handler to the next.
    fn next(&mut self, due: &mut impl Iterator<Item = Slot>) -> Option<&'a Hook> {
        let mut bound = Bound::default();
        due.filter_map(|slot| self.set.hook(slot)).find(|hook| {
            fits(hook, &self.facts, &mut bound, &mut self.trace.warnings)
                && (!self.set.repeats() || self.seen.insert(hook.key.clone()))
        })
    }

    async fn ask(mut self, due: Vec<Slot>) -> Ruling {
        let mut due = due.into_iter();
        while let Some(hook) = self.next(&mut due) {
            let outcome = self.run(hook).await;
            let decision = outcome.decision;
            let stop = self.judge(hook, &outcome);
            if decision == Decision::Allow {
                self.vet(hook, &outcome);
            }
            if let Err(why) = self.record(hook, outcome).await {
                let reason = format!("hook {}: its record could not be written: {why}", hook.name);
                return block_of(hook.name.clone(), reason, Cause::Record, self.trace);
            }
            if let Some((reason, cause)) = stop {
                return block_of(hook.name.clone(), reason, cause, self.trace);
            }
        }
        let updated =
            self.changed.iter().filter_map(|name| Some((name.clone(), self.facts.get(name)?.clone())));
        Ruling { verdict: Verdict::Allow, updated: updated.collect(), trace: self.trace }
    }

    async fn shape(mut self, due: Vec<Slot>) -> Additions {
        let mut additions = Additions::default();
        let mut due = due.into_iter();
        while let Some(hook) = self.next(&mut due) {
            let mut outcome = self.run(hook).await;
            match outcome.decision {
                Decision::Allow => collect(hook, &mut outcome.answer, &mut additions),
                Decision::Block | Decision::Timeout | Decision::Error => {
                    self.missing(hook, &outcome, &mut additions);
                }
            }
            self.vet(hook, &outcome);
            self.record(hook, outcome).await.ok();
        }
        additions.trace = self.trace;
        additions
    }

    /// A hook at pre_response that adds nothing: the answer is withheld if it says that it rather loses the answer than
    /// its notice.
    fn missing(&mut self, hook: &Hook, outcome: &Outcome, additions: &mut Additions) {
        let Work::Handler { spec, .. } = &hook.work else { return };
        let reason = outcome.answer.reason.as_deref().unwrap_or_default();
        let said = || Block::by_hook(hook.name.clone(), reason);
        let none = || {
            let (reason, cause) = no_verdict(hook, outcome);
            Block { by: hook.name.clone(), reason, cause }
        };
        let (withholds, block) = match outcome.decision {
            Decision::Allow => return,
            Decision::Block => (spec.withholds.failed, said()),
            Decision::Timeout => (spec.withholds.late, none()),
            Decision::Error => (spec.withholds.failed, none()),
        };
        if withholds {
            additions.withheld.get_or_insert(block);
        } else if outcome.decision == Decision::Block {
            let text = "an answer cannot be blocked, only added to";
            self.warn(hook, WarningCode::BlockIgnored, text.into());
        }
    }

    /// Runs a hook's handler under its limit and what is left of the chain's.
    async fn run(&mut self, hook: &Hook) -> Outcome {
        let started = self.around.timer.now();
        let left = self.deadline.saturating_sub(started);
        let result = match &hook.work {
            Work::Handler { spec, run: Some(handler) } => {
                if self.json.is_empty() {
                    self.json = self.facts.to_json();
                }
                let within = spec.timeout.min(left);
                let call = Call { facts: &self.facts, json: &self.json, within, hook: &hook.key };
                ask_within(&*self.around.timer, handler.as_ref(), call).await
            }
            Work::Handler { spec, run: None } => {
                let detail = format!("nothing here can run a {}", spec.type_name());
                Err(Fault::failed("nothing here can run its handler", detail))
            }
            Work::Actions(_) => Err(Fault::failed("it has no handler", "actions give no verdict")),
        };
        let result = result.and_then(with_bounded_change);
        let took = self.around.timer.now().saturating_sub(started);
        judged(result, took, self.facts.point().stage())
    }

    /// What a decision means at a gate: nothing, or a block with its reason.
    fn judge(&mut self, hook: &Hook, outcome: &Outcome) -> Option<(String, Cause)> {
        let Work::Handler { spec, .. } = &hook.work else {
            return Some((format!("hook {} cannot decide", hook.name), Cause::Error));
        };
        let (fallback, code) = match outcome.decision {
            Decision::Allow => return None,
            Decision::Block => {
                let reason = outcome.answer.reason.as_deref().unwrap_or_default();
                let block = Block::by_hook(hook.name.clone(), reason);
                return Some((block.reason, block.cause));
            }
            Decision::Timeout => (spec.on_timeout, WarningCode::TimeoutAllowed),
            Decision::Error => (spec.on_error, WarningCode::ErrorAllowed),
        };
        match fallback {
            Fallback::Block => Some(no_verdict(hook, outcome)),
            Fallback::Allow => {
                let text = outcome.fault.as_ref().map(|(_, detail)| open_text(detail)).unwrap_or_default();
                self.warn(hook, code, text);
                None
            }
        }
    }

    /// Lets the guard look at what a hook wants to change; later hooks see what it let through.
    fn vet(&mut self, hook: &Hook, outcome: &Outcome) {
        self.refused.clear();
        let Some(proposed) = &outcome.answer.updated_input else { return };
        let mut vetted = guard::vet(hook, &self.facts, proposed);
        for (code, text) in std::mem::take(&mut vetted.refusals) {
            self.warn(hook, code, text);
        }
        self.refused = std::mem::take(&mut vetted.refused_fields);
        for name in vetted.apply(&mut self.facts) {
            self.json.clear();
            if !self.changed.contains(&name) {
                self.changed.push(name);
            }
        }
    }

    fn warn(&mut self, hook: &Hook, code: WarningCode, text: String) {
        self.trace.warnings.push(Warning { hook: hook.name.clone(), code, text });
    }

    async fn record(&mut self, hook: &Hook, outcome: Outcome) -> Result<(), RecordError> {
        let record = self.note(hook, outcome);
        // a hook that used the chain's time up still gets its record
        let left = self.deadline.saturating_sub(self.around.timer.now()).max(LEAST_FOR_RECORD);
        kept_within(&*self.around.timer, self.around.recorder.record(record), left).await
    }

    /// Puts what ran into the trace, and gives its record.
    fn note(&mut self, hook: &Hook, outcome: Outcome) -> Record {
        let why = matches!(outcome.decision, Decision::Timeout | Decision::Error).then(|| outcome.why());
        let Outcome { decision, answer, fault, took, .. } = outcome;
        let point = self.facts.point();
        // what went wrong, or why it said no
        let why_not = match decision {
            Decision::Block => answer.reason.clone(),
            _ => fault.map(|(_, detail)| detail),
        };
        self.trace.ran.push(Ran {
            hook: hook.name.clone(),
            point,
            decision,
            why,
            took,
            console: answer.console,
            reason: (decision == Decision::Block).then(|| answer.reason.clone().unwrap_or_default()),
        });
        let head = self.facts.head();
        Record {
            hook: hook.key.clone(),
            label: hook.name.clone(),
            hook_version: hook.version.digits(),
            session_id: head.session_id.clone(),
            tenant_id: head.tenant_id.clone(),
            agent_id: head.agent_id.clone(),
            event_id: head.event_id.clone(),
            event: crate::word::Word::as_str(self.facts.point()),
            tool_name: self.facts.get("toolName").and_then(Value::as_str).map(str::to_owned),
            input_hash: hash_with(&self.facts, |canonical| self.around.recorder.digest(canonical)),
            decision,
            cause: match decision {
                Decision::Allow | Decision::Block => None,
                Decision::Timeout => Some(Cause::Timeout),
                Decision::Error => Some(Cause::Error),
            },
            duration: took,
            error: why_not.as_deref().map(|text| open_error(text, &self.facts)),
            error_detail: why_not,
            refused_fields: std::mem::take(&mut self.refused),
            tokens: answer.tokens,
            times: 1,
            trace_id: head.trace_id.clone(),
        }
    }
}

/// The second filter: scope and matcher were answered by the set, the rest is answered here. A condition that cannot be
/// answered excuses nobody.
fn fits(hook: &Hook, facts: &Facts, bound: &mut Bound, warnings: &mut Vec<Warning>) -> bool {
    let Listens::Point { filter, .. } = &hook.listens else { return true };
    match filter.fits(facts, bound) {
        Fit::Yes => true,
        Fit::No => false,
        Fit::Unsure(why) => {
            let source = filter.if_expr.as_ref().map(|condition| condition.source()).unwrap_or_default();
            let text = format!("if_expr `{source}`: {why}; the hook runs");
            warnings.push(Warning { hook: hook.name.clone(), code: WarningCode::IfExprFailed, text });
            true
        }
    }
}

/// Waits for the handler or the clock, whichever is first.
async fn ask_within(timer: &dyn Timer, handler: &dyn Handler, call: Call<'_>) -> Result<Answer, Fault> {
    if call.within.is_zero() {
        return Err(Fault::Timeout);
    }
    let mut asked = handler.ask(call);
    let mut clock: Option<BoxFuture<'static, ()>> = None;
    poll_fn(|context| {
        if let Poll::Ready(result) = asked.as_mut().poll(context) {
            return Poll::Ready(result);
        }
        // made only when the answer did not come at once
        let clock = clock.get_or_insert_with(|| timer.sleep(call.within));
        clock.as_mut().poll(context).map(|()| Err(Fault::Timeout))
    })
    .await
}

/// Handlers that read JSON cannot give a change without end, those of other makers can.
fn with_bounded_change(mut answer: Answer) -> Result<Answer, Fault> {
    if let Some(change) = answer.updated_input.take() {
        let why = "its change nests too deep";
        answer.updated_input = Some(depth::bounded_members(change).ok_or_else(|| Fault::failed(why, why))?);
    }
    Ok(answer)
}

/// Waits for the record or the clock, whichever is first.
async fn kept_within(
    timer: &dyn Timer,
    mut kept: BoxFuture<'_, Result<(), RecordError>>,
    within: Duration,
) -> Result<(), RecordError> {
    let mut clock: Option<BoxFuture<'static, ()>> = None;
    poll_fn(|context| {
        if let Poll::Ready(result) = kept.as_mut().poll(context) {
            return Poll::Ready(result);
        }
        let clock = clock.get_or_insert_with(|| timer.sleep(within));
        clock.as_mut().poll(context).map(|()| Err(RecordError("the store did not take it in time".into())))
    })
    .await
}

/// Reads the handler's words. Whatever is no decision is a fault; at points that decide nothing, silence is fine.
fn judged(result: Result<Answer, Fault>, took: Duration, stage: Stage) -> Outcome {
    let fault = |why: &'static str, detail: String| Some((Why::from(why), detail));
    let late = |detail: &str| fault("it gave no answer in time", detail.to_owned());
    let passing = match &result {
        Ok(answer) => answer.decision.as_deref() == Some("timeout"),
        Err(Fault::Timeout) => true,
        Err(Fault::Failed { passing, .. }) => *passing,
    };
    let (decision, answer, fault) = match result {
        Ok(answer) => match (answer.decision.as_deref(), stage) {
            (Some("allow"), _) | (None, Stage::Shape | Stage::Watch) => (Decision::Allow, answer, None),
            (Some("block"), _) => (Decision::Block, answer, None),
            (Some("timeout"), _) => {
                (Decision::Timeout, answer, late("the handler says that it ran out of time"))
            }
            (Some(word), _) => {
                let detail = format!("`{}` is no decision; expected allow or block", short(word));
                (Decision::Error, answer, fault("its answer is no decision", detail))
            }
            (None, Stage::Gate) => {
                let fault = fault("its answer has no decision", "the answer has no decision".into());
                (Decision::Error, answer, fault)
            }
        },
        Err(Fault::Timeout) => (Decision::Timeout, Answer::default(), late("no answer in time")),
        Err(Fault::Failed { why, detail, .. }) => (Decision::Error, Answer::default(), Some((why, detail))),
    };
    Outcome { decision, answer, fault, passing, took }
}

fn short(word: &str) -> String {
    word.chars().take(40).collect()
}

/// The reason for a block that no hook decided. It names the kind of fault and does not carry its text, which may
/// hold secrets.
fn no_verdict(hook: &Hook, outcome: &Outcome) -> (String, Cause) {
    match outcome.decision {
        Decision::Timeout => {
            let took = outcome.took.as_millis();
            (format!("blocked because hook {} gave no answer in time ({took} ms)", hook.name), Cause::Timeout)
        }
        _ => (format!("blocked because hook {} failed: {}", hook.name, outcome.why()), Cause::Error),
    }
}

fn collect(hook: &Hook, answer: &mut Answer, additions: &mut Additions) {
    let mode_of_hook = match &hook.work {
        Work::Handler { spec: HandlerSpec { mode, .. }, .. } => *mode,
        Work::Actions(_) => Mode::Append,
    };
    for (mode, text) in answer.additions.drain(..).filter(|(_, text)| !text.is_empty()) {
        match mode.unwrap_or(mode_of_hook) {
            Mode::Append => additions.append.push(text),
            Mode::Send => additions.send.push(text),
        }
    }
}

fn block_of(by: HookName, reason: String, cause: Cause, trace: Trace) -> Ruling {
    Ruling { verdict: Verdict::Block(Block { by, reason, cause }), updated: Vec::new(), trace }
}
