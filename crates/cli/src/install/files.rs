//! Reading and changing settings files: whole or not at all, with what was there before kept beside them.

use crate::failure::Failure;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A larger file holds no settings.
const LARGEST: u64 = 16 << 20;

/// What becomes of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) path: PathBuf,
    /// What stands in it; none if it does not exist.
    pub(crate) before: Option<String>,
    /// What is to stand in it; none if it is to go.
    pub(crate) after: Option<String>,
    /// Whether it is a program.
    pub(crate) program: bool,
}

/// The text of a file; none if there is no such file.
pub(crate) fn read(path: &Path) -> Result<Option<String>, Failure> {
    let cannot =
        |why: String| Failure::new(format!("{} cannot be read: {why}; it is left as it is", path.display()));
    let about = match fs::metadata(path) {
        Ok(about) => about,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(cannot(error.to_string())),
    };
    if !about.is_file() || about.len() > LARGEST {
        return Err(cannot("expected a text file of at most 16 MiB".into()));
    }
    let bytes = fs::read(path).map_err(|error| cannot(error.to_string()))?;
    String::from_utf8(bytes).map(Some).map_err(|_| cannot("it is not UTF-8 text".into()))
}

/// Where the text from before an installation is kept.
pub(crate) fn kept(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".before-hookgate");
    path.with_file_name(name)
}

/// Whether this is such a place.
pub(crate) fn is_kept(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "before-hookgate")
}

impl Change {
    /// Whether it changes anything.
    pub(crate) fn is_one(&self) -> bool {
        self.before != self.after
    }

    /// Makes it.
    pub(crate) fn make(&self) -> Result<(), Failure> {
        let cannot =
            |error: io::Error| Failure::new(format!("{} cannot be changed: {error}", self.path.display()));
        match &self.after {
            Some(text) => write(&self.path, text, self.program).map_err(cannot),
            None => match fs::remove_file(&self.path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(cannot(error)),
                _ => {
                    remove_empty_folders(&self.path);
                    Ok(())
                }
            },
        }
    }
}

/// Writes a file beside the old one and puts it in its place. A link stays one.
fn write(path: &Path, text: &str, program: bool) -> io::Result<()> {
    let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let folder = target.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mut name = std::ffi::OsString::from(".");
    name.push(target.file_name().unwrap_or_default());
    name.push(format!(".{}.hookgate-new", std::process::id()));
    let beside = folder.join(name);
    let written = (|| {
        let mut options = fs::OpenOptions::new();
        options.write(true).create_new(true);
        let mut file = options.open(&beside)?;
        file.write_all(text.as_bytes())?;
        match fs::metadata(&target) {
            Ok(about) => file.set_permissions(about.permissions())?,
            Err(_) if program => set_program(&file)?,
            Err(_) => {}
        }
        file.sync_all()?;
        fs::rename(&beside, &target)
    })();
    if written.is_err() {
        // half a file of ours must not stay
        let _ = fs::remove_file(&beside);
    }
    written
}

#[cfg(unix)]
fn set_program(file: &fs::File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    file.set_permissions(fs::Permissions::from_mode(0o755))
}

#[cfg(not(unix))]
fn set_program(_file: &fs::File) -> io::Result<()> {
    Ok(())
}

/// Folders that hold nothing any more, as far as an installation can have made them.
fn remove_empty_folders(path: &Path) {
    for folder in path.ancestors().skip(1).take(4) {
        // one that is not empty ends it
        if fs::remove_dir(folder).is_err() {
            break;
        }
    }
}
