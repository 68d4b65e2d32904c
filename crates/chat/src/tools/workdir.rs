//! The folder that file tools are confined to. No path and no link leads out of it: each step of a path is opened
//! below the folder that was opened once (`cap-std`), so there is nothing to race against.

use super::ToolError;
use cap_std::ambient_authority;
use cap_std::fs::Dir;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// An opened folder. Clones share it.
#[derive(Debug, Clone)]
pub struct Workdir {
    dir: Arc<Dir>,
    path: PathBuf,
}

impl Workdir {
    /// Opens the folder.
    ///
    /// # Errors
    /// It does not exist, or may not be opened.
    pub fn open(path: impl AsRef<Path>) -> io::Result<Workdir> {
        let path = path.as_ref().canonicalize()?;
        let dir = Dir::open_ambient_dir(&path, ambient_authority())?;
        Ok(Workdir { dir: Arc::new(dir), path })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn dir(&self) -> &Dir {
        &self.dir
    }

    /// A path of the model as one below the folder. An absolute path is fine if it begins with the folder.
    pub(super) fn relative(&self, written: &str) -> Result<PathBuf, ToolError> {
        if written.is_empty() || written.contains('\0') {
            return Err(ToolError("`path` is not a file name".into()));
        }
        let path = Path::new(written);
        let below = if path.is_absolute() {
            path.strip_prefix(&self.path).map_err(|_| self.outside(written))?
        } else {
            path
        };
        match below.components().next_back() {
            Some(Component::Normal(_)) => Ok(below.to_owned()),
            _ => Err(ToolError(format!("`{written}` is not a file; name a file in the working directory"))),
        }
    }

    /// What an error means for the model.
    pub(super) fn explain(&self, written: &str, error: &io::Error) -> ToolError {
        // cap-std's own refusal carries no number of the system
        if error.kind() == io::ErrorKind::PermissionDenied && error.raw_os_error().is_none() {
            return self.outside(written);
        }
        let text = error.to_string();
        let text = text.split(" (os error").next().unwrap_or_default().to_lowercase();
        ToolError(format!("`{written}`: {text}"))
    }

    fn outside(&self, written: &str) -> ToolError {
        ToolError(format!(
            "`{written}` leads outside of the working directory; use a path inside of it, such as `notes/a.txt`"
        ))
    }
}

/// Runs file work on a thread that may wait for a disk.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|_| Err(ToolError("the file work was broken off".into())))
}
