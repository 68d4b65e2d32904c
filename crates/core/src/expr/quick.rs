//! The plain part of conditions, answered on the event as it is: texts compared with texts, `has()`, and `&&`, `||`,
//! `!` between them. Nothing is bound or copied for it, which makes it many times as fast as the interpreter.
//!
//! It only ever answers what CEL would answer. Where a member is missing, is no text, or the condition is of any other
//! form it says nothing, and CEL is asked.

use super::{OBJECTS, ROOTS};
use crate::facts::Facts;
use cel::common::ast::operators::{EQUALS, LOGICAL_AND, LOGICAL_NOT, LOGICAL_OR, NOT_EQUALS};
use cel::common::ast::{CallExpr, Expr, IdedExpr, LiteralValue};
use serde_json::Value;

/// A condition of the plain form.
#[derive(Debug)]
pub(super) enum Quick {
    All(Box<[Quick; 2]>),
    Any(Box<[Quick; 2]>),
    Not(Box<Quick>),
    /// Whether the path's last member is there.
    Has(Path),
    Text(Path, Compare, String),
}

/// A member of the event, and the way from there.
#[derive(Debug)]
pub(super) struct Path {
    pub(super) member: &'static str,
    pub(super) fields: Vec<String>,
}

/// How a text is compared with another.
#[derive(Debug, Clone, Copy)]
pub(super) enum Compare {
    Equal,
    NotEqual,
    StartsWith,
    EndsWith,
    Contains,
}

impl Quick {
    /// Reads an expression; none if it is of another form.
    pub(super) fn read(expr: &IdedExpr) -> Option<Quick> {
        match &expr.expr {
            Expr::Call(call) => Quick::of_call(call),
            Expr::Select(select) if select.test => {
                let mut path = Path::read(&select.operand)?;
                path.fields.push(select.field.clone());
                Some(Quick::Has(path))
            }
            _ => None,
        }
    }

    fn of_call(call: &CallExpr) -> Option<Quick> {
        match (call.func_name.as_str(), call.target.as_deref(), call.args.as_slice()) {
            (LOGICAL_AND, None, [a, b]) => Some(Quick::All(Box::new([Quick::read(a)?, Quick::read(b)?]))),
            (LOGICAL_OR, None, [a, b]) => Some(Quick::Any(Box::new([Quick::read(a)?, Quick::read(b)?]))),
            (LOGICAL_NOT, None, [a]) => Some(Quick::Not(Box::new(Quick::read(a)?))),
            (name @ (EQUALS | NOT_EQUALS), None, [a, b]) => {
                let (path, text) = match (Path::read(a), literal(b)) {
                    (Some(path), Some(text)) => (path, text),
                    _ => (Path::read(b)?, literal(a)?),
                };
                let compare = if name == EQUALS { Compare::Equal } else { Compare::NotEqual };
                Some(Quick::Text(path, compare, text))
            }
            (name, Some(target), [text]) => {
                let compare = match name {
                    "startsWith" => Compare::StartsWith,
                    "endsWith" => Compare::EndsWith,
                    "contains" => Compare::Contains,
                    _ => return None,
                };
                Some(Quick::Text(Path::read(target)?, compare, literal(text)?))
            }
            _ => None,
        }
    }

    /// The answer, or none if only CEL can tell.
    pub(super) fn answer(&self, facts: &Facts) -> Option<bool> {
        match self {
            // as in CEL, one side that is certain can outweigh another that cannot be answered
            Quick::All(sides) => {
                let [a, b] = &**sides;
                match (a.answer(facts), b) {
                    (Some(false), _) => Some(false),
                    (Some(true), b) => b.answer(facts),
                    (None, b) => b.answer(facts).filter(|answer| !answer),
                }
            }
            Quick::Any(sides) => {
                let [a, b] = &**sides;
                match (a.answer(facts), b) {
                    (Some(true), _) => Some(true),
                    (Some(false), b) => b.answer(facts),
                    (None, b) => b.answer(facts).filter(|answer| *answer),
                }
            }
            Quick::Not(side) => side.answer(facts).map(|answer| !answer),
            Quick::Has(path) => path.has(facts),
            Quick::Text(path, compare, text) => {
                let found = path.find(facts)?.as_str()?;
                Some(match compare {
                    Compare::Equal => found == text,
                    Compare::NotEqual => found != text,
                    Compare::StartsWith => found.starts_with(text.as_str()),
                    Compare::EndsWith => found.ends_with(text.as_str()),
                    Compare::Contains => found.contains(text.as_str()),
                })
            }
        }
    }
}

