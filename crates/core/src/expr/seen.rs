//! The values that a condition looked at, for people who ask why it said no.

use super::{Condition, ROOTS};
use crate::explain::shown;
use crate::facts::Facts;
use serde_json::Value;

impl Condition {
    /// The members that the condition names with their values in this event, such as `toolInput.command = "ls"`.
    pub fn seen(&self, facts: &Facts) -> String {
        let mut parts: Vec<String> = Vec::new();
        for path in paths(&self.source) {
            let part = told(&path, facts);
            if !parts.contains(&part) {
                parts.push(part);
            }
        }
        if parts.is_empty() { "it names no member of the event".into() } else { parts.join(", ") }
    }
}

/// The names in a condition's text with the members behind them: `toolInput.command`. What stands in quotes is none.
fn paths(source: &str) -> Vec<Vec<&str>> {
    let mut found = Vec::new();
    let mut rest = source;
    let mut after_dot = false;
    while let Some(first) = rest.chars().next() {
        if matches!(first, '"' | '\'') {
            rest = behind_text(rest, first);
        } else if first.is_ascii_alphabetic() || first == '_' {
            let (path, behind) = path(rest);
            if !after_dot && path.first().is_some_and(|name| ROOTS.iter().any(|(root, _)| root == name)) {
                found.push(path);
            }
            rest = behind;
        } else {
            rest = rest.get(first.len_utf8()..).unwrap_or_default();
        }
        after_dot = first == '.';
    }
    found
}

fn behind_text(source: &str, quote: char) -> &str {
    let mut escaped = false;
    for (at, c) in source.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return source.get(at.saturating_add(1)..).unwrap_or_default(),
            _ => {}
        }
    }
    ""
}

/// The dotted name at the beginning of a text, and what follows. A call at its end, such as `.contains(`, is no member.
fn path(source: &str) -> (Vec<&str>, &str) {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let end = source.find(|c| !is_name(c) && c != '.').unwrap_or(source.len());
    let (dotted, behind) = source.split_at(end);
    let mut names: Vec<&str> = dotted.split('.').filter(|name| !name.is_empty()).collect();
    if behind.starts_with('(') && names.len() > 1 {
        names.pop();
    }
    (names, behind)
}

fn told(path: &[&str], facts: &Facts) -> String {
    let Some((root, members)) = path.split_first() else { return String::new() };
    let member = ROOTS.iter().find(|(name, _)| name == root).map_or(*root, |(_, member)| *member);
    let mut value = facts.get(member);
    let mut name = (*root).to_owned();
    for member in members {
        if !value.is_some_and(Value::is_object) {
            break;
        }
        value = value.and_then(|value| value.get(member));
        name.push('.');
        name.push_str(member);
    }
    match value {
        Some(value) => format!("{name} = {}", shown(value)),
        None => format!("{name} is not there"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::{GateEvent, Head};
    use serde_json::json;

    #[test]
    fn members_are_shown_with_their_values() {
        let input = json!({"command": "ls -l", "n": {"deep": [1, 2]}});
        let event = GateEvent::PreToolUse { tool_name: "exec".into(), tool_input: input };
        let facts = Facts::of_gate(&Head::default(), event);
        let check = |source: &str, want: &str| {
            assert_eq!(Condition::parse(source).unwrap().seen(&facts), want, "{source}");
        };
        check("toolInput.command.contains('git push')", r#"toolInput.command = "ls -l""#);
        check(
            "has(toolInput.path) && tool_name == 'toolName'",
            r#"toolInput.path is not there, tool_name = "exec""#,
        );
        check("toolInput.n.deep.size() > 3 || depth == 2", "toolInput.n.deep = [1,2], depth = 0");
        check(r#"toolName == "a\"event" || toolName == 'b'"#, r#"toolName = "exec""#);
        check("tenantId == 'acme'", "tenantId is not there");
    }

    #[test]
    fn long_values_are_cut() {
        let event = GateEvent::UserPromptSubmit { raw_input: "中".repeat(500) };
        let facts = Facts::of_gate(&Head::default(), event);
        let seen = Condition::parse("prompt.contains('x')").unwrap().seen(&facts);
        assert!(seen.ends_with("中…") && seen.chars().count() < 140, "{seen}");
    }
}
