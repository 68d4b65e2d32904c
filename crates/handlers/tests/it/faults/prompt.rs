//! Judges that fail.

use super::matrix::{ALL, Ends, GATES, Rig, Row, SOME, check, only, row};
use super::server::{Does, closed, json, reply, serve};
use hookgate_core::handler::HandlerType;
use hookgate_handlers::prompt::{self, Judge, Spending};
use hookgate_handlers::workshop::Workshop;
use hookgate_llm::{Client, Model, Provider, Scripted};
use serde_json::{Value, json as value};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// Judges by the name in a hook's `model`.
type Judges = HashMap<String, Arc<dyn Model>>;

fn rig(mut judges: Judges) -> Rig {
    judges.insert("sound".into(), scripted(value!([{"text": "{\"decision\":\"allow\"}"}])));
    let find = move |name: Option<&str>| {
        let name = name.unwrap_or("default").to_owned();
        let model = judges.get(&name).cloned().ok_or("no such model")?;
        Ok(Judge { model, name })
    };
    let maker = prompt::maker(Arc::new(find), Spending::default());
    Rig {
        workshop: Workshop::empty().with(HandlerType::Prompt, maker),
        healthy: hook("sound"),
        lay_out: |_| {},
    }
}

fn hook(model: &str) -> Value {
    value!({"type": "prompt", "prompt": "Never touch production.", "model": model, "max_per_turn": 1000})
}

fn scripted(turns: Value) -> Arc<dyn Model> {
    // the last turn stays
    let turns: Vec<Value> = turns.as_array().unwrap().iter().cycle().take(50).cloned().collect();
    Arc::new(Scripted::parse(&value!({ "turns": turns }).to_string()).unwrap())
}

fn client(port: u16) -> Arc<dyn Model> {
    let client = Client::builder(Provider::OpenAiChat).base_url(format!("http://127.0.0.1:{port}"));
    Arc::new(client.retry_wait(Duration::from_millis(10)).build().unwrap())
}

/// A message of the judge as its provider sends it.
fn message(message: &Value) -> Does {
    json(value!({"choices": [{"message": message, "finish_reason": "stop"}]}).to_string())
}

fn text(text: &str) -> Does {
    message(&value!({"role": "assistant", "content": text}))
}

fn call(arguments: &str) -> Does {
    message(&value!({"role": "assistant", "content": "{\"decision\":\"allow\"}", "tool_calls": [
        {"id": "1", "type": "function", "function": {"name": "verdict", "arguments": arguments}}]}))
}

