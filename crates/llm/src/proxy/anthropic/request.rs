//! What stands in a request, and changes of it.

use serde_json::{Value, json};

use crate::proxy::request::{member_mut, output_of, place, replace_text, stream_flag, texts_of};
use crate::proxy::{Asked, Call, Odd, Place, RequestChange, Said, What};
use crate::wire::json::{list, text};

pub(super) fn asked(body: &Value) -> Result<Asked, Odd> {
    let messages = body.get("messages").and_then(Value::as_array);
    let messages = messages.ok_or_else(|| Odd("the request has no list of messages".into()))?;
    let mut said = Vec::new();
    if let Some(system) = body.get("system").filter(|system| !system.is_null()) {
        let system = texts_of(system).ok_or_else(|| Odd("the system prompt is no text".into()))?;
        said.push(Said { place: Place { message: usize::MAX, part: None }, what: What::System(system) });
    }
    for (at, message) in messages.iter().enumerate() {
        message_said(at, message, &mut said)?;
    }
    Ok(Asked {
        model: text(body, "model").unwrap_or_default().to_owned(),
        stream: stream_flag(body)?,
        messages: said,
        session: None,
        n_answers: 1,
    })
}

fn message_said(at: usize, message: &Value, said: &mut Vec<Said>) -> Result<(), Odd> {
    let role = message.get("role").and_then(Value::as_str);
    let role = role.ok_or_else(|| Odd(format!("message {at} has no role")))?;
    let content = message.get("content").unwrap_or(&Value::Null);
    let words = texts_of(content).ok_or_else(|| Odd(format!("message {at} has odd content")))?;
    let blocks = list(message, "content");
    let mut push = |part, what| said.push(Said { place: Place { message: at, part }, what });
    match role {
        "assistant" => {
            let calls = blocks.iter().filter(|block| text(block, "type") == Some("tool_use")).map(call);
            push(None, What::Assistant { text: words, calls: calls.collect() });
        }
        "system" => push(None, What::System(words)),
        _ => {
            let mut others = None;
            for (part, block) in blocks.iter().enumerate() {
                if text(block, "type") == Some("tool_result") {
                    push(Some(part), result(block));
                } else {
                    others = others.or(Some(part));
                }
            }
            if others.is_some() || blocks.is_empty() {
                let part = others.filter(|_| blocks.iter().any(|b| text(b, "type") == Some("tool_result")));
                push(part, What::User(words));
            }
        }
    }
    Ok(())
}

fn call(block: &Value) -> Call {
    let of = |name| text(block, name).unwrap_or_default().to_owned();
    let arguments = block.get("input").map(Value::to_string).unwrap_or_default();
    Call { id: of("id"), name: of("name"), arguments }
}

fn result(block: &Value) -> What {
    What::Result {
        call_id: text(block, "tool_use_id").unwrap_or_default().to_owned(),
        name: None,
        output: block.get("content").map(output_of).unwrap_or_default(),
        is_error: block.get("is_error") == Some(&Value::Bool(true)),
    }
}

pub(super) fn change(body: &mut Value, changes: &[RequestChange]) -> Result<(), Odd> {
    for change in changes {
        let messages = member_mut(body, "messages")?;
        match change {
            RequestChange::UserText { place: at, text } => {
                let message = place(messages, at.message)?;
                let content = message.entry("content").or_insert(Value::Null);
                replace_text(content, text, &text_block);
            }
            RequestChange::Append { role, text } => {
                let n = messages.len();
                match role.as_str() {
                    "tool" => {
                        let id = format!("toolu_hookgate_{n}");
                        let call = json!({ "type": "tool_use", "id": id, "name": "hook", "input": {} });
                        add(messages, "assistant", call);
                        add(messages, "user", result_block(&id, text, false));
                        declare_hook_tool(body);
                    }
                    // Thoughts have to be signed; as words of the model they are welcome.
                    "assistant" | "reasoning" => add(messages, "assistant", text_block(text)),
                    _ => add(messages, "user", text_block(text)),
                }
            }
            RequestChange::From(_) => {}
            RequestChange::Echo(said) => {
                for message in said {
                    let blocks = list(message, "content");
                    blocks.iter().for_each(|block| add(messages, "assistant", block.clone()));
                }
            }
            RequestChange::Result { call, output, is_error } => {
                add(messages, "user", result_block(&call.id, output, *is_error));
            }
        }
    }
    Ok(())
}

