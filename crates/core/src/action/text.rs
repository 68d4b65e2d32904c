//! The `message` of an action: a template, or a dump of the event where none is written.

use crate::define::Fields;
use crate::dispatch::Firing;
use crate::template::Template;

/// What an action prints or queues.
#[derive(Debug, Clone, PartialEq)]
pub enum ActionText {
    /// The written template.
    Template(Template),
    /// `[json-hook LABEL] target: {…}`
    Dump,
}

impl ActionText {
    /// Reads the optional field `message`. Present but empty is not omitted.
    pub fn read(fields: &Fields<'_>) -> ActionText {
        fields.text("message").map_or(ActionText::Dump, |text| ActionText::Template(Template::parse(text)))
    }

    /// Fills it for one firing.
    pub fn render(&self, firing: &Firing<'_>) -> String {
        match self {
            ActionText::Template(template) => template.render(firing),
            ActionText::Dump => firing.dump(),
        }
    }
}
