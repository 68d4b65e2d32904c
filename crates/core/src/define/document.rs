//! JSON texts of other formats, read as strictly as hook files: unknown fields, wrong values and keys written twice are
//! told with their places. Other than hook files they may have comments.

use super::Report;
use super::node::Node;
use super::problem::{Places, Problem};

/// Reads a text. `read` takes its root apart with [`Fields`](super::Fields) and notes faults on the report; what it gives
/// counts if it noted none.
///
/// # Errors
/// All that is wrong, in the order of the text.
pub fn read_document<T>(
    file: &str,
    text: &str,
    read: impl FnOnce(&Node, &Report<'_>) -> Option<T>,
) -> Result<T, Vec<Problem>> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.trim().is_empty() {
        return Err(vec![Problem::of_file(file, "the file is empty")]);
    }
    let root = Node::parse(file, &without_comments(text))?;
    let places = Places::new(text);
    let report = Report::of_file(file, &places);
    let made = read(&root, &report);
    let problems = report.into_problems();
    match made {
        Some(made) if problems.is_empty() => Ok(made),
        Some(_) | None => Err(problems),
    }
}

/// The text with blanks in the place of comments, so that all else stays where it is. What stands in texts is no comment;
/// a comment without an end is left, for the parser to complain about.
fn without_comments(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['"', '/']) {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let (length, is_comment) = if from.starts_with("//") {
            (from.find(['\n', '\r']).unwrap_or(from.len()), true)
        } else if let Some(open) = from.strip_prefix("/*") {
            match open.find("*/") {
                Some(end) => (end.saturating_add(4), true),
                None => (from.len(), false),
            }
        } else if from.starts_with('"') {
            (end_of_text(from), false)
        } else {
            (1, false)
        };
        let (piece, after) = from.split_at(length);
        if is_comment {
            // a byte for a byte: places are counted in the text as it was
            out.extend(
                piece.bytes().map(|byte| if matches!(byte, b'\n' | b'\r') { char::from(byte) } else { ' ' }),
            );
        } else {
            out.push_str(piece);
        }
        rest = after;
    }
    out.push_str(rest);
    out
}

/// How many bytes the quoted text at the beginning takes.
fn end_of_text(from: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in from.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at.saturating_add(1),
            _ => {}
        }
    }
    from.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::define::Fields;

    fn check(text: &str, want: &[&str]) {
        let read = read_document("t.json", text, |root, report| {
            let fields = Fields::of(report, root, String::new())?;
            let name = fields.text("name").map(str::to_owned);
            fields.finish();
            name
        });
        let got: Vec<String> = match read {
            Ok(name) => vec![name],
            Err(problems) => problems.iter().map(ToString::to_string).collect(),
        };
        assert_eq!(got, want, "{text}");
    }

    #[test]
    fn comments_are_passed_over() {
        check("// a\n{ /* b\n \"c\" */ \"name\": \"http://x/*y*/\" } // d", &["http://x/*y*/"]);
        check("{\"name\": \"a\\\"// b\"}", &["a\"// b"]);
    }

    #[test]
    fn faults_have_their_places() {
        check("", &["t.json: the file is empty"]);
        check(
            "/* é */ {\n // x\n  \"nmae\": 1}",
            &["t.json:3:3: field `nmae`: unknown field `nmae`; expected one of name (did you mean `name`?)"],
        );
        check("/* é */ {\"name\": 1}", &["t.json:1:18: field `name`: expected a text, found the number `1`"]);
        check(
            "{\"name\": 1} /* ",
            &["t.json:1:13: not valid JSON: trailing characters (JSON has no comments)"],
        );
    }
}
