//! Which hooks an event concerned, and what kept it from the others: asked on demand, for people.
//!
//! Lifecycle hooks are asked with [`HookSet::explain`], JSON hooks with [`HookSet::explain_told`]. The path of an event asks the set's lists and stops at the first filter that says no; here every hook of the point
//! is asked one by one, and the answer says what was found. Nothing here runs unless somebody wants to know.

use crate::dispatch::tool_text;
use crate::effect::{Effect, EffectKind};
use crate::event::WatchEvent;
use crate::expr::{Bound, Fit};
use crate::facts::Facts;
use crate::filter::Filter;
use crate::hook::{Hook, Listens, Reach};
use crate::record::Recorder;
use crate::set::{HookSet, sees};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Characters of a found value that are shown.
const LONGEST_FOUND: usize = 120;

/// One event and the hooks of its point.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilterTrace {
    /// The event's id.
    pub event_id: String,
    /// The session.
    pub session_id: String,
    /// The point.
    pub event: String,
    /// The tool, at points that have one.
    pub tool_name: Option<String>,
    /// The hooks in run order.
    pub looked: Vec<Looked>,
}

/// One hook that listens at an event's point.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Looked {
    /// Its name for people.
    pub hook: String,
    /// Its key.
    pub key: String,
    /// What kept the event from it; none: the event concerned it.
    pub out: Option<FilteredOut>,
}

/// The filter that ruled a hook out. The first one counts; those behind it were not asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilteredOut {
    /// Which.
    pub by: FilteredBy,
    /// What it asks for, as written.
    pub wanted: String,
    /// What the event has. Of a text only its length: it may be anything.
    pub found: String,
}

/// The filters, in the order in which they are asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FilteredBy {
    /// Whose event it is.
    Scope,
    /// The tool's name.
    Matcher,
    /// The names of the tools, of a JSON hook.
    Tools,
    /// The kind of the chunk.
    Chunks,
    /// Who speaks in the message.
    Role,
    /// The event's text.
    Regex,
    /// What a hook of the program looks for in a stream by itself.
    Search,
    /// The condition.
    IfExpr,
    /// How often it may fire in a session.
    MaxTriggers,
}

impl FilteredBy {
    /// The name of the field that says it.
    pub fn as_str(self) -> &'static str {
        match self {
            FilteredBy::Scope => "scope",
            FilteredBy::Matcher => "matcher",
            FilteredBy::Tools => "tools",
            FilteredBy::Chunks => "chunks",
            FilteredBy::Role => "roles",
            FilteredBy::Regex => "regex",
            FilteredBy::Search => "search",
            FilteredBy::IfExpr => "if_expr",
            FilteredBy::MaxTriggers => "maxTriggers",
        }
    }
}

/// The newest traces of a process, in memory.
#[derive(Debug, Default)]
pub struct TraceRing {
    newest: AtomicUsize,
    kept: Mutex<VecDeque<FilterTrace>>,
}

impl TraceRing {
    /// Keeps at most so many from now on; at first none.
    pub fn keep(&self, newest: usize) {
        self.newest.store(newest, Ordering::Relaxed);
    }

    /// Whether it keeps any.
    pub fn is_on(&self) -> bool {
        self.newest.load(Ordering::Relaxed) > 0
    }

    /// Adds one; the oldest goes.
    pub fn push(&self, trace: FilterTrace) {
        let newest = self.newest.load(Ordering::Relaxed);
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.push_back(trace);
        while kept.len() > newest {
            kept.pop_front();
        }
    }

    /// What is kept, oldest first.
    pub fn traces(&self) -> Vec<FilterTrace> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}

impl HookSet {
    /// Every lifecycle hook of the event's point, in run order, with what rules it out. Values of the event stand in
    /// the answer: whoever keeps it treats it as input.
    pub fn explain(&self, facts: &Facts) -> Vec<Looked> {
        let mut bound = Bound::default();
        let at_point =
            |hook: &&Hook| matches!(hook.listens, Listens::Point { point, .. } if point == facts.point());
        let look = |hook: &Hook| Looked {
            hook: hook.name.to_string(),
            key: hook.key.to_string(),
            out: ruled_out(hook, facts, &mut bound),
        };
        self.hooks().iter().filter(at_point).map(look).collect()
    }

