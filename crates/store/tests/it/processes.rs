//! Whole processes: killed at any moment, many at once, without rights, without room.
//!
//! The tests start this program again with the name of one of the [`ROLES`]; a role prints `ack ID` for each record
//! that was promised to be kept.

use crate::bench::{LONG, event_ids, options, record, wait, with};
use hookgate_core::record::Recorder;
use hookgate_store::StoreError;
use hookgate_store::audit::Audit;
use hookgate_store::spool::Durability;
use hookgate_store::store::{Options, Store};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

type Role = fn(&Path);
const ROLES: [(&str, Role); 9] = [
    ("process", |dir| for_ever(&with(dir, Durability::Process))),
    ("power", |dir| for_ever(&with(dir, Durability::Power))),
    ("relaxed", |dir| for_ever(&with(dir, Durability::Relaxed))),
    ("one-shot", one_shot_for_ever),
    ("two-hundred", two_hundred),
    ("no-room", no_room),
    ("read-only", read_only),
    ("no-folder", no_folder),
    ("overload", overload),
];

/// Started by the tests below.
#[test]
#[ignore = "a role in other tests"]
fn role() {
    let Ok(dir) = std::env::var("HOOKGATE_TEST_DIR") else { return };
    let name = std::env::var("HOOKGATE_TEST_ROLE").unwrap();
    let (_, run) = ROLES.iter().find(|(role, _)| *role == name).unwrap();
    run(Path::new(&dir));
}

fn start(role: &str, dir: &Path) -> Child {
    // a write beyond the limit is to be an error, not the end
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\""]).arg(std::env::current_exe().unwrap());
    command.args(["processes::role", "--exact", "--ignored", "--nocapture", "--test-threads=1"]);
    command.env("HOOKGATE_TEST_DIR", dir).env("HOOKGATE_TEST_ROLE", role);
    command.stdout(Stdio::piped()).spawn().unwrap()
}

/// What a role said: each record with the time at which it was kept.
fn acks(lines: impl Iterator<Item = std::io::Result<String>>) -> BTreeMap<String, u64> {
    let mut acks = BTreeMap::new();
    for line in lines.map(Result::unwrap) {
        if let Some((_, ack)) = line.split_once("ack ") {
            let (id, micros) = ack.split_once(' ').unwrap();
            acks.insert(id.to_owned(), micros.parse().unwrap());
        }
    }
    acks
}

/// Runs a role to its end; what it kept.
fn run(role: &str, dir: &Path) -> BTreeSet<String> {
    let mut child = start(role, dir);
    let acks = acks(BufReader::new(child.stdout.take().unwrap()).lines());
    assert!(child.wait().unwrap().success(), "{role} failed");
    acks.into_keys().collect()
}

fn ack(id: &str, began: Instant) {
    let line = format!("ack {id} {}\n", began.elapsed().as_micros());
    std::io::stdout().lock().write_all(line.as_bytes()).unwrap();
}

fn for_ever(options: &Options) {
    let store = Arc::new(Store::open(options).unwrap());
    let began = Instant::now();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let callers: Vec<_> = (0..4)
        .map(|caller| {
            let store = store.clone();
            runtime.spawn(async move {
                for number in 0.. {
                    let id = format!("e-{caller}-{number}");
                    store.record(record("h", &id)).await.unwrap();
                    ack(&id, began);
                    // a gate has something else to do, too; without a pause the pipe is all that is tested
                    tokio::time::sleep(Duration::from_micros(300)).await;
                }
            })
        })
        .collect();
    callers.into_iter().for_each(|caller| runtime.block_on(caller).unwrap());
}

fn one_shot_for_ever(dir: &Path) {
    let began = Instant::now();
    for number in 0.. {
        let one_shot = Store::spool_only(&options(dir)).unwrap();
        let id = format!("e-{number}");
        wait(one_shot.record(record("h", &id))).unwrap();
        ack(&id, began);
    }
}

/// Kills a role after a while. What it kept, and when it last kept something.
fn killed(role: &str, dir: &Path, after: Duration) -> BTreeMap<String, u64> {
    let mut child = start(role, dir);
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let reading = std::thread::spawn(move || acks(lines));
    std::thread::sleep(after);
    child.kill().unwrap();
    child.wait().unwrap();
    reading.join().unwrap()
}

