//! A tool call of an agent in our words, for whoever has the call and not a payload: a transcript of a session that is
//! over.

use crate::agent::Agent;
use crate::input;
use crate::read::Alias;
use crate::tools::Tool;
use serde_json::{Value, json};

/// A call as hooks see it.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// Our name of the tool, or the agent's where we have none.
    pub tool_name: String,
    /// Other names that matchers may use, the agent's own first.
    pub tool_names: Vec<String>,
    /// The input: the agent's members, and beside them ours.
    pub tool_input: Value,
    pub(crate) kind: Option<Tool>,
    pub(crate) aliases: Vec<Alias>,
}

/// Server and tool of a Model Context Protocol call, as far as they are known.
pub(crate) type Mcp<'a> = (Option<&'a str>, Option<&'a str>);

impl Call {
    /// A call of an agent that nobody knows: everything stays as it is called there.
    pub fn plain(tool_name: impl Into<String>, tool_input: Value) -> Call {
        Call {
            tool_name: tool_name.into(),
            tool_names: Vec::new(),
            tool_input,
            kind: None,
            aliases: Vec::new(),
        }
    }

    /// What is known of the sub-agent that the call starts; none if it starts none.
    pub fn subagent(&self) -> Option<Value> {
        (self.kind == Some(Tool::Subagent)).then(|| {
            let member = |name: &str| self.tool_input.get(name).cloned().unwrap_or_default();
            json!({"type": member("agentType"), "task": member("prompt"), "input": self.tool_input})
        })
    }
}

impl dyn Agent {
    /// A call by the agent's name of the tool and its input. Paths become absolute where `cwd` is known.
    pub fn call(&self, tool: &str, input: &Value, cwd: Option<&str>) -> Call {
        call(self, tool, input, cwd, None, None)
    }
}

/// The same with what a payload says beside the name: our kind of the tool, and the server that has it.
pub(crate) fn call(
    agent: &dyn Agent,
    native: &str,
    input: &Value,
    cwd: Option<&str>,
    kind: Option<Tool>,
    said: Option<Mcp<'_>>,
) -> Call {
    let known = agent.tools().iter().find(|(name, _)| *name == native).map(|(_, tool)| *tool);
    let by_name = agent.mcp(native);
    let is_mcp = said.is_some() || (known.is_none() && by_name.is_some());
    let kind = kind.or(if is_mcp { Some(Tool::Mcp) } else { known });
    let mcp =
        is_mcp.then(|| said.unwrap_or((by_name.map(|(server, _)| server), by_name.map(|(_, tool)| tool))));
    let (tool_input, aliases) = input::canonical(kind, input, cwd, mcp);
    let mut tool_names = vec![native.to_owned()];
    if let Some((Some(server), Some(tool))) = mcp {
        let spelled = format!("mcp__{server}__{tool}");
        if spelled != native {
            tool_names.push(spelled);
        }
    }
    let tool_name = kind.map_or_else(|| native.to_owned(), |kind| kind.as_str().to_owned());
    Call { tool_name, tool_names, tool_input, kind, aliases }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table;

    #[track_caller]
    fn check(agent: &str, tool: &str, input: Value, want: (&str, &[&str], Value)) {
        let call = table::find(agent).unwrap().call(tool, &input, Some("/w"));
        assert_eq!((call.tool_name.as_str(), call.tool_input), (want.0, want.2));
        assert_eq!(call.tool_names, want.1);
    }

    #[test]
    fn a_call_without_a_payload() {
        let input = json!({"command": "ls"});
        check(
            "claude-code",
            "Bash",
            input.clone(),
            ("exec", &["Bash"], json!({"command": "ls", "cwd": "/w"})),
        );
        check(
            "claude-code",
            "mcp__db__drop",
            json!({}),
            ("mcp", &["mcp__db__drop"], json!({"mcp": {"server": "db", "tool": "drop"}})),
        );
        check("codex", "nameless", input.clone(), ("nameless", &["nameless"], input));
        let call = table::find("claude-code").unwrap().call("Task", &json!({"prompt": "go"}), None);
        assert_eq!(call.subagent().unwrap()["task"], "go");
        assert!(table::find("codex").unwrap().call("shell", &Value::Null, None).subagent().is_none());
    }
}
