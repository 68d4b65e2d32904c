//! `exec {"command"}`: runs a shell command.
//!
//! | part | contract |
//! |---|---|
//! | program | `sh -c COMMAND` in the working directory |
//! | input | none: standard input is closed |
//! | environment | inherited, except variables whose names look like secrets, and those named in the settings |
//! | output | `stdout` and `stderr`, each up to a limit; bytes that are no UTF-8 become replacement marks |
//! | exit code | in the result; not 0 is no fault of the tool |
//! | end | when the shell ends, when the time limit passes or when the call is dropped, the whole process group is killed: nothing is left running in the background |
//!
//! A program that leaves its process group (`setsid`) escapes the last row; keeping such programs out is the
//! business of a sandbox around this tool.

use super::{Tool, ToolError, arguments};
use futures_util::future::BoxFuture;
use hookgate_llm::ToolSpec;
use rustix::process::{Pid, Signal, kill_process_group};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;

/// How long the outputs are read when everything that writes to them should be dead.
const LAST_OUTPUT: Duration = Duration::from_millis(200);

/// How [`Exec`] runs commands.
#[derive(Debug, Clone)]
pub struct ExecSettings {
    /// Where commands start.
    pub workdir: PathBuf,
    /// How long one may run. 60 seconds by default.
    pub timeout: Duration,
    /// How much of each output is kept, in bytes. 64 KiB by default.
    pub output_limit: usize,
    /// Environment variables that commands never see, beside those whose names look like secrets.
    pub hidden_env: Vec<String>,
}

impl ExecSettings {
    /// The defaults for this working directory.
    pub fn new(workdir: impl Into<PathBuf>) -> ExecSettings {
        ExecSettings {
            workdir: workdir.into(),
            timeout: Duration::from_secs(60),
            output_limit: 64 * 1024,
            hidden_env: Vec::new(),
        }
    }
}

/// The tool `exec`.
#[derive(Debug, Clone)]
pub struct Exec {
    settings: ExecSettings,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    command: String,
}

impl Exec {
    /// The tool with these settings.
    pub fn new(settings: ExecSettings) -> Exec {
        Exec { settings }
    }

    async fn run(&self, command: &str) -> Result<Value, ToolError> {
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(command).current_dir(&self.settings.workdir);
        shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        shell.process_group(0);
        for (name, _) in std::env::vars_os() {
            let hidden = name.to_str().is_none_or(looks_secret)
                || self.settings.hidden_env.iter().any(|hidden| name == hidden.as_str());
            if hidden {
                shell.env_remove(&name);
            }
        }
        let mut child =
            shell.spawn().map_err(|error| ToolError(format!("the command cannot be started: {error}")))?;
        let group = Group(child.id().and_then(|id| Pid::from_raw(id.try_into().ok()?)));
        let limit = self.settings.output_limit;
        let mut stdout = Captured::new(limit);
        let mut stderr = Captured::new(limit);
        let (out, err) = (child.stdout.take(), child.stderr.take());
        let finished = {
            let read = async { tokio::join!(stdout.read(out), stderr.read(err)) };
            tokio::pin!(read);
            let mut outputs_ended = false;
            let ended = async {
                // the shell may close its outputs and go on, or end while a background program holds them open
                let status = tokio::select! {
                    status = child.wait() => status,
                    _ = &mut read => {
                        outputs_ended = true;
                        child.wait().await
                    }
                };
                drop(group);
                status
            };
            let status = tokio::time::timeout(self.settings.timeout, ended).await;
            if !outputs_ended {
                // the group is dead, so the pipes end; a program that left the group may hold them for ever
                let _ = tokio::time::timeout(LAST_OUTPUT, &mut read).await;
            }
            status
        };
        match finished {
            Ok(Ok(status)) => Ok(result(status, stdout, stderr)),
            Ok(Err(error)) => Err(ToolError(format!("the command was lost: {error}"))),
            Err(_) => Err(self.too_slow(stdout, stderr)),
        }
    }

