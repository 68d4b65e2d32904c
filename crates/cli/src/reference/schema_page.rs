//! A JSON Schema as a page. A field without a text is a fault.

use serde_json::{Map, Value};

/// The order in which the definitions of a hook file are told; a test counts that none is left out.
const HOOKS: [&str; 4] = ["ChatHook", "StreamHook", "ToolHook", "LifecycleHook"];
const ACTIONS: [&str; 6] = [
    "LogAction",
    "InterruptAction",
    "QueueMessageAction",
    "QueueResendAction",
    "RedactAction",
    "BlockAction",
];
const HEADINGS: [(&str, &str); 10] = [
    ("ChatHook", "JSON hooks on messages"),
    ("StreamHook", "JSON hooks on a stream"),
    ("ToolHook", "JSON hooks on tools"),
    ("LifecycleHook", "Lifecycle hooks"),
    ("LogAction", "log, warn, info, debug"),
    ("InterruptAction", "interrupt"),
    ("QueueMessageAction", "queue-message"),
    ("QueueResendAction", "queue-resend"),
    ("RedactAction", "redact"),
    ("BlockAction", "block"),
];

/// The page of hook files.
pub(super) fn hooks(title: &str, intro: &str, schema: &Value) -> String {
    let definitions = schema["$defs"].as_object().unwrap();
    let mut text = format!("# {title}\n\n{intro}\n");
    for name in HOOKS {
        part("##", name, definitions, &mut text);
    }
    text.push_str("\n## Actions\n\nWhat a JSON hook does, in order, told by `type`.\n");
    for name in ACTIONS {
        part("###", name, definitions, &mut text);
    }
    text.push_str("\n## Handlers\n\nWho answers for a lifecycle hook, told by `type`. Their contracts have pages of their own:\n");
    text.push_str(
        "[script](../handlers/script.md), [command](../handlers/command.md), [http](../handlers/http.md), ",
    );
    text.push_str("[prompt](../handlers/prompt.md).\n");
    for handler in definitions["HandlerDef"]["oneOf"].as_array().unwrap() {
        let name = handler["properties"]["type"]["const"].as_str().unwrap();
        text.push_str(&format!("\n### {name}\n\n{}\n", described(handler, name)));
        fields(handler, definitions, &mut text);
    }
    let told = HOOKS.len() + ACTIONS.len();
    let objects = definitions.values().filter(|one| one["type"] == "object").count();
    assert_eq!(told, objects, "a kind of hook or action is not on the page");
    text
}

fn part(level: &str, name: &str, definitions: &Map<String, Value>, text: &mut String) {
    let (_, heading) = HEADINGS.iter().find(|(known, _)| *known == name).unwrap();
    let definition = &definitions[name];
    text.push_str(&format!("\n{level} {heading}\n\n{}\n", described(definition, name)));
    fields(definition, definitions, text);
}

/// The page of a configuration file: a part for each table, and for each table within.
pub(super) fn tables(title: &str, intro: &str, schema: &Value) -> String {
    let empty = Map::new();
    let definitions = schema["$defs"].as_object().unwrap_or(&empty);
    let mut text = format!("# {title}\n\n{intro}\n");
    for (name, field) in schema["properties"].as_object().unwrap() {
        table(name, field, definitions, &mut text);
    }
    text
}

fn table(path: &str, field: &Value, definitions: &Map<String, Value>, text: &mut String) {
    let (inner, many) = match field["items"].is_object() {
        true => (definition(&field["items"], definitions), true),
        false => (definition(field, definitions), false),
    };
    let heading = if many { format!("[[{path}]]") } else { format!("[{path}]") };
    text.push_str(&format!("\n## `{heading}`\n\n{}\n", described(field, path)));
    let Some(properties) = inner["properties"].as_object() else { return };
    fields(inner, definitions, text);
    for (name, field) in properties {
        let inner = definition(if field["items"].is_object() { &field["items"] } else { field }, definitions);
        if inner["properties"].is_object() {
            table(&format!("{path}.{name}"), field, definitions, text);
        }
    }
}

