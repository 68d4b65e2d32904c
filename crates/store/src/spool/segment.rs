//! One spool file: its header, and reading and writing at a place.

use crate::error::StoreError;
use crate::files;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// Where the first frame stands.
pub(crate) const START: u64 = 64;
const MAGIC: &[u8; 8] = b"HGSPOOL1";
/// Where the header says how far the file was moved.
const MOVED_AT: u64 = 16;
const SYNCS_AT: u64 = 24;

/// An open spool file whose lock this process holds.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) path: PathBuf,
    pub(crate) file: File,
}

/// What stands in front of the frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) generation: u64,
    /// Up to here the frames are in the database.
    pub(crate) moved: u64,
    /// The frames were promised to outlive a power cut.
    pub(crate) syncs: bool,
}

impl Segment {
    /// Makes a file and holds it before anybody can see it under its name.
    pub(crate) fn create(path: &Path, header: Header) -> Result<Segment, StoreError> {
        let hidden = path.with_extension("new");
        let file = files::private().create_new(true).open(&hidden).map_err(StoreError::file(&hidden))?;
        file.try_lock().map_err(|why| StoreError::file(&hidden)(why.into()))?;
        let segment = Segment { path: path.to_owned(), file };
        segment.put_header(header).map_err(StoreError::file(&hidden))?;
        std::fs::rename(&hidden, path).map_err(StoreError::file(path))?;
        if header.syncs {
            segment.file.sync_all().map_err(StoreError::file(path))?;
            files::sync_folder(path)?;
        }
        Ok(segment)
    }

    /// Takes a file over that no living process holds. None: somebody holds it, or it is gone.
    pub(crate) fn take_over(path: &Path) -> Result<Option<Segment>, StoreError> {
        let file = match files::private().open(path) {
            Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened.map_err(StoreError::file(path))?,
        };
        match file.try_lock() {
            Ok(()) => {}
            Err(std::fs::TryLockError::WouldBlock) => return Ok(None),
            Err(std::fs::TryLockError::Error(why)) => return Err(StoreError::file(path)(why)),
        }
        let segment = Segment { path: path.to_owned(), file };
        // whoever held it before may have moved it in and removed it
        Ok(segment.is_named().then_some(segment))
    }

    /// True if the path still names this file.
    pub(crate) fn is_named(&self) -> bool {
        let open = self.file.metadata().ok().as_ref().and_then(files::identity_of);
        self.path.exists() && files::identity(&self.path) == open
    }

    pub(crate) fn put_header(&self, header: Header) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(64);
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&header.generation.to_le_bytes());
        bytes.extend_from_slice(&header.moved.to_le_bytes());
        bytes.push(u8::from(header.syncs));
        bytes.resize(64, 0);
        self.write(&bytes, 0)
    }

    /// Notes how far the frames are in the database. If the note is lost, they are moved again and change nothing.
    pub(crate) fn put_moved(&self, moved: u64) -> io::Result<()> {
        self.write(&moved.to_le_bytes(), MOVED_AT)
    }

    /// Notes that some frames were promised to outlive a power cut.
    pub(crate) fn put_syncs(&self) -> io::Result<()> {
        self.write(&[1], SYNCS_AT)
    }

    /// The header; none if this is no spool file.
    pub(crate) fn header(&self) -> io::Result<Option<Header>> {
        let mut bytes = [0; 64];
        let len = self.read(&mut bytes, 0)?;
        let mut from = crate::wire::Reader::new(bytes.get(..len).unwrap_or_default());
        let header = (|| {
            let magic: [u8; 8] = from.array()?;
            let (generation, moved, syncs) = (from.u64()?, from.u64()?, from.byte()? != 0);
            Ok::<_, StoreError>((magic == *MAGIC && moved >= START).then_some(Header {
                generation,
                moved,
                syncs,
            }))
        })();
        Ok(header.ok().flatten())
    }

    pub(crate) fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    pub(crate) fn write(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        #[cfg(unix)]
        {
            std::os::unix::fs::FileExt::write_all_at(&self.file, bytes, at)
        }
        #[cfg(windows)]
        {
            let (mut rest, mut at) = (bytes, at);
            while !rest.is_empty() {
                let count = std::os::windows::fs::FileExt::seek_write(&self.file, rest, at)?;
                rest = rest.get(count..).unwrap_or_default();
                at = at.saturating_add(u64::try_from(count).unwrap_or(u64::MAX));
            }
            Ok(())
        }
    }

    /// Reads as much as there is; fewer bytes than asked for mean the end of the file.
    pub(crate) fn read(&self, bytes: &mut [u8], at: u64) -> io::Result<usize> {
        let (mut filled, mut at) = (0usize, at);
        while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            #[cfg(unix)]
            let read = std::os::unix::fs::FileExt::read_at(&self.file, rest, at);
            #[cfg(windows)]
            let read = std::os::windows::fs::FileExt::seek_read(&self.file, rest, at);
            match read {
                Ok(0) => break,
                Ok(count) => {
                    filled = filled.saturating_add(count);
                    at = at.saturating_add(u64::try_from(count).unwrap_or(u64::MAX));
                }
                Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
                Err(why) => return Err(why),
            }
        }
        Ok(filled)
    }
}