    fn too_slow(&self, stdout: Captured, stderr: Captured) -> ToolError {
        let mut text = format!(
            "stopped: the command did not end within {} s, and everything it had started was killed",
            self.settings.timeout.as_secs_f32()
        );
        for (name, captured) in [("stdout", stdout), ("stderr", stderr)] {
            let (written, _) = captured.text();
            if !written.is_empty() {
                text.push_str(&format!("\n{name} until then:\n{written}"));
            }
        }
        ToolError(text)
    }
}

impl Tool for Exec {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "exec".into(),
            description: format!(
                "Runs a shell command (sh -c) in the working directory and returns exit_code, stdout and stderr. \
                 There is no input to read from. It is stopped after {} seconds; programs it leaves in the \
                 background are stopped when it ends.",
                self.settings.timeout.as_secs_f32()
            ),
            parameters: json!({
                "type": "object",
                "properties": {
                    "command": { "type": "string", "description": "The command line." },
                },
                "required": ["command"],
                "additionalProperties": false,
            }),
        }
    }

    fn call(&self, args: Map<String, Value>) -> BoxFuture<'_, Result<Value, ToolError>> {
        Box::pin(async move {
            let Arguments { command } = arguments::read(args)?;
            if command.contains('\0') {
                return Err(ToolError("the command has a NUL character".into()));
            }
            self.run(&command).await
        })
    }
}

/// Kills the process group when it is dropped: at the end, at the time limit, or with the call.
struct Group(Option<Pid>);

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            // gone already is fine
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

/// One output of a command: its beginning, and how much there was.
struct Captured {
    bytes: Vec<u8>,
    limit: usize,
    total: u64,
}

impl Captured {
    fn new(limit: usize) -> Captured {
        Captured { bytes: Vec::new(), limit, total: 0 }
    }

    /// Reads to the end. What is over the limit is read and forgotten: a full pipe would stop the command.
    async fn read(&mut self, from: Option<impl AsyncRead + Unpin>) {
        let Some(mut from) = from else { return };
        let mut buffer = vec![0; 16 * 1024];
        while let Ok(n) = from.read(&mut buffer).await
            && n > 0
        {
            let room = self.limit.saturating_sub(self.bytes.len());
            self.bytes.extend_from_slice(buffer.get(..n.min(room)).unwrap_or_default());
            self.total = self.total.saturating_add(n.try_into().unwrap_or(u64::MAX));
        }
    }

    /// The text, and a note if it is not all.
    fn text(self) -> (String, Option<String>) {
        let kept = self.bytes.len();
        let mut bytes = self.bytes;
        let cut = u64::try_from(kept).is_ok_and(|kept| kept < self.total);
        if cut
            && let Err(error) = std::str::from_utf8(&bytes)
            && error.error_len().is_none()
        {
            // the limit fell into a character
            bytes.truncate(error.valid_up_to());
        }
        let text = String::from_utf8_lossy(&bytes).into_owned();
        (text, cut.then(|| format!("cut: the first {kept} of {} bytes", self.total)))
    }
}

fn result(status: ExitStatus, stdout: Captured, stderr: Captured) -> Value {
    let mut result = Map::new();
    match (status.code(), status.signal()) {
        (Some(code), _) => result.insert("exit_code".into(), code.into()),
        (None, signal) => result.insert("signal".into(), signal.into()),
    };
    for (name, captured) in [("stdout", stdout), ("stderr", stderr)] {
        let (text, note) = captured.text();
        if !text.is_empty() || name == "stdout" {
            result.insert(name.into(), text.into());
        }
        if let Some(note) = note {
            result.insert(format!("{name}_note"), note.into());
        }
    }
    Value::Object(result)
}

