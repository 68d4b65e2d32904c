//! The names of tools, as far as agents and `hookgate chat` are known to use them.

use hookgate_agents::table;
use hookgate_core::hook::{Hook, Listens};

/// The names that stand for a kind of tool in every agent, with the members that each such call has: unknown ones are
/// null, never missing.
const CANONICAL: [(&str, &[&str]); 9] = [
    ("exec", &["command"]),
    ("write_file", &["path", "content"]),
    ("edit_file", &["path"]),
    ("read_file", &["path"]),
    ("search", &["query"]),
    ("fetch_page", &["url"]),
    ("web_search", &["query"]),
    ("subagent", &["prompt"]),
    ("mcp", &[]),
];
/// Names of agents that are ours too, for another tool.
const OWN: [&str; 1] = ["task"];

/// A name that some agents have for a tool.
pub(super) struct Native {
    /// Our names for it; several where agents differ.
    pub(super) canonical: Vec<&'static str>,
    /// The agents' titles.
    pub(super) agents: Vec<&'static str>,
}

/// Who calls a tool like this; none for our own names and for those that no agent is known to have.
pub(super) fn native(name: &str) -> Option<Native> {
    if members_of(name).is_some() || OWN.contains(&name) {
        return None;
    }
    let mut native = Native { canonical: Vec::new(), agents: Vec::new() };
    for agent in table::ALL {
        for (_, tool) in agent.tools().iter().filter(|(own, _)| *own == name) {
            if !native.canonical.contains(&tool.as_str()) {
                native.canonical.push(tool.as_str());
            }
            if !native.agents.contains(&agent.title()) {
                native.agents.push(agent.title());
            }
        }
    }
    (!native.agents.is_empty()).then_some(native)
}

/// The members that calls of a tool always have; none for a name that is not ours.
pub(super) fn members_of(name: &str) -> Option<&'static [&'static str]> {
    CANONICAL.iter().find(|(canonical, _)| *canonical == name).map(|(_, members)| *members)
}

/// The tools that a hook names, where it does so by plain names, with the field that says so.
pub(super) fn named(hook: &Hook) -> Option<(&'static str, Vec<String>)> {
    match &hook.listens {
        Listens::Tool { names, .. } if !names.is_empty() => Some(("tools", names.clone())),
        Listens::Point { filter, .. } => {
            let source = filter.matcher.as_ref()?.source();
            let inner = source.strip_prefix('^').unwrap_or(source);
            let inner = inner.strip_suffix('$').unwrap_or(inner);
            let group = inner.strip_prefix("(?:").or_else(|| inner.strip_prefix('('));
            let inner = group.and_then(|inner| inner.strip_suffix(')')).unwrap_or(inner);
            let names: Vec<String> = inner.split('|').map(str::to_owned).collect();
            let plain = |name: &String| {
                !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
            };
            names.iter().all(plain).then_some(("matcher", names))
        }
        _ => None,
    }
}

/// Words in backticks, a comma between them.
pub(super) fn quoted<T: AsRef<str>>(words: &[T]) -> String {
    words.iter().map(|word| format!("`{}`", word.as_ref())).collect::<Vec<_>>().join(", ")
}
