//! A folder to work in and the program to run there.

use serde_json::Value;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A working directory of its own. Nothing of the caller's environment that the program heeds gets in.
pub(crate) struct Place {
    dir: tempfile::TempDir,
    environment: Vec<(String, String)>,
}

/// What a run gave.
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Place {
    pub(crate) fn new() -> Place {
        Place { dir: tempfile::tempdir().unwrap(), environment: Vec::new() }
    }

    /// A place with a script that answers with this text, one word a piece, without pauses.
    pub(crate) fn answering(text: &str) -> Place {
        let script = serde_json::json!({ "turns": [{ "text": text }] });
        Place::new().with("script.json", &script.to_string())
    }

    /// Writes a file.
    pub(crate) fn with(self, path: &str, text: &str) -> Place {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
        self
    }

    /// Sets a variable for the program.
    pub(crate) fn env(mut self, name: &str, value: &str) -> Place {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    /// The program that has the command: coding agents start one of their own.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        match args {
            ["hook", ..] => self.command_of(env!("CARGO_BIN_EXE_hookgate-hook"), args),
            _ => self.command_of(env!("CARGO_BIN_EXE_hookgate"), args),
        }
    }

    pub(crate) fn command_of(&self, program: &str, args: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(args).current_dir(self.dir.path()).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        Ran::from(self.command(args).output().unwrap())
    }

    /// Runs `chat` with the script of this place.
    pub(crate) fn chat(&self, args: &[&str]) -> Ran {
        self.run(&[&["chat", "--script", "script.json"], args].concat())
    }

    /// Runs it with this on standard input.
    pub(crate) fn pipe(&self, input: &[u8], args: &[&str]) -> Ran {
        Place::feed(self.command(args), input)
    }

    /// Runs a command with this on standard input.
    pub(crate) fn feed(mut command: Command, input: &[u8]) -> Ran {
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        // one that refuses its arguments has ended without reading
        if let Err(error) = child.stdin.take().unwrap().write_all(input) {
            assert_eq!(error.kind(), std::io::ErrorKind::BrokenPipe);
        }
        Ran::from(child.wait_with_output().unwrap())
    }

    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }
}

impl Ran {
    /// The lines of standard output as JSON.
    pub(crate) fn lines(&self) -> Vec<Value> {
        self.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[track_caller]
    pub(crate) fn is(&self, code: i32, stdout: &str, stderr: &str) {
        assert_eq!(
            (self.code, self.stdout.as_str(), self.stderr.as_str()),
            (Some(code), stdout, stderr),
            "code, stdout, stderr"
        );
    }

    #[track_caller]
    pub(crate) fn fails(&self, code: i32, stderr: &str) {
        assert_eq!(self.code, Some(code), "{}", self.stderr);
        assert!(self.stderr.contains(stderr), "`{}` lacks `{stderr}`", self.stderr);
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Ran {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Ran { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }
}
