//! What happened to one request, for its trace. Kept only where somebody wants traces; nothing is allocated otherwise.
//!
//! Times are the wall clock's at the request's head, and how long after it something was.

use super::Happened;
use hookgate_core::verdict::{Ran, Trace};
use hookgate_llm::proxy::Names;
use http::HeaderMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// Most hooks, and most moments, that are kept of one request. Moments beyond are counted.
const MOST: usize = 128;

/// One request's story.
#[derive(Debug)]
pub struct Story {
    /// The wire, such as `openai-chat`.
    pub wire: &'static str,
    /// When its head came.
    pub at: SystemTime,
    /// The trace that it is part of.
    pub trace_id: [u8; 16],
    /// The client's span; none where the trace begins here.
    pub parent: Option<[u8; 8]>,
    /// What the client's tracer wants to be handed on (`tracestate`).
    pub trace_state: String,
    begun: Instant,
    told: Mutex<Told>,
}

/// What was noted meanwhile.
#[derive(Debug, Default)]
pub struct Told {
    /// The hooks that were asked: when each one ended, and how.
    pub hooks: Vec<(Duration, Ran)>,
    /// Blocks, interrupts, resends.
    pub moments: Vec<(Duration, Moment)>,
    /// How many moments are not kept.
    pub n_lost: u32,
    /// What the answer calls itself.
    pub response_id: Option<String>,
    /// What the answer calls its model.
    pub response_model: Option<String>,
    /// Why the answer's choices ended.
    pub finish_reasons: Vec<String>,
    /// Tokens of the rounds before the current one, read and written.
    spent: (Option<u64>, Option<u64>),
    round: (Option<u64>, Option<u64>),
}

/// Something that hooks did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Moment {
    /// Something was stopped.
    Blocked {
        /// `prompt`, `response`, or the tool's name.
        what: String,
        /// Who.
        hook: String,
        /// Why.
        reason: String,
    },
    /// A response was dropped.
    Interrupted {
        /// By whom.
        hook: String,
        /// The provider is asked again.
        resend: bool,
    },
    /// The provider was asked again.
    Resent {
        /// For whom.
        hook: String,
    },
}

impl Story {
    /// Begins with a request's head. None when the client's tracer does not want the trace.
    pub(super) fn begin(wire: &'static str, headers: &HeaderMap) -> Option<Story> {
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
        let parent = text("traceparent").and_then(read_parent);
        if parent.is_some_and(|(.., sampled)| !sampled) {
            return None;
        }
        Some(Story {
            wire,
            at: SystemTime::now(),
            trace_id: parent.map_or_else(|| fastrand::u128(1..).to_be_bytes(), |(trace, ..)| trace),
            parent: parent.map(|(_, span, _)| span),
            trace_state: parent.and(text("tracestate")).unwrap_or_default().to_owned(),
            begun: Instant::now(),
            told: Mutex::default(),
        })
    }

    /// The trace's id as records have it: 32 hex digits.
    pub(super) fn trace_id_text(&self) -> String {
        format!("{:032x}", u128::from_be_bytes(self.trace_id))
    }

    /// What was noted so far.
    pub fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hooks were asked, one after the other, the last until now.
    pub(super) fn asked(&self, trace: &Trace) {
        let mut end = self.begun.elapsed();
        let mut told = self.told();
        for ran in trace.ran.iter().rev() {
            if told.hooks.len() < MOST {
                told.hooks.push((end, Ran { console: String::new(), ..ran.clone() }));
            }
            end = end.saturating_sub(ran.took);
        }
    }

    /// Something else happened.
    pub(super) fn happened(&self, what: &Happened<'_>) {
        let moment = match what {
            Happened::Blocked { what, block, .. } => Moment::Blocked {
                what: (*what).to_owned(),
                hook: block.by.to_string(),
                reason: block.reason.clone(),
            },
            Happened::Interrupted { hook, resend, .. } => {
                Moment::Interrupted { hook: (*hook).to_owned(), resend: *resend }
            }
            Happened::Resent { hook, .. } => Moment::Resent { hook: (*hook).to_owned() },
            Happened::Fired { .. }
            | Happened::Log { .. }
            | Happened::Decided { .. }
            | Happened::Warned { .. }
            | Happened::Held { .. }
            | Happened::Request(_) => return,
        };
        let mut told = self.told();
        match told.moments.len() < MOST {
            true => told.moments.push((self.begun.elapsed(), moment)),
            false => told.n_lost = told.n_lost.saturating_add(1),
        }
    }

