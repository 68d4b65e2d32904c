//! The recorder that writes to a data directory. A door holds one for as long as it lives.
//!
//! The store is opened with the first thing to keep: who has no hook that leaves anything gets no files. A gate waits
//! for that; what nobody waits for is put aside meanwhile, and a thread opens the store.

use crate::data::DataDir;
use hookgate_core::explain::{FilterTrace, TraceRing};
use hookgate_core::facts::Head;
use hookgate_core::firings::Fired;
use hookgate_core::future::BoxFuture;
use hookgate_core::record::{Record, RecordError, Recorder};
use hookgate_store::keys::Keys;
use hookgate_store::outbox::Job;
use hookgate_store::store::{Options, Store};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Things that wait at most until the store is open.
const MOST_WAITING: usize = 10_000;

/// Told a line for the person at the terminal.
type Tell = dyn Fn(&str) + Send + Sync;

/// Writes records, jobs and filter traces to a data directory. Clones share it.
#[derive(Clone)]
pub(crate) struct Trail {
    inner: Arc<Inner>,
    opening: Arc<Mutex<Option<JoinHandle<()>>>>,
}

struct Inner {
    place: DataDir,
    store: OnceLock<Result<(Store, Options), String>>,
    waiting: Mutex<Waiting>,
    ring: TraceRing,
    tell: Box<Tell>,
}

/// What came before the store was open.
#[derive(Default)]
struct Waiting {
    things: Vec<Thing>,
    /// The store is open, or cannot be: nothing waits any more.
    over: bool,
}

enum Thing {
    Record(Box<Record>),
    Fired(Box<Fired>, Head),
    Job(Job),
    Trace(FilterTrace),
    Installed(String, Vec<String>),
}

impl Trail {
    pub(crate) fn new(place: DataDir, tell: impl Fn(&str) + Send + Sync + 'static) -> Trail {
        let (store, waiting, ring) = (OnceLock::new(), Mutex::default(), TraceRing::default());
        let inner = Arc::new(Inner { place, store, waiting, ring, tell: Box::new(tell) });
        Trail { inner, opening: Arc::default() }
    }

    /// From now on the newest filter traces stay in memory.
    pub(crate) fn remember(&self, newest: usize) {
        self.inner.ring.keep(newest);
    }

    /// The newest filter traces, oldest first.
    pub(crate) fn remembered(&self) -> Vec<FilterTrace> {
        self.inner.ring.traces()
    }

    /// Whether something was kept here before, by this process or another.
    pub(crate) fn is_in_use(&self) -> bool {
        self.inner.store.get().is_some() || self.inner.place.is_in_use()
    }

    /// The store and how it was opened. Waits for it.
    pub(crate) fn store(&self) -> Result<&(Store, Options), String> {
        let store = self.inner.store();
        self.inner.settle_waiting();
        store
    }

    /// Keeps a job without waiting. False: it cannot.
    pub(crate) fn keep(&self, job: Job) -> bool {
        match self.inner.store.get() {
            Some(Ok((store, _))) => store.try_enqueue(&job),
            Some(Err(_)) => false,
            None => self.put_aside(Thing::Job(job)),
        }
    }

    /// The end: waits until what was put aside is in the store, and until the database has it, at most so long.
    pub(crate) fn settle(&self, within: Duration) {
        let opening = self.opening.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(opening) = opening {
            // a thread that panicked has said so
            opening.join().ok();
        }
        self.inner.settle_waiting();
        if let Some(Ok((store, _))) = self.inner.store.get() {
            // what is left stays in the spool for the next process
            store.flush(within).ok();
            let missed = store.health().missed;
            if missed > 0 {
                (self.inner.tell)(&format!(
                    "audit: {missed} records that nobody waited for could not be kept"
                ));
            }
        }
    }

    /// Does it now if the store is open, else later. False: there is no room, or no store.
    fn put_aside(&self, thing: Thing) -> bool {
        if let Some(store) = self.inner.store.get() {
            return store.as_ref().is_ok_and(|(store, _)| thing.keep(store));
        }
        let mut waiting = self.inner.waiting();
        if waiting.over {
            drop(waiting);
            return self.inner.store().is_ok_and(|(store, _)| thing.keep(store));
        }
        if waiting.things.len() >= MOST_WAITING {
            return false;
        }
        waiting.things.push(thing);
        drop(waiting);
        self.open_soon();
        true
    }

