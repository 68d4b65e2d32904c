//! What is allowed and probably not meant.

use super::shape::Handler;
use hookgate_agents::agent::Agent;
use hookgate_agents::event::Effect;
use hookgate_core::point::Point;
use serde_json::{Map, Value};

/// Looks at a handler.
pub(super) fn look(agent: &dyn Agent, handler: &Handler, says: &mut Vec<String>) {
    matcher(agent, handler, says);
    limit(handler, says);
    let gate = handler.event.can(Effect::Block);
    if gate {
        cannot_block(&handler.place, &handler.members, says);
    }
    let Some(command) = command(&handler.members) else { return };
    if gate {
        opens_without(&handler.place, command, says);
    }
    if pastes_input(command) {
        says.push(format!("{}: tool input inside shell text; read it from stdin", handler.entry));
    }
    if handler.event.can(Effect::KeepGoing) && runs_checks(command) {
        says.push(format!(
            "{}: can block the end of a turn for ever; the adapter caps it",
            handler.event.name
        ));
    }
    if let Some(eaten) = eaten_path(command) {
        says.push(format!(
            "{}: program not found: {eaten} (a shell takes the backslashes away)",
            handler.full
        ));
    }
    // reading a file is refused when its program fails; a shell line is not
    let opens = agent.name() == "cursor" && handler.event.name == "beforeShellExecution";
    let says_so = handler.members.contains_key("failClosed") || handler.matcher.is_some();
    if opens && !says_so {
        says.push(format!("{}: opens when its program fails, set failClosed", handler.place));
    }
}

/// The same sentence about several events is one.
pub(super) fn repeated(says: &mut Vec<String>) {
    let mut seen = Vec::new();
    says.retain(|said| {
        let new = !seen.contains(said);
        seen.push(said.clone());
        new
    });
}

/// A guard whose word is thrown away, or comes too late.
pub(super) fn cannot_block(place: &str, members: &Map<String, Value>, says: &mut Vec<String>) {
    let lost = command(members).is_some_and(|command| {
        let end = command.trim_end_matches([' ', ';']);
        ["|| true", "|| :", "; exit 0", "&& exit 0"].iter().any(|ending| end.ends_with(ending))
    });
    if members.get("async") == Some(&Value::Bool(true)) {
        let more = if lost { " and || true" } else { "" };
        says.push(format!("{place}: async{more}, so this hook cannot block"));
    } else if lost {
        says.push(format!("{place}: the exit code is lost, this hook can block only by JSON"));
    }
}

fn command(members: &Map<String, Value>) -> Option<&str> {
    ["command", "bash"].iter().find_map(|key| members.get(*key)).and_then(Value::as_str)
}

/// A guard that is open where a program is missing.
fn opens_without(place: &str, command: &str, says: &mut Vec<String>) {
    let words: Vec<&str> = command.split(|c: char| c.is_whitespace() || ";|&".contains(c)).collect();
    let checked = command.split("command -v ").nth(1).and_then(|rest| rest.split_whitespace().next());
    let piped = words.contains(&"jq") && command.contains("|| exit 0");
    if let Some(program) = checked.filter(|_| command.contains("else")).or(piped.then_some("jq")) {
        says.push(format!("{place}: the guard allows when {program} is missing"));
    }
}

/// Whether what the model wrote becomes a part of a shell line.
fn pastes_input(command: &str) -> bool {
    ["$TOOL_INPUT", "${TOOL_INPUT", "${file}", "$file", "{{"].iter().any(|mark| command.contains(mark))
}

/// Whether a line runs tests, which fail as often as it is asked.
fn runs_checks(command: &str) -> bool {
    let runs = ["npm ", "cargo ", "make ", "pytest", "go test", "yarn ", "pnpm "];
    runs.iter().any(|word| command.contains(word)) && !command.contains("stop_hook_active")
}

/// A path of Windows as a POSIX shell reads it.
fn eaten_path(command: &str) -> Option<String> {
    let word = command.split_whitespace().next()?;
    let drive = word.as_bytes().get(1) == Some(&b':') && word.starts_with(|c: char| c.is_ascii_alphabetic());
    (drive && word.contains('\\')).then(|| word.replace('\\', ""))
}

fn limit(handler: &Handler, says: &mut Vec<String>) {
    let limit = ["timeout", "timeoutSec", "timeout_ms"].iter().find_map(|key| handler.members.get(*key));
    let Some(limit) = limit.and_then(Value::as_u64) else { return };
    let place = &handler.full;
    match limit {
        0 => says.push(format!("{place}.timeout: 0")),
        _ if handler.units > 1 && limit < 100 => {
            says.push(format!("{place}.timeout: {limit} ms, seconds were likely meant"));
        }
        _ if handler.units == 1 && limit > 3600 => {
            says.push(format!("{place}.timeout: {limit} s, milliseconds were likely meant"));
        }
        _ => {}
    }
}

fn matcher(agent: &dyn Agent, handler: &Handler, says: &mut Vec<String>) {
    let Some(matcher) = handler.matcher.as_deref().filter(|matcher| !matches!(*matcher, "" | "*")) else {
        return;
    };
    let of_tools =
        matches!(handler.event.point, Some(Point::PreToolUse | Point::PostToolUse | Point::ToolError));
    // Cursor's matches the command's text there
    if !of_tools || handler.event.name.ends_with("ShellExecution") {
        return;
    }
    let place = format!("{}.matcher", handler.entry);
    let known = |name: &str| agent.tools().iter().any(|(tool, _)| *tool == name);
    if let Some((name, _)) = matcher.split_once('(')
        && known(name)
    {
        return says.push(format!("{place}: permission syntax; use if"));
    }
    if matcher.contains(", ") {
        return says.push(format!("{place}: separate names with |"));
    }
    if let Some(rest) = matcher.strip_prefix("mcp__") {
        if rest == "*" || rest.ends_with("__*") {
            let meant = matcher.replace('*', ".*");
            says.push(format!("{place}: {matcher} matches no tool, {meant} was likely meant"));
        } else if rest.chars().all(|c| c.is_alphanumeric() || c == '-' || c == '_') && !rest.contains("__") {
            says.push(format!("{place}: {matcher} names no tool, {matcher}__.* was likely meant"));
        }
        return;
    }
    for name in matcher.split('|') {
        let same = agent.tools().iter().find(|(tool, _)| tool.eq_ignore_ascii_case(name) && *tool != name);
        if let Some((tool, _)) = same.filter(|_| !known(name)) {
            says.push(format!("{place}: {name} differs from the known tool {tool} in letter case"));
        }
    }
}
