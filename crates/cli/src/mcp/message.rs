//! One line of the protocol, looked at only as far as the hooks need it. What is not looked at is never written anew.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::borrow::Cow;

/// What a line is.
#[derive(Debug)]
pub(super) enum Kind {
    /// Nothing that hooks see.
    Other,
    /// Calls of tools, among other things perhaps.
    Calls(Vec<Item>),
    /// Not a message: it must not reach a reader who may take it for one.
    Unreadable(&'static str),
}

/// One message of a line.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Item {
    /// To be passed on as it is.
    Other(String),
    /// A call of a tool.
    Call(Call),
}

/// A call of a tool.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Call {
    /// The whole message as it came.
    pub(super) text: String,
    /// Its id as it was written, so that 1 and "1" stay two; none: a notification, which nobody answers.
    pub(super) id: Option<String>,
    pub(super) tool: String,
    pub(super) arguments: Value,
}

/// An answer of the server.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Reply {
    pub(super) id: String,
    /// The result, or what went wrong.
    pub(super) result: Result<Value, String>,
}

/// The members that tell what a message is. A member that is written twice is an error: two readers may take either.
#[derive(Deserialize)]
struct Head<'a> {
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Params<'a> {
    #[serde(borrow)]
    name: Option<Cow<'a, str>>,
    arguments: Option<Value>,
}

/// What a line of the client is.
pub(super) fn of_client(line: &str) -> Kind {
    let text = line.trim();
    if text.is_empty() {
        return Kind::Other;
    }
    let items = if text.starts_with('[') {
        let Ok(batch) = serde_json::from_str::<Vec<&RawValue>>(text) else {
            return Kind::Unreadable("it is not JSON");
        };
        batch.into_iter().map(|item| item_of(item.get())).collect::<Result<Vec<Item>, _>>()
    } else {
        item_of(text).map(|item| vec![item])
    };
    match items {
        Ok(items) if items.iter().any(|item| matches!(item, Item::Call(_))) => Kind::Calls(items),
        Ok(_) => Kind::Other,
        Err(why) => Kind::Unreadable(why),
    }
}

fn item_of(text: &str) -> Result<Item, &'static str> {
    let head: Head<'_> = serde_json::from_str(text).map_err(|_| "it is no message")?;
    if head.method.as_deref() != Some("tools/call") {
        return Ok(Item::Other(text.to_owned()));
    }
    let params = head.params.map_or("{}", RawValue::get);
    let params: Params<'_> = serde_json::from_str(params).map_err(|_| "its params cannot be read")?;
    Ok(Item::Call(Call {
        text: text.to_owned(),
        id: head.id.map(|id| id.get().to_owned()),
        tool: params.name.map(Cow::into_owned).unwrap_or_default(),
        arguments: params.arguments.unwrap_or_else(|| json!({})),
    }))
}

/// The answers in a line of the server; whatever cannot be read is none.
pub(super) fn of_server(line: &str) -> Vec<Reply> {
    let text = line.trim();
    if text.starts_with('[') {
        let batch: Vec<&RawValue> = serde_json::from_str(text).unwrap_or_default();
        return batch.into_iter().filter_map(|item| reply_of(item.get())).collect();
    }
    reply_of(text).into_iter().collect()
}

fn reply_of(text: &str) -> Option<Reply> {
    let head: Head<'_> = serde_json::from_str(text).ok()?;
    let id = head.id.filter(|_| head.method.is_none())?.get().to_owned();
    let words = |value: &Value| match value.get("content").and_then(Value::as_array) {
        Some(parts) => {
            parts.iter().filter_map(|part| part.get("text")?.as_str()).collect::<Vec<_>>().join("\n")
        }
        None => value.get("message").and_then(Value::as_str).unwrap_or_default().to_owned(),
    };
    let value = |raw: &RawValue| serde_json::from_str::<Value>(raw.get()).unwrap_or_default();
    let result = match (head.result.map(value), head.error.map(value)) {
        (Some(result), _) if result.get("isError") == Some(&Value::Bool(true)) => Err(words(&result)),
        (Some(result), _) => Ok(result),
        (None, Some(error)) => Err(words(&error)),
        (None, None) => return None,
    };
    Some(Reply { id, result })
}

/// The answer to a call that a hook stopped: a result, because models read results.
pub(super) fn refusal(id: &str, reason: &str) -> String {
    let result = json!({"content": [{"type": "text", "text": reason}], "isError": true});
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}")
}

/// The answer to what is no message.
pub(super) fn unreadable(why: &str) -> String {
    let error = json!({"code": -32700, "message": format!("hookgate does not pass this on: {why}")});
    format!("{{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{error}}}")
}

impl Call {
    /// The message with other arguments; none if it cannot be written.
    pub(super) fn with_arguments(&self, arguments: Value) -> Option<String> {
        let mut message: Value = serde_json::from_str(&self.text).ok()?;
        message.get_mut("params")?.as_object_mut()?.insert("arguments".into(), arguments);
        Some(message.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(line: &str) -> String {
        match of_client(line) {
            Kind::Other => "other".into(),
            Kind::Unreadable(why) => why.into(),
            Kind::Calls(items) => items
                .iter()
                .map(|item| match item {
                    Item::Other(_) => "other".to_owned(),
                    Item::Call(call) => format!("{}#{}", call.tool, call.id.as_deref().unwrap_or("none")),
                })
                .collect::<Vec<_>>()
                .join(" "),
        }
    }

    #[test]
    fn calls_are_found_however_they_are_written() {
        for (line, want) in [
            (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}}"#, "a#1"),
            (r#"{"id":"1","method":"tools\/call","params":{"name":"a"}}"#, "a#\"1\""),
            (r#"{"id":1,"method":"\u0074ools/call","params":{"name":"a"}}"#, "a#1"),
            (r#"{"method":"tools/call"}"#, "#none"),
            (
                r#"[{"id":1,"method":"ping"},{"id":2,"method":"tools/call","params":{"name":"b"}}]"#,
                "other b#2",
            ),
            (r#"{"id":1,"method":"tools/list"}"#, "other"),
            (r#"{"id":1,"result":{"x":"tools/call"}}"#, "other"),
            ("", "other"),
            ("nonsense", "it is no message"),
            (r#"{"method":"ping","method":"tools/call"}"#, "it is no message"),
            (
                r#"{"id":1,"method":"tools/call","params":{"name":"a","name":"b"}}"#,
                "its params cannot be read",
            ),
            ("[1", "it is not JSON"),
        ] {
            assert_eq!(kind(line), want, "{line}");
        }
    }

    #[test]
    fn answers_are_found() {
        let replies = |line: &str| {
            of_server(line).into_iter().map(|reply| (reply.id, reply.result)).collect::<Vec<_>>()
        };
        let ok = r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#;
        assert_eq!(replies(ok), [("1".to_owned(), Ok(json!({"content": []})))]);
        let failed =
            r#"{"id":"a","result":{"isError":true,"content":[{"type":"text","text":"no such file"}]}}"#;
        assert_eq!(replies(failed), [("\"a\"".to_owned(), Err("no such file".to_owned()))]);
        let error = r#"[{"id":2,"error":{"code":1,"message":"m"}},{"method":"x"}]"#;
        assert_eq!(replies(error), [("2".to_owned(), Err("m".to_owned()))]);
        assert!(replies(r#"{"id":1,"method":"sampling/createMessage","params":{}}"#).is_empty());
        assert!(replies("log line").is_empty());
    }
}