#[test]
fn what_was_kept_outlives_kill_9() {
    for role in ["process", "power", "one-shot"] {
        let dir = tempfile::tempdir().unwrap();
        for (round, millis) in [450, 700, 1010].into_iter().enumerate() {
            // every round has a folder of its own: the ids are the same
            let dir = dir.path().join(round.to_string());
            let acks = killed(role, &dir, Duration::from_millis(millis));
            assert!(acks.len() > 20, "{role}: only {} were kept", acks.len());
            let there: BTreeSet<String> = event_ids(&options(&dir)).into_iter().collect();
            let missing: Vec<&String> = acks.keys().filter(|id| !there.contains(*id)).collect();
            assert!(missing.is_empty(), "{role}: {} of {} are missing", missing.len(), acks.len());
            assert_eq!(Audit::open(&options(&dir)).unwrap().verify().unwrap().fault, None);
        }
    }
}

#[test]
fn relaxed_loses_the_last_moment_at_most() {
    // 20 ms are promised; a machine that is busy with other things gets more
    const LAST: u64 = 250_000;
    let dir = tempfile::tempdir().unwrap();
    let acks = killed("relaxed", dir.path(), Duration::from_millis(1500));
    let last = acks.values().max().unwrap();
    assert!(*last > 2 * LAST, "the role ran for {last} µs only");
    let there: BTreeSet<String> = event_ids(&options(dir.path())).into_iter().collect();
    for (id, at) in &acks {
        assert!(there.contains(id) || at + LAST > *last, "{id} of {at} is missing, the last was at {last}");
    }
}

fn two_hundred(dir: &Path) {
    let began = Instant::now();
    let store = Store::open(&options(dir)).unwrap();
    for number in 0..200 {
        let id = format!("w{}-{number}", std::process::id());
        wait(store.record(record("a", &id))).unwrap();
        ack(&id, began);
    }
    store.flush(LONG).unwrap();
    assert_eq!(store.health().database, None);
}

#[test]
fn eight_processes_write_to_one_file() {
    let dir = tempfile::tempdir().unwrap();
    let acks: Vec<BTreeSet<String>> = std::thread::scope(|scope| {
        let roles: Vec<_> = (0..8).map(|_| scope.spawn(|| run("two-hundred", dir.path()))).collect();
        roles.into_iter().map(|role| role.join().unwrap()).collect()
    });
    let kept: BTreeSet<String> = acks.into_iter().flatten().collect();
    let there = event_ids(&options(dir.path()));
    assert_eq!((there.len(), there.into_iter().collect::<BTreeSet<_>>()), (1600, kept));
    let verified = Audit::open(&options(dir.path())).unwrap().verify().unwrap();
    assert_eq!((verified.rows, verified.fault), (1600, None));
}

/// How large a file may become, for this process.
fn room(bytes: Option<u64>) {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Fsize);
    setrlimit(Resource::Fsize, rustix::process::Rlimit { current: bytes, ..limit }).unwrap();
}

fn no_room(dir: &Path) {
    let began = Instant::now();
    let store = Store::open(&options(dir)).unwrap();
    let mut number = 0;
    let mut keep = |most: usize| {
        for _ in 0..most {
            number += 1;
            let id = format!("e-{number}");
            wait(store.record(record("h", &id)))?;
            ack(&id, began);
        }
        Ok(())
    };
    keep(10).unwrap();
    store.flush(LONG).unwrap();
    room(Some(128 << 10));
    let error: hookgate_core::record::RecordError = keep(100_000).unwrap_err();
    assert!(error.to_string().contains("could not be written to the spool"), "{error}");
    assert!(keep(1).is_err() && store.health().spool.is_some());
    room(None);
    keep(300).unwrap();
    assert_eq!(store.health().spool, None);
    store.flush(LONG).unwrap();
    assert_eq!(store.health().database, None);
}

#[test]
fn a_full_disk_fails_the_record_and_heals_by_itself() {
    let dir = tempfile::tempdir().unwrap();
    let kept = run("no-room", dir.path());
    assert!(kept.len() > 320, "{}", kept.len());
    // what failed is not there: its gate has blocked
    assert_eq!(event_ids(&options(dir.path())).into_iter().collect::<BTreeSet<_>>(), kept);
    assert_eq!(Audit::open(&options(dir.path())).unwrap().verify().unwrap().fault, None);
}

