//! What must come of a test, what came of it, and where the two differ.

use super::file::Names;
use crate::stage::Played;
use hookgate_core::define::{Fields, Node, NodeValue, Report};
use hookgate_core::effect::{Effect, EffectKind};
use hookgate_core::event::Role;
use hookgate_core::pattern::Pattern;
use hookgate_core::verdict::{Cause, Warning, WarningCode};
use hookgate_core::word::Word;
use serde_json::{Map, Value, json};

/// What is expected; only what is written is compared.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Expect {
    /// Whether something was stopped.
    pub block: Option<bool>,
    hook: Option<String>,
    reason: Option<Text>,
    cause: Option<Cause>,
    updated_input: Option<Value>,
    append: Option<Vec<Text>>,
    send: Option<Vec<Text>>,
    effects: Option<Vec<Wanted>>,
    hooks: Option<Vec<String>>,
    text: Option<Text>,
    reasoning: Option<Text>,
    warnings: Option<Vec<String>>,
}

/// What a text must be.
#[derive(Debug, Clone, PartialEq)]
pub enum Text {
    /// This.
    Is(String),
    /// One with this in it.
    Contains(String),
    /// One in which this pattern is found.
    Matches(Matching),
}

/// A pattern; two are the same if they are written the same.
#[derive(Debug, Clone)]
pub struct Matching(std::sync::Arc<Pattern>);

impl PartialEq for Matching {
    fn eq(&self, other: &Matching) -> bool {
        self.0.source() == other.0.source()
    }
}

/// An effect as it is expected. A field that is not written may be anything.
#[derive(Debug, Clone, PartialEq)]
struct Wanted {
    kind: &'static str,
    hook: Option<String>,
    role: Option<Role>,
    resend: Option<bool>,
    text: Option<Text>,
}

/// The written types of effects, each with the name of its text.
const EFFECTS: [(&str, Option<&str>); 9] = [
    ("log", Some("message")),
    ("warn", Some("message")),
    ("info", Some("message")),
    ("debug", Some("message")),
    ("queue-message", Some("message")),
    ("interrupt", None),
    ("queue-resend", None),
    ("redact", Some("with")),
    ("block", Some("message")),
];

/// What came of a test or a step.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Found {
    members: Map<String, Value>,
}

/// One thing that is not as expected.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Difference {
    /// The field of `expect`.
    pub field: &'static str,
    /// What is written there.
    pub expected: Value,
    /// What came of it.
    pub found: Value,
}

impl Expect {
    /// Reads the fields of an `expect` that stands at `path`.
    pub(super) fn read(report: &Report<'_>, names: &Names, fields: Fields<'_>, path: &str) -> Expect {
        const DECISIONS: [&str; 2] = ["allow", "block"];
        let block = match fields.text("decision") {
            Some("block") => Some(true),
            Some("allow") => Some(false),
            Some(other) => {
                let message = format!("unknown decision `{other}`; expected one of {}", DECISIONS.join(", "));
                fields.refuse("decision", message, hookgate_core::define::nearest(other, &DECISIONS));
                None
            }
            None => None,
        };
        let hook = fields.text("hook").map(str::to_owned);
        if let Some(hook) = &hook {
            names.check(report, fields.place_of("hook"), &format!("{path}.hook"), hook);
        }
        let texts =
            |name| fields.node(name).map(|node| list_of_texts(report, node, &format!("{path}.{name}")));
        let text =
            |name| fields.node(name).and_then(|node| Text::read(report, node, &format!("{path}.{name}")));
        let hooks = fields.has("hooks").then(|| fields.texts("hooks"));
        for name in hooks.iter().flatten() {
            names.check(report, fields.place_of("hooks"), &format!("{path}.hooks"), name);
        }
        let effects = fields.list("effects").map(|items| {
            let read = |(index, node)| {
                fields.item("effects", index, node).and_then(|fields| {
                    Wanted::read(report, names, fields, &format!("{path}.effects[{index}]"))
                })
            };
            items.iter().enumerate().filter_map(read).collect()
        });
        let expect = Expect {
            block,
            hook,
            reason: text("reason"),
            cause: fields.word("cause"),
            updated_input: fields.node("updatedInput").map(Node::to_json),
            append: texts("append"),
            send: texts("send"),
            effects,
            hooks,
            text: text("text"),
            reasoning: text("reasoning"),
            warnings: warnings(&fields),
        };
        expect.refuse_contradiction(&fields);
        fields.finish();
        expect
    }

