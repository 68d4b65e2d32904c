//! Hooks that ask a language model.
//!
//! | part | contract |
//! |---|---|
//! | when | a matcher or a condition is required: a question is slow and costs money |
//! | question | the policy as system message; the event as JSON in the user message, between two marks with a random code that the event does not hold |
//! | verdict | a forced call of the tool `verdict {decision, reason}`; a model without tools answers with one JSON object, also in a code fence |
//! | no verdict | prose, an allow that is only quoted, JSON that breaks off: a fault |
//! | several verdicts | the strictest counts |
//! | memory | a verdict is kept for ten minutes, by hook and input; a repeated question costs nothing |
//! | cost | at most `max_per_turn` questions (20 by default) of a hook in a turn, and the tenant's budget; both before the call. Over them is a fault, so a gate blocks. The tokens stand in the record |
//! | size | an event of more than 128 KiB is not asked about, and of an answer no more than 256 KiB are read: a fault |
//! | hooks | the question fires none: the model is asked directly |
//!
//! A model that is down again and again rests for a while, see [`crate::breaker`].

mod cache;
mod question;
mod spend;
mod verdict;

pub use spend::{Budget, TokensPerTenant, Turns, Unlimited};

use crate::breaker::{Breaker, BreakerLimits};
use cache::Cache;
use hookgate_core::future::BoxFuture;
use hookgate_core::handler::{Answer, Call, Fault, Handler, HandlerKind, HandlerSpec, Why};
use hookgate_core::point::Point;
use hookgate_core::record::input_hash;
use hookgate_llm::{Error, Model, Usage};
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Questions a turn where a hook does not say.
const DEFAULT_PER_TURN: u64 = 20;
/// A longer event is not asked about.
const LONGEST_EVENT: usize = 128 * 1024;
/// What a question costs beside the event and the policy, in tokens.
const OVERHEAD: usize = 400;
/// A longer answer, thoughts and all, is not read to its end.
const LONGEST_ANSWER: usize = 256 * 1024;
const NO_RANDOM: &str = "the system has no random numbers";

/// The model that judges.
#[derive(Clone)]
pub struct Judge {
    /// Who is asked.
    pub model: Arc<dyn Model>,
    /// The model's name as its provider spells it.
    pub name: String,
}

/// Finds the judge for a hook: by the name in its `model`, or the door's own if it names none. The error is one
/// sentence.
pub type Judges = dyn Fn(Option<&str>) -> Result<Judge, String> + Send + Sync;

/// What all prompt hooks of a door share.
#[derive(Debug, Clone)]
pub struct Spending {
    /// The questions of each session's turn.
    pub turns: Turns,
    /// The tenants' budget.
    pub budget: Arc<dyn Budget>,
}

impl Default for Spending {
    fn default() -> Self {
        Spending { turns: Turns::default(), budget: Arc::new(Unlimited) }
    }
}

/// A prompt hook's handler.
struct PromptHandler {
    policy: String,
    judge: Judge,
    per_turn: u64,
    spending: Spending,
    cache: Cache,
    /// Counts what the model itself fails at: used-up budgets are no faults of it.
    breaker: Breaker,
    /// The model said that it has no tools.
    without_tools: AtomicBool,
}

/// The maker of prompt handlers for a [`Workshop`](crate::workshop::Workshop).
pub fn maker(
    judges: Arc<Judges>,
    spending: Spending,
) -> impl Fn(&HandlerSpec, &Path) -> Result<Arc<dyn Handler>, String> + Send + Sync + 'static {
    move |spec, _| {
        let HandlerKind::Prompt { prompt, model, max_per_turn } = &spec.kind else {
            return Err("is no prompt handler".into());
        };
        let handler = PromptHandler {
            policy: prompt.clone(),
            judge: judges(model.as_deref()).map_err(|why| format!("model: {why}"))?,
            per_turn: max_per_turn.unwrap_or(DEFAULT_PER_TURN),
            spending: spending.clone(),
            cache: Cache::default(),
            breaker: Breaker::new(BreakerLimits::default()),
            without_tools: AtomicBool::new(false),
        };
        Ok(Arc::new(handler))
    }
}

