//! PowerShell and cmd lines: cut into commands of words, and judged by tables. No tree: what both shells share is that a
//! command begins a line, or follows `;`, `|`, `&` or an opening bracket.

mod cut;
mod files;
mod inner;
mod system;
mod words;

use super::budget::{Budget, PARSED, STEP, WORD};
use super::call::{Danger, danger};
use cut::{cut, unquoted};

/// How deep lines inside lines are opened.
const DEEPEST: u32 = 6;

/// Judges a line.
pub(super) fn judge(text: &str, budget: &Budget) -> Option<Danger> {
    judge_at(text, 0, budget)
}

fn judge_at(text: &str, depth: u32, budget: &Budget) -> Option<Danger> {
    if depth > DEEPEST {
        return danger("unknown-code", "lines inside lines, too deep to be judged");
    }
    if !budget.spend(text.len() * PARSED / 4) {
        return None;
    }
    let _level = budget.enter()?;
    let lower = text.to_ascii_lowercase();
    let deletes = [
        ("]::delete", "deletes files"),
        ("]::formatvolume", "formats a volume"),
        (".delete()", "deletes what flows in"),
    ];
    let mut feed: Option<Command> = None;
    let mut folder = ".".to_owned();
    for command in cut(text, depth) {
        let Some(name) = command.words.first().cloned() else { continue };
        let from = feed.take().filter(|_| command.piped);
        let seen = Seen {
            name: &name,
            words: command.words.get(1..).unwrap_or_default(),
            from: from.as_ref(),
            folder: &folder,
            depth,
            budget,
        };
        let bytes: usize = seen.words.iter().map(|word| 2 * word.len() + WORD).sum();
        if !budget.spend(STEP / 2 + bytes + folder.len()) {
            return None;
        }
        if let Some(found) = seen.judge() {
            return Some(found);
        }
        if matches!(name.as_str(), "cd" | "set-location" | "sl" | "chdir" | "pushd" | "push-location")
            && let Some(to) = seen.targets().first()
        {
            folder = super::target::join(to, &folder);
        }
        feed = Some(Command {
            words: if from.is_some() && !is_lister(&name) {
                from.map(|from| from.words).unwrap_or_default()
            } else {
                command.words
            },
            piped: false,
        });
    }
    let outside: String = unquoted(&lower);
    let hidden = ["irm ", "iwr ", "invoke-webrequest", "invoke-restmethod", "downloadstring", "frombase64"];
    if outside.contains("[scriptblock]::create") && hidden.iter().any(|word| outside.contains(word)) {
        return danger("unknown-code", "runs text that is not known");
    }
    deletes.iter().find(|(call, _)| outside.contains(call)).and_then(|(_, what)| danger("delete", *what))
}

struct Command {
    /// The first word is in lower case.
    words: Vec<String>,
    /// Something flows in.
    piped: bool,
}

/// A command in its place.
struct Seen<'a> {
    name: &'a str,
    words: &'a [String],
    from: Option<&'a Command>,
    folder: &'a str,
    depth: u32,
    budget: &'a Budget,
}

fn is_lister(name: &str) -> bool {
    matches!(
        name,
        "get-childitem"
            | "gci"
            | "dir"
            | "ls"
            | "get-item"
            | "gi"
            | "get-content"
            | "gc"
            | "type"
            | "cat"
            | "invoke-webrequest"
            | "iwr"
            | "irm"
            | "invoke-restmethod"
            | "curl"
            | "wget"
            | "echo"
            | "write-output"
            | "get-process"
            | "gps"
            | "get-service"
            | "get-vm"
            | "get-disk"
            | "get-volume"
            | "get-partition"
    )
}

impl Seen<'_> {
    fn judge(&self) -> Option<Danger> {
        if self.flag("-whatif", 3)
            && !self.words.iter().any(|word| word.eq_ignore_ascii_case("-whatif:$false"))
            || self.has(&["/?", "-?", "--help"])
        {
            return None;
        }
        self.inner()
            .or_else(|| self.files())
            .or_else(|| self.redirects())
            .or_else(|| self.disks())
            .or_else(|| self.power())
            .or_else(|| self.guards())
            .or_else(|| self.cmdlets())
            .or_else(|| self.shared())
    }
}