    fn refuse_contradiction(&self, fields: &Fields<'_>) {
        let of_blocks = ["hook", "reason", "cause"];
        if let Some(name) = of_blocks.into_iter().find(|name| self.block == Some(false) && fields.has(name)) {
            let message = format!("`{name}` says who stopped it or why, and the decision is `allow`");
            fields.refuse(name, message, None);
        }
        let wrong = self.updated_input.as_ref().is_some_and(|value| !value.is_null() && !value.is_object());
        if wrong {
            let message = r#"expected null, or an object such as {"toolInput": {…}}"#.to_owned();
            fields.refuse("updatedInput", message, None);
        }
    }

    /// Whether it asks for nothing.
    pub fn is_empty(&self) -> bool {
        *self == Expect::default()
    }

    /// Where it differs from what came.
    pub fn compare(&self, found: &Found) -> Vec<Difference> {
        let mut differences = Vec::new();
        let mut check = |field: &'static str, holds: bool, expected: Value| {
            if !holds {
                differences.push(Difference { field, expected, found: found.get(field).clone() });
            }
        };
        let same_text = |want: &Text, field: &str| want.fits(found.get(field).as_str().unwrap_or_default());
        if let Some(block) = self.block {
            let word = if block { "block" } else { "allow" };
            check("decision", found.get("decision") == word, word.into());
        }
        if let Some(hook) = &self.hook {
            check("hook", found.get("hook") == hook.as_str(), hook.as_str().into());
        }
        if let Some(reason) = &self.reason {
            check("reason", found.get("reason").is_string() && same_text(reason, "reason"), reason.to_json());
        }
        if let Some(cause) = self.cause {
            check("cause", found.get("cause") == cause.as_str(), cause.as_str().into());
        }
        if let Some(updated) = &self.updated_input {
            check("updatedInput", found.get("updatedInput") == updated, updated.clone());
        }
        for (field, want) in [("append", &self.append), ("send", &self.send)] {
            if let Some(want) = want {
                let all = Value::Array(want.iter().map(Text::to_json).collect());
                check(
                    field,
                    fit_in_order(want, found.list(field), |want, found| {
                        found.as_str().is_some_and(|found| want.fits(found))
                    }),
                    all,
                );
            }
        }
        if let Some(want) = &self.effects {
            let all = Value::Array(want.iter().map(Wanted::to_json).collect());
            check("effects", fit_in_order(want, found.list("effects"), Wanted::fits), all);
        }
        for (field, want) in [("hooks", &self.hooks), ("warnings", &self.warnings)] {
            if let Some(want) = want {
                check(field, same_in_any_order(want, found.list(field)), json!(want));
            }
        }
        for (field, want) in [("text", &self.text), ("reasoning", &self.reasoning)] {
            if let Some(want) = want {
                check(field, same_text(want, field), want.to_json());
            }
        }
        differences
    }
}

fn warnings(fields: &Fields<'_>) -> Option<Vec<String>> {
    let set = fields.list("warnings")?;
    let words = fields.words::<WarningCode>("warnings");
    Some(match words {
        Some(words) if !set.is_empty() => words.words().map(str::to_owned).collect(),
        _ => Vec::new(),
    })
}

fn list_of_texts(report: &Report<'_>, node: &Node, path: &str) -> Vec<Text> {
    match &node.value {
        NodeValue::List(items) => {
            let read = |(index, node)| Text::read(report, node, &format!("{path}[{index}]"));
            items.iter().enumerate().filter_map(read).collect()
        }
        _ => Text::read(report, node, path).into_iter().collect(),
    }
}

fn fit_in_order<T>(want: &[T], found: &[Value], fits: impl Fn(&T, &Value) -> bool) -> bool {
    want.len() == found.len() && want.iter().zip(found).all(|(want, found)| fits(want, found))
}

fn same_in_any_order(want: &[String], found: &[Value]) -> bool {
    let mut want: Vec<&str> = want.iter().map(String::as_str).collect();
    let mut found: Vec<&str> = found.iter().filter_map(Value::as_str).collect();
    want.sort_unstable();
    want.dedup();
    found.sort_unstable();
    want == found
}

