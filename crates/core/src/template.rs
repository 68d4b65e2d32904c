//! `{{variable}}` templates: parsed once, filled in one pass.
//!
//! Text that comes from an event is never expanded, an unknown name stays as it is written, and so does a
//! known one that the event does not have (`{{text}}` on a finish chunk).

use crate::word::{Word, words};
use std::borrow::Cow;

words! {
    /// A name that a template may use. Which of them an event has depends on its target.
    pub enum Variable("variable") {
        /// The hook's label, empty if it has none. All targets.
        Label = "label",
        /// `chat`, `stream` or `tool`. All targets.
        Target = "target",
        /// The message's role. Target chat.
        Role = "role",
        /// The message's text. Target chat.
        Content = "content",
        /// The text that the hook's `regex` matched. All targets, if there is a `regex`.
        Match = "match",
        /// The chunk's type. Target stream.
        Type = "type",
        /// The chunk's text. Target stream, all types but finish.
        Text = "text",
        /// The tool call's id. Target stream, type tool_call_delta.
        ToolCallId = "toolCallId",
        /// Why the answer ended. Target stream, type finish.
        FinishReason = "finishReason",
        /// `before`, `after` or `error`. Target tool.
        Event = "event",
        /// The tool's name. Target tool.
        Name = "name",
        /// The tool's arguments as JSON. Target tool.
        Args = "args",
        /// The tool's result, JSON unless it is text. Target tool, event after.
        Result = "result",
        /// What went wrong. Target tool, event error.
        Error = "error",
    }
}

/// Gives the value of a variable, or nothing where the event has none.
pub trait Variables {
    /// The value as text; objects and lists as JSON.
    fn get(&self, variable: Variable) -> Option<Cow<'_, str>>;
}

/// A parsed template.
#[derive(Debug, Clone, PartialEq)]
pub struct Template {
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq)]
enum Part {
    Text(String),
    Variable(Variable),
}

impl Template {
    /// Parses a text. Never fails: what is no known `{{name}}` is plain text.
    pub fn parse(source: &str) -> Template {
        let mut parts = Vec::new();
        let mut text = String::new();
        let mut rest = source;
        while let Some(open) = rest.find("{{") {
            let (before, from) = rest.split_at(open);
            text.push_str(before);
            match placeholder(from) {
                Some((variable, after)) => {
                    if !text.is_empty() {
                        parts.push(Part::Text(std::mem::take(&mut text)));
                    }
                    parts.push(Part::Variable(variable));
                    rest = after;
                }
                None => {
                    // one brace only: `{{{role}}}` holds a placeholder that begins one later
                    text.push('{');
                    rest = from.strip_prefix('{').unwrap_or_default();
                }
            }
        }
        text.push_str(rest);
        if !text.is_empty() {
            parts.push(Part::Text(text));
        }
        Template { parts }
    }

    /// Fills the template.
    pub fn render(&self, variables: &dyn Variables) -> String {
        // the most common template is one value and nothing else
        if let [Part::Variable(variable)] = self.parts.as_slice()
            && let Some(value) = variables.get(*variable)
        {
            return value.into_owned();
        }
        let mut out = String::with_capacity(128);
        for part in &self.parts {
            match part {
                Part::Text(text) => out.push_str(text),
                Part::Variable(variable) => match variables.get(*variable) {
                    Some(value) => out.push_str(&value),
                    None => {
                        out.push_str("{{");
                        out.push_str(variable.as_str());
                        out.push_str("}}");
                    }
                },
            }
        }
        out
    }

    /// The variables that occur, in order, with repeats.
    pub fn variables(&self) -> impl Iterator<Item = Variable> + '_ {
        self.parts.iter().filter_map(|part| match part {
            Part::Variable(variable) => Some(*variable),
            Part::Text(_) => None,
        })
    }
}

/// Longer than any variable's name, so that a text full of braces is not searched again and again.
const LONGEST_NAME: usize = 24;

/// Reads `{{name}}` at the start of a text, if the name is known.
fn placeholder(text: &str) -> Option<(Variable, &str)> {
    let inside = text.strip_prefix("{{")?;
    let end = inside.bytes().take(LONGEST_NAME).position(|byte| byte == b'}')?;
    let (name, after) = inside.split_at_checked(end)?;
    Some((Variable::from_word(name)?, after.strip_prefix("}}")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Chat;
    impl Variables for Chat {
        fn get(&self, variable: Variable) -> Option<Cow<'_, str>> {
            match variable {
                Variable::Role => Some("user".into()),
                Variable::Content => Some("{{role}} $1 {{label}}".into()),
                _ => None,
            }
        }
    }

    fn check(template: &str, want: &str) {
        assert_eq!(Template::parse(template).render(&Chat), want, "{template}");
    }

    #[test]
    fn fills_known_names_once() {
        check("", "");
        check("a {{role}} b", "a user b");
        check("{{role}}{{role}}", "useruser");
        check("{{content}}", "{{role}} $1 {{label}}");
    }

    #[test]
    fn everything_else_stays() {
        check("{{nope}} {{ role }} {{Role}} {{text}}", "{{nope}} {{ role }} {{Role}} {{text}}");
        check("{{role", "{{role");
        check("{{{role}}}", "{user}");
        check("{{{{role}}}}", "{{user}}");
        check("{{a{{role}}", "{{auser");
        check("{{}} { {role}} }}", "{{}} { {role}} }}");
        check("{{é}} {{constructor}}", "{{é}} {{constructor}}");
    }

    proptest::proptest! {
        #[test]
        fn text_without_known_names_is_unchanged(text in "[{}a-z ]{0,40}") {
            proptest::prop_assume!(Variable::ALL.iter().all(|(name, _)| !text.contains(&format!("{{{{{name}}}}}"))));
            check(&text, &text);
        }
    }
}
