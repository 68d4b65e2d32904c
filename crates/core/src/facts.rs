//! An event of the lifecycle as conditions, handlers and records see it.

use crate::depth::{self, DEEPEST_INPUT};
use crate::event::Role;
use crate::point::Point;
use crate::word::Word;
use serde_json::{Map, Value};
use std::borrow::Cow;

/// Whom an event is about. Ids come from the caller; the engine makes none.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Head {
    /// The same for a retry of the same event: its record is written once.
    pub event_id: String,
    /// The session.
    pub session_id: String,
    /// The session that the user talks to, for a sub-agent's events.
    pub root_session_id: Option<String>,
    /// The tenant, where there are several.
    pub tenant_id: Option<String>,
    /// The agent, where there are several.
    pub agent_id: Option<String>,
    /// 0 for the user's agent, 1 for its sub-agents, and so on.
    pub depth: u32,
    /// The trace that the event is part of, where the caller has one.
    pub trace_id: Option<String>,
    /// Other names of the event's tool, the agent's own first. A matcher that fits any of them fits.
    pub tool_names: Vec<String>,
}

/// An event whose verdict somebody waits for.
#[derive(Debug, Clone, PartialEq)]
pub enum GateEvent {
    /// What the user wrote is about to enter.
    UserPromptSubmit {
        /// The text.
        raw_input: String,
    },
    /// A tool is about to run.
    PreToolUse {
        /// Its name.
        tool_name: String,
        /// Its arguments.
        tool_input: Value,
    },
    /// A sub-agent is about to start.
    SubagentStart {
        /// Who, and with which task.
        subagent: Value,
    },
}

/// An event that something may be added to.
#[derive(Debug, Clone, PartialEq)]
pub enum ShapeEvent {
    /// The answer is about to be delivered.
    PreResponse {
        /// Its text.
        response: String,
    },
}

/// An event of the lifecycle that is only watched.
#[derive(Debug, Clone, PartialEq)]
pub enum LifeEvent {
    /// A session begins.
    SessionStart,
    /// A message entered the history.
    Message {
        /// Who speaks in it.
        role: Role,
        /// Its text.
        content: String,
    },
    /// A tool ran.
    PostToolUse {
        /// Its name.
        tool_name: String,
        /// Its arguments.
        tool_input: Value,
        /// What it gave.
        tool_output: Value,
    },
    /// A tool failed.
    ToolError {
        /// Its name.
        tool_name: String,
        /// Its arguments.
        tool_input: Value,
        /// What it said.
        error: String,
    },
    /// The turn is over.
    Stop,
    /// The session is over.
    SessionEnd,
    /// A sub-agent ended.
    SubagentStop {
        /// Who, and with which result.
        subagent: Value,
    },
}

impl GateEvent {
    /// Where it happens.
    pub fn point(&self) -> Point {
        match self {
            GateEvent::UserPromptSubmit { .. } => Point::UserPromptSubmit,
            GateEvent::PreToolUse { .. } => Point::PreToolUse,
            GateEvent::SubagentStart { .. } => Point::SubagentStart,
        }
    }

    /// The tool's name; empty at points that have no tool.
    pub fn tool_name(&self) -> &str {
        match self {
            GateEvent::PreToolUse { tool_name, .. } => tool_name,
            GateEvent::UserPromptSubmit { .. } | GateEvent::SubagentStart { .. } => "",
        }
    }

    /// Whether its input nests no deeper than allowed.
    pub(crate) fn is_bounded(&self) -> bool {
        match self {
            GateEvent::PreToolUse { tool_input: value, .. }
            | GateEvent::SubagentStart { subagent: value } => depth::is_bounded(value),
            GateEvent::UserPromptSubmit { .. } => true,
        }
    }

    /// Takes an input apart that nests too deep to be dropped.
    pub(crate) fn take_apart(self) {
        match self {
            GateEvent::PreToolUse { tool_input: value, .. }
            | GateEvent::SubagentStart { subagent: value } => {
                depth::take_apart(vec![value]);
            }
            GateEvent::UserPromptSubmit { .. } => {}
        }
    }
}

impl LifeEvent {
    /// Where it happens.
    pub fn point(&self) -> Point {
        match self {
            LifeEvent::SessionStart => Point::SessionStart,
            LifeEvent::Message { .. } => Point::Message,
            LifeEvent::PostToolUse { .. } => Point::PostToolUse,
            LifeEvent::ToolError { .. } => Point::ToolError,
            LifeEvent::Stop => Point::Stop,
            LifeEvent::SessionEnd => Point::SessionEnd,
            LifeEvent::SubagentStop { .. } => Point::SubagentStop,
        }
    }

