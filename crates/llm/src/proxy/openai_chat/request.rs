//! What stands in a request, and changes of it.

use serde_json::{Map, Value, json};

use crate::proxy::request::{member_mut, place, replace_text, stream_flag, texts_of};
use crate::proxy::{Asked, Call, Odd, Place, RequestChange, Said, What};
use crate::wire::json::{self, list, text};

pub(super) fn asked(path: &str, body: &Value) -> Result<Asked, Odd> {
    let messages = body.get("messages").and_then(Value::as_array);
    let messages = messages.ok_or_else(|| Odd("the request has no list of messages".into()))?;
    let said = messages.iter().enumerate().map(|(at, message)| said(at, message));
    Ok(Asked {
        model: text(body, "model").or_else(|| deployment(path)).unwrap_or_default().to_owned(),
        stream: stream_flag(body)?,
        messages: said.collect::<Result<_, _>>()?,
        session: None,
        n_answers: json::count(body, &["n"]).unwrap_or(1),
    })
}

/// The model of a path such as `/openai/deployments/NAME/chat/completions`.
fn deployment(path: &str) -> Option<&str> {
    path.split_once("/deployments/")?.1.split('/').next()
}

fn said(at: usize, message: &Value) -> Result<Said, Odd> {
    let role = message.get("role").and_then(Value::as_str);
    let role = role.ok_or_else(|| Odd(format!("message {at} has no role")))?;
    let content = match message.get("content") {
        Some(content) => texts_of(content).ok_or_else(|| Odd(format!("message {at} has odd content")))?,
        None => String::new(),
    };
    let what = match role {
        "system" | "developer" => What::System(content),
        "assistant" => {
            let legacy = message.get("function_call").filter(|call| call.is_object());
            let calls = list(message, "tool_calls").iter().map(call).chain(legacy.map(call)).collect();
            let refusal = text(message, "refusal").unwrap_or_default();
            What::Assistant { text: content + refusal, calls }
        }
        "tool" | "function" => What::Result {
            call_id: text(message, "tool_call_id").unwrap_or_default().to_owned(),
            name: text(message, "name").map(str::to_owned),
            output: content,
            is_error: false,
        },
        // `user`, and the words of servers that know more.
        _ => What::User(content),
    };
    Ok(Said { place: Place { message: at, part: None }, what })
}

fn call(entry: &Value) -> Call {
    let body = super::chunk::call_member(entry).and_then(|member| entry.get(member)).unwrap_or(entry);
    let arguments = match body.get("arguments").or_else(|| body.get("input")) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(whole) => whole.to_string(),
    };
    let of = |value: &Value, name| text(value, name).unwrap_or_default().to_owned();
    Call { id: of(entry, "id"), name: of(body, "name"), arguments }
}

pub(super) fn change(body: &mut Value, changes: &[RequestChange]) -> Result<(), Odd> {
    for change in changes {
        let messages = member_mut(body, "messages")?;
        match change {
            RequestChange::UserText { place: at, text } => {
                let message = place(messages, at.message)?;
                replace_text(
                    message.entry("content").or_insert(Value::Null),
                    text,
                    &|text| json!({ "type": "text", "text": text }),
                );
            }
            RequestChange::Append { role, text } => append(messages, role, text),
            RequestChange::From(_) => {}
            RequestChange::Echo(said) => messages.extend(said.iter().cloned()),
            RequestChange::Result { call, output, .. } => {
                let result = result(messages, call, output);
                messages.push(result);
            }
        }
    }
    Ok(())
}

fn append(messages: &mut Vec<Value>, role: &str, text: &str) {
    match role {
        "tool" => {
            let id = format!("call_hookgate_{}", messages.len());
            let function = json!({ "name": "hook", "arguments": "{}" });
            let call = json!({ "id": id, "type": "function", "function": function });
            messages.push(json!({ "role": "assistant", "content": null, "tool_calls": [call] }));
            messages.push(json!({ "role": "tool", "tool_call_id": id, "content": text }));
        }
        // Providers take no thoughts that they did not sign; as words of the model they are welcome.
        "assistant" | "reasoning" => messages.push(json!({ "role": "assistant", "content": text })),
        _ => messages.push(json!({ "role": "user", "content": text })),
    }
}

