//! Programs that run a text, and those that are the same everywhere.

use super::super::call::{Danger, Text, danger};
use super::super::walk::{Feed, Walk};
use super::{Seen, judge_at};

/// Words that belong to the program that starts another one.
const STARTERS_OWN: &[&str] = &[
    "-argumentlist",
    "-args",
    "-filepath",
    "-wait",
    "-verb",
    "runas",
    "/b",
    "/wait",
    "process",
    "create",
    "-nonewwindow",
];

impl Seen<'_> {
    /// Programs that run a text.
    pub(super) fn inner(&self) -> Option<Danger> {
        let rest = |at: usize| self.words.get(at..).unwrap_or_default().join(" ");
        let after = |names: &[&str]| {
            self.words
                .iter()
                .position(|word| names.iter().any(|name| word.eq_ignore_ascii_case(name)))
                .map(|at| rest(at + 1))
        };
        let line = match self.name {
            "powershell" | "pwsh" => {
                // what is hidden on purpose is not looked into
                if self.words.iter().any(|word| hides(word)) {
                    return danger("unknown-code", "runs code that the line does not show");
                }
                if self.from.is_some() && self.words.iter().all(|word| word.starts_with('-')) {
                    return self.expression("");
                }
                after(&["-command", "-c"])
                    .or_else(|| self.words.iter().position(|word| !word.starts_with('-')).map(rest))?
            }
            "cmd" => after(&["/c", "/k", "/r"])?,
            "forfiles" => after(&["/c"])?,
            "start" | "start-process" | "saps" | "call" | "runas" | "gsudo" | "psexec" | "wmic"
                if !self.words.is_empty() =>
            {
                let words = self.words.iter().map(String::as_str);
                let own =
                    |word: &&str| word.is_empty() || STARTERS_OWN.contains(&&*word.to_ascii_lowercase());
                words.filter(|word| !own(word)).collect::<Vec<_>>().join(" ").replace(',', " ")
            }
            "invoke-expression" | "iex" => {
                let text = rest(0);
                let remote = self.from.is_some() || text.trim().is_empty() || text.contains('$');
                if remote {
                    return self.expression(&text);
                }
                text
            }
            "invoke-command" | "icm" | "foreach-object" | "%" | "foreach" | "schtasks" | "bash" | "wsl"
            | "sh" => {
                let text = if self.name == "schtasks" { after(&["/tr"])? } else { rest(0) };
                if matches!(self.name, "bash" | "wsl" | "sh") {
                    return self.shared();
                }
                text
            }
            _ => return None,
        };
        (!line.trim().is_empty()).then(|| judge_at(&line, self.depth + 1, self.budget)).flatten()
    }

    pub(super) fn expression(&self, text: &str) -> Option<Danger> {
        if let Some(from) = self.from
            && matches!(from.words.first().map(String::as_str), Some("echo" | "write-output"))
        {
            return judge_at(&from.words.get(1..).unwrap_or_default().join(" "), self.depth + 1, self.budget);
        }
        judge_at(text, self.depth + 1, self.budget)
            .or_else(|| danger("unknown-code", "runs text that is not known"))
    }

    /// Programs that are the same everywhere.
    pub(super) fn shared(&self) -> Option<Danger> {
        if matches!(
            self.name,
            "rm" | "cp"
                | "mv"
                | "kill"
                | "sc"
                | "shutdown"
                | "format"
                | "cat"
                | "echo"
                | "type"
                | "ls"
                | "curl"
                | "wget"
                | "sort"
                | "set"
                | "find"
                | "where"
                | "select"
                | "tee"
                | "history"
                | "ps"
                | "cd"
                | "rmdir"
                | "icacls"
                | "start"
                | "move"
                | "rename"
        ) {
            return None;
        }
        let argv: Vec<String> =
            [self.name.to_owned()].into_iter().chain(self.words.iter().cloned()).collect();
        let mut walk = Walk::new(self.budget);
        walk.invoke(argv, &Feed { text: Text::None, from: Vec::new() });
        walk.found
    }
}

/// An option that gives code in a form nobody can read.
fn hides(word: &str) -> bool {
    word.len() > 1 && "-encodedcommand".starts_with(&word.to_ascii_lowercase())
        || word.eq_ignore_ascii_case("-enc")
        || word.eq_ignore_ascii_case("-ec")
}
