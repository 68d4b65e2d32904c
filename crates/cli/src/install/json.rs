//! JSON settings, edited in place: comments, order and everything that is not ours stay as they are.

use super::line::holds_ours;
use hookgate_agents::setup::Setup;
use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstArray, CstInputValue, CstNode, CstObject, CstRootNode};
use serde_json::Value;

/// Our items by event, in the order in which they stand.
pub(super) type Items = Vec<(String, Value)>;

/// Puts items into a file's text. The error is one sentence that names file and line.
pub(super) fn add(name: &str, text: &str, setup: &Setup, items: &Items) -> Result<String, String> {
    let (bom, root) = parse(name, text)?;
    let top = top(name, &root)?;
    if let Some(version) = setup.version() {
        match top.get("version") {
            None => {
                top.insert(0, "version", input(&version));
            }
            Some(there) if there.to_serde_value().as_ref() == Some(&version) => {}
            Some(there) => {
                let found = there.to_serde_value().unwrap_or_default();
                return Err(format!("{name}: `version` is {found}; expected {version}"));
            }
        }
    }
    let table = setup.table();
    let events =
        top.object_value_or_create(table).ok_or_else(|| format!("{name}: `{table}` is no object"))?;
    once_each(name, &events)?;
    for (event, item) in items {
        let list = events
            .array_value_or_create(event)
            .ok_or_else(|| format!("{name}: `{table}.{event}` is no list"))?;
        list.append(input(item));
    }
    Ok(format!("{bom}{root}"))
}

/// Our items in a file's text.
pub(super) fn ours(name: &str, text: &str, setup: &Setup, agent: &str) -> Result<Items, String> {
    let (_, root) = parse(name, text)?;
    let lists = lists(&top(name, &root)?, setup);
    let items = lists.iter().flat_map(|(event, list)| {
        let values = list.elements().into_iter().filter_map(|item| item.to_serde_value());
        let ours = values.filter(|value| holds_ours(value, agent));
        ours.map(|value| (event.clone(), value)).collect::<Vec<_>>()
    });
    Ok(items.collect())
}

/// Takes our items out of a file's text, and what is empty then.
pub(super) fn remove(name: &str, text: &str, setup: &Setup, agent: &str) -> Result<String, String> {
    let (bom, root) = parse(name, text)?;
    let top = top(name, &root)?;
    let is_ours = |node: &CstNode| node.to_serde_value().is_some_and(|value| holds_ours(&value, agent));
    for (event, list) in lists(&top, setup) {
        let mut touched = false;
        for item in list.elements().into_iter().filter(is_ours) {
            touched = true;
            // a group that others share keeps what is theirs
            let inner = item.as_object().and_then(|group| group.array_value("hooks"));
            match inner {
                Some(inner) if inner.elements().iter().any(|entry| !is_ours(entry)) => {
                    inner.elements().into_iter().filter(is_ours).for_each(CstNode::remove);
                }
                _ => item.remove(),
            }
        }
        if touched && list.elements().is_empty() {
            let property = top.object_value(setup.table()).and_then(|events| events.get(&event));
            property.into_iter().for_each(|property| property.remove());
        }
    }
    let empty = top.get(setup.table()).and_then(|property| property.to_serde_value());
    let empty = empty
        .is_some_and(|value| value == Value::Object(Default::default()) || value == Value::Array(vec![]));
    if empty {
        top.get(setup.table()).into_iter().for_each(|property| property.remove());
    }
    Ok(format!("{bom}{root}"))
}

/// A switch in a file's text, if it is set.
pub(super) fn switch(name: &str, text: &str, keys: &[&str]) -> Result<Option<bool>, String> {
    let (_, root) = parse(name, text)?;
    let value = root.to_serde_value().unwrap_or_default();
    Ok(keys.iter().try_fold(&value, |value, key| value.get(key)).and_then(Value::as_bool))
}

