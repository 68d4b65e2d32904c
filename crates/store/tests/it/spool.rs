//! The files in front of the database: torn, damaged, left behind, shared.

use crate::bench::{LONG, event_ids, keep, options, record, wait, with};
use hookgate_core::record::Recorder;
use hookgate_store::StoreError;
use hookgate_store::audit::Audit;
use hookgate_store::database::Database;
use hookgate_store::spool::Durability;
use hookgate_store::store::{Backend, Options, Store};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

fn spools(options: &Options) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(options.dir.join("spool")).unwrap().map(|entry| entry.unwrap().path());
    entries.collect()
}

/// A database that is down.
fn down() -> Backend {
    Arc::new(|| Err(StoreError::Unavailable { what: "the database".into(), why: "down".into() }))
}

/// Writes rows into a spool that nobody moves on.
fn leave_behind(options: &Options, count: usize) {
    let store =
        Store::open(&Options { backend: Some(down()), patience: Duration::ZERO, ..options.clone() }).unwrap();
    for number in 0..count {
        wait(store.record(record("h", &format!("e-{number}")))).unwrap();
    }
}

fn bend(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = std::fs::read(path).unwrap();
    change(&mut bytes);
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn what_a_process_left_is_taken_over() {
    for durability in [Durability::Process, Durability::Power, Durability::Relaxed] {
        let dir = tempfile::tempdir().unwrap();
        let options = with(dir.path(), durability);
        leave_behind(&options, 3000);
        assert_eq!(spools(&options).len(), 2);
        let mut audit = Audit::open(&options).unwrap();
        assert_eq!((audit.found().rows, audit.found().damaged), (3000, 0));
        assert_eq!(audit.verify().unwrap().rows, 3000);
        assert_eq!(spools(&options), Vec::<PathBuf>::new());
    }
}

#[test]
fn many_processes_may_take_over_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let options = options(dir.path());
    for _ in 0..4 {
        leave_behind(&options, 500);
    }
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| Audit::open(&options).unwrap());
        }
    });
    assert_eq!(event_ids(&options).len(), 500, "the four left the same events");
    assert_eq!(Audit::open(&options).unwrap().verify().unwrap().fault, None);
    assert_eq!(spools(&options), Vec::<PathBuf>::new());
}

#[test]
fn a_living_process_keeps_its_spool() {
    let dir = tempfile::tempdir().unwrap();
    let options = options(dir.path());
    let living = Options { backend: Some(down()), patience: Duration::ZERO, ..options.clone() };
    let store = Store::open(&living).unwrap();
    wait(store.record(record("h", "e-0"))).unwrap();
    assert_eq!(event_ids(&options), Vec::<String>::new());
    assert!(store.health().database.unwrap().contains("down"));
    assert!(store.health().waiting_bytes > 0);
    drop(store);
    assert_eq!(event_ids(&options), ["e-0"]);
}

