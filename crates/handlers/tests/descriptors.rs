//! Command hooks while the process has no file descriptor left. Alone in its program: the limit is the process's.
#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a test may stop"
)]

use hookgate_core::action::ActionKinds;
use hookgate_core::define;
use hookgate_core::facts::{Facts, GateEvent, Head};
use hookgate_core::handler::{Answer, Call, Fault, Handler, HandlerType};
use hookgate_core::hook::{Source, Work};
use hookgate_handlers::command::{self, Commands};
use hookgate_handlers::folder::Loaded;
use hookgate_handlers::workshop::Workshop;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

fn handler(dir: &Path, line: &str) -> Arc<dyn Handler> {
    let hook = json!({"id": "c", "event": "pre_tool_use", "handler": {"type": "command", "shell": line}});
    let file = dir.join("hooks.json").display().to_string();
    let read = define::read(&file, &hook.to_string(), Source::User, &ActionKinds::standard());
    let workshop = Workshop::empty().with(HandlerType::Command, command::maker(Commands::default()));
    let loaded = Loaded { hooks: read.hooks, problems: read.problems, warnings: read.warnings };
    match workshop.equip(loaded).hooks.remove(0).work {
        Work::Handler { run, .. } => run.unwrap(),
        Work::Actions(_) => panic!("no handler"),
    }
}

async fn ask(handler: &dyn Handler, within: Duration) -> Result<Answer, Fault> {
    let event = GateEvent::PreToolUse { tool_name: "exec".into(), tool_input: json!({}) };
    let facts = Facts::of_gate(&Head::default(), event);
    let (json, hook) = (facts.to_json(), Arc::from("c"));
    let call = Call { facts: &facts, json: &json, within, hook: &hook };
    tokio::time::timeout(within, handler.ask(call)).await.unwrap_or(Err(Fault::Timeout))
}

/// Opens files until there is no descriptor left.
fn use_up() -> Vec<File> {
    let mut files = Vec::new();
    while let Ok(file) = File::open("/dev/null") {
        files.push(file);
    }
    files
}

fn left(dir: &Path) -> usize {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    entries
        .filter(|entry| std::fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(dir)))
        .count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fault_and_nothing_left_behind() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().canonicalize().unwrap();
    setrlimit(Resource::Nofile, Rlimit { current: Some(200), ..getrlimit(Resource::Nofile) }).unwrap();
    let plain = handler(&path, "exit 0");
    let files = use_up();
    let error = ask(&*plain, Duration::from_secs(2)).await.unwrap_err().to_string();
    assert!(error.contains("too many open files"), "{error}");
    drop(files);
    ask(&*plain, Duration::from_secs(5)).await.unwrap();

    // the children must be found as soon as there are descriptors again
    let escaping = handler(&path, "setsid sleep 600 & sleep 600");
    let asked = tokio::spawn(async move { ask(&*escaping, Duration::from_millis(600)).await });
    tokio::time::sleep(Duration::from_millis(300)).await;
    let files = use_up();
    assert_eq!(asked.await.unwrap(), Err(Fault::Timeout));
    tokio::time::sleep(Duration::from_millis(200)).await;
    drop(files);
    let began = Instant::now();
    while left(&path) > 0 {
        assert!(began.elapsed() < Duration::from_secs(2), "{} left", left(&path));
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
