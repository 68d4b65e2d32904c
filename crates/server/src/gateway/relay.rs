//! The stream's way through: events of the provider in, bytes for the client out, and what must wait in between.
//!
//! Events go out in the order in which they came, each as soon as nothing in it can be wanted back. One that need not
//! wait is written at once, byte for byte; the others stand in a queue. Nothing is read from the provider while the
//! client does not read, so memory is bounded by what waits.

use super::asking::Asking;
use super::body::BoxError;
use super::decode::Decoder;
use super::driven::Driven;
use super::guard::{Part, Todo, Wait};
use super::joined::Joined;
use super::weave::{Turn, Weave};
use super::{Happened, OnHoldLimit};
use bytes::Bytes;
use hookgate_llm::proxy::{End, Note, Piece, RequestChange};
use hookgate_llm::sse::{Event, Parser};
use http::header;
use http_body_util::BodyExt;
use std::collections::VecDeque;
use std::time::Duration;
use tokio::time::Instant;

/// How long the events behind an answer's end are waited for, where the provider is asked again.
const LAST_EVENTS: Duration = Duration::from_secs(1);

/// One stream under way.
pub(super) struct Relay {
    weave: Weave,
    asking: Asking,
    /// None once nothing more is wanted of the provider; dropping it cancels the request.
    source: Option<Source>,
    parser: Parser,
    queue: VecDeque<Held>,
    held_bytes: usize,
    /// So much of the answer was read: some of it is kept to its end.
    n_bytes: usize,
    /// Since when the first of the queue waits for text.
    held_since: Option<Instant>,
    scratch: Scratch,
    out: Vec<u8>,
    broke_off: Option<BoxError>,
}

struct Source {
    body: Joined<Driven>,
    decoder: Decoder,
}

/// An event that waits.
struct Held {
    raw: Vec<u8>,
    note: Note,
    waits: Vec<Wait>,
    parts: Vec<Part>,
}

/// Room for what one event needs, kept warm.
#[derive(Default)]
struct Scratch {
    waits: Vec<Wait>,
    parts: Vec<Part>,
}

impl Relay {
    /// `body` is the provider's answer, with this compression on it.
    pub(super) fn new(weave: Weave, asking: Asking, body: Driven, decoder: Decoder) -> Relay {
        let parser = Parser::with_limit(weave.door.shared.limits.max_event_bytes);
        Relay {
            weave,
            asking,
            source: Some(Source { body: Joined::new(body), decoder }),
            parser,
            queue: VecDeque::new(),
            held_bytes: 0,
            n_bytes: 0,
            held_since: None,
            scratch: Scratch::default(),
            out: Vec::new(),
            broke_off: None,
        }
    }

    /// The next bytes for the client; none at the end.
    pub(super) async fn next(&mut self) -> Option<Result<Bytes, BoxError>> {
        loop {
            if self.weave.has_work() {
                self.work().await;
            }
            self.take_events().await;
            if !self.out.is_empty() {
                return Some(Ok(Bytes::from(std::mem::take(&mut self.out))));
            }
            if self.source.is_none() {
                return self.broke_off.take().map(Err);
            }
            self.read_more().await;
        }
    }

    /// Takes all events that have arrived.
    async fn take_events(&mut self) {
        loop {
            match self.parser.next_event() {
                Ok(Some(event)) => {
                    self.n_bytes = self.n_bytes.saturating_add(event.raw.len());
                    let read = take_in(&mut self.weave, &mut self.scratch, &event);
                    match read {
                        Ok(note) => {
                            let free = self.queue.is_empty()
                                && !self.weave.has_work()
                                && self.scratch.waits.iter().all(|wait| self.weave.guard.is_done(wait));
                            let changes =
                                if free { self.weave.guard.changes(&self.scratch.parts) } else { Vec::new() };
                            if free {
                                self.weave.exchange.write(&event, note, &changes, &mut self.out);
                                self.scratch.waits.clear();
                                self.scratch.parts.clear();
                                if self.is_too_large() {
                                    return;
                                }
                                continue;
                            }
                            self.held_bytes = self.held_bytes.saturating_add(event.raw.len());
                            self.queue.push_back(Held {
                                raw: event.raw.to_vec(),
                                note,
                                waits: std::mem::take(&mut self.scratch.waits),
                                parts: std::mem::take(&mut self.scratch.parts),
                            });
                        }
                        Err(odd) => {
                            return self
                                .fail(&format!("the upstream's stream cannot be read: {}", told(&odd)));
                        }
                    }
                }
                Ok(None) => {
                    if self.queue.is_empty() && !self.weave.has_work() {
                        // comments keep connections alive: they do not wait for the next event
                        self.out.extend_from_slice(self.parser.take_idle());
                    }
                    return;
                }
                Err(too_large) => {
                    return self.fail(&format!("the upstream's stream cannot be read: {too_large}"));
                }
            }
            if self.weave.has_work() && !self.out.is_empty() {
                // a hook may take its time: what is free goes out first
                return;
            }
            self.work().await;
            // at each event, so that it does not matter how many came at once
            self.mind_the_limit();
            if self.source.is_none() {
                return;
            }
        }
    }

