//! What payloads call things, and the way from the parts of a payload to what the engine is asked.

use crate::agent::Agent;
use crate::call::{self, Call};
use crate::event::{Effect, Event};
use crate::read::{Read, Told, Unread};
use crate::tools::Tool;
use hookgate_core::event::Role;
use hookgate_core::facts::{GateEvent, LifeEvent, ShapeEvent};
use hookgate_core::point::Point;
use serde_json::{Map, Value};

/// The names of a payload's members; where there are several, the first that is there counts.
#[derive(Debug)]
pub struct Fields {
    pub(crate) event: &'static [&'static str],
    pub(crate) session: &'static [&'static str],
    pub(crate) cwd: &'static [&'static str],
    pub(crate) tool: &'static [&'static str],
    pub(crate) input: &'static [&'static str],
    pub(crate) output: &'static [&'static str],
    pub(crate) error: &'static [&'static str],
    pub(crate) call: &'static [&'static str],
    pub(crate) prompt: &'static [&'static str],
    pub(crate) answer: &'static [&'static str],
    pub(crate) turn: &'static [&'static str],
    /// A sub-agent's id inside the session that started it.
    pub(crate) inside: &'static [&'static str],
    /// The session that started the sub-agent, where it has a session of its own.
    pub(crate) parent: &'static [&'static str],
    /// Whether, or how often, a hook made this turn go on.
    pub(crate) went_on: &'static [&'static str],
}

impl Fields {
    /// The names that Claude Code uses; others follow it in most.
    pub(crate) const CLAUDE: Fields = Fields {
        event: &["hook_event_name"],
        session: &["session_id"],
        cwd: &["cwd"],
        tool: &["tool_name"],
        input: &["tool_input"],
        output: &["tool_response"],
        error: &["error"],
        call: &["tool_use_id"],
        prompt: &["prompt"],
        answer: &["last_assistant_message"],
        turn: &["prompt_id", "turn_id"],
        inside: &["agent_id"],
        parent: &[],
        went_on: &["stop_hook_active"],
    };

    /// The event that a payload names.
    pub(crate) fn event_of<'v>(&self, payload: &'v Value) -> Option<&'v str> {
        self.event.iter().find_map(|name| payload.get(name)).and_then(Value::as_str)
    }
}

/// The parts of a payload that matter.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Parts {
    pub(crate) session: Option<String>,
    pub(crate) parent: Option<String>,
    pub(crate) inside: Option<String>,
    pub(crate) cwd: Option<String>,
    pub(crate) call: Option<String>,
    pub(crate) turn: Option<String>,
    pub(crate) went_on: Option<u64>,
    pub(crate) tool: Option<String>,
    /// Our kind of the tool, where the event says it and not the name.
    pub(crate) kind: Option<Tool>,
    /// Server and tool, where the payload says so.
    pub(crate) mcp: Option<(Option<String>, Option<String>)>,
    pub(crate) input: Value,
    pub(crate) output: Value,
    pub(crate) error: Option<String>,
    pub(crate) prompt: Option<String>,
    pub(crate) answer: Option<String>,
    /// Where it happened, if that is another point than the event's.
    pub(crate) point: Option<Point>,
    /// Whether there is nothing to ask about.
    pub(crate) idle: bool,
}

/// The first of these members that is there.
pub(crate) fn first<'v>(payload: &'v Value, names: &[&str]) -> Option<&'v Value> {
    names.iter().find_map(|name| payload.get(name)).filter(|value| !value.is_null())
}

/// A member as text: texts as they are, anything else as JSON.
pub(crate) fn text(payload: &Value, names: &[&str]) -> Option<String> {
    first(payload, names).map(printed)
}

