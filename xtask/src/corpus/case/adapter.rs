//! Cases of agents' adapters: the program itself, started as the hook of an agent or to wire one.

use super::super::{TIME_FACTOR, Verdict, stand_in};
use super::expect::{any_of, contains, equal};
use serde_json::{Value, json};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// The first argument of a process that is to be the program `hookgate`.
const PROGRAM_WORD: &str = "__hookgate";

/// Whether this process was started to be the program.
pub(super) fn is_program() -> bool {
    std::env::args().nth(1).is_some_and(|word| word == PROGRAM_WORD)
}

/// Is the program.
pub(super) fn program() -> ExitCode {
    use clap::Parser;
    let words = std::env::args_os().enumerate().filter(|(at, _)| *at != 1).map(|(_, word)| word);
    match hookgate_cli::Args::try_parse_from(words) {
        Ok(args) => match hookgate_cli::run(args) {
            Ok(exit) => exit.into(),
            Err(failure) => failure.report().into(),
        },
        Err(error) => {
            let _ = error.print();
            ExitCode::from(2)
        }
    }
}

/// This program under a name of the other one's kind, which is how an installation knows its own lines. A link beside
/// it, because a program that was reached by a symbolic link does not know that.
fn named_program() -> Result<PathBuf, String> {
    static LINKED: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let link = || {
        let own = super::super::script::worker_program()?;
        let named = own.with_file_name("hookgate-case");
        // an older one may be there
        let _ = std::fs::remove_file(&named);
        std::fs::hard_link(&own, &named).map_err(|error| format!("{}: {error}", named.display()))?;
        Ok(named)
    };
    LINKED.get_or_init(link).clone()
}

/// What can be seen after a step.
struct Seen {
    exit: i64,
    stdout: String,
    stderr: String,
    took: Duration,
    /// The files of the case before the step.
    before: Vec<(String, Option<String>)>,
}

/// Plays a case.
pub(super) fn run(case: &Value) -> Verdict {
    let steps = case.get("steps").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let known = ["adapter", "install", "uninstall", "wait_ms", "fs"];
    let word = |step: &Value| step.get("do").and_then(Value::as_str).unwrap_or_default().to_owned();
    if let Some(step) = steps.iter().map(word).find(|step| !known.contains(&step.as_str())) {
        return Verdict::NotRun(format!("the step `{step}` is not built yet"));
    }
    match play(case, steps) {
        Ok(()) => Verdict::Passed,
        Err(why) => Verdict::Failed(why),
    }
}

fn play(case: &Value, steps: &[Value]) -> Result<(), String> {
    let dir = tempfile::tempdir().map_err(|error| error.to_string())?;
    let empty = Value::Null;
    let setup = case.get("setup").unwrap_or(&empty);
    let world = World::new(dir.path(), setup)?;
    for (number, step) in steps.iter().enumerate() {
        let at = |why| format!("step {}: {why}", number.saturating_add(1));
        let seen = world.step(step).map_err(at)?;
        if let Some(expect) = step.get("expect") {
            world.check(&stand_in::expand(expect, &world.name()).map_err(at)?, &seen).map_err(at)?;
        }
    }
    Ok(())
}

struct World {
    dir: PathBuf,
    program: PathBuf,
    files: Vec<String>,
    configured: bool,
}

impl World {
    fn new(dir: &Path, setup: &Value) -> Result<World, String> {
        let program = named_program()?;
        let name = dir.display().to_string();
        super::agent::lay_out(setup, dir, &name)?;
        let hooks = dir.join("hooks");
        std::fs::create_dir_all(&hooks).map_err(|error| error.to_string())?;
        let write =
            |file: PathBuf, bytes: &[u8]| std::fs::write(&file, bytes).map_err(|error| error.to_string());
        for (file, content) in setup.get("hook_files").and_then(Value::as_object).into_iter().flatten() {
            write(hooks.join(file), &stand_in::bytes(content)?)?;
        }
        for (index, hook) in setup.get("hooks").and_then(Value::as_array).into_iter().flatten().enumerate() {
            let mut hook = stand_in::expand(hook, &name)?;
            if let Some(members) = hook.as_object_mut() {
                members.insert("priority".into(), json!(1000_usize.saturating_sub(index)));
                members.remove("source");
                members.remove("mutable_fields");
            }
            write(hooks.join(format!("{index:03}.json")), hook.to_string().as_bytes())?;
        }
        let files = setup.get("files").and_then(Value::as_object).into_iter().flatten();
        Ok(World {
            dir: dir.to_owned(),
            program,
            files: files.map(|(name, _)| name.clone()).collect(),
            configured: !setup.get("no_hooks").is_some_and(|none| *none == true),
        })
    }

