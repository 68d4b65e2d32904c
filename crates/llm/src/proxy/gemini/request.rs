//! What stands in a request, and changes of it.

use serde_json::{Value, json};

use super::chunk::{arguments, call};
use crate::proxy::request::{member_mut, place, replace_text, texts_of};
use crate::proxy::{Asked, Call, Odd, Place, RequestChange, Said, What};
use crate::wire::json::{self, is_something, list, text};

/// In place of a thought's signature, where a call was not made by the model.
const NO_SIGNATURE: &str = "skip_thought_signature_validator";

/// The members are read in both spellings, as the provider does.
const SYSTEM: [&str; 2] = ["systemInstruction", "system_instruction"];
const RESPONSE: [&str; 2] = ["functionResponse", "function_response"];

pub(super) fn asked(path: &str, body: &Value) -> Result<Asked, Odd> {
    let outer = body;
    let body = request(body);
    let contents = body.get("contents").and_then(Value::as_array);
    let contents = contents.ok_or_else(|| Odd("the request has no list of contents".into()))?;
    let mut said = Vec::new();
    for system in SYSTEM.iter().filter_map(|name| body.get(*name)).filter(|system| !system.is_null()) {
        let text = texts(system).ok_or_else(|| Odd("the system instruction is no text".into()))?;
        said.push(Said { place: Place { message: usize::MAX, part: None }, what: What::System(text) });
    }
    for (at, content) in contents.iter().enumerate() {
        content_said(at, content, &mut said)?;
    }
    let model = model(path).or_else(|| text(outer, "model").map(str::to_owned));
    let config = ["generationConfig", "generation_config"].iter().find_map(|name| body.get(*name));
    let count =
        |config| ["candidateCount", "candidate_count"].iter().find_map(|name| json::count(config, &[name]));
    Ok(Asked {
        model: model.unwrap_or_default(),
        stream: is_stream(path),
        messages: said,
        session: None,
        n_answers: config.and_then(count).unwrap_or(1),
    })
}

/// The request itself, which Google's own tools wrap.
fn request(body: &Value) -> &Value {
    body.get("request").filter(|_| is_wrapped(body)).unwrap_or(body)
}

fn is_wrapped(body: &Value) -> bool {
    body.get("contents").is_none() && body.get("request").is_some_and(Value::is_object)
}

/// The model of a path such as `/v1beta/models/NAME:generateContent`.
fn model(path: &str) -> Option<String> {
    let path = path.split('?').next()?;
    let path = path.replace("%3A", ":").replace("%3a", ":").replace("%2F", "/").replace("%2f", "/");
    let (before, _) = path.rsplit_once(':')?;
    let name = before.rsplit_once("/models/").map(|(_, name)| name)?;
    (!name.is_empty()).then(|| name.to_owned())
}

/// Without `alt=sse` the answer is one JSON array.
fn is_stream(path: &str) -> bool {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let method = path.trim_end_matches('/').to_ascii_lowercase().ends_with("streamgeneratecontent");
    method
        && query
            .split('&')
            .any(|pair| pair.eq_ignore_ascii_case("alt=sse") || pair.eq_ignore_ascii_case("$alt=sse"))
}

/// The texts of a content: of its parts, or of itself.
fn texts(content: &Value) -> Option<String> {
    match content {
        Value::Object(members) => match members.get("parts") {
            None | Some(Value::Null) => texts_of(content).or(Some(String::new())),
            Some(parts) => texts_of(parts),
        },
        content => texts_of(content),
    }
}

fn content_said(at: usize, content: &Value, said: &mut Vec<Said>) -> Result<(), Odd> {
    let words = texts(content).filter(|_| content.is_object());
    let words = words.ok_or_else(|| Odd(format!("content {at} is odd")))?;
    let parts = list(content, "parts");
    let mut push = |part, what| said.push(Said { place: Place { message: at, part }, what });
    if text(content, "role") == Some("model") {
        let thought = |part: &&Value| part.get("thought") == Some(&Value::Bool(true));
        let words = if parts.is_empty() {
            words
        } else {
            parts.iter().filter(|part| !thought(part)).filter_map(|part| text(part, "text")).collect()
        };
        let calls = parts.iter().filter_map(call).map(|call| Call {
            id: text(call, "id").unwrap_or_default().to_owned(),
            name: text(call, "name").unwrap_or_default().to_owned(),
            arguments: Some(arguments(call)).filter(|args| !args.is_empty()).unwrap_or_else(|| "{}".into()),
        });
        push(None, What::Assistant { text: words, calls: calls.collect() });
        return Ok(());
    }
    let (mut others, mut results) = (None, 0);
    for (part, value) in parts.iter().enumerate() {
        if let Some(response) = RESPONSE.iter().find_map(|name| value.get(*name)).filter(|r| r.is_object()) {
            results += 1;
            push(Some(part), result(response));
        } else {
            others = others.or(Some(part));
        }
    }
    if others.is_some() || parts.is_empty() {
        push(others.filter(|_| results > 0), What::User(words));
    }
    Ok(())
}

