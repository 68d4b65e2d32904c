//! The default database: one SQLite file.
//!
//! The file, its logs and its folder are the owner's alone. It runs in WAL mode with a large page cache and rare
//! checkpoints, which is worth a factor of two to three in rows a second; nobody who waits for a verdict waits for it.
//! Other processes may write to the same file: each transaction takes the write lock first and reads what it builds on
//! afterwards. A file that is damaged is moved aside, never deleted, and a new one begun.

mod append;
mod intern;
mod more;
mod outbox;
mod read;
mod schema;

use crate::chain::ChainState;
use crate::database::{Appended, Batch, Claimant, Database, MarkAnchor, Pruned, See};
use crate::error::StoreError;
use crate::files;
use crate::job::{JobCounts, JobFilter, StoredJob};
use crate::keys::ChainKey;
use crate::query::{Entry, Filter, Order, Stats};
use crate::row::{Dedup, Sealed};
use crate::trace::StoredTrace;
use intern::{Cache, Texts};
use rusqlite::{Connection, ErrorCode, OpenFlags};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The name of the file in the data directory.
pub const FILE: &str = "audit.db";
/// How long a call waits for another process's lock before it says so.
const PATIENCE: Duration = Duration::from_secs(5);

/// A connection to the file.
#[derive(Debug)]
pub struct Sqlite {
    path: PathBuf,
    what: String,
    connection: Connection,
    /// To see whether the path still names the file that is open.
    identity: Option<files::Identity>,
    /// The connection is of no more use.
    is_stale: bool,
    cache: Cache,
    texts: Texts,
    syncs: bool,
    is_read_only: bool,
}

impl Sqlite {
    /// Opens the file, makes it if there is none, and brings its schema up to date.
    pub fn open(path: &Path) -> Result<Sqlite, StoreError> {
        if let Some(folder) = path.parent() {
            files::make_folder(folder)?;
        }
        // when many processes begin at once, the first steps can meet locks that SQLite does not wait for
        let began = Instant::now();
        loop {
            match Sqlite::connect(path) {
                Err(StoreError::Corrupt { .. }) => {
                    set_aside(path)?;
                    return Sqlite::connect(path);
                }
                Err(StoreError::Unavailable { .. }) if began.elapsed() < PATIENCE => {
                    std::thread::sleep(Duration::from_millis(20));
                }
                other => return other,
            }
        }
    }

    fn connect(path: &Path) -> Result<Sqlite, StoreError> {
        let what = format!("audit database {}", path.display());
        // SQLite gives its logs the mode of the file. A file that is there is not opened here: closing it would take
        // the locks of another connection of this process away
        match files::private().create_new(true).open(path) {
            Err(why) if why.kind() != std::io::ErrorKind::AlreadyExists => {
                return Err(StoreError::file(path)(why));
            }
            _ => {}
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut connection = Connection::open_with_flags(path, flags).map_err(|error| fault(&what, error))?;
        tune(&connection).map_err(|error| fault(&what, error))?;
        schema::migrate(&mut connection, &what)?;
        let (path, identity) = (path.to_owned(), files::identity(path));
        let (cache, texts) = (Cache::default(), Texts::default());
        let (is_stale, is_read_only, syncs) = (false, false, false);
        Ok(Sqlite { path, what, connection, identity, is_stale, is_read_only, cache, texts, syncs })
    }

    /// Opens a file to read it. It is locked for nobody and nothing beside it is made: where the logs cannot be used
    /// because the folder may not be written to, the file is read as it stands. A schema that is not this program's is
    /// refused: it cannot be brought up to date.
    pub fn open_read_only(path: &Path) -> Result<Sqlite, StoreError> {
        let what = format!("audit database {}", path.display());
        std::fs::File::open(path).map_err(StoreError::file(path))?;
        let uri = |query: &str| {
            let name: String = path.to_string_lossy().chars().map(escaped).collect();
            format!("file:{name}?{query}")
        };
        let flags =
            OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
        let open = |query: &str| -> rusqlite::Result<(Connection, i64)> {
            let connection = Connection::open_with_flags(uri(query), flags)?;
            connection.busy_timeout(PATIENCE)?;
            connection.pragma_update(None, "cache_size", -65_536)?;
            let version = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
            Ok((connection, version))
        };
        let opened = open("mode=ro").or_else(|_| open("mode=ro&immutable=1"));
        let (connection, found) = opened.map_err(|error| fault(&what, error))?;
        schema::check(found, &what)?;
        let (path, identity) = (path.to_owned(), files::identity(path));
        let (cache, texts) = (Cache::default(), Texts::default());
        let (is_stale, is_read_only, syncs) = (false, true, false);
        Ok(Sqlite { path, what, connection, identity, is_stale, is_read_only, cache, texts, syncs })
    }

    /// Runs one call; opens the file anew if somebody put another in its place, and moves a damaged one aside.
    fn with<T>(&mut self, mut call: impl FnMut(&mut Sqlite) -> rusqlite::Result<T>) -> Result<T, StoreError> {
        if self.is_read_only {
            return call(self).map_err(|error| match error.sqlite_error_code() {
                Some(ErrorCode::ReadOnly) => StoreError::Refused(format!(
                    "{} was opened to be read only; nothing was changed",
                    self.what
                )),
                _ => fault(&self.what, error),
            });
        }
        if self.is_stale || files::identity(&self.path) != self.identity {
            self.reopen()?;
        }
        let result = call(self).map_err(|error| {
            let code = error.sqlite_error_code();
            // opened while the file could only be read, or not at all: it stays so until it is opened anew
            self.is_stale = matches!(
                code,
                Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::SystemIoFailure)
            );
            fault(&self.what, error)
        });
        match result {
            Err(StoreError::Corrupt { what, why }) => {
                self.cache.clear();
                set_aside(&self.path)?;
                self.reopen()?;
                // what was asked is asked again of the new file by whoever needs it
                Err(StoreError::Corrupt { what, why })
            }
            Err(error) => {
                // numbers that a transaction gave out and took back must not be used
                self.cache.clear();
                Err(error)
            }
            done => done,
        }
    }