impl Text {
    fn read(report: &Report<'_>, node: &Node, path: &str) -> Option<Text> {
        match &node.value {
            NodeValue::Text(text) => Some(Text::Is(text.clone())),
            NodeValue::Object(_) => {
                let fields = Fields::of(report, node, path.to_owned())?;
                let (contains, matches) = (fields.text("contains"), fields.text("matches"));
                let text = match (contains, matches) {
                    (Some(part), None) => Some(Text::Contains(part.to_owned())),
                    (None, Some(pattern)) => match Pattern::parse(pattern) {
                        Ok(pattern) => Some(Text::Matches(Matching(pattern.into()))),
                        Err(error) => {
                            let message = format!("not a usable pattern: {}", error.reason);
                            fields.refuse("matches", message, error.hint);
                            None
                        }
                    },
                    (Some(_), Some(_)) => {
                        let message = "only one of `contains` and `matches` may be given".to_owned();
                        fields.refuse("matches", message, None);
                        None
                    }
                    (None, None) => {
                        if !fields.has("contains") && !fields.has("matches") {
                            fields.missing("contains", "`contains` or `matches`");
                        }
                        None
                    }
                };
                fields.finish();
                text
            }
            _ => {
                let message = format!(
                    "expected a text, or an object with `contains` or `matches`, found {}",
                    node.describe()
                );
                report.add(node.at, path, message, None);
                None
            }
        }
    }

    fn fits(&self, text: &str) -> bool {
        match self {
            Text::Is(whole) => text == whole,
            Text::Contains(part) => text.contains(part.as_str()),
            Text::Matches(Matching(pattern)) => pattern.find(text).is_some(),
        }
    }

    fn to_json(&self) -> Value {
        match self {
            Text::Is(whole) => whole.as_str().into(),
            Text::Contains(part) => json!({"contains": part}),
            Text::Matches(Matching(pattern)) => json!({"matches": pattern.source()}),
        }
    }
}

impl Wanted {
    fn read(report: &Report<'_>, names: &Names, fields: Fields<'_>, path: &str) -> Option<Wanted> {
        let types = EFFECTS.map(|(name, _)| name);
        if !fields.has("type") {
            fields.missing("type", &format!("one of {}", types.join(", ")));
            return None;
        }
        let written = fields.text("type")?;
        let Some((kind, text_name)) = EFFECTS.into_iter().find(|(name, _)| *name == written) else {
            let message = format!("unknown effect `{written}`; expected one of {}", types.join(", "));
            fields.refuse("type", message, hookgate_core::define::nearest(written, &types));
            return None;
        };
        let hook = fields.text("hook").map(str::to_owned);
        if let Some(hook) = &hook {
            names.check(report, fields.place_of("hook"), &format!("{path}.hook"), hook);
        }
        let text = text_name.and_then(|name| Some((name, fields.node(name)?)));
        let text = text.and_then(|(name, node)| Text::read(report, node, &format!("{path}.{name}")));
        let role = if kind == "queue-message" && fields.has("role") { fields.word("role") } else { None };
        let resend = if kind == "interrupt" { fields.flag("resend") } else { None };
        fields.finish();
        Some(Wanted { kind, hook, role, resend, text })
    }

    fn fits(&self, found: &Value) -> bool {
        let text_name = EFFECTS.iter().find(|(name, _)| *name == self.kind).and_then(|(_, text)| *text);
        let text = text_name.and_then(|name| found.get(name)).and_then(Value::as_str).unwrap_or_default();
        let is = |name: &str, want: Option<Value>| want.is_none_or(|want| found.get(name) == Some(&want));
        is("type", Some(self.kind.into()))
            && is("hook", self.hook.as_deref().map(Value::from))
            && is("role", self.role.map(|role| role.as_str().into()))
            && is("resend", self.resend.map(Value::from))
            && self.text.as_ref().is_none_or(|want| want.fits(text))
    }