impl PromptHandler {
    async fn judge(&self, call: Call<'_>) -> Result<Answer, Fault> {
        if call.json.len() > LONGEST_EVENT {
            let detail = format!("the event is too long to be asked about ({} KiB)", call.json.len() / 1024);
            return Err(Fault::failed("the event is too long to be asked about", detail));
        }
        let hash = input_hash(call.facts);
        if let Some(answer) = self.cache.get(&hash) {
            return Ok(answer);
        }
        let head = call.facts.head();
        let first = call.facts.point() == Point::UserPromptSubmit;
        // a sub-agent's questions are its user's
        let session = head.root_session_id.as_ref().unwrap_or(&head.session_id);
        self.spending.turns.take(
            &spend::name_of(head.tenant_id.as_deref(), session),
            call.hook,
            self.per_turn,
            first,
        )?;
        let tenant = head.tenant_id.as_deref();
        let guess = tokens(call.json.len().saturating_add(self.policy.len()));
        let spent = |detail| Fault::failed("the budget for questions is used up", detail);
        self.spending.budget.take(tenant, guess).map_err(spent)?;
        let pass = self.breaker.enter(call.within)?;
        let asked = self.ask_model(call.json).await;
        pass.told(&asked);
        let (answer, usage) = asked?;
        let told = usage.input_tokens.is_some() || usage.output_tokens.is_some();
        let cost = usage.input_tokens.unwrap_or(0).saturating_add(usage.output_tokens.unwrap_or(0));
        self.spending.budget.settle(tenant, guess, if told { cost } else { guess });
        let mut verdict = verdict::of(&answer)?;
        // a judge judges: it changes nothing and adds nothing
        (verdict.updated_input, verdict.additions) = (None, Vec::new());
        if matches!(verdict.decision.as_deref(), Some("allow" | "block")) {
            self.cache.put(hash, verdict.clone());
        }
        verdict.tokens = told.then_some(cost);
        Ok(verdict)
    }

    /// Asks, and once more without the tool if the model has none.
    async fn ask_model(&self, event: &str) -> Result<(hookgate_llm::Message, Usage), Fault> {
        loop {
            let with_tool = !self.without_tools.load(Ordering::Relaxed);
            let request = question::request(&self.policy, &self.judge.name, event, with_tool)
                .ok_or_else(|| Fault::failed(NO_RANDOM, NO_RANDOM))?;
            let asked = match self.judge.model.stream(request).await {
                Ok(stream) => hookgate_llm::Answer::collect_at_most(stream, LONGEST_ANSWER).await,
                Err(error) => Err(error),
            };
            match asked {
                Ok(answer) => return Ok((answer.message, answer.usage)),
                Err(error) if with_tool && knows_no_tools(&error) => {
                    self.without_tools.store(true, Ordering::Relaxed);
                }
                Err(error) => {
                    let (why, detail) = (words(&error), format!("the judge cannot be asked: {error}"));
                    let passing = error.retry_may_help();
                    return Err(if passing {
                        Fault::passing(why, detail)
                    } else {
                        Fault::failed(why, detail)
                    });
                }
            }
        }
    }
}

/// What kind of failure this is.
fn words(error: &Error) -> Why {
    match error {
        Error::Setup(_) => "its judge is not set up".into(),
        Error::Connect { .. } => "no connection to its judge could be made".into(),
        Error::Timeout { .. } => "its judge took too long".into(),
        Error::Refused(refusal) => {
            Why::numbered("its judge's provider answered with status", refusal.status.into())
        }
        Error::Provider { .. } | Error::Cut { .. } => "its judge's answer broke off".into(),
        Error::Malformed { .. } => "its judge's answer has an unknown form".into(),
        Error::TooLarge { .. } => "its judge's answer is too long".into(),
        _ => "its judge failed".into(),
    }
}

/// A rough count, for a budget that is settled afterwards.
fn tokens(bytes: usize) -> u64 {
    u64::try_from((bytes / 3).saturating_add(OVERHEAD)).unwrap_or(u64::MAX)
}

fn knows_no_tools(error: &Error) -> bool {
    match error {
        Error::Refused(refusal) => {
            matches!(refusal.status, 400 | 404 | 422 | 500 | 501)
                && refusal.message.to_lowercase().contains("tool")
        }
        _ => false,
    }
}

impl Handler for PromptHandler {
    fn ask<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Result<Answer, Fault>> {
        Box::pin(self.judge(call))
    }
}

impl fmt::Debug for Judge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Judge").field("model", &self.model.name()).field("name", &self.name).finish()
    }
}

impl fmt::Debug for PromptHandler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PromptHandler").field("judge", &self.judge).finish_non_exhaustive()
    }
}