/// The table of an object's fields.
fn fields(object: &Value, definitions: &Map<String, Value>, text: &mut String) {
    let Some(properties) = object["properties"].as_object() else { return };
    let required: Vec<&str> =
        object["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    text.push_str("\n| field | value | |\n|---|---|---|\n");
    for (name, field) in properties {
        if name == "type" && field["const"].is_string() {
            continue;
        }
        let must = if required.contains(&name.as_str()) { " Required." } else { "" };
        let what = described(resolved(field, definitions), name);
        let default = match &field["default"] {
            // the text says it better
            _ if what.contains("[default: ") => String::new(),
            Value::String(word) => format!(" [default: {word}]"),
            Value::Bool(word) => format!(" [default: {word}]"),
            _ => String::new(),
        };
        text.push_str(&format!(
            "| `{name}` | {} | {}{default}{must} |\n",
            cell(&value(field, definitions)),
            cell(&what)
        ));
    }
}

/// What may stand there, in a word or as the words that are allowed.
fn value(field: &Value, definitions: &Map<String, Value>) -> String {
    let field = definition(field, definitions);
    if let Some(words) = words(field) {
        return words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(" ");
    }
    if let Some(word) = field["const"].as_str() {
        return format!("`{word}`");
    }
    let kind = match &field["type"] {
        Value::String(kind) => kind.as_str(),
        // an optional key: the type and null
        Value::Array(kinds) => {
            kinds.iter().filter_map(Value::as_str).find(|kind| *kind != "null").unwrap_or_default()
        }
        _ => "",
    };
    match kind {
        "string" => "text".into(),
        "integer" => match (&field["minimum"], &field["maximum"]) {
            (low, high) if high.is_number() && field["format"] != "uint32" => format!("{low} to {high}"),
            _ => "whole number".into(),
        },
        "number" => "number".into(),
        "boolean" => "true or false".into(),
        "array" => {
            let items = value(&field["items"], definitions);
            if items.starts_with('`') {
                format!("list of {items}")
            } else {
                format!("list of {}", plural(&items))
            }
        }
        "object" if field["properties"].is_object() => "table".into(),
        "object" => "object".into(),
        _ if field["anyOf"].is_array() => "object".into(),
        _ if field["oneOf"].is_array() => "object".into(),
        _ => panic!("no word for the value {field}"),
    }
}

fn plural(word: &str) -> &str {
    match word {
        "text" => "texts",
        "object" => "objects",
        "table" => "tables",
        other => other,
    }
}

/// The words of an enumeration, as schemars writes one.
fn words(field: &Value) -> Option<Vec<&str>> {
    if let Some(list) = field["enum"].as_array() {
        return list.iter().map(Value::as_str).collect();
    }
    field["oneOf"].as_array()?.iter().map(|one| one["const"].as_str()).collect()
}

/// The definition that a field points to; an optional one points there or to null.
fn definition<'a>(field: &'a Value, definitions: &'a Map<String, Value>) -> &'a Value {
    let pointed = |field: &'a Value| {
        let name = field["$ref"].as_str()?.strip_prefix("#/$defs/")?;
        definitions.get(name)
    };
    let optional = || field["anyOf"].as_array()?.iter().find_map(pointed);
    pointed(field).or_else(optional).unwrap_or(field)
}

/// The field where it has a text of its own, else what it points to.
fn resolved<'a>(field: &'a Value, definitions: &'a Map<String, Value>) -> &'a Value {
    if field["description"].is_string() { field } else { definition(field, definitions) }
}

fn described(value: &Value, name: &str) -> String {
    let text = value["description"].as_str().unwrap_or_else(|| panic!("`{name}` has no text"));
    text.replace('\n', " ")
}

/// A text that neither ends a table's cell nor begins an element.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('<', "&lt;").replace('\n', " ")
}
