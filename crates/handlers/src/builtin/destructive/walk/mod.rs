//! Walks a line as a shell would run it, without running anything.

mod builtin;
mod compound;
mod invoke;
mod redirect;
mod simple;

use super::call::{Danger, Text, UNKNOWN, danger};
use super::heredoc::{self, Document};
use super::{line, target, word};
use brush_parser::ast::{AndOr, Command, CompoundList, FunctionBody, Pipeline};
use std::collections::HashMap;
use std::rc::Rc;

/// Most programs looked at in one line, with all that it opens.
const MOST_STEPS: u32 = 4_000;

/// Deepest opening of lines inside lines.
const DEEPEST: u32 = 24;

/// Judges a line.
pub(super) fn judge(text: &str) -> Option<Danger> {
    let compact: String = text.chars().filter(|c| !c.is_whitespace()).take(64).collect();
    if compact.starts_with(":(){:|:&}") {
        return danger("power", "starts itself again and again (fork bomb)");
    }
    let mut walk = Walk::default();
    walk.line(text, &Text::None);
    walk.found
}

/// Judges a program with its arguments.
pub(super) fn judge_words(argv: Vec<String>) -> Option<Danger> {
    let mut walk = Walk::default();
    walk.invoke(argv, &Feed::of(Text::None));
    walk.found
}

/// The files that a line writes to, changes or deletes.
pub(super) fn written(text: &str) -> Vec<String> {
    let mut walk = Walk { watches: true, ..Walk::default() };
    walk.line(text, &Text::None);
    walk.touched
}

/// The same for a program with its arguments.
pub(super) fn written_by_words(argv: Vec<String>) -> Vec<String> {
    let mut walk = Walk { watches: true, ..Walk::default() };
    walk.invoke(argv, &Feed::of(Text::None));
    walk.touched
}

/// What flows from one program to the next.
#[derive(Debug, Clone)]
pub(super) struct Feed {
    /// The text.
    pub(super) text: Text,
    /// The program that lists, and its arguments.
    pub(super) from: Vec<String>,
}

impl Feed {
    fn of(text: Text) -> Feed {
        Feed { text, from: Vec::new() }
    }
}

/// The state of the walk: what a shell knows at this place of the line.
#[derive(Default)]
pub(super) struct Walk {
    pub(super) found: Option<Danger>,
    vars: HashMap<String, String>,
    functions: HashMap<String, Rc<FunctionBody>>,
    aliases: HashMap<String, String>,
    files: HashMap<String, Text>,
    cwd: Option<String>,
    documents: Vec<Document>,
    /// Arguments of the running function.
    args: Option<Vec<String>>,
    steps: u32,
    depth: u32,
    nested: u32,
    /// Notes files that are written to, instead of dangers.
    watches: bool,
    touched: Vec<String>,
}

impl word::Surroundings for Walk {
    fn variable(&mut self, name: &str) -> Option<String> {
        if let Some(value) = self.vars.get(name) {
            return Some(value.clone());
        }
        let args = self.args.as_ref();
        match name {
            "HOME" => Some("~".to_owned()),
            "IFS" => Some(" ".to_owned()),
            "PWD" => Some(self.cwd().to_owned()),
            "TMPDIR" | "TEMP" | "TMP" | "RUNNER_TEMP" => Some("/tmp/own".to_owned()),
            "USER" | "LOGNAME" => Some("user".to_owned()),
            "?" | "#" | "$" | "!" | "-" => Some("1".to_owned()),
            "@" | "*" => match args {
                Some(args) => Some(args.join(" ")),
                None if self.depth == 0 => Some(String::new()),
                None => None,
            },
            name if is_temporary(name) => Some("/tmp/own".to_owned()),
            digit => {
                let n: usize = digit.parse().ok()?;
                match args {
                    Some(args) => Some(args.get(n.checked_sub(1)?).cloned().unwrap_or_default()),
                    None => None,
                }
            }
        }
    }

    fn substitution(&mut self, line: &str) -> Option<String> {
        let inner = line.trim();
        if inner.starts_with('<') && !inner.starts_with("<(") {
            return None;
        }
        let (vars, cwd) = (self.vars.clone(), self.cwd.clone());
        let out = self.line(line, &Text::None);
        (self.vars, self.cwd) = (vars, cwd);
        match out {
            Text::Known(text) => Some(text.trim_end_matches('\n').to_owned()),
            Text::None => Some(String::new()),
            Text::Remote => Some(format!("{UNKNOWN}{REMOTE}")),
            Text::Local | Text::Unknown => None,
        }
    }

    fn assign(&mut self, name: &str, value: &str) {
        self.vars.insert(name.to_owned(), value.to_owned());
    }
}

