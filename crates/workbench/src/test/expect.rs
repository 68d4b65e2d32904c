//! What must come of a test, and where what came of it differs.

use super::file::Names;
use super::found::Found;
use super::wanted::{Text, Wanted};
use hookgate_core::define::{Fields, Node, NodeValue, Report};
use hookgate_core::verdict::{Cause, WarningCode};
use hookgate_core::word::Word;
use serde_json::{Value, json};

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
