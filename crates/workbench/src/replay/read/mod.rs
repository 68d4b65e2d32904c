//! One reader a format: lines of JSON in, steps out.

mod chat_log;
mod claude_code;
mod codex;
mod messages;
mod text;

use crate::replay::format::Format;
use crate::replay::step::Told;
use hookgate_agents::agent::Agent;
use serde_json::Value;

pub(crate) use messages::document;

/// Turns the lines of one file into steps.
pub(crate) trait Reader {
    /// Adds the steps that a line tells of; many tell of none.
    ///
    /// # Errors
    /// The line lacks what no line of its kind lacks; a few words.
    fn line(&mut self, number: u64, line: Value, told: &mut Vec<Told>) -> Result<(), String>;
}

/// The reader of a format. `agent` is whose tools a list of messages names, if that is known.
pub(crate) fn reader(format: Format, agent: Option<&'static dyn Agent>) -> Box<dyn Reader> {
    match format {
        Format::ClaudeCode => Box::new(claude_code::ClaudeCode::default()),
        Format::Codex => Box::new(codex::Codex::default()),
        Format::ChatLog => Box::new(chat_log::ChatLog::default()),
        Format::Messages => Box::new(messages::Messages::new(agent)),
    }
}

#[cfg(test)]
mod tests;