/// Behind [`UNKNOWN`]: the text comes from the network or from a decoder.
pub(super) const REMOTE: char = '\u{1}';

impl Walk {
    pub(super) fn cwd(&self) -> &str {
        self.cwd.as_deref().unwrap_or(".")
    }

    /// Notes a danger; the first one counts.
    pub(super) fn note(&mut self, found: Option<Danger>) {
        if self.found.is_none() && !self.watches {
            self.found = found;
        }
    }

    fn touch(&mut self, path: &str) {
        if self.watches && self.touched.len() < 1024 {
            self.touched.push(target::join(path, self.cwd()));
        }
    }

    /// Walks a text that a shell runs, and tells what it prints.
    pub(super) fn line(&mut self, text: &str, stdin: &Text) -> Text {
        if self.depth >= DEEPEST || self.steps > MOST_STEPS {
            self.note(danger("unknown-code", "lines inside lines, too many or too deep to be judged"));
            return Text::Unknown;
        }
        self.depth += 1;
        let text = &heredoc::take_out(text, &mut self.documents);
        let out = match line::parse(text) {
            Some(program) => {
                let mut out = Text::None;
                for list in &program.complete_commands {
                    let more = self.list(list, &Feed::of(stdin.clone()));
                    out = joined(out, more);
                }
                out
            }
            None => {
                self.cut(text);
                Text::Unknown
            }
        };
        self.depth -= 1;
        out
    }

    /// Without a tree: every run of words is judged as a program.
    fn cut(&mut self, text: &str) {
        for words in line::cut(text) {
            let start = words.iter().position(|word| !is_keyword(word)).unwrap_or(0);
            let argv: Vec<String> = words.into_iter().skip(start).collect();
            let document = argv.iter().find_map(|word| self.documents.get(heredoc::number(word)?));
            let stdin = document.map_or(Text::None, |document| Text::Known(document.body.clone()));
            self.invoke(argv, &Feed::of(stdin));
        }
    }

    fn list(&mut self, list: &CompoundList, stdin: &Feed) -> Text {
        let mut out = Text::None;
        for item in &list.0 {
            out = joined(out, self.pipeline(&item.0.first, stdin));
            for more in &item.0.additional {
                let (AndOr::And(pipeline) | AndOr::Or(pipeline)) = more;
                out = joined(out, self.pipeline(pipeline, stdin));
            }
            if self.found.is_some() {
                break;
            }
        }
        out
    }

    fn pipeline(&mut self, pipeline: &Pipeline, stdin: &Feed) -> Text {
        let mut feed = stdin.clone();
        let piped = pipeline.seq.len() > 1;
        for command in &pipeline.seq {
            let before = piped.then(|| self.cwd.clone());
            let mut next = self.command(command, &feed);
            if next.from.is_empty() {
                next.from = feed.from;
            }
            feed = next;
            if let Some(before) = before {
                self.cwd = before;
            }
            if self.found.is_some() {
                break;
            }
        }
        feed.text
    }

    fn command(&mut self, command: &Command, stdin: &Feed) -> Feed {
        match command {
            Command::Simple(simple) => self.simple(simple, stdin),
            Command::Compound(compound, redirects) => {
                let own = redirects.iter().flat_map(|list| &list.0);
                let mut stdin = stdin.clone();
                let mut writes = Vec::new();
                for redirect in own {
                    self.redirect(redirect, &mut stdin, &mut writes);
                }
                let out = self.compound(compound, &stdin);
                self.written(&writes, &out, false);
                Feed::of(out)
            }
            Command::Function(function) => {
                self.define(function);
                Feed::of(Text::None)
            }
            Command::ExtendedTest(_) => Feed::of(Text::None),
        }
    }
}

/// `$tmp`, `$WORK_TMP`: what is called so is made by the script that it stands in.
fn is_temporary(name: &str) -> bool {
    name.split('_').any(|part| {
        matches!(
            part.to_ascii_lowercase().as_str(),
            "tmp" | "temp" | "tmpdir" | "tempdir" | "tmpfile" | "tempfile"
        )
    })
}

fn is_keyword(word: &str) -> bool {
    matches!(word, "if" | "then" | "else" | "elif" | "do" | "while" | "until" | "!" | "{" | "time" | "$")
        || word.contains('=') && !word.starts_with('-')
}

fn joined(first: Text, second: Text) -> Text {
    match (first, second) {
        (Text::None, text) | (text, Text::None) => text,
        (Text::Known(first), Text::Known(second)) if first.len() + second.len() < 64 << 10 => {
            Text::Known(first + &second)
        }
        (Text::Remote, _) | (_, Text::Remote) => Text::Remote,
        _ => Text::Unknown,
    }
}
