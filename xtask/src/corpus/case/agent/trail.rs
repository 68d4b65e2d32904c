//! The audit store of a case: the real one, in the case's folder, also written to from several processes.

use super::super::super::script::worker_program;
use super::super::expect::equal;
use super::world::World;
use hookgate_core::future::BoxFuture;
use hookgate_core::record::{Memory, Record, RecordError, Recorder};
use hookgate_store::audit::Audit;
use hookgate_store::keys::Keys;
use hookgate_store::query::{Entry, Filter, Order};
use hookgate_store::store::{Options, Store};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

/// The first argument of a process that plays a step beside others.
pub(in super::super::super) const PROCESS_WORD: &str = "__case-process";

/// How long all of a case's records may take into the database.
const PATIENCE: Duration = Duration::from_secs(30);
/// More rows than a case writes.
const ALL: usize = 1_000_000;

/// Keeps records in memory, for what a step expects, and in the store.
#[derive(Debug)]
pub(super) struct Trail {
    memory: Arc<Memory>,
    store: Store,
    dir: PathBuf,
}

impl Trail {
    pub(super) fn open(dir: &Path, memory: Arc<Memory>) -> Result<Trail, String> {
        let dir = dir.join("audit");
        let store = Store::open(&options(&dir)?).map_err(|error| error.to_string())?;
        Ok(Trail { memory, store, dir })
    }

    /// All rows, once what is under way has arrived.
    fn rows(&self) -> Result<Vec<Entry>, String> {
        self.store.flush(PATIENCE).map_err(|error| error.to_string())?;
        let mut audit = Audit::open(&options(&self.dir)?).map_err(|error| error.to_string())?;
        audit.list(&Filter::default(), Order::OldestFirst, None, ALL).map_err(|error| error.to_string())
    }

    /// Another program holds the write lock for a while.
    pub(super) fn lock(&self, held: Duration) -> Result<(), String> {
        let file = options(&self.dir)?.database_file();
        let connection = rusqlite::Connection::open(file).map_err(|error| error.to_string())?;
        connection.busy_timeout(PATIENCE).map_err(|error| error.to_string())?;
        connection.execute_batch("BEGIN IMMEDIATE").map_err(|error| error.to_string())?;
        std::thread::spawn(move || {
            std::thread::sleep(held);
            connection.execute_batch("COMMIT")
        });
        Ok(())
    }
}

impl Recorder for Trail {
    fn record(&self, record: Record) -> BoxFuture<'_, Result<(), RecordError>> {
        Box::pin(async move {
            self.store.record(record.clone()).await?;
            self.memory.record(record).await
        })
    }

    fn digest(&self, canonical: &[u8]) -> [u8; 32] {
        self.store.digest(canonical)
    }
}

fn options(dir: &Path) -> Result<Options, String> {
    let (keys, _) = Keys::load_or_make(&dir.join("keys")).map_err(|error| error.to_string())?;
    Ok(Options { keys: Some(keys), ..Options::new(dir) })
}

/// Plays a step in several processes at once; gives what each printed.
pub(super) fn processes(setup: &Value, step: &Value, dir: &Path) -> Result<Vec<Value>, String> {
    let count = step.get("count").and_then(Value::as_u64).unwrap_or(1);
    let each = step.get("each").cloned().unwrap_or_default();
    let mut children = Vec::new();
    for process in 0..count {
        let step = each.to_string().replace("{p}", &process.to_string());
        let step: Value = serde_json::from_str(&step).map_err(|error| error.to_string())?;
        let mut child = Command::new(worker_program()?)
            .arg(PROCESS_WORD)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| error.to_string())?;
        let task = json!({"setup": setup, "step": step, "dir": dir});
        let mut stdin = child.stdin.take().ok_or("no stdin")?;
        stdin.write_all(task.to_string().as_bytes()).map_err(|error| error.to_string())?;
        children.push(child);
    }
    let mut said = Vec::new();
    for child in children {
        let output = child.wait_with_output().map_err(|error| error.to_string())?;
        said.push(
            serde_json::from_slice(&output.stdout)
                .map_err(|error| format!("a process said nothing: {error}"))?,
        );
    }
    Ok(said)
}

/// What the audit step of a case expects.
pub(super) fn check(key: &str, want: &Value, world: &World) -> Result<(), String> {
    let trail = world.trail.as_ref().ok_or("there is no trail")?;
    if key == "file_bytes_do_not_contain" {
        trail.rows()?;
        return bytes_lack(want, &trail.dir);
    }
    let rows = trail.rows()?;
    let hash_of = |event: &Value| {
        rows.iter()
            .find(|row| Some(row.event_id.as_str()) == event.as_str())
            .map(|row| row.input_hash.as_str())
    };
    let pairs = || want.as_array().into_iter().flatten().map(|pair| (hash_of(&pair[0]), hash_of(&pair[1])));
    match key {
        "row_count" => equal(want, json!(rows.len())),
        "distinct_event_ids" => {
            let ids: HashSet<&str> = rows.iter().map(|row| row.event_id.as_str()).collect();
            equal(want, json!(ids.len()))
        }
        "same_hash" if pairs().all(|(a, b)| a.is_some() && a == b) => Ok(()),
        "different_hash" if pairs().all(|(a, b)| a.is_some() && b.is_some() && a != b) => Ok(()),
        "same_hash" | "different_hash" => Err(format!("{want} does not hold")),
        "rows" => listed(want, &rows),
        other => Err(format!("the expectation `{other}` is not known")),
    }
}

/// Each wanted row, in order, by the members that it names.
fn listed(want: &Value, rows: &[Entry]) -> Result<(), String> {
    let want = want.as_array().map(Vec::as_slice).unwrap_or_default();
    if want.len() != rows.len() {
        return Err(format!("wanted {} rows, got {}", want.len(), rows.len()));
    }
    for (want, row) in want.iter().zip(rows) {
        let row = serde_json::to_value(row).map_err(|error| error.to_string())?;
        for (column, value) in want.as_object().into_iter().flatten() {
            equal(value, row.get(column).cloned().unwrap_or_default())
                .map_err(|why| format!("`{column}`: {why}"))?;
        }
    }
    Ok(())
}

fn bytes_lack(want: &Value, dir: &Path) -> Result<(), String> {
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).map_err(|error| error.to_string())? {
            let path = entry.map_err(|error| error.to_string())?.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let bytes = std::fs::read(&path).map_err(|error| error.to_string())?;
            for word in want.as_array().into_iter().flatten().filter_map(Value::as_str) {
                if bytes.windows(word.len()).any(|part| part == word.as_bytes()) {
                    return Err(format!("{} holds `{word}`", path.display()));
                }
            }
        }
    }
    Ok(())
}
