//! Output items and their parts: where their text stands, what of it the client has got.

use serde_json::{Value, json};

use crate::wire::json::{list, text};

/// An output item.
#[derive(Debug, Default)]
pub(super) struct Item {
    /// The index that the provider gave.
    pub(super) index: Option<u64>,
    pub(super) id: String,
    pub(super) kind: Kind,
    /// The item as it was said last: when it was added, or done.
    pub(super) value: Value,
    pub(super) parts: Vec<Part>,
    /// Nothing can be added to it.
    pub(super) complete: bool,
    pub(super) dropped: bool,
    /// It is hookgate's own.
    pub(super) ours: bool,
    /// The index that the client knows it by, once it does.
    pub(super) client_index: Option<u64>,
    pub(super) done_written: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Kind {
    Message,
    Reasoning,
    /// A call for the client, and its number.
    Call(u32),
    #[default]
    Other,
}

/// A text of an item.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) place: Place,
    /// The part as it was said last.
    pub(super) value: Value,
    /// Its text as it was read.
    pub(super) text: String,
    /// How much of it went out unchanged.
    passed: usize,
    /// Its text as it was written, once that differs.
    altered: Option<String>,
    /// The client knows of it.
    pub(super) begun: bool,
    /// Its `done` went out.
    pub(super) text_done: bool,
    pub(super) part_done: bool,
}

/// Where a text stands in its item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// An element of a list of parts.
    Of(List, u64),
    /// A call's arguments: this member of the item.
    Member(&'static str),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum List {
    Content,
    Summary,
}

impl List {
    pub(super) fn name(self) -> &'static str {
        match self {
            List::Content => "content",
            List::Summary => "summary",
        }
    }
}

/// Items that the client runs, with the member that says what to run.
const CALLS: &[(&str, &str)] = &[
    ("function_call", "arguments"),
    ("custom_tool_call", "input"),
    ("local_shell_call", "action"),
    ("shell_call", "action"),
    ("computer_call", "action"),
    ("apply_patch_call", "operation"),
];

/// The member with a call's arguments; `None` for an item that is no call for the client.
pub(super) fn arguments_member(item: &Value) -> Option<&'static str> {
    let kind = text(item, "type")?;
    let (_, member) = CALLS.iter().find(|(name, _)| *name == kind)?;
    // A computer may be asked for several actions at once.
    if *member == "action" && item.get("actions").is_some() { Some("actions") } else { Some(member) }
}

/// The arguments' text: as they are if they are text, else their JSON.
pub(super) fn arguments(item: &Value, member: &str) -> String {
    match item.get(member) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Object(members)) if members.is_empty() => String::new(),
        Some(whole) => whole.to_string(),
    }
}

/// The tool of a call: its name, or its kind where it has none.
pub(super) fn tool(item: &Value) -> &str {
    let kind = text(item, "type").unwrap_or_default();
    text(item, "name").unwrap_or(kind.strip_suffix("_call").unwrap_or(kind))
}

/// The member of a part that has its text.
pub(super) fn text_member(part: &Value) -> &'static str {
    if text(part, "type") == Some("refusal") { "refusal" } else { "text" }
}

impl Part {
    pub(super) fn new(place: Place, value: Value) -> Self {
        Part {
            place,
            value,
            text: String::new(),
            passed: 0,
            altered: None,
            begun: false,
            text_done: false,
            part_done: false,
        }
    }

    /// Its text as the client has got it.
    pub(super) fn written(&self) -> &str {
        self.altered.as_deref().unwrap_or_else(|| self.text.get(..self.passed).unwrap_or_default())
    }

    /// The client has got another text than the provider said, or does not have all of it.
    pub(super) fn differs(&self) -> bool {
        self.written() != self.text
    }

    /// Nothing of it has gone out.
    pub(super) fn reset(&mut self) {
        self.passed = 0;
        self.altered = None;
    }

    /// A piece of the text goes out, perhaps as another one.
    pub(super) fn pass(&mut self, start: usize, end: usize, new: Option<&str>) {
        if (start > self.passed || new.is_some()) && self.altered.is_none() {
            self.altered = Some(self.written().to_owned());
        }
        if let Some(altered) = &mut self.altered {
            altered.push_str(new.unwrap_or_else(|| self.text.get(start..end).unwrap_or_default()));
        }
        self.passed = end;
    }

    /// Text of ours goes out behind what the client has.
    pub(super) fn say(&mut self, text: &str) {
        let mut altered = self.altered.take().unwrap_or_else(|| self.written().to_owned());
        altered.push_str(text);
        self.altered = Some(altered);
    }

    /// The part as the client has got it.
    pub(super) fn shown(&self) -> Value {
        let mut value = self.value.clone();
        show(&mut value, self.written());
        value
    }
}

/// Puts a text into a part, and takes out what would say the old one.
pub(super) fn show(part: &mut Value, shown: &str) {
    let member = text_member(part);
    if let Value::Object(members) = part
        && members.get(member).and_then(Value::as_str) != Some(shown)
    {
        members.insert(member.into(), shown.into());
        if members.get("logprobs").is_some_and(|logprobs| !logprobs.is_null()) {
            members.insert("logprobs".into(), json!([]));
        }
    }
}

impl Item {
    pub(super) fn is_call(&self) -> bool {
        matches!(self.kind, Kind::Call(_))
    }

    pub(super) fn differs(&self) -> bool {
        self.parts.iter().any(Part::differs)
    }

    /// Puts the texts as the client has got them into an item of the wire; those that are not in it too, if `all`.
    pub(super) fn show_in(&self, value: &mut Value, all: bool) {
        for part in &self.parts {
            match part.place {
                Place::Member(member) => {
                    let new = match value.get(member) {
                        Some(Value::String(_)) | None => part.written().into(),
                        Some(_) => {
                            crate::wire::json::parse(part.written()).unwrap_or_else(|| part.written().into())
                        }
                    };
                    if let Value::Object(members) = value
                        && part.differs()
                    {
                        members.insert(member.into(), new);
                    }
                }
                Place::Of(in_list, index) => {
                    let n = list(value, in_list.name()).len() as u64;
                    let Value::Object(members) = &mut *value else { continue };
                    if !all && !members.contains_key(in_list.name()) {
                        continue;
                    }
                    let place = members.entry(in_list.name()).or_insert_with(|| json!([]));
                    let Value::Array(parts) = place else { continue };
                    match usize::try_from(index).ok().and_then(|at| parts.get_mut(at)) {
                        Some(place) if place.is_object() => show(place, part.written()),
                        None if all && n == index => parts.push(part.shown()),
                        _ => {}
                    }
                }
            }
        }
    }

    /// The item as the client has got it.
    pub(super) fn shown(&self, status: &str) -> Value {
        let mut value = self.value.clone();
        self.show_in(&mut value, true);
        if let Value::Object(members) = &mut value
            && members.contains_key("status")
        {
            members.insert("status".into(), status.into());
        }
        value
    }
}
