//! Walks a line as a shell would run it, without running anything.

mod builtin;
mod compound;
mod invoke;
mod redirect;
mod simple;

use super::budget::{Budget, PARSED, STEP};
use super::call::{Danger, Text, UNKNOWN, danger};
use super::heredoc::{self, Document};
use super::{line, target, word};
use brush_parser::ast::{AndOr, Command, CompoundList, FunctionBody, Pipeline, Program};
use std::collections::HashMap;
use std::rc::Rc;

/// Deepest opening of lines inside lines.
const DEEPEST: u32 = 24;
/// Deepest expansions inside expansions.
const DEEPEST_EXPANSION: u32 = 32;
/// Most files that are noted.
const MOST_TOUCHED: usize = 1024;

/// Judges a line.
pub(super) fn judge(text: &str, budget: &Budget) -> Option<Danger> {
    let compact: String = text.chars().filter(|c| !c.is_whitespace()).take(64).collect();
    if compact.starts_with(":(){:|:&}") {
        return danger("power", "starts itself again and again (fork bomb)");
    }
    let mut walk = Walk::new(budget);
    walk.line(text, &Text::None);
    walk.found
}

/// Judges a program with its arguments.
pub(super) fn judge_words(argv: Vec<String>, budget: &Budget) -> Option<Danger> {
    let mut walk = Walk::new(budget);
    walk.invoke(argv, &Feed::of(Text::None));
    walk.found
}

/// The files that a line writes to, changes or deletes.
pub(super) fn written(text: &str, budget: &Budget) -> Vec<String> {
    let mut walk = Walk { watches: true, ..Walk::new(budget) };
    walk.line(text, &Text::None);
    walk.touched
}

/// The same for a program with its arguments.
pub(super) fn written_by_words(argv: Vec<String>, budget: &Budget) -> Vec<String> {
    let mut walk = Walk { watches: true, ..Walk::new(budget) };
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
    /// Its bytes, as far as they are kept.
    fn size(&self) -> usize {
        let listed: usize = self.from.iter().map(|word| word.len() + 24).sum();
        self.text.known().map_or(0, str::len) + listed
    }

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
    pub(super) budget: Budget,
    depth: u32,
    /// Groups, branches and loops around this place.
    compounds: usize,
    /// Expansions around this place.
    expansions: u32,
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
        let (vars, cwd) = self.state()?;
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

    fn enter(&mut self, bytes: usize) -> bool {
        if self.expansions >= DEEPEST_EXPANSION {
            self.budget.give_up();
        }
        let may = self.budget.spend(bytes);
        if may {
            self.expansions += 1;
        }
        may
    }

    fn leave(&mut self) {
        self.expansions -= 1;
    }

    fn spend(&mut self, bytes: usize) {
        self.budget.spend(bytes);
    }
}

/// Behind [`UNKNOWN`]: the text comes from the network or from a decoder.
pub(super) const REMOTE: char = '\u{1}';

impl Walk {
    pub(super) fn new(budget: &Budget) -> Walk {
        Walk { budget: budget.clone(), ..Walk::default() }
    }

    /// Is all known that can be?
    pub(super) fn is_over(&self) -> bool {
        self.found.is_some() || self.budget.is_spent()
    }

    /// What a subshell may change without effect. None: the budget is used up.
    fn state(&self) -> Option<(HashMap<String, String>, Option<String>)> {
        let size: usize = self.vars.iter().map(|(name, value)| name.len() + value.len() + 64).sum();
        self.budget.spend(size).then(|| (self.vars.clone(), self.cwd.clone()))
    }

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
        if !self.watches {
            return;
        }
        if self.touched.len() >= MOST_TOUCHED {
            self.budget.give_up();
        }
        self.touched.push(target::join(path, self.cwd()));
    }

    /// Walks a text that a shell runs, and tells what it prints.
    pub(super) fn line(&mut self, text: &str, stdin: &Text) -> Text {
        if self.depth >= DEEPEST {
            self.note(danger("unknown-code", "lines inside lines, too deep to be judged"));
            self.budget.give_up();
        }
        if self.is_over() || !self.budget.spend(STEP + text.len() * (1 + heredoc::tries(text) / 8)) {
            return Text::Unknown;
        }
        let Some(_level) = self.budget.enter() else { return Text::Unknown };
        self.depth += 1;
        let text = &heredoc::take_out(text, &mut self.documents);
        let out = match self.parse(text) {
            Some(program) => {
                let mut out = Text::None;
                for list in &program.complete_commands {
                    if self.is_over() {
                        break;
                    }
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

    fn parse(&mut self, text: &str) -> Option<Program> {
        self.budget
            .spend(text.len().min(line::LONGEST) * PARSED)
            .then(|| line::parse(text, self.compounds))?
    }

    /// Without a tree: every run of words is judged as a program.
    fn cut(&mut self, text: &str) {
        for words in line::cut(text) {
            if self.is_over() {
                return;
            }
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
            if self.is_over() {
                break;
            }
            out = joined(out, self.pipeline(&item.0.first, stdin));
            for more in &item.0.additional {
                let (AndOr::And(pipeline) | AndOr::Or(pipeline)) = more;
                if self.is_over() {
                    break;
                }
                out = joined(out, self.pipeline(pipeline, stdin));
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
            if self.is_over() {
                break;
            }
        }
        feed.text
    }

    fn command(&mut self, command: &Command, stdin: &Feed) -> Feed {
        // what flows in is copied some times
        if !self.budget.spend(STEP / 2 + 2 * stdin.size()) {
            return Feed::of(Text::Unknown);
        }
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
