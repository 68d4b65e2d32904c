//! What ends a run early: signals, and outputs that nobody reads.

use crate::support::{Place, Ran};
use rustix::process::{Pid, Signal, kill_process};
use std::io::Read;
use std::process::Child;
use std::time::{Duration, Instant};

fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_raw(child.id().try_into().unwrap()).unwrap(), signal).unwrap();
}

/// Reads standard output until this has come.
fn wait_for(child: &mut Child, text: &str) -> String {
    let mut seen = String::new();
    let mut buffer = [0; 64];
    while !seen.contains(text) {
        let n = child.stdout.as_mut().unwrap().read(&mut buffer).unwrap();
        assert!(n > 0, "the output ended: {seen}");
        seen.push_str(std::str::from_utf8(&buffer[..n]).unwrap());
    }
    seen
}

const SLOW: &str = r#"{"turns":[{"chunks":[{"type":"content","text":"one "},{"type":"content","text":"two "}],"delay_ms":300},{"text":"x"}]}"#;

fn slow() -> Place {
    let words = "word ".repeat(1000);
    let script = serde_json::json!({"turns":[{"text": words, "delay_ms": 20}]});
    Place::new().with("script.json", &script.to_string())
}

#[test]
fn a_slow_answer_comes_whole() {
    Place::new().with("script.json", SLOW).chat(&["x"]).is(0, "one two \n", "");
}

#[test]
fn signals_end_a_run_with_their_code() {
    for (kind, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        let place = slow();
        let mut child = place.command(&["chat", "--script", "script.json", "x"]).spawn().unwrap();
        wait_for(&mut child, "word");
        signal(&child, kind);
        let ran = Ran::from(child.wait_with_output().unwrap());
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(code), ""));
        assert!(ran.stdout.ends_with('\n'), "the line is ended");
    }
}

#[test]
fn a_signal_is_an_end_for_programs() {
    let place = slow();
    let mut child = place.command(&["chat", "--script", "script.json", "--json", "x"]).spawn().unwrap();
    wait_for(&mut child, "chunk");
    signal(&child, Signal::INT);
    let ran = Ran::from(child.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(130));
    assert!(
        ran.stdout
            .ends_with("{\"type\":\"end\",\"outcome\":\"error\",\"message\":\"stopped by a signal\"}\n"),
        "{}",
        ran.stdout
    );
}

#[test]
fn a_stopped_run_leaves_no_tool_behind() {
    let script = r#"{"turns":[{"text":"go","tool_calls":[{"tool":"exec","args":{"command":"echo $$ > pid; sleep 600"}}]}]}"#;
    let place = Place::new().with("script.json", script);
    let mut child =
        place.command(&["chat", "--script", "script.json", "--tools", "exec", "x"]).spawn().unwrap();
    let pid = place.path("pid");
    let began = Instant::now();
    while !std::fs::read_to_string(&pid).is_ok_and(|text| text.ends_with('\n')) {
        assert!(began.elapsed() < Duration::from_secs(20), "the tool did not start");
        std::thread::sleep(Duration::from_millis(10));
    }
    signal(&child, Signal::INT);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let group: i32 = std::fs::read_to_string(pid).unwrap().trim().parse().unwrap();
    let began = Instant::now();
    while rustix::process::test_kill_process_group(Pid::from_raw(group).unwrap()).is_ok() {
        // a killed process that nobody has waited for yet still counts
        assert!(began.elapsed() < Duration::from_secs(5), "the tool is still there");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_reader_that_goes_away_ends_it_quietly() {
    for json in [&["x"][..], &["x", "--json"]] {
        let place = slow();
        let args = [&["chat", "--script", "script.json"], json].concat();
        let mut child = place.command(&args).spawn().unwrap();
        wait_for(&mut child, "word");
        drop(child.stdout.take());
        let began = Instant::now();
        let ran = Ran::from(child.wait_with_output().unwrap());
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
        assert!(began.elapsed() < Duration::from_secs(10), "the rest was not waited for");
    }
}

#[test]
fn a_signal_is_heard_while_the_output_is_stuck() {
    let words = "word ".repeat(100_000);
    let script = serde_json::json!({"turns":[{"text": words}]});
    let place = Place::new().with("script.json", &script.to_string());
    let mut child = place.command(&["chat", "--script", "script.json", "x"]).spawn().unwrap();
    wait_for(&mut child, "word");
    std::thread::sleep(Duration::from_millis(500));
    signal(&child, Signal::INT);
    let began = Instant::now();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(began.elapsed() < Duration::from_secs(10));
}

#[test]
fn a_full_disk_is_an_error() {
    let Ok(full) = std::fs::OpenOptions::new().write(true).open("/dev/full") else { return };
    let place = Place::answering("a");
    let output = place.command(&["chat", "--script", "script.json", "x"]).stdout(full).output().unwrap();
    Ran::from(output).fails(2, "error: the output cannot be written: No space left on device");
}

#[cfg(target_os = "linux")]
#[test]
fn a_late_command_hook_leaves_no_process_behind() {
    let hook = r#"{"id": "late", "event": "user_prompt_submit", "timeout_ms": 2200,
        "handler": {"type": "command", "shell": "sleep 86399.25 & setsid sleep 86399.25 & sleep 86399.25"}}"#;
    let place = Place::answering("x").with("hooks/late.json", hook);
    let ran = place.chat(&["--hooks", "hooks", "go"]);
    assert!(ran.stderr.contains("gave no answer in time"), "{}", ran.stderr);
    let left = std::fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let line = std::fs::read(entry.ok()?.path().join("cmdline")).ok()?;
        String::from_utf8_lossy(&line).contains("sleep\086399.25").then_some(())
    });
    assert_eq!(left.count(), 0);
}
