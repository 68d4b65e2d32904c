//! An agent: what it tells hooks of, how its payloads read, and how answers are written for it.

use crate::event::{Can, Effect, Event};
use crate::fields::{Fields, Parts};
use crate::outcome::{Outcome, Said, Word};
use crate::read::{Read, Unread};
use crate::setup::Setup;
use crate::tools::Tool;
use hookgate_core::point::Point;
use serde_json::Value;
use std::time::Duration;

/// A coding agent. One file each; the table in [`crate::table`] lists them.
pub trait Agent: Sync + std::fmt::Debug {
    /// As the command line spells it.
    fn name(&self) -> &'static str;

    /// As people know it.
    fn title(&self) -> &'static str;

    /// The versions and the sort of evidence that this file stands on, for its page.
    fn evidence(&self) -> &'static str;

    /// All its events that are understood.
    fn events(&self) -> &'static [Event];

    /// How it is wired; none: only by hand.
    fn setup(&self) -> Option<&'static Setup> {
        None
    }

    /// How long it waits for a hook program when its settings name no other limit.
    fn patience(&self) -> Duration {
        Duration::from_secs(30)
    }

    /// What its page says beyond the tables, one sentence each.
    fn notes(&self) -> &'static [&'static str] {
        &[]
    }

    /// Its tools, by the agent's names.
    fn tools(&self) -> &'static [(&'static str, Tool)];

    /// What its payloads call things.
    fn fields(&self) -> &'static Fields;

    /// The parts of a payload. Most agents need no more than [`Agent::fields`].
    ///
    /// # Errors
    /// What no event of this kind lacks is missing.
    fn parts(&self, event: &'static Event, payload: &Value) -> Result<Parts, Unread> {
        let _ = event;
        Ok(Parts::of(self.fields(), payload))
    }

    /// Whether it tells of a tool's failure with the event of the tool's result: it has none of its own for failures.
    fn fails_with_results(&self) -> bool {
        false
    }

    /// The event that a payload shows by its members, for agents that do not always name it.
    fn guess(&self, payload: &Value) -> Option<&'static str> {
        let _ = payload;
        None
    }

    /// Server and tool of a call by its name, if it is one of a Model Context Protocol server.
    fn mcp<'n>(&self, tool: &'n str) -> Option<(&'n str, &'n str)> {
        tool.strip_prefix("mcp__")?.split_once("__")
    }

    /// Writes an answer. Only what the event can do comes here.
    fn say(&self, event: &Event, outcome: &Outcome, read: Option<&Read>) -> Said;

    /// The word for no where not even the event is known.
    fn no(&self, reason: &str) -> Said {
        Said::refusal(reason)
    }
}

impl dyn Agent {
    /// An event by the agent's name for it.
    pub fn event(&self, name: &str) -> Option<&'static Event> {
        self.events().iter().find(|event| event.name == name)
    }

    /// The event of a payload: the one that it names, else the one that the agent's settings name, else what its
    /// members look like.
    pub fn event_of(&self, hint: Option<&str>, payload: &Value) -> Option<&'static Event> {
        let named = self.fields().event_of(payload).and_then(|name| self.event(name));
        let hinted = || hint.and_then(|name| self.event(name));
        named.or_else(hinted).or_else(|| self.guess(payload).and_then(|name| self.event(name)))
    }

    /// Understands a payload. The event that it names counts; `hint`, what the agent's settings name, where it names
    /// none that is known.
    ///
    /// # Errors
    /// See [`Unread`].
    pub fn read(&self, hint: Option<&str>, payload: Value) -> Result<Read, Unread> {
        let event = self.event_of(hint, &payload).ok_or_else(|| {
            let named = self.fields().event_of(&payload).or(hint).unwrap_or("none is named");
            Unread::UnknownEvent(named.chars().take(80).collect())
        })?;
        let parts = self.parts(event, &payload)?;
        parts.assemble(self, event, payload)
    }

    /// What to say. What the agent cannot do becomes a block where it would be lost otherwise.
    pub fn answer(&self, read: &Read, outcome: &Outcome) -> Said {
        self.say(read.event, &self.within_means(read.event, outcome), Some(read))
    }

    /// What to say after a fault: no, at every event that can be stopped, and nothing elsewhere.
    pub fn fault(&self, event: Option<&Event>, reason: &str) -> Said {
        match event {
            None => self.no(reason),
            Some(event) if event.can(Effect::Block) => {
                self.say(event, &self.within_means(event, &Outcome::block(reason)), None)
            }
            Some(event) => self.say(event, &Outcome::default(), None),
        }
    }

    /// Whether an event of it may tell hooks of this point.
    pub fn tells(&self, event: &Event, point: Point) -> bool {
        let with_result = point == Point::ToolError && self.fails_with_results();
        event.point == Some(point) || (with_result && event.point == Some(Point::PostToolUse))
    }

    /// Whether it can do something at a point.
    pub fn can(&self, point: Point, effect: Effect) -> Can {
        let here: Vec<bool> = self
            .events()
            .iter()
            .filter(|event| event.installed && self.tells(event, point))
            .map(|event| event.can(effect))
            .collect();
        match (here.is_empty(), here.iter().all(|can| *can), here.iter().any(|can| *can)) {
            (true, _, _) => Can::Never,
            (false, true, _) => Can::Yes,
            (false, false, true) => Can::Sometimes,
            (false, false, false) => Can::No,
        }
    }

    /// The outcome as far as the event can express it. Nothing that a hook asked for is lost in silence: a change that
    /// the agent would not apply becomes a block, and so does a question that nobody would be asked.
    pub fn within_means(&self, event: &Event, outcome: &Outcome) -> Outcome {
        let Outcome { word, input, text, context } = outcome.clone();
        let can = |effect| event.can(effect);
        let word = match word {
            Word::Nothing => Word::Nothing,
            Word::Ask(reason) if can(Effect::Ask) => Word::Ask(worded(reason)),
            Word::Ask(reason) if can(Effect::Block) => {
                Word::Block(format!("needs a person: {}", worded(reason)))
            }
            Word::Block(reason) if can(Effect::Block) || can(Effect::Feedback) || can(Effect::KeepGoing) => {
                Word::Block(worded(reason))
            }
            Word::Ask(_) | Word::Block(_) => Word::Nothing,
        };
        let lost = |what: &str| {
            format!("a hook changes {what}, which {} cannot take over; so it is stopped", self.title())
        };
        let word = match word {
            Word::Nothing if input.is_some() && !can(Effect::ChangeInput) && can(Effect::Block) => {
                Word::Block(lost("the input"))
            }
            Word::Nothing
                if text.is_some()
                    && !can(Effect::ChangeInput)
                    && !can(Effect::ChangeText)
                    && can(Effect::Block) =>
            {
                Word::Block(lost("the text"))
            }
            word => word,
        };
        let stopped = word != Word::Nothing && can(Effect::Block);
        Outcome {
            word,
            input: input.filter(|_| can(Effect::ChangeInput) && !stopped),
            text: text.filter(|_| (can(Effect::ChangeInput) || can(Effect::ChangeText)) && !stopped),
            context: if can(Effect::AddContext) && !stopped { context } else { Vec::new() },
        }
    }
}

/// A reason that is never empty: some agents drop a block without one.
fn worded(reason: String) -> String {
    if reason.trim().is_empty() { "no reason given".to_owned() } else { reason }
}
