//! The store of a door: takes records and jobs in.
//!
//! [`Store`] is for processes that live on, [`OneShot`] for those that are gone in milliseconds. Questions are asked
//! of an [`Audit`](crate::audit::Audit), background work is taken from an [`Outbox`](crate::outbox::Outbox).

use crate::database::Database;
use crate::error::StoreError;
use crate::files;
use crate::job::NewJob;
use crate::keys::{ChainKey, Keys, Purpose};
use crate::outbox::Job;
use crate::row::{Dedup, Row, dedup, hook_tag};
use crate::spool::Durability;
use crate::spool::frame::Frame;
use crate::spool::queue::{Limits, Spool};
use crate::spool::shared::SharedSpool;
use crate::sqlite::{self, Sqlite};
use crate::trace::{NewTrace, bound_to};
use hookgate_core::explain::FilterTrace;
use hookgate_core::future::BoxFuture;
use hookgate_core::record::{Record, RecordError, Recorder};
use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub use crate::spool::queue::Health;

/// Hooks whose hashed keys are remembered at most.
const MOST_TAGS: usize = 10_000;
/// Bytes of an error in full that are kept.
const LONGEST_DETAIL: usize = 64 << 10;

/// Milliseconds since 1970.
pub type Clock = Arc<dyn Fn() -> i64 + Send + Sync>;
/// Opens a database.
pub type Backend = Arc<dyn Fn() -> Result<Box<dyn Database>, StoreError> + Send + Sync>;

/// How a store is to be.
#[derive(Clone)]
pub struct Options {
    /// The data directory; made if there is none.
    pub dir: PathBuf,
    /// The database; SQLite in the data directory unless set.
    pub backend: Option<Backend>,
    /// When a record counts as kept.
    pub durability: Durability,
    /// The keys. Without them, errors are kept only as far as they may stand in the open, no job is kept, and the
    /// chain shows accidents only.
    pub keys: Option<Keys>,
    /// The time of day.
    pub clock: Clock,
    /// Bytes that wait on the disk for the database at most; then records wait.
    pub spool_bytes: u64,
    /// Bytes that wait in memory for the disk at most; then records wait.
    pub queue_bytes: u32,
    /// How long rows are kept; none: for ever. Older ones are taken out at the start and once an hour.
    pub keep: Option<Duration>,
    /// How long the end of the process waits for the database. What is left then stays in the spool.
    pub patience: Duration,
}

/// Where a store's files are, and who writes there.
pub(crate) struct Place {
    pub(crate) spool: PathBuf,
    pub(crate) writer: String,
    pub(crate) backend: Backend,
    pub(crate) keys: Option<Keys>,
    /// Every transaction is synced.
    pub(crate) syncs: bool,
    pub(crate) clock: Clock,
    pub(crate) keep: Option<Duration>,
}

/// Makes frames of records and jobs: sealed, hashed, and dated.
#[derive(Clone)]
struct Sealer {
    keys: Option<Keys>,
    clock: Clock,
    /// Hashes of the hooks' keys; there are few hooks and many records.
    tags: Arc<RwLock<HashMap<Arc<str>, Dedup>>>,
}

/// Takes records and jobs in, and moves them into the database in the background.
#[derive(Debug)]
pub struct Store {
    spool: Spool,
    sealer: Sealer,
}

/// Takes records and jobs in, in a process that lives for milliseconds: they are written to a file, and the next
/// process with more time moves them into the database.
#[derive(Debug)]
pub struct OneShot {
    spool: SharedSpool,
    sealer: Sealer,
}

impl Options {
    /// The usual store in a data directory, still without keys.
    pub fn new(dir: impl Into<PathBuf>) -> Options {
        Options {
            dir: dir.into(),
            backend: None,
            durability: Durability::default(),
            keys: None,
            clock: Arc::new(system_time),
            spool_bytes: 256 << 20,
            queue_bytes: 8 << 20,
            keep: None,
            patience: Duration::from_secs(2),
        }
    }

    /// The file that the usual database is in.
    pub fn database_file(&self) -> PathBuf {
        self.dir.join(sqlite::FILE)
    }