fn result(messages: &[Value], call: &Call, output: &str) -> Value {
    let last = messages.iter().rev().find(|message| text(message, "role") == Some("assistant"));
    let legacy =
        last.is_some_and(|last| last.get("function_call").is_some() && last.get("tool_calls").is_none());
    let mut message = Map::new();
    if legacy {
        message.insert("role".into(), "function".into());
        message.insert("name".into(), call.name.as_str().into());
    } else {
        message.insert("role".into(), "tool".into());
        message.insert("tool_call_id".into(), call.id.as_str().into());
    }
    message.insert("content".into(), output.into());
    Value::Object(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_was_said_is_read() {
        let body = json!({
            "model": "m", "stream": true,
            "messages": [
                {"role": "developer", "content": "be kind"},
                {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,x"}},
                    {"type": "text", "text": "for"}, {"type": "text", "text": "bid"}]},
                {"role": "assistant", "content": null,
                    "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "sh", "arguments": "{}"}},
                        {"id": "c2", "type": "custom", "custom": {"name": "free", "input": "x"}}]},
                {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "ok"}]},
                {"role": "observation", "content": "odd role"},
            ],
        });
        let asked = asked("/v1/chat/completions", &body).unwrap();
        assert_eq!((asked.model.as_str(), asked.stream), ("m", true));
        let call = |id: &str, name: &str, arguments: &str| Call {
            id: id.into(),
            name: name.into(),
            arguments: arguments.into(),
        };
        let expected = [
            What::System("be kind".into()),
            What::User("forbid".into()),
            What::Assistant {
                text: String::new(),
                calls: vec![call("c1", "sh", "{}"), call("c2", "free", "x")],
            },
            What::Result { call_id: "c1".into(), name: None, output: "ok".into(), is_error: false },
            What::User("odd role".into()),
        ];
        assert_eq!(asked.messages.iter().map(|said| said.what.clone()).collect::<Vec<_>>(), expected);
        assert!(
            asked
                .messages
                .iter()
                .enumerate()
                .all(|(at, said)| said.place == Place { message: at, part: None })
        );
    }

    #[test]
    fn what_cannot_be_read_is_odd() {
        for body in [
            json!({}),
            json!({"messages": "x"}),
            json!({"messages": ["x"]}),
            json!({"messages": [{"content": "x"}]}),
            json!({"messages": [{"role": "user", "content": 1}]}),
            json!({"messages": [], "stream": "yes"}),
        ] {
            assert!(asked("", &body).is_err(), "{body}");
        }
        let named = asked("/openai/deployments/gpt/chat/completions", &json!({"messages": []})).unwrap();
        assert_eq!(named.model, "gpt");
    }

    #[test]
    fn changes_leave_everything_else_as_it_was() {
        let mut body = json!({"x": 1, "messages": [{"role": "user", "content": "a", "name": "n"}, {"role": "user",
            "content": [{"type": "text", "text": "b"}, {"type": "image_url", "image_url": {}}, {"type": "text", "text": "c"}]}]});
        let at = |message| Place { message, part: None };
        let call = Call { id: "c1".into(), name: "sh".into(), arguments: "{}".into() };
        let changes = [
            RequestChange::UserText { place: at(0), text: "A".into() },
            RequestChange::UserText { place: at(1), text: "B".into() },
            RequestChange::Echo(vec![json!({"role": "assistant", "content": "e"})]),
            RequestChange::Result { call, output: "no".into(), is_error: true },
            RequestChange::Append { role: "user".into(), text: "u".into() },
            RequestChange::Append { role: "tool".into(), text: "t".into() },
        ];
        change(&mut body, &changes).unwrap();
        let expected = json!({"x": 1, "messages": [
            {"role": "user", "content": "A", "name": "n"},
            {"role": "user", "content": [{"type": "text", "text": "B"}, {"type": "image_url", "image_url": {}}]},
            {"role": "assistant", "content": "e"},
            {"role": "tool", "tool_call_id": "c1", "content": "no"},
            {"role": "user", "content": "u"},
            {"role": "assistant", "content": null, "tool_calls": [{"id": "call_hookgate_5", "type": "function",
                "function": {"name": "hook", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "call_hookgate_5", "content": "t"},
        ]});
        assert_eq!(body, expected);
        let nowhere = RequestChange::UserText { place: at(70), text: String::new() };
        assert!(change(&mut body, &[nowhere]).is_err());
    }
}
