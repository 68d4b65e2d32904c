//! The lines of a file, one in memory at a time, each with its number.

use std::io::{self, BufRead};

/// A longer line is passed over: no history has one.
pub(crate) const LONGEST_LINE: usize = 64 << 20;

/// Reads lines.
pub(crate) struct Lines<R> {
    source: R,
    buffer: Vec<u8>,
    number: u64,
    /// Bytes read so far.
    pub(crate) bytes: u64,
}

/// One line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line<'a> {
    /// With its number, from 1, and without its end.
    Text(u64, &'a [u8]),
    /// It is longer than [`LONGEST_LINE`].
    TooLong(u64),
}

impl<R: BufRead> Lines<R> {
    pub(crate) fn new(source: R) -> Lines<R> {
        Lines { source, buffer: Vec::new(), number: 0, bytes: 0 }
    }

    /// The next line that is not blank; none at the end.
    pub(crate) fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        loop {
            self.buffer.clear();
            let (read, is_long) = self.fill()?;
            if read == 0 {
                return Ok(None);
            }
            self.number = self.number.saturating_add(1);
            self.bytes = self.bytes.saturating_add(read);
            if is_long {
                return Ok(Some(Line::TooLong(self.number)));
            }
            if !trimmed(&self.buffer, self.number).is_empty() {
                break;
            }
        }
        Ok(Some(Line::Text(self.number, trimmed(&self.buffer, self.number))))
    }

    /// Reads to the end of the line. Of one that is too long nothing is kept.
    fn fill(&mut self) -> io::Result<(u64, bool)> {
        let (mut read, mut is_long) = (0u64, false);
        loop {
            let available = match self.source.fill_buf() {
                Ok(available) => available,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let end = memchr::memchr(b'\n', available);
            let used = end.map_or(available.len(), |end| end.saturating_add(1));
            if !is_long {
                self.buffer.extend_from_slice(available.get(..used).unwrap_or_default());
            }
            let is_over = end.is_some() || available.is_empty();
            self.source.consume(used);
            read = read.saturating_add(u64::try_from(used).unwrap_or(u64::MAX));
            if self.buffer.len() > LONGEST_LINE {
                is_long = true;
                self.buffer = Vec::new();
            }
            if is_over {
                return Ok((read, is_long));
            }
        }
    }
}

/// The line without blanks around it, and the first without a byte order mark.
fn trimmed(line: &[u8], number: u64) -> &[u8] {
    let line = if number == 1 { line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line) } else { line };
    line.trim_ascii()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_their_numbers() {
        let text = b"\xef\xbb\xbfone\r\n\n  two\n \t\nthree";
        // a small buffer cuts lines
        let mut lines = Lines::new(io::BufReader::with_capacity(4, &text[..]));
        let mut seen = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            match line {
                Line::Text(number, text) => seen.push((number, String::from_utf8(text.to_vec()).unwrap())),
                Line::TooLong(_) => unreachable!(),
            }
        }
        assert_eq!(seen, [(1, "one".into()), (3, "two".into()), (5, "three".into())]);
        assert_eq!(lines.bytes, u64::try_from(text.len()).unwrap());
    }

    #[test]
    fn a_line_without_end_is_passed_over() {
        let text =
            io::Read::chain(io::Read::take(io::repeat(b'x'), LONGEST_LINE as u64 + 10), &b"\nnext\n"[..]);
        let mut lines = Lines::new(io::BufReader::new(text));
        assert_eq!(lines.next().unwrap(), Some(Line::TooLong(1)));
        assert_eq!(lines.next().unwrap(), Some(Line::Text(2, b"next")));
        assert_eq!(lines.next().unwrap(), None);
    }
}
