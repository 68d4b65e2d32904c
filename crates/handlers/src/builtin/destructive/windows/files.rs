//! Files: deleted, emptied, overwritten, taken.

use super::super::call::{Danger, UNKNOWN, danger};
use super::super::target::{Place, is_artefact, place};
use super::Seen;
use super::words::path;

impl Seen<'_> {
    pub(super) fn files(&self) -> Option<Danger> {
        match self.name {
            "remove-item" | "ri" | "rm" | "rmdir" | "rd" | "del" | "erase" => self.remove(),
            "clear-content" | "clc" | "clear-item" | "cli" => self
                .targets()
                .iter()
                .find_map(|path| super::super::files::emptied(path, self.folder))
                .or_else(|| danger("overwrite", "empties files").filter(|_| self.from.is_some())),
            "set-content" | "sc" | "out-file" | "new-item" | "ni" => {
                let empty = self.words.windows(2).any(|pair| matches!(pair, [key, value] if key.eq_ignore_ascii_case("-value") && (value.is_empty() || value == "$null")));
                let forced =
                    matches!(self.name, "new-item" | "ni") && self.flag("-force", 3) && self.has(&["file"]);
                self.targets().iter().find_map(|path| {
                    if empty || forced {
                        super::super::files::emptied(path, self.folder)
                    } else {
                        written(path, self.folder)
                    }
                })
            }
            "move-item" | "mi" | "move" | "ren" | "rename-item" => {
                self.targets().iter().take(1).find_map(|path| {
                    danger("delete", format!("moves `{path}` away")).filter(|_| {
                        matches!(place(path, self.folder), Place::System | Place::Home | Place::Guard)
                            && path.matches('/').count() <= 2
                    })
                })
            }
            "copy" | "copy-item" | "cp" | "cpi" | "xcopy" => {
                let nothing = self.words.first().is_some_and(|word| {
                    matches!(word.to_ascii_lowercase().as_str(), "nul" | "$null" | "/dev/null")
                });
                self.targets().last().and_then(|path| {
                    if nothing {
                        super::super::files::emptied(path, self.folder)
                    } else {
                        written(path, self.folder)
                    }
                })
            }
            "robocopy" => danger("delete", "deletes in the aim what the source lacks")
                .filter(|_| self.has(&["/mir", "/purge", "/move", "/mov"]) && !self.has(&["/l"])),
            "takeown" | "icacls" | "cacls" | "set-acl" => {
                let wide =
                    self.targets().iter().any(|path| matches!(place(path, "."), Place::System | Place::Home));
                danger("permissions", "changes who may use system files").filter(|_| {
                    wide && (self.has(&["/r", "/t", "/reset", "/grant", "/deny", "/remove", "/setowner"])
                        || self.name == "set-acl")
                })
            }
            "attrib" => None,
            _ => None,
        }
    }

    pub(super) fn remove(&self) -> Option<Danger> {
        let slashes = matches!(self.name, "rd" | "rmdir" | "del" | "erase");
        let all = self.flag("-recurse", 2)
            || self.words.iter().any(|word| slashes && word.to_ascii_lowercase().contains("/s"))
            || self.has(&["-rf", "-fr"]);
        let targets = self.targets();
        let fed = targets.is_empty() && self.from.is_some();
        let bad = |path: &str| {
            let sort = if path.to_ascii_lowercase().starts_with("hk") && path.contains(':') {
                Place::System
            } else {
                place(path, self.folder)
            };
            match sort {
                Place::Sink | Place::Temp | Place::Artefact => false,
                Place::Named | Place::InHome => all && !path.rsplit('/').next().unwrap_or(path).contains('.'),
                Place::Unknown => all || path.contains('*'),
                _ => true,
            }
        };
        if fed {
            let narrow = self
                .from
                .is_some_and(|from| from.words.iter().any(|word| is_artefact(word.trim_start_matches('*'))));
            return danger("delete", "deletes all that flows in").filter(|_| !narrow);
        }
        let path = targets.iter().find(|path| bad(path))?;
        danger("delete", format!("deletes `{}`", path.replace(UNKNOWN, "…")))
    }

    /// `> file`, `type nul > file`.
    pub(super) fn redirects(&self) -> Option<Danger> {
        let at = self.words.iter().position(|word| word == ">" || word == "1>");
        let bare = self.name == ">";
        let path = if bare { self.words.first() } else { at.and_then(|at| self.words.get(at + 1)) }
            .map(|word| path(word))?;
        let nothing = bare
            || (matches!(self.name, "type" | "copy" | "cat" | "$null" | "break" | "cd." | "rem")
                && (self.has(&["nul"])
                    || self.name == "$null"
                    || self.name == "break"
                    || self.name == "cd."));
        if nothing { super::super::files::emptied(&path, self.folder) } else { written(&path, self.folder) }
    }
}

fn written(path: &str, folder: &str) -> Option<Danger> {
    let lower = path.to_ascii_lowercase();
    if lower.starts_with("//./physicaldrive") || lower.starts_with("//./c:") {
        return danger("disk", "writes over a disk");
    }
    let system = lower.starts_with("/windows/") || lower.ends_with("/drivers/etc/hosts");
    super::super::files::write(path, folder, false, false)
        .or_else(|| danger("overwrite", format!("overwrites the system file `{path}`")).filter(|_| system))
}
