//! The spool of processes that live for milliseconds: one file to which each appends under a short lock. None of them
//! opens the database.

use super::frame::Frame;
use super::segment::{Header, START, Segment};
use crate::error::StoreError;
use crate::files;
use std::fs::TryLockError;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The file's name.
pub(crate) const NAME: &str = "shared.spool";
/// How long to wait for the others.
const PATIENCE: Duration = Duration::from_secs(2);
const GENERATION: u64 = 1;

/// The shared file, open once it was needed.
#[derive(Debug)]
pub(crate) struct SharedSpool {
    path: PathBuf,
    limit: u64,
    syncs: bool,
    open: Mutex<Option<Segment>>,
}

impl SharedSpool {
    pub(crate) fn new(folder: &Path, limit: u64, syncs: bool) -> SharedSpool {
        SharedSpool { path: folder.join(NAME), limit, syncs, open: Mutex::new(None) }
    }

    /// Appends a frame; when it returns, the frame outlives this process.
    pub(crate) fn append(&self, frame: &Frame) -> Result<(), StoreError> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let segment = self.locked(&mut open)?;
        let result = self.write(segment, frame).map_err(StoreError::file(&self.path));
        segment.file.unlock().map_err(StoreError::file(&self.path))?;
        result
    }

    /// Bytes that wait for a process with more time.
    pub(crate) fn waiting(&self) -> u64 {
        std::fs::metadata(&self.path).map_or(0, |metadata| metadata.len().saturating_sub(START))
    }

    /// The file, locked, and still under its name.
    fn locked<'a>(&self, open: &'a mut Option<Segment>) -> Result<&'a Segment, StoreError> {
        let began = Instant::now();
        loop {
            let segment = match open.take() {
                Some(segment) if segment.is_named() => segment,
                _ => self.open_file()?,
            };
            match segment.file.try_lock() {
                Ok(()) if segment.is_named() => return Ok(open.insert(segment)),
                // it was taken over meanwhile: the next one is new
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    if began.elapsed() > PATIENCE {
                        let why = std::io::Error::from(std::io::ErrorKind::WouldBlock);
                        return Err(StoreError::file(&self.path)(why));
                    }
                    *open = Some(segment);
                    std::thread::sleep(Duration::from_micros(100));
                }
                Err(TryLockError::Error(why)) => return Err(StoreError::file(&self.path)(why)),
            }
        }
    }

    fn open_file(&self) -> Result<Segment, StoreError> {
        let at = StoreError::file(&self.path);
        let file = files::private().create(true).truncate(false).open(&self.path).map_err(at)?;
        Ok(Segment { path: self.path.clone(), file })
    }

    fn write(&self, segment: &Segment, frame: &Frame) -> std::io::Result<()> {
        let len = segment.len()?;
        if len >= self.limit {
            return Err(std::io::Error::other("the spool is full; nobody has moved it into the database"));
        }
        let mut bytes = Vec::with_capacity(frame.len());
        frame.put(GENERATION, &mut bytes);
        let at = len.max(START);
        if len >= START && self.syncs {
            segment.put_syncs()?;
        } else if len < START {
            segment.put_header(Header { generation: GENERATION, moved: START, syncs: self.syncs })?;
        }
        let written = segment
            .write(&bytes, at)
            .and_then(|()| if self.syncs { segment.file.sync_data() } else { Ok(()) });
        if written.is_err() {
            // a half-written frame would be skipped anyway
            segment.file.set_len(at).ok();
        } else if len < START && self.syncs {
            files::sync_folder(&self.path).map_err(std::io::Error::other)?;
        }
        written
    }
}