    /// The tool's name; empty at points that have no tool.
    pub fn tool_name(&self) -> &str {
        match self {
            LifeEvent::PostToolUse { tool_name, .. } | LifeEvent::ToolError { tool_name, .. } => tool_name,
            LifeEvent::SessionStart
            | LifeEvent::Message { .. }
            | LifeEvent::Stop
            | LifeEvent::SessionEnd
            | LifeEvent::SubagentStop { .. } => "",
        }
    }

    /// The event with words in the place of what nests too deep.
    pub(crate) fn bounded(mut self) -> LifeEvent {
        let replace = |value: &mut Value| {
            *value = depth::bounded(std::mem::take(value))
                .unwrap_or_else(|| format!("(left out: nests deeper than {DEEPEST_INPUT} levels)").into());
        };
        match &mut self {
            LifeEvent::PostToolUse { tool_input, tool_output, .. } => {
                replace(tool_input);
                replace(tool_output);
            }
            LifeEvent::ToolError { tool_input: value, .. } | LifeEvent::SubagentStop { subagent: value } => {
                replace(value);
            }
            LifeEvent::SessionStart | LifeEvent::Message { .. } | LifeEvent::Stop | LifeEvent::SessionEnd => {
            }
        }
        self
    }
}

/// Whether a member says what happened, rather than where and for whom.
fn is_of_input(member: &str) -> bool {
    matches!(
        member,
        "event"
            | "toolName"
            | "toolInput"
            | "toolOutput"
            | "rawInput"
            | "role"
            | "content"
            | "response"
            | "subagent"
    )
}

/// Whether an event of this point can have the member.
pub(crate) fn may_have(point: Point, member: &str) -> bool {
    let at = |points: &[Point]| points.contains(&point);
    match member {
        "toolName" | "nativeToolName" | "toolInput" => {
            at(&[Point::PreToolUse, Point::PostToolUse, Point::ToolError])
        }
        "toolOutput" => at(&[Point::PostToolUse, Point::ToolError]),
        "rawInput" => at(&[Point::UserPromptSubmit]),
        "role" | "content" => at(&[Point::Message]),
        "response" => at(&[Point::PreResponse]),
        "subagent" => at(&[Point::SubagentStart, Point::SubagentStop]),
        _ => true,
    }
}

/// One event, as a JSON object.
#[derive(Debug, Clone, PartialEq)]
pub struct Facts {
    point: Point,
    head: Head,
    members: Map<String, Value>,
}