impl Path {
    fn read(expr: &IdedExpr) -> Option<Path> {
        match &expr.expr {
            Expr::Ident(name) => {
                let (_, member) = ROOTS.iter().find(|(root, _)| root == name)?;
                Some(Path { member, fields: Vec::new() })
            }
            Expr::Select(select) if !select.test => {
                let mut path = Path::read(&select.operand)?;
                path.fields.push(select.field.clone());
                Some(path)
            }
            _ => None,
        }
    }

    fn find<'f>(&self, facts: &'f Facts) -> Option<&'f Value> {
        self.fields.iter().try_fold(facts.get(self.member)?, |value, field| value.as_object()?.get(field))
    }

    fn has(&self, facts: &Facts) -> Option<bool> {
        let (last, before) = self.fields.split_last()?;
        let Some(root) = facts.get(self.member) else {
            // an object that the event does not have is an empty one
            return (before.is_empty() && OBJECTS.contains(&self.member)).then_some(false);
        };
        let inside = before.iter().try_fold(root, |value, field| value.as_object()?.get(field))?;
        Some(inside.as_object()?.contains_key(last))
    }
}

fn literal(expr: &IdedExpr) -> Option<String> {
    match &expr.expr {
        Expr::Literal(LiteralValue::String(text)) => Some(text.inner().to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Condition, Fit};
    use super::*;
    use crate::facts::{GateEvent, Head};
    use proptest::prelude::*;
    use proptest::sample::select;
    use serde_json::json;

    /// Parts of conditions, most of them answerable for most events.
    fn condition() -> impl Strategy<Value = String> {
        let path =
            select(vec!["toolName", "toolInput.a", "toolInput.b.c", "toolOutput.a", "rawInput", "tenant_id"]);
        let text = select(vec!["", "x", "exec", "xy"]);
        let comparison = (path, select(vec!["==", "!=", "startsWith", "endsWith", "contains"]), text)
            .prop_map(|(path, how, text)| match how {
                "==" => format!("'{text}' == {path}"),
                "!=" => format!("{path} != '{text}'"),
                _ => format!("{path}.{how}('{text}')"),
            });
        let has =
            select(vec!["has(toolInput.a)", "has(toolInput.b.c)", "has(toolOutput.a)", "has(subagent.a.b)"])
                .prop_map(str::to_owned);
        prop_oneof![3 => comparison, 1 => has].prop_recursive(3, 8, 2, |inner| {
            prop_oneof![
                (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a} && {b})")),
                (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a} || {b})")),
                inner.prop_map(|a| format!("!({a})")),
            ]
        })
    }

    fn input() -> impl Strategy<Value = Value> {
        let leaf = select(vec![
            json!("x"),
            json!(""),
            json!("xy"),
            json!(null),
            json!(1),
            json!(["x"]),
            json!({"c": "x"}),
        ]);
        (proptest::option::of(leaf.clone()), proptest::option::of(leaf)).prop_map(|(a, b)| {
            let mut members = serde_json::Map::new();
            a.map(|a| members.insert("a".into(), a));
            b.map(|b| members.insert("b".into(), b));
            Value::Object(members)
        })
    }

    fn facts(tool_input: Value) -> Facts {
        Facts::of_gate(&Head::default(), GateEvent::PreToolUse { tool_name: "exec".into(), tool_input })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn it_answers_only_what_cel_answers(source in condition(), input in input()) {
            let condition = Condition::parse(&source).unwrap();
            let quick = condition.quick.as_ref().expect("the plain form");
            let facts = facts(input);
            if let Some(answer) = quick.answer(&facts) {
                let cel = condition.interpreted(&facts, &mut super::super::Bound::default());
                prop_assert_eq!(cel, if answer { Fit::Yes } else { Fit::No }, "{}", source);
            }
        }
    }

    #[test]
    fn the_usual_conditions_are_plain() {
        let facts = facts(json!({"path": "/etc/x"}));
        for (source, want) in [
            ("toolInput.path.startsWith('/etc')", Some(true)),
            ("toolName == 'exec' && !toolInput.path.contains('..')", Some(true)),
            ("has(toolInput.command) && toolInput.command.contains('rm')", Some(false)),
            ("toolInput.command.contains('rm')", None),
        ] {
            let condition = Condition::parse(source).unwrap();
            assert_eq!(condition.quick.unwrap().answer(&facts), want, "{source}");
        }
        assert!(Condition::parse("toolInput.n > 3").unwrap().quick.is_none());
        assert!(Condition::parse("toolInput.flags.exists(f, f == 'x')").unwrap().quick.is_none());
    }
}
