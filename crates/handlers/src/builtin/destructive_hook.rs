//! `builtin/destructive`: judges the shell line of a tool call.
//!
//! Reads `command` (else `cmd`, `script`): a text, or a list of words. Arguments that are no object are judged as they
//! stand. A call without a line is let through: there is nothing to run. One whose `command` is `null` is blocked: there
//! is a line, and nobody knows it.

use super::destructive::{Destructive, Finding, Shell};
use super::settings::Settings;
use super::{Asked, Made, SHELL_TOOLS, WINDOWS_TOOLS};
use hookgate_core::future::BoxFuture;
use hookgate_core::handler::{Answer, Call, Fault, Handler};
use serde_json::Value;

pub(super) fn make(settings: &Settings<'_>) -> Result<Made, String> {
    let shell = match settings.text("shell")? {
        None | Some("bash") => Shell::Bash,
        Some("windows") => Shell::Windows,
        Some(other) => return Err(format!("setting `shell`: expected bash or windows, found `{other}`")),
    };
    let standard: Vec<&str> = SHELL_TOOLS.iter().chain(WINDOWS_TOOLS).copied().collect();
    Ok(Made::Asked(Asked::new(Judge { shell }).for_tools(&standard, settings.texts("tools")?)))
}

#[derive(Debug)]
struct Judge {
    /// For tools whose name does not tell.
    shell: Shell,
}

impl Handler for Judge {
    fn ask<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Result<Answer, Fault>> {
        Box::pin(async move { Ok(self.answer(call)) })
    }
}

impl Judge {
    fn answer(&self, call: Call<'_>) -> Answer {
        let native = call.facts.get("nativeToolName").and_then(Value::as_str).unwrap_or_default();
        let is_windows = [call.facts.tool_name(), native].iter().any(|name| WINDOWS_TOOLS.contains(name));
        let shell = if is_windows { Shell::Windows } else { self.shell };
        // an adapter says `null` where it found no line in a call that runs one
        if call.facts.get("toolInput").and_then(|input| input.get("command")).is_some_and(Value::is_null) {
            let reason = "what the tool runs cannot be told from its input".to_owned();
            return Answer { reason: Some(reason), ..Answer::with_decision("block") };
        }
        let finding = match call.facts.get("toolInput").and_then(line) {
            Some(Line::Text(text)) => Destructive::judge(text, shell),
            Some(Line::Words(words)) => Destructive::judge_words(words, shell),
            None => Finding::Harmless,
        };
        match finding {
            Finding::Harmless => Answer::with_decision("allow"),
            Finding::Destructive(danger) => Answer {
                reason: Some(format!("destructive command ({}): {}", danger.kind, danger.what)),
                ..Answer::with_decision("block")
            },
        }
    }
}

/// What a tool call runs.
pub(super) enum Line<'a> {
    Text(&'a str),
    Words(Vec<String>),
}

/// Finds the line in a tool's input.
pub(super) fn line(input: &Value) -> Option<Line<'_>> {
    if let Some(text) = input.as_str() {
        return Some(Line::Text(text));
    }
    let value = ["command", "cmd", "script"].iter().find_map(|name| input.get(name))?;
    match value {
        Value::String(text) => Some(Line::Text(text)),
        Value::Array(words) => {
            let word = |word: &Value| word.as_str().map_or_else(|| word.to_string(), str::to_owned);
            Some(Line::Words(words.iter().map(word).collect()))
        }
        _ => None,
    }
}
