//! What an event came to: which hooks looked, what they said and asked for, and who stopped it.

use crate::desk::Asked;
use hookgate_core::effect::{Effect, EffectKind};
use hookgate_core::explain::Looked;
use hookgate_core::facts::Head;
use hookgate_core::point::Point;
use hookgate_core::verdict::{Block, Cause, Decision, Ran, Trace, Warning};
use serde_json::Value;

/// What one step came to.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Played {
    /// The events in order, each with its hooks.
    pub events: Vec<Happened>,
    /// Which answer of the session was streamed, from 1.
    pub answer: u64,
    /// Its text so far as a reader behind the gateway gets it; none if nothing was streamed.
    pub text: Option<String>,
    /// The same of the thoughts.
    pub reasoning: Option<String>,
}

/// One event and what hooks made of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Happened {
    /// Where.
    pub point: Point,
    /// Whose.
    pub head: Head,
    /// The tool, at points that have one.
    pub tool_name: Option<String>,
    /// Every hook of the point, with what ruled it out.
    pub looked: Vec<Looked>,
    /// What JSON hooks asked for.
    pub effects: Vec<Effect>,
    /// What handlers said.
    pub asked: Vec<Asked>,
    /// Lifecycle hooks that ran, and what was odd.
    pub trace: Trace,
    /// Who stopped it.
    pub stopped: Option<Stopped>,
    /// Members of the input that hooks changed, each whole.
    pub updated: Vec<(String, Value)>,
    /// Texts to be joined to the answer.
    pub append: Vec<String>,
    /// Texts to be sent behind it.
    pub send: Vec<String>,
}

/// Who stopped something.
#[derive(Debug, Clone, PartialEq)]
pub struct Stopped {
    /// The hook.
    pub by: String,
    /// Why, in the hook's own words; an interrupt has none.
    pub reason: String,
    /// What lies behind it.
    pub cause: Cause,
}

impl Happened {
    pub(crate) fn at(point: Point, head: Head) -> Happened {
        Happened {
            point,
            head,
            tool_name: None,
            looked: Vec::new(),
            effects: Vec::new(),
            asked: Vec::new(),
            trace: Trace::default(),
            stopped: None,
            updated: Vec::new(),
            append: Vec::new(),
            send: Vec::new(),
        }
    }

    /// The hooks that fired or were asked, in order, each once.
    pub fn hooks(&self) -> Vec<&str> {
        let fired = self.effects.iter().filter(|effect| effect.kind == EffectKind::Fired);
        let names = fired.map(|effect| &*effect.hook).chain(self.trace.ran.iter().map(|ran| &*ran.hook));
        let mut hooks: Vec<&str> = Vec::new();
        for name in names {
            if !hooks.contains(&name) {
                hooks.push(name);
            }
        }
        hooks
    }

    /// What was odd.
    pub fn warnings(&self) -> &[Warning] {
        &self.trace.warnings
    }
}

impl Stopped {
    /// The block of a chain. A decision's reason is in the hook's words, without the sentence around it.
    pub(crate) fn by(block: Block, trace: &Trace) -> Stopped {
        let own = trace.ran.iter().rev().find(|ran| ran.hook == block.by && ran.decision == Decision::Block);
        let reason = match (block.cause, own.and_then(|ran| ran.reason.clone())) {
            (Cause::Decision, Some(own)) => own,
            _ => block.reason,
        };
        Stopped { by: block.by.to_string(), reason, cause: block.cause }
    }

    /// The first JSON hook that wanted to stop something.
    pub(crate) fn asked_for(effects: &[Effect]) -> Option<Stopped> {
        let stop = |effect: &Effect| {
            let reason = match &effect.kind {
                EffectKind::Block { reason } => reason.clone(),
                EffectKind::Interrupt { .. } => String::new(),
                EffectKind::Fired
                | EffectKind::Log { .. }
                | EffectKind::Queue { .. }
                | EffectKind::Resend
                | EffectKind::Redact { .. } => return None,
            };
            Some(Stopped { by: effect.hook.to_string(), reason, cause: Cause::Decision })
        };
        effects.iter().find_map(stop)
    }

    /// The first watching hook that said no.
    pub(crate) fn said(ran: &[Ran]) -> Option<Stopped> {
        let said_no = ran.iter().find(|ran| ran.decision == Decision::Block)?;
        let reason = said_no.reason.clone().unwrap_or_default();
        Some(Stopped { by: said_no.hook.to_string(), reason, cause: Cause::Decision })
    }
}
