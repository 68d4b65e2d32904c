//! Content blocks: where their text stands, and how they are put together again.

use serde_json::{Value, json};

use super::{Block, Kind};
use crate::proxy::leaves::member_leaves;
use crate::wire::json::{self, is_something, text};

/// Where text stands in a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spot {
    Content,
    Reasoning,
    /// A call's input, which is an object that is not empty.
    Input,
}

/// Shows all texts of a block, in the order that counts them.
pub(super) fn for_texts(block: &mut Value, see: &mut dyn FnMut(Spot, &mut Value)) {
    let (member, spot) = match text(block, "type") {
        Some("text") => ("text", Spot::Content),
        Some("thinking") => ("thinking", Spot::Reasoning),
        Some("tool_use") => ("input", Spot::Input),
        _ => return,
    };
    if let Some(value) = block.get_mut(member).filter(|value| is_something(value)) {
        see(spot, value);
    }
}

/// What a block says beside its texts; for a block of a kind that is not known, all of it.
pub(super) fn asides(block: &Value, see: &mut dyn FnMut(String)) {
    let known: &[&str] = match text(block, "type") {
        Some("text") => &["text"],
        Some("thinking") => &["thinking"],
        Some("tool_use") => &["input", "name"],
        Some("redacted_thinking") => &["data"],
        _ => &[],
    };
    for (name, value) in block.as_object().into_iter().flatten() {
        if !known.contains(&name.as_str()) {
            member_leaves(name, value).into_iter().for_each(&mut *see);
        }
    }
}

impl Block {
    /// The block as a request would have it; `None` when it is empty.
    pub(super) fn value(&self) -> Option<Value> {
        let mut block = self.begun.clone();
        let members = block.as_object_mut()?;
        match self.kind {
            Kind::Text if self.text.is_empty() => return None,
            Kind::Text => {
                members.insert("text".into(), self.text.as_str().into());
                if !self.citations.is_empty() {
                    members.insert("citations".into(), self.citations.clone().into());
                }
            }
            Kind::Thinking => {
                members.insert("thinking".into(), self.text.as_str().into());
                members.insert("signature".into(), self.signature.as_str().into());
            }
            Kind::Call(_) => {
                members.insert("input".into(), input(&self.text));
            }
            Kind::Other if !self.text.is_empty() => {
                members.insert("input".into(), input(&self.text));
            }
            Kind::Other => {}
        }
        Some(block)
    }

    /// The JSON text of a call's input.
    pub(super) fn arguments(&self) -> &str {
        if self.text.trim().is_empty() { "{}" } else { &self.text }
    }
}

/// The provider takes objects only. What the model wrote instead goes back to it under a name that says so.
pub(super) fn input(arguments: &str) -> Value {
    match json::parse(arguments) {
        Some(object @ Value::Object(_)) => object,
        None if arguments.trim().is_empty() => json!({}),
        _ => json!({ "not_an_object": arguments }),
    }
}
