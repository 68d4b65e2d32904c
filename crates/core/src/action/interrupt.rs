//! `interrupt`: drop the current response; with `resend`, ask again.
//!
//! | field | required | default |
//! |---|---|---|
//! | `resend` | no | `false` |
//! | `message` | no | accepted and not used, as the text says |

use super::Action;
use crate::define::Fields;
use crate::dispatch::Firing;
use crate::effect::{Effect, EffectKind};
use crate::wish::Wish;

#[derive(Debug)]
struct Interrupt {
    resend: bool,
}

pub(super) fn read(fields: &Fields<'_>) -> Option<Box<dyn Action>> {
    fields.text("message");
    Some(Box::new(Interrupt { resend: fields.flag("resend").unwrap_or(false) }))
}

impl Action for Interrupt {
    fn run(&self, firing: &Firing<'_>, effects: &mut Vec<Effect>) {
        effects.push(firing.effect(EffectKind::Interrupt { resend: self.resend }));
    }

    fn holds(&self) -> bool {
        true
    }

    fn wish(&self) -> Option<Wish> {
        Some(if self.resend { Wish::Retry } else { Wish::Interrupt })
    }
}