    fn open_soon(&self) {
        let mut opening = self.opening.lock().unwrap_or_else(PoisonError::into_inner);
        if opening.is_none() {
            let inner = self.inner.clone();
            let open = move || {
                // the error stays in its place, and is told
                inner.store().ok();
                inner.settle_waiting();
            };
            // `settle` waits for it; without a thread the first gate opens the store
            *opening = std::thread::Builder::new().name("hookgate-trail".into()).spawn(open).ok();
        }
    }
}

impl Thing {
    fn keep(self, store: &Store) -> bool {
        match self {
            Thing::Record(record) => store.record_soon(*record),
            Thing::Fired(fired, head) => store.fired(*fired, &head),
            Thing::Job(job) => return store.try_enqueue(&job),
            Thing::Trace(trace) => store.trace(&trace),
            Thing::Installed(folder, hooks) => store.installed(folder, hooks),
        }
        true
    }
}

impl Inner {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn store(&self) -> Result<&(Store, Options), String> {
        self.store.get_or_init(|| self.open()).as_ref().map_err(Clone::clone)
    }

    fn open(&self) -> Result<(Store, Options), String> {
        let (keys, made) = Keys::load_or_make(self.place.key_file()).map_err(|error| error.to_string())?;
        if made {
            let file = self.place.key_file().display();
            (self.tell)(&format!(
                "audit: made the key file {file}; without it sealed details cannot be read"
            ));
        }
        let options = self.place.with_keys(Some(keys));
        let store = Store::open(&options).map_err(|error| error.to_string())?;
        Ok((store, options))
    }

    /// Brings what was put aside into the store, if it is open by now.
    fn settle_waiting(&self) {
        let Some(store) = self.store.get() else { return };
        let mut waiting = self.waiting();
        let things = std::mem::take(&mut waiting.things);
        waiting.over = true;
        drop(waiting);
        let is_news = |thing: &Thing| !matches!(thing, Thing::Installed(..));
        let lost = match store {
            Ok((store, _)) => things.into_iter().map(|thing| thing.keep(store)).filter(|kept| !kept).count(),
            Err(_) => things.iter().filter(|thing| is_news(thing)).count(),
        };
        if lost > 0 {
            let why = store.as_ref().err().map(|why| format!(": {why}")).unwrap_or_default();
            (self.tell)(&format!("audit: {lost} records or runs of watching hooks could not be kept{why}"));
        }
    }
}

impl Recorder for Trail {
    fn record(&self, record: Record) -> BoxFuture<'_, Result<(), RecordError>> {
        match self.store() {
            Ok((store, _)) => store.record(record),
            Err(why) => Box::pin(std::future::ready(Err(RecordError(why)))),
        }
    }

    fn digest(&self, canonical: &[u8]) -> [u8; 32] {
        match self.store() {
            Ok((store, _)) => store.digest(canonical),
            // the record will be refused with the reason; what its hash would be does not matter
            Err(_) => [0; 32],
        }
    }

    fn record_soon(&self, record: Record) {
        self.put_aside(Thing::Record(Box::new(record)));
    }

    fn fired(&self, fired: Fired, head: &Head) {
        self.put_aside(Thing::Fired(Box::new(fired), head.clone()));
    }

    fn installed(&self, folder: &str, hooks: Vec<String>) {
        // a trail that nobody has needed yet knows of no hook that could be gone
        if self.is_in_use() {
            self.put_aside(Thing::Installed(folder.to_owned(), hooks));
        } else {
            self.inner.waiting().things.push(Thing::Installed(folder.to_owned(), hooks));
        }
    }

    fn wants_traces(&self) -> bool {
        self.inner.place.filter_trace || self.inner.ring.is_on()
    }

    fn trace(&self, trace: FilterTrace) {
        if self.inner.ring.is_on() {
            self.inner.ring.push(trace.clone());
        }
        if self.inner.place.filter_trace {
            self.put_aside(Thing::Trace(trace));
        }
    }
}

impl fmt::Debug for Trail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trail").field("place", &self.inner.place).finish_non_exhaustive()
    }
}
