//! Whose request it is: the tenants of a gateway, each with hooks, conversations and limits of its own.

use super::sessions::Sessions;
use super::upstream::key_of;
use hookgate_core::dispatch::Dispatcher;
use hookgate_handlers::watchers::Watchers;
use http::HeaderMap;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// One tenant. A gateway without tenants has one without a name.
#[derive(Debug)]
pub struct Tenant {
    /// Its name, as hooks and records see it.
    pub id: Option<String>,
    /// The agent, where all of the tenant's requests come from one.
    pub agent: Option<String>,
    /// Its hooks.
    pub dispatcher: Arc<Dispatcher>,
    /// Runs its watching hooks in the background.
    pub watchers: Watchers,
    pub(super) sessions: Sessions,
    pub(super) at_a_time: Arc<Semaphore>,
}

/// How a client says who it is.
#[derive(Debug)]
pub enum Identify {
    /// All requests are the first tenant's.
    Fixed,
    /// By the key that the client sends; only its hash is known here.
    ByKey(HashMap<KeyHash, Who>),
    /// By a header that a proxy in front sets: it must not let clients set it.
    ByHeader {
        /// The header with the tenant's name.
        tenant: String,
        /// The header with the agent's name.
        agent: Option<String>,
    },
}

/// SHA-256 of a key.
pub type KeyHash = [u8; 32];

/// Who uses a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Who {
    /// Index of the tenant.
    pub tenant: usize,
    /// The agent, where a key belongs to one.
    pub agent: Option<String>,
}

/// The tenants and how to tell them apart.
#[derive(Debug)]
pub struct Tenants {
    tenants: Vec<Arc<Tenant>>,
    identify: Identify,
}

/// Why nobody could be found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unknown {
    /// No key, or one that nobody has.
    Key,
    /// No tenant named, or one that is not there.
    Tenant,
}

impl Tenant {
    /// A tenant with these hooks. `sessions`: how many conversations are remembered; `at_a_time`: how many requests
    /// may run side by side.
    pub fn new(
        id: Option<String>,
        dispatcher: Arc<Dispatcher>,
        watchers: Watchers,
        sessions: usize,
        at_a_time: usize,
    ) -> Tenant {
        let at_a_time = Arc::new(Semaphore::new(at_a_time.min(Semaphore::MAX_PERMITS)));
        Tenant { id, agent: None, dispatcher, watchers, sessions: Sessions::new(sessions.max(1)), at_a_time }
    }

    /// The same, whose requests all come from this agent.
    #[must_use]
    pub fn with_agent(mut self, agent: Option<String>) -> Tenant {
        self.agent = agent;
        self
    }
}

impl Tenants {
    /// One or several.
    pub fn new(tenants: Vec<Tenant>, identify: Identify) -> Tenants {
        Tenants { tenants: tenants.into_iter().map(Arc::new).collect(), identify }
    }

    /// All of them.
    pub fn all(&self) -> &[Arc<Tenant>] {
        &self.tenants
    }

    /// Whether there is more than one, so that what is shown to one must not tell of another.
    pub fn are_several(&self) -> bool {
        !matches!(self.identify, Identify::Fixed)
    }

    /// Whose request this is, and which agent's.
    pub(super) fn of(
        &self,
        headers: &HeaderMap,
        query: Option<&str>,
    ) -> Result<(Arc<Tenant>, Option<String>), Unknown> {
        match &self.identify {
            Identify::Fixed => {
                let tenant = self.tenants.first().cloned().ok_or(Unknown::Tenant)?;
                let agent = tenant.agent.clone();
                Ok((tenant, agent))
            }
            Identify::ByKey(keys) => {
                let key = key_of(headers, query).ok_or(Unknown::Key)?;
                let who = keys.get(&hash_of(key)).ok_or(Unknown::Key)?;
                let tenant = self.tenants.get(who.tenant).cloned().ok_or(Unknown::Key)?;
                let agent = who.agent.clone().or_else(|| tenant.agent.clone());
                Ok((tenant, agent))
            }
            Identify::ByHeader { tenant, agent } => {
                // said twice is not said: who passes which one on?
                let one = |name: &str| {
                    let mut all = headers.get_all(name).iter();
                    let first = all.next()?.to_str().ok()?;
                    all.next().is_none().then_some(first)
                };
                let name = one(tenant).ok_or(Unknown::Tenant)?;
                let found = self.tenants.iter().find(|tenant| tenant.id.as_deref() == Some(name));
                let found = found.cloned().ok_or(Unknown::Tenant)?;
                let agent = agent.as_deref().and_then(one).map(str::to_owned);
                let agent = agent.or_else(|| found.agent.clone());
                Ok((found, agent))
            }
        }
    }

