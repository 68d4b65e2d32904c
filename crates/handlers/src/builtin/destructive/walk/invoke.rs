//! A program with its arguments: opened if it runs others, else put to the tables.

use super::super::budget::{STEP, WORD};
use super::super::call::{Call, Danger, Text, UNKNOWN, base_name, danger};
use super::super::{code, files, git, infra, output, sql, system, wrapper};
use super::{DEEPEST, Feed, REMOTE, Walk};
use brush_parser::ast::FunctionBody;

/// Programs that write to the files they are given.
const WRITERS: &[&str] = &[
    "rm", "mv", "cp", "tee", "touch", "truncate", "chmod", "chown", "chgrp", "ln", "dd", "install", "rsync",
    "shred", "unlink", "rmdir", "mkdir", "rimraf", "chattr", "setfacl", "patch", "wget", "curl", "unzip",
    "tar", "scp", "vi", "vim", "nano", "ed", "ex",
];

impl Walk {
    /// Judges one program, with everything it wraps.
    pub(in crate::builtin::destructive) fn invoke(&mut self, argv: Vec<String>, stdin: &Feed) -> Feed {
        let Some(_level) = self.budget.enter() else { return Feed::of(Text::Unknown) };
        self.nested += 1;
        let out = self.invoke_nested(argv, stdin);
        self.nested -= 1;
        out
    }

    pub(super) fn invoke_nested(&mut self, argv: Vec<String>, stdin: &Feed) -> Feed {
        if self.nested > DEEPEST {
            self.note(danger("unknown-code", "programs inside programs, too deep to be judged"));
            self.budget.give_up();
        }
        // each word may be a path in the folder
        let folder = self.cwd().len();
        let bytes: usize = argv.iter().map(|word| 2 * word.len() + folder + WORD).sum();
        let work = STEP + bytes + 8 * folder + stdin.text.known().map_or(0, str::len);
        if self.is_over() || !self.budget.spend(work) {
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
            self.note(code::judge(&Call { name, args: &[], stdin: &content, cwd: &cwd }, &self.budget));
        }
        let call = Call { name, args, stdin: &stdin.text, cwd: &cwd };
        if self.watches
            && (WRITERS.contains(&name) || (matches!(name, "sed" | "perl" | "gsed") && call.short("i")))
        {
            args.iter()
                .filter(|arg| !arg.starts_with('-'))
                .for_each(|arg| self.touch(arg.strip_prefix("of=").unwrap_or(arg)));
        }
        let tables = [unknown_program, files::judge, git::judge, infra::judge, sql::judge, system::judge];
        let found = tables.iter().find_map(|table| table(&call));
        self.note(found.or_else(|| code::judge(&call, &self.budget)));
        self.builtin(&call);
        output::output(&call, stdin)
    }

    pub(super) fn call(&mut self, body: &FunctionBody, argv: &[String], stdin: &Feed) -> Feed {
        if self.depth >= DEEPEST || self.budget.is_deep() {
            return Feed::of(Text::Unknown);
        }
        self.depth += 1;
        let before = self.args.replace(argv.iter().skip(1).cloned().collect());
        let out = self.compound(&body.0, stdin);
        self.args = before;
        self.depth -= 1;
        Feed::of(out)
    }
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