    /// Every JSON hook of the event's point, in run order, with what rules it out. `tool_names` are the other names of the
    /// event's tool, `effects` what the event's hooks asked for: whether a pattern is complete in a stream, and whether
    /// a hook has used up its firings, only the session knew.
    pub fn explain_told(
        &self,
        event: &WatchEvent<'_>,
        tool_names: &[String],
        effects: &[Effect],
    ) -> Vec<Looked> {
        let fired = |hook: &Hook| {
            effects.iter().any(|effect| effect.hook == hook.name && effect.kind == EffectKind::Fired)
        };
        let look = |hook: &Hook| {
            let out = if fired(hook) { None } else { Some(kept_from(hook, event, tool_names)?) };
            Some(Looked { hook: hook.name.to_string(), key: hook.key.to_string(), out })
        };
        let listens_here = |hook: &&Hook| is_told(&hook.listens, event);
        self.hooks().iter().filter(listens_here).filter_map(look).collect()
    }

    /// Tells a recorder that wants it.
    pub(crate) fn trace(&self, recorder: &dyn Recorder, facts: &Facts) {
        if !recorder.wants_traces() {
            return;
        }
        let looked = self.explain(facts);
        if !looked.is_empty() {
            let tool = facts.tool_name();
            recorder.trace(FilterTrace {
                event_id: facts.head().event_id.clone(),
                session_id: facts.head().session_id.clone(),
                event: crate::word::Word::as_str(facts.point()).to_owned(),
                tool_name: (!tool.is_empty()).then(|| tool.to_owned()),
                looked,
            });
        }
    }
}

fn ruled_out(hook: &Hook, facts: &Facts, bound: &mut Bound) -> Option<FilteredOut> {
    let Listens::Point { filter, .. } = &hook.listens else { return None };
    let out = |by, wanted: String, found: String| Some(FilteredOut { by, wanted, found });
    if !sees(&hook.reach, facts.head()) {
        return out(FilteredBy::Scope, of_reach(&hook.reach), of_head(facts));
    }
    let Filter { matcher, roles, regex, if_expr } = filter;
    // any of the tool's names will do
    let others = facts.head().tool_names.iter().map(String::as_str);
    let mut names = std::iter::once(facts.tool_name()).chain(others);
    if let Some(matcher) = matcher.as_ref().filter(|matcher| !names.any(|name| matcher.is_full_match(name))) {
        return out(
            FilteredBy::Matcher,
            matcher.source().to_owned(),
            format!("tool `{}`", facts.tool_name()),
        );
    }
    if let Some(roles) = roles
        && !filter.role_fits(facts)
    {
        let wanted: Vec<&str> = roles.words().collect();
        let found = facts.get("role").and_then(|role| role.as_str()).unwrap_or_default();
        return out(FilteredBy::Role, wanted.join(", "), format!("role `{found}`"));
    }
    if let Some(regex) = regex.as_ref().filter(|_| !filter.regex_fits(facts)) {
        let length = facts.text().map_or(0, |text| text.chars().count());
        let found = format!("a text of {length} characters without it");
        return out(FilteredBy::Regex, regex.source().to_owned(), found);
    }
    let condition = if_expr.as_ref()?;
    match condition.fits_bound(facts, bound) {
        // a condition that cannot be answered excuses nobody
        Fit::Yes | Fit::Unsure(_) => None,
        Fit::No => out(FilteredBy::IfExpr, condition.source().to_owned(), condition.seen(facts)),
    }
}

/// Whether a JSON hook listens to this kind of event at all.
fn is_told(listens: &Listens, event: &WatchEvent<'_>) -> bool {
    match (listens, event) {
        (Listens::Message { .. }, WatchEvent::Message(_))
        | (Listens::Chunk { .. } | Listens::Scan { .. }, WatchEvent::Chunk(_)) => true,
        (Listens::Tool { moment, .. }, WatchEvent::Tool(run)) => *moment == run.moment(),
        _ => false,
    }
}