    /// The header names that say who it is, which a provider need not see.
    pub(super) fn own_headers(&self) -> impl Iterator<Item = &str> {
        let (tenant, agent) = match &self.identify {
            Identify::ByHeader { tenant, agent } => (Some(tenant.as_str()), agent.as_deref()),
            Identify::Fixed | Identify::ByKey(_) => (None, None),
        };
        tenant.into_iter().chain(agent)
    }
}

/// The hash under which a key is known.
pub fn hash_of(key: &str) -> KeyHash {
    Sha256::digest(key.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use hookgate_core::gate::Surroundings;
    use hookgate_core::record::Memory;
    use hookgate_core::set::HookSet;
    use hookgate_handlers::clock::TokioTimer;
    use hookgate_handlers::watchers::Limits;
    use http::HeaderValue;
    use std::time::Duration;

    fn tenant(id: &str) -> Tenant {
        let around = Surroundings {
            timer: Arc::new(TokioTimer::new()),
            recorder: Arc::new(Memory::new(1)),
            budget: Duration::ZERO,
        };
        let dispatcher = Arc::new(Dispatcher::new(HookSet::empty()));
        Tenant::new(Some(id.to_owned()), dispatcher, Watchers::new(around, Limits::default()), 10, 10)
    }

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_str(value).unwrap());
        }
        headers
    }

    #[test]
    fn a_key_names_tenant_and_agent() {
        let who = |tenant, agent: Option<&str>| Who { tenant, agent: agent.map(str::to_owned) };
        let keys = HashMap::from([(hash_of("k1"), who(0, None)), (hash_of("k2"), who(1, Some("bot")))]);
        let tenants = Tenants::new(vec![tenant("acme"), tenant("evil")], Identify::ByKey(keys));
        let check = |pairs: &[(&'static str, &str)],
                     query: Option<&str>,
                     want: Result<(&str, Option<&str>), Unknown>| {
            let got = tenants.of(&headers(pairs), query);
            let got = got.map(|(tenant, agent)| (tenant.id.clone().unwrap(), agent));
            assert_eq!(got, want.map(|(id, agent)| (id.to_owned(), agent.map(str::to_owned))), "{pairs:?}");
        };
        check(&[("authorization", "Bearer k1")], None, Ok(("acme", None)));
        check(&[("authorization", "bearer  k2")], None, Ok(("evil", Some("bot"))));
        check(&[("x-api-key", "k2")], None, Ok(("evil", Some("bot"))));
        check(&[("x-goog-api-key", "k1")], None, Ok(("acme", None)));
        check(&[], Some("alt=sse&key=k1"), Ok(("acme", None)));
        check(&[("authorization", "Bearer k3")], None, Err(Unknown::Key));
        check(&[], None, Err(Unknown::Key));
    }

    #[test]
    fn a_header_names_it_once() {
        let identify =
            Identify::ByHeader { tenant: "x-tenant".to_owned(), agent: Some("x-agent".to_owned()) };
        let tenants = Tenants::new(vec![tenant("acme")], identify);
        let of = |pairs: &[(&'static str, &str)]| tenants.of(&headers(pairs), None).map(|(_, agent)| agent);
        assert_eq!(of(&[("x-tenant", "acme")]), Ok(None));
        assert_eq!(of(&[("x-tenant", "acme"), ("x-agent", "a")]), Ok(Some("a".to_owned())));
        assert_eq!(of(&[("x-tenant", "acme"), ("x-tenant", "acme")]), Err(Unknown::Tenant));
        assert_eq!(of(&[("x-tenant", "other")]), Err(Unknown::Tenant));
        assert_eq!(of(&[]), Err(Unknown::Tenant));
    }
}
