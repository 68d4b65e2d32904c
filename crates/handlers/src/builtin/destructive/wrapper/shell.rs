//! Shells: with a text, with a file, or with what comes in.

use super::super::call::{Text, UNKNOWN, danger};
use super::super::walk::{Feed, Walk};

impl Walk {
    /// A shell: with a text, a file, or what comes in.
    pub(super) fn shell(&mut self, args: &[String], stdin: &Feed) -> Feed {
        let mut rest = args.iter();
        let mut text = false;
        while let Some(arg) = rest.next() {
            let is_option = arg.starts_with('-') || arg.starts_with('+');
            if matches!(arg.as_str(), "-n" | "--version" | "--help") {
                return Feed { text: Text::Unknown, from: Vec::new() };
            } else if is_option && !arg.starts_with("--") && arg.contains('c') {
                text = true;
            } else if is_option && arg.contains('s') && !arg.starts_with("--") {
                break;
            } else if matches!(arg.as_str(), "-o" | "-O" | "--rcfile" | "--init-file" | "+o" | "+O") {
                rest.next();
            } else if !is_option {
                return match (text, arg.as_str()) {
                    (true, line) => self.text(line, stdin),
                    (false, "/dev/stdin") => self.fed(stdin),
                    (false, path) => self.script(path),
                };
            }
        }
        self.fed(stdin)
    }

    /// A shell that reads what comes in.
    pub(super) fn fed(&mut self, stdin: &Feed) -> Feed {
        match &stdin.text {
            Text::Known(text) => {
                let text = text.clone();
                self.text(&text, &Feed { text: Text::None, from: Vec::new() })
            }
            Text::Remote => {
                self.note(danger("unknown-code", "text from the network or from a decoder goes to a shell"));
                Feed { text: Text::Unknown, from: Vec::new() }
            }
            Text::Unknown => {
                self.note(danger("unknown-code", "text that is not known goes to a shell"));
                Feed { text: Text::Unknown, from: Vec::new() }
            }
            _ => Feed { text: Text::Unknown, from: Vec::new() },
        }
    }

    /// A text that a shell runs.
    pub(super) fn text(&mut self, text: &str, stdin: &Feed) -> Feed {
        let head = text.trim_start();
        if head.starts_with(UNKNOWN)
            && !head.trim_matches(|c: char| c == UNKNOWN || c == '\u{1}').contains(char::is_whitespace)
        {
            self.note(danger("unknown-code", "text that is not known is run by a shell"));
        }
        Feed { text: self.line(text, &stdin.text), from: Vec::new() }
    }

    /// A file that a shell runs.
    pub(in crate::builtin::destructive) fn script(&mut self, path: &str) -> Feed {
        match self.content(path) {
            Text::Known(text) => self.text(&text, &Feed { text: Text::None, from: Vec::new() }),
            Text::Remote => {
                self.note(danger("unknown-code", "a file from the network is run by a shell"));
                Feed { text: Text::Unknown, from: Vec::new() }
            }
            Text::Unknown if path.starts_with("/dev/fd/") => {
                self.note(danger("unknown-code", "text that is not known is run by a shell"));
                Feed { text: Text::Unknown, from: Vec::new() }
            }
            _ if path == "/dev/stdin" || path == "-" => Feed { text: Text::Unknown, from: Vec::new() },
            _ => Feed { text: Text::Unknown, from: Vec::new() },
        }
    }
}
