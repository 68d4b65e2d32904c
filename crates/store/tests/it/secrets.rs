//! Neither an input nor an error's text can be read in any file, and files are their owner's alone.

use crate::bench::{LONG, failed, options, wait};
use hookgate_core::record::Recorder;
use hookgate_store::outbox::Job;
use hookgate_store::store::Store;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

const SECRET: &str = "ghp_EXAMPLE00000000000000000000000000000";

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// Looks at every file; gives how many there were.
#[track_caller]
fn check(folder: &Path) -> Vec<String> {
    let mut names = Vec::new();
    for path in files(folder) {
        let bytes = std::fs::read(&path).unwrap();
        for secret in [SECRET, "the input", "Authorization"] {
            let found = bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
            assert!(!found, "{} holds {secret}", path.display());
        }
        let mode = std::fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{}", path.display());
        names.push(path.file_name().unwrap().to_string_lossy().into_owned());
    }
    names
}

#[test]
fn no_secret_is_in_any_file() {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join("data");
    let options = options(&home);
    let detail = format!("failed on the input: Authorization: token {SECRET}");
    let facts = format!("{{\"toolInput\":\"the input {SECRET}\"}}");
    let job = Job { hook: "h".into(), event_id: "e-1".into(), origin: String::new(), facts };
    let one_shot = Store::spool_only(&options).unwrap();
    wait(one_shot.record(failed("h", "e-0", &detail))).unwrap();
    one_shot.enqueue(&job).unwrap();
    assert!(check(&home).contains(&"shared.spool".into()));
    let store = Store::open(&options).unwrap();
    wait(store.record(failed("h", "e-1", &detail))).unwrap();
    wait(store.enqueue(&Job { event_id: "e-2".into(), ..job })).unwrap();
    store.flush(LONG).unwrap();
    let names = check(&home);
    for name in ["audit.db", "audit.db-wal", "audit.db-shm", "-a.spool", "-b.spool"] {
        assert!(names.iter().any(|seen| seen.ends_with(name)), "{name} is not among {names:?}");
    }
    for folder in [home.clone(), home.join("spool")] {
        assert_eq!(std::fs::metadata(folder).unwrap().permissions().mode() & 0o777, 0o700);
    }
    drop(store);
    check(&home);
}

#[test]
fn equal_inputs_are_seen_as_equal_only_with_the_same_key() {
    let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let digest = |dir: &Path, keyed: bool| {
        let mut options = options(dir);
        if !keyed {
            options.keys = None;
        }
        Store::spool_only(&options).unwrap().digest(b"{\"a\":1}")
    };
    assert_eq!(digest(one.path(), true), digest(one.path(), true));
    assert_ne!(digest(one.path(), true), digest(other.path(), true));
    assert_eq!(digest(one.path(), false), digest(other.path(), false));
    // SHA-256 of {"a":1}
    assert_eq!(digest(one.path(), false)[..4], [0x01, 0x5a, 0xbd, 0x7f]);
}
