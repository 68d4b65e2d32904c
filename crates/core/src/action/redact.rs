//! `redact`: the matched text does not reach the reader; something else stands in its place. Only in hooks on `stream`
//! with a `regex`, from a trusted folder: changing what the model said takes more trust than stopping it.
//!
//! | field | required | default |
//! |---|---|---|
//! | `with` | no | `[redacted]` |

use super::Action;
use crate::define::Fields;
use crate::dispatch::Firing;
use crate::effect::{Effect, EffectKind};
use crate::template::Template;
use crate::wish::Wish;

/// What stands there when the hook does not say.
pub(crate) const REDACTED: &str = "[redacted]";

#[derive(Debug)]
struct Redact {
    with: Template,
}

pub(super) fn read(fields: &Fields<'_>) -> Option<Box<dyn Action>> {
    Some(Box::new(Redact { with: Template::parse(fields.text("with").unwrap_or(REDACTED)) }))
}

impl Action for Redact {
    fn run(&self, firing: &Firing<'_>, effects: &mut Vec<Effect>) {
        effects.push(firing.effect(EffectKind::Redact { with: self.with.render(firing) }));
    }

    fn holds(&self) -> bool {
        true
    }

    fn wish(&self) -> Option<Wish> {
        Some(Wish::Redact)
    }
}
