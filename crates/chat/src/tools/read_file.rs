//! `read_file {"path", "offset"?, "limit"?}`: reads a text file of the working directory, whole or some lines.

use super::{Tool, ToolError, Workdir, arguments, workdir};
use cap_std::fs::{OpenOptions, OpenOptionsExt};
use futures_util::future::BoxFuture;
use hookgate_llm::ToolSpec;
use rustix::fs::OFlags;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::io::Read;

/// What [`ReadFile`] reads.
#[derive(Debug, Clone)]
pub struct ReadFileSettings {
    /// The folder it is confined to.
    pub workdir: Workdir,
    /// How much is read at once, in bytes. 1 MiB by default.
    pub limit: usize,
}

impl ReadFileSettings {
    /// The defaults for this folder.
    pub fn new(workdir: Workdir) -> ReadFileSettings {
        ReadFileSettings { workdir, limit: 1024 * 1024 }
    }
}

/// The tool `read_file`.
#[derive(Debug, Clone)]
pub struct ReadFile {
    settings: ReadFileSettings,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    path: String,
    /// The first line, from 1.
    offset: Option<usize>,
    /// How many lines.
    limit: Option<usize>,
}

impl ReadFile {
    /// The tool with these settings.
    pub fn new(settings: ReadFileSettings) -> ReadFile {
        ReadFile { settings }
    }
}

impl Tool for ReadFile {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "read_file".into(),
            description: format!(
                "Reads a text file in the working directory, at most {} KiB at once. For a part of it give the first \
                 line (offset) and the number of lines (limit).",
                self.settings.limit / 1024
            ),
            parameters: json!({
                "type": "object",
                "properties": {
                    "path": { "type": "string", "description": "The file, relative to the working directory." },
                    "offset": { "type": "integer", "minimum": 1, "description": "The first line to read, from 1." },
                    "limit": { "type": "integer", "minimum": 1, "description": "How many lines to read." },
                },
                "required": ["path"],
                "additionalProperties": false,
            }),
        }
    }

    fn call(&self, args: Map<String, Value>) -> BoxFuture<'_, Result<Value, ToolError>> {
        let settings = self.settings.clone();
        Box::pin(async move {
            let wanted: Arguments = arguments::read(args)?;
            workdir::blocking(move || read(&settings, &wanted).map(Value::String)).await
        })
    }
}

fn read(settings: &ReadFileSettings, wanted: &Arguments) -> Result<String, ToolError> {
    let Arguments { path, offset, limit } = wanted;
    let workdir = &settings.workdir;
    let below = workdir.relative(path)?;
    let mut options = OpenOptions::new();
    // a pipe that nobody writes to must not be waited for
    options.read(true).custom_flags(flags(OFlags::NONBLOCK));
    let explain = |error| workdir.explain(path, &error);
    let file = workdir.dir().open_with(&below, &options).map_err(explain)?;
    if !file.metadata().map_err(explain)?.is_file() {
        return Err(ToolError(format!("`{path}` is not a regular file")));
    }
    let skip = offset.unwrap_or(1).saturating_sub(1);
    let mut lines =
        Lines { left: limit.unwrap_or(usize::MAX), skip, bytes: Vec::new(), limit: settings.limit };
    lines.read(file).map_err(explain)?;
    let over = lines.bytes.len() > settings.limit;
    let mut text = text_of(path, lines.bytes)?;
    if over {
        arguments::cut(&mut text, settings.limit);
        let at = skip.saturating_add(text.matches('\n').count()).saturating_add(1);
        text.push_str(&format!("\n[cut after {} bytes; go on with offset {at}]", settings.limit));
    }
    Ok(text)
}

/// Collects the wanted lines of a file, up to a limit and not more than a little over it.
struct Lines {
    skip: usize,
    left: usize,
    bytes: Vec<u8>,
    limit: usize,
}

impl Lines {
    fn read(&mut self, mut file: impl Read) -> std::io::Result<()> {
        let mut buffer = vec![0; 64 * 1024];
        while self.left > 0 && self.bytes.len() <= self.limit {
            let n = match file.read(&mut buffer) {
                Ok(0) => break,
                Ok(n) => n,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            for piece in buffer.get(..n).unwrap_or_default().split_inclusive(|byte| *byte == b'\n') {
                self.take(piece);
            }
        }
        Ok(())
    }

    fn take(&mut self, piece: &[u8]) {
        let ends = usize::from(piece.ends_with(b"\n"));
        if self.skip > 0 {
            self.skip = self.skip.saturating_sub(ends);
        } else if self.left > 0 && self.bytes.len() <= self.limit {
            self.bytes.extend_from_slice(piece);
            self.left = self.left.saturating_sub(ends);
        }
    }
}

fn text_of(path: &str, mut bytes: Vec<u8>) -> Result<String, ToolError> {
    // the end may have been cut inside a character
    if let Err(error) = std::str::from_utf8(&bytes)
        && error.error_len().is_none()
    {
        bytes.truncate(error.valid_up_to());
    }
    if bytes.contains(&0) {
        return Err(ToolError(format!("`{path}` is a binary file; only text can be read")));
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        ToolError(format!("`{path}` is not UTF-8 text (at byte {at}); only UTF-8 text can be read"))
    })
}

