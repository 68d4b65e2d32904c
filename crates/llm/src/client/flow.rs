//! From the bytes of an answer to its deltas.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{FutureExt, stream};
use reqwest::Response;
use tokio::time::timeout;

use super::broken;
use crate::sse::Parser;
use crate::wire::{Decode, Wire};
use crate::{Delta, DeltaStream, Error, Limit};

/// Takes secrets out of an error.
pub(super) type Scrub = Box<dyn Fn(Error) -> Error + Send>;

#[derive(Clone, Copy)]
pub(super) struct Settings {
    pub(super) wire: &'static Wire,
    pub(super) idle: Duration,
    pub(super) event_limit: usize,
}

/// The stream of an answer that begins with `first`. What the answer is follows from its first character, not from
/// its content type, which servers and proxies get wrong.
pub(super) async fn open(
    mut response: Response,
    mut first: Vec<u8>,
    set: Settings,
    scrub: Scrub,
) -> Result<DeltaStream, Error> {
    loop {
        match first.iter().find(|byte| !byte.is_ascii_whitespace()) {
            Some(b'{' | b'[') => return whole(response, first, set).await,
            Some(b'<') => {
                return Err(Error::malformed("an event stream or JSON", &String::from_utf8_lossy(&first)));
            }
            Some(_) => break,
            None if first.len() > set.event_limit => return Err(Error::TooLarge { limit: set.event_limit }),
            None => match chunk(&mut response, set.idle).await? {
                Some(more) => first.extend_from_slice(&more),
                None => return Err(Error::cut()),
            },
        }
    }
    let mut parser = Parser::with_limit(set.event_limit);
    parser.push(&first);
    let flow = Flow {
        response: Some(response),
        parser,
        decoder: (set.wire.decoder)(),
        idle: set.idle,
        scrub,
        n_events: 0,
        fresh: Vec::new(),
        ready: VecDeque::new(),
        failure: None,
    };
    let next = |mut flow: Box<Flow>| async move { flow.next().await.map(|item| (item, flow)) };
    Ok(Box::pin(stream::unfold(Box::new(flow), next)))
}

/// Reads an answer in one piece.
async fn whole(mut response: Response, mut body: Vec<u8>, set: Settings) -> Result<DeltaStream, Error> {
    while let Some(more) = chunk(&mut response, set.idle).await? {
        body.extend_from_slice(&more);
        if body.len() > set.event_limit {
            return Err(Error::TooLarge { limit: set.event_limit });
        }
    }
    let deltas = set.wire.decode_whole(&body)?;
    Ok(Box::pin(stream::iter(deltas.into_iter().map(Ok))))
}

async fn chunk(response: &mut Response, idle: Duration) -> Result<Option<Bytes>, Error> {
    let late = |_| Error::Timeout { limit: Limit::Idle, after: idle };
    timeout(idle, response.chunk()).await.map_err(late)?.map_err(broken)
}

/// A streamed answer on its way.
struct Flow {
    /// `None` when nothing more is to be read.
    response: Option<Response>,
    parser: Parser,
    decoder: Box<dyn Decode>,
    idle: Duration,
    scrub: Scrub,
    n_events: u64,
    /// What the decoder has just given.
    fresh: Vec<Delta>,
    ready: VecDeque<Delta>,
    /// Comes after everything that is ready.
    failure: Option<Error>,
}

impl Flow {
    async fn next(&mut self) -> Option<Result<Delta, Error>> {
        loop {
            if let Some(delta) = self.ready.pop_front() {
                return Some(Ok(delta));
            }
            if let Some(error) = self.failure.take() {
                return Some(Err((self.scrub)(error)));
            }
            self.response.as_ref()?;
            self.read().await;
        }
    }

    /// Decodes what is there, and reads on if that was nothing.
    async fn read(&mut self) {
        let result = self.decode();
        self.ready.extend(self.fresh.drain(..));
        if result.is_err() || self.decoder.done() {
            return self.end(result);
        }
        let Some(response) = self.response.as_mut().filter(|_| self.ready.is_empty()) else { return };
        match chunk(response, self.idle).await {
            Ok(Some(bytes)) => self.parser.push(&bytes),
            Ok(None) => {
                self.parser.finish();
                let result = self.decode();
                self.end(result);
            }
            // Whatever happens to the connection after the answer's end costs nothing.
            Err(_) if self.decoder.complete() => self.end(Ok(())),
            Err(error) => self.end(Err(error)),
        }
    }

    fn decode(&mut self) -> Result<(), Error> {
        while !self.decoder.done() {
            let event = self.parser.next_event().map_err(|e| Error::TooLarge { limit: e.limit })?;
            let Some(event) = event else { break };
            self.n_events += 1;
            self.decoder.event(&event, &mut self.fresh)?;
        }
        Ok(())
    }

    /// Nothing more is read.
    fn end(&mut self, result: Result<(), Error>) {
        // An answer that was complete stays so: its finish comes before the failure.
        let finishes = result.is_ok() || self.decoder.complete();
        let finished = if finishes { self.decoder.finish(&mut self.fresh) } else { Ok(()) };
        let result = result.and(finished);
        self.ready.extend(self.fresh.drain(..));
        self.failure = result.err().map(|error| self.explain(error));
        if let Some(mut response) = self.response.take().filter(|_| self.failure.is_none()) {
            // The end of the body is mostly there already; taking it lets the connection be used again.
            let _ = response.chunk().now_or_never();
        }
    }

    /// A stream that holds text instead of events is no stream that was cut.
    fn explain(&self, error: Error) -> Error {
        match (error, self.parser.stray()) {
            (Error::Cut { source: None, .. }, Some(stray)) if self.n_events == 0 => {
                Error::malformed("an event stream", stray)
            }
            (Error::Cut { source, .. }, Some(stray)) => Error::Cut { said: Some(stray.to_owned()), source },
            (error, _) => error,
        }
    }
}