    /// Does what takes time, and writes what may go then.
    async fn work(&mut self) {
        if self.weave.has_work()
            && let Some(turn) = self.weave.settle().await
        {
            return self.turn(turn).await;
        }
        self.flush();
    }

    async fn turn(&mut self, turn: Turn) {
        if matches!(turn, Turn::More(_) | Turn::End(_) | Turn::FailBehind(_)) {
            self.flush();
            self.flush_open();
            self.weave.say_all(&mut self.out);
        }
        if matches!(turn, Turn::More(_) | Turn::End(_)) {
            // on some wires the cost comes behind the end
            let _ = tokio::time::timeout(LAST_EVENTS, self.read_to_the_end()).await;
        }
        self.drop_queue();
        // what is not read any more is not wanted: this cancels the request at the provider
        self.source = None;
        match turn {
            Turn::End(how) => self.weave.exchange.end(how, &mut self.out),
            Turn::Drop => self.weave.exchange.end(End::Filtered, &mut self.out),
            Turn::Fail(why) | Turn::FailBehind(why) => {
                self.weave.door.trouble(&why);
                self.weave.exchange.fail(&why, &mut self.out);
            }
            Turn::Again(changes) | Turn::More(changes) => self.ask_again(changes).await,
        }
    }

    /// Reads what the provider says behind the end of its answer. Nobody gets to see it.
    async fn read_to_the_end(&mut self) {
        loop {
            while let Ok(Some(event)) = self.parser.next_event() {
                let story = self.weave.door.story.as_deref();
                let mut usage = |piece: Piece<'_>| {
                    if let (Piece::Usage { input, output }, Some(story)) = (piece, story) {
                        story.used(input, output);
                    }
                };
                if self.weave.exchange.read(&event, &mut usage).is_err() {
                    return;
                }
            }
            let Some(source) = &mut self.source else { return };
            let Some(Ok(frame)) = source.body.frame().await else { return };
            let Ok(bytes) = frame.into_data() else { continue };
            let parser = &mut self.parser;
            if source.decoder.push(&bytes, |plain| parser.push(plain)).is_err() {
                return;
            }
        }
    }

    async fn ask_again(&mut self, changes: Vec<RequestChange>) {
        self.weave.next_answer();
        self.parser = Parser::with_limit(self.weave.door.shared.limits.max_event_bytes);
        if let Err(odd) = self.asking.change(&changes) {
            return self.fail(&format!("the request cannot be asked again: {odd}"));
        }
        match self.asking.send().await {
            Ok(response) => {
                let (parts, body) = response.into_parts();
                let text = |name| parts.headers.get(name).and_then(|value| value.to_str().ok());
                let is_stream = text(&header::CONTENT_TYPE).is_some_and(|kind| kind.contains("event-stream"));
                let decoder = Decoder::of(text(&header::CONTENT_ENCODING));
                match decoder.filter(|_| parts.status.is_success() && is_stream) {
                    Some(decoder) => self.source = Some(Source { body: Joined::new(body), decoder }),
                    None => {
                        self.fail(&format!("asked again, the upstream answered with status {}", parts.status))
                    }
                }
            }
            Err(error) => self.fail(&error.to_string()),
        }
    }

    /// Writes all that need not wait any more, in order.
    fn flush(&mut self) {
        while let Some(first) = self.queue.front() {
            if !first.waits.iter().all(|wait| self.weave.guard.is_done(wait)) {
                break;
            }
            let Some(held) = self.queue.pop_front() else { break };
            self.held_bytes = self.held_bytes.saturating_sub(held.raw.len());
            for wait in &held.waits {
                match wait {
                    Wait::Closing(choice, _) => self.weave.append(*choice, &mut self.out),
                    Wait::Close(choice) => self.weave.say(*choice, &mut self.out),
                    Wait::Text(..) | Wait::Loose(..) | Wait::Call(_) => {}
                }
            }
            let changes = self.weave.guard.changes(&held.parts);
            again(&held.raw, |event| {
                self.weave.exchange.write(event, held.note, &changes, &mut self.out);
            });
        }
        let waits_for_text = self.queue.front().is_some_and(|first| {
            first.waits.iter().any(|wait| {
                matches!(wait, Wait::Text(..) | Wait::Loose(..)) && !self.weave.guard.is_done(wait)
            })
        });
        match (waits_for_text, self.held_since) {
            (true, None) => self.held_since = Some(Instant::now()),
            (false, Some(since)) => {
                self.held_since = None;
                self.weave.door.shared.happened(&Happened::Held { took: since.elapsed() });
            }
            _ => {}
        }
    }

    /// Writes what else is in events that wait only for the end of the answer, which is another one than they say: a
    /// provider may say its last words, a call and the end at once.
    fn flush_open(&mut self) {
        let waits_for_end = |held: &Held, weave: &Weave| {
            let of_end = |wait: &Wait| matches!(wait, Wait::Close(_) | Wait::Closing(..));
            held.waits.iter().all(|wait| of_end(wait) || weave.guard.is_done(wait))
        };
        while let Some(held) = self.queue.pop_front().filter(|held| waits_for_end(held, &self.weave)) {
            let changes = self.weave.guard.changes(&held.parts);
            again(&held.raw, |event| {
                self.weave.exchange.write_open(event, held.note, &changes, &mut self.out);
            });
        }
    }

    /// What waits is bounded in bytes.
    fn mind_the_limit(&mut self) {
        let limits = &self.weave.door.shared.limits;
        let over = match self.held_since {
            Some(_) => self.held_bytes > limits.max_hold_bytes,
            None => self.held_bytes > limits.max_answer_bytes,
        };
        if over {
            self.over_the_limit();
        } else {
            self.is_too_large();
        }
    }

    /// Ends an answer that is too large, because some of it is kept to its end.
    fn is_too_large(&mut self) -> bool {
        let most = self.weave.door.shared.limits.max_answer_bytes;
        let is = self.n_bytes > most;
        if is {
            self.cut_off(&format!("the answer is larger than {most} bytes"));
        }
        is
    }

    fn over_the_limit(&mut self) {
        self.held_since = None;
        match self.weave.door.shared.on_hold_limit {
            OnHoldLimit::Release if self.weave.guard.holds_text() => {
                self.weave.guard.give_way(&self.weave.door);
                self.flush();
            }
            OnHoldLimit::Release | OnHoldLimit::Block => {
                self.cut_off("what waited for a verdict passed its limit in bytes or in time");
            }
        }
    }

    /// Ends the answer where it is, regularly: clients repeat what ends in another way.
    fn cut_off(&mut self, why: &str) {
        self.weave.door.trouble(why);
        self.drop_queue();
        self.source = None;
        self.weave.exchange.end(End::Filtered, &mut self.out);
    }

    async fn read_more(&mut self) {
        let limits = &self.weave.door.shared.limits;
        let idle = limits.idle;
        // text that may become a match waits only so long
        let held_until = self.held_since.map(|since| since + limits.max_hold);
        let Some(source) = &mut self.source else { return };
        let frame = source.body.frame();
        let within =
            held_until.map_or(idle, |until| until.saturating_duration_since(Instant::now()).min(idle));
        match tokio::time::timeout(within, frame).await {
            Err(_) if held_until.is_some_and(|until| until <= Instant::now()) => self.over_the_limit(),
            Err(_) => self.fail(&format!("the upstream sent nothing for {} s", seconds(idle))),
            Ok(None) => self.end_of_source(None).await,
            Ok(Some(Err(error))) => self.end_of_source(Some(Box::new(error))).await,
            Ok(Some(Ok(frame))) => {
                let Ok(bytes) = frame.into_data() else { return };
                let parser = &mut self.parser;
                if let Err(error) = source.decoder.push(&bytes, |plain| parser.push(plain)) {
                    self.fail(&format!("the upstream's compressed stream cannot be read: {error}"));
                }
            }
        }
    }

    /// The provider's stream is over, regularly or not. What it is is passed on: an answer that was cut stays one.
    async fn end_of_source(&mut self, error: Option<BoxError>) {
        self.parser.finish();
        self.take_events().await;
        while self.weave.has_work() && self.source.is_some() {
            self.work().await;
            self.take_events().await;
        }
        if self.source.is_none() {
            return;
        }
        let cut = error.is_some();
        let Weave { exchange, guard, door, .. } = &mut self.weave;
        let (mut nth, mut waits, mut parts) = (0, Vec::new(), Vec::new());
        let mut ends = Vec::new();
        let whole = exchange.ended(&mut |piece| ends.push(owned(piece)));
        if whole && !cut {
            for piece in ends {
                guard.piece(door, piece, &mut nth, &mut waits, &mut parts);
            }
        }
        for choice in guard.open_choices() {
            match whole && !cut {
                // it ended, only without saying so for each choice
                true => guard.todo.push_back(Todo::Close(choice, "stop".to_owned())),
                false => guard.finish(door, choice, ""),
            }
        }
        guard.finish_loose(door);
        self.work().await;
        if self.source.take().is_none() {
            return;
        }
        // a call that was never complete was never judged: nothing of it goes out, but what stands behind it does
        for channel in self.weave.guard.give_up_calls() {
            self.weave.exchange.drop_call(channel);
        }
        self.weave.guard.go_on();
        self.flush();
        self.weave.say_all(&mut self.out);
        self.drop_queue();
        self.out.extend_from_slice(self.parser.rest());
        self.broke_off = error;
    }

    fn drop_queue(&mut self) {
        self.queue.clear();
        self.held_bytes = 0;
        self.held_since = None;
    }

    fn fail(&mut self, why: &str) {
        self.weave.door.trouble(why);
        self.drop_queue();
        self.source = None;
        self.weave.exchange.fail(why, &mut self.out);
    }
}