    fn name(&self) -> String {
        self.dir.display().to_string()
    }

    fn step(&self, step: &Value) -> Result<Seen, String> {
        let text = |key: &str| step.get(key).and_then(Value::as_str);
        let agent = text("agent").unwrap_or_default();
        let hooks = self.dir.join("hooks").display().to_string();
        let mut words: Vec<String> = Vec::new();
        let mut input = Vec::new();
        match text("do").unwrap_or_default() {
            "adapter" => {
                words.extend(["hook".to_owned(), agent.to_owned()]);
                words.extend(text("event_hint").map(str::to_owned));
                if self.configured {
                    words.extend(["--hooks".to_owned(), hooks]);
                }
                if let Some(limit) = step.get("host_timeout_ms") {
                    words.extend(["--timeout-ms".to_owned(), limit.to_string()]);
                }
                input = self.stdin(step.get("stdin").unwrap_or(&Value::Null))?;
            }
            "install" => {
                words.extend(["install".to_owned(), agent.to_owned(), "--hooks".to_owned(), hooks]);
                words
                    .extend(text("file").into_iter().flat_map(|file| ["--file".to_owned(), file.to_owned()]));
            }
            "uninstall" => {
                words.extend(["uninstall".to_owned(), agent.to_owned()]);
                words
                    .extend(text("file").into_iter().flat_map(|file| ["--file".to_owned(), file.to_owned()]));
            }
            "wait_ms" => {
                let ms = step.get("ms").and_then(Value::as_u64).unwrap_or(0);
                std::thread::sleep(Duration::from_millis(ms));
            }
            "fs" => {
                let target = self.dir.join(text("path").unwrap_or_default());
                let done = match text("op") {
                    Some("write" | "replace") => std::fs::write(&target, text("text").unwrap_or_default()),
                    Some("remove") => std::fs::remove_file(&target),
                    _ => return Err("this file operation is not built yet".into()),
                };
                done.map_err(|error| format!("{}: {error}", target.display()))?;
            }
            _ => {}
        }
        let read = |file: &String| (file.clone(), std::fs::read_to_string(self.dir.join(file)).ok());
        let before = self.files.iter().map(read).collect();
        if words.is_empty() {
            return Ok(Seen {
                exit: 0,
                stdout: String::new(),
                stderr: String::new(),
                took: Duration::ZERO,
                before,
            });
        }
        let seen = self.start(&words, &input)?;
        Ok(Seen { before, ..seen })
    }

    /// The payload: an object is JSON, a text is as it is, `{"b64"}` are bytes.
    fn stdin(&self, value: &Value) -> Result<Vec<u8>, String> {
        match value {
            Value::String(text) => Ok(text.clone().into_bytes()),
            stand_in @ Value::Object(members)
                if members.contains_key("b64") || members.contains_key("repeat") =>
            {
                stand_in::bytes(stand_in)
            }
            other => Ok(stand_in::expand(other, &self.name())?.to_string().into_bytes()),
        }
    }

    fn start(&self, words: &[String], input: &[u8]) -> Result<Seen, String> {
        let started = Instant::now();
        let mut child = Command::new(&self.program)
            .arg(PROGRAM_WORD)
            .args(words)
            .current_dir(&self.dir)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.dir.join("home"))
            .env("HOOKGATE_DATA_DIR", self.dir.join("data"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| error.to_string())?;
        if let Some(mut stdin) = child.stdin.take() {
            // one that answers before it has read all does nothing wrong
            let _ = stdin.write_all(input);
        }
        let output = child.wait_with_output().map_err(|error| error.to_string())?;
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Ok(Seen {
            exit: output.status.code().map_or(-1, i64::from),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
            took: started.elapsed(),
            before: Vec::new(),
        })
    }

    fn check(&self, expect: &Value, seen: &Seen) -> Result<(), String> {
        for (key, want) in expect.as_object().into_iter().flatten() {
            self.one(key, want, seen).map_err(|why| format!("`{key}`: {why}"))?;
        }
        Ok(())
    }