    fn reopen(&mut self) -> Result<(), StoreError> {
        let syncs = self.syncs;
        *self = Sqlite::open(&self.path)?;
        self.sync_each(syncs)
    }
}

/// A character of a path as it stands in an address.
fn escaped(c: char) -> String {
    match c {
        '%' | '?' | '#' => format!("%{:02x}", u32::from(c)),
        c => c.to_string(),
    }
}

/// What every connection sets.
fn tune(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(PATIENCE)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    connection.pragma_update(None, "cache_size", -65_536)?;
    connection.pragma_update(None, "wal_autocheckpoint", 16_000)?;
    connection.pragma_update(None, "journal_size_limit", 67_108_864)?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(())
}

/// What follows from an error of SQLite.
fn fault(what: &str, error: rusqlite::Error) -> StoreError {
    let (what, why) = (what.to_owned(), error.to_string());
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => StoreError::Corrupt { what, why },
        _ => StoreError::Unavailable { what, why },
    }
}

/// Moves a damaged file and its logs aside, so that a new one can begin. Nothing is deleted: the old trail can still be
/// looked at, and a checkpoint of it tells that the new one is another.
fn set_aside(path: &Path) -> Result<(), StoreError> {
    let held = files::private()
        .create(true)
        .truncate(false)
        .open(path.with_extension("repair"))
        .map_err(StoreError::file(path))?;
    held.lock().map_err(StoreError::file(path))?;
    if Connection::open(path).is_ok_and(|connection| is_sound(&connection)) {
        return Ok(());
    }
    let name = files::random_name()?;
    for end in ["", "-wal", "-shm"] {
        let mut from = path.as_os_str().to_owned();
        from.push(end);
        let mut to = path.as_os_str().to_owned();
        to.push(format!(".damaged-{name}{end}"));
        match std::fs::rename(&from, &to) {
            Err(why) if why.kind() != std::io::ErrorKind::NotFound => {
                return Err(StoreError::file(path)(why));
            }
            _ => {}
        }
    }
    files::sync_folder(path)
}

/// True if another process has put a sound file there meanwhile, or the damage was none.
fn is_sound(connection: &Connection) -> bool {
    let check = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get::<_, String>(0));
    check.is_ok_and(|said| said == "ok")
}

/// The damaged files that were moved aside, for a warning at each check of the trail.
pub fn damaged(path: &Path) -> Vec<PathBuf> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let head = format!("{name}.damaged-");
    let Some(Ok(entries)) = path.parent().map(std::fs::read_dir) else { return Vec::new() };
    let is_damaged = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with(&head) && !name.ends_with("-wal") && !name.ends_with("-shm")
    };
    let mut found: Vec<PathBuf> =
        entries.filter_map(Result::ok).map(|entry| entry.path()).filter(is_damaged).collect();
    found.sort();
    found
}

impl Database for Sqlite {
    fn append(&mut self, writer: &str, key: &ChainKey, batch: &Batch<'_>) -> Result<Appended, StoreError> {
        self.with(|this| append::append(&mut this.connection, &mut this.cache, writer, key, batch))
    }