/// What kept an event from a JSON hook that did not fire; `None`: nothing did, which cannot be.
fn kept_from(hook: &Hook, event: &WatchEvent<'_>, tool_names: &[String]) -> Option<FilteredOut> {
    let out = |by, wanted: String, found: String| Some(FilteredOut { by, wanted, found });
    let without = |text: &str| format!("a text of {} characters without it", text.chars().count());
    let spent = || {
        let max = hook.max_triggers?;
        out(FilteredBy::MaxTriggers, max.to_string(), "it has fired so often".into())
    };
    match (&hook.listens, event) {
        (Listens::Message { roles, .. }, WatchEvent::Message(message)) if !roles.contains(message.role) => {
            out(FilteredBy::Role, listed(roles.words()), format!("role `{}`", message.role))
        }
        (Listens::Message { regex: Some(regex), .. }, WatchEvent::Message(message))
            if regex.find(message.content).is_none() =>
        {
            out(FilteredBy::Regex, regex.source().to_owned(), without(message.content))
        }
        (Listens::Tool { names, .. }, WatchEvent::Tool(run))
            if !names.is_empty()
                && !names.iter().any(|name| name == run.name || tool_names.contains(name)) =>
        {
            let wanted = listed(names.iter().map(String::as_str));
            out(FilteredBy::Tools, wanted, format!("tool `{}`", run.name))
        }
        (Listens::Tool { regex: Some(regex), .. }, WatchEvent::Tool(run)) => {
            let text = tool_text(run);
            match regex.find(&text) {
                None => out(FilteredBy::Regex, regex.source().to_owned(), without(&text)),
                Some(_) => spent(),
            }
        }
        (Listens::Chunk { kinds, .. } | Listens::Scan { kinds, .. }, WatchEvent::Chunk(chunk))
            if !kinds.contains(chunk.kind()) =>
        {
            out(FilteredBy::Chunks, listed(kinds.words()), format!("chunk `{}`", chunk.kind()))
        }
        (Listens::Chunk { regex: Some(regex), .. }, WatchEvent::Chunk(_)) => {
            let found = "no match that ends in this piece of the answer".to_owned();
            out(FilteredBy::Regex, regex.source().to_owned(), found)
        }
        (Listens::Scan { .. }, WatchEvent::Chunk(_)) => {
            let found = "nothing that ends in this piece of the answer".to_owned();
            out(FilteredBy::Search, "its own".to_owned(), found)
        }
        _ => spent(),
    }
}

fn listed<'a>(words: impl Iterator<Item = &'a str>) -> String {
    words.collect::<Vec<_>>().join(", ")
}

fn of_reach(reach: &Reach) -> String {
    match reach {
        Reach::Global => "everybody".into(),
        Reach::Tenant(tenant) => format!("tenant `{tenant}`"),
        Reach::Agents { tenant, agents } => format!("tenant `{tenant}`, agents {}", agents.join(", ")),
    }
}

fn of_head(facts: &Facts) -> String {
    let named = |what: &str, id: &Option<String>| match id {
        Some(id) => format!("{what} `{id}`"),
        None => format!("no {what}"),
    };
    format!("{}, {}", named("tenant", &facts.head().tenant_id), named("agent", &facts.head().agent_id))
}

