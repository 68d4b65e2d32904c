//! `hookgate gateway`: the gateway as configured, from its start to its end.

mod collector;
mod demo;
mod depth;
mod hooks;
mod listen;
mod log;
mod settings;

use crate::args::GatewayArgs;
use crate::config::ConfigFile;
use crate::deliveries::Deliveries;
use crate::exit::Exit;
use crate::failure::{Failure, with_causes};
use crate::model;
use crate::signals::Signals;
use crate::trail::Trail;
use crate::workshop::workshop;
use hookgate_core::gate::Surroundings;
use hookgate_core::record::{Memory, Recorder};
use hookgate_handlers::clock::TokioTimer;
use hookgate_handlers::command::Commands;
use hookgate_handlers::watchers::{self, Kept, Watchers};
use hookgate_server::gateway::{Gateway, Happened, Identify, KeyHash, Listen, Options, Tenant, Tenants, Who};
use hookgate_server::metrics::Metrics;
use hookgate_server::traces::{Collector, Lost, Traces};
use hooks::HookSets;
use log::Log;
use settings::{Identity, Place, Settings};
use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

pub(crate) use demo::run as demo;
use hooks::of_demo as hooks_of_demo;

/// How long the end waits for watching hooks and for the processes of command hooks.
const SETTLING: Duration = Duration::from_secs(5);

/// Serves until it is told to stop.
pub(crate) fn run(args: &GatewayArgs, file: ConfigFile) -> Result<Exit, Failure> {
    let settings = Settings::resolve(args, file, &|name| std::env::var_os(name))?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(format!("the gateway cannot start its threads: {error}")))?;
    runtime.block_on(serve(settings))
}

async fn serve(settings: Settings) -> Result<Exit, Failure> {
    let log = Log::new(settings.log);
    let commands = Commands::default();
    let spending = model::spending(&settings.judging);
    let turns = spending.turns.clone();
    let judges = model::judges(settings.judging.backend.clone());
    let trail = settings.data.clone().map(|place| {
        let log = log.clone();
        Trail::new(place, move |line| log.say(line))
    });
    let recorder: Arc<dyn Recorder> = match &trail {
        Some(trail) => Arc::new(trail.clone()),
        None => Arc::new(Memory::new(10_000)),
    };
    let workshop = workshop(commands.clone(), judges, spending);
    raise_the_limit_of_files();
    let hooks = HookSets::load(&settings, workshop, &*recorder, &log)?;
    let metrics = Arc::new(Metrics::new());
    let around = Surroundings {
        timer: Arc::new(TokioTimer::new()),
        recorder: Arc::clone(&recorder),
        budget: settings.chain_budget,
    };
    let traces = start_traces(settings.collector.clone(), &metrics, &log)?;
    let pools = pools(&hooks, &around, trail.as_ref());
    pools.iter().for_each(Watchers::resume);
    let options = Options {
        upstreams: settings.upstreams,
        tenants: tenants(&hooks, &pools, settings.identity, settings.max_sessions),
        around,
        turns,
        on_block: settings.on_block,
        on_hold_limit: settings.on_hold_limit,
        max_resends: settings.max_resends,
        limits: settings.limits,
        observer: observer(&metrics, &log, traces.as_ref()),
        metrics: settings.open_metrics.then(|| text_of(&metrics)),
        degraded: hooks.degraded(),
    };
    let gateway = Gateway::new(options, &this_run()).map_err(|error| Failure::new(with_causes(&error)))?;
    if traces.is_some() {
        gateway.keep_stories();
    }
    // who is told that it listens may ask it to stop
    let mut signals =
        Signals::all().map_err(|error| Failure::new(format!("signals cannot be awaited: {error}")))?;
    let (listen, where_at) = listen::bind(&settings.place).await?;
    log.say(&format!("listening on {where_at}, {}", hooks.summary()));
    let mut beside = JoinSet::new();
    beside.spawn(hooks.clone().follow(settings.reload, recorder, log.clone(), Arc::clone(&metrics)));
    if let Some(trail) = &trail {
        beside.spawn(depth::follow(trail.clone(), Arc::clone(&metrics)));
    }
    if let Some(address) = &settings.admin {
        beside.spawn(metrics_page(address, &metrics, &log).await?);
    }
    let served = until_signals(&gateway, listen, settings.drain, &mut signals, &log).await;
    beside.abort_all();
    if let Some(traces) = traces {
        send_the_last(&traces, &log).await;
    }
    gateway.end_sessions();
    settle(&pools, &log).await;
    drop((gateway, hooks, pools));
    if let Some(trail) = trail {
        trail.settle(SETTLING);
    }
    commands.settle(SETTLING);
    if let Place::Unix(path) = &settings.place {
        // the socket's file is of no use without us
        let _ = std::fs::remove_file(path);
    }
    let open =
        served.map_err(|error| Failure::new(format!("the gateway cannot go on listening: {error}")))?;
    if open > 0 {
        log.say(&format!("{open} connections were closed before their answers were out"));
    }
    Ok(Exit::Done)
}