fn parse(name: &str, text: &str) -> Result<(&'static str, CstRootNode), String> {
    let (bom, text) = match text.strip_prefix('\u{feff}') {
        Some(rest) => ("\u{feff}", rest),
        None => ("", text),
    };
    let options = ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    let text = if text.trim().is_empty() { "{}\n" } else { text };
    CstRootNode::parse(text, &options).map(|root| (bom, root)).map_err(|error| {
        let (line, column) = (error.line_display(), error.column_display());
        let what = error.kind().to_string();
        format!(
            "{name}:{line}:{column}: line {line} is not JSON ({}); the file is left as it is",
            lower(&what)
        )
    })
}

fn lower(text: &str) -> String {
    let text = text.trim_end_matches('.');
    text.chars()
        .next()
        .map(|first| first.to_lowercase().chain(text.chars().skip(1)).collect())
        .unwrap_or_default()
}

fn top(name: &str, root: &CstRootNode) -> Result<CstObject, String> {
    let top = root
        .object_value()
        .ok_or_else(|| format!("{name}: the settings are no object; the file is left as it is"))?;
    once_each(name, &top)?;
    Ok(top)
}

/// Who reads the file may take either of two; so may an edit.
fn once_each(name: &str, object: &CstObject) -> Result<(), String> {
    let mut seen: Vec<String> = Vec::new();
    for key in object.properties().iter().filter_map(|property| property.decoded_name()) {
        if seen.contains(&key) {
            return Err(format!("{name}: `{key}` is written twice; the file is left as it is"));
        }
        seen.push(key);
    }
    Ok(())
}

fn lists(top: &CstObject, setup: &Setup) -> Vec<(String, CstArray)> {
    let table = setup.table();
    let events = top.object_value(table).map(|events| events.properties()).unwrap_or_default();
    events.into_iter().filter_map(|event| Some((event.decoded_name()?, event.array_value()?))).collect()
}

fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(value) => CstInputValue::Bool(*value),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(items) => CstInputValue::Array(items.iter().map(input).collect()),
        Value::Object(members) => {
            CstInputValue::Object(members.iter().map(|(name, value)| (name.clone(), input(value))).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn setup() -> &'static Setup {
        hookgate_agents::table::find("claude-code").unwrap().setup().unwrap()
    }

    fn items() -> Items {
        let item = json!({"hooks": [{"type": "command", "command": "/x/hookgate hook claude-code Stop"}]});
        vec![("Stop".to_owned(), item)]
    }

    #[test]
    fn what_is_not_ours_stays() {
        for text in [
            "{\n  // keep\n  \"theme\": \"dark\",\n  \"permissions\": { \"allow\": [\"Bash(npm run lint)\",], },\n}\n",
            "{\"env\":{\"A\":\"1\"},\"hooks\":{\"Stop\":[{\"hooks\":[{\"type\":\"command\",\"command\":\"other.sh\"}]}]}}",
            "",
            "{}",
            "\u{feff}{\r\n\t\"a\": 1\r\n}\r\n",
        ] {
            let with = add("s.json", text, setup(), &items()).unwrap();
            assert_eq!(ours("s.json", &with, setup(), "claude-code").unwrap(), items(), "{with}");
            assert_eq!(with.starts_with('\u{feff}'), text.starts_with('\u{feff}'));
            assert_eq!(with.contains("// keep"), text.contains("// keep"));
            let without = remove("s.json", &with, setup(), "claude-code").unwrap();
            assert!(ours("s.json", &without, setup(), "claude-code").unwrap().is_empty());
            let value = |text: &str| parse("s", text).unwrap().1.to_serde_value().unwrap();
            assert_eq!(value(&without), value(text), "{without}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_refused_with_its_place() {
        let refused = |text: &str, want: &str| {
            let error = add("s.json", text, setup(), &items()).unwrap_err();
            assert!(error.contains(want), "{error}");
        };
        refused("{\n  \"a\": 1\n  \"b\": 2\n}", "s.json:2:9: line 2 is not JSON (expected comma)");
        refused("# x\n{}", "s.json:1:1: line 1 is not JSON");
        refused("[]", "s.json: the settings are no object");
        refused("{\"hooks\": []}", "s.json: `hooks` is no object");
        refused("{\"hooks\": {\"Stop\": {}}}", "s.json: `hooks.Stop` is no list");
        refused("{\"hooks\": {}, \"hooks\": {}}", "s.json: `hooks` is written twice");
    }
}
