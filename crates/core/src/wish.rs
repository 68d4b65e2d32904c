//! What hooks wish of a door, and where: the words in which each door says what it can do. The facts stand beside the
//! doors, each with a test that plays them; here nothing is known of any door, and nothing of this is asked while events
//! pass.

use crate::event::{ChunkKind, Role};
use crate::handler::Mode;
use crate::hook::{Hook, Listens, Work};
use crate::point::{Point, Stage};
use crate::word::{Word, WordSet};
use std::fmt;

/// Something that a hook wishes done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    /// A message joins the next request.
    Queue,
    /// The current response is dropped.
    Interrupt,
    /// It is dropped, and the model is asked again.
    Retry,
    /// The model is asked again once the response is complete.
    Resend,
    /// What a pattern found is replaced.
    Redact,
    /// What is about to happen does not.
    Block,
    /// Text is added to the answer.
    Append,
    /// A message of its own follows the answer.
    Send,
}

/// A place at which hooks listen, as finely as doors tell places apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spot {
    /// A message of this role enters the history.
    Message(Role),
    /// A piece of this type arrives.
    Chunk(ChunkKind),
    /// Any other point.
    At(Point),
}

/// What a door makes of a wish at a spot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Can {
    /// It does it.
    Yes,
    /// It does not; this is so instead, as a clause.
    No(&'static str),
    /// It never tells hooks of the spot.
    Never,
}

impl Wish {
    /// What a hook wishes, with the place of the action that says so; a handler's wish has none. Actions that only print
    /// wish nothing, and neither does a handler that only watches.
    pub fn of(hook: &Hook) -> Vec<(Option<usize>, Wish)> {
        match &hook.work {
            Work::Actions(actions) => {
                let wishes = actions.iter().enumerate().map(|(index, action)| (index, action.wish()));
                wishes.filter_map(|(index, wish)| Some((Some(index), wish?))).collect()
            }
            Work::Handler { spec, .. } => match (hook.listens.point().stage(), spec.mode) {
                (Stage::Gate, _) => vec![(None, Wish::Block)],
                (Stage::Shape, Mode::Append) => vec![(None, Wish::Append)],
                (Stage::Shape, Mode::Send) => vec![(None, Wish::Send)],
                (Stage::Watch, _) => Vec::new(),
            },
        }
    }
}

impl fmt::Display for Wish {
    /// As hook files write it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Wish::Queue => "`queue-message`",
            Wish::Interrupt => "`interrupt`",
            Wish::Retry => "`interrupt` with `resend`",
            Wish::Resend => "`queue-resend`",
            Wish::Redact => "`redact`",
            Wish::Block => "`block`",
            Wish::Append => "`mode` append",
            Wish::Send => "`mode` send",
        })
    }
}

impl Spot {
    /// The spots at which a hook listens. A pattern is never found in a finish, which has no text.
    pub fn of(hook: &Hook) -> Vec<Spot> {
        let messages = |roles: Option<&WordSet<Role>>| {
            let all = Role::ALL.iter().map(|(_, role)| *role);
            all.filter(|role| roles.is_none_or(|roles| roles.contains(*role))).map(Spot::Message).collect()
        };
        let chunks = |kinds: &WordSet<ChunkKind>, only_text: bool| {
            let all = ChunkKind::ALL.iter().map(|(_, kind)| *kind);
            let with_text = all.filter(|kind| !(only_text && *kind == ChunkKind::Finish));
            with_text.filter(|kind| kinds.contains(*kind)).map(Spot::Chunk).collect()
        };
        match &hook.listens {
            Listens::Message { roles, .. } => messages(Some(roles)),
            Listens::Chunk { kinds, regex } => chunks(kinds, regex.is_some()),
            Listens::Scan { kinds, .. } => chunks(kinds, true),
            Listens::Point { point: Point::Message, filter } => messages(filter.roles.as_ref()),
            Listens::Tool { .. } | Listens::Point { .. } => vec![Spot::At(hook.listens.point())],
        }
    }