fn result(response: &Value) -> What {
    let body = response.get("response").unwrap_or(&Value::Null);
    let error = body.get("error").filter(|error| is_something(error));
    // By custom the text stands alone in one of these.
    let only = body.as_object().filter(|members| members.len() == 1);
    let plain =
        only.and_then(|_| ["output", "result", "content", "error"].iter().find_map(|name| text(body, name)));
    let output =
        plain.map_or_else(|| if body.is_null() { String::new() } else { body.to_string() }, str::to_owned);
    What::Result {
        call_id: text(response, "id").unwrap_or_default().to_owned(),
        name: text(response, "name").map(str::to_owned),
        output,
        is_error: error.is_some(),
    }
}

pub(super) fn change(body: &mut Value, changes: &[RequestChange]) -> Result<(), Odd> {
    let body = match body {
        body if is_wrapped(body) => {
            body.get_mut("request").ok_or_else(|| Odd("the request is gone".into()))?
        }
        body => body,
    };
    for change in changes {
        let contents = member_mut(body, "contents")?;
        match change {
            RequestChange::UserText { place: at, text } => {
                let content = place(contents, at.message)?;
                let parts = content.entry("parts").or_insert_with(|| json!([]));
                if !parts.is_array() {
                    *parts = json!([]);
                }
                replace_text(parts, text, &|text| json!({ "text": text }));
            }
            RequestChange::Append { role, text } => append(contents, role, text),
            RequestChange::From(_) => {}
            RequestChange::Echo(said) => {
                for content in said {
                    list(content, "parts").iter().for_each(|part| add(contents, "model", part.clone()));
                }
            }
            RequestChange::Result { call, output, is_error } => {
                let name = if *is_error { "error" } else { "output" };
                add(contents, "user", response(&call.id, &call.name, json!({ name: output })));
            }
        }
    }
    Ok(())
}

fn append(contents: &mut Vec<Value>, role: &str, text: &str) {
    match role {
        "tool" => {
            let call = json!({ "name": "hook", "args": {} });
            add(contents, "model", json!({ "functionCall": call, "thoughtSignature": NO_SIGNATURE }));
            add(contents, "user", response("", "hook", json!({ "output": text })));
        }
        // Thoughts are taken only as the provider signed them; as words of the model they are welcome.
        "assistant" | "reasoning" => add(contents, "model", json!({ "text": text })),
        _ => add(contents, "user", json!({ "text": text })),
    }
}

fn response(id: &str, name: &str, body: Value) -> Value {
    let mut response = json!({ "name": name, "response": body });
    if let (false, Value::Object(members)) = (id.is_empty(), &mut response) {
        members.insert("id".into(), id.into());
    }
    json!({ "functionResponse": response })
}

