//! How events go out: as they came, changed, or of our own, framed as the provider frames its stream.

use serde_json::Value;

use super::rewritten;
use crate::sse::Event;

const BOM: &[u8] = b"\xEF\xBB\xBF";

/// The framing of one stream.
#[derive(Debug)]
pub(super) struct Frame {
    eol: &'static str,
    learned: bool,
    /// The last event that went out had no blank line behind it.
    open: bool,
    /// The stream's first event where it begins with a byte order mark, until it is written. Anywhere else such a mark makes
    /// a line one that nobody reads.
    marked: Vec<u8>,
}

impl Default for Frame {
    fn default() -> Self {
        Frame { eol: "\n", learned: false, open: false, marked: Vec::new() }
    }
}

impl Frame {
    /// Takes over the line ending of the first event that comes.
    #[inline]
    pub(super) fn learn(&mut self, raw: &[u8]) {
        if !self.learned {
            self.learned = true;
            if raw.starts_with(BOM) {
                self.marked = raw.to_vec();
            }
            self.eol = match memchr::memchr2(b'\n', b'\r', raw).and_then(|at| raw.get(at..)) {
                Some([b'\r', b'\n', ..]) => "\r\n",
                Some([b'\r', ..]) => "\r",
                _ => "\n",
            };
        }
    }

    /// Writes an event as it came.
    #[inline]
    pub(super) fn pass(&mut self, event: &Event<'_>, out: &mut Vec<u8>) {
        self.close(out);
        self.marked.clear();
        out.extend_from_slice(event.raw);
        self.open = !event.closed;
    }

    /// Writes an event with other data, and everything else of it as it came.
    pub(super) fn rewrite(&mut self, event: &Event<'_>, data: &Value, out: &mut Vec<u8>) {
        self.close(out);
        let mut written = false;
        let mut is_marked = std::mem::take(&mut self.marked) == event.raw;
        for (line, end) in lines(event.raw) {
            let mark = if std::mem::take(&mut is_marked) { BOM } else { b"" };
            let field = line.strip_prefix(mark).unwrap_or(line);
            if field != b"data" && !field.starts_with(b"data:") {
                out.extend_from_slice(line);
                out.extend_from_slice(end);
            } else if !written {
                written = true;
                out.extend_from_slice(line.strip_suffix(field).unwrap_or_default());
                out.extend_from_slice(if field.starts_with(b"data: ") { b"data: " } else { b"data:" });
                out.extend_from_slice(one_line(rewritten(&event.data, data)).as_bytes());
                out.extend_from_slice(end);
            }
        }
        self.open = !event.closed;
    }

    /// Writes an event of our own; an empty name is none.
    pub(super) fn own(&mut self, name: &str, data: &Value, out: &mut Vec<u8>) {
        self.own_text(name, &data.to_string(), out);
    }

    /// Writes an event of our own whose data is no JSON.
    pub(super) fn own_text(&mut self, name: &str, data: &str, out: &mut Vec<u8>) {
        self.close(out);
        if !name.is_empty() {
            for part in ["event: ", name, self.eol] {
                out.extend_from_slice(part.as_bytes());
            }
        }
        for part in ["data: ", data, self.eol, self.eol] {
            out.extend_from_slice(part.as_bytes());
        }
    }

    /// Ends an event that came without its blank line.
    fn close(&mut self, out: &mut Vec<u8>) {
        if self.open {
            self.open = false;
            for _ in 0..2 {
                out.extend_from_slice(self.eol.as_bytes());
            }
        }
    }
}

/// An event may have its JSON in several lines; the line ends between its values are blanks.
fn one_line(json: String) -> String {
    if memchr::memchr2(b'\n', b'\r', json.as_bytes()).is_none() {
        json
    } else {
        json.replace(['\n', '\r'], " ")
    }
}

/// The lines with their ends.
fn lines(mut rest: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let at = memchr::memchr2(b'\n', b'\r', rest).unwrap_or(rest.len());
        let (line, after) = rest.split_at_checked(at)?;
        let length = match after {
            [b'\r', b'\n', ..] => 2,
            [] => 0,
            _ => 1,
        };
        let (end, left) = after.split_at_checked(length)?;
        rest = left;
        Some((line, end))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::sse::Parser;

    fn check(stream: &str, expected: &str) {
        let (mut parser, mut frame, mut out) = (Parser::new(), Frame::default(), Vec::new());
        parser.push(stream.as_bytes());
        parser.finish();
        while let Some(event) = parser.next_event().unwrap() {
            frame.learn(event.raw);
            frame.rewrite(&event, &json!({"b": 1}), &mut out);
        }
        frame.own("x", &json!(2), &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), expected, "{stream:?}");
    }

    #[test]
    fn changed_events_keep_everything_but_their_data() {
        check("data: {}\n\n", "data: {\"b\":1}\n\nevent: x\ndata: 2\n\n");
        check("data:{}\r\n\r\n", "data:{\"b\":1}\r\n\r\nevent: x\r\ndata: 2\r\n\r\n");
        check(
            "id: 7\rdata: 1\rdata: 2\revent: y\r\r",
            "id: 7\rdata: {\"b\":1}\revent: y\r\revent: x\rdata: 2\r\r",
        );
        check("\u{feff}data: 1\n\n", "\u{feff}data: {\"b\":1}\n\nevent: x\ndata: 2\n\n");
        // only the stream's first line may have it
        check(
            "event: a\n\u{feff}data: 1\ndata: 2\n\n",
            "event: a\n\u{feff}data: 1\ndata: {\"b\":1}\n\nevent: x\ndata: 2\n\n",
        );
        check(
            "\u{feff}data: 1\n\n\u{feff}data: 1\ndata: 3\n\n",
            "\u{feff}data: {\"b\":1}\n\n\u{feff}data: 1\ndata: {\"b\":1}\n\nevent: x\ndata: 2\n\n",
        );
        check(": c\n\ndata\ndatax: 1\n\n", ": c\n\ndata:{\"b\":1}\ndatax: 1\n\nevent: x\ndata: 2\n\n");
        check(
            "data: {\ndata:  \"a\": [1,\ndata: 2], \"b\": 0}\n\n",
            "data: {\"b\":1}\n\nevent: x\ndata: 2\n\n",
        );
        check("data: 1", "data: {\"b\":1}\n\nevent: x\ndata: 2\n\n");
    }
}
