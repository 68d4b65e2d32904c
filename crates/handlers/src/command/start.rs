//! What a command handler starts, with which environment and where.

use crate::said::cut;
use hookgate_core::handler::{CommandStart, Fault};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use tokio::process::{Child, Command};

/// The search path of commands where the door has none.
const PLAIN_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// The variable with the mark of one call.
const MARK: &str = "HOOKGATE_CALL";
/// Members of events; in double braces they look as if they were filled in.
const MEMBERS: [&str; 13] = [
    "event",
    "eventId",
    "toolName",
    "toolInput",
    "toolOutput",
    "rawInput",
    "prompt",
    "response",
    "subagent",
    "sessionId",
    "tenantId",
    "agentId",
    "depth",
];
/// How often a program that is just being written is tried again.
const BUSY_TRIES: u32 = 10;

/// A command, ready to be started.
#[derive(Debug)]
pub(super) struct Start {
    /// What is started, for messages.
    pub(super) shown: String,
    name: String,
    args: Vec<String>,
    env: Vec<String>,
    folder: PathBuf,
    cwd: PathBuf,
    path: OsString,
}

impl Start {
    /// Reads a definition. `folder` is where the hook file lies.
    pub(super) fn new(
        start: &CommandStart,
        env: &[String],
        cwd: Option<&str>,
        folder: &Path,
    ) -> Result<Start, String> {
        let (field, words) = match start {
            CommandStart::Argv(words) => ("argv", words.clone()),
            CommandStart::Shell(line) => ("shell", vec!["/bin/sh".into(), "-c".into(), line.clone()]),
        };
        for word in &words {
            check_word(field, word)?;
        }
        if let Some(name) =
            env.iter().find(|name| name.is_empty() || name.contains(['=', '\0']) || *name == MARK)
        {
            return Err(format!("env: `{name}` is no variable that can be passed on"));
        }
        let mut words = words.into_iter();
        let name =
            words.next().filter(|name| !name.is_empty()).ok_or_else(|| format!("{field}: no program"))?;
        let folder = std::path::absolute(if folder.as_os_str().is_empty() { Path::new(".") } else { folder })
            .map_err(|error| format!("the hook's folder has no place: {error}"))?;
        let cwd = cwd.map_or_else(|| folder.clone(), |cwd| folder.join(cwd));
        let path = search_path(std::env::var_os("PATH"));
        let shown = match start {
            CommandStart::Argv(_) => name.clone(),
            CommandStart::Shell(line) => cut(line.trim(), 80).to_owned(),
        };
        Ok(Start { shown, name, args: words.collect(), env: env.to_vec(), folder, cwd, path })
    }

