//! PostgreSQL keeps the contract, and loses nothing when it is down.

use crate::bench::{LONG, event_ids, keep, options, record, wait};
use crate::contract::{self, Subject};
use crate::server::{Server, execute};
use hookgate_core::record::Recorder;
use hookgate_store::StoreError;
use hookgate_store::audit::Audit;
use hookgate_store::database::Database;
use hookgate_store::outbox::{Job, Outbox, Retry};
use hookgate_store::postgres::Postgres;
use hookgate_store::store::{Backend, Options, Store};
use hookgate_store::verify::FaultKind;
use std::collections::HashSet;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

fn backend(connection: &str) -> Backend {
    let connection = connection.to_owned();
    Arc::new(move || Ok(Box::new(Postgres::open(&connection)?) as Box<dyn Database>))
}

fn on(connection: &str, dir: &Path) -> Options {
    Options { backend: Some(backend(connection)), ..options(dir) }
}

#[test]
fn postgres_keeps_the_contract() {
    let Some(server) = Server::start(false) else { return };
    contract::run(|| Subject::new(Some(backend(&server.fresh()))));
}

#[test]
fn a_server_that_restarts_in_mid_load_loses_nothing() {
    let Some(mut server) = Server::start(true) else { return };
    let dir = tempfile::tempdir().unwrap();
    let options = on(&server.fresh(), dir.path());
    let store = Arc::new(Store::open(&options).unwrap());
    let writer = {
        let store = store.clone();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            for number in 0..5000 {
                runtime.block_on(store.record(record("h", &format!("e-{number}")))).unwrap();
                if number % 10 == 0 {
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
        })
    };
    for _ in 0..2 {
        std::thread::sleep(Duration::from_millis(150));
        server.stop();
        std::thread::sleep(Duration::from_millis(50));
        server.run();
    }
    writer.join().unwrap();
    store.flush(LONG).unwrap();
    assert_eq!(event_ids(&options).len(), 5000);
    let verified = Audit::open(&options).unwrap().verify().unwrap();
    assert_eq!((verified.rows, verified.fault), (5000, None));
}

#[test]
fn a_server_that_is_down_holds_up_no_gate() {
    let Some(mut server) = Server::start(true) else { return };
    let dir = tempfile::tempdir().unwrap();
    let options = on(&server.fresh(), dir.path());
    server.stop();
    let store = Store::open(&options).unwrap();
    wait(store.record(record("h", "e-1"))).unwrap();
    assert!(store.flush(Duration::from_millis(200)).is_err());
    assert!(store.health().database.unwrap().starts_with("PostgreSQL at"));
    assert!(matches!(Audit::open(&options).unwrap_err(), StoreError::Unavailable { .. }));
    server.run();
    store.flush(LONG).unwrap();
    assert_eq!(event_ids(&options), ["e-1"]);
}

#[test]
fn two_machines_write_one_trail_with_a_chain_each() {
    let Some(server) = Server::start(false) else { return };
    let connection = server.fresh();
    let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    // both see the same events, and both have the key
    let first = on(&connection, dirs[0].path());
    let second = Options { keys: first.keys.clone(), ..on(&connection, dirs[1].path()) };
    std::thread::scope(|scope| {
        for options in [&first, &second] {
            scope.spawn(|| keep(options, (0..2000).map(|number| record("h", &format!("e-{number}")))));
        }
    });
    assert_eq!(event_ids(&first).into_iter().collect::<HashSet<_>>().len(), 2000);
    let mut audit = Audit::open(&second).unwrap();
    let verified = audit.verify().unwrap();
    assert_eq!((verified.rows, verified.fault), (2000, None));
    let checkpoint = audit.checkpoint().unwrap();
    assert_eq!(checkpoint.heads.iter().map(|(_, link)| link.seq).sum::<u64>(), 2000);
    execute(&connection, "DELETE FROM hookgate_executions WHERE event_id = 'e-1000'").unwrap();
    let fault = audit.verify_against(&checkpoint).unwrap().fault.unwrap();
    assert!(matches!(fault.kind, FaultKind::Missing | FaultKind::Cut), "{fault}");
}

#[test]
fn workers_step_over_each_others_jobs() {
    let Some(server) = Server::start(false) else { return };
    let dir = tempfile::tempdir().unwrap();
    let options = on(&server.fresh(), dir.path());
    let store = Store::open(&options).unwrap();
    for number in 0..200 {
        let job = Job {
            hook: "h".into(),
            event_id: format!("e-{number}"),
            origin: String::new(),
            facts: "{}".into(),
        };
        assert!(store.try_enqueue(&job));
    }
    store.flush(LONG).unwrap();
    let seen = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut outbox = Outbox::open(&options, Retry::default()).unwrap();
                let note = |job: &Job| {
                    seen.lock().unwrap().push(job.event_id.clone());
                    Ok(())
                };
                // an empty answer may only mean that all that is due was just being claimed
                while outbox.next_due().unwrap().is_some() {
                    outbox.drain(LONG, note).unwrap();
                }
            });
        }
    });
    let seen = seen.into_inner().unwrap();
    assert_eq!((seen.len(), seen.iter().collect::<HashSet<_>>().len()), (200, 200));
}

#[test]
fn a_newer_schema_is_refused_and_the_view_is_there() {
    let Some(server) = Server::start(false) else { return };
    let dir = tempfile::tempdir().unwrap();
    let connection = server.fresh();
    let options = on(&connection, dir.path());
    keep(&options, [record("h", "e-1")]);
    let view = "SELECT id, hook_id, session_id, event, input_hash, decision, duration_ms, dedup_key, error, error_detail,
                created_at, tenant_id, agent_id, cause, hook_label, hook_version, refused_fields, tool_name, trace_id,
                tokens, times, key_id, event_id, writer, seq, hash FROM hook_executions";
    execute(&connection, view).unwrap();
    execute(&connection, "UPDATE hookgate_schema SET version = 99").unwrap();
    let error = Store::open(&options).unwrap_err();
    assert!(matches!(error, StoreError::Newer { found: 99, .. }), "{error}");
    // from asynchronous code, too
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let error = runtime.block_on(async { Audit::open(&options).unwrap_err() });
    assert!(matches!(error, StoreError::Newer { found: 99, .. }), "{error}");
}

#[test]
fn a_bad_connection_string_keeps_its_password() {
    let error = Postgres::open("host=/nowhere password=hunter22 port=x").unwrap_err().to_string();
    assert!(error.contains("cannot be read") && !error.contains("hunter22"), "{error}");
    let error = Postgres::open("host=/nowhere password=hunter22 user=u").unwrap_err().to_string();
    assert!(error.contains("/nowhere") && !error.contains("hunter22"), "{error}");
}
