//! Databases that are locked, damaged, or of another time.

use crate::bench::{LONG, event_ids, keep, options, record, wait};
use hookgate_core::record::Recorder;
use hookgate_store::StoreError;
use hookgate_store::audit::Audit;
use hookgate_store::query::{Filter, Order};
use hookgate_store::store::{Options, Store};
use hookgate_store::verify::FaultKind;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

#[test]
fn a_lock_of_three_seconds_holds_up_no_gate() {
    let dir = tempfile::tempdir().unwrap();
    let options = options(dir.path());
    keep(&options, [record("h", "e-0")]);
    let connection = rusqlite::Connection::open(options.database_file()).unwrap();
    connection.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let locked = Instant::now();
    let store = Store::open(&options).unwrap();
    for number in 1..=10 {
        let began = Instant::now();
        wait(store.record(record("h", &format!("e-{number}")))).unwrap();
        assert!(began.elapsed() < Duration::from_millis(500), "{:?}", began.elapsed());
    }
    std::thread::sleep(Duration::from_secs(3).saturating_sub(locked.elapsed()));
    connection.execute_batch("COMMIT").unwrap();
    store.flush(LONG).unwrap();
    let expected: Vec<String> = (0..=10).map(|number| format!("e-{number}")).collect();
    assert_eq!(event_ids(&options), expected);
}

/// Writes rubbish into the file, at a place.
fn damage(options: &Options, at: u64, len: usize) {
    let file = std::fs::OpenOptions::new().write(true).open(options.database_file()).unwrap();
    file.write_all_at(&vec![0x5a; len], at).unwrap();
}

fn aside(options: &Options) -> usize {
    Audit::open(options).unwrap().found().set_aside.len()
}

#[test]
fn a_damaged_file_is_moved_aside_and_a_new_one_begun() {
    for (at, len) in [(0, 100), (4096, 200_000)] {
        let dir = tempfile::tempdir().unwrap();
        let options = options(dir.path());
        keep(&options, (0..500).map(|number| record("h", &format!("e-{number}"))));
        let checkpoint = Audit::open(&options).unwrap().checkpoint().unwrap();
        damage(&options, at, len);
        keep(&options, [record("h", "new")]);
        assert_eq!(event_ids(&options), ["new"]);
        let audit = Audit::open(&options).unwrap();
        let [old] = audit.found().set_aside.as_slice() else { panic!("{:?}", audit.found()) };
        let kept = std::fs::read(old).unwrap();
        assert!(kept.len() > 100_000 && kept[usize::try_from(at).unwrap()] == 0x5a, "it is not what it was");
        // the new trail does not pass as the old one
        let fault = Audit::open(&options).unwrap().verify_against(&checkpoint).unwrap().fault.unwrap();
        assert!(matches!(fault.kind, FaultKind::Cut | FaultKind::Forked), "{fault}");
    }
}

#[test]
fn a_file_that_is_damaged_or_replaced_while_it_is_open() {
    let dir = tempfile::tempdir().unwrap();
    let options = options(dir.path());
    let store = Store::open(&options).unwrap();
    wait(store.record(record("h", "e-1"))).unwrap();
    store.flush(LONG).unwrap();
    // gone: somebody tidied up
    for end in ["", "-wal", "-shm"] {
        std::fs::rename(dir.path().join(format!("audit.db{end}")), dir.path().join(format!("old.db{end}")))
            .ok();
    }
    wait(store.record(record("h", "e-2"))).unwrap();
    store.flush(LONG).unwrap();
    assert_eq!(event_ids(&options), ["e-2"]);
    // another file under the name
    for end in ["-wal", "-shm"] {
        std::fs::remove_file(dir.path().join(format!("audit.db{end}"))).ok();
    }
    std::fs::rename(dir.path().join("audit.db"), dir.path().join("second.db")).unwrap();
    std::fs::write(dir.path().join("audit.db"), "this is a letter to a friend").unwrap();
    wait(store.record(record("h", "e-3"))).unwrap();
    store.flush(LONG).unwrap();
    assert_eq!(event_ids(&options), ["e-3"]);
    assert_eq!(aside(&options), 1);
}

#[test]
fn a_newer_schema_is_refused_in_words() {
    let dir = tempfile::tempdir().unwrap();
    let options = options(dir.path());
    keep(&options, [record("h", "e-1")]);
    let connection = rusqlite::Connection::open(options.database_file()).unwrap();
    let known: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap();
    connection.pragma_update(None, "user_version", 99).unwrap();
    for error in [Store::open(&options).unwrap_err(), Audit::open(&options).unwrap_err()] {
        assert!(matches!(error, StoreError::Newer { found: 99, .. }), "{error}");
        let text = error.to_string();
        let want = format!("schema version 99, and this program knows versions up to {known}");
        assert!(text.contains(&want), "{text}");
    }
    // a one-shot process keeps its record for whoever knows the schema
    wait(Store::spool_only(&options).unwrap().record(record("h", "e-2"))).unwrap();
    connection.pragma_update(None, "user_version", known).unwrap();
    assert_eq!(event_ids(&options), ["e-1", "e-2"]);
}

/// A copy that nobody may write to, as it is given to somebody who shall look at it.
#[test]
fn a_trail_that_may_only_be_read_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let options = options(dir.path());
    keep(&options, [record("h", "e-1"), record("h", "e-2")]);
    let before = std::fs::read_dir(dir.path()).unwrap().count();
    let mut audit = Audit::open_read_only(&options).unwrap();
    assert!(audit.found().is_read_only);
    assert_eq!(audit.list(&Filter::default(), Order::OldestFirst, None, 9).unwrap().len(), 2);
    assert_eq!(audit.verify().unwrap().fault, None);
    assert_eq!(audit.export(&Filter::default()).count(), 2);
    for error in [audit.prune(i64::MAX).unwrap_err(), audit.forget_hook("h").unwrap_err()] {
        assert!(error.to_string().contains("was opened to be read only; nothing was changed"), "{error}");
    }
    drop(audit);
    assert!(std::fs::read_dir(dir.path()).unwrap().count() <= before + 2, "only SQLite's own logs");
    // without its logs, in a folder with an odd name
    let copy = dir.path().join("a #1? copy%");
    std::fs::create_dir(&copy).unwrap();
    std::fs::copy(options.database_file(), copy.join("audit.db")).unwrap();
    let copied = Options { keys: None, ..Options::new(&copy) };
    let mut audit = Audit::open_read_only(&copied).unwrap();
    assert_eq!(audit.list(&Filter::default(), Order::OldestFirst, None, 9).unwrap().len(), 2);
    let error = Audit::open_read_only(&Options::new(dir.path().join("nowhere"))).unwrap_err();
    assert!(error.to_string().contains("No such file"), "{error}");
}
