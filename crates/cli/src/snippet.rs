//! Findings as a compiler shows them: the sentence, the line of the file with a mark under the place, and what helps.
//!
//! The files are read once more for this; one that changed or went away in between costs the picture, never the sentence.
//! Nothing from a file reaches the terminal as a control character.

use annotate_snippets::{AnnotationKind, Level, Origin, Renderer, Snippet};
use hookgate_core::define::{Place, Problem};
use hookgate_handlers::folder;
use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;

/// How many characters of a line are shown before the place, and in all.
const BEFORE: usize = 60;
const IN_ALL: usize = 120;
/// Wide enough that the renderer need not cut what is cut already.
const WIDTH: usize = 4 * IN_ALL;

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Severity {
    /// The hook cannot be used.
    Error,
    /// It can, and is probably not what was meant.
    Warning,
}

/// The texts of the files that findings are about.
#[derive(Default)]
pub(crate) struct Texts {
    files: HashMap<String, Option<Text>>,
}

struct Text {
    text: String,
    /// Where each line begins.
    lines: Vec<usize>,
}

impl Texts {
    /// A file's text without its byte order mark, if it can be read.
    pub(crate) fn of(&mut self, file: &str) -> Option<&str> {
        self.file(file).map(|file| file.text.as_str())
    }

    /// The line of a place, and where the place is in it, in bytes.
    fn line(&mut self, file: &str, place: Place) -> Option<(&str, usize)> {
        let file = self.file(file)?;
        let begin = *file.lines.get(place.line.checked_sub(1)?)?;
        let line = file.text.get(begin..)?.split('\n').next()?;
        let line = line.strip_suffix('\r').unwrap_or(line);
        let n = place.column.saturating_sub(1);
        let at = match line.get(..n) {
            // a file may be one long line with a finding at every turn
            Some(before) if before.is_ascii() => n,
            _ => line.char_indices().nth(n).map_or(line.len(), |(at, _)| at),
        };
        Some((line, at))
    }

    fn file(&mut self, file: &str) -> Option<&Text> {
        let read = || {
            let text = folder::read_text(Path::new(file)).ok()?;
            let text = text.strip_prefix('\u{feff}').map_or(text.clone(), str::to_owned);
            let begins = text.match_indices('\n').map(|(at, _)| at.saturating_add(1));
            Some(Text { lines: std::iter::once(0).chain(begins).collect(), text })
        };
        self.files.entry(file.to_owned()).or_insert_with(read).as_ref()
    }

    /// The column behind the word or text that begins at a place, on the same line.
    pub(crate) fn end_column(&mut self, file: &str, place: Place) -> Option<usize> {
        let (line, at) = self.line(file, place)?;
        let marked = line.get(marked(line, at))?;
        Some(place.column.saturating_add(marked.chars().count().max(1)))
    }
}

/// One finding, with a blank line behind it.
pub(crate) fn shown(problem: &Problem, severity: Severity, texts: &mut Texts, colours: bool) -> String {
    let level = match severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let mut title = level.primary_title(clean(&problem.message));
    if let Some(rule) = problem.rule {
        title = title.id(rule);
    }
    let mut origin = Origin::path(clean(&problem.file));
    if let Some(place) = problem.place {
        origin = origin.line(place.line).char_column(place.column);
    }
    let mut group = title.element(origin);
    let line = problem.place.and_then(|place| Some((place.line, texts.line(&problem.file, place)?)));
    if let Some((number, (line, at))) = line {
        let (text, mark) = cut(line, marked(line, at));
        let mark = AnnotationKind::Primary.span(mark);
        group = group.element(Snippet::source(text).line_start(number).annotation(mark));
    }
    if let Some(about) = about(problem) {
        group = group.element(Level::NOTE.message(clean(&about)));
    }
    if let Some(help) = &problem.help {
        group = group.element(Level::HELP.message(clean(help)));
    }
    let renderer = if colours { Renderer::styled() } else { Renderer::plain() };
    let shown = renderer.term_width(WIDTH).render(&[group]);
    // the renderer marks a change of files, and the origin counts as one; it fills empty lines with blanks
    let is_change = |line: &&str| anstream::adapter::strip_str(line).to_string().trim() == ":::";
    let lines = shown.lines().filter(|line| !is_change(line));
    let mut text: String = lines.map(|line| format!("{}\n", line.trim_end())).collect();
    text.push('\n');
    text
}

/// `hook 2 (leak), field `roles[0]``
fn about(problem: &Problem) -> Option<String> {
    let hook = problem.hook.as_ref().map(|hook| {
        let label = hook.label.as_ref().map(|label| format!(" ({label})")).unwrap_or_default();
        format!("hook {}{label}", hook.index.saturating_add(1))
    });
    let field = problem.field.as_ref().map(|field| format!("field `{field}`"));
    let parts: Vec<String> = hook.into_iter().chain(field).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// What the mark stands under: a text with its quotes, a word or number, the opening of a group in a pattern, else one
/// character.
fn marked(line: &str, at: usize) -> Range<usize> {
    let rest = line.get(at..).unwrap_or_default();
    let word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '+');
    let length = match rest.chars().next() {
        None => 0,
        Some('"') => end_of_text(rest),
        Some('(') => {
            let opening = rest.find(|c| !matches!(c, '(' | '?' | '<' | '=' | '!')).unwrap_or(rest.len());
            if rest.starts_with("(?") { opening } else { 1 }
        }
        Some(first) if word(first) => rest.find(|c| !word(c)).unwrap_or(rest.len()),
        Some(first) => first.len_utf8(),
    };
    at..at.saturating_add(length)
}

fn end_of_text(rest: &str) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at.saturating_add(1),
            _ => {}
        }
    }
    rest.len()
}