/// Adds a part to the last content if it is of this role, else as a content of its own: roles have to alternate.
/// Results of functions stand before everything else.
fn add(contents: &mut Vec<Value>, role: &str, part: Value) {
    let same = |last: &Value| match text(last, "role") {
        Some(last) => last == role || (role == "user" && last == "function"),
        None => role == "user",
    };
    let last = contents.last_mut().filter(|last| same(last)).and_then(|last| last.get_mut("parts"));
    let Some(Value::Array(parts)) = last else {
        contents.push(json!({ "role": role, "parts": [part] }));
        return;
    };
    let is_result = |part: &Value| RESPONSE.iter().any(|name| part.get(*name).is_some());
    if is_result(&part) {
        let at = parts.iter().take_while(|part| is_result(part)).count();
        parts.insert(at, part);
    } else {
        parts.push(part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: &str = "/v1beta/models/gemini-x:streamGenerateContent?alt=sse";

    #[test]
    fn all_that_was_said_is_read() {
        let body = json!({
            "system_instruction": {"parts": [{"text": "be "}, {"text": "kind"}]},
            "contents": [
                {"parts": [{"inlineData": {"data": "x"}}, {"text": "for"}, {"text": "bid"}]},
                {"role": "model", "parts": [{"text": "t", "thought": true}, {"text": "a"},
                    {"functionCall": {"id": "f1", "name": "sh", "args": {"x": 1}}}]},
                {"role": "user", "parts": [
                    {"functionResponse": {"id": "f1", "name": "sh", "response": {"output": "o"}}},
                    {"function_response": {"name": "ls", "response": {"error": "e", "code": 1}}},
                    {"text": "and"}]},
            ],
        });
        let asked = asked(PATH, &body).unwrap();
        assert_eq!((asked.model.as_str(), asked.stream), ("gemini-x", true));
        let result = |id: &str, name: &str, output: &str, is_error| What::Result {
            call_id: id.into(),
            name: Some(name.into()),
            output: output.into(),
            is_error,
        };
        let call = Call { id: "f1".into(), name: "sh".into(), arguments: "{\"x\":1}".into() };
        let expected = [
            (usize::MAX, None, What::System("be kind".into())),
            (0, None, What::User("forbid".into())),
            (1, None, What::Assistant { text: "a".into(), calls: vec![call] }),
            (2, Some(0), result("f1", "sh", "o", false)),
            (2, Some(1), result("", "ls", "{\"error\":\"e\",\"code\":1}", true)),
            (2, Some(2), What::User("and".into())),
        ];
        let got: Vec<_> =
            asked.messages.into_iter().map(|said| (said.place.message, said.place.part, said.what)).collect();
        assert_eq!(got, expected);
    }

    #[test]
    fn model_and_stream_stand_in_the_path() {
        for (path, model, stream) in [
            (PATH, "gemini-x", true),
            ("/v1beta/models/gemini-x:streamGenerateContent", "gemini-x", false),
            ("/v1beta/models/gemini-x:generateContent?alt=sse", "gemini-x", false),
            ("/v1/projects/p/publishers/google/models/g%3AstreamGenerateContent?key=1&alt=SSE", "g", true),
            ("/v1internal:streamGenerateContent?alt=sse", "inner", true),
        ] {
            let body = json!({"model": "inner", "request": {"contents": []}});
            let asked = asked(path, &body).unwrap();
            assert_eq!((asked.model.as_str(), asked.stream), (model, stream), "{path}");
        }
        for body in [
            json!({}),
            json!({"contents": {}}),
            json!({"contents": [1]}),
            json!({"contents": [{"parts": 1}]}),
        ] {
            assert!(asked(PATH, &body).is_err(), "{body}");
        }
    }

    #[test]
    fn roles_alternate_after_changes() {
        let mut body =
            json!({"x": 1, "contents": [{"role": "user", "parts": [{"text": "a"}, {"text": "b"}]}]});
        let call = |id: &str| Call { id: id.into(), name: "sh".into(), ..Call::default() };
        let said = json!({"functionCall": {"name": "sh", "args": {}}, "thoughtSignature": "s"});
        let changes = [
            RequestChange::UserText { place: Place { message: 0, part: None }, text: "A".into() },
            RequestChange::Echo(vec![json!({"role": "model", "parts": [said]})]),
            RequestChange::Result { call: call("f1"), output: "no".into(), is_error: true },
            RequestChange::Append { role: "user".into(), text: "u".into() },
            RequestChange::Result { call: call(""), output: "yes".into(), is_error: false },
            RequestChange::Append { role: "tool".into(), text: "t".into() },
        ];
        change(&mut body, &changes).unwrap();
        assert_eq!(
            body,
            json!({"x": 1, "contents": [
                {"role": "user", "parts": [{"text": "A"}]},
                {"role": "model", "parts": [said]},
                {"role": "user", "parts": [
                    {"functionResponse": {"name": "sh", "response": {"error": "no"}, "id": "f1"}},
                    {"functionResponse": {"name": "sh", "response": {"output": "yes"}}},
                    {"text": "u"}]},
                {"role": "model", "parts": [{"functionCall": {"name": "hook", "args": {}}, "thoughtSignature": NO_SIGNATURE}]},
                {"role": "user", "parts": [{"functionResponse": {"name": "hook", "response": {"output": "t"}}}]},
            ]})
        );
        let nowhere =
            RequestChange::UserText { place: Place { message: 9, part: None }, text: String::new() };
        assert!(change(&mut body, &[nowhere]).is_err());
    }
}
