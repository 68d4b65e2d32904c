//! Events as people write them in files: as handlers get them, or in a short form (`docs/tests.md`). Read strictly; nothing
//! happens here.

use hookgate_core::define::{Fields, Node, NodeValue, Report};
use hookgate_core::event::{ChunkKind, Role};
use hookgate_core::facts::{GateEvent, Head, LifeEvent, ShapeEvent};
use hookgate_core::point::Point;
use serde_json::{Map, Value};

/// Something that happens in a session.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// Whose it is, as far as it says so.
    pub whose: Whose,
    /// What happens.
    pub what: What,
}

/// What happens.
#[derive(Debug, Clone, PartialEq)]
pub enum What {
    /// A gate is asked.
    Gate(GateEvent),
    /// An answer is about to be delivered.
    Shape(ShapeEvent),
    /// Something that is only watched.
    Life(LifeEvent),
    /// A piece of a streamed answer arrives.
    Chunk(Piece),
    /// The user writes; if it is let in, it becomes a message.
    Prompt(String),
    /// A whole answer arrives.
    Answer {
        /// The text in pieces.
        text: Vec<String>,
        /// The thoughts before it in pieces.
        reasoning: Vec<String>,
    },
    /// A tool is called.
    Tool {
        /// Its name.
        name: String,
        /// Its arguments.
        input: Value,
        /// What comes of it where nobody stops it.
        then: Then,
    },
}

/// What comes of a tool.
#[derive(Debug, Clone, PartialEq)]
pub enum Then {
    /// It is not said.
    Nothing,
    /// It gives this.
    Output(Value),
    /// It fails.
    Error(String),
}

/// A piece of a streamed answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Piece {
    /// Its kind.
    pub kind: ChunkKind,
    /// Its text; of a finish the reason.
    pub text: String,
    /// The call that it belongs to, from 0.
    pub index: u32,
    /// The call's id.
    pub id: Option<String>,
}

/// Whose events these are, as far as it is written.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Whose {
    /// The event's id.
    pub event_id: Option<String>,
    /// The session.
    pub session_id: Option<String>,
    /// The session that the user talks to, for a sub-agent.
    pub root_session_id: Option<String>,
    /// The tenant.
    pub tenant_id: Option<String>,
    /// The agent.
    pub agent_id: Option<String>,
    /// The trace.
    pub trace_id: Option<String>,
    /// How deep agents are nested.
    pub depth: Option<u32>,
    /// The agent's own name of the tool.
    pub native_tool_name: Option<String>,
}

impl Whose {
    /// Reads the members that all steps may have.
    pub fn read(fields: &Fields<'_>) -> Whose {
        let text = |name| fields.text(name).map(str::to_owned);
        Whose {
            event_id: text("eventId"),
            session_id: text("sessionId"),
            root_session_id: text("rootSessionId"),
            tenant_id: text("tenantId"),
            agent_id: text("agentId"),
            trace_id: text("traceId"),
            depth: fields.count("depth").map(|depth| u32::try_from(depth).unwrap_or(u32::MAX)),
            native_tool_name: text("nativeToolName"),
        }
    }

    /// The head of an event: what is written here, else there, else made up from these two ids.
    pub fn head(&self, other: &Whose, session_id: &str, event_id: String) -> Head {
        let first = |pick: fn(&Whose) -> &Option<String>| pick(self).clone().or_else(|| pick(other).clone());
        Head {
            event_id: first(|whose| &whose.event_id).unwrap_or(event_id),
            session_id: first(|whose| &whose.session_id).unwrap_or_else(|| session_id.to_owned()),
            root_session_id: first(|whose| &whose.root_session_id),
            tenant_id: first(|whose| &whose.tenant_id),
            agent_id: first(|whose| &whose.agent_id),
            depth: self.depth.or(other.depth).unwrap_or(0),
            trace_id: first(|whose| &whose.trace_id),
            tool_names: first(|whose| &whose.native_tool_name).into_iter().collect(),
        }
    }
}

