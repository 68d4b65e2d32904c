//! What is wrong with a definition, and where. Users read this text more than any other.

use std::fmt;

/// One fault in a hook file.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Problem {
    /// The file as the user knows it.
    pub file: String,
    /// The place in the file; none for a file that could not be read.
    pub place: Option<Place>,
    /// The definition inside the file.
    pub hook: Option<HookRef>,
    /// The field, as a path such as `actions[1].type`.
    pub field: Option<String>,
    /// What was found and what is allowed: one sentence, lower case, no full stop.
    pub message: String,
    /// How to mend it, where that is known.
    pub help: Option<String>,
    /// For what is allowed and probably not meant: the lasting name of the rule that noticed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<&'static str>,
}

/// A place in a text file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
pub struct Place {
    /// From 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
}

/// Names one definition of a file.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct HookRef {
    /// Its place in the file's list, from 0; 0 for a file that holds one object.
    pub index: usize,
    /// Its id or label, if it has one that could be read.
    pub label: Option<String>,
}

impl Problem {
    /// A fault of the file as a whole.
    pub fn of_file(file: &str, message: impl Into<String>) -> Problem {
        Problem {
            file: file.to_owned(),
            place: None,
            hook: None,
            field: None,
            message: message.into(),
            help: None,
            rule: None,
        }
    }
}

impl fmt::Display for Problem {
    /// One line: file, line, column, hook, field, then what is wrong and what is allowed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some(place) = self.place {
            write!(f, ":{}:{}", place.line, place.column)?;
        }
        f.write_str(": ")?;
        if let Some(hook) = &self.hook {
            write!(f, "hook {}", hook.index.saturating_add(1))?;
            if let Some(label) = &hook.label {
                write!(f, " ({label})")?;
            }
            f.write_str(if self.field.is_some() { ", " } else { ": " })?;
        }
        if let Some(field) = &self.field {
            write!(f, "field `{field}`: ")?;
        }
        f.write_str(&self.message)?;
        if let Some(help) = &self.help {
            write!(f, " ({help})")?;
        }
        Ok(())
    }
}

/// Turns byte offsets of one text into lines and columns.
#[derive(Debug)]
pub struct Places<'a> {
    text: &'a str,
    line_starts: Vec<usize>,
}

impl<'a> Places<'a> {
    /// Those of a text without a byte order mark.
    pub fn new(text: &'a str) -> Self {
        let mut line_starts = vec![0];
        line_starts.extend(
            text.bytes().enumerate().filter(|(_, b)| *b == b'\n').map(|(at, _)| at.saturating_add(1)),
        );
        Places { text, line_starts }
    }

    /// The place of a byte offset; one behind the end is the end.
    pub fn of(&self, offset: usize) -> Place {
        let line = self.line_starts.partition_point(|start| *start <= offset).max(1);
        let start = self.line_starts.get(line.saturating_sub(1)).copied().unwrap_or(0);
        let before = self.text.get(start..offset.min(self.text.len())).unwrap_or_default();
        Place { line, column: before.chars().count().saturating_add(1) }
    }

    /// The byte offset in the text of what stands `n` bytes into the JSON text that begins at `at`: what is written with
    /// a backslash is longer there than it is.
    pub(crate) fn inside(&self, at: usize, n: usize) -> usize {
        let mut rest = self.text.get(at..).and_then(|rest| rest.strip_prefix('"')).unwrap_or_default();
        let begin = self.text.len().saturating_sub(rest.len());
        let (mut taken, mut read) = (0usize, 0usize);
        while read < n {
            let Some(first) = rest.chars().next().filter(|c| *c != '"') else { break };
            let (raw, value) = match (first, rest.as_bytes().get(1)) {
                ('\\', Some(b'u')) => escaped(rest),
                ('\\', Some(_)) => (2, 1),
                _ => (first.len_utf8(), first.len_utf8()),
            };
            rest = rest.get(raw..).unwrap_or_default();
            taken = taken.saturating_add(raw);
            read = read.saturating_add(value);
        }
        begin.saturating_add(taken)
    }
}

/// How many bytes `\u....` takes as it is written, and how many bytes it means; two of them may be one character.
fn escaped(rest: &str) -> (usize, usize) {
    let unit = |from: usize| {
        let digits = rest.get(from..from.saturating_add(4))?;
        u32::from_str_radix(digits, 16).ok()
    };
    match unit(2) {
        Some(high) if (0xD800..0xDC00).contains(&high) => (12, 4),
        Some(code) => (6, char::from_u32(code).map_or(3, char::len_utf8)),
        None => (6, 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_count_characters() {
        let places = Places::new("ab\nüx\n");
        assert_eq!(places.of(0), Place { line: 1, column: 1 });
        assert_eq!(places.of(5), Place { line: 2, column: 2 });
        assert_eq!(places.of(99), Place { line: 3, column: 1 });
    }

    #[test]
    fn places_inside_texts_count_what_is_written() {
        let check = |text: &str, n: usize, want: &str| {
            let at = Places::new(text).inside(1, n);
            let rest = text.split_at(at).1;
            assert!(rest.starts_with(want), "{text} {n}: {rest}");
        };
        check(r#"["abc"]"#, 0, "abc");
        check(r#"["abc"]"#, 2, "c\"");
        check(r#"["a\\s(?=x)"]"#, 3, "(?=");
        check(r#"["\u00fc\ud83d\ude00é(?!"]"#, 8, "(?!");
        check(r#"["abc"]"#, 99, "\"]");
    }

    #[test]
    fn reads_like_a_sentence() {
        let problem = Problem {
            file: "hooks/stop.json".into(),
            place: Some(Place { line: 3, column: 14 }),
            hook: Some(HookRef { index: 1, label: Some("leak".into()) }),
            field: Some("roles[0]".into()),
            message: "unknown role `asistant`; expected one of user, assistant, tool, reasoning".into(),
            help: Some("did you mean `assistant`?".into()),
            rule: None,
        };
        assert_eq!(
            problem.to_string(),
            "hooks/stop.json:3:14: hook 2 (leak), field `roles[0]`: unknown role `asistant`; \
             expected one of user, assistant, tool, reasoning (did you mean `assistant`?)"
        );
    }
}