    fn one(&self, key: &str, want: &Value, seen: &Seen) -> Result<(), String> {
        let list = || want.as_array().map(Vec::as_slice).unwrap_or_default();
        let document =
            || serde_json::from_str::<Value>(&seen.stdout).map_err(|error| format!("stdout: {error}"));
        let members = || want.as_object().into_iter().flatten();
        match key {
            "any_of" => any_of(want, |entry| self.check(entry, seen)),
            "exit" => equal(want, json!(seen.exit)),
            "exit_not" if *want == json!(seen.exit) => Err(format!("the exit code is {want}")),
            "exit_not" => Ok(()),
            "exit_any" if list().contains(&json!(seen.exit)) => Ok(()),
            "exit_any" => equal(want, json!(seen.exit)),
            "stdout" => equal(want, json!(seen.stdout)),
            "stdout_contains" => contains(want, &seen.stdout),
            "stderr_contains" => contains(want, &seen.stderr),
            "stdout_not_contains" | "stderr_not_contains" => {
                let text = if key.starts_with("stdout") { &seen.stdout } else { &seen.stderr };
                let found = list().iter().find(|word| contains(word, text).is_ok());
                found.map_or(Ok(()), |word| Err(format!("{word} occurs in {text}")))
            }
            "stdout_is_one_json_document" => document().map(|_| ()),
            "stdout_json" => {
                let document = document()?;
                members().try_for_each(|(path, want)| {
                    equal(want, at(&document, path).cloned().unwrap_or_default())
                })
            }
            "stdout_json_exact_keys" => {
                let document = document()?;
                members().try_for_each(|(path, allowed)| {
                    let here = at(&document, path).and_then(Value::as_object);
                    let keys =
                        here.map(|object| object.keys().cloned().collect::<Vec<_>>()).unwrap_or_default();
                    let allowed = allowed.as_array().map(Vec::as_slice).unwrap_or_default();
                    let extra = keys.iter().find(|key| !allowed.contains(&json!(key)));
                    extra.map_or(Ok(()), |key| Err(format!("the key {key} is not allowed at `{path}`")))
                })
            }
            "max_ms" => {
                let limit = Duration::from_millis(want.as_u64().unwrap_or(0)).saturating_mul(TIME_FACTOR);
                if seen.took <= limit { Ok(()) } else { Err(format!("took {:?}", seen.took)) }
            }
            "file_unchanged" => {
                let name = want.as_str().unwrap_or_default();
                let before =
                    seen.before.iter().find(|(file, _)| file == name).and_then(|(_, text)| text.clone());
                equal(&json!(before), json!(self.text(name).ok()))
            }
            "file_contains" => contains(want, &self.all_files()),
            "file_absent" => {
                let there = list().iter().filter_map(Value::as_str).find(|name| self.dir.join(name).exists());
                there.map_or(Ok(()), |name| Err(format!("{name} is there")))
            }
            "count_in_file" => members().try_for_each(|(name, counts)| {
                let settings: Value =
                    serde_json::from_str(&self.text(name)?).map_err(|error| error.to_string())?;
                counts.as_object().into_iter().flatten().try_for_each(|(what, want)| {
                    let event =
                        what.strip_suffix("_entries_of_ours").ok_or("the runner cannot count that")?;
                    let entries = settings.pointer(&format!("/hooks/{event}")).and_then(Value::as_array);
                    let ours =
                        entries.into_iter().flatten().filter(|entry| entry.to_string().contains(" hook "));
                    equal(want, json!(ours.count()))
                })
            }),
            _ => Err("the runner does not know this key".into()),
        }
    }

    fn text(&self, name: &str) -> Result<String, String> {
        std::fs::read_to_string(self.dir.join(name)).map_err(|error| format!("{name}: {error}"))
    }

    fn all_files(&self) -> String {
        self.files.iter().filter_map(|name| self.text(name).ok()).collect::<Vec<_>>().join("\n")
    }
}

/// A member by a path with dots; the empty path is the whole.
fn at<'v>(document: &'v Value, path: &str) -> Option<&'v Value> {
    path.split('.').filter(|key| !key.is_empty()).try_fold(document, |value, key| {
        match key.parse::<usize>() {
            Ok(index) if value.is_array() => value.get(index),
            _ => value.get(key),
        }
    })
}
