//! The lifecycle chain: snapshot of the set, filter, handler under its limit, guard, record, first block wins.
//!
//! [`Dispatcher::ask`] waits for a verdict, [`Dispatcher::shape`] collects additions, [`Dispatcher::watch`] gives
//! the work of a watching event to whoever runs it in the background.

use crate::dispatch::Dispatcher;
use crate::effect::HookName;
use crate::expr::Fit;
use crate::facts::{Facts, GateEvent, Head, LifeEvent, ShapeEvent};
use crate::future::BoxFuture;
use crate::guard;
use crate::handler::{Answer, Call, Fallback, Fault, Handler, HandlerSpec, Mode};
use crate::hook::{Hook, Listens, Work};
use crate::point::{Point, Stage};
use crate::record::{Record, RecordError, Recorder, hash_with, open_error, open_text};
use crate::set::{HookSet, Slot};
use crate::verdict::{Additions, Block, Cause, Decision, Ran, Ruling, Trace, Verdict, Warning, WarningCode};
use serde_json::Value;
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

/// What one hook's run came to.
struct Outcome {
    decision: Decision,
    answer: Answer,
    fault: Option<String>,
    took: Duration,
}

impl Dispatcher {
    /// Asks the gate's hooks about an event, in run order; the first block ends it.
    pub async fn ask(&self, around: &Surroundings, head: &Head, event: GateEvent) -> Ruling {
        if head.depth > DEEPEST {
            let reason = format!("agents nest deeper than {DEEPEST}");
            return block_of("hookgate".into(), reason, Cause::Limit, Trace::default());
        }
        let set = self.current();
        if !set.listens_at(event.point()) {
            return Ruling { verdict: Verdict::Allow, updated: Vec::new(), trace: Trace::default() };
        }
        Chain::new(around, &set, Facts::of_gate(head, event)).ask().await
    }

    /// Asks the hooks what to add to an answer. They cannot block it, but one that may not be missing can
    /// withhold it by giving no answer.
    pub async fn shape(&self, around: &Surroundings, head: &Head, event: ShapeEvent) -> Additions {
        let set = self.current();
        if !set.listens_at(Point::PreResponse) {
            return Additions::default();
        }
        Chain::new(around, &set, Facts::of_shape(head, event)).shape().await
    }

    /// The background work of an event that is only watched; empty if no hook concerns it.
    pub fn watch(&self, head: &Head, event: LifeEvent) -> Vec<Watch> {
        let set = self.current();
        if !set.listens_at(event.point()) {
            return Vec::new();
        }
        let facts = Arc::new(Facts::of_life(head, event));
        let mut warnings = Vec::new();
        let mut work = Vec::new();
        for slot in set.at_point(&facts) {
            let Some(hook) = set.hook(slot) else { continue };
            if fits(hook, &facts, &mut warnings) {
                let warnings = std::mem::take(&mut warnings);
                work.push(Watch { set: set.clone(), slot, facts: facts.clone(), warnings });
            }
        }
        work
    }
}

impl Dispatcher {
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