fn printed(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// A member that may be JSON written as text.
pub(crate) fn unpacked(value: &Value) -> Value {
    match value.as_str().map(serde_json::from_str::<Value>) {
        Some(Ok(inner @ (Value::Object(_) | Value::Array(_)))) => inner,
        _ => value.clone(),
    }
}

impl Parts {
    /// The parts by their names.
    pub(crate) fn of(fields: &Fields, payload: &Value) -> Parts {
        let went_on = first(payload, fields.went_on).map(|value| match value {
            Value::Bool(again) => u64::from(*again),
            other => other.as_u64().unwrap_or(1),
        });
        Parts {
            session: text(payload, fields.session).filter(|id| !id.is_empty()),
            parent: text(payload, fields.parent),
            inside: text(payload, fields.inside),
            cwd: text(payload, fields.cwd).filter(|cwd| !cwd.is_empty()),
            call: text(payload, fields.call).filter(|id| !id.is_empty()),
            turn: text(payload, fields.turn),
            went_on,
            tool: text(payload, fields.tool),
            kind: None,
            mcp: None,
            input: first(payload, fields.input).map(unpacked).unwrap_or_default(),
            output: first(payload, fields.output).cloned().unwrap_or_default(),
            error: text(payload, fields.error),
            prompt: text(payload, fields.prompt),
            answer: text(payload, fields.answer),
            point: None,
            idle: false,
        }
    }

    /// What the engine is asked and told.
    pub(crate) fn assemble(
        self,
        agent: &dyn Agent,
        event: &'static Event,
        payload: Value,
    ) -> Result<Read, Unread> {
        let base = self.session.clone().unwrap_or_else(|| "unknown".to_owned());
        let (session, root) = match (&self.parent, &self.inside) {
            (Some(parent), _) => (base, Some(parent.clone())),
            (None, Some(inside)) => (format!("{base}/{inside}"), Some(base)),
            (None, None) => (base, None),
        };
        let mut read = Read {
            event,
            session,
            root,
            call: self.call.clone(),
            turn: self.turn.clone(),
            cwd: self.cwd.clone(),
            went_on: self.went_on,
            tool_names: Vec::new(),
            told: Vec::new(),
            native_input: self.input.clone(),
            aliases: Vec::new(),
            payload,
        };
        if !self.idle {
            let told = self.told(agent, event, &mut read)?;
            read.told = told;
        }
        Ok(read)
    }

    fn told(self, agent: &dyn Agent, event: &'static Event, read: &mut Read) -> Result<Vec<Told>, Unread> {
        let lacks = |field| Unread::Lacks { event: event.name, field };
        let Some(point) = self.point.or(event.point) else { return Ok(Vec::new()) };
        Ok(match point {
            Point::UserPromptSubmit => {
                let raw_input = self.prompt.ok_or_else(|| lacks("prompt"))?;
                let message = LifeEvent::Message { role: Role::User, content: raw_input.clone() };
                vec![Told::Gate(GateEvent::UserPromptSubmit { raw_input }), Told::Life(message)]
            }
            Point::PreToolUse => {
                let call = self.call(agent, event, read)?;
                let starts = call.subagent().filter(|_| !asks_at_start(agent));
                let task = starts.map(|subagent| GateEvent::SubagentStart { subagent });
                let Call { tool_name, tool_input, .. } = call;
                let mut told = vec![Told::Gate(GateEvent::PreToolUse { tool_name, tool_input })];
                told.extend(task.map(Told::Gate));
                told
            }
            Point::PostToolUse | Point::ToolError => {
                let Call { tool_name, tool_input, .. } = self.call(agent, event, read)?;
                let failed = point == Point::ToolError || self.error.is_some();
                let content =
                    if failed { self.error.clone().unwrap_or_default() } else { printed(&self.output) };
                let message = LifeEvent::Message { role: Role::Tool, content };
                let ended = if failed {
                    LifeEvent::ToolError { tool_name, tool_input, error: self.error.unwrap_or_default() }
                } else {
                    LifeEvent::PostToolUse { tool_name, tool_input, tool_output: self.output }
                };
                vec![Told::Life(ended), Told::Life(message)]
            }
            Point::Stop | Point::SubagentStop => {
                let message = self.answer.clone().filter(|text| !text.is_empty());
                let message = message.map(|content| LifeEvent::Message { role: Role::Assistant, content });
                let ended = if point == Point::Stop {
                    LifeEvent::Stop
                } else {
                    LifeEvent::SubagentStop { subagent: self.who(&read.payload) }
                };
                message.into_iter().chain([ended]).map(Told::Life).collect()
            }
            Point::SubagentStart if event.can(Effect::Block) => {
                vec![Told::Gate(GateEvent::SubagentStart { subagent: self.who(&read.payload) })]
            }
            // it cannot be refused here: hooks are asked when the tool that starts it is called
            Point::SubagentStart => Vec::new(),
            Point::SessionStart => vec![Told::Life(LifeEvent::SessionStart)],
            Point::SessionEnd => vec![Told::Life(LifeEvent::SessionEnd)],
            Point::Message => {
                let content = self.answer.ok_or_else(|| lacks("text"))?;
                vec![Told::Life(LifeEvent::Message { role: Role::Assistant, content })]
            }
            Point::PreResponse => {
                let response = self.answer.ok_or_else(|| lacks("text"))?;
                vec![Told::Shape(ShapeEvent::PreResponse { response })]
            }
            Point::Chunk => Vec::new(),
        })
    }

    /// The call in our words.
    fn call(&self, agent: &dyn Agent, event: &'static Event, read: &mut Read) -> Result<Call, Unread> {
        let native = self.tool.as_deref().filter(|name| !name.is_empty());
        let native = native.ok_or(Unread::Lacks { event: event.name, field: "tool name" })?;
        let said = self.mcp.as_ref().map(|(server, tool)| (server.as_deref(), tool.as_deref()));
        let mut call = call::call(agent, native, &self.input, self.cwd.as_deref(), self.kind, said);
        read.aliases = std::mem::take(&mut call.aliases);
        read.tool_names.append(&mut call.tool_names);
        Ok(call)
    }

    /// A sub-agent as its own events show it.
    fn who(&self, payload: &Value) -> Value {
        let mut who = Map::new();
        let named = [
            ("id", &["agent_id", "agentId", "subagent_id"] as &[&str]),
            ("type", &["agent_type", "agentType", "subagent_type"]),
            ("name", &["agentName", "agent_name"]),
            ("task", &["task", "description"]),
        ];
        for (ours, theirs) in named {
            if let Some(value) = first(payload, theirs) {
                who.insert(ours.to_owned(), value.clone());
            }
        }
        if let Some(result) = &self.answer {
            who.insert("result".to_owned(), result.as_str().into());
        }
        Value::Object(who)
    }
}

/// Whether the agent can refuse a sub-agent when it starts.
fn asks_at_start(agent: &dyn Agent) -> bool {
    let refuses = |event: &Event| event.point == Some(Point::SubagentStart) && event.can(Effect::Block);
    agent.events().iter().any(|event| refuses(event) && event.installed)
}
