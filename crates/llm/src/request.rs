//! What a model is asked.

use serde_json::{Map, Value, json};

use crate::Message;

/// One request to a model, the same for every provider.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The model's name as its provider spells it.
    pub model: String,
    /// The conversation, oldest first.
    pub messages: Vec<Message>,
    /// The tools the model may call.
    pub tools: Vec<ToolSpec>,
    /// Whether it may, must or must not call one. Not sent when there are no tools.
    pub tool_choice: ToolChoice,
    /// The most tokens the answer may have. `None` leaves it to the provider (or to the wire's default where the
    /// provider insists on a number).
    pub max_tokens: Option<u32>,
    /// Randomness; `None` leaves it to the provider.
    pub temperature: Option<f64>,
    /// Texts at which the model stops.
    pub stop: Vec<String>,
    /// Merged into the body as it is, over everything else: the way to send what this crate does not know.
    pub extra: Map<String, Value>,
}

/// Whether the model may call tools.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ToolChoice {
    /// It decides.
    #[default]
    Auto,
    /// It must not.
    None,
    /// It must call at least one.
    Required,
    /// It must call this one.
    Named(String),
}

/// One tool that the model may call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolSpec {
    /// Its name.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// A JSON Schema of its arguments.
    pub parameters: Value,
}

impl ToolSpec {
    /// The schema to send: a tool without one takes an object without rules.
    pub(crate) fn schema(&self) -> Value {
        if self.parameters.is_null() {
            json!({ "type": "object", "properties": {} })
        } else {
            self.parameters.clone()
        }
    }
}
