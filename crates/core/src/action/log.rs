//! `log`, `warn`, `info`, `debug`: print a message at that level.
//!
//! | field | required | default |
//! |---|---|---|
//! | `message` | no | a dump of the event |

use super::{Action, ActionKinds, ActionText};
use crate::dispatch::Firing;
use crate::effect::{Effect, EffectKind, Level};
use crate::word::Word;

/// Longer lines are cut: a log is for reading.
const LONGEST_LINE: usize = 64 * 1024;

#[derive(Debug)]
struct Log {
    level: Level,
    text: ActionText,
}

/// One action for each level, named like it.
pub(super) fn register(mut kinds: ActionKinds) -> ActionKinds {
    for (name, level) in Level::ALL {
        let level = *level;
        kinds = kinds.with(name, move |fields| Some(Box::new(Log { level, text: ActionText::read(fields) })));
    }
    kinds
}

impl Action for Log {
    fn run(&self, firing: &Firing<'_>, effects: &mut Vec<Effect>) {
        let text = shortened(self.text.render(firing));
        effects.push(firing.effect(EffectKind::Log { level: self.level, text }));
    }
}

fn shortened(mut text: String) -> String {
    if text.len() > LONGEST_LINE {
        let whole = text.len();
        let edge = (0..=LONGEST_LINE).rev().find(|at| text.is_char_boundary(*at));
        text.truncate(edge.unwrap_or(0));
        text.push_str(&format!("… [truncated, {whole} bytes in all]"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_between_characters() {
        let long = "é".repeat(LONGEST_LINE);
        let cut = shortened(long);
        assert!(cut.ends_with("… [truncated, 131072 bytes in all]"));
        assert!(cut.len() < LONGEST_LINE + 50);
        assert_eq!(shortened("short".into()), "short");
    }
}
