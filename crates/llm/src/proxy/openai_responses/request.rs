//! What stands in a request, and changes of it.

use serde_json::{Value, json};

use super::item::{arguments, arguments_member, tool};
use super::settle::call_id;
use crate::proxy::leaves::leaves;
use crate::proxy::request::{member_mut, output_of, place, replace_text, stream_flag, texts_of};
use crate::proxy::{Asked, Call, Odd, Place, RequestChange, Said, What};
use crate::wire::json::text;

const OUTSIDE: usize = usize::MAX;

pub(super) fn asked(body: &Value) -> Result<Asked, Odd> {
    if !body.is_object() {
        return Err(Odd("the request is no object".into()));
    }
    let mut said = Vec::new();
    let mut push = |message, part, what| said.push(Said { place: Place { message, part }, what });
    match body.get("instructions") {
        None | Some(Value::Null) => {}
        Some(Value::String(text)) => push(OUTSIDE, None, What::System(text.clone())),
        Some(_) => return Err(Odd("the instructions are no text".into())),
    }
    // What is put into a stored prompt is said by whoever asks.
    let variables = body.get("prompt").and_then(|prompt| prompt.get("variables"));
    if let Some(text) = variables.and_then(leaves) {
        push(OUTSIDE, Some(0), What::User(text));
    }
    match body.get("input") {
        None | Some(Value::Null) => {}
        Some(Value::String(text)) => push(0, None, What::User(text.clone())),
        Some(Value::Array(items)) => {
            for (at, item) in items.iter().enumerate() {
                if let Some(what) = item_said(at, item)? {
                    push(at, None, what);
                }
            }
        }
        Some(_) => return Err(Odd("the input is neither a text nor a list".into())),
    }
    let session = text(body, "previous_response_id").map(|id| format!("response:{id}"));
    let conversation = body.get("conversation").and_then(|c| c.as_str().or_else(|| text(c, "id")));
    Ok(Asked {
        model: text(body, "model").unwrap_or_default().to_owned(),
        stream: stream_flag(body)?,
        messages: said,
        session: session.or_else(|| conversation.map(|id| format!("conversation:{id}"))),
        n_answers: 1,
    })
}

fn item_said(at: usize, item: &Value) -> Result<Option<What>, Odd> {
    if !item.is_object() {
        return Err(Odd(format!("item {at} is no object")));
    }
    let kind = text(item, "type").unwrap_or("message");
    if kind == "message" {
        let content = item.get("content").unwrap_or(&Value::Null);
        let words = texts_of(content).ok_or_else(|| Odd(format!("item {at} has odd content")))?;
        return Ok(Some(match text(item, "role") {
            Some("system" | "developer") => What::System(words),
            Some("assistant") => What::Assistant { text: words, calls: Vec::new() },
            Some(_) => What::User(words),
            None => return Err(Odd(format!("item {at} has no role"))),
        }));
    }
    if let Some(member) = arguments_member(item) {
        let call = Call {
            id: call_id(item).to_owned(),
            name: tool(item).to_owned(),
            arguments: arguments(item, member),
        };
        return Ok(Some(What::Assistant { text: String::new(), calls: vec![call] }));
    }
    if kind.ends_with("_output") {
        let status = text(item, "status");
        return Ok(Some(What::Result {
            call_id: call_id(item).to_owned(),
            name: None,
            output: item.get("output").map(output_of).unwrap_or_default(),
            is_error: matches!(status, Some("failed" | "incomplete")),
        }));
    }
    Ok(None)
}

