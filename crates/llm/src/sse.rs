//! Server-sent events: bytes in, events out.
//!
//! [`Parser`] takes the bytes of a response in whatever pieces they arrive and gives the events of the
//! [event stream format](https://html.spec.whatwg.org/multipage/server-sent-events.html): lines end in LF, CRLF or
//! CR, a leading BOM and comments are skipped, several `data` lines join with LF. However the bytes are cut, the
//! events are the same. Two things differ from a browser, because models' servers need them: what stands after the
//! last blank line is an event too ([`Parser::finish`], marked by [`Event::closed`]), and the text of a line that is
//! no field is kept ([`Parser::stray`]), because that is where proxies put their complaints.
//!
//! Nothing is lost: every byte of the stream stands in the [`Event::raw`] of one event, in what
//! [`Parser::take_idle`] gave out, or in [`Parser::rest`].
//!
//! An event that lies in one piece of input is copied once and borrowed from then on.

use std::borrow::Cow;
use std::ops::Range;

use crate::error::excerpt;

/// The default limit for one event: 16 MiB.
pub const DEFAULT_LIMIT: usize = 16 * 1024 * 1024;

const BOM: &[u8] = b"\xEF\xBB\xBF";

/// One event, borrowed from the parser.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event<'a> {
    /// Its `event` field; empty when it has none.
    pub event: Cow<'a, str>,
    /// Its `data` lines, joined with LF. Bytes that are not UTF-8 are replaced by U+FFFD.
    pub data: Cow<'a, str>,
    /// Its own `id` field. (An earlier event's id is not carried over.)
    pub id: Option<Cow<'a, str>>,
    /// Its `retry` field in milliseconds.
    pub retry: Option<u64>,
    /// Whether a blank line ended it. `false` only for the last one of a stream that stops without one; its data may
    /// be half.
    pub closed: bool,
    /// Its bytes as they came, with everything since the end of the event before it: comments, blank and stray
    /// lines, events without data, a BOM.
    pub raw: &'a [u8],
}

/// One event is larger than the parser's limit. The stream cannot go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event is larger than {limit} bytes")]
pub struct TooLarge {
    /// The limit in bytes.
    pub limit: usize,
}

/// Cuts bytes into events. Feed it with [`Parser::push`], then take events with [`Parser::next_event`] until there
/// is none; at the end of the stream call [`Parser::finish`] once and take what is left.
///
/// ```
/// let mut parser = hookgate_llm::sse::Parser::new();
/// parser.push(b"event: greeting\r\ndata: hel");
/// assert!(parser.next_event()?.is_none());
/// parser.push(b"lo\r\n\r\n");
/// assert_eq!(parser.next_event()?.unwrap().data, "hello");
/// # Ok::<(), hookgate_llm::sse::TooLarge>(())
/// ```
#[derive(Clone, Debug)]
pub struct Parser {
    limit: usize,
    /// Bytes from the first one that is still needed.
    buffer: Vec<u8>,
    /// Where the current event's raw bytes begin in `buffer`; everything before is done with.
    start: usize,
    /// Where the current line begins.
    line: usize,
    /// Up to where the current line was searched for its end.
    searched: usize,
    /// The last line ended in CR at the end of the input: a LF right after it belongs to it.
    after_cr: bool,
    /// The last line ended in CR and LF.
    crlf: bool,
    first_line: bool,
    ended: bool,
    /// `fields` were given out and are to be forgotten.
    taken: bool,
    fields: Fields,
    stray: Option<String>,
}

/// The fields of the event that is being read. Ranges point into the parser's buffer.
#[derive(Clone, Debug, Default)]
struct Fields {
    event: Option<Range<usize>>,
    data: Data,
    joined: Vec<u8>,
    id: Option<Range<usize>>,
    retry: Option<u64>,
    closed: bool,
}

/// Where the data of an event is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Data {
    #[default]
    Missing,
    /// One line in the buffer.
    Line(Range<usize>),
    /// Several lines, in `Fields::joined`.
    Joined,
}

impl Default for Parser {
    fn default() -> Self {
        Self::new()
    }
}

impl Parser {
    /// A parser with [`DEFAULT_LIMIT`].
    pub fn new() -> Self {
        Self::with_limit(DEFAULT_LIMIT)
    }

