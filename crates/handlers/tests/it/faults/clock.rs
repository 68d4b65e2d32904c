//! Clocks that jump. Limits, rests and budgets run on clocks that only go forward; here is who reads the other one.

use super::matrix::{Ends, GATES, Rig, check, only, row};
use super::server::{json, reply, serve};
use crate::bench::{Bench, reason};
use hookgate_core::future::BoxFuture;
use hookgate_core::gate::Timer;
use hookgate_core::handler::{Answer, Call, Fault, Handler, HandlerType};
use hookgate_handlers::http::{self, Network};
use hookgate_handlers::workshop::Workshop;
use serde_json::json as value;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// The files that read the wall clock, and what for.
const READERS: [&str; 3] = [
    // a date in `Retry-After`; the wait must fit into the hook's limit, see below
    "http/reply.rs",
    // the timestamp of a signature; nothing waits for it
    "http/sign.rs",
    // the `Date` that a script sees
    "script/moment.rs",
];

fn rust_files(dir: &Path, into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            rust_files(&path, into);
        } else if path.extension().is_some_and(|end| end == "rs") {
            into.push(path);
        }
    }
}

#[test]
fn nobody_else_reads_the_wall_clock() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut readers = Vec::new();
    for root in [here.join("src"), here.join("../core/src")] {
        let mut files = Vec::new();
        rust_files(&root, &mut files);
        assert!(files.len() > 20, "{root:?}");
        for file in files {
            if std::fs::read_to_string(&file).unwrap().contains("SystemTime") {
                readers.push(file.strip_prefix(&root).unwrap().display().to_string());
            }
        }
    }
    readers.sort();
    assert_eq!(readers, READERS);
}

/// What a server on another day asks for, or this one's after a jump.
#[tokio::test]
async fn dates_from_another_day_move_no_limit() {
    let rig = Rig {
        workshop: Workshop::empty().with(HandlerType::Http, http::maker(Network::new().unwrap())),
        healthy: hook(serve(json(r#"{"decision":"allow"}"#)).await),
        lay_out: |_| {},
    };
    let busy = Ends::Fails("it answered with status 503", "503");
    let mut rows = Vec::new();
    for (fault, date) in [
        ("long past", "Thu, 01 Jan 1970 00:00:00 GMT"),
        ("far ahead", "Thu, 31 Dec 2199 23:59:59 GMT"),
        ("no date", "Thu, 99 Foo 99999999 00:00:00 GMT"),
    ] {
        let does = reply("503 Later", &format!("retry-after: {date}\r\n"), "");
        rows.push(only(GATES, row(fault, hook(serve(does).await), busy)));
    }
    check(&rig, rows).await;
}

fn hook(port: u16) -> serde_json::Value {
    value!({"type": "http", "url": format!("http://127.0.0.1:{port}/"), "allow_private": true})
}

/// A clock whose readings are anything; its alarms ring at once.
#[derive(Debug)]
struct Mad {
    readings: Vec<Duration>,
    read: AtomicUsize,
}

impl Timer for Mad {
    fn now(&self) -> Duration {
        self.readings[self.read.fetch_add(1, Ordering::SeqCst) % self.readings.len()]
    }

    fn sleep(&self, _: Duration) -> BoxFuture<'static, ()> {
        Box::pin(std::future::ready(()))
    }
}

#[derive(Debug)]
struct Says(Option<&'static str>);

impl Handler for Says {
    fn ask<'a>(&'a self, _: Call<'a>) -> BoxFuture<'a, Result<Answer, Fault>> {
        match self.0 {
            Some(word) => Box::pin(std::future::ready(Ok(Answer::with_decision(word)))),
            None => Box::pin(std::future::pending()),
        }
    }
}

/// A door may bring a bad clock: it costs time, never a verdict.
#[tokio::test]
async fn a_mad_clock_opens_no_gate() {
    let (zero, hour, end) = (Duration::ZERO, Duration::from_secs(3600), Duration::MAX);
    for readings in [vec![zero], vec![hour, zero], vec![zero, hour], vec![end, zero, end], vec![zero, end]] {
        for says in [Some("block"), None] {
            let made: Arc<dyn Handler> = Arc::new(Says(says));
            let workshop = Workshop::empty().with(HandlerType::Command, move |_, _| Ok(made.clone()));
            let hook =
                value!({"id": "f", "event": "pre_tool_use", "handler": {"type": "command", "argv": ["x"]}});
            let mut bench = Bench::new(tempfile::tempdir().unwrap(), &workshop, &hook);
            bench.around.timer = Arc::new(Mad { readings: readings.clone(), read: AtomicUsize::new(0) });
            let ruling = bench.ls().await;
            assert!(reason(&ruling).contains("hook f"), "{readings:?} {says:?}: {ruling:?}");
        }
    }
}
