//! What a hook wishes and one door cannot do.

use super::agent;
use super::door::Door;
use hookgate_core::define::{HookRef, Problem};
use hookgate_core::event::{ChunkKind, Role};
use hookgate_core::hook::Hook;
use hookgate_core::wish::{Can, Spot, Wish};
use hookgate_core::word::Word;
use hookgate_workbench::lint::{AGENT_CANNOT, DOOR_CANNOT};

/// Warnings about one hook.
pub(super) fn warnings(door: &Door, hook: &Hook) -> Vec<Problem> {
    let is_json = hook.listens.target().is_some();
    let (rule, said) = match door {
        Door::Agent(agent) if !is_json => {
            let said = agent::beyond(*agent, hook).into_iter();
            (
                AGENT_CANNOT,
                said.map(|(field, message)| Note { field: field.into(), message, help: None }).collect(),
            )
        }
        Door::Agent(_) => (AGENT_CANNOT, notes(door, hook)),
        Door::Own(_) => (DOOR_CANNOT, notes(door, hook)),
    };
    let warning = |note: Note| Problem {
        hook: Some(HookRef { index: hook.index, label: Some(hook.name.to_string()) }),
        field: Some(note.field),
        help: note.help,
        rule: Some(rule),
        ..Problem::of_file(&hook.file, note.message)
    };
    said.into_iter().map(warning).collect()
}

/// Something to say of a hook.
struct Note {
    field: String,
    message: String,
    help: Option<String>,
}

fn notes(door: &Door, hook: &Hook) -> Vec<Note> {
    // whether a spot is told of does not depend on what is wished there
    let is_told = |spot: &Spot| door.can(*spot, Wish::Queue, &[]) != Can::Never;
    let (told, untold): (Vec<Spot>, Vec<Spot>) = Spot::of(hook).into_iter().partition(is_told);
    if told.is_empty() {
        let field = if hook.listens.target().is_some() { "target" } else { "event" };
        let kind = kind_of(&untold);
        let never = if kind.iter().any(is_told) { words(&untold) } else { words(&kind) };
        let message = format!("{} never tells of {never}: the hook never runs there", door.title());
        return vec![Note { field: field.into(), message, help: None }];
    }
    let mut notes = Vec::new();
    // a hook that names no roles means those that there are
    if told.len().saturating_add(untold.len()) < kind_of(&told).len() && !untold.is_empty() {
        let message = format!("{} never tells of {}", door.title(), words(&untold));
        notes.push(Note { field: filter(&untold).into(), message, help: None });
    }
    let wishes = Wish::of(hook);
    for (at, (index, wish)) in wishes.iter().enumerate() {
        let beside: Vec<Wish> =
            wishes.iter().enumerate().filter(|(other, _)| *other != at).map(|(_, (_, wish))| *wish).collect();
        for (why, spots) in refused(door, &told, *wish, &beside) {
            let title = door.title();
            let message = format!("{title} cannot carry out {wish} at {}: {why}", words(&spots));
            let help = elsewhere(&told, &spots);
            notes.push(Note { field: field(*index, *wish), message, help });
        }
    }
    notes
}

