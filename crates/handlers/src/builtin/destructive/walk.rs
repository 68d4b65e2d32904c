//! Walks a line as a shell would run it, without running anything.

use super::call::{Call, Danger, Text, UNKNOWN, base_name, danger};
use super::heredoc::{self, Document};
use super::{code, files, git, infra, line, output, sql, system, target, word, wrapper};
use brush_parser::ast::{
    AndOr, AssignmentName, AssignmentValue, Command, CommandPrefixOrSuffixItem as Item, CompoundCommand,
    CompoundList, FunctionBody, FunctionDefinition, IoFileRedirectKind as Kind, IoFileRedirectTarget as Aim,
    IoRedirect, Pipeline, SeparatorOperator, SimpleCommand,
};
use std::collections::HashMap;
use std::rc::Rc;

/// Most programs looked at in one line, with all that it opens.
const MOST_STEPS: u32 = 4_000;
/// Deepest opening of lines inside lines.
const DEEPEST: u32 = 24;
/// Most turns of a loop that are looked at.
const MOST_TURNS: usize = 8;

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

/// Programs that write to the files they are given.
const WRITERS: &[&str] = &[
    "rm", "mv", "cp", "tee", "touch", "truncate", "chmod", "chown", "chgrp", "ln", "dd", "install", "rsync",
    "shred", "unlink", "rmdir", "mkdir", "rimraf", "chattr", "setfacl", "patch", "wget", "curl", "unzip",
    "tar", "scp", "vi", "vim", "nano", "ed", "ex",
];

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

    fn define(&mut self, function: &FunctionDefinition) {
        let name = function.fname.value.clone();
        if calls_itself_twice(&function.body.0, &name) {
            self.note(danger(
                "power",
                format!("the function `{name}` starts itself again and again (fork bomb)"),
            ));
        }
        self.functions.insert(name, Rc::new(function.body.clone()));
    }

    fn compound(&mut self, compound: &CompoundCommand, stdin: &Feed) -> Text {
        match compound {
            CompoundCommand::BraceGroup(group) => self.list(&group.list, stdin),
            CompoundCommand::Subshell(sub) => {
                let (vars, cwd) = (self.vars.clone(), self.cwd.clone());
                let out = self.list(&sub.list, stdin);
                (self.vars, self.cwd) = (vars, cwd);
                out
            }
            CompoundCommand::ForClause(each) => {
                let values: Vec<String> = match &each.values {
                    Some(words) => words.iter().flat_map(|word| word::expand(&word.value, self)).collect(),
                    None => self.args.clone().unwrap_or_default(),
                };
                for value in values.iter().take(MOST_TURNS) {
                    self.vars.insert(each.variable_name.clone(), value.clone());
                    self.list(&each.body.list, stdin);
                }
                Text::Unknown
            }
            CompoundCommand::CaseClause(case) => {
                word::expand(&case.value.value, self);
                for item in case.cases.iter().filter_map(|item| item.cmd.as_ref()) {
                    self.list(item, stdin);
                }
                Text::Unknown
            }
            CompoundCommand::IfClause(branch) => {
                self.list(&branch.condition, stdin);
                self.list(&branch.then, stdin);
                for other in branch.elses.iter().flatten() {
                    other.condition.iter().for_each(|condition| {
                        self.list(condition, stdin);
                    });
                    self.list(&other.body, stdin);
                }
                Text::Unknown
            }
            CompoundCommand::WhileClause(turn) | CompoundCommand::UntilClause(turn) => {
                let endless = turn.0.to_string();
                if matches!(endless.trim().trim_end_matches(';'), "true" | ":")
                    && starts_in_background(&turn.1.list)
                {
                    self.note(danger("power", "an endless loop that starts programs in the background"));
                }
                let read = self.reads(&turn.0, stdin);
                self.list(&turn.0, stdin);
                let inner = if read { Feed::of(Text::None) } else { stdin.clone() };
                self.list(&turn.1.list, &inner);
                Text::Unknown
            }
            CompoundCommand::Arithmetic(_) => Text::None,
            CompoundCommand::ArithmeticForClause(each) => {
                if starts_in_background(&each.body.list) && each.condition.is_none() {
                    self.note(danger("power", "an endless loop that starts programs in the background"));
                }
                self.list(&each.body.list, stdin)
            }
        }
    }

    /// `while read -r name`: the names are what the feed lists.
    fn reads(&mut self, condition: &CompoundList, stdin: &Feed) -> bool {
        let text = condition.to_string();
        let mut words = text.split_whitespace().skip_while(|word| *word != "read");
        if words.next().is_none() {
            return false;
        }
        let value =
            wrapper::listed(stdin, self.cwd()).into_iter().next().unwrap_or_else(|| UNKNOWN.to_string());
        for name in words.filter(|word| word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')) {
            self.vars.insert(name.to_owned(), value.clone());
        }
        true
    }

    fn simple(&mut self, simple: &SimpleCommand, stdin: &Feed) -> Feed {
        self.steps += 1;
        let mut stdin = stdin.clone();
        let mut writes = Vec::new();
        let mut sets = Vec::new();
        let mut argv: Vec<String> = Vec::new();
        let mut items: Vec<&Item> = simple.prefix.iter().flat_map(|prefix| &prefix.0).collect();
        let word = simple.word_or_name.as_ref().map(|word| Item::Word(word.clone()));
        items.extend(&word);
        items.extend(simple.suffix.iter().flat_map(|suffix| &suffix.0));
        for item in items {
            match item {
                Item::IoRedirect(redirect) => self.redirect(redirect, &mut stdin, &mut writes),
                Item::Word(word) => argv.extend(word::expand(&word.value, self)),
                Item::AssignmentWord(assignment, word) => {
                    let value = match &assignment.value {
                        AssignmentValue::Scalar(value) => word::expand_whole(&value.value, self),
                        AssignmentValue::Array(values) => {
                            let all: Vec<String> = values
                                .iter()
                                .flat_map(|(_, value)| word::expand(&value.value, self))
                                .collect();
                            all.join(" ")
                        }
                    };
                    let (AssignmentName::VariableName(name) | AssignmentName::ArrayElementName(name, _)) =
                        &assignment.name;
                    if argv.is_empty() {
                        sets.push((name.clone(), value, assignment.append));
                    } else {
                        self.set(name, &value, assignment.append);
                        argv.push(format!("{}={value}", word.value.split('=').next().unwrap_or(name)));
                    }
                }
                Item::ProcessSubstitution(_, sub) => {
                    let text = self.list(&sub.list, &Feed::of(Text::Unknown));
                    let name = format!("/dev/fd/{}", 10 + self.files.len());
                    self.files.insert(name.clone(), text);
                    argv.push(name);
                }
            }
        }
        for (name, value, append) in &sets {
            self.note(system::variable(name, value, argv.first().map(String::as_str)));
            if argv.is_empty() {
                self.set(name, value, *append);
            }
        }
        let bare = argv.is_empty() && sets.is_empty();
        let head = argv.clone();
        let out = if argv.is_empty() { Feed::of(Text::None) } else { self.invoke(argv, &stdin) };
        self.empties(&head, bare, &writes, &out.text);
        self.written(&writes, &out.text, is_filler(&head));
        if writes.is_empty() { out } else { Feed::of(Text::None) }
    }

    fn set(&mut self, name: &str, value: &str, append: bool) {
        let old = if append { self.vars.get(name).cloned().unwrap_or_default() } else { String::new() };
        if old.len() + value.len() < 4 << 10 && self.vars.len() < 256 {
            self.vars.insert(name.to_owned(), old + value);
        }
    }

    fn redirect(&mut self, redirect: &IoRedirect, stdin: &mut Feed, writes: &mut Vec<Write>) {
        match redirect {
            IoRedirect::HereDocument(_, here) => {
                let raw = &here.doc.value;
                let text =
                    if here.requires_expansion { word::expand_document(raw, self) } else { raw.clone() };
                *stdin = Feed::of(Text::Known(text));
            }
            IoRedirect::HereString(_, text) => {
                let document = heredoc::number(&text.value).and_then(|n| self.documents.get(n).cloned());
                let text = match document {
                    Some(Document { body, expands: true }) => word::expand_document(&body, self),
                    Some(document) => document.body,
                    None => word::expand_whole(&text.value, self),
                };
                *stdin = Feed::of(Text::Known(text));
            }
            IoRedirect::OutputAndError(word, append) => {
                let path = word::expand_whole(&word.value, self);
                writes.push(Write { path, append: *append });
            }
            IoRedirect::File(_, kind, Aim::Filename(word)) => {
                let path = word::expand_whole(&word.value, self);
                match kind {
                    Kind::Read => *stdin = Feed::of(self.content(&path)),
                    Kind::Write | Kind::Clobber => writes.push(Write { path, append: false }),
                    Kind::Append => writes.push(Write { path, append: true }),
                    Kind::ReadAndWrite | Kind::DuplicateInput | Kind::DuplicateOutput => {}
                }
            }
            IoRedirect::File(_, _, Aim::ProcessSubstitution(_, sub)) => {
                let text = self.list(&sub.list, &Feed::of(Text::Unknown));
                *stdin = Feed::of(text);
            }
            IoRedirect::File(_, _, Aim::Fd(_) | Aim::Duplicate(_)) => {}
        }
    }

    /// What is known of a file: the line itself may have written it.
    pub(super) fn content(&self, path: &str) -> Text {
        if path == "/dev/null" {
            return Text::Known(String::new());
        }
        self.files.get(&target::join(path, self.cwd())).cloned().unwrap_or(Text::Local)
    }

    /// Notes what the line writes into a file.
    pub(super) fn keep(&mut self, path: &str, text: Text) {
        if self.files.len() < 64 {
            self.files.insert(target::join(path, self.cwd()), text);
        }
    }

    /// Judges the files that output goes into.
    fn written(&mut self, writes: &[Write], text: &Text, filler: bool) {
        for write in writes {
            self.touch(&write.path);
            let cwd = self.cwd().to_owned();
            self.note(files::write(&write.path, &cwd, write.append, filler));
            self.keep(&write.path, text.clone());
        }
    }

    /// `> file`, `: > file`, `cat /dev/null > file`: nothing goes in, all that was there is gone.
    fn empties(&mut self, head: &[String], bare: bool, writes: &[Write], out: &Text) {
        let name = head.first().map_or("", |name| base_name(name));
        let args: Vec<&str> = head.iter().skip(1).map(String::as_str).collect();
        let silent = bare
            || matches!(name, ":" | "true" | "false")
            || (matches!(name, "cat" | "cp") && args == ["/dev/null"])
            || (matches!(name, "echo" | "printf") && out.known().is_some_and(|text| text.trim().is_empty()));
        if silent {
            let cwd = self.cwd().to_owned();
            for write in writes.iter().filter(|write| !write.append) {
                self.note(files::emptied(&write.path, &cwd));
            }
        }
    }

    fn touch(&mut self, path: &str) {
        if self.watches && self.touched.len() < 1024 {
            self.touched.push(target::join(path, self.cwd()));
        }
    }

    /// Judges one program, with everything it wraps.
    pub(super) fn invoke(&mut self, argv: Vec<String>, stdin: &Feed) -> Feed {
        self.nested += 1;
        let out = self.invoke_nested(argv, stdin);
        self.nested -= 1;
        out
    }

    fn invoke_nested(&mut self, argv: Vec<String>, stdin: &Feed) -> Feed {
        self.steps += 1;
        let too_many = self.steps > MOST_STEPS || self.nested > DEEPEST;
        if too_many {
            self.note(danger("unknown-code", "more programs in one line than can be judged"));
        }
        if self.found.is_some() || too_many {
            return Feed::of(Text::Unknown);
        }
        let argv = command_word(argv);
        let Some(first) = argv.first() else { return Feed::of(Text::None) };
        if let Some(body) = self.functions.get(first).cloned() {
            return self.call(&body, &argv, stdin);
        }
        if let Some(alias) = self.aliases.get(first).cloned() {
            let rest: Vec<&str> = argv.iter().skip(1).map(String::as_str).collect();
            self.aliases.remove(first);
            return Feed::of(self.line(&format!("{alias} {}", rest.join(" ")), &stdin.text));
        }
        if let Some(out) = self.unwrap(&argv, stdin) {
            return out;
        }
        let cwd = self.cwd().to_owned();
        let name = base_name(first).trim_end_matches(".exe");
        if name.is_empty() || first.contains('/') && !matches!(self.content(first), Text::Local) {
            return self.script(first);
        }
        let args = argv.get(1..).unwrap_or_default();
        if let Some(path) = args.iter().find(|arg| {
            code::is_interpreter(name) && matches!(self.content(arg), Text::Remote | Text::Known(_))
        }) {
            let content = self.content(path);
            self.note(code::judge(&Call { name, args: &[], stdin: &content, cwd: &cwd }));
        }
        let call = Call { name, args, stdin: &stdin.text, cwd: &cwd };
        if self.watches
            && (WRITERS.contains(&name) || (matches!(name, "sed" | "perl" | "gsed") && call.short("i")))
        {
            args.iter()
                .filter(|arg| !arg.starts_with('-'))
                .for_each(|arg| self.touch(arg.strip_prefix("of=").unwrap_or(arg)));
        }
        let tables =
            [unknown_program, files::judge, git::judge, infra::judge, sql::judge, system::judge, code::judge];
        self.note(tables.iter().find_map(|table| table(&call)));
        self.builtin(&call);
        output::output(&call, stdin)
    }

    fn call(&mut self, body: &FunctionBody, argv: &[String], stdin: &Feed) -> Feed {
        if self.depth >= DEEPEST {
            return Feed::of(Text::Unknown);
        }
        self.depth += 1;
        let before = self.args.replace(argv.iter().skip(1).cloned().collect());
        let out = self.compound(&body.0, stdin);
        self.args = before;
        self.depth -= 1;
        Feed::of(out)
    }

    /// What changes the state of the shell.
    fn builtin(&mut self, call: &Call<'_>) {
        match call.name {
            "cd" | "pushd" => {
                let to = call.operand(0).unwrap_or("~").to_owned();
                let path = target::join(&to, self.cwd());
                self.cwd = Some(path);
            }
            "popd" => self.cwd = Some(UNKNOWN.to_string()),
            "alias" => {
                for (name, value) in call.args.iter().filter_map(|arg| arg.split_once('=')) {
                    self.aliases.insert(name.to_owned(), value.to_owned());
                }
            }
            "export" | "declare" | "local" | "readonly" | "typeset" => {
                for (name, value) in call.args.iter().filter_map(|arg| arg.split_once('=')) {
                    self.note(system::variable(name, value, None));
                    self.set(name, value, false);
                }
            }
            "unset" => {
                for name in call.operands() {
                    self.vars.remove(name);
                    self.functions.remove(name);
                }
            }
            "read" | "mapfile" | "readarray" => {
                let value = call.stdin.known().map(|text| text.trim_end().to_owned());
                for name in call.operands() {
                    self.set(name, value.as_deref().unwrap_or("\0"), false);
                }
            }
            "set" => {
                let mut args = call.args.iter();
                if args.any(|arg| arg == "--") {
                    self.args = Some(args.cloned().collect());
                }
            }
            "tee" => {
                for path in call.operands() {
                    self.keep(path, call.stdin.clone());
                }
            }
            "curl" | "wget" => {
                let path = call.value(&["-o", "--output", "-O", "--output-document"]);
                let path = path
                    .filter(|path| !path.starts_with("http"))
                    .or_else(|| call.operands().last().map(base_name));
                if let Some(path) = path {
                    self.keep(path, Text::Remote);
                }
            }
            "printf" if call.args.first().is_some_and(|arg| arg == "-v") => {
                if let [_, name, format, rest @ ..] = call.args
                    && let Text::Known(text) = output::printf(format, rest)
                {
                    self.set(name, &text, false);
                }
            }
            _ => {}
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

/// Where output goes.
struct Write {
    path: String,
    append: bool,
}

/// A program word with unknown parts is taken without them: `r$(true)m`, `r${x}m`.
fn command_word(mut argv: Vec<String>) -> Vec<String> {
    if let Some(first) = argv.first_mut() {
        let known: String = first.chars().filter(|c| *c != UNKNOWN && *c != REMOTE).collect();
        if !known.is_empty() {
            *first = known;
        }
        if first.contains(['?', '*', '[']) {
            *first = wrapper::globbed(first).map_or(first.clone(), str::to_owned);
        }
    }
    let empty = argv.iter().take_while(|word| word.is_empty()).count();
    argv.drain(..empty);
    argv
}

/// A program that cannot be told, with arguments that only make sense for a delete.
fn unknown_program(call: &Call<'_>) -> Option<Danger> {
    if !call.name.contains(UNKNOWN) {
        return None;
    }
    let as_rm = Call { name: "rm", ..*call };
    (call.short("rR") || call.long("--recursive")).then(|| files::judge(&as_rm)).flatten()
}

fn is_keyword(word: &str) -> bool {
    matches!(word, "if" | "then" | "else" | "elif" | "do" | "while" | "until" | "!" | "{" | "time" | "$")
        || word.contains('=') && !word.starts_with('-')
}

fn is_filler(head: &[String]) -> bool {
    let name = head.first().map_or("", |name| base_name(name));
    name == "yes"
        || (name == "cat"
            && head.iter().any(|arg| matches!(arg.as_str(), "/dev/zero" | "/dev/urandom" | "/dev/random")))
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

/// A body with a pipe or a background job in which the function calls itself.
fn calls_itself_twice(body: &CompoundCommand, name: &str) -> bool {
    let text = body.to_string();
    let calls = text
        .split(|c: char| {
            c.is_whitespace() || matches!(c, ';' | '|' | '&' | '(' | ')' | '{' | '}' | '"' | '`')
        })
        .filter(|word| *word == name)
        .count();
    calls >= 1 && (text.contains('|') || text.contains('&')) && (calls >= 2 || text.contains(" &"))
}

fn starts_in_background(list: &CompoundList) -> bool {
    list.0.iter().any(|item| matches!(item.1, SeparatorOperator::Async))
}
