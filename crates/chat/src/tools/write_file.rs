//! `write_file {"path", "content"}`: writes a text file of the working directory, whole.
//!
//! The text goes to a new file beside the target, which then takes the target's name: whoever reads sees the old
//! text or the new one. A link is written through as long as it stays inside the folder; the permissions of a file
//! that is replaced are kept.

use super::{Tool, ToolError, Workdir, arguments, workdir};
use cap_std::fs::{Dir, OpenOptions, Permissions};
use futures_util::future::BoxFuture;
use hookgate_llm::ToolSpec;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// What [`WriteFile`] writes.
#[derive(Debug, Clone)]
pub struct WriteFileSettings {
    /// The folder it is confined to.
    pub workdir: Workdir,
    /// How long a text may be, in bytes. 16 MiB by default.
    pub limit: usize,
}

impl WriteFileSettings {
    /// The defaults for this folder.
    pub fn new(workdir: Workdir) -> WriteFileSettings {
        WriteFileSettings { workdir, limit: 16 * 1024 * 1024 }
    }
}

/// The tool `write_file`.
#[derive(Debug, Clone)]
pub struct WriteFile {
    settings: WriteFileSettings,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    path: String,
    content: String,
}

impl WriteFile {
    /// The tool with these settings.
    pub fn new(settings: WriteFileSettings) -> WriteFile {
        WriteFile { settings }
    }
}

impl Tool for WriteFile {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "write_file".into(),
            description:
                "Writes a text file in the working directory, whole; what the file had before is replaced. \
                          Folders that are missing are made."
                    .into(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "path": { "type": "string", "description": "The file, relative to the working directory." },
                    "content": { "type": "string", "description": "The whole text." },
                },
                "required": ["path", "content"],
                "additionalProperties": false,
            }),
        }
    }

    fn call(&self, args: Map<String, Value>) -> BoxFuture<'_, Result<Value, ToolError>> {
        let settings = self.settings.clone();
        Box::pin(async move {
            let wanted: Arguments = arguments::read(args)?;
            workdir::blocking(move || write(&settings, &wanted).map(Value::String)).await
        })
    }
}

fn write(settings: &WriteFileSettings, wanted: &Arguments) -> Result<String, ToolError> {
    let Arguments { path, content } = wanted;
    let workdir = &settings.workdir;
    let below = workdir.relative(path)?;
    if content.len() > settings.limit {
        return Err(ToolError(format!(
            "`content` has {} bytes; at most {} can be written at once",
            content.len(),
            settings.limit
        )));
    }
    let explain = |error| workdir.explain(path, &error);
    let dir = workdir.dir();
    let target = Target::find(dir, &below).map_err(explain)?;
    if target.exists && target.mode.is_none() {
        return Err(ToolError(format!("`{path}` is not a regular file")));
    }
    replace(dir, &target, content).map_err(explain)?;
    let verb = if target.exists { "replaced" } else { "created" };
    Ok(format!("{verb} `{path}` ({} bytes)", content.len()))
}

/// Where the text goes.
struct Target {
    path: PathBuf,
    exists: bool,
    /// The permissions of a regular file that is there.
    mode: Option<Permissions>,
}

impl Target {
    fn find(dir: &Dir, below: &Path) -> io::Result<Target> {
        if let Some(parent) = below.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            // asked first: for a link that leads out, making the folder would only say that it exists
            match dir.open_dir(parent) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => dir.create_dir_all(parent)?,
                opened => drop(opened?),
            }
        }
        let about = match dir.symlink_metadata(below) {
            Ok(about) => about,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Target { path: below.to_owned(), exists: false, mode: None });
            }
            Err(error) => return Err(error),
        };
        // the name of a link would be replaced, not what it points to
        let link = about.is_symlink();
        let path = if link { dir.canonicalize(below)? } else { below.to_owned() };
        let about = if link { dir.symlink_metadata(&path)? } else { about };
        let mode = about.is_file().then(|| about.permissions());
        Ok(Target { path, exists: true, mode })
    }
}

fn replace(dir: &Dir, target: &Target, content: &str) -> io::Result<()> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let n = COUNT.fetch_add(1, Ordering::Relaxed);
    let temporary = target.path.with_file_name(format!(".hookgate-{}-{n}.tmp", std::process::id()));
    let written = dir
        .open_with(&temporary, OpenOptions::new().write(true).create_new(true))
        .and_then(|mut file| {
            file.write_all(content.as_bytes())?;
            match &target.mode {
                Some(mode) => file.set_permissions(mode.clone()),
                None => Ok(()),
            }
        })
        .and_then(|()| dir.rename(&temporary, dir, &target.path));
    if written.is_err() {
        let _ = dir.remove_file(&temporary);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    async fn call(dir: &Path, path: &str, content: &str) -> Result<Value, ToolError> {
        let Value::Object(args) = json!({"path": path, "content": content}) else { unreachable!() };
        let workdir = Workdir::open(dir).unwrap();
        WriteFile::new(WriteFileSettings { workdir, limit: 100 }).call(args).await
    }

    async fn fails(dir: &Path, path: &str, content: &str, expected: &str) {
        let error = call(dir, path, content).await.unwrap_err().0;
        assert!(error.contains(expected), "`{error}` lacks `{expected}`");
    }

    #[tokio::test]
    async fn creates_and_replaces() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        assert_eq!(call(dir.path(), "a/b/c.txt", "hé").await.unwrap(), "created `a/b/c.txt` (3 bytes)");
        assert_eq!(fs::read_to_string(at("a/b/c.txt")).unwrap(), "hé");
        fs::set_permissions(at("a/b/c.txt"), fs::Permissions::from_mode(0o750)).unwrap();
        assert_eq!(call(dir.path(), "a/b/c.txt", "x").await.unwrap(), "replaced `a/b/c.txt` (1 bytes)");
        assert_eq!(fs::read_to_string(at("a/b/c.txt")).unwrap(), "x");
        assert_eq!(fs::metadata(at("a/b/c.txt")).unwrap().permissions().mode() & 0o777, 0o750);
        assert_eq!(fs::read_dir(at("a/b")).unwrap().count(), 1, "no temporary file stays");
    }

    #[tokio::test]
    async fn links_are_written_through_inside_only() {
        let dir = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("f"), "old").unwrap();
        fs::write(dir.path().join("real"), "old").unwrap();
        symlink("real", dir.path().join("inner")).unwrap();
        symlink(outside.path().join("f"), dir.path().join("outer")).unwrap();
        symlink(outside.path(), dir.path().join("folder")).unwrap();
        call(dir.path(), "inner", "new").await.unwrap();
        assert_eq!(fs::read_to_string(dir.path().join("real")).unwrap(), "new");
        assert!(dir.path().join("inner").is_symlink());
        for path in ["outer", "folder/f", "folder/new/f", "../f", "/etc/hookgate-test"] {
            fails(dir.path(), path, "new", "outside of the working directory").await;
        }
        assert_eq!(fs::read_to_string(outside.path().join("f")).unwrap(), "old");
    }

    #[tokio::test]
    async fn what_is_no_file_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("d")).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, dir.path().join("fifo"), 0o600.into()).unwrap();
        fails(dir.path(), "d", "x", "not a regular file").await;
        fails(dir.path(), "fifo", "x", "not a regular file").await;
        fails(dir.path(), "..", "x", "is not a file").await;
        fails(dir.path(), "big", &"x".repeat(101), "at most 100").await;
    }
}
