//! What a text or an effect must be.

use super::file::Names;
use hookgate_core::define::{Fields, Node, NodeValue, Report};
use hookgate_core::event::Role;
use hookgate_core::pattern::Pattern;
use hookgate_core::word::Word;
use serde_json::{Map, Value, json};

/// What a text must be.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Text {
    /// This.
    Is(String),
    /// One with this in it.
    Contains(String),
    /// One in which this pattern is found.
    Matches(Matching),
}

/// A pattern; two are the same if they are written the same.
#[derive(Debug, Clone)]
pub(super) struct Matching(std::sync::Arc<Pattern>);

impl PartialEq for Matching {
    fn eq(&self, other: &Matching) -> bool {
        self.0.source() == other.0.source()
    }
}

/// An effect as it is expected. A field that is not written may be anything.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Wanted {
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

impl Text {
    pub(super) fn read(report: &Report<'_>, node: &Node, path: &str) -> Option<Text> {
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

    pub(super) fn fits(&self, text: &str) -> bool {
        match self {
            Text::Is(whole) => text == whole,
            Text::Contains(part) => text.contains(part.as_str()),
            Text::Matches(Matching(pattern)) => pattern.find(text).is_some(),
        }
    }

    pub(super) fn to_json(&self) -> Value {
        match self {
            Text::Is(whole) => whole.as_str().into(),
            Text::Contains(part) => json!({"contains": part}),
            Text::Matches(Matching(pattern)) => json!({"matches": pattern.source()}),
        }
    }
}

impl Wanted {
    pub(super) fn read(report: &Report<'_>, names: &Names, fields: Fields<'_>, path: &str) -> Option<Wanted> {
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

    pub(super) fn fits(&self, found: &Value) -> bool {
        let text_name = EFFECTS.iter().find(|(name, _)| *name == self.kind).and_then(|(_, text)| *text);
        let text = text_name.and_then(|name| found.get(name)).and_then(Value::as_str).unwrap_or_default();
        let is = |name: &str, want: Option<Value>| want.is_none_or(|want| found.get(name) == Some(&want));
        is("type", Some(self.kind.into()))
            && is("hook", self.hook.as_deref().map(Value::from))
            && is("role", self.role.map(|role| role.as_str().into()))
            && is("resend", self.resend.map(Value::from))
            && self.text.as_ref().is_none_or(|want| want.fits(text))
    }

    pub(super) fn to_json(&self) -> Value {
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