/// The part of a line around the mark, clean, with the mark in it.
fn cut(line: &str, mark: Range<usize>) -> (String, Range<usize>) {
    let before = line.get(..mark.start).unwrap_or_default();
    let from = before.char_indices().rev().nth(BEFORE.saturating_sub(1)).map_or(0, |(at, _)| at);
    let rest = line.get(from..).unwrap_or_default();
    let to = rest.char_indices().nth(IN_ALL).map_or(line.len(), |(at, _)| from.saturating_add(at));
    let part = |range: Range<usize>| clean_line(line.get(range).unwrap_or_default());
    let mut text = String::new();
    if from > 0 {
        text.push('…');
    }
    text.push_str(&part(from..mark.start));
    let begin = text.len();
    text.push_str(&part(mark.start..mark.end.min(to)));
    let end = text.len();
    text.push_str(&part(mark.end.min(to)..to));
    if to < line.len() {
        text.push('…');
    }
    (text, begin..end)
}

/// One character for each that is none to be shown. Tabs are left to the renderer.
fn clean_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() && c != '\t' { '\u{fffd}' } else { c }).collect()
}

/// A sentence on one line, its control characters written out.
fn clean(text: &str) -> String {
    crate::terminal::printable(&text.replace(['\n', '\r', '\t'], " "), true).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use hookgate_core::define::HookRef;

    fn problem(file: &str, place: Option<Place>) -> Problem {
        Problem {
            place,
            hook: Some(HookRef { index: 1, label: Some("leak".into()) }),
            field: Some("roles[0]".into()),
            help: Some("did you mean `user`?".into()),
            ..Problem::of_file(file, "unknown role")
        }
    }

    /// The picture of the place in a file of this text.
    fn check(text: &str, line: usize, column: usize, picture: &str) {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a.json").display().to_string();
        std::fs::write(&file, text).unwrap();
        let place = Place { line, column };
        let got = shown(&problem(&file, Some(place)), Severity::Error, &mut Texts::default(), false);
        let want = format!(
            "error: unknown role\n{}--> {file}:{line}:{column}\n{picture}",
            " ".repeat(line.to_string().len())
        );
        assert!(got.starts_with(&want), "got\n{got}\nwant\n{want}");
        assert!(got.contains("= note: hook 2 (leak), field `roles[0]`"), "{got}");
        assert!(got.ends_with("= help: did you mean `user`?\n\n"), "{got}");
    }

    #[test]
    fn the_mark_stands_below_the_place() {
        check("{\n  \"a\": \"role\"\n}\n", 2, 8, "  |\n2 |   \"a\": \"role\"\n  |        ^^^^^^\n");
        check("{\"a\": 12.5}", 1, 7, "  |\n1 | {\"a\": 12.5}\n  |       ^^^^\n");
        // the end of the text
        check("[1", 1, 3, "  |\n1 | [1\n  |   ^\n");
    }

    #[test]
    fn marks_and_line_ends_of_other_systems() {
        check("\u{feff}{\"a\": 1}", 1, 7, "  |\n1 | {\"a\": 1}\n  |       ^\n");
        check("{\r\n\"a\": [\r\n]}", 2, 6, "  |\n2 | \"a\": [\n  |      ^\n");
        check("{\t\"a\":\ttrue}", 1, 8, "  |\n1 | {    \"a\":    true}\n  |              ^^^^\n");
        check("[\"日本\", xé]", 1, 8, "  |\n1 | [\"日本\", xé]\n  |          ^^\n");
    }

    #[test]
    fn no_control_character_comes_through() {
        let place = Place { line: 1, column: 2 };
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("\u{1b}[31m.json").display().to_string();
        std::fs::write(&file, "[\"\u{1b}]0;title\u{7}\u{9b}31m\u{202e}\"]").unwrap();
        let about = HookRef { index: 0, label: Some("\u{1b}[2J".into()) };
        let problem = Problem {
            hook: Some(about),
            help: Some("\u{7}".into()),
            ..Problem { message: "a\u{1b}b\nc".into(), ..problem(&file, Some(place)) }
        };
        let text = shown(&problem, Severity::Warning, &mut Texts::default(), false);
        assert!(text.contains("title"), "{text}");
        let bad = text.chars().find(|c| (c.is_control() && *c != '\n') || *c == '\u{202e}');
        assert_eq!(bad, None, "{text}");
        assert!(shown(&problem, Severity::Warning, &mut Texts::default(), true).contains("\u{1b}["));
    }

    #[test]
    fn a_long_line_is_cut_around_the_place() {
        let text = format!("[{} \"role\", {}]", "1, ".repeat(5000), "2, ".repeat(5000));
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a.json").display().to_string();
        std::fs::write(&file, &text).unwrap();
        let place = Some(Place { line: 1, column: 15_003 });
        let shown = shown(&problem(&file, place), Severity::Error, &mut Texts::default(), false);
        let lines: Vec<&str> = shown.lines().collect();
        let (line, mark) = (lines[3], lines[4]);
        assert!(line.starts_with("1 | …") && line.ends_with('…') && line.chars().count() < 140, "{line}");
        let cells = |text: &str, part: &str| text.split_once(part).unwrap().0.chars().count();
        assert_eq!(cells(line, "\"role\""), cells(mark, "^^^^^^"), "{shown}");
    }

    #[test]
    fn a_file_that_went_away_keeps_its_sentence() {
        let place = Some(Place { line: 3, column: 1 });
        let text = shown(&problem("no/such.json", place), Severity::Error, &mut Texts::default(), false);
        assert_eq!(
            text,
            "error: unknown role\n--> no/such.json:3:1\n = note: hook 2 (leak), field `roles[0]`\n \
             = help: did you mean `user`?\n\n"
        );
    }
}