/// Why a wish is not carried out, and where.
fn refused(door: &Door, told: &[Spot], wish: Wish, beside: &[Wish]) -> Vec<(&'static str, Vec<Spot>)> {
    let mut refused: Vec<(&'static str, Vec<Spot>)> = Vec::new();
    for spot in told {
        let Can::No(why) = door.can(*spot, wish, beside) else { continue };
        match refused.iter_mut().find(|(known, _)| *known == why) {
            Some((_, spots)) => spots.push(*spot),
            None => refused.push((why, vec![*spot])),
        }
    }
    refused
}

/// Where it is written.
fn field(index: Option<usize>, wish: Wish) -> String {
    match (index, wish) {
        (Some(index), Wish::Retry) => format!("actions[{index}].resend"),
        (Some(index), _) => format!("actions[{index}].type"),
        (None, Wish::Append | Wish::Send) => "mode".to_owned(),
        (None, _) => "event".to_owned(),
    }
}

/// How the hook names only spots at which all is well.
fn elsewhere(told: &[Spot], refused: &[Spot]) -> Option<String> {
    let fine: Vec<String> = told
        .iter()
        .filter(|spot| !refused.contains(spot))
        .map(|spot| format!("\"{}\"", name(*spot)))
        .collect();
    (!fine.is_empty()).then(|| format!("`\"{}\": [{}]` leaves them out", filter(told), fine.join(", ")))
}

/// All spots of the kind of these.
fn kind_of(spots: &[Spot]) -> Vec<Spot> {
    match spots.first() {
        Some(Spot::Message(_)) => Role::ALL.iter().map(|(_, role)| Spot::Message(*role)).collect(),
        Some(Spot::Chunk(_)) => ChunkKind::ALL.iter().map(|(_, kind)| Spot::Chunk(*kind)).collect(),
        Some(Spot::At(_)) | None => spots.to_vec(),
    }
}

/// The field that names such spots.
fn filter(spots: &[Spot]) -> &'static str {
    match spots.first() {
        Some(Spot::Message(_)) => "roles",
        Some(Spot::Chunk(_)) => "chunks",
        Some(Spot::At(_)) | None => "event",
    }
}

fn name(spot: Spot) -> &'static str {
    match spot {
        Spot::Message(role) => role.as_str(),
        Spot::Chunk(kind) => kind.as_str(),
        Spot::At(point) => point.as_str(),
    }
}

