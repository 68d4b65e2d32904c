//! Each hook as the dispatcher runs it: its handler asked, its changes vetted by core.

use hookgate_core::facts::{Facts, GateEvent, Head, ShapeEvent};
use hookgate_core::handler::{Answer, Call};
use hookgate_core::hook::{Hook, Listens, Work};
use hookgate_handlers::builtin;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The member of an input, and whether it is a list of short texts.
type Shape = (&'static str, bool);

fn hook(name: &str, settings: Value) -> Hook {
    builtin::hook(name, settings.as_object().unwrap()).unwrap()
}

fn ask(hook: &Hook, facts: &Facts) -> Answer {
    let Work::Handler { run: Some(handler), .. } = &hook.work else { panic!("no handler") };
    let key: Arc<str> = Arc::clone(&hook.key);
    let json = facts.to_json();
    let call = Call { facts, json: &json, within: Duration::from_secs(5), hook: &key };
    futures_util::FutureExt::now_or_never(handler.ask(call)).unwrap().unwrap()
}

fn tool(name: &str, input: Value) -> Facts {
    let event = GateEvent::PreToolUse { tool_name: name.into(), tool_input: input };
    Facts::of_gate(&Head::default(), event)
}

fn decides(name: &str, facts: &Facts, want: &str) -> String {
    let answer = ask(&hook(name, json!({})), facts);
    assert_eq!(answer.decision.as_deref(), Some(want), "{}", facts.to_json());
    answer.reason.unwrap_or_default()
}

#[test]
fn destructive_reads_lines_and_words() {
    let reason = decides("destructive", &tool("exec", json!({"command": "sudo rm -rf /"})), "block");
    assert_eq!(reason, "destructive command (delete): deletes with everything in it `/`");
    decides("destructive", &tool("shell", json!({"command": ["bash", "-lc", "git push -f"]})), "block");
    decides("destructive", &tool("exec", json!("rm -rf /")), "block");
    decides("destructive", &tool("powershell", json!({"command": "Remove-Item C:\\ -Recurse"})), "block");
    decides("destructive", &tool("exec", json!({"command": "cargo test"})), "allow");
    decides("destructive", &tool("exec", json!({})), "allow");
}

#[test]
fn destructive_listens_to_shells_and_configured_tools_only() {
    let hook = hook("destructive", json!({"tools": ["run_in.box"]}));
    let Listens::Point { filter, .. } = &hook.listens else { panic!("no filter") };
    let Some(matcher) = &filter.matcher else { panic!("no matcher") };
    for (name, want) in
        [("exec", true), ("Bash", true), ("run_in.box", true), ("execute_sql", false), ("run_in_box", false)]
    {
        assert_eq!(matcher.is_full_match(name), want, "{name}");
    }
}

#[test]
fn secrets_are_found_deep_in_the_input_and_not_repeated() {
    let key = format!("{}_EXAMPLE{}", "ghp", "0".repeat(29));
    let reason = decides("secrets", &tool("http", json!({"a": [{"b": format!("x {key}")}]})), "block");
    assert_eq!(reason, "the input of the tool holds: github_token");
    decides("secrets", &tool("http", json!({"a": "mail a@example.org"})), "allow");
}

#[test]
fn personal_data_in_prompts_and_inputs_is_replaced() {
    let prompt = GateEvent::UserPromptSubmit { raw_input: "write to a@example.org".into() };
    let answer = ask(&hook("pii_prompt", json!({})), &Facts::of_gate(&Head::default(), prompt));
    assert_eq!(
        Value::Object(answer.updated_input.unwrap()),
        json!({"rawInput": "write to [redacted:email]"})
    );
    let input = json!({"n": 1, "list": ["4111 1111 1111 1111"]});
    let answer = ask(&hook("pii_tools", json!({})), &tool("t", input));
    assert_eq!(
        Value::Object(answer.updated_input.unwrap()),
        json!({"toolInput": {"n": 1, "list": ["[redacted:card_number]"]}})
    );
    assert_eq!(ask(&hook("pii_tools", json!({})), &tool("t", json!({"a": "b"}))).updated_input, None);
}

#[test]
fn protected_paths_cover_files_and_lines() {
    let reason = decides("protected_paths", &tool("write_file", json!({"path": "app/.env"})), "block");
    assert_eq!(reason, "`app/.env` is protected (`.env`)");
    decides(
        "protected_paths",
        &tool("exec", json!({"command": "echo k >> ~/.ssh/authorized_keys"})),
        "block",
    );
    decides("protected_paths", &tool("exec", json!({"command": "cat .env"})), "allow");
    decides("protected_paths", &tool("write_file", json!({"path": "src/main.rs"})), "allow");
}

#[test]
fn the_policy_text_is_added() {
    let facts = Facts::of_shape(&Head::default(), ShapeEvent::PreResponse { response: "hi".into() });
    let answer = ask(&hook("policy_text", json!({"text": "All prices include tax."})), &facts);
    assert_eq!(answer.additions, [(None, "All prices include tax.".to_owned())]);
}

/// Beginnings and parts of what the detectors look for.
const PIECES: &[&str] = &[
    "1",
    "12 ",
    "4111 1111 1111 1111 ",
    "@",
    "a@",
    "a@b.",
    "a.b@c.d ",
    "+49 30 ",
    "+1",
    "ghp_",
    "sk-",
    "AKIA",
    "eyJ",
    "eyJa.",
    "-----BEGIN PRIVATE KEY-----",
    "-----BEGIN ",
    "password=",
    "secret: \"",
    "://a:",
    "https://a:b@",
    "Bearer ",
    "Basic YTpi",
    "DE89 3704 ",
    "DE",
    "\\u0067",
    "\\",
    "\u{200b}",
    "/",
    "a/",
    "../",
    ".env/",
    "*",
    "+++ b/a\n",
    "\n",
    " ",
    "ž",
    "\0",
    "\"",
    "{",
    "$(",
    "a=b;",
    "curl -u a:",
    "machine a login b password ",
];

/// A megabyte of anything must not come near the time limit of a hook, 5 s by default. Looked at is a quarter of it, or
/// a 64th in short texts: builds without optimization are more than ten times as slow.
#[test]
fn large_inputs_are_looked_at_soon() {
    let shapes: [(&str, Value, &[Shape]); 4] = [
        ("destructive", json!({}), &[("command", false), ("command", true)]),
        ("secrets", json!({"kinds": ["secret", "pii"]}), &[("text", false), ("list", true)]),
        ("pii_tools", json!({}), &[("text", false), ("list", true)]),
        (
            "protected_paths",
            json!({}),
            &[("command", false), ("command", true), ("path", false), ("patch", false)],
        ),
    ];
    let mut slow = Vec::new();
    for (name, settings, shapes) in shapes {
        let hook = hook(name, settings);
        for (piece, (member, many)) in
            PIECES.iter().flat_map(|piece| shapes.iter().map(move |shape| (piece, shape)))
        {
            let input = if *many {
                json!(vec![piece; (16 << 10) / (piece.len() + 3)])
            } else {
                json!(format!("+++ b/{}", piece.repeat((255 << 10) / piece.len())))
            };
            let facts = tool("exec", json!({ *member: input }));
            let began = Instant::now();
            ask(&hook, &facts);
            let took = began.elapsed();
            if took > Duration::from_secs(2) {
                slow.push(format!("{name} took {took:?} for `{member}` of {piece:?}"));
            }
        }
    }
    assert!(slow.is_empty(), "{slow:#?}");
}

#[test]
fn what_a_line_writes_to_must_be_told() {
    let many: String = (0..1500).map(|n| format!("touch a{n};")).collect();
    for line in [format!("{many} touch .env"), format!("{} touch .env", " ".repeat(300_000))] {
        let reason = decides("protected_paths", &tool("exec", json!({"command": line})), "block");
        assert!(reason.starts_with("what it writes to cannot be told: the line is too "), "{reason}");
    }
}

#[tokio::test]
async fn nothing_is_looked_at_before_the_answer_is_waited_for() {
    let hook = hook("destructive", json!({}));
    let Work::Handler { run: Some(handler), .. } = &hook.work else { panic!("no handler") };
    let facts = tool(
        "exec",
        json!({"command": "f() { f; f; }; f; for i in 1 2 3; do rm -r x; done; ".repeat(3_000)}),
    );
    let json = facts.to_json();
    let call = Call { facts: &facts, json: &json, within: Duration::from_secs(5), hook: &hook.key };
    let began = Instant::now();
    let answer = handler.ask(call);
    let before = began.elapsed();
    answer.await.unwrap();
    assert!(before * 2 < began.elapsed(), "{before:?} of {:?}", began.elapsed());
}