impl Facts {
    fn new(point: Point, head: &Head, members: impl IntoIterator<Item = (&'static str, Value)>) -> Facts {
        let mut all = Map::new();
        all.insert("event".into(), point.as_str().into());
        all.insert("eventId".into(), head.event_id.as_str().into());
        all.insert("sessionId".into(), head.session_id.as_str().into());
        let optional = [
            ("rootSessionId", &head.root_session_id),
            ("tenantId", &head.tenant_id),
            ("agentId", &head.agent_id),
            ("traceId", &head.trace_id),
        ];
        for (key, value) in optional {
            if let Some(value) = value {
                all.insert(key.into(), value.as_str().into());
            }
        }
        all.extend(members.into_iter().map(|(key, value)| (key.to_owned(), value)));
        if let Some(native) = head.tool_names.first().filter(|_| all.contains_key("toolName")) {
            all.insert("nativeToolName".into(), native.as_str().into());
        }
        all.insert("depth".into(), head.depth.into());
        Facts { point, head: head.clone(), members: all }
    }

    /// The facts of a gate's event.
    pub fn of_gate(head: &Head, event: GateEvent) -> Facts {
        match event {
            GateEvent::UserPromptSubmit { raw_input } => {
                Facts::new(Point::UserPromptSubmit, head, [("rawInput", raw_input.into())])
            }
            GateEvent::PreToolUse { tool_name, tool_input } => {
                let members = [("toolName", tool_name.into()), ("toolInput", tool_input)];
                Facts::new(Point::PreToolUse, head, members)
            }
            GateEvent::SubagentStart { subagent } => {
                Facts::new(Point::SubagentStart, head, [("subagent", subagent)])
            }
        }
    }

    /// The facts of an answer.
    pub fn of_shape(head: &Head, event: ShapeEvent) -> Facts {
        let ShapeEvent::PreResponse { response } = event;
        Facts::new(Point::PreResponse, head, [("response", response.into())])
    }

    /// The facts of what is only watched.
    pub fn of_life(head: &Head, event: LifeEvent) -> Facts {
        match event {
            LifeEvent::SessionStart => Facts::new(Point::SessionStart, head, []),
            LifeEvent::Message { role, content } => {
                let members = [("role", role.as_str().into()), ("content", content.into())];
                Facts::new(Point::Message, head, members)
            }
            LifeEvent::PostToolUse { tool_name, tool_input, tool_output } => {
                let members =
                    [("toolName", tool_name.into()), ("toolInput", tool_input), ("toolOutput", tool_output)];
                Facts::new(Point::PostToolUse, head, members)
            }
            LifeEvent::ToolError { tool_name, tool_input, error } => {
                let output = serde_json::json!({"error": error});
                let members =
                    [("toolName", tool_name.into()), ("toolInput", tool_input), ("toolOutput", output)];
                Facts::new(Point::ToolError, head, members)
            }
            LifeEvent::Stop => Facts::new(Point::Stop, head, []),
            LifeEvent::SessionEnd => Facts::new(Point::SessionEnd, head, []),
            LifeEvent::SubagentStop { subagent } => {
                Facts::new(Point::SubagentStop, head, [("subagent", subagent)])
            }
        }
    }

    /// The facts that [`to_json`](Facts::to_json) wrote, for an event that was kept for later. `None`: it is no event.
    pub fn from_json(json: &str) -> Option<Facts> {
        let members: Map<String, Value> = serde_json::from_str(json).ok()?;
        let text = |name: &str| members.get(name).and_then(Value::as_str).map(str::to_owned);
        let head = Head {
            event_id: text("eventId")?,
            session_id: text("sessionId")?,
            root_session_id: text("rootSessionId"),
            tenant_id: text("tenantId"),
            agent_id: text("agentId"),
            depth: u32::try_from(members.get("depth")?.as_u64()?).ok()?,
            trace_id: text("traceId"),
            tool_names: text("nativeToolName").into_iter().collect(),
        };
        Some(Facts { point: Point::from_word(&text("event")?)?, head, members })
    }

    /// Where it happens.
    pub fn point(&self) -> Point {
        self.point
    }

    /// Whom it is about.
    pub fn head(&self) -> &Head {
        &self.head
    }

    /// A member, by the name that hooks use.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.members.get(name)
    }

    /// The members that say what happened.
    pub(crate) fn input(&self) -> impl Iterator<Item = (&str, &Value)> {
        let members = self.members.iter().map(|(name, value)| (name.as_str(), value));
        members.filter(|(name, _)| is_of_input(name))
    }

    /// The tool's name; empty at points that have no tool.
    pub fn tool_name(&self) -> &str {
        self.get("toolName").and_then(Value::as_str).unwrap_or_default()
    }

    /// The text that a hook's `regex` looks at: what the user wrote, a message, the tool's input, its output or error,
    /// the response. None at points that have no text.
    pub fn text(&self) -> Option<Cow<'_, str>> {
        let value = match self.point {
            Point::UserPromptSubmit => self.get("rawInput"),
            Point::Message => self.get("content"),
            Point::PreToolUse => self.get("toolInput"),
            Point::PostToolUse => self.get("toolOutput"),
            Point::ToolError => self.get("toolOutput").and_then(|output| output.get("error")),
            Point::PreResponse => self.get("response"),
            Point::SessionStart
            | Point::Chunk
            | Point::Stop
            | Point::SessionEnd
            | Point::SubagentStart
            | Point::SubagentStop => None,
        }?;
        Some(match value {
            Value::String(text) => Cow::Borrowed(text.as_str()),
            other => Cow::Owned(other.to_string()),
        })
    }

    /// The whole event as an object.
    pub fn members(&self) -> &Map<String, Value> {
        &self.members
    }

    /// The event as JSON text, as handlers get it. What the user wrote stands there under both of its names,
    /// `rawInput` and `prompt`, as in conditions.
    pub fn to_json(&self) -> String {
        let Some(prompt) = self.members.get("rawInput") else {
            return serde_json::to_string(&self.members).unwrap_or_default();
        };
        let mut members = self.members.clone();
        members.insert("prompt".to_owned(), prompt.clone());
        serde_json::to_string(&members).unwrap_or_default()
    }

    /// Puts a changed member in place. Only the guard may decide to.
    pub(crate) fn set(&mut self, name: &str, value: Value) {
        self.members.insert(name.to_owned(), value);
    }
}
