//! `queue-resend`: ask again once the current response is complete. It has no fields.

use super::Action;
use crate::define::Fields;
use crate::dispatch::Firing;
use crate::effect::{Effect, EffectKind};
use crate::wish::Wish;

#[derive(Debug)]
struct QueueResend;

pub(super) fn read(_fields: &Fields<'_>) -> Option<Box<dyn Action>> {
    Some(Box::new(QueueResend))
}

impl Action for QueueResend {
    fn run(&self, firing: &Firing<'_>, effects: &mut Vec<Effect>) {
        effects.push(firing.effect(EffectKind::Resend));
    }

    fn wish(&self) -> Option<Wish> {
        Some(Wish::Resend)
    }
}
