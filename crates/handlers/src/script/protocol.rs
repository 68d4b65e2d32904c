//! What a worker and its pool say to each other: frames with a length in front, all numbers little-endian.
//!
//! | from | frame |
//! |---|---|
//! | worker | hello: what it could not confine, as text |
//! | pool | check: number, source |
//! | pool | ask: number, script, microseconds, KiB of memory, time, seed, source (empty: you have it), event |
//! | worker | reply: number, outcome, console, text |

use super::engine::Outcome;
use std::time::Duration;

/// A longer frame is refused on either side.
pub(super) const LONGEST: usize = 64 << 20;
/// In front of a frame: its length.
pub(super) const HEAD: usize = 4;

/// What a pool sends.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Request<'a> {
    /// Does this compile?
    Check { number: u64, source: &'a str },
    /// What does this script say?
    Ask(Ask<'a>),
}

/// One call.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Ask<'a> {
    pub(super) number: u64,
    pub(super) script: u64,
    pub(super) time: Duration,
    pub(super) memory: usize,
    pub(super) now: u64,
    pub(super) seed: u64,
    pub(super) source: Option<&'a str>,
    pub(super) event: &'a [u8],
}

/// What a worker answers.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Reply {
    pub(super) number: u64,
    pub(super) said: Said,
    pub(super) console: String,
}

/// How it went.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// It is there; what it could not confine.
    Hello(String),
    /// The script compiles.
    Sound,
    /// It does not know the script.
    Unknown,
    /// The call is over.
    Done(Outcome),
}

/// Writes a request behind what is in `out`.
pub(super) fn write_request(out: &mut Vec<u8>, request: &Request<'_>) {
    framed(out, |out| match request {
        Request::Check { number, source } => {
            out.push(1);
            out.extend(number.to_le_bytes());
            out.extend(source.as_bytes());
        }
        Request::Ask(ask) => {
            out.push(2);
            out.extend(ask.number.to_le_bytes());
            out.extend(ask.script.to_le_bytes());
            out.extend(u64::try_from(ask.time.as_micros()).unwrap_or(u64::MAX).to_le_bytes());
            out.extend(u32::try_from(ask.memory / 1024).unwrap_or(u32::MAX).to_le_bytes());
            out.extend(ask.now.to_le_bytes());
            out.extend(ask.seed.to_le_bytes());
            text(out, ask.source.unwrap_or_default());
            out.extend(ask.event);
        }
    });
}

/// Writes a reply behind what is in `out`.
pub(super) fn write_reply(out: &mut Vec<u8>, reply: &Reply) {
    framed(out, |out| {
        out.extend(reply.number.to_le_bytes());
        let (kind, last) = match &reply.said {
            Said::Hello(text) => (0, text.as_str()),
            Said::Sound => (1, ""),
            Said::Unknown => (2, ""),
            Said::Done(Outcome::Value(json)) => (3, json.as_str()),
            Said::Done(Outcome::Nothing) => (4, ""),
            Said::Done(Outcome::Timeout) => (5, ""),
            Said::Done(Outcome::Failed(text)) => (6, text.as_str()),
        };
        out.push(kind);
        text(out, &reply.console);
        out.extend(last.as_bytes());
    });
}

/// The length of the frame that begins here; `None` while it cannot be told.
pub(super) fn length(bytes: &[u8]) -> Option<Result<usize, ()>> {
    let (head, _) = bytes.split_first_chunk::<HEAD>()?;
    let length = usize::try_from(u32::from_le_bytes(*head)).unwrap_or(usize::MAX);
    Some(if length > LONGEST { Err(()) } else { Ok(length) })
}