    pub(crate) fn place(&self) -> Result<Place, StoreError> {
        let spool = self.dir.join("spool");
        files::make_folder(&spool)?;
        let syncs = self.durability == Durability::Power;
        let file = self.database_file();
        let usual: Backend = Arc::new(move || Ok(Box::new(Sqlite::open(&file)?) as Box<dyn Database>));
        let open = self.backend.clone().unwrap_or(usual);
        let backend: Backend = Arc::new(move || {
            let mut database = open()?;
            database.sync_each(syncs)?;
            Ok(database)
        });
        let (keys, clock, keep) = (self.keys.clone(), self.clock.clone(), self.keep);
        Ok(Place { spool, writer: writer_of(&self.dir)?, backend, keys, syncs, clock, keep })
    }

    /// The place of a trail that is only read; nothing is made.
    pub(crate) fn place_to_read(&self) -> Place {
        let closed: Backend = Arc::new(|| Err(StoreError::Closed));
        let (keys, clock) = (self.keys.clone(), self.clock.clone());
        let spool = self.dir.join("spool");
        Place { spool, writer: String::new(), backend: closed, keys, syncs: false, clock, keep: None }
    }

    fn sealer(&self) -> Sealer {
        Sealer { keys: self.keys.clone(), clock: self.clock.clone(), tags: Arc::default() }
    }
}

impl Place {
    pub(crate) fn chain_key(&self) -> ChainKey {
        self.keys.as_ref().map_or_else(ChainKey::plain, Keys::newest_chain)
    }
}

impl Store {
    /// Opens a store. The database is not waited for: if it is slow, locked or down, records wait in the spool. Only
    /// one that was made by a newer program is refused here.
    pub fn open(options: &Options) -> Result<Store, StoreError> {
        let place = Arc::new(options.place()?);
        let limits = Limits {
            durability: options.durability,
            queue: options.queue_bytes.max(2 << 20),
            spool: options.spool_bytes,
        };
        let mut spool = Spool::open(&place, limits)?;
        spool.patience = options.patience;
        Ok(Store { spool, sealer: options.sealer() })
    }

    /// For processes that live for milliseconds: opens no database and starts no thread.
    pub fn spool_only(options: &Options) -> Result<OneShot, StoreError> {
        let folder = options.dir.join("spool");
        files::make_folder(&folder)?;
        let syncs = options.durability == Durability::Power;
        Ok(OneShot { spool: SharedSpool::new(&folder, options.spool_bytes, syncs), sealer: options.sealer() })
    }

    /// Hands a job to the outbox and waits until it is as safe as a record. A second one of the same hook and event
    /// changes nothing.
    pub async fn enqueue(&self, job: &Job) -> Result<(), StoreError> {
        let frame = self.sealer.job(job)?;
        self.spool.put(frame).await.map_err(|error| StoreError::Refused(error.0))
    }

    /// The same without waiting: the job is written within moments. False: there is no room, or no key to seal it.
    pub fn try_enqueue(&self, job: &Job) -> bool {
        self.sealer.job(job).is_ok_and(|frame| self.spool.try_put(frame))
    }

    /// Keeps a filter trace that nobody waits for. Without a key nothing is kept: it shows values of the event.
    pub fn trace(&self, trace: &FilterTrace) {
        if let Ok(frame) = self.sealer.trace(trace) {
            self.spool.put_soon(frame);
        }
    }

    /// Says which hooks a source (such as a folder) has now. One that it had before, and that no other source has, is
    /// deleted: its rows lose its key and keep its label. Done in the background.
    pub fn installed(&self, source: impl Into<String>, hooks: Vec<String>) {
        self.spool.install(source.into(), hooks);
    }

    /// The name of this process in its data directory.
    pub fn name(&self) -> &str {
        &self.spool.name
    }

    /// Waits until all that was taken in is in the database. Blocks the thread.
    pub fn flush(&self, within: Duration) -> Result<(), StoreError> {
        self.spool.flush(within)
    }

    /// How it is.
    pub fn health(&self) -> Health {
        self.spool.health()
    }
}

impl Recorder for Store {
    fn record(&self, record: Record) -> BoxFuture<'_, Result<(), RecordError>> {
        match self.sealer.row(&record) {
            Ok(frame) => self.spool.put(frame),
            Err(error) => Box::pin(std::future::ready(Err(RecordError(error.to_string())))),
        }
    }

    fn digest(&self, canonical: &[u8]) -> [u8; 32] {
        self.sealer.digest(canonical)
    }

    fn record_soon(&self, record: Record) {
        match self.sealer.row(&record) {
            Ok(frame) => self.spool.put_soon(frame),
            Err(_) => self.spool.missed(),
        }
    }
}

