//! `builtin/secrets_stream`: withdraws an answer in which a credential appears, or replaces the credential, also where
//! it arrives in pieces. The log line names the kinds, never the text.

use super::secrets::{Match, SecretScanner, Secrets};
use super::secrets_hook;
use super::settings::Settings;
use super::{Made, Streamed};
use hookgate_core::action::Action;
use hookgate_core::dispatch::Firing;
use hookgate_core::effect::{Effect, EffectKind, Level};
use hookgate_core::event::ChunkKind;
use hookgate_core::scan::{Find, Scan, Scanning};
use hookgate_core::template::{Variable, Variables};
use hookgate_core::wish::Wish;
use hookgate_core::word::WordSet;
use std::sync::Arc;

pub(super) fn make(settings: &Settings<'_>) -> Result<Made, String> {
    let secrets = secrets_hook::secrets(settings)?;
    let resend = settings.flag("resend")?.unwrap_or(false);
    let mut kinds = WordSet::none();
    for kind in [ChunkKind::Content, ChunkKind::Reasoning, ChunkKind::ToolCallDelta] {
        kinds.insert(kind);
    }
    let scan: Arc<dyn Scan> = Arc::new(Streams { secrets });
    let action: Box<dyn Action> = match settings.flag("redact")?.unwrap_or(false) {
        true if resend => {
            return Err("setting `redact`: an answer is redacted or asked for again, not both".into());
        }
        true => Box::new(Replace),
        false => Box::new(Withdraw { resend }),
    };
    Ok(Made::Streamed(Streamed { kinds, scan, actions: vec![action] }))
}

#[derive(Debug)]
struct Streams {
    secrets: Secrets,
}

impl Scan for Streams {
    fn begin(&self) -> Box<dyn Scanning> {
        Box::new(Stream { scanner: self.secrets.holding_scanner() })
    }
}

#[derive(Debug)]
struct Stream {
    scanner: SecretScanner,
}

impl Scanning for Stream {
    fn push(&mut self, piece: &str, found: &mut Vec<Find>) {
        found.extend(self.scanner.push(piece).iter().map(find));
    }

    fn finish(&mut self, found: &mut Vec<Find>) {
        found.extend(self.scanner.finish().iter().map(find));
    }

    fn clear(&self) -> u64 {
        self.scanner.clear() as u64
    }

    fn give_way(&mut self) {
        self.scanner.give_way();
    }
}

fn find(found: &Match) -> Find {
    Find { name: found.class, span: found.span.start as u64..found.span.end as u64 }
}

/// Says what was found and drops the response.
#[derive(Debug)]
struct Withdraw {
    resend: bool,
}

impl Action for Withdraw {
    fn run(&self, firing: &Firing<'_>, effects: &mut Vec<Effect>) {
        let what = firing.get(Variable::Match).unwrap_or_default();
        let text = format!("the answer holds: {what}");
        effects.push(firing.effect(EffectKind::Log { level: Level::Warn, text }));
        effects.push(firing.effect(EffectKind::Interrupt { resend: self.resend }));
    }

    fn holds(&self) -> bool {
        true
    }

    fn wish(&self) -> Option<Wish> {
        Some(if self.resend { Wish::Retry } else { Wish::Interrupt })
    }
}

/// Says what was found and lets something else stand in its place.
#[derive(Debug)]
struct Replace;

impl Action for Replace {
    fn run(&self, firing: &Firing<'_>, effects: &mut Vec<Effect>) {
        let what = firing.get(Variable::Match).unwrap_or_default();
        let text = format!("the answer held: {what}");
        effects.push(firing.effect(EffectKind::Log { level: Level::Warn, text }));
        effects.push(firing.effect(EffectKind::Redact { with: format!("[redacted {what}]") }));
    }

    fn holds(&self) -> bool {
        true
    }

    fn wish(&self) -> Option<Wish> {
        Some(Wish::Redact)
    }
}