/// Spots of one hook in words: `user` and `tool` messages.
fn words(spots: &[Spot]) -> String {
    let quoted: Vec<String> = spots.iter().map(|spot| format!("`{}`", name(*spot))).collect();
    let list = match quoted.as_slice() {
        [before @ .., last] if !before.is_empty() => format!("{} and {last}", before.join(", ")),
        _ => quoted.concat(),
    };
    let is_all = spots.len() == kind_of(spots).len();
    match spots.first() {
        Some(Spot::Message(_)) if is_all => "messages".to_owned(),
        Some(Spot::Message(_)) => format!("{list} messages"),
        Some(Spot::Chunk(_)) if is_all => "chunks".to_owned(),
        Some(Spot::Chunk(_)) => format!("{list} chunks"),
        Some(Spot::At(point)) => point.to_string(),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hookgate_core::action::ActionKinds;
    use hookgate_core::define;
    use hookgate_core::hook::Source;

    /// What is said of a hook behind a door: `field: message (help)`, as these beginnings.
    #[track_caller]
    fn check(door: &str, hook: &str, want: &[&str]) {
        let read = define::read("h.json", hook, Source::Operator, &ActionKinds::standard());
        assert!(read.problems.is_empty(), "{:?}", read.problems);
        let Ok(door) = Door::named(door) else { panic!("no door {door}") };
        let said: Vec<String> = read.hooks.iter().flat_map(|hook| notes_of(&door, hook)).collect();
        assert_eq!(said.len(), want.len(), "{hook}: {said:#?}");
        for (said, want) in said.iter().zip(want) {
            assert!(said.contains(want), "{said} lacks {want}");
        }
    }

    fn notes_of(door: &Door, hook: &Hook) -> Vec<String> {
        let shown = |problem: Problem| {
            let (field, help) = (problem.field.unwrap_or_default(), problem.help.unwrap_or_default());
            format!("{field}: {} ({help})", problem.message)
        };
        warnings(door, hook).into_iter().map(shown).collect()
    }

    #[test]
    fn a_hook_that_names_no_roles_means_those_that_there_are() {
        let resend =
            |roles: &str| format!(r#"{{"target":"chat"{roles},"actions":[{{"type":"queue-resend"}}]}}"#);
        let told = "actions[0].type: `hookgate gateway` cannot carry out `queue-resend` at `user` and `tool` messages: \
                    the request has not gone out yet";
        check("gateway", &resend(""), &[told]);
        check("gateway", &resend(""), &["(`\"roles\": [\"assistant\"]` leaves them out)"]);
        check("gateway", &resend(r#","roles":["assistant"]"#), &[]);
        let some = resend(r#","roles":["assistant","reasoning"]"#);
        check("gateway", &some, &["roles: `hookgate gateway` never tells of `reasoning` messages ("]);
        let none = resend(r#","roles":["reasoning"]"#);
        check(
            "gateway",
            &none,
            &["target: `hookgate gateway` never tells of `reasoning` messages: the hook never"],
        );
        check("chat", &resend(""), &[]);
    }

    #[test]
    fn each_action_is_looked_at() {
        let actions = r#"[{"type":"log"},{"type":"queue-message"},{"type":"interrupt","resend":true}]"#;
        let before = format!(r#"{{"target":"tool","event":"before","actions":{actions}}}"#);
        check(
            "mcp",
            &before,
            &[
                "actions[1].type: `hookgate mcp` cannot carry out `queue-message` at pre_tool_use: there is no conversation",
                "actions[2].resend: `hookgate mcp` cannot carry out `interrupt` with `resend` at pre_tool_use: the call is",
            ],
        );
        check("gateway", &before, &[]);
        check("mcp", r#"{"target":"tool","event":"before","actions":[{"type":"block"}]}"#, &[]);
        let redact = r#"{"target":"stream","regex":"x","actions":[{"type":"redact"}]}"#;
        check(
            "chat",
            redact,
            &["cannot carry out `redact` at `content`, `reasoning` and `tool_call_delta` chunks: "],
        );
        check("gateway", redact, &[]);
        let one = r#"{"target":"stream","chunks":["content"]}"#;
        check("mcp", one, &["target: `hookgate mcp` never tells of chunks: the hook never"]);
        check(
            "mcp",
            r#"{"target":"stream"}"#,
            &["target: `hookgate mcp` never tells of chunks: the hook never"],
        );
    }

    #[test]
    fn handlers_are_looked_at_too() {
        let hook = |fields: &str| format!(r#"{{{fields},"handler":{{"type":"script","source":"x"}}}}"#);
        let sent = hook(r#""event":"pre_response","mode":"send""#);
        check(
            "gateway",
            &sent,
            &["mode: `hookgate gateway` cannot carry out `mode` send at pre_response: an answer"],
        );
        check("opencode", &sent, &["mode: opencode has one text for an answer"]);
        check("chat", &sent, &[]);
        check("gateway", &hook(r#""event":"pre_response""#), &[]);
        check(
            "mcp",
            &hook(r#""event":"user_prompt_submit""#),
            &["event: `hookgate mcp` never tells of user_prompt"],
        );
        check(
            "gateway",
            &hook(r#""event":"subagent_start""#),
            &["event: `hookgate gateway` never tells of subagent"],
        );
        check("mcp", &hook(r#""event":"pre_tool_use""#), &[]);
        check(
            "claude-code",
            &hook(r#""event":"pre_response""#),
            &["event: Claude Code never tells of pre_response"],
        );
    }

    #[test]
    fn agents_take_over_what_their_events_can() {
        let chat = |roles: &str, actions: &str| {
            format!(r#"{{"target":"chat","roles":["{roles}"],"actions":[{actions}]}}"#)
        };
        let (queue, resend) = (r#"{"type":"queue-message","message":"x"}"#, r#"{"type":"queue-resend"}"#);
        let stop = r#"{"type":"interrupt"}"#;
        check("claude-code", &chat("user", stop), &[]);
        check("claude-code", &chat("user", queue), &[]);
        check("claude-code", &chat("user", resend), &["cannot carry out `queue-resend` at `user` messages"]);
        check("claude-code", &chat("assistant", resend), &[]);
        check("claude-code", &chat("assistant", stop), &["the answer has been shown"]);
        // alone it is lost at the end of a turn, with a resend it is what the model reads
        check("claude-code", &chat("assistant", queue), &["takes over no message there"]);
        check("claude-code", &chat("assistant", &format!("{queue},{resend}")), &[]);
        check("claude-code", &chat("user", &format!("{queue},{stop}")), &["actions[0].type: "]);
        check("claude-code", r#"{"target":"stream"}"#, &["target: Claude Code never tells of chunks"]);
    }
}
