//! What a coding agent waits for: from the start of the hook process to its verdict, which is the end of its output.
//!
//! One call of each after the other, so that all meet the same machine; the medians. `HOOKGATE_BENCH_BIN` names a folder
//! with other builds of the programs, such as those that are shipped: benches are built without link-time optimisation.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    missing_docs,
    reason = "a test may stop"
)]

use serde_json::{Value, json};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const ROUNDS: usize = 300;

/// The `number`th of twenty hooks: matchers, conditions and patterns, none of which lets `ls` through.
fn hook(number: usize) -> Value {
    let mut hook = json!({
        "id": format!("h{number}"), "event": "pre_tool_use", "matcher": "exec",
        "handler": {"type": "script", "source": "function handle(event) { return { decision: 'allow' }; }"},
    });
    match number % 3 {
        0 => hook["matcher"] = "write_file|edit_file".into(),
        1 => hook["if_expr"] = format!("toolInput.command.contains('terraform destroy {number}')").into(),
        _ => hook["regex"] = format!("rm\\s+-rf\\s+/{number}\\b").into(),
    }
    hook
}

/// A folder with twenty files; the last hook's matcher is this.
fn folder(dir: &Path, name: &str, last: &str) -> PathBuf {
    let folder = dir.join(name);
    std::fs::create_dir(&folder).unwrap();
    for number in 0..20 {
        let mut hook = hook(number);
        if number == 19 {
            hook["matcher"] = last.into();
            hook.as_object_mut().unwrap().remove("if_expr");
        }
        std::fs::write(folder.join(format!("h{number:02}.json")), hook.to_string()).unwrap();
    }
    folder
}

/// From the start of the process to the end of its output.
fn call(command: &[String], payload: &[u8]) -> Duration {
    let began = Instant::now();
    let mut child = Command::new(&command[0])
        .args(&command[1..])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(payload).unwrap();
    let mut said = String::new();
    child.stdout.take().unwrap().read_to_string(&mut said).unwrap();
    let took = began.elapsed();
    assert_eq!(said, "");
    assert!(child.wait().unwrap().success());
    took
}

fn main() {
    let dir = tempfile::tempdir().unwrap();
    let empty = dir.path().join("empty");
    std::fs::create_dir(&empty).unwrap();
    let (quiet, busy) = (folder(dir.path(), "quiet", "fetch_page"), folder(dir.path(), "busy", "exec"));
    let built = Path::new(env!("CARGO_BIN_EXE_hookgate-hook")).parent().unwrap().to_owned();
    let programs = std::env::var_os("HOOKGATE_BENCH_BIN").map_or(built, PathBuf::from);
    let hook = |program: &str, hooks: &Path| -> Vec<String> {
        let (program, hooks, data) = (programs.join(program), hooks.display(), dir.path().join("data"));
        let (program, data) = (program.display(), data.display());
        format!("{program} hook claude-code --hooks {hooks} --data-dir {data}")
            .split(' ')
            .map(str::to_owned)
            .collect()
    };
    let plain = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    let commands: [(&str, Vec<String>); 6] = [
        ("true", plain(&["true"])),
        ("sh -c 'cat >/dev/null'", plain(&["sh", "-c", "cat >/dev/null"])),
        ("hookgate-hook, no hooks", hook("hookgate-hook", &empty)),
        ("hookgate-hook, 20 hooks, no handler runs", hook("hookgate-hook", &quiet)),
        ("hookgate-hook, 20 hooks, one script runs", hook("hookgate-hook", &busy)),
        ("hookgate hook, 20 hooks, no handler runs", hook("hookgate", &quiet)),
    ];
    let payload = json!({"hook_event_name": "PreToolUse", "session_id": "s1", "tool_name": "Bash",
        "tool_input": {"command": "ls"}, "cwd": "/tmp"});
    let payload = payload.to_string().into_bytes();
    let mut times: [Vec<Duration>; 6] = Default::default();
    for _ in 0..ROUNDS {
        for ((_, command), times) in commands.iter().zip(&mut times) {
            times.push(call(command, &payload));
        }
    }
    for ((name, _), mut times) in commands.iter().zip(times) {
        times.sort();
        let at = |part: usize| times[(times.len() - 1) * part / 100];
        println!("{name}: median {:?}, p10 {:?}, p90 {:?}", at(50), at(10), at(90));
    }
}
