//! A gateway in this process, between a test's client and its provider.

use super::client::{Client, Got};
use super::handler::{self, Asked};
use super::upstream::Upstream as Played;
use super::wires::{Seen, Wire};
use hookgate_core::action::ActionKinds;
use hookgate_core::define;
use hookgate_core::dispatch::Dispatcher;
use hookgate_core::gate::Surroundings;
use hookgate_core::hook::Source;
use hookgate_core::record::Memory;
use hookgate_core::set::HookSet;
use hookgate_handlers::builtin;
use hookgate_handlers::clock::TokioTimer;
use hookgate_handlers::folder::Loaded;
use hookgate_handlers::prompt::Turns;
use hookgate_handlers::watchers::{self, Watchers};
use hookgate_server::gateway::{
    Gateway, Happened, Identify, Limits, Listen, OnBlock, OnHoldLimit, Options, Tenant, Tenants, Upstream,
};
use secrecy::SecretString;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

/// Hooks of one tenant.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hooks {
    /// A hook file of the user.
    pub(crate) user: Value,
    /// One of the operator.
    pub(crate) trusted: Value,
    /// Built-in hooks and their settings.
    pub(crate) builtins: Vec<(&'static str, Value)>,
}

impl Hooks {
    pub(crate) fn set(&self, asked: &Asked) -> HookSet {
        let mut loaded = Loaded::default();
        for (name, settings) in &self.builtins {
            let settings = settings.as_object().cloned().unwrap_or_default();
            loaded.hooks.push(builtin::hook(name, &settings).unwrap());
        }
        for (file, text, source) in
            [("trusted.json", &self.trusted, Source::Operator), ("user.json", &self.user, Source::User)]
        {
            if text.is_null() {
                continue;
            }
            let read = define::read(file, &text.to_string(), source, &ActionKinds::standard());
            assert!(read.problems.is_empty(), "{:?}", read.problems);
            loaded.hooks.extend(read.hooks);
        }
        let equipped = handler::workshop(asked.clone()).equip(loaded);
        assert!(equipped.problems.is_empty(), "{:?}", equipped.problems);
        HookSet::new(equipped.hooks).unwrap()
    }
}

/// What a gateway is to be.
pub(crate) struct Setup {
    pub(crate) hooks: Hooks,
    /// Tenants with hooks of their own, in place of `hooks`.
    pub(crate) tenants: Vec<(&'static str, Hooks, usize)>,
    pub(crate) identify: Identify,
    pub(crate) on_block: OnBlock,
    pub(crate) on_hold_limit: OnHoldLimit,
    pub(crate) max_resends: u32,
    pub(crate) limits: Limits,
    pub(crate) key: Option<&'static str>,
    pub(crate) at_a_time: usize,
    pub(crate) drain: Duration,
}

impl Default for Setup {
    fn default() -> Setup {
        Setup {
            hooks: Hooks::default(),
            tenants: Vec::new(),
            identify: Identify::Fixed,
            on_block: OnBlock::TellModel { most: 2 },
            on_hold_limit: OnHoldLimit::Block,
            max_resends: 3,
            limits: Limits::default(),
            key: None,
            at_a_time: 1000,
            drain: Duration::from_secs(10),
        }
    }
}

impl Setup {
    pub(crate) fn user(hooks: Value) -> Setup {
        Setup { hooks: Hooks { user: hooks, ..Hooks::default() }, ..Setup::default() }
    }

    pub(crate) fn trusted(hooks: Value) -> Setup {
        Setup { hooks: Hooks { trusted: hooks, ..Hooks::default() }, ..Setup::default() }
    }

    pub(crate) fn builtin(name: &'static str, settings: Value) -> Setup {
        let builtins = vec![(name, settings)];
        Setup { hooks: Hooks { builtins, ..Hooks::default() }, ..Setup::default() }
    }

    pub(crate) fn with(mut self, change: impl FnOnce(&mut Setup)) -> Setup {
        change(&mut self);
        self
    }

