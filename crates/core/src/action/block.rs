//! `block`: the tool does not run; the model reads the reason. Only in hooks on `tool` with `event: before`: nothing
//! else can be stopped before it happened.
//!
//! | field | required | default |
//! |---|---|---|
//! | `message` | no | `NAME may not run like this` |

use super::Action;
use crate::define::Fields;
use crate::dispatch::Firing;
use crate::effect::{Effect, EffectKind};
use crate::template::Template;
use crate::wish::Wish;

const DEFAULT: &str = "{{name}} may not run like this";

#[derive(Debug)]
struct Block {
    reason: Template,
}

pub(super) fn read(fields: &Fields<'_>) -> Option<Box<dyn Action>> {
    // an empty reason would leave the model guessing
    let written = fields.text("message").filter(|text| !text.trim().is_empty());
    Some(Box::new(Block { reason: Template::parse(written.unwrap_or(DEFAULT)) }))
}

impl Action for Block {
    fn run(&self, firing: &Firing<'_>, effects: &mut Vec<Effect>) {
        effects.push(firing.effect(EffectKind::Block { reason: self.reason.render(firing) }));
    }

    fn wish(&self) -> Option<Wish> {
        Some(Wish::Block)
    }
}
