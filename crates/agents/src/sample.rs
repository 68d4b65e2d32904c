//! A harmless call as an agent would hand it over, to try a line with.

use crate::agent::Agent;
use crate::tools::Tool;
use hookgate_core::point::Point;
use serde_json::{Value, json};

/// The agent's event before a tool, and a payload for a shell call `echo hookgate`; none for an agent that has no such
/// event.
pub fn sample(agent: &dyn Agent) -> Option<(&'static str, Value)> {
    let command = "echo hookgate";
    let event =
        agent.events().iter().find(|event| event.point == Some(Point::PreToolUse) && event.installed)?.name;
    let tool = agent.tools().iter().find(|(_, tool)| *tool == Tool::Exec).map_or("exec", |(name, _)| name);
    let payload = match agent.name() {
        "opencode" => {
            json!({"input": {"tool": tool, "sessionID": "hookgate-doctor"}, "output": {"args": {"command": command}}})
        }
        "cline" => json!({"hookName": "tool_call", "taskId": "hookgate-doctor",
            "tool_call": {"name": tool, "input": {"commands": [command]}}}),
        "windsurf" => json!({"agent_action_name": event, "trajectory_id": "hookgate-doctor",
            "tool_info": {"command_line": command}}),
        "antigravity" => json!({"conversationId": "hookgate-doctor",
            "toolCall": {"name": tool, "args": {"CommandLine": command}}}),
        _ => {
            let fields = agent.fields();
            let mut payload = json!({});
            let mut set = |names: &[&str], value: Value| {
                if let (Some(name), Some(members)) = (names.first(), payload.as_object_mut()) {
                    members.insert((*name).to_owned(), value);
                }
            };
            set(fields.event, event.into());
            set(fields.session, "hookgate-doctor".into());
            set(fields.tool, tool.into());
            set(fields.input, json!({"command": command}));
            payload
        }
    };
    Some((event, payload))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::Told;
    use hookgate_core::facts::GateEvent;

    #[test]
    fn every_sample_is_a_shell_call() {
        for agent in crate::table::ALL {
            let (event, payload) = sample(*agent).unwrap();
            let read = agent.read(Some(event), payload).unwrap();
            let Some(Told::Gate(GateEvent::PreToolUse { tool_name, tool_input })) = read.told.first() else {
                panic!("{}: no call", agent.name());
            };
            assert_eq!(
                (tool_name.as_str(), &tool_input["command"]),
                ("exec", &json!("echo hookgate")),
                "{}",
                agent.name()
            );
        }
    }
}