/// Whether a variable's name says that its value is nobody else's business.
fn looks_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    name.ends_with("_API_KEY")
        || name.ends_with("_TOKEN")
        || name.contains("SECRET")
        || name.contains("PASSWORD")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    async fn run(settings: ExecSettings, command: &str) -> Result<Value, ToolError> {
        let Value::Object(args) = json!({ "command": command }) else { unreachable!() };
        Exec::new(settings).call(args).await
    }

    fn here() -> ExecSettings {
        ExecSettings::new(std::env::temp_dir())
    }

    #[track_caller]
    fn check(result: Result<Value, ToolError>, expected: Value) {
        assert_eq!(result.unwrap(), expected);
    }

    #[tokio::test]
    async fn the_result_has_code_and_outputs() {
        check(run(here(), "echo hi").await, json!({"exit_code": 0, "stdout": "hi\n"}));
        check(
            run(here(), "echo no >&2; exit 3").await,
            json!({"exit_code": 3, "stdout": "", "stderr": "no\n"}),
        );
        check(run(here(), "kill -9 $$").await, json!({"signal": 9, "stdout": ""}));
        check(run(here(), "cat").await, json!({"exit_code": 0, "stdout": ""}));
        check(run(here(), r"printf 'a\377b'").await, json!({"exit_code": 0, "stdout": "a\u{fffd}b"}));
    }

    #[tokio::test]
    async fn it_runs_in_the_working_directory() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().canonicalize().unwrap();
        check(
            run(ExecSettings::new(&path), "pwd -P").await,
            json!({"exit_code": 0, "stdout": format!("{}\n", path.display())}),
        );
        let error = run(ExecSettings::new("/no/such/folder"), "pwd").await.unwrap_err();
        assert!(error.0.contains("cannot be started"), "{error}");
    }

    #[tokio::test]
    async fn long_outputs_are_cut_between_characters() {
        let settings = ExecSettings { output_limit: 4, ..here() };
        check(
            run(settings, "printf 'abcéé'; yes | head -c 300000 >&2").await,
            json!({
                "exit_code": 0,
                "stdout": "abc", "stdout_note": "cut: the first 4 of 7 bytes",
                "stderr": "y\ny\n", "stderr_note": "cut: the first 4 of 300000 bytes",
            }),
        );
    }

    #[tokio::test]
    async fn a_slow_command_is_stopped_with_its_children() {
        let dir = tempfile::tempdir().unwrap();
        let settings = ExecSettings { timeout: Duration::from_millis(300), ..ExecSettings::new(dir.path()) };
        let began = Instant::now();
        let error = run(settings, "echo early; (sleep 1; touch late) & sleep 600").await.unwrap_err();
        assert!(began.elapsed() < Duration::from_secs(5));
        assert!(error.0.contains("did not end within 0.3 s"), "{error}");
        assert!(error.0.contains("early"), "{error}");
        tokio::time::sleep(Duration::from_millis(1200)).await;
        assert!(!dir.path().join("late").exists());
    }

    #[tokio::test]
    async fn background_programs_end_with_the_command() {
        let began = Instant::now();
        check(run(here(), "sleep 600 & echo done").await, json!({"exit_code": 0, "stdout": "done\n"}));
        assert!(began.elapsed() < Duration::from_secs(5));
    }

    #[tokio::test]
    async fn a_dropped_call_kills_the_group() {
        let dir = tempfile::tempdir().unwrap();
        let settings = ExecSettings::new(dir.path());
        let call = run(settings, "touch begun; (sleep 1; touch late) & wait");
        let _ = tokio::time::timeout(Duration::from_millis(400), call).await.unwrap_err();
        tokio::time::sleep(Duration::from_millis(1000)).await;
        assert!(dir.path().join("begun").exists());
        assert!(!dir.path().join("late").exists());
    }

    #[test]
    fn secret_names_are_known() {
        for name in ["OPENAI_API_KEY", "GITHUB_TOKEN", "aws_secret_access_key", "PGPASSWORD", "x_api_key"] {
            assert!(looks_secret(name), "{name}");
        }
        for name in ["PATH", "HOME", "KEYMAP", "TOKENIZERS_PARALLELISM"] {
            assert!(!looks_secret(name), "{name}");
        }
    }

    #[tokio::test]
    async fn hidden_variables_are_not_seen() {
        let settings = ExecSettings { hidden_env: vec!["PATH".into()], ..here() };
        let result = run(settings, "/usr/bin/env").await.unwrap();
        let stdout = result["stdout"].as_str().unwrap();
        assert!(!stdout.lines().any(|line| line.starts_with("PATH=") && line.contains("cargo")), "{stdout}");
    }

    #[tokio::test]
    async fn wrong_arguments_are_told() {
        let error = Exec::new(here()).call(Map::new()).await.unwrap_err();
        assert_eq!(error.0, "the arguments do not fit: missing field `command`");
    }
}
