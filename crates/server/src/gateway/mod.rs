//! A gateway between agents and their model providers: an agent sets its base URL to it, and all hooks apply.
//!
//! The path of one request: `front` accepts it, `handle` finds its tenant and route, `turn` shows hooks what is new in it,
//! `upstream` asks the provider. The answer comes back as a stream (`relay`) or in one piece (`whole`); `guard` shows each
//! piece to the hooks before the client can see it, `weave` decides what follows.

mod asking;
mod beginning;
pub(crate) mod body;
mod decode;
mod door;
mod driven;
mod front;
mod guard;
mod handle;
mod joined;
mod means;
mod patient;
mod relay;
mod request_log;
mod sessions;
mod story;
mod taking;
mod tenants;
mod turn;
pub(crate) mod upstream;
mod weave;
mod whole;

pub use front::{Listen, Tls};
pub use means::can;
pub use request_log::Line;
pub use story::{Moment, Story, Told};
pub use tenants::{Identify, KeyHash, Tenant, Tenants, Who, hash_of};
pub use upstream::{NoAddress, Upstream};

use hookgate_core::effect::{HookName, Level};
use hookgate_core::facts::{Head, LifeEvent};
use hookgate_core::gate::Surroundings;
use hookgate_core::point::Point;
use hookgate_core::verdict::{Block, Ran, Trace, Warning};
use hookgate_handlers::prompt::Turns;
use sessions::Conversation;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use upstream::Courier;

/// Told what happens.
pub type Observer = dyn Fn(&Happened<'_>) + Send + Sync;

/// Something that happened, for metrics and logs.
#[derive(Debug)]
pub enum Happened<'a> {
    /// A JSON hook fired.
    Fired {
        /// The tenant, where there are several.
        tenant: Option<&'a str>,
        /// The hook.
        hook: &'a HookName,
    },
    /// A hook wrote a line.
    Log {
        /// The tenant, where there are several.
        tenant: Option<&'a str>,
        /// The conversation.
        session: &'a str,
        /// The hook.
        hook: &'a HookName,
        /// The level.
        level: Level,
        /// The line.
        text: &'a str,
    },
    /// A lifecycle hook was asked.
    Decided {
        /// The tenant, where there are several.
        tenant: Option<&'a str>,
        /// How it went.
        ran: &'a Ran,
    },
    /// Something was odd but stopped nothing.
    Warned {
        /// The tenant, where there are several.
        tenant: Option<&'a str>,
        /// What.
        warning: &'a Warning,
    },
    /// Hooks stopped something.
    Blocked {
        /// The tenant, where there are several.
        tenant: Option<&'a str>,
        /// `prompt`, `response`, or the tool's name.
        what: &'a str,
        /// Who and why.
        block: &'a Block,
    },
    /// A hook dropped a response.
    Interrupted {
        /// The tenant, where there are several.
        tenant: Option<&'a str>,
        /// The hook.
        hook: &'a str,
        /// The provider is asked again.
        resend: bool,
    },
    /// The provider was asked again for a hook.
    Resent {
        /// The tenant, where there are several.
        tenant: Option<&'a str>,
        /// The hook.
        hook: &'a str,
    },
    /// Text waited until it was clear that it is no match.
    Held {
        /// How long.
        took: Duration,
    },
    /// A request is done, or given up.
    Request(&'a Line),
}

/// What becomes of a blocked tool call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnBlock {
    /// The model reads the reason as the call's result, and is asked again; after so many times the client reads it.
    TellModel {
        /// How often in one request.
        most: u32,
    },
    /// The client reads the reason, and the answer ends as a provider's own filter ends it.
    Refuse,
}

/// What becomes of text that waits longer, or is more, than allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnHoldLimit {
    /// The answer ends as a provider's own filter ends it.
    Block,
    /// It is passed on: a match that is longer than the limit is not kept from the client then.
    Release,
}

/// The bounds of a gateway.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Bytes of a request's body.
    pub max_body_bytes: usize,
    /// Bytes of an answer that must be read whole, and of a call's arguments that wait for a verdict.
    pub max_answer_bytes: usize,
    /// Bytes of one event of a stream.
    pub max_event_bytes: usize,
    /// Bytes of events that wait because text in them may become a match.
    pub max_hold_bytes: usize,
    /// How long they may wait.
    pub max_hold: Duration,
    /// How long a provider may think before its answer's head.
    pub first_byte: Duration,
    /// How long a stream may be silent.
    pub idle: Duration,
    /// How long a client may take nothing of its answer.
    pub client_idle: Duration,
    /// How long a client may take for a request's head.
    pub head: Duration,
    /// Bytes of a request's head.
    pub max_head_bytes: usize,
    /// Connections at a time.
    pub connections: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            max_body_bytes: 64 << 20,
            max_answer_bytes: 64 << 20,
            max_event_bytes: 16 << 20,
            max_hold_bytes: 64 << 10,
            max_hold: Duration::from_secs(60),
            first_byte: Duration::from_secs(600),
            idle: Duration::from_secs(300),
            client_idle: Duration::from_secs(300),
            head: Duration::from_secs(30),
            max_head_bytes: 64 << 10,
            connections: 20_000,
        }
    }
}