/// Runs a role as somebody whom the rights of files concern.
fn run_without_rights(role: &str) {
    let dir = tempfile::tempdir().unwrap();
    let mine = dir.path().join("mine");
    std::fs::create_dir(&mine).unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["processes::role", "--exact", "--ignored", "--nocapture"]);
    command.env("HOOKGATE_TEST_DIR", &mine).env("HOOKGATE_TEST_ROLE", role);
    if std::fs::metadata("/proc/self").unwrap().uid() == 0 {
        const NOBODY: u32 = 65_534;
        std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o755)).unwrap();
        std::os::unix::fs::chown(&mine, Some(NOBODY), Some(NOBODY)).unwrap();
        command.uid(NOBODY).gid(NOBODY);
    }
    assert!(command.status().unwrap().success(), "{role} failed");
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
}

fn read_only(dir: &Path) {
    let options = options(dir);
    crate::bench::keep(&options, [record("h", "e-1")]);
    set_mode(&options.database_file(), 0o400);
    let store = Store::open(&options).unwrap();
    wait(store.record(record("h", "e-2"))).unwrap();
    assert!(store.flush(Duration::from_millis(300)).is_err());
    let why = store.health().database.unwrap();
    assert!(why.contains("audit.db"), "{why}");
    set_mode(&options.database_file(), 0o600);
    store.flush(LONG).unwrap();
    assert_eq!(event_ids(&options), ["e-1", "e-2"]);
}

#[test]
fn a_database_that_may_only_be_read_loses_nothing() {
    run_without_rights("read-only");
}

fn no_folder(dir: &Path) {
    let options = options(dir);
    crate::bench::keep(&options, [record("h", "e-1")]);
    set_mode(&dir.join("spool"), 0o500);
    let error = Store::open(&options).unwrap_err();
    assert!(matches!(error, StoreError::File { .. }), "{error}");
    let one_shot = Store::spool_only(&options).unwrap();
    let error = wait(one_shot.record(record("h", "e-2"))).unwrap_err().to_string();
    assert!(error.contains("shared.spool") && error.contains("denied"), "{error}");
    set_mode(&dir.join("spool"), 0o700);
    wait(one_shot.record(record("h", "e-2"))).unwrap();
    assert_eq!(event_ids(&options), ["e-1", "e-2"]);
}

#[test]
fn a_spool_that_may_not_be_written_fails_the_record() {
    run_without_rights("no-folder");
}

fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

/// More than ten times what a store without a database can take.
fn overload(dir: &Path) {
    let down: hookgate_store::store::Backend =
        Arc::new(|| Err(StoreError::Unavailable { what: "the database".into(), why: "down".into() }));
    let options = Options {
        backend: Some(down),
        spool_bytes: 1 << 20,
        queue_bytes: 2 << 20,
        patience: Duration::ZERO,
        ..options(dir)
    };
    let store = Arc::new(Store::open(&options).unwrap());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let before = resident();
    let offered: usize = runtime.block_on(async {
        let callers: Vec<_> = (0..64)
            .map(|caller| {
                let store = store.clone();
                tokio::spawn(async move {
                    let mut offered = 0;
                    for number in 0..2000 {
                        let record = record("h", &format!("{caller}-{number}-{}", "x".repeat(200)));
                        // the gate's own time
                        let kept = tokio::time::timeout(Duration::from_millis(1), store.record(record)).await;
                        assert!(kept.is_err() || kept.unwrap().is_ok());
                        offered += 500;
                    }
                    offered
                })
            })
            .collect();
        let mut offered = 0;
        for caller in callers {
            offered += caller.await.unwrap();
        }
        offered
    });
    let grown = resident().saturating_sub(before);
    assert!(offered > 10 * (3 << 20), "{offered}");
    assert!(grown < 24 << 20, "{grown} bytes more");
    assert!(store.health().waiting_bytes < 3 << 20);
}

#[test]
fn memory_has_a_bound_under_ten_times_the_load() {
    let dir = tempfile::tempdir().unwrap();
    run("overload", dir.path());
}