pub(super) fn change(body: &mut Value, changes: &[RequestChange]) -> Result<(), Odd> {
    for change in changes {
        if let RequestChange::UserText { place, text } = change {
            change_user(body, *place, text)?;
            continue;
        }
        if let RequestChange::From(name) = change {
            if let (Some(id), Some(members)) = (name.strip_prefix("response:"), body.as_object_mut()) {
                members.insert("previous_response_id".to_owned(), id.into());
            }
            continue;
        }
        let input = input_list(body)?;
        match change {
            RequestChange::UserText { .. } | RequestChange::From(_) => {}
            RequestChange::Append { role, text } => append(input, role, text),
            RequestChange::Echo(items) => input.extend(items.iter().cloned()),
            RequestChange::Result { call, output, is_error } => {
                let result = result(input, call, output, *is_error)?;
                input.push(result);
            }
        }
    }
    Ok(())
}

fn change_user(body: &mut Value, at: Place, new: &str) -> Result<(), Odd> {
    if at.message == OUTSIDE {
        return Err(Odd("the variables of a stored prompt are not changed".into()));
    }
    if let Some(input @ Value::String(_)) = body.get_mut("input") {
        *input = new.into();
        return Ok(());
    }
    let item = place(member_mut(body, "input")?, at.message)?;
    let content = item.entry("content").or_insert(Value::Null);
    replace_text(content, new, &|text| json!({ "type": "input_text", "text": text }));
    Ok(())
}

/// The input as a list, which it becomes if it is a text.
fn input_list(body: &mut Value) -> Result<&mut Vec<Value>, Odd> {
    if let Value::Object(members) = &mut *body {
        let input = members.entry("input").or_insert(Value::Null);
        match input {
            Value::Null => *input = json!([]),
            Value::String(text) => *input = json!([{ "type": "message", "role": "user", "content": text }]),
            _ => {}
        }
    }
    member_mut(body, "input")
}

fn append(input: &mut Vec<Value>, role: &str, text: &str) {
    match role {
        "tool" => {
            let id = format!("call_hookgate_{}", input.len());
            input.push(json!({ "type": "function_call", "call_id": id, "name": "hook", "arguments": "{}" }));
            input.push(json!({ "type": "function_call_output", "call_id": id, "output": text }));
        }
        // Thoughts are taken only as the provider wrote them; as words of the model they are welcome.
        "assistant" | "reasoning" => {
            input.push(json!({ "type": "message", "role": "assistant", "content": text }));
        }
        _ => input.push(json!({ "type": "message", "role": "user", "content": text })),
    }
}

