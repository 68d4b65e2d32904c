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
use hookgate_core::record::{InputHash, Record, Recorder, hash_with};
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

/// Events have ids as the gateway gives them, counted up, each seen by three hooks. With `HOOKGATE_BENCH_IDS=random` they
/// are as callers may give them.
fn event_id(number: u64) -> String {
    let counted = number / 3;
    if std::env::var_os("HOOKGATE_BENCH_IDS").is_some_and(|ids| ids == "random") {
        return format!("{:016x}-{counted:x}", counted.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    }
    format!("19ad64c3a01-{counted:x}-0")
}

fn hash(number: u64) -> [u8; 32] {
    let mut hash = [0; 32];
    for (part, place) in hash.chunks_exact_mut(8).zip([1, 3, 5, 7]) {
        part.copy_from_slice(&number.wrapping_add(place).wrapping_mul(0x9E37_79B9_7F4A_7C15).to_le_bytes());
    }
    hash
}

fn record(number: u64) -> Record {
    Record {
        hook: format!("hook-{}", number % 40).into(),
        label: format!("label of hook {}", number % 40).into(),
        hook_version: "0123456789ab".into(),
        session_id: format!("s-{:08x}", number / 50),
        tenant_id: Some("acme".into()),
        agent_id: None,
        event_id: event_id(number),
        event: "pre_tool_use",
        tool_name: Some("exec".into()),
        input_hash: InputHash(hash(number)),
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
    let (taken, by_then) = (began.elapsed(), store.health().rows);
    store.flush(LONG).unwrap();
    let all = began.elapsed();
    let a_second = rows as f64 / all.as_secs_f64();
    println!("  callers done after {taken:?}, {by_then} rows in the database by then; all after {all:?}");
    a_second
}

/// A row as it stands in the database.
struct Stored {
    numbers: [i64; 6],
    input_hash: [u8; 32],
    dedup: [u8; 16],
    hash: [u8; 32],
    event_id: String,
}

/// The rows of a trail, in the order in which they came.
fn stored(options: &Options) -> Vec<Stored> {
    let connection = rusqlite::Connection::open(options.database_file()).unwrap();
    let mut all = connection
        .prepare(
            "SELECT n, hook, subject, kind, created_at, duration_us, input_hash, dedup, hash, event_id
             FROM executions ORDER BY n",
        )
        .unwrap();
    let rows = all.query_map([], |row| {
        let mut numbers = [0; 6];
        for (at, number) in numbers.iter_mut().enumerate() {
            *number = row.get(at)?;
        }
        Ok(Stored {
            numbers,
            input_hash: row.get(6)?,
            dedup: row.get(7)?,
            hash: row.get(8)?,
            event_id: row.get(9)?,
        })
    });
    rows.unwrap().map(Result::unwrap).collect()
}

/// The same rows in the same order, the same table and indexes, so many rows in a transaction, nothing around it.
fn rows_bare(dir: &Path, durability: Durability, rows: &[Stored], at_once: usize) -> f64 {
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
    for rows in rows.chunks(at_once) {
        let transaction = connection.transaction().unwrap();
        {
            let mut insert = transaction
                .prepare_cached(
                    "INSERT INTO executions(n, hook, subject, kind, chain, seq, created_at, duration_us, input_hash,
                     dedup, hash, event_id) VALUES(?1, ?2, ?3, ?4, 1, ?1, ?5, ?6, ?7, ?8, ?9, ?10)
                     ON CONFLICT(event_id, dedup) DO NOTHING",
                )
                .unwrap();
            for Stored { numbers: [n, hook, subject, kind, at, us], input_hash, dedup, hash, event_id } in
                rows
            {
                insert
                    .execute(params![n, hook, subject, kind, at, us, input_hash, dedup, hash, event_id])
                    .unwrap();
            }
        }
        transaction.commit().unwrap();
    }
    rows.len() as f64 / began.elapsed().as_secs_f64()
}

/// Processor time of this thread.
fn processor() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// How often each is measured.
const ROUNDS: usize = 5;

/// Records in a row whose cost is read at once: a busy answer leaves as many.
const BURST: u64 = 100;

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
    let mut rounds: Vec<[u128; 2]> = (0..401)
        .map(|round| {
            let mut records: Vec<Record> = Vec::new();
            for _ in 0..BURST {
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
            if round % 50 == 0 {
                store.flush(LONG).unwrap();
            }
            [hashed - began, kept - hashed].map(|time| time.as_nanos() / u128::from(BURST))
        })
        .collect();
    rounds.sort_by_key(|[hash, keep]| hash + keep);
    let [hash, keep] = rounds[200];
    let what = if failed { "with a sealed detail of 300 bytes" } else { "without a detail" };
    println!("a record {what}: {hash} ns canonical JSON and digest, {keep} ns row and handing over");
}

/// Rounds of the whole path and of the bare database, one after the other; the medians.
fn rows(durability: Durability) {
    // with 32 callers that wait for a sync, no more than 32 rows can be synced at a time
    let (count, at_once): (u64, [usize; 2]) =
        if durability == Durability::Power { (60_000, [32, 1024]) } else { (300_000, [1024, 8192]) };
    let mut rounds: [Vec<f64>; 3] = Default::default();
    for _ in 0..ROUNDS {
        let dir = tempfile::tempdir_in(".").unwrap();
        let options = options(dir.path(), durability);
        rounds[0].push(rows_through(&options, count));
        let rows = stored(&options);
        assert_eq!(rows.len() as u64, count);
        for (place, at_once) in at_once.into_iter().enumerate() {
            let dir = tempfile::tempdir_in(".").unwrap();
            rounds[place + 1].push(rows_bare(dir.path(), durability, &rows, at_once));
        }
    }
    let [whole, bare, larger] = rounds.map(|mut round| {
        round.sort_by(f64::total_cmp);
        round[ROUNDS / 2]
    });
    println!(
        "rows {durability:?}: {whole:.0}/s through the whole path; bare {bare:.0}/s by {} ({:.0} %), {larger:.0}/s by {} ({:.0} %)",
        at_once[0],
        100.0 * whole / bare,
        at_once[1],
        100.0 * whole / larger
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
            let events = texts(event_id);
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
