//! Cases of the gateway: the real one on loopback, between a raw client and an upstream that plays what a case says.

mod client;
mod expect;
mod upstream;

use super::super::{Verdict, stand_in};
use super::agent::world::World;
use hookgate_handlers::prompt::Turns;
use hookgate_server::gateway::{
    Gateway, Identify, Limits, Listen, OnBlock, OnHoldLimit, Options, Tenant, Tenants, Upstream,
};
use serde_json::Value;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;

/// Steps that can be done here.
const STEPS: &[&str] = &["load", "client", "wait_ms", "upstream_log"];

/// Plays a case.
pub(super) fn run(case: &Value) -> Verdict {
    let steps = case.get("steps").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let word = |step: &Value| step.get("do").and_then(Value::as_str).unwrap_or_default().to_owned();
    if let Some(step) = steps.iter().map(word).find(|step| !STEPS.contains(&step.as_str())) {
        return Verdict::NotRun(format!("the step `{step}` is not built for the gateway"));
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let played = match runtime {
        Ok(runtime) => {
            let played = runtime.block_on(play(case, steps));
            runtime.shutdown_background();
            played
        }
        Err(error) => Err(error.to_string()),
    };
    match played {
        Ok(()) => Verdict::Passed,
        Err(why) => Verdict::Failed(why),
    }
}

async fn play(case: &Value, steps: &[Value]) -> Result<(), String> {
    let empty = Value::Null;
    let setup = case.get("setup").unwrap_or(&empty);
    let mut world = World::new(setup, None).await?;
    world.load()?;
    if let Some(problem) = world.problems.first() {
        return Err(format!("the hooks of the case cannot be loaded: {problem}"));
    }
    let upstream = upstream::Played::start(setup.get("upstream").unwrap_or(&empty)).await?;
    let gateway = start(&world, upstream.address).await?;
    let dir = world.dir().display().to_string();
    for (number, step) in steps.iter().enumerate() {
        let at = |why| format!("step {}: {why}", number.saturating_add(1));
        let step = stand_in::expand(step, &dir).map_err(at)?;
        let before = upstream.requests();
        let seen = match step.get("do").and_then(Value::as_str) {
            Some("client") => client::ask(gateway, &step).await.map_err(at)?,
            Some("wait_ms") => {
                let ms = step.get("ms").and_then(Value::as_u64).unwrap_or(0);
                tokio::time::sleep(Duration::from_millis(ms)).await;
                client::Seen::default()
            }
            _ => client::Seen::default(),
        };
        let around = expect::Around {
            requests: upstream.requests().saturating_sub(before),
            sent: upstream.sent(),
            decision: world.memory.records().last().map(|record| record.decision),
        };
        if let Some(expect) = step.get("expect") {
            expect::check(expect, &seen, &around).map_err(at)?;
        }
    }
    Ok(())
}

/// Starts a gateway in front of the upstream, with the case's hooks.
async fn start(world: &World, upstream: SocketAddr) -> Result<SocketAddr, String> {
    let tenant = Tenant::new(None, Arc::clone(&world.dispatcher), world.watchers.clone(), 1000, 1000);
    let options = Options {
        upstreams: vec![Upstream::new(&format!("http://{upstream}")).map_err(|error| error.to_string())?],
        tenants: Tenants::new(vec![tenant], Identify::Fixed),
        around: world.around.clone(),
        turns: Turns::default(),
        on_block: OnBlock::TellModel { most: 3 },
        on_hold_limit: OnHoldLimit::Block,
        max_resends: 10,
        limits: Limits::default(),
        observer: Arc::new(|_| {}),
        metrics: None,
        degraded: Arc::new(|| None),
    };
    let gateway = Gateway::new(options, "case").map_err(|error| error.to_string())?;
    let listener = TcpListener::bind("127.0.0.1:0").await.map_err(|error| error.to_string())?;
    let address = listener.local_addr().map_err(|error| error.to_string())?;
    // it ends with the case's runtime
    tokio::spawn(async move {
        let never = std::future::pending();
        let _ = gateway.serve(Listen::Tcp(listener, None), never, Duration::ZERO).await;
    });
    Ok(address)
}