/// Reads a request's frame, without its head.
pub(super) fn read_request(frame: &[u8]) -> Option<Request<'_>> {
    let mut left = Left(frame);
    match left.take::<1>()? {
        [1] => Some(Request::Check { number: left.number()?, source: std::str::from_utf8(left.0).ok()? }),
        [2] => {
            let (number, script) = (left.number()?, left.number()?);
            let time = Duration::from_micros(left.number()?);
            let memory = usize::try_from(u32::from_le_bytes(left.take()?)).ok()?.checked_mul(1024)?;
            let (now, seed) = (left.number()?, left.number()?);
            let source = left.text()?;
            let source = (!source.is_empty()).then_some(source);
            Some(Request::Ask(Ask { number, script, time, memory, now, seed, source, event: left.0 }))
        }
        _ => None,
    }
}

/// Reads a reply's frame, without its head. A worker may have been taken over by its script: nothing is believed.
pub(super) fn read_reply(frame: &[u8]) -> Option<Reply> {
    let mut left = Left(frame);
    let number = left.number()?;
    let [kind] = left.take::<1>()?;
    let console = left.text()?.to_owned();
    let text = || std::str::from_utf8(left.0).map(str::to_owned).ok();
    let said = match kind {
        0 => Said::Hello(text()?),
        1 => Said::Sound,
        2 => Said::Unknown,
        3 => Said::Done(Outcome::Value(text()?)),
        4 => Said::Done(Outcome::Nothing),
        5 => Said::Done(Outcome::Timeout),
        6 => Said::Done(Outcome::Failed(text()?)),
        _ => return None,
    };
    Some(Reply { number, said, console })
}

fn framed(out: &mut Vec<u8>, body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend([0; HEAD]);
    body(out);
    let length = out.len().saturating_sub(start).saturating_sub(HEAD);
    if let Some((head, _)) = out.get_mut(start..).and_then(<[u8]>::split_first_chunk_mut::<HEAD>) {
        *head = u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes();
    }
}

fn text(out: &mut Vec<u8>, text: &str) {
    out.extend(u32::try_from(text.len()).unwrap_or(u32::MAX).to_le_bytes());
    out.extend(text.as_bytes());
}

/// What is left of a frame.
struct Left<'a>(&'a [u8]);

impl<'a> Left<'a> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*first)
    }

    fn number(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    fn text(&mut self) -> Option<&'a str> {
        let length = usize::try_from(u32::from_le_bytes(self.take()?)).ok()?;
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        std::str::from_utf8(text).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(frame: &[u8]) -> &[u8] {
        assert_eq!(length(frame), Some(Ok(frame.len() - HEAD)));
        &frame[HEAD..]
    }

    #[test]
    fn what_is_written_can_be_read_and_nothing_shorter() {
        let ask = || {
            Request::Ask(Ask {
                number: 7,
                script: 8,
                time: Duration::from_micros(1500),
                memory: 16 << 20,
                now: 9,
                seed: 10,
                source: Some("é"),
                event: b"{}",
            })
        };
        for request in [Request::Check { number: 1, source: "a" }, ask()] {
            let mut frame = Vec::new();
            write_request(&mut frame, &request);
            assert_eq!(read_request(body(&frame)), Some(request));
            for end in 0..9 {
                assert_eq!(read_request(&body(&frame)[..end]), None);
            }
        }
        for said in [
            Said::Hello("a".into()),
            Said::Sound,
            Said::Unknown,
            Said::Done(Outcome::Value("{}".into())),
            Said::Done(Outcome::Nothing),
            Said::Done(Outcome::Timeout),
            Said::Done(Outcome::Failed("x".into())),
        ] {
            let reply = Reply { number: 3, said, console: "c\n".into() };
            let mut frame = Vec::new();
            write_reply(&mut frame, &reply);
            assert_eq!(read_reply(body(&frame)), Some(reply));
            for end in 0..15 {
                assert_eq!(read_reply(&body(&frame)[..end]), None);
            }
        }
    }

    #[test]
    fn a_lying_length_is_refused() {
        assert_eq!(length(&[0xff; 4]), Some(Err(())));
        assert_eq!(length(&[1, 0, 0]), None);
        let mut frame = vec![0; 9];
        frame.extend([0xff; 4]);
        assert_eq!(read_reply(&frame), None);
    }
}
