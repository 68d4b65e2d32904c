//! Where a program reads from and writes to, and what the line knows of files.

use super::super::budget::WORD;
use super::super::call::{Text, base_name};
use super::super::heredoc::{self, Document};
use super::super::{files, target, word};
use super::{Feed, Walk};
use brush_parser::ast::{IoFileRedirectKind as Kind, IoFileRedirectTarget as Aim, IoRedirect};

/// Where output goes.
pub(super) struct Write {
    path: String,
    append: bool,
}

impl Walk {
    pub(super) fn redirect(&mut self, redirect: &IoRedirect, stdin: &mut Feed, writes: &mut Vec<Write>) {
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
    pub(in crate::builtin::destructive) fn content(&self, path: &str) -> Text {
        if path == "/dev/null" {
            return Text::Known(String::new());
        }
        self.files.get(&target::join(path, self.cwd())).cloned().unwrap_or(Text::Local)
    }

    /// Notes what the line writes into a file.
    pub(in crate::builtin::destructive) fn keep(&mut self, path: &str, text: Text) {
        if self.files.len() < 64 {
            self.files.insert(target::join(path, self.cwd()), text);
        }
    }

    /// Judges the files that output goes into.
    pub(super) fn written(&mut self, writes: &[Write], text: &Text, filler: bool) {
        for write in writes {
            if !self.budget.spend(4 * (WORD + self.cwd().len() + write.path.len())) {
                return;
            }
            self.touch(&write.path);
            let cwd = self.cwd().to_owned();
            self.note(files::write(&write.path, &cwd, write.append, filler));
            self.keep(&write.path, text.clone());
        }
    }

    /// `> file`, `: > file`, `cat /dev/null > file`: nothing goes in, all that was there is gone.
    pub(super) fn empties(&mut self, head: &[String], bare: bool, writes: &[Write], out: &Text) {
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
}