fn flags(flags: OFlags) -> i32 {
    i32::try_from(flags.bits()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    struct Case {
        dir: tempfile::TempDir,
        limit: usize,
    }

    impl Case {
        fn new() -> Case {
            Case { dir: tempfile::tempdir().unwrap(), limit: 1024 * 1024 }
        }

        async fn call(&self, args: Value) -> Result<Value, ToolError> {
            let Value::Object(args) = args else { unreachable!() };
            let workdir = Workdir::open(self.dir.path()).unwrap();
            ReadFile::new(ReadFileSettings { workdir, limit: self.limit }).call(args).await
        }

        async fn gives(&self, args: Value, expected: &str) {
            assert_eq!(self.call(args).await.unwrap(), expected);
        }

        async fn fails(&self, args: Value, expected: &str) {
            let error = self.call(args).await.unwrap_err().0;
            assert!(error.contains(expected), "`{error}` lacks `{expected}`");
        }
    }

    #[tokio::test]
    async fn reads_whole_files_and_lines() {
        let case = Case::new();
        fs::create_dir(case.dir.path().join("sub")).unwrap();
        fs::write(case.dir.path().join("sub/a.txt"), "one\ntwo\nthree\n").unwrap();
        case.gives(json!({"path": "sub/a.txt"}), "one\ntwo\nthree\n").await;
        case.gives(json!({"path": "sub/../sub/a.txt", "offset": 2, "limit": 1}), "two\n").await;
        case.gives(json!({"path": "sub/a.txt", "offset": 3}), "three\n").await;
        case.gives(json!({"path": "sub/a.txt", "offset": 9}), "").await;
        case.gives(json!({"path": "sub/a.txt", "limit": null}), "one\ntwo\nthree\n").await;
        let absolute = case.dir.path().canonicalize().unwrap().join("sub/a.txt");
        case.gives(json!({"path": absolute, "limit": 1}), "one\n").await;
    }

    #[tokio::test]
    async fn long_files_are_cut_with_a_note() {
        let case = Case { limit: 10, ..Case::new() };
        fs::write(case.dir.path().join("a"), "1234\n678é\n1").unwrap();
        case.gives(json!({"path": "a"}), "1234\n678é\n[cut after 10 bytes; go on with offset 2]").await;
        fs::write(case.dir.path().join("b"), "x".repeat(10)).unwrap();
        case.gives(json!({"path": "b"}), "xxxxxxxxxx").await;
    }

    #[tokio::test]
    async fn nothing_leads_out() {
        let case = Case::new();
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("secret"), "s").unwrap();
        symlink(outside.path(), case.dir.path().join("link")).unwrap();
        symlink(outside.path().join("secret"), case.dir.path().join("file")).unwrap();
        symlink("../../../../etc/passwd", case.dir.path().join("up")).unwrap();
        for path in ["link/secret", "file", "up", "../x", "/etc/passwd", "a/../../x"] {
            fs::create_dir_all(case.dir.path().join("a")).unwrap();
            case.fails(json!({"path": path}), "outside of the working directory").await;
        }
        fs::write(case.dir.path().join("real"), "r").unwrap();
        symlink("real", case.dir.path().join("inner")).unwrap();
        case.gives(json!({"path": "inner"}), "r").await;
    }

    #[tokio::test]
    async fn only_text_in_regular_files() {
        let case = Case::new();
        fs::write(case.dir.path().join("bin"), b"\x7fELF\0\x01").unwrap();
        fs::write(case.dir.path().join("latin"), b"caf\xe9 au lait").unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, case.dir.path().join("fifo"), 0o600.into()).unwrap();
        case.fails(json!({"path": "bin"}), "is a binary file").await;
        case.fails(json!({"path": "latin"}), "not UTF-8 text (at byte 3)").await;
        case.fails(json!({"path": "fifo"}), "not a regular file").await;
        case.fails(json!({"path": "."}), "is not a file").await;
        case.fails(json!({"path": "none"}), "no such file").await;
        case.fails(json!({"path": "none", "x": 1}), "unknown field `x`").await;
    }
}