    pub(crate) async fn start(self, upstream: &Played) -> Bench {
        let asked = Asked::default();
        let memory = Arc::new(Memory::new(100_000));
        let around = Surroundings {
            timer: Arc::new(TokioTimer::new()),
            recorder: memory,
            budget: Duration::from_secs(60),
        };
        let all = match self.tenants.is_empty() {
            true => vec![(None, self.hooks, self.at_a_time)],
            false => {
                self.tenants.into_iter().map(|(id, hooks, most)| (Some(id.to_owned()), hooks, most)).collect()
            }
        };
        let watchers = Watchers::new(around.clone(), watchers::Limits::default());
        let mut dispatchers = Vec::new();
        let mut tenants = Vec::new();
        for (id, hooks, at_a_time) in all {
            let dispatcher = Arc::new(Dispatcher::new(hooks.set(&asked)));
            dispatchers.push(dispatcher.clone());
            tenants.push(Tenant::new(id, dispatcher, watchers.clone(), 1000, at_a_time));
        }
        let happened: Arc<Mutex<Vec<String>>> = Arc::default();
        let told = happened.clone();
        let mut provider = Upstream::new(&format!("http://{}", upstream.address)).unwrap();
        if let Some(key) = self.key {
            provider = provider.with_key(SecretString::from(key));
        }
        let options = Options {
            upstreams: vec![provider],
            tenants: Tenants::new(tenants, self.identify),
            around,
            turns: Turns::default(),
            on_block: self.on_block,
            on_hold_limit: self.on_hold_limit,
            max_resends: self.max_resends,
            limits: self.limits,
            observer: Arc::new(move |what| {
                if let Some(line) = line(what) {
                    told.lock().unwrap().push(line);
                }
            }),
            metrics: None,
            degraded: Arc::new(|| None),
        };
        let gateway = Gateway::new(options, "test").unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = gateway.clone();
        let served = tokio::spawn(async move {
            let stop = async {
                let _ = stopped.await;
            };
            serving.serve(Listen::Tcp(listener, None), stop, self.drain).await.unwrap()
        });
        Bench {
            address,
            gateway,
            dispatchers,
            upstream: upstream.clone(),
            asked,
            happened,
            stop: Some(stop),
            served,
        }
    }
}

fn line(what: &Happened<'_>) -> Option<String> {
    Some(match what {
        Happened::Log { tenant, hook, text, .. } => format!("log {} {hook}: {text}", tenant.unwrap_or("-")),
        Happened::Blocked { what, block, .. } => format!("blocked {what}: {}", block.reason),
        Happened::Interrupted { hook, resend, .. } => format!("interrupted {hook} {resend}"),
        Happened::Resent { hook, .. } => format!("resent {hook}"),
        Happened::Request(line) => format!(
            "request {} {} {}{}",
            line.path,
            line.status,
            if line.complete { "complete" } else { "given up" },
            line.error.as_ref().map(|error| format!(": {error}")).unwrap_or_default()
        ),
        _ => return None,
    })
}

/// A gateway that runs.
pub(crate) struct Bench {
    pub(crate) address: SocketAddr,
    pub(crate) gateway: Gateway,
    pub(crate) dispatchers: Vec<Arc<Dispatcher>>,
    pub(crate) upstream: Played,
    pub(crate) asked: Asked,
    pub(crate) happened: Arc<Mutex<Vec<String>>>,
    pub(crate) stop: Option<oneshot::Sender<()>>,
    pub(crate) served: tokio::task::JoinHandle<usize>,
}

impl Bench {
    /// Asks with one user message, over a new connection.
    pub(crate) async fn ask(&self, wire: Wire, stream: bool) -> Got {
        self.post(wire, stream, &wire.request(stream, "hi")).await
    }

    pub(crate) async fn post(&self, wire: Wire, stream: bool, body: &Value) -> Got {
        Client::new(self.address).post(wire.path(stream), &[], body).await
    }

    /// The same, read.
    pub(crate) async fn seen(&self, wire: Wire, stream: bool) -> Seen {
        let got = self.ask(wire, stream).await;
        assert_eq!(got.status, 200, "{wire:?}: {}", got.text());
        got.seen(wire)
    }

    /// Lines of this kind that were told.
    pub(crate) fn told(&self, kind: &str) -> Vec<String> {
        self.happened.lock().unwrap().iter().filter(|line| line.starts_with(kind)).cloned().collect()
    }

    /// What a hook was asked: values at this pointer of its events.
    pub(crate) fn asked(&self, hook: &str, pointer: &str) -> Vec<Value> {
        let asked = self.asked.lock().unwrap();
        let of_hook = asked.iter().filter(|(id, _)| id == hook);
        of_hook.map(|(_, event)| event.pointer(pointer).cloned().unwrap_or_default()).collect()
    }

    /// Waits until something is so.
    pub(crate) async fn until(&self, what: &str, so: impl Fn(&Bench) -> bool) {
        for _ in 0..500 {
            if so(self) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("never so: {what}; told {:?}", self.happened.lock().unwrap());
    }
}

/// A lifecycle hook that plays a script of `handler`.
pub(crate) fn lifecycle(id: &str, event: &str, script: Value) -> Value {
    json!({"id": id, "event": event, "handler": {"type": "script", "source": script.to_string()}})
}
