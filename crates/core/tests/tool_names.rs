//! A tool that has several names, and counts that go on in another process.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs, reason = "a test may stop")]

use hookgate_core::action::ActionKinds;
use hookgate_core::define;
use hookgate_core::dispatch::Dispatcher;
use hookgate_core::effect::{Effect, EffectKind};
use hookgate_core::event::{ToolOutcome, ToolRun, WatchEvent};
use hookgate_core::facts::{Facts, GateEvent, Head, LifeEvent};
use hookgate_core::hook::Source;
use hookgate_core::session::Session;
use hookgate_core::set::HookSet;
use serde_json::json;

fn dispatcher(definitions: &str) -> Dispatcher {
    let read = define::read("h.json", definitions, Source::User, &ActionKinds::standard());
    assert!(read.problems.is_empty(), "{:?}", read.problems);
    Dispatcher::new(HookSet::new(read.hooks).unwrap())
}

fn fired(dispatcher: &Dispatcher, session: &mut Session) -> usize {
    let run = ToolRun { name: "exec", args: &json!({"command": "ls"}), outcome: ToolOutcome::Before };
    let mut effects: Vec<Effect> = Vec::new();
    dispatcher.tell(session, &WatchEvent::Tool(run), &mut effects);
    effects.iter().filter(|effect| effect.kind == EffectKind::Fired).count()
}

#[test]
fn json_hooks_know_a_tool_by_any_of_its_names() {
    let check = |names: &str, regex: &str, want: usize| {
        let hooks = format!(r#"{{"target":"tool","event":"before","tools":{names}{regex},"actions":[]}}"#);
        let mut session = Session::new();
        session.set_tool_names(vec!["Bash".into()]);
        assert_eq!(fired(&dispatcher(&hooks), &mut session), want, "{names} {regex}");
    };
    check(r#"["exec"]"#, "", 1);
    check(r#"["Bash"]"#, "", 1);
    check(r#"["Bash","exec"]"#, "", 1);
    check(r#"["bash"]"#, "", 0);
    check(r#"["Bash"]"#, r#","regex":"ls""#, 1);
    check(r#"["write_file"]"#, r#","regex":"ls""#, 0);
}

#[test]
fn lifecycle_hooks_know_a_tool_by_any_of_its_names() {
    let check = |matcher: &str, want: usize| {
        let hooks = format!(
            r#"{{"id":"h","event":"post_tool_use","matcher":"{matcher}","handler":{{"type":"command","argv":["x"]}}}}"#
        );
        let head = Head {
            tool_names: vec!["mcp_tracker_lookup".into(), "mcp__tracker__lookup".into()],
            ..Head::default()
        };
        let event =
            LifeEvent::PostToolUse { tool_name: "mcp".into(), tool_input: json!({}), tool_output: json!("") };
        assert_eq!(dispatcher(&hooks).watch(&head, event).len(), want, "{matcher}");
    };
    check("mcp", 1);
    check("mcp__tracker__.*", 1);
    check("mcp.*", 1);
    check("mcp_tracker_lookup|mcp", 1);
    check("tracker", 0);
}

#[test]
fn the_agents_own_name_is_a_fact() {
    let head = Head { tool_names: vec!["Bash".into()], ..Head::default() };
    let event = GateEvent::PreToolUse { tool_name: "exec".into(), tool_input: json!({}) };
    let facts = Facts::of_gate(&head, event);
    assert_eq!(facts.get("nativeToolName"), Some(&json!("Bash")));
    assert_eq!(Facts::from_json(&facts.to_json()), Some(facts));
    let prompt = Facts::of_gate(&head, GateEvent::UserPromptSubmit { raw_input: "x".into() });
    assert_eq!(prompt.get("nativeToolName"), None);
}

#[test]
fn counts_go_on_in_a_resumed_session() {
    let dispatcher =
        dispatcher(r#"{"target":"tool","event":"before","maxTriggers":2,"actions":[{"type":"interrupt"}]}"#);
    let mut session = Session::new();
    assert_eq!(fired(&dispatcher, &mut session), 1);
    let counts: Vec<(String, u64)> = session.fired().map(|(key, count)| (key.to_owned(), count)).collect();
    let mut session = Session::resumed(counts);
    assert_eq!([fired(&dispatcher, &mut session), fired(&dispatcher, &mut session)], [1, 0]);
}
