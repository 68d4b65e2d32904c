//! Hooks while the process has no file descriptor left. Alone in its program: the limit is the process's.
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
use hookgate_handlers::http::{self, Network};
use hookgate_handlers::prompt::{self, Judge, Spending};
use hookgate_handlers::script::{self, Pool, PoolSettings, WorkerProgram};
use hookgate_handlers::workshop::Workshop;
use hookgate_llm::{Client, Provider};
use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, setrlimit};
use serde_json::{Value, json};
use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The handler of a hook in this folder.
fn made(dir: &Path, handler: &Value) -> Arc<dyn Handler> {
    let hook = json!({"id": "c", "event": "pre_tool_use", "matcher": "exec", "handler": handler});
    let file = dir.join("hooks.json").display().to_string();
    let read = define::read(&file, &hook.to_string(), Source::User, &ActionKinds::standard());
    let loaded = Loaded { hooks: read.hooks, problems: read.problems, warnings: read.warnings };
    match workshop().equip(loaded).hooks.remove(0).work {
        Work::Handler { run, .. } => run.unwrap(),
        Work::Actions(_) => panic!("no handler"),
    }
}

fn workshop() -> Workshop {
    let worker = WorkerProgram {
        path: env!("CARGO_BIN_EXE_hookgate-script-worker").into(),
        args: vec!["t-fd".into()],
    };
    let pool = Pool::new(PoolSettings { workers: 1, ..PoolSettings::new(worker) });
    let judges = |base: Option<&str>| {
        let client = Client::builder(Provider::OpenAiChat).base_url(base.unwrap_or_default()).max_retries(0);
        Ok(Judge {
            model: Arc::new(client.build().map_err(|error| error.to_string())?),
            name: "judge".into(),
        })
    };
    Workshop::empty()
        .with(HandlerType::Command, command::maker(Commands::default()))
        .with(HandlerType::Http, http::maker(Network::new().unwrap()))
        .with(HandlerType::Prompt, prompt::maker(Arc::new(judges), Spending::default()))
        .with(HandlerType::Script, script::maker(pool))
}

fn shell(dir: &Path, line: &str) -> Arc<dyn Handler> {
    made(dir, &json!({"type": "command", "shell": line}))
}

/// Answers as an endpoint and as a judge's provider at once; gives its address.
fn server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let message = json!({"role": "assistant", "content": "{\"decision\":\"allow\"}"});
    let body =
        json!({"decision": "allow", "choices": [{"message": message, "finish_reason": "stop"}]}).to_string();
    let head = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length";
    let reply = format!("{head}: {}\r\n\r\n{body}", body.len());
    std::thread::spawn(move || {
        loop {
            // it has no descriptors either, for a while
            let Ok((mut socket, _)) = listener.accept() else { continue };
            let mut bytes = Vec::new();
            let mut piece = [0; 8192];
            while !complete(&bytes) {
                let count = socket.read(&mut piece).unwrap();
                bytes.extend_from_slice(&piece[..count]);
            }
            socket.write_all(reply.as_bytes()).unwrap();
        }
    });
    base
}

fn complete(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
    body.len() >= length.unwrap_or(0)
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
    every_kind(&path).await;
    children_are_found_later(&path).await;
}

/// Each kind fails with words that name the cause, and works again as soon as there are descriptors.
async fn every_kind(path: &Path) {
    let base = server();
    let scripted = json!({"type": "script", "source": "function handle() { return { decision: 'allow' }; }"});
    let posted = json!({"type": "http", "url": format!("{base}/check"), "allow_private": true});
    let judged = json!({"type": "prompt", "prompt": "Be kind.", "model": base});
    let open_files = "too many open files";
    for (kind, handler, why, detail) in [
        ("command", json!({"type": "command", "shell": "exit 0"}), open_files, open_files),
        ("http", posted, open_files, open_files),
        ("prompt", judged, "no connection to its judge", "no connection to 127.0.0.1"),
        ("script", scripted, "no script worker can be had", open_files),
    ] {
        let handler = made(path, &handler);
        if kind == "script" {
            ask(&*handler, Duration::from_secs(5)).await.unwrap();
        }
        let workers = workers();
        let files = use_up();
        // the warm workers need nothing that is not there; the next ones do
        workers.into_iter().for_each(|pid| kill_process(pid, Signal::KILL).unwrap());
        loop {
            match ask(&*handler, Duration::from_secs(5)).await {
                Err(Fault::Failed { detail, .. }) if detail.contains("worker ended during the call") => {}
                Err(Fault::Failed { why: said, detail: told, .. }) => {
                    assert!(
                        said.to_string().contains(why) && told.contains(detail),
                        "{kind}: {said}; {told}"
                    );
                    break;
                }
                other => panic!("{kind}: {other:?}"),
            }
        }
        drop(files);
        // a pool of workers tries anew after a pause
        let until = Instant::now() + Duration::from_secs(10);
        while let Err(fault) = ask(&*handler, Duration::from_secs(5)).await {
            assert!(kind == "script" && Instant::now() < until, "{kind}: {fault}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

/// The workers of scripts, killed ones not counted.
fn workers() -> Vec<Pid> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| {
        let line = std::fs::read(entry.path().join("cmdline")).ok()?;
        let is_ours = line.split(|byte| *byte == 0).nth(1) == Some(b"t-fd");
        is_ours.then(|| entry.file_name().to_str()?.parse().ok()).flatten()
    });
    pids.filter_map(Pid::from_raw).collect()
}

/// The children of a command must be found as soon as there are descriptors again.
async fn children_are_found_later(path: &Path) {
    let escaping = shell(path, "setsid sleep 600 & sleep 600");
    let asked = tokio::spawn(async move { ask(&*escaping, Duration::from_millis(600)).await });
    tokio::time::sleep(Duration::from_millis(300)).await;
    let files = use_up();
    assert_eq!(asked.await.unwrap(), Err(Fault::Timeout));
    tokio::time::sleep(Duration::from_millis(200)).await;
    drop(files);
    let began = Instant::now();
    while left(path) > 0 {
        assert!(began.elapsed() < Duration::from_secs(2), "{} left", left(path));
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