    /// A parser that refuses events of more than `limit` bytes.
    pub fn with_limit(limit: usize) -> Self {
        Parser {
            limit,
            buffer: Vec::new(),
            start: 0,
            line: 0,
            searched: 0,
            after_cr: false,
            crlf: false,
            first_line: true,
            ended: false,
            taken: false,
            fields: Fields::default(),
            stray: None,
        }
    }

    /// Adds the next bytes of the stream. Take the events out before adding more: what is not taken is kept.
    pub fn push(&mut self, bytes: &[u8]) {
        self.drop_done();
        self.buffer.extend_from_slice(bytes);
    }

    /// Says that no more bytes come, so that [`Parser::next_event`] also gives what stands after the last blank line.
    pub fn finish(&mut self) {
        self.ended = true;
    }

    /// The next event, or `None` until more bytes come.
    ///
    /// # Errors
    /// [`TooLarge`] when the event that is being read passes the limit. The parser gives nothing more then.
    pub fn next_event(&mut self) -> Result<Option<Event<'_>>, TooLarge> {
        Ok(if self.advance()? { Some(self.current()) } else { None })
    }

    /// Takes the whole lines since the last event that belong to no event, such as comments that keep a connection
    /// alive. They are not in the next event's [`Event::raw`] then. Empty inside an event.
    pub fn take_idle(&mut self) -> &[u8] {
        self.drop_taken();
        let start = self.start;
        if self.fields.is_empty() {
            self.start = self.line;
        }
        self.buffer.get(start..self.start).unwrap_or_default()
    }

    /// The bytes behind the last event that was given out. At the end of a stream they belong to no event.
    pub fn rest(&self) -> &[u8] {
        let start = if self.taken { self.line } else { self.start };
        self.buffer.get(start..).unwrap_or_default()
    }

    /// How the first line that was neither a field nor a comment begins: often a proxy's plain-text error.
    pub fn stray(&self) -> Option<&str> {
        self.stray.as_deref()
    }

    /// Reads lines up to the end of the next event; `true` when `fields` holds a whole one.
    fn advance(&mut self) -> Result<bool, TooLarge> {
        self.drop_taken();
        while let Some(line) = self.next_line() {
            if !line.is_empty() {
                self.read_line(line);
            } else if self.fields.data == Data::Missing {
                self.fields.reset();
            } else {
                return Ok(self.take(true));
            }
            self.check_size(self.line)?;
        }
        self.check_size(self.buffer.len())?;
        if !self.ended {
            return Ok(false);
        }
        if self.line < self.buffer.len() {
            let rest = self.without_bom(self.line..self.buffer.len());
            self.line = self.buffer.len();
            self.read_line(rest);
        }
        Ok(self.fields.data != Data::Missing && self.take(false))
    }

    fn take(&mut self, closed: bool) -> bool {
        self.fields.closed = closed;
        self.taken = true;
        true
    }

    fn check_size(&self, end: usize) -> Result<(), TooLarge> {
        if end.saturating_sub(self.start) > self.limit { Err(TooLarge { limit: self.limit }) } else { Ok(()) }
    }

    /// Forgets the event that was given out last.
    fn drop_taken(&mut self) {
        if self.taken {
            self.taken = false;
            self.fields.reset();
            self.start = self.line;
        }
    }

    /// Frees the bytes before `start`.
    fn drop_done(&mut self) {
        self.drop_taken();
        if self.start == 0 {
            return;
        }
        let done = std::mem::take(&mut self.start);
        if done >= self.buffer.len() {
            self.buffer.clear();
        } else {
            self.buffer.drain(..done);
        }
        self.line -= done;
        self.searched -= done;
        self.fields.shift(done);
    }

    /// The next line without its end, once it has one.
    fn next_line(&mut self) -> Option<Range<usize>> {
        if self.after_cr {
            let next = *self.buffer.get(self.line)?;
            self.after_cr = false;
            self.crlf = next == b'\n';
            if self.crlf {
                self.line += 1;
                self.searched = self.line;
            }
        }
        let rest = self.buffer.get(self.searched..)?;
        // Every second line is blank: not worth a search.
        let at = if rest.first() == Some(&b'\n') { Some(0) } else { memchr::memchr2(b'\n', b'\r', rest) };
        let Some(at) = at else {
            self.searched = self.buffer.len();
            return None;
        };
        let end = self.searched + at;
        let length = if rest.get(at) == Some(&b'\n') { 1 } else { self.cr_length(end)? };
        let line = self.without_bom(self.line..end);
        self.line = end + length;
        self.searched = self.line;
        Some(line)
    }

    /// The length of the line end that begins with the CR at `end`. `None` until its LF is there: only for the blank
    /// line of an event whose lines end in CR and LF, so that its raw bytes are whole. Any other CR ends a line at
    /// once.
    fn cr_length(&mut self, end: usize) -> Option<usize> {
        match self.buffer.get(end + 1) {
            Some(b'\n') => {
                self.crlf = true;
                Some(2)
            }
            Some(_) => {
                self.crlf = false;
                Some(1)
            }
            None if end == self.line && self.crlf && !self.ended => {
                self.searched = end;
                None
            }
            None => {
                self.after_cr = true;
                Some(1)
            }
        }
    }

    fn without_bom(&mut self, line: Range<usize>) -> Range<usize> {
        let first = std::mem::replace(&mut self.first_line, false);
        if first && self.bytes(&line).starts_with(BOM) { line.start + BOM.len()..line.end } else { line }
    }

    fn read_line(&mut self, line: Range<usize>) {
        let bytes = self.buffer.get(line.clone()).unwrap_or_default();
        if let Some(value) = bytes.strip_prefix(b"data:") {
            let value = value.strip_prefix(b" ").unwrap_or(value);
            return self.fields.add_data(line.end - value.len()..line.end, &self.buffer);
        }
        let (name, value) = match memchr::memchr(b':', bytes).and_then(|colon| bytes.split_at_checked(colon))
        {
            Some((name, rest)) => (name, rest.get(1..).unwrap_or_default()),
            None => (bytes, &[] as &[u8]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        let range = line.end - value.len()..line.end;
        match name {
            b"" => {}
            b"data" => self.fields.add_data(range, &self.buffer),
            b"event" => self.fields.event = Some(range),
            b"id" if !value.contains(&0) => self.fields.id = Some(range),
            b"id" => {}
            b"retry" => self.fields.retry = milliseconds(value).or(self.fields.retry),
            _ => {
                if self.stray.is_none() {
                    self.stray = Some(excerpt(&text(bytes)));
                }
            }
        }
    }

    fn bytes(&self, range: &Range<usize>) -> &[u8] {
        self.buffer.get(range.clone()).unwrap_or_default()
    }

    fn current(&self) -> Event<'_> {
        let part = |range: &Range<usize>| text(self.bytes(range));
        Event {
            event: self.fields.event.as_ref().map(part).unwrap_or_default(),
            data: match &self.fields.data {
                Data::Missing => Cow::Borrowed(""),
                Data::Line(range) => part(range),
                Data::Joined => text(&self.fields.joined),
            },
            id: self.fields.id.as_ref().map(part),
            retry: self.fields.retry,
            closed: self.fields.closed,
            raw: self.bytes(&(self.start..self.line)),
        }
    }
}