    fn to_json(&self) -> Value {
        let mut members = Map::new();
        members.insert("type".into(), self.kind.into());
        let text_name = EFFECTS.iter().find(|(name, _)| *name == self.kind).and_then(|(_, text)| *text);
        let optional = [
            ("role", self.role.map(|role| role.as_str().into())),
            ("resend", self.resend.map(Value::from)),
            (text_name.unwrap_or("message"), self.text.as_ref().map(Text::to_json)),
            ("hook", self.hook.as_deref().map(Value::from)),
        ];
        members.extend(optional.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
        Value::Object(members)
    }
}

/// An effect as it is written in a test; none for the mark that a hook fired.
pub fn effect_json(effect: &Effect) -> Option<Value> {
    let hook = &*effect.hook;
    Some(match &effect.kind {
        EffectKind::Fired => return None,
        EffectKind::Log { level, text } => json!({"type": level.as_str(), "message": text, "hook": hook}),
        EffectKind::Queue { role, content } => {
            json!({"type": "queue-message", "role": role.as_str(), "message": content, "hook": hook})
        }
        EffectKind::Interrupt { resend } => json!({"type": "interrupt", "resend": resend, "hook": hook}),
        EffectKind::Resend => json!({"type": "queue-resend", "hook": hook}),
        EffectKind::Redact { with } => json!({"type": "redact", "with": with, "hook": hook}),
        EffectKind::Block { reason } => json!({"type": "block", "message": reason, "hook": hook}),
    })
}

impl Found {
    /// What came of these steps together.
    pub fn of(played: &[Played]) -> Found {
        let events = || played.iter().flat_map(|played| &played.events);
        let stopped = events().find_map(|event| event.stopped.as_ref());
        let mut updated = Map::new();
        for (name, value) in events().flat_map(|event| &event.updated) {
            updated.insert(name.clone(), value.clone());
        }
        let mut hooks: Vec<&str> = Vec::new();
        let mut warnings: Vec<&str> = Vec::new();
        for event in events() {
            event.hooks().into_iter().for_each(|hook| push_new(&mut hooks, hook));
            // a watching hook's block is the decision here
            let is_decision =
                |warning: &&Warning| warning.code == WarningCode::BlockIgnored && event.stopped.is_some();
            let codes = event.warnings().iter().filter(|warning| !is_decision(warning));
            codes.for_each(|warning| push_new(&mut warnings, warning.code.as_str()));
        }
        let text = |pick: fn(&Played) -> &Option<String>| -> Value {
            let mut texts: Vec<(u64, &str)> = Vec::new();
            for (answer, text) in
                played.iter().filter_map(|played| Some((played.answer, pick(played).as_deref()?)))
            {
                match texts.last_mut() {
                    // the same answer, a piece further
                    Some(last) if last.0 == answer => last.1 = text,
                    _ => texts.push((answer, text)),
                }
            }
            let texts: Vec<&str> = texts.into_iter().map(|(_, text)| text).collect();
            if texts.is_empty() { Value::Null } else { texts.concat().into() }
        };
        let members = json!({
            "decision": if stopped.is_some() { "block" } else { "allow" },
            "hook": stopped.map(|stopped| &stopped.by),
            "reason": stopped.map(|stopped| &stopped.reason),
            "cause": stopped.map(|stopped| stopped.cause.as_str()),
            "updatedInput": (!updated.is_empty()).then_some(updated),
            "append": events().flat_map(|event| &event.append).collect::<Vec<_>>(),
            "send": events().flat_map(|event| &event.send).collect::<Vec<_>>(),
            "effects": events().flat_map(|event| &event.effects).filter_map(effect_json).collect::<Vec<_>>(),
            "hooks": hooks,
            "text": text(|played| &played.text),
            "reasoning": text(|played| &played.reasoning),
            "warnings": warnings,
        });
        let Value::Object(members) = members else { return Found::default() };
        Found { members }
    }

    /// A field of `expect`, as it would be written; `null` where there is none.
    pub fn get(&self, field: &str) -> &Value {
        self.members.get(field).unwrap_or(&Value::Null)
    }

    fn list(&self, field: &str) -> &[Value] {
        self.get(field).as_array().map(Vec::as_slice).unwrap_or_default()
    }

    /// All of it.
    pub fn members(&self) -> &Map<String, Value> {
        &self.members
    }

    /// What one would write into an empty `expect`.
    pub fn worth_writing(&self) -> Map<String, Value> {
        let streams = !self.list("effects").is_empty() && self.get("text").is_string();
        let is_worth = |name: &str, value: &Value| match name {
            "decision" | "hooks" => true,
            // the usual cause; and in words with times in them no two runs agree
            "cause" => !value.is_null() && *value != "decision",
            "reason" => !value.is_null() && *value != "" && *self.get("cause") == "decision",
            "text" => streams,
            "reasoning" => false,
            _ => !value.is_null() && value.as_array().is_none_or(|items| !items.is_empty()),
        };
        let worth = self.members.iter().filter(|(name, value)| is_worth(name, value));
        worth.map(|(name, value)| (name.clone(), value.clone())).collect()
    }
}

fn push_new<'a>(list: &mut Vec<&'a str>, word: &'a str) {
    if !list.contains(&word) {
        list.push(word);
    }
}
