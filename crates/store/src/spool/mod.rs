//! Files in front of the database, so that a record is safe in microseconds and the database may be slow, locked or
//! down.
//!
//! A long-lived process has two segments of its own, which it fills in turn: `writer` appends what `queue` takes
//! in, `mover` moves it on and frees what was moved. A process that lives for milliseconds appends to one file that
//! such processes share (`shared`). A locked file belongs to a living process; what is not locked is moved in by
//! whoever finds it (`adopt`). Nothing here is deleted before the database has it.

pub(crate) mod adopt;
pub(crate) mod frame;
pub(crate) mod mover;
pub(crate) mod queue;
pub(crate) mod segment;
pub(crate) mod shared;
pub(crate) mod writer;

/// When a record counts as kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// Written to the spool: outlives the process, also `kill -9`.
    #[default]
    Process,
    /// Synced to the disk: outlives a power cut.
    Power,
    /// Taken over: what came within the last 20 ms, or does not fit on the disk, is lost with the process.
    Relaxed,
}