    /// The spots at which JSON hooks listen.
    pub fn of_json_hooks() -> Vec<Spot> {
        let messages = Role::ALL.iter().map(|(_, role)| Spot::Message(*role));
        let chunks = ChunkKind::ALL.iter().map(|(_, kind)| Spot::Chunk(*kind));
        let tools = [Point::PreToolUse, Point::PostToolUse, Point::ToolError].map(Spot::At);
        messages.chain(chunks).chain(tools).collect()
    }

    /// What an action of a JSON hook may wish at one of those.
    pub fn wishes_of_actions(self) -> Vec<Wish> {
        let more = match self {
            Spot::Chunk(kind) if kind != ChunkKind::Finish => Some(Wish::Redact),
            Spot::At(Point::PreToolUse) => Some(Wish::Block),
            Spot::Message(_) | Spot::Chunk(_) | Spot::At(_) => None,
        };
        [Wish::Queue, Wish::Interrupt, Wish::Retry, Wish::Resend].into_iter().chain(more).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::action::ActionKinds;
    use crate::define::read;
    use crate::dispatch::Dispatcher;
    use crate::effect::EffectKind;
    use crate::event::{Chunk, Message, Origin, ToolOutcome, ToolRun, WatchEvent};
    use crate::hook::Source;
    use crate::session::Session;
    use crate::set::HookSet;
    use serde_json::Value;

    fn hook(text: &str) -> Hook {
        let mut read = read("h.json", text, Source::Operator, &ActionKinds::standard());
        assert!(read.problems.is_empty(), "{:?}", read.problems);
        read.hooks.remove(0)
    }

    /// The wish that an effect carries out.
    fn behind(effect: &EffectKind) -> Option<Wish> {
        match effect {
            EffectKind::Fired | EffectKind::Log { .. } => None,
            EffectKind::Queue { .. } => Some(Wish::Queue),
            EffectKind::Interrupt { resend: false } => Some(Wish::Interrupt),
            EffectKind::Interrupt { resend: true } => Some(Wish::Retry),
            EffectKind::Resend => Some(Wish::Resend),
            EffectKind::Redact { .. } => Some(Wish::Redact),
            EffectKind::Block { .. } => Some(Wish::Block),
        }
    }

    #[test]
    fn an_action_says_what_it_does() {
        let message = Message { role: Role::User, content: "x", origin: Origin::User };
        let before = ToolRun { name: "exec", args: &Value::Null, outcome: ToolOutcome::Before };
        let check = |listens: &str, event: &WatchEvent<'_>, action: &str, want: Option<Wish>| {
            let hook = hook(&format!(r#"{{{listens},"actions":[{action}]}}"#));
            assert_eq!(Wish::of(&hook), want.map(|wish| (Some(0), wish)).into_iter().collect::<Vec<_>>());
            let mut effects = Vec::new();
            let dispatcher = Dispatcher::new(HookSet::new(vec![hook]).unwrap());
            dispatcher.tell(&mut Session::new(), event, &mut effects);
            assert!(effects.len() > 1, "{action}");
            assert_eq!(effects.iter().find_map(|effect| behind(&effect.kind)), want, "{action}");
        };
        let chat = |action: &str, want| {
            check(
                r#""target":"chat""#,
                &WatchEvent::Message(message),
                &format!(r#"{{"type":{action}}}"#),
                want,
            );
        };
        for level in ["\"log\"", "\"warn\"", "\"info\"", "\"debug\""] {
            chat(level, None);
        }
        chat(r#""queue-message""#, Some(Wish::Queue));
        chat(r#""interrupt""#, Some(Wish::Interrupt));
        chat(r#""interrupt","resend":true"#, Some(Wish::Retry));
        chat(r#""queue-resend""#, Some(Wish::Resend));
        let tool = r#""target":"tool","event":"before""#;
        check(tool, &WatchEvent::Tool(before), r#"{"type":"block"}"#, Some(Wish::Block));
        let stream = r#""target":"stream","regex":"x""#;
        check(stream, &WatchEvent::Chunk(Chunk::Content("x")), r#"{"type":"redact"}"#, Some(Wish::Redact));
        // each kind was here
        assert_eq!(ActionKinds::standard().names().count(), 9);
    }

    #[test]
    fn what_may_be_wished_at_a_spot_may_be_written_there() {
        let actions = [
            (Wish::Queue, r#""queue-message""#),
            (Wish::Interrupt, r#""interrupt""#),
            (Wish::Retry, r#""interrupt","resend":true"#),
            (Wish::Resend, r#""queue-resend""#),
            (Wish::Redact, r#""redact""#),
            (Wish::Block, r#""block""#),
        ];
        for spot in Spot::of_json_hooks() {
            let listens = match spot {
                Spot::Message(role) => format!(r#""target":"chat","roles":["{}"]"#, role.as_str()),
                Spot::Chunk(ChunkKind::Finish) => r#""target":"stream","chunks":["finish"]"#.to_owned(),
                Spot::Chunk(kind) => {
                    format!(r#""target":"stream","chunks":["{}"],"regex":"x""#, kind.as_str())
                }
                Spot::At(Point::PreToolUse) => r#""target":"tool","event":"before""#.to_owned(),
                Spot::At(Point::PostToolUse) => r#""target":"tool","event":"after""#.to_owned(),
                Spot::At(_) => r#""target":"tool","event":"error""#.to_owned(),
            };
            let may = spot.wishes_of_actions();
            for (wish, action) in actions {
                let text = format!(r#"{{{listens},"actions":[{{"type":{action}}}]}}"#);
                let read = read("h.json", &text, Source::Operator, &ActionKinds::standard());
                assert_eq!(read.problems.is_empty(), may.contains(&wish), "{text} {:?}", read.problems);
                assert!(read.hooks.iter().all(|hook| Spot::of(hook) == [spot]), "{text}");
            }
        }
    }

    #[test]
    fn spots_follow_the_filters() {
        let check = |listens: &str, want: &[Spot]| assert_eq!(Spot::of(&hook(listens)), want, "{listens}");
        check(
            r#"{"target":"chat","roles":["tool","user"]}"#,
            &[Spot::Message(Role::User), Spot::Message(Role::Tool)],
        );
        check(
            r#"{"target":"stream","chunks":["finish","content"]}"#,
            &[Spot::Chunk(ChunkKind::Content), Spot::Chunk(ChunkKind::Finish)],
        );
        check(
            r#"{"target":"stream","chunks":["finish","content"],"regex":"x"}"#,
            &[Spot::Chunk(ChunkKind::Content)],
        );
        check(r#"{"target":"tool","event":"error"}"#, &[Spot::At(Point::ToolError)]);
        let script = r#""handler":{"type":"script","source":"x"}"#;
        check(&format!(r#"{{"event":"message","roles":["user"],{script}}}"#), &[Spot::Message(Role::User)]);
        check(&format!(r#"{{"event":"stop",{script}}}"#), &[Spot::At(Point::Stop)]);
    }

    #[test]
    fn what_a_handler_may_wish_follows_its_point() {
        let check = |fields: &str, want: &[Wish]| {
            let hook = hook(&format!(r#"{{{fields},"handler":{{"type":"script","source":"x"}}}}"#));
            let want: Vec<_> = want.iter().map(|wish| (None, *wish)).collect();
            assert_eq!(Wish::of(&hook), want, "{fields}");
        };
        check(r#""event":"pre_tool_use""#, &[Wish::Block]);
        check(r#""event":"pre_response""#, &[Wish::Append]);
        check(r#""event":"pre_response","mode":"send""#, &[Wish::Send]);
        check(r#""event":"stop""#, &[]);
    }
}
