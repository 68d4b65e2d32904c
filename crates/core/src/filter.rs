//! What a lifecycle hook looks at before its handler is asked. The cheap comes first: the set has matched scope and
//! tool name, then come role and text, then the condition.

use crate::event::Role;
use crate::expr::{Bound, Condition, Fit};
use crate::facts::Facts;
use crate::pattern::Pattern;
use crate::point::Point;
use crate::word::{Word, WordSet};

/// The filters of a lifecycle hook; all that are set must let the event through.
#[derive(Debug, Default)]
pub struct Filter {
    /// Only tools whose whole name matches.
    pub matcher: Option<Pattern>,
    /// Only messages of these roles.
    pub roles: Option<WordSet<Role>>,
    /// Only events in whose text this is found; see [`Facts::text`].
    pub regex: Option<Pattern>,
    /// Only events that meet this.
    pub if_expr: Option<Box<Condition>>,
}

impl Filter {
    /// Whether it lets every event of the point through.
    pub fn is_open(&self) -> bool {
        let Filter { matcher, roles, regex, if_expr } = self;
        matcher.is_none() && roles.is_none() && regex.is_none() && if_expr.is_none()
    }

    /// Whether an event that the set has matched concerns the hook. A condition that cannot be answered excuses
    /// nobody.
    pub(crate) fn fits(&self, facts: &Facts, bound: &mut Bound) -> Fit {
        if !self.role_fits(facts) || !self.regex_fits(facts) {
            return Fit::No;
        }
        self.if_expr.as_ref().map_or(Fit::Yes, |condition| condition.fits_bound(facts, bound))
    }

    pub(crate) fn role_fits(&self, facts: &Facts) -> bool {
        self.roles.as_ref().is_none_or(|roles| {
            let role = facts.get("role").and_then(|role| role.as_str()).and_then(Role::from_word);
            role.is_none_or(|role| roles.contains(role))
        })
    }

    pub(crate) fn regex_fits(&self, facts: &Facts) -> bool {
        self.regex.as_ref().is_none_or(|regex| facts.text().is_none_or(|text| regex.find(&text).is_some()))
    }
}

/// The points whose events have a tool.
pub(crate) const TOOL_POINTS: [Point; 3] = [Point::PreToolUse, Point::PostToolUse, Point::ToolError];

/// The points whose events have a text for `regex`.
pub(crate) const TEXT_POINTS: [Point; 6] = [
    Point::UserPromptSubmit,
    Point::Message,
    Point::PreToolUse,
    Point::PostToolUse,
    Point::ToolError,
    Point::PreResponse,
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::{GateEvent, Head, LifeEvent, ShapeEvent};
    use serde_json::json;

    #[test]
    fn every_point_with_a_text_has_one() {
        let head = Head::default();
        let (tool_name, tool_input) = ("t".to_owned(), json!({"a": "in"}));
        let check = |facts: Facts, want: &str| {
            assert!(TEXT_POINTS.contains(&facts.point()));
            assert_eq!(facts.text().as_deref(), Some(want));
        };
        check(Facts::of_gate(&head, GateEvent::UserPromptSubmit { raw_input: "hi".into() }), "hi");
        let event = GateEvent::PreToolUse { tool_name: tool_name.clone(), tool_input: tool_input.clone() };
        check(Facts::of_gate(&head, event), r#"{"a":"in"}"#);
        let output = |tool_output| LifeEvent::PostToolUse {
            tool_name: tool_name.clone(),
            tool_input: tool_input.clone(),
            tool_output,
        };
        check(Facts::of_life(&head, output(json!("out"))), "out");
        check(Facts::of_life(&head, output(json!({"b": 1}))), r#"{"b":1}"#);
        let (tool_name, error) = (tool_name.clone(), "bad".to_owned());
        check(Facts::of_life(&head, LifeEvent::ToolError { tool_name, tool_input, error }), "bad");
        check(Facts::of_shape(&head, ShapeEvent::PreResponse { response: "r".into() }), "r");
        let message = LifeEvent::Message { role: Role::Assistant, content: "m".into() };
        check(Facts::of_life(&head, message), "m");
        assert_eq!(Facts::of_life(&head, LifeEvent::Stop).text(), None);
    }
}