/// Adds a block to the last message if it is of this role, else as a message of its own: roles have to alternate.
/// Results of tools stand before everything else.
fn add(messages: &mut Vec<Value>, role: &str, block: Value) {
    let last = messages.last_mut().filter(|last| text(last, "role") == Some(role));
    let Some(Value::Object(last)) = last else {
        messages.push(json!({ "role": role, "content": [block] }));
        return;
    };
    let content = last.entry("content").or_insert(Value::Null);
    if !content.is_array() {
        let text = content.as_str().filter(|text| !text.trim().is_empty());
        *content = text.map(text_block).into_iter().collect();
    }
    let Value::Array(blocks) = content else { return };
    let is_result = |block: &Value| text(block, "type") == Some("tool_result");
    if is_result(&block) {
        let at = blocks.iter().take_while(|block| is_result(block)).count();
        blocks.insert(at, block);
    } else {
        blocks.push(block);
    }
}

fn text_block(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

fn result_block(id: &str, output: &str, is_error: bool) -> Value {
    let mut block = json!({ "type": "tool_result", "tool_use_id": id, "content": output });
    if let (true, Value::Object(members)) = (is_error, &mut block) {
        members.insert("is_error".into(), true.into());
    }
    block
}

/// The provider refuses calls in requests that declare no tool at all.
fn declare_hook_tool(body: &mut Value) {
    if list(body, "tools").is_empty()
        && let Value::Object(members) = body
    {
        let schema = json!({ "type": "object" });
        let tool =
            json!({ "name": "hook", "description": "What hooks have to say.", "input_schema": schema });
        members.insert("tools".into(), json!([tool]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_was_said_is_read() {
        let body = json!({
            "model": "m", "stream": true, "system": [{"type": "text", "text": "be "}, {"type": "text", "text": "kind"}],
            "messages": [
                {"role": "user", "content": "hi"},
                {"role": "assistant", "content": [{"type": "thinking", "thinking": "t", "signature": "s"},
                    {"type": "text", "text": "a"}, {"type": "tool_use", "id": "u1", "name": "sh", "input": {"x": 1}}]},
                {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "u1", "content": [{"type": "text", "text": "o1"}], "is_error": true},
                    {"type": "tool_result", "tool_use_id": "u2", "content": "o2"},
                    {"type": "text", "text": "for"}, {"type": "text", "text": "bid"}]},
            ],
        });
        let asked = asked(&body).unwrap();
        assert_eq!((asked.model.as_str(), asked.stream), ("m", true));
        let result = |id: &str, output: &str, is_error| What::Result {
            call_id: id.into(),
            name: None,
            output: output.into(),
            is_error,
        };
        let call = Call { id: "u1".into(), name: "sh".into(), arguments: "{\"x\":1}".into() };
        let expected = [
            (usize::MAX, None, What::System("be kind".into())),
            (0, None, What::User("hi".into())),
            (1, None, What::Assistant { text: "a".into(), calls: vec![call] }),
            (2, Some(0), result("u1", "o1", true)),
            (2, Some(1), result("u2", "o2", false)),
            (2, Some(2), What::User("forbid".into())),
        ];
        let got: Vec<_> =
            asked.messages.into_iter().map(|said| (said.place.message, said.place.part, said.what)).collect();
        assert_eq!(got, expected);
    }

    #[test]
    fn what_cannot_be_read_is_odd() {
        for body in [
            json!({}),
            json!({"messages": {}}),
            json!({"messages": [1]}),
            json!({"messages": [{"role": "user", "content": true}]}),
            json!({"messages": [], "system": 7}),
            json!({"messages": [], "stream": 1}),
        ] {
            assert!(asked(&body).is_err(), "{body}");
        }
    }

    #[test]
    fn roles_alternate_after_changes() {
        let mut body = json!({"messages": [{"role": "user", "content": "a"}]});
        let call = |id: &str| Call { id: id.into(), ..Call::default() };
        let echo = json!({"role": "assistant", "content": [{"type": "tool_use", "id": "u1", "name": "sh", "input": {}}]});
        let changes = [
            RequestChange::UserText { place: Place { message: 0, part: None }, text: "A".into() },
            RequestChange::Echo(vec![echo.clone()]),
            RequestChange::Result { call: call("u1"), output: "no".into(), is_error: true },
            RequestChange::Append { role: "user".into(), text: "u".into() },
            RequestChange::Result { call: call("u2"), output: "yes".into(), is_error: false },
            RequestChange::Append { role: "tool".into(), text: "t".into() },
        ];
        change(&mut body, &changes).unwrap();
        let expected = json!([
            {"role": "user", "content": "A"},
            echo,
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "u1", "content": "no", "is_error": true},
                {"type": "tool_result", "tool_use_id": "u2", "content": "yes"},
                {"type": "text", "text": "u"}]},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_hookgate_3", "name": "hook", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_hookgate_3", "content": "t"}]},
        ]);
        assert_eq!(body["messages"], expected);
        assert_eq!(body["tools"][0]["name"], "hook");
        let nowhere =
            RequestChange::UserText { place: Place { message: 9, part: None }, text: String::new() };
        assert!(change(&mut body, &[nowhere]).is_err());
    }
}
