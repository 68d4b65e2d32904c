//! What the tests of all wires use: an exchange that is played, and what a client makes of the outcome.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::Value;

use super::{Change, Channel, ChannelKind, End, Exchange, Middle, Note, Odd, Piece};
use crate::sse::{Event, Parser};

/// An exchange with the events that were read and not yet written.
pub(super) struct Play {
    middle: &'static dyn Middle,
    pub(super) exchange: Box<dyn Exchange>,
    held: Vec<(Vec<u8>, Note, Vec<String>)>,
    pub(super) out: Vec<u8>,
    pub(super) read: Seen,
}

/// What pieces say together.
#[derive(Debug, Default)]
pub(super) struct Seen {
    texts: BTreeMap<Channel, String>,
    begun: Vec<Channel>,
    calls: Vec<(Channel, super::Call)>,
    finishes: Vec<String>,
    pub(super) asides: Vec<String>,
    pub(super) usage: Option<(Option<u64>, Option<u64>)>,
    pub(super) errors: Vec<String>,
    done: usize,
}

impl Seen {
    pub(super) fn take(&mut self, piece: Piece<'_>) -> Option<String> {
        match piece {
            Piece::Text { channel, text } => {
                assert!(!text.is_empty(), "an empty text");
                self.texts.entry(channel).or_default().push_str(&text);
                return Some(text.into_owned());
            }
            Piece::CallBegin { channel, .. } => {
                assert!(!self.begun.contains(&channel), "a call begins twice");
                self.begun.push(channel);
            }
            Piece::CallEnd { channel, call } => {
                assert!(self.begun.contains(&channel), "a call ends without a beginning");
                assert!(!self.calls.iter().any(|(ended, _)| *ended == channel), "a call ends twice");
                self.calls.push((channel, call));
            }
            Piece::Aside(text) => self.asides.push(text.into_owned()),
            Piece::Finish { choice, reason } => self.finishes.push(format!("{choice}:{reason}")),
            Piece::Done => self.done += 1,
            Piece::Closing { .. } => {}
            Piece::Loose { text, .. } => self.asides.push(text.into_owned()),
            Piece::Error(text) => self.errors.push(text.into_owned()),
            Piece::Usage { input, output } => {
                let (i, o) = self.usage.unwrap_or_default();
                self.usage = Some((input.or(i), output.or(o)));
            }
        }
        None
    }

    pub(super) fn text(&self, choice: u32, kind: ChannelKind) -> &str {
        self.texts.get(&Channel { choice, kind }).map_or("", String::as_str)
    }

    /// All of it in one line: texts, `name(arguments)id`, finishes, `!` for done, errors.
    pub(super) fn line(&self) -> String {
        let mut out = String::new();
        for (channel, text) in &self.texts {
            match channel.kind {
                ChannelKind::Content => write!(out, "{}={text} ", channel.choice),
                ChannelKind::Reasoning => write!(out, "{}~{text} ", channel.choice),
                ChannelKind::Call(_) => Ok(()),
            }
            .unwrap();
        }
        for (channel, call) in &self.calls {
            write!(out, "{}>{}({}){} ", channel.choice, call.name, call.arguments, call.id).unwrap();
        }
        self.finishes.iter().for_each(|finish| write!(out, "{finish} ").unwrap());
        self.errors.iter().for_each(|error| write!(out, "error:{error} ").unwrap());
        out.push_str(&"!".repeat(self.done));
        out.trim_end().to_owned()
    }
}

impl Play {
    pub(super) fn new(middle: &'static dyn Middle) -> Self {
        Play {
            middle,
            exchange: middle.exchange(false),
            held: Vec::new(),
            out: Vec::new(),
            read: Seen::default(),
        }
    }

    /// Reads events; they are held.
    pub(super) fn read(&mut self, stream: &str) -> &mut Self {
        self.try_read(stream.as_bytes()).unwrap();
        self
    }

    pub(super) fn try_read(&mut self, stream: &[u8]) -> Result<(), Odd> {
        let mut parser = Parser::new();
        parser.push(stream);
        parser.finish();
        while let Some(event) = parser.next_event().unwrap() {
            let (mut texts, seen) = (Vec::new(), &mut self.read);
            let note = self.exchange.read(&event, &mut |piece| texts.extend(seen.take(piece)))?;
            self.held.push((event.raw.to_vec(), note, texts));
        }
        Ok(())
    }

