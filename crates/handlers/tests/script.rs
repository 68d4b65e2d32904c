//! Script hooks with real workers: killed, run away, out of memory, gone, or never there.

#![cfg(target_os = "linux")]
#![allow(
    clippy::await_holding_lock,
    clippy::string_slice,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    missing_docs,
    reason = "a test may stop"
)]

use hookgate_core::action::ActionKinds;
use hookgate_core::define;
use hookgate_core::dispatch::Dispatcher;
use hookgate_core::facts::{Facts, GateEvent, Head, ShapeEvent};
use hookgate_core::gate::Surroundings;
use hookgate_core::handler::{
    Answer, Call, Fallback, Fault, Handler, HandlerKind, HandlerSpec, HandlerType, Mode, ScriptText,
    Withholds,
};
use hookgate_core::hook::Source;
use hookgate_core::record::Memory;
use hookgate_core::set::HookSet;
use hookgate_handlers::clock::TokioTimer;
use hookgate_handlers::folder::Loaded;
use hookgate_handlers::script::{Pool, PoolSettings, WorkerProgram, WreckLimits, maker};
use hookgate_handlers::workshop::Workshop;
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

const WORKER: &str = env!("CARGO_BIN_EXE_hookgate-script-worker");
const CALM: &str = "function handle(e) { return { decision: e.toolName === 'exec' ? 'allow' : 'block' }; }";
/// A loop inside one built-in call, which asks no callback.
const NATIVE: &str = "function handle(e) { Array.prototype.reverse.call({ length: 9007199254740991 }); }";

/// Descriptors and processes are counted: one test at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A pool whose workers can be told from others by their first argument.
fn settings(mark: &str) -> PoolSettings {
    let program = WorkerProgram { path: WORKER.into(), args: vec![mark.into()] };
    PoolSettings { workers: 2, share: 2, most: 8, ..PoolSettings::new(program) }
}

fn spec(source: &str, timeout: Duration) -> HandlerSpec {
    let kind = HandlerKind::Script { text: ScriptText::Inline(source.into()), memory_mb: None };
    let (on_timeout, on_error) = (Fallback::Block, Fallback::Block);
    HandlerSpec { kind, timeout, on_timeout, on_error, mode: Mode::Append, withholds: Withholds::default() }
}

fn script(pool: &Arc<Pool>, source: &str) -> Arc<dyn Handler> {
    maker(pool.clone())(&spec(source, Duration::from_secs(60)), Path::new(".")).unwrap()
}

/// One call, given up at the limit as the dispatcher does.
async fn ask(handler: &Arc<dyn Handler>, tenant: &str, limit: Duration) -> Result<Answer, Fault> {
    let head = Head {
        event_id: "e-1".into(),
        session_id: "s-1".into(),
        tenant_id: Some(tenant.into()),
        ..Head::default()
    };
    let event = GateEvent::PreToolUse { tool_name: "exec".into(), tool_input: json!({"command": "ls"}) };
    let facts = Facts::of_gate(&head, event);
    let (json, hook) = (facts.to_json(), Arc::from("h"));
    let call = Call { facts: &facts, json: &json, within: limit, hook: &hook };
    tokio::time::timeout(limit, handler.ask(call)).await.unwrap_or(Err(Fault::Timeout))
}

fn allowed(result: &Result<Answer, Fault>) -> bool {
    matches!(result, Ok(answer) if answer.decision.as_deref() == Some("allow"))
}

/// The processes started with this first argument.
fn workers(mark: &str) -> Vec<i32> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        if line.split(|byte| *byte == 0).nth(1) == Some(mark.as_bytes()) {
            found.push(pid);
        }
    }
    found
}

