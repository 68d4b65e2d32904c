//! Writes what happened into the `expect`s of a test file. Comments, order and all that is not changed stay as they are.

use super::run::{Fault, TestReport};
use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstNode, CstObject, CstRootNode};
use serde_json::{Map, Value};

/// The text of a test file with what happened in the tests that failed. `None`: there is nothing to change.
///
/// # Errors
/// The text is no test file any more; one sentence.
pub fn rewrite(text: &str, tests: &[TestReport]) -> Result<Option<String>, String> {
    let mut changed = false;
    let (bom, rest) = match text.strip_prefix('\u{feff}') {
        Some(rest) => ("\u{feff}", rest),
        None => ("", text),
    };
    let root = CstRootNode::parse(rest, &options()).map_err(|error| error.to_string())?;
    let list = match root.object_value() {
        Some(file) => file.array_value("tests"),
        None => root.array_value(),
    };
    let items = list.ok_or("the list of tests is gone")?.elements();
    for test in tests.iter().filter(|test| !test.passed() && is_known(test)) {
        let gone = || format!("the test `{}` is gone", test.name);
        let item = items.get(test.index).and_then(CstNode::as_object).ok_or_else(gone)?;
        for (place, found) in test.found_by_step.iter().enumerate() {
            let new = news(test, Some(place), || found.worth_writing());
            if !new.is_empty() {
                let steps = item.array_value("session").ok_or_else(gone)?.elements();
                write(&steps.get(place).and_then(CstNode::as_object).ok_or_else(gone)?, &new);
                changed = true;
            }
        }
        let new = news(test, None, || test.found.worth_writing());
        if !new.is_empty() {
            write(&item, &new);
            changed = true;
        }
    }
    Ok(changed.then(|| format!("{bom}{root}")))
}

/// Whether what happened is what would happen: not where a handler had no answer to give.
pub fn is_known(test: &TestReport) -> bool {
    !test.faults.iter().any(|fault| matches!(fault, Fault::NoAnswer { .. } | Fault::BrokeOff))
}

/// The fields that are to be written for a step, or for the whole test; `null`: the field is to go.
fn news(
    test: &TestReport,
    step: Option<usize>,
    all: impl FnOnce() -> Map<String, Value>,
) -> Map<String, Value> {
    if test.faults.iter().any(|fault| *fault == Fault::ExpectsNothing { step }) {
        return all();
    }
    let of_step = |fault: &Fault| match fault {
        Fault::Differs { step: about, difference } if *about == step => {
            Some((difference.field.to_owned(), difference.found.clone()))
        }
        _ => None,
    };
    let mut new: Map<String, Value> = test.faults.iter().filter_map(of_step).collect();
    // what only blocks have goes with the block, and comes with it
    if new.get("decision").is_some_and(|decision| decision == "allow") {
        new.extend(["hook", "reason", "cause"].map(|name| (name.to_owned(), Value::Null)));
    }
    new
}

fn write(item: &CstObject, new: &Map<String, Value>) {
    let expect = item.object_value_or_set("expect");
    for (name, value) in new {
        // a changed input that is expected to be none is written as null
        let goes = value.is_null() && name != "updatedInput";
        match expect.get(name) {
            Some(property) if goes => property.remove(),
            Some(property) => property.set_value(input(value)),
            None if goes => {}
            None => {
                expect.append(name, input(value));
            }
        }
    }
}

fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(flag) => CstInputValue::Bool(*flag),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(items) => CstInputValue::Array(items.iter().map(input).collect()),
        Value::Object(members) => {
            CstInputValue::Object(members.iter().map(|(name, value)| (name.clone(), input(value))).collect())
        }
    }
}

/// What a test file may have beside strict JSON: comments.
fn options() -> ParseOptions {
    ParseOptions {
        allow_comments: true,
        allow_loose_object_property_names: false,
        allow_trailing_commas: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test::expect::Difference;
    use crate::test::found::Found;
    use serde_json::json;
    use std::time::Duration;

    fn failed(faults: Vec<Fault>) -> TestReport {
        TestReport {
            name: "a".into(),
            index: 0,
            faults,
            found: Found::of(&[]),
            found_by_step: vec![Found::of(&[])],
            events: Vec::new(),
            took: Duration::ZERO,
        }
    }

    fn differs(step: Option<usize>, field: &'static str, found: Value) -> Fault {
        Fault::Differs { step, difference: Difference { field, expected: Value::Null, found } }
    }

    #[track_caller]
    fn check(text: &str, faults: Vec<Fault>, want: Option<&str>) {
        assert_eq!(rewrite(text, &[failed(faults)]).unwrap().as_deref(), want);
    }

    #[test]
    fn only_what_differs_is_written() {
        let text = "// why\n[\n    { \"name\": \"a\", \"event\": {}, \"expect\": { \"decision\": \"block\", \"hook\": \"h\" } } // end\n]\n";
        check(
            text,
            vec![differs(None, "decision", json!("allow")), differs(None, "hook", Value::Null)],
            Some(
                "// why\n[\n    { \"name\": \"a\", \"event\": {}, \"expect\": { \"decision\": \"allow\" } } // end\n]\n",
            ),
        );
        check(text, vec![], None);
        let no_answer = Fault::NoAnswer { hook: "h".into(), kind: "http" };
        check(text, vec![differs(None, "decision", json!("allow")), no_answer], None);
    }

    #[test]
    fn an_empty_expect_is_filled() {
        let text = |expect: &str| {
            let lines = ["{", r#"    "tests": ["#, "        {", r#"            "name": "a","#];
            format!("{}\n            \"expect\": {expect}\n        }}\n    ]\n}}\n", lines.join("\n"))
        };
        let filled = [
            "{",
            r#"                "decision": "allow","#,
            r#"                "hooks": []"#,
            "            }",
        ];
        check(&text("{}"), vec![Fault::ExpectsNothing { step: None }], Some(&text(&filled.join("\n"))));
    }

    #[test]
    fn steps_are_found() {
        check(
            "[{\"name\": \"a\", \"session\": [{\"expect\": {\"hooks\": []}}]}]",
            vec![differs(Some(0), "hooks", json!(["x"]))],
            Some("[{\"name\": \"a\", \"session\": [{\"expect\": {\"hooks\": [\"x\"]}}]}]"),
        );
    }
}
