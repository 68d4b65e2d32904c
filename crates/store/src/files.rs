//! Files and folders that only their owner may read.

use crate::error::StoreError;
use ring::rand::{SecureRandom, SystemRandom};
use std::fs::{DirBuilder, File, Metadata, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// Makes a folder with all above it. What is made is the owner's alone; what is there stays as it is.
pub(crate) fn make_folder(path: &Path) -> Result<(), StoreError> {
    if path.as_os_str().is_empty() {
        return Ok(());
    }
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path).map_err(StoreError::file(path))
}

/// Options for a file of the owner's alone.
pub(crate) fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// A name that no other process uses.
pub(crate) fn random_name() -> Result<String, StoreError> {
    let mut bytes = [0; 8];
    let failed = |_| StoreError::Refused("the system gives no random numbers for a file name".into());
    SystemRandom::new().fill(&mut bytes).map_err(failed)?;
    Ok(crate::row::hex(&bytes))
}

/// Writes a whole file under a name that is not taken; false if it is.
pub(crate) fn write_new(path: &Path, bytes: &[u8]) -> Result<bool, StoreError> {
    let made = write_beside(path, bytes)?;
    let linked = std::fs::hard_link(&made, path);
    std::fs::remove_file(&made).map_err(StoreError::file(&made))?;
    match linked {
        Ok(()) => sync_folder(path).map(|()| true),
        Err(why) if why.kind() == ErrorKind::AlreadyExists => Ok(false),
        Err(why) => Err(StoreError::file(path)(why)),
    }
}

/// Puts a whole file in the place of another; readers see the one or the other.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    let made = write_beside(path, bytes)?;
    std::fs::rename(&made, path).map_err(StoreError::file(path))?;
    sync_folder(path)
}

fn write_beside(path: &Path, bytes: &[u8]) -> Result<PathBuf, StoreError> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}", random_name()?));
    let beside = path.with_file_name(name);
    let mut file = private().create_new(true).open(&beside).map_err(StoreError::file(&beside))?;
    let written = file.write_all(bytes).and_then(|()| file.sync_all());
    if let Err(why) = written {
        // the half-written file is of no use to anybody
        std::fs::remove_file(&beside).ok();
        return Err(StoreError::file(&beside)(why));
    }
    Ok(beside)
}

/// Makes a new name last over a power cut.
pub(crate) fn sync_folder(of: &Path) -> Result<(), StoreError> {
    let Some(folder) = of.parent().filter(|folder| cfg!(unix) && !folder.as_os_str().is_empty()) else {
        return Ok(());
    };
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(StoreError::file(folder))
}

/// Tells files apart that have had the same name one after the other.
pub(crate) type Identity = (u64, u64);

/// The identity of the file with this name. None: there is none, or the system cannot tell.
pub(crate) fn identity(path: &Path) -> Option<Identity> {
    identity_of(&std::fs::metadata(path).ok()?)
}

/// The identity of an open file.
pub(crate) fn identity_of(metadata: &Metadata) -> Option<Identity> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        Some((metadata.dev(), metadata.ino()))
    }
    #[cfg(not(unix))]
    {
        // an open file cannot be renamed or removed there
        let _ = metadata;
        None
    }
}