    fn sync_each(&mut self, on: bool) -> Result<(), StoreError> {
        if on != self.syncs {
            self.syncs = on;
            self.with(|this| {
                this.connection.pragma_update(None, "synchronous", if on { "FULL" } else { "NORMAL" })
            })?;
        }
        Ok(())
    }

    fn page(
        &mut self,
        filter: &Filter,
        order: Order,
        after: Option<i64>,
        limit: usize,
    ) -> Result<Vec<Entry>, StoreError> {
        self.with(|this| read::page(&this.connection, filter, order, after, limit))
    }

    fn get(&mut self, id: i64) -> Result<Option<Entry>, StoreError> {
        self.with(|this| read::get(&this.connection, id))
    }

    fn stats(&mut self, filter: &Filter) -> Result<Stats, StoreError> {
        self.with(|this| read::stats(&this.connection, filter))
    }

    fn walk(&mut self, see: &mut See<'_>) -> Result<(), StoreError> {
        self.with(|this| read::walk(&this.connection, &mut this.texts, see))?
    }

    fn chains(&mut self) -> Result<Vec<ChainState>, StoreError> {
        self.with(|this| read::chains(&this.connection))
    }

    fn prune(&mut self, before: i64, mark: &MarkAnchor<'_>) -> Result<Pruned, StoreError> {
        self.with(|this| append::prune(&mut this.connection, before, mark))
    }

    fn forget_hook(&mut self, hook: &str) -> Result<u64, StoreError> {
        self.with(|this| append::forget_hook(&mut this.connection, hook))
    }

    fn sealed_by_others(
        &mut self,
        key_id: &str,
        after: i64,
        limit: usize,
    ) -> Result<Vec<(i64, Dedup, Sealed<'static>)>, StoreError> {
        self.with(|this| read::sealed_by_others(&this.connection, key_id, after, limit))
    }

    fn reseal(&mut self, seals: &[(i64, Sealed<'static>)]) -> Result<(), StoreError> {
        self.with(|this| append::reseal(&mut this.connection, seals))
    }

    fn claim(
        &mut self,
        now: i64,
        lease_until: i64,
        limit: usize,
        who: Claimant<'_>,
    ) -> Result<Vec<StoredJob>, StoreError> {
        self.with(|this| outbox::claim(&mut this.connection, now, lease_until, limit, who))
    }

    fn free_leases(&mut self, owner: &str) -> Result<u64, StoreError> {
        self.with(|this| outbox::free_leases(&this.connection, owner))
    }

    fn finish_job(&mut self, id: i64, lease: i64, now: i64) -> Result<bool, StoreError> {
        self.with(|this| outbox::finish(&this.connection, id, lease, now))
    }

    fn fail_job(&mut self, id: i64, lease: i64, due: Option<i64>, error: &str) -> Result<bool, StoreError> {
        self.with(|this| outbox::fail(&this.connection, id, lease, due, error))
    }

    fn jobs(&mut self, filter: JobFilter, limit: usize) -> Result<Vec<StoredJob>, StoreError> {
        self.with(|this| outbox::list(&this.connection, filter, limit))
    }

    fn resend(&mut self, id: Option<i64>, now: i64) -> Result<u64, StoreError> {
        self.with(|this| outbox::resend(&this.connection, id, now))
    }

    fn job_counts(&mut self) -> Result<JobCounts, StoreError> {
        self.with(|this| outbox::counts(&this.connection))
    }

    fn next_due(&mut self, origins: Option<&[String]>) -> Result<Option<i64>, StoreError> {
        self.with(|this| outbox::next_due(&this.connection, origins))
    }

    fn clean_jobs(&mut self, before: i64) -> Result<u64, StoreError> {
        self.with(|this| outbox::clean(&this.connection, before))
    }

    fn traces(&mut self, of: &str, limit: usize) -> Result<Vec<StoredTrace>, StoreError> {
        self.with(|this| more::traces(&this.connection, of, limit))
    }

    fn install(&mut self, source: &str, hooks: &[String]) -> Result<Vec<String>, StoreError> {
        self.with(|this| more::install(&mut this.connection, source, hooks))
    }

    fn begin_retention(&mut self, now: i64, each: i64) -> Result<bool, StoreError> {
        self.with(|this| more::begin_retention(&this.connection, now, each))
    }

    fn tidy(&mut self) -> Result<(), StoreError> {
        self.with(|this| this.connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(())))
    }
}