/// Reads one form of a step; `None`: a fault was noted.
type ReadForm = fn(&Fields<'_>) -> Option<What>;

impl Step {
    /// Reads a step. `None`: a fault was noted. Whoever reads more of the same object than a step does so before, and
    /// finishes the fields.
    pub fn read(fields: &Fields<'_>) -> Option<Step> {
        let whose = Whose::read(fields);
        let forms: [(&str, ReadForm); 5] =
            [("event", event), ("chunk", chunk), ("prompt", prompt), ("answer", answer), ("tool", tool)];
        // an event may have a `prompt` beside `rawInput`, as handlers get it
        let form = forms.into_iter().find(|(name, _)| fields.has(name));
        let Some((_, read)) = form else {
            let names: Vec<&str> = forms.iter().map(|(name, _)| *name).collect();
            fields.missing("event", &format!("one of {}", names.join(", ")));
            names.iter().for_each(|name| {
                fields.node(name);
            });
            return None;
        };
        read(fields).map(|what| Step { whose, what })
    }

    /// Reads a step that stands alone.
    pub fn read_node(report: &Report<'_>, node: &Node, path: &str) -> Option<Step> {
        let fields = Fields::of(report, node, path.to_owned())?;
        let step = Step::read(&fields);
        fields.finish();
        step
    }
}

fn event(fields: &Fields<'_>) -> Option<What> {
    let point = fields.word::<Point>("event")?;
    Some(match point {
        Point::UserPromptSubmit => What::Gate(GateEvent::UserPromptSubmit { raw_input: raw_input(fields)? }),
        Point::PreToolUse => What::Gate(GateEvent::PreToolUse {
            // first, so that the field is known also where the name is missing
            tool_input: tool_input(fields, "toolInput"),
            tool_name: needed(fields, "toolName", "the tool's name")?,
        }),
        Point::SubagentStart => What::Gate(GateEvent::SubagentStart { subagent: subagent(fields) }),
        Point::PreResponse => What::Shape(ShapeEvent::PreResponse {
            response: needed(fields, "response", "the answer's text")?,
        }),
        Point::Chunk => {
            let help = r#"write {"chunk": "content", "text": "…"}"#.to_owned();
            fields.refuse("event", "a chunk has no event object".into(), Some(help));
            return None;
        }
        _ => What::Life(life(fields, point)?),
    })
}

fn life(fields: &Fields<'_>, point: Point) -> Option<LifeEvent> {
    Some(match point {
        Point::SessionStart => LifeEvent::SessionStart,
        Point::SessionEnd => LifeEvent::SessionEnd,
        Point::SubagentStop => LifeEvent::SubagentStop { subagent: subagent(fields) },
        Point::Message => {
            if !fields.has("role") {
                fields.missing("role", "who speaks in the message");
            }
            let role = fields.word::<Role>("role");
            let content = needed(fields, "content", "the message's text");
            LifeEvent::Message { role: role?, content: content? }
        }
        Point::PostToolUse => LifeEvent::PostToolUse {
            tool_input: tool_input(fields, "toolInput"),
            tool_output: fields.node("toolOutput").map(Node::to_json).unwrap_or_default(),
            tool_name: needed(fields, "toolName", "the tool's name")?,
        },
        Point::ToolError => {
            let tool_name = needed(fields, "toolName", "the tool's name");
            let tool_input = tool_input(fields, "toolInput");
            if !fields.has("toolOutput") {
                fields.missing("toolOutput", r#"what the tool said: {"error": "…"}"#);
            }
            let output = fields.object("toolOutput")?;
            let error = needed(&output, "error", "what the tool said");
            output.finish();
            LifeEvent::ToolError { tool_name: tool_name?, tool_input, error: error? }
        }
        _ => LifeEvent::Stop,
    })
}

fn chunk(fields: &Fields<'_>) -> Option<What> {
    let kind = fields.word::<ChunkKind>("chunk")?;
    let (text, index, id) = match kind {
        ChunkKind::Finish => (fields.text("reason").unwrap_or("stop").to_owned(), 0, None),
        ChunkKind::ToolCallDelta => {
            let index = fields.count("index").unwrap_or(0);
            let id = fields.text("id").map(str::to_owned);
            (needed(fields, "text", "the piece's text")?, u32::try_from(index).unwrap_or(u32::MAX), id)
        }
        ChunkKind::Content | ChunkKind::Reasoning => (needed(fields, "text", "the piece's text")?, 0, None),
    };
    Some(What::Chunk(Piece { kind, text, index, id }))
}

fn prompt(fields: &Fields<'_>) -> Option<What> {
    fields.text("prompt").map(|text| What::Prompt(text.to_owned()))
}

fn answer(fields: &Fields<'_>) -> Option<What> {
    let text = pieces(fields, "answer");
    let reasoning = pieces(fields, "reasoning");
    Some(What::Answer { text: text?, reasoning: reasoning.unwrap_or_default() })
}

fn tool(fields: &Fields<'_>) -> Option<What> {
    let name = fields.text("tool").map(str::to_owned);
    let input = tool_input(fields, "input");
    let output = fields.node("output").map(Node::to_json);
    let error = fields.text("error").map(str::to_owned);
    let then = match (output, error) {
        (None, None) => Then::Nothing,
        (Some(output), None) => Then::Output(output),
        (None, Some(error)) => Then::Error(error),
        (Some(_), Some(_)) => {
            fields.refuse("error", "only one of `output` and `error` may be given".into(), None);
            return None;
        }
    };
    Some(What::Tool { name: name?, input, then })
}

/// What the user wrote, under one of its two names.
fn raw_input(fields: &Fields<'_>) -> Option<String> {
    let (raw_input, prompt) = (fields.text("rawInput"), fields.text("prompt"));
    if raw_input.is_none() && prompt.is_none() && !fields.has("rawInput") && !fields.has("prompt") {
        fields.missing("rawInput", "what the user wrote");
    }
    raw_input.or(prompt).map(str::to_owned)
}

fn tool_input(fields: &Fields<'_>, name: &'static str) -> Value {
    fields.node(name).map_or_else(|| Value::Object(Map::new()), Node::to_json)
}

fn subagent(fields: &Fields<'_>) -> Value {
    fields.node("subagent").map_or_else(|| Value::Object(Map::new()), Node::to_json)
}

fn needed(fields: &Fields<'_>, name: &'static str, what: &str) -> Option<String> {
    if !fields.has(name) {
        fields.missing(name, what);
    }
    fields.text(name).map(str::to_owned)
}

/// A text, word by word, or the pieces that are written.
fn pieces(fields: &Fields<'_>, name: &'static str) -> Option<Vec<String>> {
    let node = fields.node(name)?;
    match &node.value {
        NodeValue::Text(text) => Some(words(text)),
        NodeValue::List(_) => Some(fields.texts(name)),
        _ => {
            let message = format!("expected a text or a list of texts, found {}", node.describe());
            fields.refuse(name, message, None);
            None
        }
    }
}

/// The words of a text, each with the blanks before it.
fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut in_word = false;
    for c in text.chars() {
        if c.is_whitespace() && in_word {
            words.push(String::new());
        }
        in_word = !c.is_whitespace();
        if let Some(word) = words.last_mut() {
            word.push(c);
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use hookgate_core::define::read_document;
    use serde_json::json;

    fn read(text: &str) -> Result<Step, String> {
        read_document("e.json", text, |root, report| Step::read_node(report, root, ""))
            .map_err(|problems| problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
    }

    #[track_caller]
    fn gives(text: &str, want: What) {
        assert_eq!(read(text).unwrap().what, want);
    }

    #[track_caller]
    fn refused(text: &str, want: &str) {
        let said = read(text).unwrap_err();
        assert!(said.contains(want), "`{said}` lacks `{want}`");
    }

    #[test]
    fn events_are_read_as_handlers_get_them() {
        use hookgate_core::facts::Facts;
        let head = Head { event_id: "e".into(), session_id: "s".into(), depth: 1, ..Head::default() };
        let gate = |event: GateEvent| {
            let json = Facts::of_gate(&head, event.clone()).to_json();
            let step = read(&json).unwrap();
            assert_eq!(step.what, What::Gate(event));
            assert_eq!(step.whose.head(&Whose::default(), "x", "x".into()), head);
        };
        gate(GateEvent::UserPromptSubmit { raw_input: "hi".into() });
        gate(GateEvent::PreToolUse { tool_name: "exec".into(), tool_input: json!({"a": [1]}) });
        gate(GateEvent::SubagentStart { subagent: json!({"task": "t"}) });
        let life = |event: LifeEvent| {
            gives(&Facts::of_life(&head, event.clone()).to_json(), What::Life(event));
        };
        let (tool_name, tool_input) = ("exec".to_owned(), json!({}));
        life(LifeEvent::PostToolUse {
            tool_name: tool_name.clone(),
            tool_input: tool_input.clone(),
            tool_output: json!("out"),
        });
        life(LifeEvent::ToolError { tool_name, tool_input, error: "bad".into() });
        life(LifeEvent::Message { role: Role::Tool, content: "c".into() });
        life(LifeEvent::SessionStart);
        life(LifeEvent::Stop);
        life(LifeEvent::SessionEnd);
        life(LifeEvent::SubagentStop { subagent: json!({}) });
        let event = ShapeEvent::PreResponse { response: "r".into() };
        gives(&Facts::of_shape(&head, event.clone()).to_json(), What::Shape(event));
    }

    #[test]
    fn short_forms_are_short() {
        gives(r#"{"prompt": "hi"}"#, What::Prompt("hi".into()));
        let answer = |text: &[&str], reasoning: &[&str]| What::Answer {
            text: text.iter().map(|text| (*text).to_owned()).collect(),
            reasoning: reasoning.iter().map(|text| (*text).to_owned()).collect(),
        };
        gives(r#"{"answer": "I  don't\nknow. "}"#, answer(&["I", "  don't", "\nknow.", " "], &[]));
        gives(r#"{"answer": ["a", "b"], "reasoning": "hm"}"#, answer(&["a", "b"], &["hm"]));
        let name = "t".to_owned();
        gives(r#"{"tool": "t"}"#, What::Tool { name: name.clone(), input: json!({}), then: Then::Nothing });
        gives(
            r#"{"tool": "t", "input": {"a": 1}, "error": "e"}"#,
            What::Tool { name, input: json!({"a": 1}), then: Then::Error("e".into()) },
        );
        let piece = |kind, text: &str| What::Chunk(Piece { kind, text: text.into(), index: 0, id: None });
        gives(r#"{"chunk": "content", "text": "x"}"#, piece(ChunkKind::Content, "x"));
        gives(r#"{"chunk": "finish"}"#, piece(ChunkKind::Finish, "stop"));
    }

    #[test]
    fn mistakes_are_named() {
        refused("{}", "missing; expected one of event, chunk, prompt, answer, tool");
        refused(r#"{"evnt": "stop"}"#, "did you mean `event`?");
        refused(r#"{"event": "pre_tool"}"#, "unknown point `pre_tool`");
        refused(r#"{"event": "pre_tool_use"}"#, "field `toolName`: missing; expected the tool's name");
        refused(
            r#"{"event": "pre_tool_use", "tool_name": "x", "toolInput": {}}"#,
            "unknown field `tool_name`, and `toolName` is missing; expected the tool's name (did you mean `toolName`?)",
        );
        refused(
            r#"{"event": "pre_tool_use", "toolName": "x", "tool_name": "x", "toolInput": {}}"#,
            "unknown field `tool_name`; expected one of eventId, sessionId, rootSessionId, tenantId, agentId, traceId, \
             depth, nativeToolName, event, toolInput, toolName (did you mean `toolName`?)",
        );
        refused(r#"{"event": "stop", "toolName": "x"}"#, "unknown field `toolName`");
        refused(r#"{"event": "chunk"}"#, "write {\"chunk\"");
        refused(r#"{"tool": "x", "output": 1, "error": "e"}"#, "only one of");
        refused(r#"{"answer": 1}"#, "expected a text or a list of texts");
        refused(r#"{"chunk": "content"}"#, "field `text`: missing");
    }
}