#[test]
fn torn_and_damaged_files_give_what_can_be_read() {
    let expected = |missing: Option<usize>| -> Vec<String> {
        (0..20).filter(|number| Some(*number) != missing).map(|number| format!("e-{number}")).collect()
    };
    // the place of a row in the file
    let place =
        |bytes: &[u8], id: &str| bytes.windows(id.len()).position(|window| window == id.as_bytes()).unwrap();
    type Bend<'a> = Box<dyn Fn(&mut Vec<u8>) + 'a>;
    let cases: [(&str, Bend<'_>, Option<usize>, u64); 5] = [
        ("nothing", Box::new(|_| ()), None, 0),
        ("a torn tail", Box::new(|bytes| bytes.truncate(bytes.len() - 5)), Some(19), 0),
        ("a tail of zeros", Box::new(|bytes| bytes.resize(bytes.len() + 9000, 0)), None, 0),
        (
            "a changed byte",
            Box::new(|bytes| {
                let at = place(bytes, "e-7");
                bytes[at] = b'x';
            }),
            Some(7),
            1,
        ),
        ("rubbish behind", Box::new(|bytes| bytes.extend((0..999u32).map(|n| (n * 7 % 251) as u8))), None, 0),
    ];
    for (what, change, missing, damaged) in cases {
        let dir = tempfile::tempdir().unwrap();
        let options = options(dir.path());
        leave_behind(&options, 20);
        let file =
            spools(&options).into_iter().find(|path| path.to_string_lossy().ends_with("-a.spool")).unwrap();
        bend(&file, &change);
        let audit = Audit::open(&options).unwrap();
        assert_eq!(audit.found().damaged, damaged, "{what}");
        assert_eq!(event_ids(&options), expected(missing), "{what}");
    }
    // a file that is none of ours is kept, and in nobody's way
    let dir = tempfile::tempdir().unwrap();
    let options = options(dir.path());
    leave_behind(&options, 20);
    std::fs::write(options.dir.join("spool/other.spool"), "something else").unwrap();
    assert_eq!(event_ids(&options), expected(None));
    assert!(options.dir.join("spool/other.damaged").exists());
}

#[test]
fn processes_that_live_for_milliseconds_share_one_file() {
    let dir = tempfile::tempdir().unwrap();
    let options = options(dir.path());
    std::thread::scope(|scope| {
        for process in 0..8 {
            let options = &options;
            scope.spawn(move || {
                for number in 0..50 {
                    let one_shot = Store::spool_only(options).unwrap();
                    wait(one_shot.record(record("h", &format!("e-{process}-{number}")))).unwrap();
                }
            });
        }
        // somebody moves it in meanwhile
        scope.spawn(|| (0..10).for_each(|_| drop(Audit::open(&options).unwrap())));
    });
    let left = Store::spool_only(&options).unwrap();
    assert_eq!(event_ids(&options).len(), 400);
    assert_eq!(left.waiting_bytes(), 0);
    assert_eq!(spools(&options), Vec::<PathBuf>::new());
    assert_eq!(Audit::open(&options).unwrap().verify().unwrap().fault, None);
}

#[test]
fn a_living_store_moves_in_what_others_leave() {
    let dir = tempfile::tempdir().unwrap();
    let options = options(dir.path());
    let one_shot = Store::spool_only(&options).unwrap();
    wait(one_shot.record(record("h", "e-0"))).unwrap();
    keep(&options, [record("h", "e-1")]);
    let connection = rusqlite::Connection::open(options.database_file()).unwrap();
    let count: i64 = connection.query_row("SELECT count(*) FROM executions", [], |row| row.get(0)).unwrap();
    assert_eq!(count, 2);
}

/// A database that can be switched off.
fn switched(options: &Options, on: &Arc<AtomicBool>) -> Backend {
    let (on, path) = (on.clone(), options.database_file());
    Arc::new(move || {
        if !on.load(Ordering::SeqCst) {
            return Err(StoreError::Unavailable { what: "the database".into(), why: "down".into() });
        }
        Ok(Box::new(hookgate_store::sqlite::Sqlite::open(&path)?) as Box<dyn Database>)
    })
}

#[test]
fn a_full_spool_makes_records_wait_and_drops_none() {
    let dir = tempfile::tempdir().unwrap();
    let on = Arc::new(AtomicBool::new(false));
    let plain = options(dir.path());
    let options = Options {
        backend: Some(switched(&plain, &on)),
        spool_bytes: 64 << 10,
        queue_bytes: 2 << 20,
        ..plain.clone()
    };
    let store = Arc::new(Store::open(&options).unwrap());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    // ten times what the spool takes
    let calls: Vec<_> = (0..10_000)
        .map(|number| {
            let store = store.clone();
            runtime.spawn(async move { store.record(record("h", &format!("e-{number}"))).await })
        })
        .collect();
    std::thread::sleep(Duration::from_millis(300));
    let waiting = store.health().waiting_bytes;
    assert!((64 << 10..1200 << 10).contains(&waiting), "{waiting}");
    assert!(store.health().spool.unwrap().contains("full"));
    let held = spools(&plain).iter().map(|path| std::fs::metadata(path).unwrap().len()).sum::<u64>();
    assert!(held < 2600 << 10, "{held}");
    assert!(calls.iter().any(|call| !call.is_finished()), "nobody waited");
    // a gate gives up after its own time; what it handed over is still kept
    let limited = runtime.block_on(async {
        tokio::time::timeout(Duration::from_millis(20), store.record(record("h", "late"))).await
    });
    assert!(limited.is_err());
    on.store(true, Ordering::SeqCst);
    for call in calls {
        runtime.block_on(call).unwrap().unwrap();
    }
    store.flush(LONG).unwrap();
    assert!(event_ids(&plain).len() >= 10_000);
    assert_eq!(store.health().spool, None);
}