impl Fields {
    fn is_empty(&self) -> bool {
        self.data == Data::Missing && self.event.is_none() && self.id.is_none() && self.retry.is_none()
    }

    fn reset(&mut self) {
        // Field by field: this runs for every event, and a new value for all would be several times slower.
        self.joined.clear();
        self.event = None;
        self.data = Data::Missing;
        self.id = None;
        self.retry = None;
    }

    fn shift(&mut self, by: usize) {
        let data = if let Data::Line(range) = &mut self.data { Some(range) } else { None };
        for range in data.into_iter().chain(&mut self.event).chain(&mut self.id) {
            *range = range.start - by..range.end - by;
        }
    }

    #[inline]
    fn add_data(&mut self, line: Range<usize>, buffer: &[u8]) {
        if self.data == Data::Missing {
            self.data = Data::Line(line);
        } else {
            self.join_data(line, buffer);
        }
    }

    fn join_data(&mut self, line: Range<usize>, buffer: &[u8]) {
        if let Data::Line(first) = std::mem::replace(&mut self.data, Data::Joined) {
            self.joined.extend_from_slice(buffer.get(first).unwrap_or_default());
        }
        self.joined.push(b'\n');
        self.joined.extend_from_slice(buffer.get(line).unwrap_or_default());
    }
}

