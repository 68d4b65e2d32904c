//! The whole path on real files: what a gate waits for, rows a second beside the bare database, questions over many
//! rows. Own harness, because waiting and percentiles are what is measured.
//!
//! `cargo bench -p hookgate-store --bench path [-- record|wait|rows|questions|postgres]`; `HOOKGATE_BENCH_ROWS` sets the number
//! of rows for the questions (default one million).
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr,
    missing_docs,
    reason = "a test may stop"
)]

use hookgate_core::facts::{Facts, GateEvent, Head};
use hookgate_core::record::{Record, Recorder, hash_with};
use hookgate_core::verdict::Decision;
use hookgate_store::audit::Audit;
use hookgate_store::database::Database;
use hookgate_store::keys::Keys;
use hookgate_store::postgres::Postgres;
use hookgate_store::query::{Filter, Order};
use hookgate_store::spool::Durability;
use hookgate_store::store::{Backend, Options, Store};
use rusqlite::params;
use std::path::Path;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

#[path = "../tests/it/server.rs"]
mod server;

const LONG: Duration = Duration::from_secs(600);

fn record(number: u64) -> Record {
    let mixed = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    Record {
        hook: format!("hook-{}", number % 40).into(),
        label: format!("label of hook {}", number % 40).into(),
        hook_version: "0123456789ab".into(),
        session_id: format!("s-{:08x}", number / 50),
        tenant_id: Some("acme".into()),
        agent_id: None,
        event_id: format!("01J9{mixed:016X}"),
        event: "pre_tool_use",
        tool_name: Some("exec".into()),
        input_hash: format!("{mixed:016x}{:016x}{:016x}{number:016x}", mixed ^ 1, mixed ^ 2),
        decision: if number.is_multiple_of(50) { Decision::Block } else { Decision::Allow },
        cause: None,
        duration: Duration::from_micros(812),
        error: None,
        error_detail: None,
        refused_fields: Vec::new(),
        tokens: None,
        times: 1,
        trace_id: None,
    }
}

fn options(dir: &Path, durability: Durability) -> Options {
    let (keys, _) = Keys::load_or_make(&dir.join("keys")).unwrap();
    Options { durability, keys: Some(keys), ..Options::new(dir) }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// What one caller waits for, also while others fill the database and checkpoints run.
fn wait(durability: Durability, busy: bool) {
    let dir = tempfile::tempdir_in(".").unwrap();
    let store = Arc::new(Store::open(&options(dir.path(), durability)).unwrap());
    let calls: u64 = if durability == Durability::Power { 300 } else { 20_000 };
    let filler = busy.then(|| {
        let store = store.clone();
        std::thread::spawn(move || {
            let runtime = runtime();
            for number in 0..100_000 {
                runtime.block_on(store.record(record(1_000_000_000 + number))).unwrap();
            }
        })
    });
    let runtime = runtime();
    let mut waits: Vec<Duration> = (0..calls)
        .map(|number| {
            let record = record(number);
            let began = Instant::now();
            runtime.block_on(store.record(record)).unwrap();
            let took = began.elapsed();
            // a gate does something else between two records
            if durability != Durability::Power && number.is_multiple_of(16) {
                std::thread::sleep(Duration::from_micros(200));
            }
            took
        })
        .collect();
    if let Some(filler) = filler {
        filler.join().unwrap();
    }
    waits.sort();
    let at = |part: f64| waits[((waits.len() - 1) as f64 * part) as usize];
    let others = if busy { "one other caller" } else { "alone" };
    println!(
        "wait {durability:?}, {others}: median {:?}, p99 {:?}, p99.9 {:?}, longest {:?}",
        at(0.5),
        at(0.99),
        at(0.999),
        at(1.0)
    );
}

/// Rows a second through the whole path, with 32 callers.
fn rows_through(options: &Options, rows: u64) -> f64 {
    let store = Arc::new(Store::open(options).unwrap());
    let runtime = runtime();
    let began = Instant::now();
    runtime.block_on(async {
        let callers = (0..32u64).map(|caller| {
            let store = store.clone();
            tokio::spawn(async move {
                for number in (caller..rows).step_by(32) {
                    store.record(record(number)).await.unwrap();
                }
            })
        });
        for caller in callers.collect::<Vec<_>>() {
            caller.await.unwrap();
        }
    });
    let taken = began.elapsed();
    store.flush(LONG).unwrap();
    let all = began.elapsed();
    let a_second = rows as f64 / all.as_secs_f64();
    println!("  callers done after {taken:?}, all in the database after {all:?}");
    a_second
}

/// The same columns and indexes, so many rows in a transaction, nothing around it.
fn rows_bare(dir: &Path, durability: Durability, rows: u64, at_once: u64) -> f64 {
    // the schema is the store's own
    let options = Options { keys: None, ..options(dir, durability) };
    drop(Audit::open(&options).unwrap());
    let mut connection = rusqlite::Connection::open(options.database_file()).unwrap();
    let synchronous = if durability == Durability::Power { "FULL" } else { "NORMAL" };
    for (name, value) in
        [("synchronous", synchronous), ("cache_size", "-65536"), ("wal_autocheckpoint", "16000")]
    {
        connection.pragma_update(None, name, value).unwrap();
    }
    let began = Instant::now();
    for first in (0..rows).step_by(at_once as usize) {
        let transaction = connection.transaction().unwrap();
        {
            let mut insert = transaction
                .prepare_cached(
                    "INSERT INTO executions(n, hook, subject, kind, chain, seq, created_at, duration_us, input_hash,
                     dedup, hash, event_id) VALUES(?1, ?2, ?3, 1, 1, ?1, ?4, 812, ?5, ?6, ?5, ?7)
                     ON CONFLICT(dedup) DO NOTHING",
                )
                .unwrap();
            for number in first..(first + at_once).min(rows) {
                let mixed = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
                let mut hash = [0; 32];
                hash[..8].copy_from_slice(&mixed.to_le_bytes());
                let mut dedup = [0; 16];
                dedup[..8].copy_from_slice(&mixed.rotate_left(17).to_le_bytes());
                let (number, mixed) = (number as i64, format!("01J9{mixed:016X}"));
                insert
                    .execute(params![
                        number + 1,
                        number % 40,
                        number / 50,
                        1_767_225_600_000 + number,
                        hash,
                        dedup,
                        mixed
                    ])
                    .unwrap();
            }
        }
        transaction.commit().unwrap();
    }
    rows as f64 / began.elapsed().as_secs_f64()
}