/// Plays each with a judge of its own.
async fn played(faults: Vec<(&'static str, Does, Ends)>) {
    let (mut judges, mut rows) = (Judges::new(), Vec::new());
    for (fault, does, ends) in faults {
        judges.insert(fault.to_owned(), client(serve(does).await));
        let at = if matches!(ends, Ends::Late) { SOME } else { ALL };
        rows.push(only(at, row(fault, hook(fault), ends)));
    }
    check(&rig(judges), rows).await;
}

#[tokio::test]
async fn judges_that_do_not_end() {
    let begun = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n".to_vec();
    let rows = vec![
        ("silence", Does::Stalls(Vec::new()), Ends::Late),
        ("a byte now and then", Does::Drips(begun.clone()), Ends::Late),
        ("silence after the head", Does::Stalls(begun.clone()), Ends::Late),
        ("sparks without end", Does::Floods(begun, b": still here\n\n".to_vec()), Ends::Late),
    ];
    played(rows).await;
}

#[tokio::test]
async fn judges_that_are_not_there_or_break_off() {
    let off = |words| Ends::Fails("its judge's answer broke off", words);
    let half = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"{\"}}]}\n\n";
    let status = |why, words| Ends::Fails(why, words);
    let rows = vec![
        ("cut off", Does::Says(half.to_vec()), off("cut off")),
        ("reset", Does::Resets(half.to_vec()), off("cut off")),
        (
            "an error",
            reply("500 E", "", "sorry"),
            status("its judge's provider answered with status 500", "500"),
        ),
        ("unauthorized", reply("401 U", "", "no"), status("answered with status 401", "401")),
        (
            "a long wait",
            reply("429 W", "retry-after: 600\r\n", ""),
            status("answered with status 429", "429"),
        ),
    ];
    played(rows).await;
    let judges = Judges::from([
        ("closed".to_owned(), client(closed().await)),
        ("failing".to_owned(), scripted(value!([{"error": "overloaded"}]))),
    ]);
    let none = Ends::Fails("no connection to its judge could be made", "no connection to 127.0.0.1");
    let rows: Vec<Row> = vec![
        row("nobody there", hook("closed"), none),
        row("a model that fails", hook("failing"), Ends::Fails("its judge", "overloaded")),
    ];
    check(&rig(judges), rows).await;
}

#[tokio::test]
async fn judges_that_lie() {
    let none = |words| Ends::Fails("its judge gave no verdict", words);
    let unread = |words| Ends::Fails("its judge's verdict cannot be read", words);
    let form = Ends::Fails("its judge's answer has an unknown form", "is not");
    let deep = "{\"a\":".repeat(10_000);
    let rows = vec![
        ("a web page", reply("200 OK", "content-type: text/html\r\n", "<html>allow</html>"), form),
        ("no UTF-8", json(b"\xff\xfe{\"choices\":[]}"), form),
        ("nothing said", text(""), none("no verdict")),
        ("prose", text("This looks safe to me, go ahead!"), none("This looks safe")),
        ("a quoted allow", text("It says {\"decision\":\"allow\"}, which I ignore."), none("It says")),
        ("half a verdict", text("{\"decision\":\"allow\""), none("breaks off")),
        ("a deep text", text(&deep), none("recursion limit")),
        ("half a call", call("{\"decision\":\"allow\""), unread("no JSON object")),
        ("a deep call", call(&deep), unread("recursion limit")),
        ("a call with a list", call("[\"allow\"]"), unread("no JSON object")),
        ("a call that says it twice", call(r#"{"decision":"block","decision":"allow"}"#), unread("twice")),
        ("an unknown word", call(r#"{"decision":"perhaps"}"#), Ends::Fails("is no decision", "`perhaps`")),
    ];
    played(rows).await;
    let (mut judges, no_word) = (Judges::new(), Ends::Fails("its answer has no decision", "no decision"));
    judges.insert("no decision".into(), client(serve(call("{}")).await));
    check(&rig(judges), vec![only(GATES, row("a call without a decision", hook("no decision"), no_word))])
        .await;
}

#[tokio::test]
async fn judges_that_flood() {
    let head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
    let event = b"data: {\"choices\":[{\"delta\":{\"content\":\"allow allow allow allow\"}}]}\n\n";
    let long = |words| Ends::Fails("its judge's answer is too long", words);
    let rows = vec![
        ("words without end", Does::Floods(head.to_vec(), event.repeat(100)), long("larger than")),
        (
            "an event without end",
            Does::Floods([&head[..], b"data: "].concat(), vec![b'x'; 65_536]),
            long("larger than"),
        ),
        ("a long answer", text(&"allow ".repeat(100_000)), long("larger than")),
        ("a million lists in each other", call(&"[".repeat(1_000_000)), long("larger than")),
    ];
    played(rows).await;
}

#[test]
fn a_hook_without_a_judge_is_refused_when_it_is_loaded() {
    let hook = value!({"id": "f", "event": "pre_tool_use", "matcher": "exec", "handler": hook("nobody")});
    let loaded = crate::bench::load(std::path::Path::new("x"), &rig(Judges::new()).workshop, &hook);
    assert!(loaded.hooks.is_empty() && loaded.problems[0].to_string().contains("no such model"));
}