/// All that a gateway is made of.
pub struct Options {
    /// The providers; the first that takes a request gets it.
    pub upstreams: Vec<Upstream>,
    /// The tenants with their hooks.
    pub tenants: Tenants,
    /// Clock, recorder and time of a chain of hooks.
    pub around: Surroundings,
    /// What prompt hooks have asked in each conversation's turn.
    pub turns: Turns,
    /// What becomes of a blocked tool call.
    pub on_block: OnBlock,
    /// What becomes of text that waits too long.
    pub on_hold_limit: OnHoldLimit,
    /// How often hooks may have a provider asked again in one request.
    pub max_resends: u32,
    /// The bounds.
    pub limits: Limits,
    /// Told what happens.
    pub observer: Arc<Observer>,
    /// Answers `/metrics`, where it is shown on this listener.
    pub metrics: Option<Arc<dyn Fn() -> String + Send + Sync>>,
    /// Whether all hooks are the newest good ones: `/readyz` says what is wrong where they are not.
    pub degraded: Arc<dyn Fn() -> Option<String> + Send + Sync>,
}

/// A gateway. Clones share it.
#[derive(Clone)]
pub struct Gateway {
    shared: Arc<Shared>,
}

pub(crate) struct Shared {
    upstreams: Vec<Arc<Upstream>>,
    tenants: Tenants,
    around: Surroundings,
    turns: Turns,
    on_block: OnBlock,
    on_hold_limit: OnHoldLimit,
    max_resends: u32,
    limits: Limits,
    observer: Arc<Observer>,
    metrics: Option<Arc<dyn Fn() -> String + Send + Sync>>,
    degraded: Arc<dyn Fn() -> Option<String> + Send + Sync>,
    courier: Courier,
    /// Tells this run's ids from those of others.
    run: String,
    n_requests: AtomicU64,
    /// Whether each request keeps its story.
    stories: AtomicBool,
}

impl Gateway {
    /// Makes a gateway. `run` must differ between any two runs that share an audit trail: event ids begin with it.
    ///
    /// # Errors
    /// When the system's certificates for TLS cannot be used.
    pub fn new(options: Options, run: &str) -> Result<Gateway, rustls::Error> {
        let courier = Courier::new(options.limits.first_byte)?;
        let Options { upstreams, tenants, around, turns, on_block, on_hold_limit, .. } = options;
        Ok(Gateway {
            shared: Arc::new(Shared {
                upstreams: upstreams.into_iter().map(Arc::new).collect(),
                tenants,
                around,
                turns,
                on_block,
                on_hold_limit,
                max_resends: options.max_resends,
                limits: options.limits,
                observer: options.observer,
                metrics: options.metrics,
                degraded: options.degraded,
                courier,
                run: run.to_owned(),
                n_requests: AtomicU64::new(0),
                stories: AtomicBool::new(false),
            }),
        })
    }

    /// From now on requests that ask a model keep their [`Story`], for traces.
    pub fn keep_stories(&self) {
        self.shared.stories.store(true, Ordering::Relaxed);
    }

    /// How many conversations are known.
    pub fn sessions(&self) -> usize {
        self.shared.tenants.all().iter().map(|tenant| tenant.sessions.len()).sum()
    }

    /// Tells watching hooks that all conversations are over, as at shutdown.
    pub fn end_sessions(&self) {
        for tenant in self.shared.tenants.all() {
            self.shared.sessions_end(tenant, tenant.sessions.take());
        }
    }
}

impl Shared {
    fn happened(&self, what: &Happened<'_>) {
        (self.observer)(what);
    }

    fn tell_trace(&self, tenant: &Tenant, trace: &Trace) {
        let tenant = tenant.id.as_deref();
        for ran in &trace.ran {
            self.happened(&Happened::Decided { tenant, ran });
        }
        for warning in &trace.warnings {
            self.happened(&Happened::Warned { tenant, warning });
        }
    }

    /// Begins a request's story, where somebody wants it.
    fn story(&self, wire: &'static str, headers: &http::HeaderMap) -> Option<Arc<Story>> {
        let wanted = self.stories.load(Ordering::Relaxed);
        wanted.then(|| Story::begin(wire, headers)).flatten().map(Arc::new)
    }

    fn next_id(&self) -> String {
        format!("{}-{:x}", self.run, self.n_requests.fetch_add(1, Ordering::Relaxed))
    }

    /// Tells watching hooks that conversations are over.
    fn sessions_end(&self, tenant: &Tenant, over: Vec<Arc<Conversation>>) {
        if over.is_empty() || !tenant.dispatcher.listens_at(Point::SessionEnd) {
            return;
        }
        for conversation in over {
            let head = Head {
                event_id: format!("{}-end", self.next_id()),
                session_id: conversation.id.clone(),
                tenant_id: tenant.id.clone(),
                agent_id: tenant.agent.clone(),
                ..Head::default()
            };
            tenant.dispatcher.trace_watched(&*self.around.recorder, &head, &LifeEvent::SessionEnd);
            tenant.watchers.submit(tenant.dispatcher.watch(&head, LifeEvent::SessionEnd));
        }
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("upstreams", &self.upstreams).finish_non_exhaustive()
    }
}

impl fmt::Debug for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gateway").field("shared", &self.shared).finish()
    }
}