/// Processor time of this thread.
fn processor() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// What a record costs the caller's processor: canonical JSON, digest, row, handing over.
fn record_cost(failed: bool) {
    let dir = tempfile::tempdir_in(".").unwrap();
    let store = Store::open(&options(dir.path(), Durability::Relaxed)).unwrap();
    let tool_input = serde_json::json!({
        "command": "git -C /srv/app log --oneline -n 20 | head", "cwd": "/srv/app", "timeout": 30,
    });
    let event = GateEvent::PreToolUse { tool_name: "exec".into(), tool_input };
    let facts = Facts::of_gate(&Head::default(), event);
    let mut number = 0;
    let mut rounds: Vec<[u128; 2]> = (0..41)
        .map(|_| {
            let mut records: Vec<Record> = Vec::new();
            for _ in 0..2000 {
                number += 1;
                let detail = failed.then(|| "x".repeat(300));
                records.push(Record { error_detail: detail, ..record(number) });
            }
            let began = processor();
            for record in &mut records {
                record.input_hash = hash_with(&facts, |canonical| store.digest(canonical));
            }
            let hashed = processor();
            for record in records {
                let kept = store.record(record).as_mut().poll(&mut Context::from_waker(Waker::noop()));
                assert!(kept.is_ready());
            }
            let kept = processor();
            store.flush(LONG).unwrap();
            [hashed - began, kept - hashed].map(|time| time.as_nanos() / 2000)
        })
        .collect();
    rounds.sort_by_key(|[hash, keep]| hash + keep);
    let [hash, keep] = rounds[20];
    let what = if failed { "with a sealed detail of 300 bytes" } else { "without a detail" };
    println!("a record {what}: {hash} ns canonical JSON and digest, {keep} ns row and handing over");
}

fn rows(durability: Durability) {
    let count = 300_000;
    let bare: Vec<f64> = [1024, 8192]
        .into_iter()
        .map(|at_once| {
            let dir = tempfile::tempdir_in(".").unwrap();
            rows_bare(dir.path(), durability, count, at_once)
        })
        .collect();
    let dir = tempfile::tempdir_in(".").unwrap();
    let whole = rows_through(&options(dir.path(), durability), count);
    println!(
        "rows {durability:?}: {whole:.0}/s through the whole path; bare {:.0}/s by 1024 ({:.0} %), {:.0}/s by 8192 ({:.0} %)",
        bare[0],
        100.0 * whole / bare[0],
        bare[1],
        100.0 * whole / bare[1]
    );
}