/// The result of a call, in the form that the kind of the call wants.
fn result(input: &[Value], call: &Call, output: &str, is_error: bool) -> Result<Value, Odd> {
    let asked = input.iter().rev().find(|item| arguments_member(item).is_some() && call_id(item) == call.id);
    let kind = asked.and_then(|item| text(item, "type")).unwrap_or("function_call");
    let id = call.id.as_str();
    Ok(match kind {
        "shell_call" => {
            let code = i32::from(is_error);
            let ran =
                json!({ "stdout": "", "stderr": output, "outcome": { "type": "exit", "exit_code": code } });
            json!({ "type": "shell_call_output", "call_id": id, "output": [ran] })
        }
        "apply_patch_call" => {
            let status = if is_error { "failed" } else { "completed" };
            json!({ "type": "apply_patch_call_output", "call_id": id, "status": status, "output": output })
        }
        "local_shell_call" => {
            // This kind names its call by the item.
            let item = asked.and_then(|item| text(item, "id")).unwrap_or(id);
            json!({ "type": "local_shell_call_output", "id": item, "call_id": id, "output": output })
        }
        "computer_call" => return Err(Odd("a computer's result would have to be a picture".into())),
        kind => json!({ "type": format!("{kind}_output"), "call_id": id, "output": output }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_was_said_is_read() {
        let body = json!({
            "model": "m", "stream": true, "instructions": "be kind", "previous_response_id": "r1",
            "prompt": {"id": "p", "variables": {"city": "Ulm"}},
            "input": [
                {"role": "user", "content": "hi"},
                {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "d"}]},
                {"type": "reasoning", "summary": []},
                {"type": "function_call", "call_id": "c1", "name": "sh", "arguments": "{}"},
                {"type": "local_shell_call", "call_id": "c2", "action": {"command": ["ls"]}},
                {"type": "function_call_output", "call_id": "c1", "output": [{"type": "input_text", "text": "o"}]},
                {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "for"}, {"type": "input_text", "text": "bid"}]},
            ],
        });
        let asked = asked(&body).unwrap();
        assert_eq!(
            (asked.model.as_str(), asked.stream, asked.session.as_deref()),
            ("m", true, Some("response:r1"))
        );
        let calls = |id: &str, name: &str, arguments: &str| What::Assistant {
            text: String::new(),
            calls: vec![Call { id: id.into(), name: name.into(), arguments: arguments.into() }],
        };
        let expected = [
            (OUTSIDE, None, What::System("be kind".into())),
            (OUTSIDE, Some(0), What::User("Ulm".into())),
            (0, None, What::User("hi".into())),
            (1, None, What::System("d".into())),
            (3, None, calls("c1", "sh", "{}")),
            (4, None, calls("c2", "local_shell", "{\"command\":[\"ls\"]}")),
            (5, None, What::Result { call_id: "c1".into(), name: None, output: "o".into(), is_error: false }),
            (6, None, What::User("forbid".into())),
        ];
        let got: Vec<_> =
            asked.messages.into_iter().map(|said| (said.place.message, said.place.part, said.what)).collect();
        assert_eq!(got, expected);
    }

    #[test]
    fn what_cannot_be_read_is_odd() {
        for body in [
            json!({"input": 1}),
            json!({"input": [1]}),
            json!({"input": [{"content": "x"}]}),
            json!({"input": [{"role": "user", "content": 1}]}),
            json!({"instructions": []}),
            json!({"stream": "x"}),
        ] {
            assert!(asked(&body).is_err(), "{body}");
        }
        let plain = asked(&json!({"input": "x", "conversation": {"id": "v"}})).unwrap();
        assert_eq!((plain.messages.len(), plain.session.as_deref()), (1, Some("conversation:v")));
    }

    #[test]
    fn changes_leave_everything_else_as_it_was() {
        let mut body = json!({"x": 1, "input": "a"});
        let at = |message| Place { message, part: None };
        let call = |id: &str| Call { id: id.into(), ..Call::default() };
        let echo = vec![
            json!({"type": "reasoning", "encrypted_content": "e"}),
            json!({"type": "custom_tool_call", "call_id": "c1", "name": "f", "input": "x"}),
            json!({"type": "shell_call", "call_id": "c2", "action": {}}),
        ];
        let changes = [
            RequestChange::UserText { place: at(0), text: "A".into() },
            RequestChange::Echo(echo.clone()),
            RequestChange::Result { call: call("c1"), output: "no".into(), is_error: true },
            RequestChange::Result { call: call("c2"), output: "no".into(), is_error: true },
            RequestChange::Result { call: call("c3"), output: "no".into(), is_error: true },
            RequestChange::Append { role: "tool".into(), text: "t".into() },
            RequestChange::UserText { place: at(0), text: "B".into() },
        ];
        change(&mut body, &changes).unwrap();
        let ran = json!({"stdout": "", "stderr": "no", "outcome": {"type": "exit", "exit_code": 1}});
        assert_eq!(
            body,
            json!({"x": 1, "input": [
                {"type": "message", "role": "user", "content": "B"},
                echo[0], echo[1], echo[2],
                {"type": "custom_tool_call_output", "call_id": "c1", "output": "no"},
                {"type": "shell_call_output", "call_id": "c2", "output": [ran]},
                {"type": "function_call_output", "call_id": "c3", "output": "no"},
                {"type": "function_call", "call_id": "call_hookgate_7", "name": "hook", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "call_hookgate_7", "output": "t"},
            ]})
        );
        assert!(
            change(&mut body, &[RequestChange::UserText { place: at(50), text: String::new() }]).is_err()
        );
    }
}