/// Waits for something that takes a moment.
fn soon(what: &str, mut is: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(20);
    while !is() {
        assert!(Instant::now() < until, "not in time: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn kill(pid: i32) {
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

/// A process that is gone, or waits for its parent to notice.
fn ended(pid: i32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat")).map_or(true, |stat| stat.contains(") Z "))
}

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test]
async fn a_worker_killed_in_a_call_is_a_fault_and_is_replaced() {
    let _alone = alone();
    let pool = Pool::new(settings("t-kill"));
    let native = script(&pool, NATIVE);
    let call = tokio::spawn(async move { ask(&native, "a", 30 * SECOND).await });
    // the busy one is the one whose processor time grows
    let busy = |pid: &i32| -> bool {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.split(") ").nth(1).and_then(|rest| rest.split(' ').nth(11)?.parse().ok()).unwrap_or(0) > 10
    };
    let mut victims = Vec::new();
    while victims.is_empty() {
        tokio::time::sleep(Duration::from_millis(10)).await;
        victims = workers("t-kill").into_iter().filter(busy).collect();
    }
    kill(victims[0]);
    let fault = call.await.unwrap().unwrap_err();
    assert_eq!(fault.to_string(), "the script worker ended during the call");
    assert!(allowed(&ask(&script(&pool, CALM), "a", 5 * SECOND).await));
    soon("a replacement", || workers("t-kill").len() == 3);
    // idle ones that die are nobody's fault
    let idle = workers("t-kill");
    idle.iter().for_each(|pid| kill(*pid));
    soon("their end", || idle.iter().all(|pid| ended(*pid)));
    let after = ask(&script(&pool, CALM), "a", 5 * SECOND).await;
    assert!(allowed(&after), "{after:?}");
    drop(pool);
    assert_eq!(workers("t-kill"), [0; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tenants_runaways_do_not_hold_up_another() {
    let _alone = alone();
    let wrecks = WreckLimits { wrecks: 1000, rest: SECOND };
    let pool = Pool::new(PoolSettings { wrecks, ..settings("t-share") });
    let (native, calm) = (script(&pool, NATIVE), script(&pool, CALM));
    assert!(allowed(&ask(&calm, "good", 5 * SECOND).await));
    let stop = Instant::now() + 3 * SECOND;
    let mut evil = Vec::new();
    for _ in 0..12 {
        let native = native.clone();
        evil.push(tokio::spawn(async move {
            while Instant::now() < stop {
                assert!(ask(&native, "evil", Duration::from_millis(300)).await.is_err());
            }
        }));
    }
    let mut slowest = Duration::ZERO;
    let mut answers = 0;
    while Instant::now() < stop {
        let began = Instant::now();
        let answer = ask(&calm, "good", 2 * SECOND).await;
        assert!(allowed(&answer), "{answer:?} after {answers} answers");
        slowest = slowest.max(began.elapsed());
        answers += 1;
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    for task in evil {
        task.await.unwrap();
    }
    println!("{answers} answers, the slowest after {slowest:?}");
    assert!(answers > 100 && slowest < SECOND, "{answers} answers, the slowest after {slowest:?}");
    assert!(workers("t-share").len() <= 8);
}

#[tokio::test]
async fn a_memory_bomb_stays_in_its_worker() {
    let _alone = alone();
    let pool = Pool::new(PoolSettings { workers: 1, ..settings("t-memory") });
    let bomb =
        script(&pool, "function handle(e) { let all = []; for (;;) all.push(new Array(1000).fill(1)); }");
    let caught = script(
        &pool,
        "function handle(e) { let s = 'x'.repeat(65536), all = [];
           try { for (;;) all.push(s + all.length); } catch (e) {} return { decision: 'allow' }; }",
    );
    let calm = script(&pool, CALM);
    assert!(allowed(&ask(&calm, "a", 5 * SECOND).await));
    let before = workers("t-memory");
    for _ in 0..20 {
        for handler in [&bomb, &caught] {
            let fault = ask(handler, "a", 20 * SECOND).await.unwrap_err();
            assert_eq!(fault.to_string(), "out of memory: more than 16 MiB");
        }
        assert!(allowed(&ask(&calm, "a", 5 * SECOND).await));
    }
    assert_eq!(workers("t-memory"), before, "no worker was lost");
    for pid in before {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
        let resident: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
        assert!(resident < 64 * 1024, "{line}");
    }
}

#[tokio::test]
async fn a_thousand_calls_leave_nothing_behind() {
    let _alone = alone();
    let files = || fs::read_dir("/proc/self/fd").unwrap().count();
    let children = || {
        let own = std::process::id().to_string();
        let parent =
            |stat: &str| stat.rsplit(") ").next().and_then(|rest| rest.split(' ').nth(1)).map(str::to_owned);
        let stats = fs::read_dir("/proc").unwrap().flatten();
        let stats = stats.filter_map(|entry| fs::read_to_string(entry.path().join("stat")).ok());
        stats.filter(|stat| parent(stat).as_deref() == Some(&own)).count()
    };
    let before = (files(), children());
    {
        let wrecks = WreckLimits { wrecks: 1000, rest: SECOND };
        let pool = Pool::new(PoolSettings { wrecks, ..settings("t-thousand") });
        let (calm, native) = (script(&pool, CALM), script(&pool, NATIVE));
        let loops = script(&pool, "function handle(e) { for (;;); }");
        for round in 0..1000 {
            match round % 50 {
                7 => assert_eq!(ask(&native, "a", Duration::from_millis(5)).await, Err(Fault::Timeout)),
                9 => assert_eq!(ask(&loops, "a", Duration::from_millis(5)).await, Err(Fault::Timeout)),
                // given up at once
                11 => drop(ask(&calm, "a", Duration::from_nanos(1)).await),
                _ => assert!(allowed(&ask(&calm, "a", 10 * SECOND).await), "{round}"),
            }
        }
        soon("the usual number of workers", || (3..=4).contains(&workers("t-thousand").len()));
        assert!(files() <= before.0 + 24, "{} files, {} before", files(), before.0);
    }
    soon("the same descriptors and children", || (files(), children()) == before);
}

#[tokio::test]
async fn a_script_that_wrecks_its_workers_rests() {
    let _alone = alone();
    let wrecks = WreckLimits { wrecks: 2, rest: Duration::from_millis(1500) };
    let pool = Pool::new(PoolSettings { wrecks, ..settings("t-wrecks") });
    let (native, calm) = (script(&pool, NATIVE), script(&pool, CALM));
    for _ in 0..2 {
        assert_eq!(ask(&native, "a", Duration::from_millis(30)).await, Err(Fault::Timeout));
    }
    let mut fault = Fault::Timeout;
    let until = Instant::now() + 10 * SECOND;
    while fault == Fault::Timeout && Instant::now() < until {
        fault = ask(&native, "a", Duration::from_millis(30)).await.unwrap_err();
    }
    assert!(fault.to_string().contains("it wrecked its worker"), "{fault}");
    assert!(allowed(&ask(&calm, "a", 5 * SECOND).await));
    tokio::time::sleep(Duration::from_millis(1600)).await;
    assert_eq!(ask(&native, "a", Duration::from_millis(30)).await, Err(Fault::Timeout));
    // timeouts that the engine itself notices, and blocks, never count
    let loops = script(&pool, "function handle(e) { for (;;); }");
    let blocks = script(&pool, "function handle(e) { return { decision: 'block' }; }");
    for _ in 0..10 {
        assert_eq!(ask(&loops, "a", Duration::from_millis(30)).await, Err(Fault::Timeout));
        assert!(ask(&blocks, "a", 5 * SECOND).await.is_ok());
    }
}

#[test]
fn workers_end_with_their_parent() {
    let _alone = alone();
    let mut parent = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "a_parent_that_dies", "--nocapture"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(parent.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("busy")));
    assert_eq!(workers("t-parent").len(), 3);
    parent.kill().unwrap();
    parent.wait().unwrap();
    soon("the workers' end", || workers("t-parent").is_empty());
}

#[test]
#[ignore = "it is started by another test"]
fn a_parent_that_dies() {
    let pool = Pool::new(settings("t-parent"));
    let native = script(&pool, NATIVE);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let call = tokio::spawn(async move { ask(&native, "a", 60 * SECOND).await });
        tokio::time::sleep(Duration::from_millis(300)).await;
        println!("busy");
        let _ = call.await;
    });
}

#[tokio::test]
async fn without_a_worker_every_gate_blocks() {
    let _alone = alone();
    for (program, args, why) in [
        ("no/such/program", vec![], "no script worker could be started: no such file or directory"),
        ("/bin/true", vec![], "no script worker could be started: it ends at once"),
        ("/bin/echo", vec!["hello, this is no worker at all"], "no script worker could be started: "),
    ] {
        let args = args.into_iter().map(Into::into).collect();
        let pool = Pool::new(PoolSettings::new(WorkerProgram { path: PathBuf::from(program), args }));
        let hook = json!({"id": "g", "event": "pre_tool_use", "timeout_ms": 20_000,
            "handler": {"type": "script", "source": CALM}});
        let (dispatcher, around, memory) = dispatcher(&pool, &hook);
        let event = GateEvent::PreToolUse { tool_name: "exec".into(), tool_input: json!({}) };
        let ruling = dispatcher.ask(&around, &Head::default(), event).await;
        let reason = &ruling.block().unwrap().reason;
        assert_eq!(reason, "blocked because hook g failed: no script worker can be had");
        let error = memory.records()[0].error_detail.clone().unwrap();
        assert!(error.starts_with(why), "{program}: {error}");
    }
}

/// As coding agents ask: the first question is on its way before the worker is ready.
#[tokio::test]
async fn a_process_that_answers_one_event_asks_at_once() {
    let _alone = alone();
    let once = |program: &str, args: &[&str]| {
        let args = args.iter().map(Into::into).collect();
        Pool::new(PoolSettings::for_one_event(WorkerProgram { path: program.into(), args }))
    };
    let pool = once(WORKER, &["t-once"]);
    // twice the same and then another: it is loaded again, and each call begins anew
    let counting = script(
        &pool,
        "let n = 0; function handle() { n++; return { decision: n === 1 ? 'allow' : 'block' }; }",
    );
    let calm = script(&pool, CALM);
    for handler in [&counting, &counting, &calm, &counting, &calm] {
        assert!(allowed(&ask(handler, "a", 5 * SECOND).await));
    }
    // one that never ends takes its worker with it; the next call gets another
    let endless = script(&pool, "function handle() { for (;;) {} }");
    assert!(!allowed(&ask(&endless, "a", SECOND / 4).await));
    assert!(allowed(&ask(&script(&pool, CALM), "a", 5 * SECOND).await));
    for (program, args) in [
        ("no/such/program", &[][..]),
        ("/bin/true", &[]),
        ("/bin/echo", &["hello, this is no worker at all"]),
    ] {
        let pool = once(program, args);
        assert!(!allowed(&ask(&script(&pool, CALM), "a", 5 * SECOND).await), "{program}");
    }
}

fn dispatcher(pool: &Arc<Pool>, hook: &Value) -> (Dispatcher, Surroundings, Arc<Memory>) {
    let loaded = load(pool, hook);
    assert!(loaded.problems.is_empty(), "{:?}", loaded.problems);
    let memory = Arc::new(Memory::new(10));
    let around = Surroundings {
        timer: Arc::new(TokioTimer::new()),
        recorder: memory.clone(),
        budget: Duration::from_secs(60),
    };
    (Dispatcher::new(HookSet::new(loaded.hooks).unwrap()), around, memory)
}

fn load(pool: &Arc<Pool>, hook: &Value) -> Loaded {
    let read = define::read("hooks.json", &hook.to_string(), Source::User, &ActionKinds::standard());
    let workshop = Workshop::empty().with(HandlerType::Script, maker(pool.clone()));
    workshop.equip(Loaded { hooks: read.hooks, problems: read.problems, warnings: read.warnings })
}

#[test]
fn what_is_wrong_with_a_script_is_told_when_it_is_loaded() {
    let _alone = alone();
    let pool = Pool::new(settings("t-load"));
    for (handler, expected) in [
        (json!({"source": "function handle(e) {\n  return { decision: 'allow' ;\n}"}), "(line 2, column "),
        (json!({"source": "import fs from 'fs'"}), "(line 1, column "),
        (json!({"source": "let a; let a;"}), "SyntaxError"),
        (json!({"source": "/(/"}), "SyntaxError"),
        (json!({"source": " \n"}), "the script is empty"),
        (json!({"source": "a\u{0}b"}), "zero character"),
        (json!({"source": "x".repeat(32_769)}), "at most 32768"),
        (json!({"source": CALM, "memory_mb": 4096}), "`memory_mb` is 4096; expected 1 to 128"),
        (json!({"file": "../a.js"}), "leads out of the hook file's folder"),
        (json!({"file": "a.js"}), "cannot be read"),
    ] {
        let mut handler = handler;
        handler["type"] = "script".into();
        let loaded = load(&pool, &json!({"id": "g", "event": "pre_tool_use", "handler": handler}));
        assert!(loaded.hooks.is_empty());
        let problem = loaded.problems[0].to_string();
        assert!(problem.contains(expected) && problem.contains("handler"), "{problem}");
        assert!(!problem.contains("/proc") && !problem.contains("hookgate-script-worker"), "{problem}");
    }
}

#[tokio::test]
async fn a_worker_has_nothing_to_lose() {
    let _alone = alone();
    let pool = Pool::new(settings("t-confined"));
    assert!(allowed(&ask(&script(&pool, CALM), "a", 5 * SECOND).await));
    assert_eq!(pool.unconfined().as_deref(), Some(""));
    let confined = |pid: &i32| {
        fs::read_to_string(format!("/proc/{pid}/status")).is_ok_and(|status| status.contains("Seccomp:\t2"))
    };
    soon("every worker is ready", || workers("t-confined").iter().all(confined));
    for pid in workers("t-confined") {
        let read = |name: &str| fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap();
        let status = read("status");
        assert!(status.contains("NoNewPrivs:\t1") && status.contains("Seccomp:\t2"), "{status}");
        assert!(status.contains("Threads:\t1"), "{status}");
        assert_eq!(read("environ"), "");
        assert_eq!(fs::read_link(format!("/proc/{pid}/cwd")).unwrap(), Path::new("/"));
        assert_eq!(fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count(), 3);
        let limits = read("limits");
        let limit = |name: &str| -> Vec<String> {
            let line = limits.lines().find(|line| line.starts_with(name)).unwrap();
            line[26..].split_whitespace().take(2).map(str::to_owned).collect()
        };
        for name in ["Max open files", "Max processes", "Max core file size", "Max file size"] {
            assert_eq!(limit(name), ["0", "0"], "{name}");
        }
        assert!(limit("Max address space")[0].parse::<u64>().unwrap() < 2 << 30);
    }
}

#[tokio::test]
async fn scripts_add_to_answers() {
    let _alone = alone();
    let pool = Pool::new(settings("t-shape"));
    let hook = json!({"id": "g", "event": "pre_response", "mode": "send", "handler": {"type": "script",
        "source": "function handle(e) { console.log('é', { a: 1 });
            return { append: e.response.length + ' letters', extraMessages: ['one', 'two'], output: 'three' }; }"}});
    let (dispatcher, around, memory) = dispatcher(&pool, &hook);
    let event = ShapeEvent::PreResponse { response: "abc".into() };
    let additions = dispatcher.shape(&around, &Head::default(), event).await;
    assert_eq!(additions.append, ["3 letters"], "{:?}", memory.records());
    assert_eq!(additions.send, ["three", "one", "two"]);
    assert_eq!(additions.trace.ran[0].console, "é {\"a\":1}\n");
}

#[tokio::test]
async fn an_event_of_a_mebibyte_and_one_too_deep() {
    let _alone = alone();
    let pool = Pool::new(settings("t-large"));
    let handler =
        script(&pool, "function handle(e) { return { decision: 'allow', reason: '' + e.a.length }; }");
    let ask = async |json: String| {
        let facts = Facts::of_gate(
            &Head::default(),
            GateEvent::PreToolUse { tool_name: "exec".into(), tool_input: json!({}) },
        );
        let hook = Arc::from("h");
        let call = Call { facts: &facts, json: &json, within: 20 * SECOND, hook: &hook };
        handler.ask(call).await
    };
    let list = format!("{{\"a\":[{}0]}}", "0,".repeat(200_000));
    assert_eq!(ask(list).await.unwrap().reason.as_deref(), Some("200001"));
    let text = format!("{{\"a\":\"{}\"}}", "é".repeat(4 << 20));
    assert_eq!(ask(text).await.unwrap().reason.as_deref(), Some("4194304"));
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(1_000_000), "]".repeat(1_000_000));
    assert!(ask(deep).await.is_err());
    assert!(ask("{\"a\":[]}".into()).await.is_ok());
}

#[tokio::test]
async fn a_full_queue_is_a_fault() {
    let _alone = alone();
    let pool = Pool::new(PoolSettings { queue: 1, share: 1, ..settings("t-queue") });
    let (native, calm) = (script(&pool, NATIVE), script(&pool, CALM));
    assert!(allowed(&ask(&calm, "a", 5 * SECOND).await));
    let (first, second, third) = tokio::join!(
        ask(&native, "a", Duration::from_millis(200)),
        ask(&calm, "a", 5 * SECOND),
        ask(&calm, "a", 5 * SECOND),
    );
    assert_eq!(first, Err(Fault::Timeout));
    assert!(allowed(&second), "{second:?}");
    assert_eq!(third.unwrap_err().to_string(), "too many calls wait for a script worker");
    // another tenant has a queue of its own
    assert!(allowed(&ask(&calm, "b", 5 * SECOND).await));
}
