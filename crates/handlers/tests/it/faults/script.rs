//! Scripts that fail, and workers that die. What happens without any worker is in `tests/script.rs`.

use super::matrix::{Ends, GATES, Rig, Row, SOME, check, only, row};
use hookgate_core::handler::HandlerType;
use hookgate_handlers::script::{Pool, PoolSettings, WorkerProgram, maker};
use hookgate_handlers::workshop::Workshop;
use serde_json::{Value, json};
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A loop inside one built-in call, which asks no callback: only a killed worker ends it.
const NATIVE: &str = "Array.prototype.reverse.call({ length: 9007199254740991 });";

fn rig(mark: &str) -> Rig {
    let path = env!("CARGO_BIN_EXE_hookgate-script-worker").into();
    let settings = PoolSettings::new(WorkerProgram { path, args: vec![mark.into()] });
    let pool = Pool::new(PoolSettings { workers: 2, ..settings });
    Rig {
        workshop: Workshop::empty().with(HandlerType::Script, maker(pool)),
        healthy: script("return { decision: 'allow' };"),
        lay_out: |_| {},
    }
}

fn script(body: &str) -> Value {
    json!({"type": "script", "source": format!("function handle(e) {{ {body} }}")})
}

fn late(fault: &'static str, body: &str) -> Row {
    row(fault, script(body), Ends::Late)
}

fn fails(fault: &'static str, body: &str, why: &'static str, detail: &'static str) -> Row {
    row(fault, script(body), Ends::Fails(why, detail))
}

#[tokio::test]
async fn scripts_that_do_not_end() {
    let rows = vec![
        late("a loop", "for (;;);"),
        late("a loop that catches", "for (;;) try { for (;;); } catch (e) {} finally { for (;;); }"),
        late("a loop in the engine", NATIVE),
        late("a pattern that tries everything", "/^(a+)+$/.test('a'.repeat(40) + 'b');"),
        late("a flooded console", "for (;;) console.log('x'.repeat(1000));"),
        late("a loop while its result is written", "return { decision: { toJSON() { for (;;); } } };"),
        late("a loop while its error is told", "throw { get message() { for (;;); } };"),
    ];
    check(&rig("t-faults-late"), rows.into_iter().map(|row| only(SOME, row)).collect()).await;
}

#[tokio::test]
async fn scripts_that_fail() {
    let failed = "its script failed";
    let result = "its result is no verdict";
    let lists = "let a = []; for (let i = 0; i < 1e6; i++) a = [a]; return { decision: 'allow', a };";
    let rows = vec![
        fails("throws", "null.x", failed, "TypeError"),
        fails("throws what is no error", "throw 'rm -rf'", failed, "rm -rf"),
        fails("throws what cannot be told", "throw { toString() { throw 1 } }", failed, ""),
        fails("recursion", "return handle(e)", failed, "stack"),
        fails("out of memory", "let a = []; for (;;) a.push(new Array(1000).fill(1));", "memory", "16 MiB"),
        fails("a huge text", "return { decision: 'x'.repeat(2 ** 30) };", "its script", ""),
        fails(
            "too long a result",
            "return { decision: 'x'.repeat(70000) };",
            "its result is too long",
            "bytes",
        ),
        fails("a million lists in each other", lists, "its script ran out of memory", "16 MiB"),
        fails("lists in each other", &lists.replace("1e6", "20000"), failed, ""),
        fails("a few lists in each other", &lists.replace("1e6", "1000"), result, "recursion limit"),
        fails("a circle", "let a = {}; a.a = a; return a;", failed, "circular"),
        fails("a promise", "return Promise.resolve({ decision: 'allow' });", "", ""),
        fails("text", "return 'allow';", result, "the result is text"),
        fails("an unknown word", "return { decision: 'perhaps' };", result, "`perhaps` is no decision"),
        fails("a decision that is no text", "return { decision: true };", result, "a boolean"),
        fails("half a character", "return { decision: '\\ud800' };", result, "is no decision"),
        fails("a file", "return { decision: require('fs').readFileSync('/etc/passwd') };", failed, "require"),
        only(GATES, fails("nothing", "", "it returned nothing", "nothing was returned")),
        only(GATES, fails("no decision", "return {};", result, "no `decision`")),
    ];
    // a promise is an object without a decision, which is fine where nothing is decided
    let gates_only = |row: Row| if row.fault == "a promise" { only(GATES, row) } else { row };
    check(&rig("t-faults-fail"), rows.into_iter().map(gates_only).collect()).await;
}

/// Kills each worker of this mark that is at work.
fn killer(mark: &'static str, stop: Arc<AtomicBool>) -> std::thread::JoinHandle<()> {
    // the processor time of a process, in hundredths of a second
    let time = |pid: &str| -> u64 {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.split(") ").nth(1).and_then(|rest| rest.split(' ').nth(11)?.parse().ok()).unwrap_or(0)
    };
    let is_ours = move |pid: &str| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).nth(1) == Some(mark.as_bytes())
    };
    std::thread::spawn(move || {
        while !stop.load(Ordering::SeqCst) {
            for entry in fs::read_dir("/proc").unwrap().flatten() {
                let pid = entry.file_name().into_string().unwrap_or_default();
                if let Some(number) = pid.parse().ok().and_then(rustix::process::Pid::from_raw)
                    && is_ours(&pid)
                    && time(&pid) > 20
                {
                    let _ = rustix::process::kill_process(number, rustix::process::Signal::KILL);
                }
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_that_are_killed_in_a_call() {
    let stop = Arc::new(AtomicBool::new(false));
    let killer = killer("t-faults-kill", stop.clone());
    let died = "the script worker ended during the call";
    let rows = vec![fails("killed", NATIVE, died, died)];
    check(&rig("t-faults-kill"), rows).await;
    stop.store(true, Ordering::SeqCst);
    killer.join().unwrap();
}

#[test]
fn a_script_that_is_none_is_refused_when_it_is_loaded() {
    let rig = rig("t-faults-load");
    for (source, says) in [("function handle(e) {", "(line 1, column "), ("\u{0}", "zero character")] {
        let hook =
            json!({"id": "f", "event": "pre_tool_use", "handler": {"type": "script", "source": source}});
        let loaded = crate::bench::load(std::path::Path::new("x"), &rig.workshop, &hook);
        assert!(loaded.hooks.is_empty() && loaded.problems[0].to_string().contains(says));
    }
}
