//! What an agent can tell a hook of, and what a hook's answer can do there.

use hookgate_core::point::Point;
use std::time::Duration;

/// One kind of event of one agent.
#[derive(Debug, PartialEq)]
pub struct Event {
    /// As the agent spells it.
    pub name: &'static str,
    /// What it is: the name of one of our points, or of something that only agents have.
    pub means: &'static str,
    /// Where our hooks are asked or told; none: nobody listens.
    pub point: Option<Point>,
    /// What an answer can do.
    pub effects: &'static [Effect],
    /// Whether an installation puts an entry there. The others are understood when somebody else wired them.
    pub installed: bool,
    /// How long the agent waits at most, where that is less than [`Agent::patience`](crate::agent::Agent::patience).
    pub patience: Option<Duration>,
}

/// What an answer can ask of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Stop what is about to happen.
    Block,
    /// Leave it to a person.
    Ask,
    /// Run it with another input.
    ChangeInput,
    /// Tell the model something beside it.
    AddContext,
    /// The reason of a block reaches the model although the thing has happened.
    Feedback,
    /// Let the model go on instead of ending the turn.
    KeepGoing,
    /// Change the text of an answer before it is shown.
    ChangeText,
}

impl Effect {
    /// All of them.
    pub const ALL: [Effect; 7] = [
        Effect::Block,
        Effect::Ask,
        Effect::ChangeInput,
        Effect::AddContext,
        Effect::Feedback,
        Effect::KeepGoing,
        Effect::ChangeText,
    ];

    /// In words.
    pub fn as_str(self) -> &'static str {
        match self {
            Effect::Block => "block",
            Effect::Ask => "ask a person",
            Effect::ChangeInput => "change the input",
            Effect::AddContext => "add context",
            Effect::Feedback => "tell the model afterwards",
            Effect::KeepGoing => "keep going",
            Effect::ChangeText => "change the answer",
        }
    }
}

/// Whether an agent can do something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Can {
    /// At every event of the point.
    Yes,
    /// At these events of the point only.
    Sometimes,
    /// The agent has the point, but not this.
    No,
    /// The agent has no such point: nothing ever happens there.
    Never,
}

/// An event with a point of ours.
pub(crate) const fn at(name: &'static str, point: Point, effects: &'static [Effect]) -> Event {
    Event { name, means: means(point), point: Some(point), effects, installed: true, patience: None }
}

/// An event that has no point of ours: it is let pass in silence.
pub(crate) const fn other(name: &'static str, means: &'static str) -> Event {
    Event { name, means, point: None, effects: &[], installed: false, patience: None }
}

impl Event {
    /// The same, understood but not installed.
    pub(crate) const fn spare(self) -> Event {
        Event { installed: false, ..self }
    }

    /// The same, which is another thing than its point says.
    pub(crate) const fn meaning(self, means: &'static str) -> Event {
        Event { means, ..self }
    }

    /// The same, waited for so many milliseconds by the agent.
    pub(crate) const fn within(self, ms: u64) -> Event {
        Event { patience: Some(Duration::from_millis(ms)), ..self }
    }

    /// Whether an answer can do this.
    pub fn can(&self, effect: Effect) -> bool {
        self.effects.contains(&effect)
    }
}

/// The point's name, at compile time; a test holds the two together.
const fn means(point: Point) -> &'static str {
    match point {
        Point::SessionStart => "session_start",
        Point::UserPromptSubmit => "user_prompt_submit",
        Point::Message => "message",
        Point::Chunk => "chunk",
        Point::PreToolUse => "pre_tool_use",
        Point::PostToolUse => "post_tool_use",
        Point::ToolError => "tool_error",
        Point::PreResponse => "pre_response",
        Point::Stop => "stop",
        Point::SessionEnd => "session_end",
        Point::SubagentStart => "subagent_start",
        Point::SubagentStop => "subagent_stop",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hookgate_core::word::Word;

    #[test]
    fn the_names_are_those_of_the_points() {
        for (point, word) in Point::ALL.iter().map(|(_, point)| (*point, point.as_str())) {
            assert_eq!(means(point), word);
        }
    }
}