    /// Starts it as the leader of its own process group, with three pipes. `mark` is a value that no other call has;
    /// the pair as it stands in the environment comes back.
    pub(super) async fn spawn(&self, mark: &str) -> Result<(Child, String), Fault> {
        let program = self.program()?;
        let mut command = Command::new(&program);
        command.args(&self.args).current_dir(&self.cwd).env_clear().env("PATH", &self.path).env(MARK, mark);
        for name in &self.env {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.process_group(0).kill_on_drop(true);
        let mut tries = 0;
        loop {
            match command.spawn() {
                Ok(child) => return Ok((child, format!("{MARK}={mark}"))),
                Err(error)
                    if error.kind() == std::io::ErrorKind::ExecutableFileBusy && tries < BUSY_TRIES =>
                {
                    tries += 1;
                    tokio::time::sleep(std::time::Duration::from_millis(5)).await;
                }
                Err(error) => return Err(self.explain(&program, &error)),
            }
        }
    }

    /// The program's file: with a slash in its name from the hook's folder, else from the search path.
    fn program(&self) -> Result<PathBuf, Fault> {
        if self.name.contains('/') {
            return Ok(self.folder.join(&self.name));
        }
        let runs = |file: &PathBuf| {
            file.metadata().is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
        };
        let places = std::env::split_paths(&self.path).map(|place| place.join(&self.name));
        places.into_iter().find(runs).ok_or_else(|| {
            let path = self.path.to_string_lossy();
            let detail = format!("the program `{}` is nowhere on the PATH ({path})", self.name);
            Fault::failed("its program does not exist", detail)
        })
    }

    fn explain(&self, program: &Path, error: &std::io::Error) -> Fault {
        let text = error.to_string();
        let text = text.split(" (os error").next().unwrap_or_default().to_lowercase();
        let shown = program.display();
        match error.kind() {
            std::io::ErrorKind::NotFound if !self.cwd.is_dir() => Fault::failed(
                "its working directory does not exist",
                format!("the working directory `{}` does not exist", self.cwd.display()),
            ),
            std::io::ErrorKind::NotFound if program.exists() => Fault::failed(
                "its program's interpreter does not exist",
                format!("`{shown}` cannot be started: the interpreter in its first line does not exist"),
            ),
            std::io::ErrorKind::NotFound => {
                Fault::failed("its program does not exist", format!("`{shown}` cannot be started: {text}"))
            }
            std::io::ErrorKind::PermissionDenied if program.is_file() => Fault::failed(
                "its program may not be run",
                format!("`{shown}` cannot be started: {text}; is it executable (chmod +x)?"),
            ),
            _ => {
                let (why, detail) = (scarce(error), format!("`{shown}` cannot be started: {text}"));
                // what the system ran out of, it may have again
                if why == NOT_STARTED { Fault::failed(why, detail) } else { Fault::passing(why, detail) }
            }
        }
    }
}

const NOT_STARTED: &str = "it could not be started";

/// What the system ran out of, where that is why nothing can be started.
fn scarce(error: &std::io::Error) -> &'static str {
    match Errno::from_io_error(error) {
        Some(Errno::MFILE | Errno::NFILE) => "it could not be started: there are too many open files",
        Some(Errno::AGAIN) => "it could not be started: there are too many processes",
        Some(Errno::NOMEM) => "it could not be started: there is no memory left",
        _ => NOT_STARTED,
    }
}

fn check_word(field: &str, word: &str) -> Result<(), String> {
    if word.contains('\0') {
        return Err(format!("{field}: a NUL character cannot be passed to a program"));
    }
    let mut rest = word;
    while let Some((_, after)) = rest.split_once("{{") {
        rest = after;
        let name: String =
            after.trim_start().chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
        if MEMBERS.contains(&name.as_str()) {
            return Err(format!(
                "{field}: `{{{{{name}…}}}}` is a placeholder, and nothing of an event is put into a command \
                 line; the program reads the event from its standard input"
            ));
        }
    }
    Ok(())
}

/// The absolute places of the door's own PATH; a plain one where it has none.
fn search_path(own: Option<OsString>) -> OsString {
    let own = own.unwrap_or_default();
    let places = std::env::split_paths(&own).filter(|place| place.is_absolute());
    let path = std::env::join_paths(places).unwrap_or_default();
    if path.is_empty() { OsStr::new(PLAIN_PATH).to_owned() } else { path }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_refused_and_other_braces_are_not() {
        let shell = |line: &str| Start::new(&CommandStart::Shell(line.into()), &[], None, Path::new("x"));
        assert!(shell("check \"{{toolInput.path}}\"").unwrap_err().contains("placeholder"));
        assert!(shell("check {{ prompt }}").unwrap_err().contains("placeholder"));
        shell("docker ps --format '{{.Names}}' | grep ${X:-{{}}}").unwrap();
        assert!(shell("a\0b").unwrap_err().contains("NUL"));
    }

    #[test]
    fn relative_places_are_no_search_path() {
        let path = |text: &str| search_path(Some(text.into()));
        assert_eq!(path("/a:.:b:/c"), "/a:/c");
        assert_eq!(path(""), PLAIN_PATH);
        assert_eq!(search_path(None), PLAIN_PATH);
    }
}