    /// Runs the hook, records it, and tells what was odd. Nobody waits for a verdict here.
    pub async fn run(self, around: &Surroundings) -> Trace {
        let mut chain = Chain::new(around, &self.set, (*self.facts).clone());
        chain.trace.warnings = self.warnings;
        if let Some(hook) = self.set.hook(self.slot) {
            let outcome = chain.run(hook).await;
            if outcome.decision == Decision::Block {
                chain.warn(
                    hook,
                    WarningCode::BlockIgnored,
                    "a block where nothing can be blocked any more".into(),
                );
            }
            chain.vet(hook, &outcome);
            chain.record(hook, outcome).await.ok();
        }
        chain.trace
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
            trace: Trace::default(),
        }
    }

    async fn ask(mut self) -> Ruling {
        for slot in self.set.at_point(&self.facts) {
            let Some(hook) = self.set.hook(slot) else { continue };
            if !fits(hook, &self.facts, &mut self.trace.warnings) {
                continue;
            }
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

    async fn shape(mut self) -> Additions {
        let mut additions = Additions::default();
        for slot in self.set.at_point(&self.facts) {
            let Some(hook) = self.set.hook(slot) else { continue };
            if !fits(hook, &self.facts, &mut self.trace.warnings) {
                continue;
            }
            let mut outcome = self.run(hook).await;
            match outcome.decision {
                Decision::Allow => collect(hook, &mut outcome.answer, &mut additions),
                Decision::Block => {
                    self.warn(
                        hook,
                        WarningCode::BlockIgnored,
                        "an answer cannot be blocked, only added to".into(),
                    );
                }
                Decision::Timeout | Decision::Error => self.withhold(hook, &outcome, &mut additions),
            }
            self.vet(hook, &outcome);
            self.record(hook, outcome).await.ok();
        }
        additions.trace = self.trace;
        additions
    }

    /// A hook that says `on_timeout: block` at pre_response would rather lose the answer than its notice.
    fn withhold(&mut self, hook: &Hook, outcome: &Outcome, additions: &mut Additions) {
        let Work::Handler { spec, .. } = &hook.work else { return };
        if spec.withholds && additions.withheld.is_none() {
            let (reason, cause) = no_verdict(hook, outcome);
            additions.withheld = Some(Block { by: hook.name.clone(), reason, cause });
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
                Err(Fault::Failed(format!("nothing here can run a {}", spec.kind())))
            }
            Work::Actions(_) => Err(Fault::Failed("actions give no verdict".into())),
        };
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
                let reason = outcome.answer.reason.as_deref().filter(|reason| !reason.trim().is_empty());
                let reason = reason.unwrap_or("no reason given");
                return Some((format!("blocked by hook {}: {reason}", hook.name), Cause::Decision));
            }
            Decision::Timeout => (spec.on_timeout, WarningCode::TimeoutAllowed),
            Decision::Error => (spec.on_error, WarningCode::ErrorAllowed),
        };
        match fallback {
            Fallback::Block => Some(no_verdict(hook, outcome)),
            Fallback::Allow => {
                let text = outcome.fault.as_deref().map(open_text).unwrap_or_default();
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
        let Outcome { decision, answer, fault, took } = outcome;
        self.trace.ran.push(Ran { hook: hook.name.clone(), decision, took, console: answer.console });
        let head = self.facts.head();
        let record = Record {
            hook: hook.key.clone(),
            label: hook.name.clone(),
            hook_version: hook.version.clone(),
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
            error: fault.as_deref().map(|fault| open_error(fault, &self.facts)),
            error_detail: fault,
            refused_fields: std::mem::take(&mut self.refused),
            tokens: answer.tokens,
            trace_id: head.trace_id.clone(),
        };
        // a hook that used the chain's time up still gets its record
        let left = self.deadline.saturating_sub(self.around.timer.now()).max(LEAST_FOR_RECORD);
        kept_within(&*self.around.timer, self.around.recorder.record(record), left).await
    }
}

/// The second filter: scope and matcher were answered by the set, the condition is answered here. A condition that
/// cannot be answered excuses nobody.
fn fits(hook: &Hook, facts: &Facts, warnings: &mut Vec<Warning>) -> bool {
    let Listens::Point { if_expr: Some(condition), .. } = &hook.listens else { return true };
    match condition.fits(facts) {
        Fit::Yes => true,
        Fit::No => false,
        Fit::Unsure(why) => {
            let text = format!("if_expr `{}`: {why}; the hook runs", condition.source());
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
    let (decision, answer, fault) = match result {
        Ok(answer) => match (answer.decision.as_deref(), stage) {
            (Some("allow"), _) | (None, Stage::Shape | Stage::Watch) => (Decision::Allow, answer, None),
            (Some("block"), _) => (Decision::Block, answer, None),
            (Some("timeout"), _) => {
                (Decision::Timeout, answer, Some("the handler says that it ran out of time".into()))
            }
            (Some(word), _) => {
                let fault = format!("`{}` is no decision; expected allow or block", short(word));
                (Decision::Error, answer, Some(fault))
            }
            (None, Stage::Gate) => (Decision::Error, answer, Some("the answer has no decision".into())),
        },
        Err(Fault::Timeout) => (Decision::Timeout, Answer::default(), Some("no answer in time".into())),
        Err(Fault::Failed(text)) => (Decision::Error, Answer::default(), Some(text)),
    };
    Outcome { decision, answer, fault, took }
}

fn short(word: &str) -> String {
    word.chars().take(40).collect()
}

/// The reason for a block that no hook decided. It does not carry the fault's text, which may hold secrets.
fn no_verdict(hook: &Hook, outcome: &Outcome) -> (String, Cause) {
    match outcome.decision {
        Decision::Timeout => {
            let took = outcome.took.as_millis();
            (format!("blocked because hook {} gave no answer in time ({took} ms)", hook.name), Cause::Timeout)
        }
        _ => (format!("blocked because hook {} failed; its record tells why", hook.name), Cause::Error),
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
