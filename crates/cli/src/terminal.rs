//! What a terminal needs: colours only where they are wanted, and no control characters from strangers. A model, a
//! tool or a file could otherwise move the cursor, set the title or write to the clipboard.

use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Effects, Style};
use std::borrow::Cow;
use std::fmt::Write;
use std::fs::File;
use std::io::IsTerminal;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;

/// Beside the point: things one may want to see.
pub(crate) const DIM: Style = Style::new().effects(Effects::DIMMED);
/// Needs attention.
pub(crate) const YELLOW: Style = AnsiColor::Yellow.on_default();

/// Whether this stream is shown to a person.
pub(crate) fn is_terminal(stream: &impl IsTerminal) -> bool {
    stream.is_terminal()
}

/// Whether this stream wants colours (`NO_COLOR`, `CLICOLOR`, `TERM=dumb` are heeded).
pub(crate) fn wants_colour(stream: &impl anstream::stream::RawStream) -> bool {
    AutoStream::choice(stream) != ColorChoice::Never
}

/// Whether two streams end in the same place: one terminal, or one pipe or file after `2>&1`.
pub(crate) fn is_same(one: &impl AsFd, other: &impl AsFd) -> bool {
    let place = |stream: BorrowedFd<'_>| {
        let about = File::from(stream.try_clone_to_owned().ok()?).metadata().ok()?;
        Some((about.dev(), about.ino()))
    };
    place(one.as_fd()).is_some_and(|found| place(other.as_fd()) == Some(found))
}

/// The text as it may go to a stream: on a terminal, control characters other than newline and tab are written out.
pub(crate) fn printable(text: &str, terminal: bool) -> Cow<'_, str> {
    if !terminal || !text.chars().any(is_dangerous) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if is_dangerous(c) {
            // writing to a String cannot fail
            let _ = write!(shown, "\\x{:02x}", u32::from(c));
        } else {
            shown.push(c);
        }
    }
    Cow::Owned(shown)
}

/// C0 but newline and tab, DEL, and C1: there a single character begins a sequence, too.
fn is_dangerous(c: char) -> bool {
    c.is_control() && c != '\n' && c != '\t'
}

/// The text in this style.
pub(crate) fn styled(text: &str, style: Style, colours: bool) -> Cow<'_, str> {
    if colours { Cow::Owned(format!("{style}{text}{style:#}")) } else { Cow::Borrowed(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_written_out() {
        for (text, expected) in [
            ("plain\n\tü", "plain\n\tü"),
            ("\x1b]0;title\x07", "\\x1b]0;title\\x07"),
            ("a\rb\x7f\u{9b}31m", "a\\x0db\\x7f\\x9b31m"),
        ] {
            assert_eq!(printable(text, true), expected);
            assert_eq!(printable(text, false), text);
        }
    }

    #[test]
    fn styles_are_closed() {
        assert_eq!(styled("x", DIM, true), "\x1b[2mx\x1b[0m");
        assert_eq!(styled("x", YELLOW, false), "x");
    }
}
