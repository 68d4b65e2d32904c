//! The recorder of a process that lives for milliseconds: it writes to the spool, and leaves the database to others.

use crate::data::DataDir;
use hookgate_core::future::BoxFuture;
use hookgate_core::record::{Record, RecordError, Recorder};
use hookgate_store::keys::Keys;
use hookgate_store::store::{OneShot, Store};
use std::fmt;
use std::sync::OnceLock;

/// Writes records to the spool in the data directory, for a process that lives for milliseconds. Opened with the first
/// record, as [`Trail`](crate::trail::Trail) is.
pub(crate) struct ShortTrail {
    place: DataDir,
    store: OnceLock<Result<OneShot, String>>,
}

impl ShortTrail {
    pub(crate) fn new(place: DataDir) -> ShortTrail {
        ShortTrail { place, store: OnceLock::new() }
    }

    fn store(&self) -> Result<&OneShot, RecordError> {
        let open = || {
            let (keys, _) = Keys::load_or_make(self.place.key_file()).map_err(|error| error.to_string())?;
            Store::spool_only(&self.place.with_keys(Some(keys))).map_err(|error| error.to_string())
        };
        self.store.get_or_init(open).as_ref().map_err(|why| RecordError(why.clone()))
    }

    /// Bytes that wait for a process with more time; none if nothing was recorded here.
    pub(crate) fn waiting_bytes(&self) -> u64 {
        self.store.get().and_then(|store| store.as_ref().ok()).map_or(0, OneShot::waiting_bytes)
    }
}

impl Recorder for ShortTrail {
    fn record(&self, record: Record) -> BoxFuture<'_, Result<(), RecordError>> {
        match self.store() {
            Ok(store) => store.record(record),
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }

    fn digest(&self, canonical: &[u8]) -> [u8; 32] {
        match self.store() {
            Ok(store) => store.digest(canonical),
            Err(_) => [0; 32],
        }
    }
}

impl fmt::Debug for ShortTrail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShortTrail").field("place", &self.place).finish_non_exhaustive()
    }
}