/// A value as it is shown: its JSON, cut between characters.
pub(crate) fn shown(value: &serde_json::Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(LONGEST_FOUND) {
        Some((edge, _)) => format!("{}…", text.get(..edge).unwrap_or_default()),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::action::ActionKinds;
    use crate::define;
    use crate::dispatch::Dispatcher;
    use crate::event::{Chunk, Message, Origin, Role, ToolOutcome, ToolRun};
    use crate::facts::{GateEvent, Head, LifeEvent};
    use crate::hook::Source;
    use crate::session::Session;
    use serde_json::json;

    const HANDLER: &str = r#""handler": {"type": "script", "source": "x"}"#;

    /// What each hook of the event's point is ruled out by, in run order.
    fn check(hooks: &str, facts: &Facts, expected: &str) {
        let hooks = hooks.replace("HANDLER", HANDLER);
        let read = define::read("h.json", &hooks, Source::User, &ActionKinds::standard());
        assert!(read.problems.is_empty(), "{:?}", read.problems);
        let set = HookSet::new(read.hooks).unwrap();
        let told = |looked: Looked| match looked.out {
            None => looked.key,
            Some(out) => format!("{}: {} `{}`, {}", looked.key, out.by.as_str(), out.wanted, out.found),
        };
        let looked: Vec<String> = set.explain(facts).into_iter().map(told).collect();
        assert_eq!(looked.join("\n"), expected);
    }

    #[test]
    fn each_filter_says_what_it_found() {
        let head = Head { tenant_id: Some("acme".into()), ..Head::default() };
        let event = GateEvent::PreToolUse { tool_name: "exec".into(), tool_input: json!({"command": "ls"}) };
        check(
            r#"[
                {"id": "a", "event": "pre_tool_use", HANDLER},
                {"id": "b", "event": "pre_tool_use", "matcher": "write_.*", HANDLER},
                {"id": "c", "event": "pre_tool_use", "regex": "rm", HANDLER},
                {"id": "d", "event": "pre_tool_use", "if_expr": "has(toolInput.command) && toolInput.command == 'rm'", HANDLER},
                {"id": "e", "event": "pre_tool_use", "if_expr": "toolInput.nothing.more == 1", HANDLER},
                {"id": "f", "event": "stop", HANDLER},
                {"id": "g", "event": "pre_tool_use", "scope": "agent", "tenant": "acme", "agents": ["x"], HANDLER}
            ]"#,
            &Facts::of_gate(&head, event),
            "a\n\
             b: matcher `write_.*`, tool `exec`\n\
             c: regex `rm`, a text of 16 characters without it\n\
             d: if_expr `has(toolInput.command) && toolInput.command == 'rm'`, toolInput.command = \"ls\"\n\
             e\n\
             g: scope `tenant `acme`, agents x`, tenant `acme`, no agent",
        );
        let known_as = Head { tool_names: vec!["Bash".into()], ..Head::default() };
        let event = GateEvent::PreToolUse { tool_name: "exec".into(), tool_input: json!({}) };
        check(
            r#"[{"id": "a", "event": "pre_tool_use", "matcher": "Bash", HANDLER}]"#,
            &Facts::of_gate(&known_as, event),
            "a",
        );
        let event = LifeEvent::Message { role: Role::Tool, content: "c".into() };
        check(
            r#"[{"id": "a", "event": "message", "roles": ["user", "assistant"], HANDLER}]"#,
            &Facts::of_life(&Head::default(), event),
            "a: roles `user, assistant`, role `tool`",
        );
    }

    /// What each JSON hook is ruled out by, after the event was told.
    fn told(session: &mut Session, hooks: &Dispatcher, event: &WatchEvent<'_>) -> String {
        let mut effects = Vec::new();
        hooks.tell(session, event, &mut effects);
        let line = |looked: Looked| match looked.out {
            None => format!("{} fired", looked.hook),
            Some(out) => format!("{}: {} `{}`, {}", looked.hook, out.by.as_str(), out.wanted, out.found),
        };
        let looked = hooks.current().explain_told(event, &[], &effects);
        looked.into_iter().map(line).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn json_hooks_say_what_kept_them() {
        let text = r#"[
            {"target": "chat", "label": "a", "roles": ["user"]},
            {"target": "chat", "label": "b", "regex": "error", "maxTriggers": 1},
            {"target": "stream", "label": "c", "chunks": ["reasoning"]},
            {"target": "stream", "label": "d", "regex": "key"},
            {"target": "tool", "label": "e", "tools": ["exec", "shell"], "event": "before"},
            {"target": "tool", "label": "f", "regex": "rm", "event": "before"}
        ]"#;
        let read = define::read("h.json", text, Source::User, &ActionKinds::standard());
        assert!(read.problems.is_empty(), "{:?}", read.problems);
        let hooks = Dispatcher::new(HookSet::new(read.hooks).unwrap());
        let mut session = Session::new();
        let message =
            |content| WatchEvent::Message(Message { role: Role::Assistant, content, origin: Origin::Model });
        assert_eq!(
            told(&mut session, &hooks, &message("fine")),
            "a: roles `user`, role `assistant`\nb: regex `error`, a text of 4 characters without it"
        );
        let a = "a: roles `user`, role `assistant`";
        assert_eq!(told(&mut session, &hooks, &message("error")), format!("{a}\nb fired"));
        assert_eq!(
            told(&mut session, &hooks, &message("error")),
            format!("{a}\nb: maxTriggers `1`, it has fired so often")
        );
        let chunk = |text| WatchEvent::Chunk(Chunk::Content(text));
        let c = "c: chunks `reasoning`, chunk `content`";
        assert_eq!(
            told(&mut session, &hooks, &chunk("ke")),
            format!("{c}\nd: regex `key`, no match that ends in this piece of the answer")
        );
        assert_eq!(told(&mut session, &hooks, &chunk("y")), format!("{c}\nd fired"));
        let args = json!({"a": 1});
        let run = ToolRun { name: "write", args: &args, outcome: ToolOutcome::Before };
        assert_eq!(
            told(&mut session, &hooks, &WatchEvent::Tool(run)),
            "e: tools `exec, shell`, tool `write`\nf: regex `rm`, a text of 7 characters without it"
        );
    }

    #[test]
    fn a_ring_keeps_the_newest() {
        let ring = TraceRing::default();
        let trace = |event: &str| FilterTrace {
            event_id: event.into(),
            session_id: "s".into(),
            event: "stop".into(),
            tool_name: None,
            looked: Vec::new(),
        };
        assert!(!ring.is_on());
        ring.keep(2);
        ["a", "b", "c"].map(trace).into_iter().for_each(|trace| ring.push(trace));
        let kept: Vec<String> = ring.traces().into_iter().map(|trace| trace.event_id).collect();
        assert_eq!(kept, ["b", "c"]);
    }
}