/// Serves until a signal, then lets open answers finish; a second signal does not wait for them.
async fn until_signals(
    gateway: &Gateway,
    listen: Listen,
    drain: Duration,
    signals: &mut Signals,
    log: &Log,
) -> io::Result<usize> {
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let stopped = async {
        let _ = stopped.await;
    };
    let serving = gateway.serve(listen, stopped, drain);
    tokio::pin!(serving);
    tokio::select! {
        served = &mut serving => return served,
        _ = signals.next() => {}
    }
    log.say("stopping: open answers may finish");
    let _ = stop.send(());
    tokio::select! {
        served = serving => served,
        _ = signals.next() => {
            log.say("stopping at once");
            Ok(0)
        }
    }
}

/// A stream takes two files, and many systems allow a program a thousand unless it asks for more.
fn raise_the_limit_of_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // where it cannot be raised, connections beyond it wait
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}

/// Begins to send traces, where a collector is named. What it does not take is counted, and said once.
fn start_traces(
    collector: Option<Collector>,
    metrics: &Arc<Metrics>,
    log: &Log,
) -> Result<Option<Arc<Traces>>, Failure> {
    let Some(collector) = collector else { return Ok(None) };
    let (metrics, log) = (Arc::clone(metrics), log.clone());
    let on_lost = move |lost: Lost| {
        metrics.spans_dropped(lost.spans);
        if let Some(why) = lost.why {
            log.say(&format!("traces are lost, the collector does not take them: {why}"));
        }
    };
    let traces = Traces::start(collector, Arc::new(on_lost));
    traces.map(|traces| Some(Arc::new(traces))).map_err(|error| Failure::new(with_causes(&error)))
}

/// Everything that happens is counted, logged and, where they are wanted, traced.
fn observer(
    metrics: &Arc<Metrics>,
    log: &Log,
    traces: Option<&Arc<Traces>>,
) -> Arc<dyn Fn(&Happened<'_>) + Send + Sync> {
    let (metrics, log, traces) = (Arc::clone(metrics), log.clone(), traces.cloned());
    Arc::new(move |what| {
        metrics.note(what);
        log.note(what);
        if let Some(traces) = &traces {
            traces.note(what);
        }
    })
}

async fn send_the_last(traces: &Traces, log: &Log) {
    if !traces.close(SETTLING).await {
        log.say("the last traces were not sent: the collector does not answer");
    }
}

/// Lets watching hooks run to their end.
async fn settle(pools: &[Watchers], log: &Log) {
    let mut left = 0usize;
    for pool in pools {
        left = left.saturating_add(pool.drain(SETTLING).await);
    }
    if left > 0 {
        log.say(&format!(
            "{left} watching hooks did not run to their end; what is kept runs with the next start"
        ));
    }
}

fn text_of(metrics: &Arc<Metrics>) -> Arc<dyn Fn() -> String + Send + Sync> {
    let metrics = Arc::clone(metrics);
    Arc::new(move || metrics.text())
}

/// A pool for each tenant's watching hooks. Where there is a trail, their work is kept in it until it is done.
fn pools(hooks: &HookSets, around: &Surroundings, trail: Option<&Trail>) -> Vec<Watchers> {
    let pool = |entry: &hooks::Entry| {
        let kept = trail.map(|trail| Kept {
            outbox: Arc::new(Deliveries::new(trail.clone())),
            dispatcher: Arc::clone(&entry.dispatcher),
            origins: entry.sources.origins(),
        });
        Watchers::with_outbox(around.clone(), watchers::Limits::default(), None, kept)
    };
    hooks.entries().iter().map(pool).collect()
}

fn tenants(hooks: &HookSets, pools: &[Watchers], identity: Identity, max_sessions: usize) -> Tenants {
    let made = hooks.entries().iter().zip(pools).map(|(entry, pool)| {
        let (id, dispatcher) = (entry.tenant.clone(), Arc::clone(&entry.dispatcher));
        Tenant::new(id, dispatcher, pool.clone(), max_sessions, entry.max_requests)
            .with_agent(entry.agent.clone())
    });
    let identify = match identity {
        Identity::One => Identify::Fixed,
        Identity::Header { tenant, agent } => Identify::ByHeader { tenant, agent },
        Identity::Keys(keys) => {
            let who = |(key, tenant, agent): (KeyHash, usize, Option<String>)| (key, Who { tenant, agent });
            Identify::ByKey(keys.into_iter().map(who).collect::<HashMap<_, _>>())
        }
    };
    Tenants::new(made.collect(), identify)
}

/// A page of its own for metrics: listens, and gives what serves it.
async fn metrics_page(
    address: &str,
    metrics: &Arc<Metrics>,
    log: &Log,
) -> Result<impl Future<Output = ()> + use<>, Failure> {
    let listener = TcpListener::bind(address)
        .await
        .map_err(|error| Failure::new(format!("the page for metrics cannot listen on {address}: {error}")))?;
    let at = listener.local_addr().map_or_else(|_| address.to_owned(), |at| at.to_string());
    log.say(&format!("metrics on http://{at}/metrics"));
    let text = text_of(metrics);
    Ok(async move {
        hookgate_server::metrics::serve(listener, text).await;
    })
}

/// Tells this run's event ids from those of others that write to the same trail.
fn this_run() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("gw{:x}-{:x}", since.as_micros(), std::process::id())
}
