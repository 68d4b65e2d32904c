//! Problems of hook files for people: the sentence, then the line it is about with a mark below it.

use hookgate_core::define::{Place, Problem};
use std::fs;
use unicode_width::UnicodeWidthChar;

/// A larger file is not read again for a picture of one line.
const LARGEST_FILE: u64 = 8 * 1024 * 1024;
/// How many characters of a line are shown before and after the place.
const AROUND: usize = 50;

/// All of them, each with its line.
pub(crate) fn text(problems: &[Problem]) -> String {
    with_kind(problems, "")
}

/// The same with a word such as `warning: ` behind the place.
pub(crate) fn warnings(problems: &[Problem]) -> String {
    with_kind(problems, "warning: ")
}

fn with_kind(problems: &[Problem], kind: &str) -> String {
    let mut text = String::new();
    let mut file = Lines::default();
    for problem in problems {
        text.push_str(kind);
        text.push_str(&problem.to_string());
        text.push('\n');
        if let Some(place) = problem.place
            && let Some(line) = file.line(&problem.file, place.line)
        {
            text.push_str(&picture(line, place));
        }
    }
    text
}

/// The text of the file that was asked for last.
#[derive(Default)]
struct Lines {
    file: String,
    text: String,
}

impl Lines {
    fn line(&mut self, file: &str, number: usize) -> Option<&str> {
        if self.file != file {
            self.file = file.to_owned();
            let small = fs::metadata(file).is_ok_and(|about| about.is_file() && about.len() <= LARGEST_FILE);
            self.text = small.then(|| fs::read_to_string(file).ok()).flatten().unwrap_or_default();
        }
        let text = self.text.strip_prefix('\u{feff}').unwrap_or(&self.text);
        text.lines().nth(number.checked_sub(1)?)
    }
}

/// The part of the line around the place, and a caret below it.
fn picture(line: &str, place: Place) -> String {
    let column = place.column.saturating_sub(1);
    let from = column.saturating_sub(AROUND);
    let shown = line.chars().skip(from).take(AROUND.saturating_mul(2));
    // one cell or two for each character, so that the caret stands below its own
    let shown: String = shown.map(|c| if c.is_control() { ' ' } else { c }).collect();
    let before: usize = shown.chars().take(column.saturating_sub(from)).map(|c| c.width().unwrap_or(0)).sum();
    let dots = if from > 0 { "…" } else { "" };
    let more =
        if line.chars().nth(from.saturating_add(AROUND.saturating_mul(2))).is_some() { "…" } else { "" };
    let number = place.line.to_string();
    let margin = " ".repeat(number.len());
    let indent = " ".repeat(before.saturating_add(dots.chars().count()));
    format!("  {number} | {dots}{shown}{more}\n  {margin} | {indent}^\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, column: usize, expected: &str) {
        assert_eq!(picture(line, Place { line: 7, column }), expected);
    }

    #[test]
    fn the_caret_stands_below_the_place() {
        check(r#"{"a": 1}"#, 7, "  7 | {\"a\": 1}\n    |       ^\n");
        check("\t\"日本\": x", 8, "  7 |  \"日本\": x\n    |          ^\n");
        check("", 1, "  7 | \n    | ^\n");
        let long = "x".repeat(300);
        let shown = "x".repeat(100);
        check(&long, 101, &format!("  7 | …{shown}…\n    | {}^\n", " ".repeat(51)));
    }
}