fn text(bytes: &[u8]) -> Cow<'_, str> {
    // The check alone is several times faster than the lossy conversion, and nearly always enough.
    std::str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
}

fn milliseconds(value: &[u8]) -> Option<u64> {
    let digits = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(value).ok().filter(|_| digits)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Plain = (String, String, Option<String>, Option<u64>, bool);

    fn read(pieces: &[&[u8]]) -> Vec<Plain> {
        let mut parser = Parser::new();
        let mut events = Vec::new();
        let mut drain = |parser: &mut Parser| {
            while let Some(e) = parser.next_event().unwrap() {
                events.push((e.event.into(), e.data.into(), e.id.map(Into::into), e.retry, e.closed));
            }
        };
        for piece in pieces {
            parser.push(piece);
            drain(&mut parser);
        }
        parser.finish();
        drain(&mut parser);
        events
    }

    /// The raw bytes of all events and what stands behind them, however the bytes are cut.
    fn raws(pieces: &[&[u8]], take_idle: bool) -> Vec<Vec<u8>> {
        let mut parser = Parser::new();
        let mut out = Vec::new();
        let mut drain = |parser: &mut Parser, end: bool| {
            while let Some(event) = parser.next_event().unwrap() {
                out.push(event.raw.to_vec());
            }
            if take_idle {
                out.push(parser.take_idle().to_vec());
            }
            if end {
                out.push(parser.rest().to_vec());
            }
        };
        for piece in pieces {
            parser.push(piece);
            drain(&mut parser, false);
        }
        parser.finish();
        drain(&mut parser, true);
        out
    }

    #[test]
    fn raw_bytes_have_everything_since_the_event_before() {
        let check = |stream: &str, expected: &[&str]| {
            let bytes = stream.as_bytes();
            for pieces in [vec![bytes], bytes.chunks(1).collect()] {
                let got = raws(&pieces, false);
                let got: Vec<_> = got.iter().map(|raw| str::from_utf8(raw).unwrap()).collect();
                assert_eq!(got, expected, "{stream:?}");
            }
        };
        check("data: a\n\ndata: b\n\n", &["data: a\n\n", "data: b\n\n", ""]);
        check("\u{feff}: c\n\n\ndata: a\r\n\r\n: d\r\n", &["\u{feff}: c\n\n\ndata: a\r\n\r\n", ": d\r\n"]);
        check("data: a\r\rdata: b\r", &["data: a\r\r", "data: b\r", ""]);
        check("event: x\n\ndata: a\n\nx", &["event: x\n\ndata: a\n\n", "x"]);
        check("stray\ndata: a", &["stray\ndata: a", ""]);
        check("data: a\r\n\r", &["data: a\r\n\r", ""]);
    }

    #[test]
    fn lines_of_no_event_can_be_taken_early() {
        let mut parser = Parser::new();
        parser.push(b": busy\n\n: half");
        assert!(parser.next_event().unwrap().is_none());
        assert_eq!(parser.take_idle(), b": busy\n\n");
        assert_eq!(parser.take_idle(), b"");
        parser.push(b"\nid: 1\n");
        assert!(parser.next_event().unwrap().is_none());
        assert_eq!(parser.take_idle(), b"", "inside an event");
        parser.push(b"data: a\n\n: more\n");
        assert_eq!(parser.next_event().unwrap().unwrap().raw, b": half\nid: 1\ndata: a\n\n");
        assert!(parser.next_event().unwrap().is_none());
        assert_eq!(parser.take_idle(), b": more\n");
    }

    /// Events as `name=data`, `!` after one that no blank line ended.
    fn check(stream: &str, expected: &str) {
        let show = |events: &[Plain]| {
            let one = |e: &Plain| format!("{}={}{}", e.0, e.1, if e.4 { "" } else { "!" });
            events.iter().map(one).collect::<Vec<_>>().join("|")
        };
        let bytes = stream.as_bytes();
        assert_eq!(show(&read(&[bytes])), expected, "{stream:?}");
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(show(&read(&single)), expected, "{stream:?} byte by byte");
    }

    #[test]
    fn lines_end_in_lf_crlf_or_cr() {
        check("data: a\n\ndata: b\n\n", "=a|=b");
        check("data: a\r\n\r\ndata: b\r\n\r\n", "=a|=b");
        check("data: a\r\rdata: b\r\r", "=a|=b");
        check("data: a\r\n\ndata: b\n\r\n", "=a|=b");
    }

    #[test]
    fn fields_are_read_as_the_standard_says() {
        check("\u{feff}data: a\n\n", "=a");
        check("data: a\n\n\u{feff}data: b\n\n", "=a");
        check(": hello\n\n:\ndata:a\n\n", "=a");
        check("data: a\ndata: b\ndata:\ndata: c\n\n", "=a\nb\n\nc");
        check("data\n\n", "=");
        check("data:  two\n\n", "= two");
        check("event: x\n\ndata: a\n\n", "=a");
        check("event: x\ndata: a\n\ndata: b\n\n", "x=a|=b");
        check("data: a\nid: 7\nretry: 30\nretry: x\n\n", "=a");
        assert_eq!(read(&[b"id: 7\nretry: 30\nretry: 3x\nretry:\ndata: a\n\n"])[0].2.as_deref(), Some("7"));
        assert_eq!(read(&[b"retry: 30\nretry: 3x\nretry:\ndata: a\n\n"])[0].3, Some(30));
        assert_eq!(read(&[b"id: a\0b\ndata: a\n\n"])[0].2, None);
    }

    #[test]
    fn what_stands_after_the_last_blank_line_is_marked() {
        check("data: a\n\ndata: b", "=a|=b!");
        check("data: a\n", "=a!");
        check("data: a\r", "=a!");
        check("event: x", "");
        check("\u{feff}data: a", "=a!");
    }

    #[test]
    fn odd_bytes_are_replaced() {
        assert_eq!(read(&[b"data: a\xFFb\n\n"])[0].1, "a\u{fffd}b");
        check("data: \u{65e5}\u{1f600}\n\n", "=\u{65e5}\u{1f600}");
    }

    #[test]
    fn lines_that_are_no_field_are_remembered() {
        let mut parser = Parser::new();
        parser.push(b"upstream  connect error\nmore\n\n");
        assert_eq!(parser.next_event(), Ok(None));
        assert_eq!(parser.stray(), Some("upstream connect error"));
    }

    #[test]
    fn an_event_has_a_limit_and_a_stream_has_none() {
        let mut parser = Parser::with_limit(64);
        for _ in 0..1000 {
            parser.push(b": a comment line\ndata: 0123456789\n\n: another comment\n");
            while parser.next_event().unwrap().is_some() {}
            assert!(parser.buffer.len() < 128);
        }
        parser.push(b"data: ");
        parser.push(&[b'x'; 60]);
        assert_eq!(parser.next_event(), Err(TooLarge { limit: 64 }));
        let mut lines = Parser::with_limit(64);
        lines.push(&b"data: x\n".repeat(20));
        assert_eq!(lines.next_event(), Err(TooLarge { limit: 64 }));
    }

    proptest! {
        #[test]
        fn the_cuts_change_nothing(
            parts in prop::collection::vec(
                prop::sample::select(vec![
                    &b"data"[..], b":", b" ", b"\n", b"\r", b"\r\n", b"\n\n", b"event", b"id", b"retry", b"1", b"\xEF\xBB\xBF",
                    b"\xF0\x9F\x98\x80", b"\xFF", b"\0", b"data: x", b"{}",
                ]),
                0..40,
            ),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
        ) {
            let whole = parts.concat();
            let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(whole.len() + 1)).collect();
            at.extend([0, whole.len()]);
            at.sort_unstable();
            let pieces: Vec<&[u8]> = at.windows(2).map(|w| &whole[w[0]..w[1]]).collect();
            prop_assert_eq!(read(&pieces), read(&[&whole]));
            prop_assert_eq!(read(&whole.chunks(1).collect::<Vec<_>>()), read(&[&whole]));
            for take_idle in [false, true] {
                prop_assert_eq!(raws(&pieces, take_idle).concat(), whole.clone());
                prop_assert_eq!(raws(&whole.chunks(1).collect::<Vec<_>>(), take_idle).concat(), whole.clone());
            }
        }
    }
}
