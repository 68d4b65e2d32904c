//! The line that an agent's settings call, and how ours is told from others.

use crate::args::RulesArgs;
use crate::config::ConfigFile;
use crate::failure::Failure;
use hookgate_agents::agent::Agent;
use hookgate_agents::event::Event;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The program with the rules that its calls are bound to. All paths are absolute, because agents call it from anywhere
/// and no file of an opened project may change what it reads.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    program: PathBuf,
    rules: Vec<String>,
}

impl Line {
    /// The line for these rules.
    pub(crate) fn new(args: &RulesArgs) -> Result<Line, Failure> {
        let program = crate::programs::for_agents()
            .map_err(|error| Failure::new(format!("the program cannot find itself: {error}")))?;
        let mut rules = Vec::new();
        if let Some(dir) = &args.hooks {
            rules.extend(["--hooks".to_owned(), absolute(dir, "the hooks folder")?]);
        }
        match &args.config {
            Some(file) => rules.extend(["--config".to_owned(), absolute(file, "the configuration file")?]),
            None if args.hooks.is_none() => {
                let file = crate::commands::configuration(None)?;
                let path = named(&file)?;
                rules.extend(["--config".to_owned(), absolute(&path, "the configuration file")?]);
            }
            None => {}
        }
        if let Some(dir) = &args.data_dir {
            let dir = std::path::absolute(dir)
                .map_err(|error| Failure::new(format!("the data directory {}: {error}", dir.display())))?;
            rules.extend(["--data-dir".to_owned(), text(&dir)?]);
        }
        Ok(Line { program, rules })
    }

    /// The arguments up to the event.
    pub(crate) fn first(&self, agent: &dyn Agent) -> Vec<String> {
        let mut words = vec!["hook".to_owned(), agent.name().to_owned()];
        words.extend(self.rules.iter().cloned());
        words
    }

    /// The program.
    pub(crate) fn program(&self) -> &Path {
        &self.program
    }

    /// The whole line for a shell.
    pub(crate) fn shell(&self, agent: &dyn Agent, event: &Event, limit: Duration) -> Result<String, Failure> {
        let mut words =
            vec![text(&self.program)?, "hook".to_owned(), agent.name().to_owned(), event.name.to_owned()];
        words.extend(self.rules.iter().cloned());
        words.extend(["--timeout-ms".to_owned(), limit.as_millis().to_string()]);
        Ok(words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" "))
    }
}

/// The configuration file that was found.
fn named(file: &ConfigFile) -> Result<PathBuf, Failure> {
    file.path.clone().ok_or_else(|| {
        Failure::new(
            "which hooks? give --hooks DIR or --config FILE, or run this where a hookgate.toml is found",
        )
    })
}

fn absolute(path: &Path, what: &str) -> Result<String, Failure> {
    let found = path.canonicalize();
    text(
        &found
            .map_err(|error| Failure::new(format!("{what} {} cannot be found: {error}", path.display())))?,
    )
}

fn text(path: &Path) -> Result<String, Failure> {
    let text = path.to_str().map(str::to_owned);
    text.ok_or_else(|| Failure::new(format!("the path {} is no text that settings can hold", path.display())))
}

/// A word for a POSIX shell.
pub(super) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_/.:=@%+,-".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// Whether a text is one of our lines for this agent, whatever the program's place.
pub(crate) fn is_ours(text: &str, agent: &str) -> bool {
    let calls = format!(" hook {agent} ");
    text.split_once(calls.as_str()).is_some_and(|(program, _)| {
        let name = program.trim_end_matches(['\'', '"']).rsplit(['/', '\\']).next().unwrap_or_default();
        name.starts_with("hookgate")
    })
}

/// Whether a value holds one of our lines.
pub(crate) fn holds_ours(value: &Value, agent: &str) -> bool {
    match value {
        Value::String(text) => is_ours(text, agent),
        Value::Array(items) => items.iter().any(|item| holds_ours(item, agent)),
        Value::Object(members) => members.values().any(|item| holds_ours(item, agent)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_survive_a_shell() {
        for (word, want) in [
            ("/usr/bin/x", "/usr/bin/x"),
            ("a b", "'a b'"),
            ("it's", r"'it'\''s'"),
            ("", "''"),
            ("$x", "'$x'"),
        ] {
            assert_eq!(quoted(word), want);
        }
    }

    #[test]
    fn ours_is_told_from_others() {
        for (text, ours) in [
            ("/opt/hookgate hook codex PreToolUse --hooks /h", true),
            ("'/opt/my tools/hookgate' hook codex Stop", true),
            ("/opt/hookgate-hook hook codex Stop", true),
            ("/opt/hookgate hook claude-code Stop", false),
            ("/opt/guard hook codex Stop", false),
            ("echo hookgate", false),
        ] {
            assert_eq!(is_ours(text, "codex"), ours, "{text}");
        }
    }
}
