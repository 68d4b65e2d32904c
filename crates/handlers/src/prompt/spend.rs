//! What questions may cost: so many a turn, so many tokens a tenant. Both are looked at before a question is asked.

use hookgate_core::handler::Fault;
use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Sessions of one tenant whose questions are counted at a time.
const MOST_SESSIONS: usize = 10_000;
/// A session that asks nothing for so long begins a new turn with its next question.
const IDLE: Duration = Duration::from_secs(600);

/// Questions of each session's turn, hook by hook. Clones share the counts.
///
/// A turn begins with [`Turns::begin`], which a door calls when the user's input arrives; without that call it ends
/// after ten minutes without a question. A hook that listens at `user_prompt_submit` begins anew at each event.
#[derive(Debug, Clone, Default)]
pub struct Turns {
    /// By tenant, and by session.
    tenants: Arc<Mutex<HashMap<String, HashMap<String, Turn>>>>,
}

#[derive(Debug)]
struct Turn {
    last: Instant,
    asked: HashMap<Arc<str>, u64>,
}

impl Turns {
    /// The session's next turn begins.
    pub fn begin(&self, session: &str) {
        let (tenant, session) = tenant_of(session);
        let mut tenants = self.tenants.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sessions) = tenants.get_mut(tenant) {
            sessions.remove(session);
            if sessions.is_empty() {
                tenants.remove(tenant);
            }
        }
    }

    /// The next turn of a tenant's session begins: tenants may use the same names of sessions.
    pub fn begin_of(&self, tenant: Option<&str>, session: &str) {
        self.begin(&name_of(tenant, session));
    }

    /// How many questions this hook has asked in the session's turn.
    pub fn asked(&self, session: &str, hook: &str) -> u64 {
        let (tenant, session) = tenant_of(session);
        let tenants = self.tenants.lock().unwrap_or_else(PoisonError::into_inner);
        let turn = tenants.get(tenant).and_then(|sessions| sessions.get(session));
        turn.and_then(|turn| turn.asked.get(hook).copied()).unwrap_or(0)
    }

    /// Counts one more question, unless that would be too many.
    pub(super) fn take(&self, session: &str, hook: &Arc<str>, most: u64, first: bool) -> Result<(), Fault> {
        let (tenant, session) = tenant_of(session);
        let mut tenants = self.tenants.lock().unwrap_or_else(PoisonError::into_inner);
        let sessions = tenants.entry(tenant.to_owned()).or_default();
        if sessions.len() >= MOST_SESSIONS && !sessions.contains_key(session) {
            sessions.retain(|_, turn| turn.last.elapsed() < IDLE);
            if sessions.len() >= MOST_SESSIONS {
                let why = "too many sessions ask questions at the same time";
                return Err(Fault::failed(why, why));
            }
        }
        let now = Instant::now();
        let new = || Turn { last: now, asked: HashMap::new() };
        let turn = sessions.entry(session.to_owned()).or_insert_with(new);
        if turn.last.elapsed() >= IDLE {
            turn.asked.clear();
        }
        turn.last = now;
        let count = turn.asked.entry(hook.clone()).or_default();
        if first {
            *count = 0;
        }
        if *count >= most {
            let detail = format!("its {most} questions of this turn are used up (max_per_turn)");
            return Err(Fault::failed("its questions of this turn are used up", detail));
        }
        *count = count.saturating_add(1);
        Ok(())
    }
}

/// The name under which a session's turn is counted.
pub(super) fn name_of<'s>(tenant: Option<&str>, session: &'s str) -> Cow<'s, str> {
    match tenant {
        Some(tenant) => format!("{tenant}\0{session}").into(),
        None => session.into(),
    }
}

/// The tenant and the session of such a name.
fn tenant_of(name: &str) -> (&str, &str) {
    name.split_once('\0').unwrap_or(("", name))
}

/// What a tenant may spend on questions.
pub trait Budget: Send + Sync + fmt::Debug {
    /// Sets tokens aside before a question. The error says why there are none.
    fn take(&self, tenant: Option<&str>, tokens: u64) -> Result<(), String>;
    /// Tells what a question cost for which `taken` tokens were set aside.
    fn settle(&self, tenant: Option<&str>, taken: u64, cost: u64);
}

/// No bound but `max_per_turn`.
#[derive(Debug, Clone, Copy)]
pub struct Unlimited;

impl Budget for Unlimited {
    fn take(&self, _: Option<&str>, _: u64) -> Result<(), String> {
        Ok(())
    }

    fn settle(&self, _: Option<&str>, _: u64, _: u64) {}
}

/// So many tokens for each tenant in a span of time, counted in this process.
#[derive(Debug)]
pub struct TokensPerTenant {
    tokens: u64,
    span: Duration,
    spent: Mutex<HashMap<Option<String>, (Instant, u64)>>,
}

impl TokensPerTenant {
    /// At most `tokens` in each `span`.
    pub fn new(tokens: u64, span: Duration) -> TokensPerTenant {
        TokensPerTenant { tokens, span, spent: Mutex::default() }
    }
}

impl Budget for TokensPerTenant {
    fn take(&self, tenant: Option<&str>, tokens: u64) -> Result<(), String> {
        let mut spent = self.spent.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        spent.retain(|_, (since, _)| now.duration_since(*since) < self.span);
        let (_, count) = spent.entry(tenant.map(str::to_owned)).or_insert((now, 0));
        if count.saturating_add(tokens) > self.tokens {
            return Err(format!(
                "the budget for questions is used up ({count} of {} tokens are spent, about {tokens} are needed)",
                self.tokens
            ));
        }
        *count = count.saturating_add(tokens);
        Ok(())
    }

    fn settle(&self, tenant: Option<&str>, taken: u64, cost: u64) {
        let mut spent = self.spent.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, count)) = spent.get_mut(&tenant.map(str::to_owned)) {
            *count = count.saturating_sub(taken).saturating_add(cost);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn one_tenant_takes_no_place_of_another() {
        let (turns, hook) = (Turns::default(), Arc::from("p"));
        let take = |tenant, session: &str| turns.take(&name_of(tenant, session), &hook, 2, false).is_ok();
        assert!((0..MOST_SESSIONS).all(|n| take(Some("a"), &n.to_string())));
        assert!(!take(Some("a"), "one more") && take(Some("b"), "one more") && take(None, "one more"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_turn_has_so_many_questions() {
        let (turns, hook) = (Turns::default(), Arc::from("p"));
        let take = |session: &str| turns.take(session, &hook, 2, false).is_ok();
        assert!(take("a") && take("a") && !take("a") && take("b"));
        assert_eq!(turns.asked("a", "p"), 2);
        turns.begin("a");
        assert!(take("a"));
        assert!(take("a") && !take("a"));
        tokio::time::advance(IDLE).await;
        assert!(take("a"));
        for _ in 0..9 {
            turns.take("c", &hook, 1, true).unwrap();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_tenant_has_so_many_tokens() {
        let budget = TokensPerTenant::new(100, Duration::from_secs(60));
        budget.take(Some("t"), 90).unwrap();
        assert!(budget.take(Some("t"), 20).unwrap_err().contains("90 of 100"));
        budget.take(Some("other"), 20).unwrap();
        budget.settle(Some("t"), 90, 30);
        budget.take(Some("t"), 20).unwrap();
        tokio::time::advance(Duration::from_secs(60)).await;
        budget.take(Some("t"), 100).unwrap();
    }
}