    pub(super) fn ended(&mut self) -> bool {
        let seen = &mut self.read;
        self.exchange.ended(&mut |piece| drop(seen.take(piece)))
    }

    /// Writes the first `n` events that are held.
    pub(super) fn write(&mut self, n: usize) -> &mut Self {
        self.write_with(n, &|_| None)
    }

    /// Writes the first event that is held without the end that it brings.
    pub(super) fn write_open(&mut self) -> &mut Self {
        let (raw, note, _) = self.held.remove(0);
        with_event(&raw, |event| self.exchange.write_open(event, note, &[], &mut self.out));
        self
    }

    pub(super) fn write_all(&mut self) -> &mut Self {
        self.write(self.held.len())
    }

    /// Writes with other texts where `change` knows one.
    pub(super) fn write_with(&mut self, n: usize, change: &dyn Fn(&str) -> Option<String>) -> &mut Self {
        for (raw, note, texts) in self.held.drain(..n.min(self.held.len())) {
            let new = |(nth, text): (usize, &String)| {
                Some(Change::Text { nth: u32::try_from(nth).unwrap(), text: change(text)? })
            };
            let changes: Vec<Change> = texts.iter().enumerate().filter_map(new).collect();
            with_event(&raw, |event| self.exchange.write(event, note, &changes, &mut self.out));
        }
        self
    }

    /// Writes everything with this word replaced.
    pub(super) fn replace(&mut self, from: &str, to: &str) -> &mut Self {
        self.write_with(usize::MAX, &|text| text.contains(from).then(|| text.replace(from, to)))
    }

    pub(super) fn drop_call(&mut self, choice: u32, number: u32) -> &mut Self {
        self.exchange.drop_call(Channel { choice, kind: ChannelKind::Call(number) });
        self
    }

    pub(super) fn say(&mut self, choice: u32, text: &str) -> &mut Self {
        self.exchange.say(choice, text, &mut self.out);
        self
    }

    pub(super) fn end(&mut self, how: End) -> &mut Self {
        self.exchange.end(how, &mut self.out);
        self
    }

    pub(super) fn fail(&mut self, message: &str) -> &mut Self {
        self.exchange.fail(message, &mut self.out);
        self
    }

    /// Another answer follows; what is held is forgotten.
    pub(super) fn next_answer(&mut self) -> &mut Self {
        self.held.clear();
        self.exchange.next_answer();
        self
    }

    pub(super) fn text(&self) -> &str {
        str::from_utf8(&self.out).unwrap()
    }

    /// What went out, read as one answer.
    pub(super) fn client(&self) -> Seen {
        seen(self.middle, self.text())
    }
}

/// What a stream says.
pub(super) fn seen(middle: &'static dyn Middle, stream: &str) -> Seen {
    let mut play = Play::new(middle);
    play.read(stream);
    play.ended();
    play.read
}

/// Its bytes as the event that they are.
pub(super) fn with_event<R>(raw: &[u8], f: impl FnOnce(&Event<'_>) -> R) -> R {
    let mut parser = Parser::new();
    parser.push(raw);
    parser.finish();
    let mut event = parser.next_event().unwrap().expect("an event");
    event.raw = raw;
    f(&event)
}

/// A whole body, read and written.
pub(super) struct Body {
    pub(super) exchange: Box<dyn Exchange>,
    pub(super) read: Seen,
    texts: Vec<String>,
}

impl Body {
    pub(super) fn new(middle: &dyn Middle) -> Self {
        Body { exchange: middle.exchange(true), read: Seen::default(), texts: Vec::new() }
    }

    pub(super) fn read(&mut self, body: &Value) -> &mut Self {
        let (texts, seen) = (&mut self.texts, &mut self.read);
        texts.clear();
        self.exchange.read_body(body, &mut |piece| texts.extend(seen.take(piece))).unwrap();
        self
    }

    pub(super) fn say(&mut self, text: &str) -> &mut Self {
        let mut out = Vec::new();
        self.exchange.say(0, text, &mut out);
        assert!(out.is_empty(), "a body is written as a whole");
        self
    }

    pub(super) fn replace(&mut self, body: Value, from: &str, to: &str, end: Option<End>) -> Value {
        let new = |(nth, text): (usize, &String)| {
            let nth = u32::try_from(nth).unwrap();
            text.contains(from).then(|| Change::Text { nth, text: text.replace(from, to) })
        };
        let changes: Vec<Change> = self.texts.iter().enumerate().filter_map(new).collect();
        self.exchange.write_body(body, &changes, end)
    }
}
