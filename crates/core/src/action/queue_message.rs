//! `queue-message`: put a message into the queue; it joins the next request, tagged `origin: hook`.
//!
//! | field | required | default |
//! |---|---|---|
//! | `role` | no | `assistant`; one of user, assistant, tool, reasoning |
//! | `message` | no | a dump of the event |

use super::{Action, ActionText};
use crate::define::Fields;
use crate::dispatch::Firing;
use crate::effect::{Effect, EffectKind};
use crate::event::Role;
use crate::wish::Wish;

#[derive(Debug)]
struct QueueMessage {
    role: Role,
    text: ActionText,
}

pub(super) fn read(fields: &Fields<'_>) -> Option<Box<dyn Action>> {
    let role = fields.word("role").unwrap_or(Role::Assistant);
    Some(Box::new(QueueMessage { role, text: ActionText::read(fields) }))
}

impl Action for QueueMessage {
    fn run(&self, firing: &Firing<'_>, effects: &mut Vec<Effect>) {
        let content = self.text.render(firing);
        effects.push(firing.effect(EffectKind::Queue { role: self.role, content }));
    }

    fn wish(&self) -> Option<Wish> {
        Some(Wish::Queue)
    }
}
