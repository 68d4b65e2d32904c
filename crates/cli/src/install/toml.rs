//! TOML settings, edited in place: `[[hooks.EVENT]]` with `[[hooks.EVENT.hooks]]` below.

use super::json::Items;
use super::line::holds_ours;
use serde_json::{Map, Value};
use toml_edit::{Array, ArrayOfTables, DocumentMut, InlineTable, Item, Table};

/// Puts items into a file's text. The error is one sentence.
pub(super) fn add(name: &str, text: &str, items: &Items) -> Result<String, String> {
    let mut document = parse(name, text)?;
    let hooks = document.entry("hooks").or_insert_with(|| {
        let mut table = Table::new();
        table.set_implicit(true);
        Item::Table(table)
    });
    let hooks = hooks.as_table_mut().ok_or_else(|| format!("{name}: `hooks` is no table"))?;
    for (event, item) in items {
        let list = hooks.entry(event).or_insert_with(|| Item::ArrayOfTables(ArrayOfTables::new()));
        let list = list
            .as_array_of_tables_mut()
            .ok_or_else(|| format!("{name}: `hooks.{event}` is no list of tables"))?;
        let mut table = Table::new();
        for (key, value) in item.as_object().into_iter().flatten() {
            table.insert(key, Item::Value(value_of(value)));
        }
        list.push(table);
    }
    Ok(document.to_string())
}

/// Our items in a file's text.
pub(super) fn ours(name: &str, text: &str, agent: &str) -> Result<Items, String> {
    let document = parse(name, text)?;
    let mut items = Vec::new();
    for (event, list) in document.get("hooks").and_then(Item::as_table).into_iter().flat_map(Table::iter) {
        for table in list.as_array_of_tables().into_iter().flatten() {
            let value = table_value(table);
            if holds_ours(&value, agent) {
                items.push((event.to_owned(), value));
            }
        }
    }
    Ok(items)
}

/// Takes our items out, and what is empty then.
pub(super) fn remove(name: &str, text: &str, agent: &str) -> Result<String, String> {
    let mut document = parse(name, text)?;
    let Some(hooks) = document.get_mut("hooks").and_then(Item::as_table_mut) else {
        return Ok(text.to_owned());
    };
    let mut empty = Vec::new();
    for (event, list) in hooks.iter_mut() {
        if let Some(list) = list.as_array_of_tables_mut() {
            list.retain(|table| !holds_ours(&table_value(table), agent));
            if list.is_empty() {
                empty.push(event.get().to_owned());
            }
        }
    }
    for event in empty {
        hooks.remove(&event);
    }
    if hooks.is_empty() {
        document.remove("hooks");
    }
    Ok(document.to_string())
}

/// A switch in a file's text, if it is set.
pub(super) fn switch(name: &str, text: &str, keys: &[&str]) -> Result<Option<bool>, String> {
    let document = parse(name, text)?;
    let mut item = document.as_item();
    for key in keys {
        match item.get(key) {
            Some(inner) => item = inner,
            None => return Ok(None),
        }
    }
    Ok(item.as_bool())
}

fn parse(name: &str, text: &str) -> Result<DocumentMut, String> {
    text.parse::<DocumentMut>().map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        let line = text.get(..at).unwrap_or_default().matches('\n').count().saturating_add(1);
        let what = error.message().trim().replace('\n', ", ");
        format!("{name}:{line}: line {line} is not TOML ({what}); the file is left as it is")
    })
}

fn table_value(table: &Table) -> Value {
    let members = table.iter().map(|(key, item)| {
        let value = match item {
            Item::Value(value) => json_of(value),
            Item::Table(inner) => table_value(inner),
            Item::ArrayOfTables(list) => Value::Array(list.iter().map(table_value).collect()),
            Item::None => Value::Null,
        };
        (key.to_owned(), value)
    });
    Value::Object(members.collect::<Map<String, Value>>())
}

fn json_of(value: &toml_edit::Value) -> Value {
    match value {
        toml_edit::Value::String(text) => text.value().as_str().into(),
        toml_edit::Value::Integer(number) => (*number.value()).into(),
        toml_edit::Value::Float(number) => (*number.value()).into(),
        toml_edit::Value::Boolean(word) => (*word.value()).into(),
        toml_edit::Value::Datetime(time) => time.value().to_string().into(),
        toml_edit::Value::Array(items) => Value::Array(items.iter().map(json_of).collect()),
        toml_edit::Value::InlineTable(table) => {
            Value::Object(table.iter().map(|(key, value)| (key.to_owned(), json_of(value))).collect())
        }
    }
}

fn value_of(value: &Value) -> toml_edit::Value {
    match value {
        Value::Bool(word) => (*word).into(),
        Value::Number(number) => number.as_i64().unwrap_or(i64::MAX).into(),
        Value::String(text) => text.as_str().into(),
        Value::Array(items) => toml_edit::Value::Array(items.iter().map(value_of).collect::<Array>()),
        Value::Object(members) => {
            let mut table = InlineTable::new();
            for (key, value) in members {
                table.insert(key, value_of(value));
            }
            toml_edit::Value::InlineTable(table)
        }
        Value::Null => "".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_not_ours_stays() {
        let text = "# mine\nmodel = \"x\" # this one\n\n[[hooks.Stop]]\nhooks = [{ type = \"command\", command = \"other.sh\" }]\n";
        let item =
            json!({"hooks": [{"type": "command", "command": "/x/hookgate hook codex Stop", "timeout": 30}]});
        let items = vec![("PreToolUse".to_owned(), item.clone()), ("Stop".to_owned(), item)];
        for text in [text, ""] {
            let with = add("c.toml", text, &items).unwrap();
            let mut found = ours("c.toml", &with, "codex").unwrap();
            found.sort_by(|a, b| a.0.cmp(&b.0));
            assert_eq!(found, items, "{with}");
            assert_eq!(remove("c.toml", &with, "codex").unwrap(), text);
        }
        let error = add("c.toml", "a = \n", &items).unwrap_err();
        assert!(error.starts_with("c.toml:1: line 1 is not TOML"), "{error}");
    }
}