/// Reads an event and shows its pieces to the hooks.
fn take_in(
    weave: &mut Weave,
    scratch: &mut Scratch,
    event: &Event<'_>,
) -> Result<Note, hookgate_llm::proxy::Odd> {
    let Weave { exchange, guard, door, .. } = weave;
    let Scratch { waits, parts } = scratch;
    let mut nth = 0;
    let note = exchange.read(event, &mut |piece| guard.piece(door, piece, &mut nth, waits, parts))?;
    let of_end = |wait: &Wait| matches!(wait, Wait::Close(_) | Wait::Closing(..));
    if !waits.iter().any(of_end) {
        guard.go_on();
    }
    Ok(note)
}

/// What was odd, without the provider's words: no hook has seen those.
pub(super) fn told(odd: &hookgate_llm::proxy::Odd) -> String {
    match (odd.0.find('`'), odd.0.rfind('`')) {
        (Some(from), Some(to)) => {
            let part = |range: Option<&str>| range.unwrap_or_default().to_owned();
            part(odd.0.get(..from)) + "…" + &part(odd.0.get(to.saturating_add(1)..))
        }
        _ => odd.0.clone(),
    }
}

/// Reads the bytes of one event once more.
fn again(raw: &[u8], look: impl FnOnce(&Event<'_>)) {
    let mut parser = Parser::with_limit(usize::MAX);
    parser.push(raw);
    match parser.next_event() {
        Ok(Some(event)) => return look(&event),
        Ok(None) => {}
        Err(_) => return,
    }
    // the last event of a stream that stopped without a blank line
    parser.finish();
    if let Ok(Some(event)) = parser.next_event() {
        look(&event);
    }
}

fn owned(piece: hookgate_llm::proxy::Piece<'_>) -> hookgate_llm::proxy::Piece<'static> {
    use hookgate_llm::proxy::Piece;
    let own = |text: std::borrow::Cow<'_, str>| std::borrow::Cow::Owned(text.into_owned());
    match piece {
        Piece::Text { channel, text } => Piece::Text { channel, text: own(text) },
        Piece::CallBegin { channel, id, name } => Piece::CallBegin { channel, id: own(id), name: own(name) },
        Piece::CallEnd { channel, call } => Piece::CallEnd { channel, call },
        Piece::Aside(text) => Piece::Aside(own(text)),
        Piece::Finish { choice, reason } => Piece::Finish { choice, reason: own(reason) },
        Piece::Loose { of, text } => Piece::Loose { of, text: own(text) },
        Piece::Closing { choice } => Piece::Closing { choice },
        Piece::Done => Piece::Done,
        Piece::Error(text) => Piece::Error(own(text)),
        Piece::Usage { input, output } => Piece::Usage { input, output },
    }
}

fn seconds(duration: Duration) -> f64 {
    duration.as_secs_f64()
}