/// The same table and indexes, by arrays of 1024 rows, nothing around it.
fn rows_bare_postgres(connection: &str, rows: u64) -> f64 {
    runtime().block_on(async {
        let (client, connection) = tokio_postgres::connect(connection, tokio_postgres::NoTls).await.unwrap();
        tokio::spawn(connection);
        let statement = client
            .prepare(
                "INSERT INTO hookgate_executions(hook_id, hook_label, hook_version, session_id, tenant_id, event_id, event,
                 tool_name, input_hash, decision, duration_us, dedup, created_at, seq, hash, chain)
                 SELECT a, a, g, b, h, c, i, j, d, k, l, e, f, f, d, 1
                 FROM unnest($1::text[], $2::text[], $3::text[], $4::bytea[], $5::bytea[], $6::bigint[], $7::text[],
                 $8::text[], $9::text[], $10::text[], $11::text[], $12::bigint[])
                 u(a, b, c, d, e, f, g, h, i, j, k, l)
                 ON CONFLICT(dedup) DO NOTHING",
            )
            .await
            .unwrap();
        let began = Instant::now();
        for first in (0..rows).step_by(1024) {
            let numbers = first..(first + 1024).min(rows);
            let mixed = |number: u64| number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
            let texts = |of: fn(u64) -> String| numbers.clone().map(of).collect::<Vec<_>>();
            let hooks = texts(|number| format!("label of hook {}", number % 40));
            let sessions = texts(|number| format!("s-{:08x}", number / 50));
            let events: Vec<String> = numbers.clone().map(|number| format!("01J9{:016X}", mixed(number))).collect();
            let bytes = |times: usize| {
                numbers.clone().map(|number| mixed(number).to_be_bytes().repeat(times)).collect::<Vec<_>>()
            };
            let times: Vec<i64> = numbers.clone().map(|number| number as i64).collect();
            let same = |text: &'static str| vec![text; hooks.len()];
            let (version, tenant, event) = (same("0123456789ab"), same("acme"), same("pre_tool_use"));
            let (tool, decision, took) = (same("exec"), same("allow"), vec![812i64; hooks.len()]);
            let (hashes, dedups) = (bytes(4), bytes(2));
            client
                .execute(
                    &statement,
                    &[
                        &hooks, &sessions, &events, &hashes, &dedups, &times, &version, &tenant, &event, &tool,
                        &decision, &took,
                    ],
                )
                .await
                .unwrap();
        }
        rows as f64 / began.elapsed().as_secs_f64()
    })
}

fn postgres() {
    let count = 150_000;
    let Some(server) = server::Server::start(true) else { return };
    let backend = |connection: String| -> Backend {
        Arc::new(move || Ok(Box::new(Postgres::open(&connection)?) as Box<dyn Database>))
    };
    let bare = {
        let connection = server.fresh();
        (backend(connection.clone()))().unwrap();
        rows_bare_postgres(&connection, count)
    };
    let dir = tempfile::tempdir_in(".").unwrap();
    let options =
        Options { backend: Some(backend(server.fresh())), ..options(dir.path(), Durability::Process) };
    let whole = rows_through(&options, count);
    println!(
        "rows PostgreSQL: {whole:.0}/s through the whole path, {bare:.0}/s bare by 1024 ({:.0} %)",
        100.0 * whole / bare
    );
}

fn questions() {
    let count: u64 = std::env::var("HOOKGATE_BENCH_ROWS").map_or(1_000_000, |rows| rows.parse().unwrap());
    let dir = tempfile::tempdir_in(".").unwrap();
    let options = options(dir.path(), Durability::Process);
    rows_through(&options, count);
    let size = std::fs::metadata(options.database_file()).unwrap().len();
    let mut audit = Audit::open(&options).unwrap();
    let size = size.max(std::fs::metadata(options.database_file()).unwrap().len());
    println!("{count} rows: {} bytes a row", size / count);
    let timed = |what: &str, run: &mut dyn FnMut() -> usize| {
        let mut times: Vec<(Duration, usize)> = (0..3)
            .map(|_| {
                let began = Instant::now();
                let found = run();
                (began.elapsed(), found)
            })
            .collect();
        times.sort();
        println!("{what}: {:?} ({} found)", times[1].0, times[1].1);
    };
    let text = |text: String| Some(text);
    for (what, filter) in [
        (
            "list of a session",
            Filter { session_id: text(format!("s-{:08x}", count / 100)), ..Filter::default() },
        ),
        ("list of an event", Filter { event_id: text(record(count / 3).event_id), ..Filter::default() }),
        ("list of the newest blocks", Filter { decision: text("block".into()), ..Filter::default() }),
    ] {
        timed(what, &mut || audit.list(&filter, Order::NewestFirst, None, 100).unwrap().len());
    }
    let hash = Filter { input_hash: Some([7; 32]), ..Filter::default() };
    timed("search of an input that never was", &mut || {
        audit.list(&hash, Order::NewestFirst, None, 100).unwrap().len()
    });
    timed("stats", &mut || audit.stats(&Filter::default()).unwrap().hooks.len());
    let began = Instant::now();
    let verified = audit.verify().unwrap();
    assert_eq!((verified.rows, verified.fault), (count, None));
    println!("verify: {:.0} rows/s", count as f64 / began.elapsed().as_secs_f64());
}

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|wanted| wanted == name);
    if is_wanted("record") {
        record_cost(false);
        record_cost(true);
    }
    if is_wanted("wait") {
        for durability in [Durability::Process, Durability::Relaxed, Durability::Power] {
            wait(durability, false);
        }
        wait(Durability::Process, true);
    }
    if is_wanted("rows") {
        rows(Durability::Process);
        rows(Durability::Power);
    }
    if is_wanted("postgres") {
        postgres();
    }
    if is_wanted("questions") {
        questions();
    }
}