    /// The answer says what it and its model are called.
    pub(super) fn named(&self, names: Names<'_>) {
        let mut told = self.told();
        told.response_id = names.id.map(str::to_owned);
        told.response_model = names.model.map(str::to_owned);
    }

    /// A choice of the answer ended.
    pub(super) fn finished(&self, reason: &str) {
        let mut told = self.told();
        if told.finish_reasons.len() < MOST {
            told.finish_reasons.push(reason.to_owned());
        }
    }

    /// What the current answer has cost so far.
    pub(super) fn used(&self, input: Option<u64>, output: Option<u64>) {
        let round = &mut self.told().round;
        *round = (input.or(round.0), output.or(round.1));
    }

    /// The provider is asked again: what it said before is not how the answer ends, but was paid for.
    pub(super) fn next_answer(&self) {
        let mut told = self.told();
        told.finish_reasons.clear();
        told.spent = told.usage();
        told.round = (None, None);
    }
}

impl Told {
    /// Tokens read and written, of all rounds; none where the provider did not say.
    pub fn usage(&self) -> (Option<u64>, Option<u64>) {
        let sum = |a: Option<u64>, b: Option<u64>| match (a, b) {
            (Some(a), Some(b)) => Some(a.saturating_add(b)),
            (a, b) => a.or(b),
        };
        (sum(self.spent.0, self.round.0), sum(self.spent.1, self.round.1))
    }
}

/// Trace, span and whether it is wanted (W3C trace context). None when it is not what it should be: then the trace
/// begins here.
fn read_parent(text: &str) -> Option<([u8; 16], [u8; 8], bool)> {
    let mut parts = text.trim().split('-');
    let (version, trace, span, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let is_hex = |text: &str, n: usize| {
        text.len() == n && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    let known = is_hex(version, 2) && version != "ff" && (version != "00" || parts.next().is_none());
    if !known || !is_hex(trace, 32) || !is_hex(span, 16) || !is_hex(flags, 2) {
        return None;
    }
    let trace = u128::from_str_radix(trace, 16).ok().filter(|id| *id != 0)?;
    let span = u64::from_str_radix(span, 16).ok().filter(|id| *id != 0)?;
    let flags = u8::from_str_radix(flags, 16).ok()?;
    Some((trace.to_be_bytes(), span.to_be_bytes(), flags & 1 == 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parent_is_taken_only_as_the_standard_writes_it() {
        let check = |text: &str, want: Option<(u128, u64, bool)>| {
            let got = read_parent(text).map(|(trace, span, sampled)| {
                (u128::from_be_bytes(trace), u64::from_be_bytes(span), sampled)
            });
            assert_eq!(got, want, "{text}");
        };
        let (trace, span) = ("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331");
        let ids = (0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c, 0xb7ad_6b71_6920_3331);
        check(&format!("00-{trace}-{span}-01"), Some((ids.0, ids.1, true)));
        check(&format!("00-{trace}-{span}-00"), Some((ids.0, ids.1, false)));
        check(&format!("cc-{trace}-{span}-03-more"), Some((ids.0, ids.1, true)));
        check(&format!("00-{trace}-{span}-01-more"), None);
        check(&format!("ff-{trace}-{span}-01"), None);
        check(&format!("00-{}-{span}-01", trace.to_uppercase()), None);
        check(&format!("00-{}-{span}-01", "0".repeat(32)), None);
        check(&format!("00-{trace}-{}-01", "0".repeat(16)), None);
        check(&format!("00-{trace}-{span}"), None);
        check("", None);
    }

    #[test]
    fn usage_adds_up_over_rounds_and_the_last_answer_says_how_it_ended() {
        let story = Story::begin("openai-chat", &HeaderMap::new()).unwrap();
        story.used(Some(10), None);
        story.used(None, Some(3));
        story.finished("tool_calls");
        story.next_answer();
        story.used(Some(20), Some(4));
        story.finished("stop");
        let told = story.told();
        assert_eq!(told.usage(), (Some(30), Some(7)));
        assert_eq!(told.finish_reasons, ["stop"]);
    }
}
