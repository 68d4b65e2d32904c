//! Definitions: any text is read or refused with places in it; what is read makes a set that lives through a turn.

#![no_main]

use std::collections::HashMap;

use hookgate_core::action::ActionKinds;
use hookgate_core::define::{self, Problem};
use hookgate_core::dispatch::Dispatcher;
use hookgate_core::effect::EffectKind;
use hookgate_core::event::{Chunk, Message, Origin, Role, ToolOutcome, ToolRun, WatchEvent};
use hookgate_core::facts::{Facts, Head, LifeEvent};
use hookgate_core::hook::{Hook, Listens, Source};
use hookgate_core::session::Session;
use hookgate_core::set::HookSet;
use hookgate_core::word::Word;
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};

const FILE: &str = "hooks/fuzz.json";
/// How much of the input becomes the events' text: patterns there often match what stands beside them.
const LONGEST_TEXT: usize = 300;

fuzz_target!(|input: &str| {
    let kinds = ActionKinds::standard();
    let read = define::read(FILE, input, Source::User, &kinds);
    read.problems.iter().chain(&read.warnings).for_each(|problem| check(problem, input));
    if !read.hooks.is_empty() || read.problems.is_empty() {
        let json = input.strip_prefix('\u{feff}').unwrap_or(input);
        assert!(serde_json::from_str::<Value>(json).is_ok(), "hooks from what is no JSON");
    }
    let end = (0..=input.len().min(LONGEST_TEXT)).rev().find(|at| input.is_char_boundary(*at));
    let text = &input[..end.unwrap_or(0)];
    conditions(&read.hooks, text);
    let most = most_firings(&read.hooks);
    // Large counts in patterns make large sets, which may be refused.
    let set = match HookSet::new(read.hooks) {
        Ok(set) => set,
        Err(problem) => return check(&problem, input),
    };
    assert!(set.listing().iter().all(|hook| hook.file == FILE));
    turn(set, text, &most);
});

/// A problem stands somewhere in the text.
fn check(problem: &Problem, input: &str) {
    assert!(problem.to_string().starts_with(FILE), "{problem}");
    assert!(!problem.message.is_empty(), "{problem:?}");
    if let Some(place) = problem.place {
        assert!(place.line >= 1 && place.column >= 1, "{problem}");
        assert!(place.line <= input.split('\n').count(), "{problem}");
    }
}

/// Conditions have some answer to any event.
fn conditions(hooks: &[Hook], text: &str) {
    let tool_input = json!({ "command": text, "path": "/etc/x", "flags": ["a", 1, null], "n": i64::MIN });
    let event = LifeEvent::PostToolUse { tool_name: "exec".into(), tool_input, tool_output: json!([text]) };
    let facts = Facts::of_life(&Head::default(), event);
    for hook in hooks {
        if let Listens::Point { if_expr: Some(condition), .. } = &hook.listens {
            condition.fits(&facts);
        }
    }
}

/// How often hooks of each name may fire; nothing for those without a bound.
fn most_firings(hooks: &[Hook]) -> HashMap<String, Option<u64>> {
    let mut most = HashMap::new();
    for hook in hooks {
        let sum = most.entry(hook.name.to_string()).or_insert(Some(0u64));
        *sum = sum.zip(hook.max_triggers).map(|(sum, max)| sum.saturating_add(max));
    }
    most
}

/// Tells a set all kinds of events, in one session.
fn turn(set: HookSet, text: &str, most: &HashMap<String, Option<u64>>) {
    let dispatcher = Dispatcher::new(set);
    let (mut session, mut effects, mut fired) = (Session::new(), Vec::new(), HashMap::<String, u64>::new());
    let mut tell = |event: WatchEvent<'_>| {
        dispatcher.tell(&mut session, &event, &mut effects);
        for effect in effects.drain(..).filter(|effect| effect.kind == EffectKind::Fired) {
            *fired.entry(effect.hook.to_string()).or_default() += 1;
        }
    };
    for (_, role) in Role::ALL {
        tell(WatchEvent::Message(Message { role: *role, content: text, origin: Origin::User }));
    }
    tell(WatchEvent::Message(Message { role: Role::User, content: "from a hook", origin: Origin::Hook }));
    for piece in text.split_inclusive(|c: char| !c.is_alphanumeric()) {
        tell(WatchEvent::Chunk(Chunk::Content(piece)));
        tell(WatchEvent::Chunk(Chunk::Reasoning(piece)));
        tell(WatchEvent::Chunk(Chunk::ToolCallDelta { index: 7, id: Some("call_1"), text: piece }));
    }
    tell(WatchEvent::Chunk(Chunk::Finish { reason: "stop" }));
    let (args, result) = (json!({ "command": text }), json!([text]));
    for outcome in [ToolOutcome::Before, ToolOutcome::Result(&result), ToolOutcome::Error(text)] {
        tell(WatchEvent::Tool(ToolRun { name: "exec", args: &args, outcome }));
    }
    for (name, n) in fired {
        assert!(
            most.get(&name).is_some_and(|most| most.is_none_or(|most| n <= most)),
            "{name} fired {n} times"
        );
    }
}
