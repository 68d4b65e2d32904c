//! What can go wrong in a store, sorted by what follows from it.

use std::path::{Path, PathBuf};

/// A fault of the store.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The database does not take work now; it may later. Rows wait in the spool.
    #[error("{what}: {why}")]
    Unavailable {
        /// Which database.
        what: String,
        /// What it said.
        why: String,
    },
    /// The database file is damaged.
    #[error("{what} is damaged: {why}")]
    Corrupt {
        /// Which file.
        what: String,
        /// What was found.
        why: String,
    },
    /// The schema was made by a newer program.
    #[error(
        "{what} has schema version {found}, and this program knows versions up to {known}; use the newer program"
    )]
    Newer {
        /// Which database.
        what: String,
        /// Its version.
        found: i64,
        /// The newest version known here.
        known: i64,
    },
    /// A file could not be used.
    #[error("{}: {why}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        why: std::io::Error,
    },
    /// The key file cannot be read as one.
    #[error("key file {}: {why}", path.display())]
    KeyFile {
        /// Which.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// Something is sealed with a key that is not at hand.
    #[error("sealed with key `{wanted}`, which the key file does not hold; {held}")]
    WrongKey {
        /// The id of the key that it was sealed with.
        wanted: String,
        /// Which keys are there.
        held: String,
    },
    /// Something is sealed and does not open: it was changed.
    #[error("the sealed text does not open with key `{key_id}`: it was changed")]
    Tampered {
        /// The key that it names.
        key_id: String,
    },
    /// Sealing needs a key and there is none.
    #[error("{0} needs a key, and none is set")]
    NoKey(&'static str),
    /// A frame's bytes are not what was written.
    #[error("a frame of the spool cannot be read")]
    Frame,
    /// Something is too large or not as agreed.
    #[error("{0}")]
    Refused(String),
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
}

impl StoreError {
    pub(crate) fn file(path: &Path) -> impl FnOnce(std::io::Error) -> StoreError {
        let path = path.to_owned();
        move |why| StoreError::File { path, why }
    }
}