impl OneShot {
    /// Hands a job to the outbox.
    pub fn enqueue(&self, job: &Job) -> Result<(), StoreError> {
        self.spool.append(&self.sealer.job(job)?)
    }

    /// Bytes that wait for a process with more time; if they are many, this one should open a [`Store`] or
    /// [`Audit`](crate::audit::Audit) for a moment after its work is done.
    pub fn waiting_bytes(&self) -> u64 {
        self.spool.waiting()
    }
}

impl Recorder for OneShot {
    fn record(&self, record: Record) -> BoxFuture<'_, Result<(), RecordError>> {
        let kept = self.sealer.row(&record).and_then(|frame| self.spool.append(&frame));
        Box::pin(std::future::ready(kept.map_err(|error| RecordError(error.to_string()))))
    }

    fn digest(&self, canonical: &[u8]) -> [u8; 32] {
        self.sealer.digest(canonical)
    }
}

impl Sealer {
    fn tag(&self, hook: &Arc<str>) -> Dedup {
        let known = self.tags.read().unwrap_or_else(PoisonError::into_inner).get(hook).copied();
        known.unwrap_or_else(|| {
            let tag = hook_tag(hook);
            let mut tags = self.tags.write().unwrap_or_else(PoisonError::into_inner);
            if tags.len() >= MOST_TAGS {
                tags.clear();
            }
            tags.insert(hook.clone(), tag);
            tag
        })
    }

    fn row(&self, record: &Record) -> Result<Frame, StoreError> {
        let mut row = Row::of(record, &self.tag(&record.hook), (self.clock)());
        if let (Some(keys), Some(detail)) = (&self.keys, &record.error_detail) {
            let kept = cut(detail, LONGEST_DETAIL);
            row.detail = Some(keys.seal(Purpose::Detail, &row.dedup, kept.as_bytes())?);
        }
        Frame::of_row(&row)
    }

    fn job(&self, job: &Job) -> Result<Frame, StoreError> {
        let keys = self.keys.as_ref().ok_or(StoreError::NoKey("keeping a job"))?;
        let dedup = dedup(&hook_tag(&job.hook), &job.event_id);
        let payload = keys.seal(Purpose::Job, &dedup, job.facts.as_bytes())?;
        let created_at = (self.clock)();
        let (hook, event_id, origin) = (&*job.hook, &*job.event_id, &*job.origin);
        Frame::of_job(&NewJob { dedup, hook, event_id, origin, payload, created_at })
    }

    fn trace(&self, trace: &FilterTrace) -> Result<Frame, StoreError> {
        let keys = self.keys.as_ref().ok_or(StoreError::NoKey("keeping a filter trace"))?;
        let json = serde_json::to_vec(trace).map_err(|error| StoreError::Refused(error.to_string()))?;
        let (event_id, session_id) = (&*trace.event_id, &*trace.session_id);
        let payload = keys.seal(Purpose::Trace, &bound_to(session_id, event_id), &json)?;
        Frame::of_trace(&NewTrace { event_id, session_id, created_at: (self.clock)(), payload })
    }

    fn digest(&self, canonical: &[u8]) -> [u8; 32] {
        match &self.keys {
            Some(keys) => keys.digest(canonical),
            None => ChainKey::plain().hash(&[canonical]),
        }
    }
}

/// The beginning of a text, whole characters.
fn cut(text: &str, longest: usize) -> &str {
    let edge = (0..=longest.min(text.len())).rev().find(|edge| text.is_char_boundary(*edge));
    text.get(..edge.unwrap_or(0)).unwrap_or_default()
}

/// The name of the chain that a data directory's rows are in; made once.
fn writer_of(dir: &Path) -> Result<String, StoreError> {
    let path = dir.join("writer");
    if !path.exists() {
        files::write_new(&path, files::random_name()?.as_bytes())?;
    }
    let name = std::fs::read_to_string(&path).map_err(StoreError::file(&path))?;
    let name = name.trim();
    if name.is_empty() || name.len() > 64 || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') {
        let found = cut(name, 40);
        let text = format!("{}: expected letters and digits, found `{found}`", path.display());
        return Err(StoreError::Refused(text));
    }
    Ok(name.to_owned())
}

fn system_time() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Options { dir, durability, keys, .. } = self;
        f.debug_struct("Options")
            .field("dir", dir)
            .field("durability", durability)
            .field("keys", keys)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Place")
            .field("spool", &self.spool)
            .field("writer", &self.writer)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Sealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sealer").field("keys", &self.keys).finish_non_exhaustive()
    }
}
