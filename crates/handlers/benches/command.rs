//! What a command hook costs beside a bare spawn-and-wait of the same program, interleaved in one run.

use hookgate_core::action::ActionKinds;
use hookgate_core::define;
use hookgate_core::facts::{Facts, GateEvent, Head};
use hookgate_core::handler::{Call, Handler, HandlerType};
use hookgate_core::hook::{Source, Work};
use hookgate_handlers::command::{self, Commands};
use hookgate_handlers::folder::Loaded;
use hookgate_handlers::workshop::Workshop;
use serde_json::json;
use std::io::Write;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::process::Command;

const ROUNDS: usize = 400;

fn handler() -> Option<Arc<dyn Handler>> {
    let hook =
        json!({"id": "true", "event": "pre_tool_use", "handler": {"type": "command", "argv": ["/bin/true"]}});
    let read = define::read("bench.json", &hook.to_string(), Source::User, &ActionKinds::standard());
    let workshop = Workshop::empty().with(HandlerType::Command, command::maker(Commands::default()));
    let loaded = Loaded { hooks: read.hooks, problems: read.problems, warnings: read.warnings };
    match workshop.equip(loaded).hooks.pop()?.work {
        Work::Handler { run, .. } => run,
        Work::Actions(_) => None,
    }
}

async fn ask(handler: &dyn Handler, facts: &Facts, json: &str, hook: &Arc<str>) -> Duration {
    let began = Instant::now();
    let call = Call { facts, json, within: Duration::from_secs(5), hook };
    let answer = handler.ask(call).await;
    assert!(answer.is_ok_and(|answer| answer.decision.as_deref() == Some("allow")));
    began.elapsed()
}

async fn bare(pipes: bool) -> Duration {
    let began = Instant::now();
    let mut command = Command::new("/bin/true");
    if pipes {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    }
    let status = match command.spawn() {
        Ok(mut child) => child.wait().await,
        Err(error) => Err(error),
    };
    assert!(status.is_ok_and(|status| status.success()));
    began.elapsed()
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times.get(times.len() / 2).map_or(0.0, |time| time.as_secs_f64() * 1e6)
}

fn main() {
    let Ok(runtime) = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()
    else {
        return;
    };
    let Some(handler) = handler() else { return };
    let event = GateEvent::PreToolUse { tool_name: "exec".into(), tool_input: json!({"command": "ls -la"}) };
    let facts =
        Facts::of_gate(&Head { event_id: "e".into(), session_id: "s".into(), ..Head::default() }, event);
    let (json, hook) = (facts.to_json(), Arc::from("true"));
    let (mut hooks, mut bares, mut piped) = (Vec::new(), Vec::new(), Vec::new());
    runtime.block_on(async {
        for _ in 0..ROUNDS {
            bares.push(bare(false).await);
            hooks.push(ask(&*handler, &facts, &json, &hook).await);
            piped.push(bare(true).await);
        }
    });
    let (hook, bare, piped) = (median(hooks), median(bares), median(piped));
    let _ = writeln!(
        std::io::stdout(),
        "/bin/true, medians of {ROUNDS}: command hook {hook:.0} us, bare spawn and wait {bare:.0} us ({:.2} x), \
         the same with three pipes {piped:.0} us ({:.2} x)",
        hook / bare,
        hook / piped,
    );
}
