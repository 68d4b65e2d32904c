//! The words of a command: options, and what names things.

use super::super::call::UNKNOWN;
use super::Seen;

/// What variables stand for, in the shape that the other tables know.
const KNOWN: &[(&str, &str)] = &[
    ("$env:temp", "/tmp/own"),
    ("$env:tmp", "/tmp/own"),
    ("%temp%", "/tmp/own"),
    ("%tmp%", "/tmp/own"),
    ("$env:userprofile", "~"),
    ("%userprofile%", "~"),
    ("$home", "~"),
    ("$env:homepath", "~"),
    ("%homepath%", "~"),
    ("$env:home", "~"),
    ("$env:systemroot", "/windows"),
    ("%systemroot%", "/windows"),
    ("$env:windir", "/windows"),
    ("%windir%", "/windows"),
    ("$env:systemdrive", "/"),
    ("%systemdrive%", "/"),
    ("$env:programfiles", "/program files"),
    ("%programfiles%", "/program files"),
    ("$env:appdata", "~/appdata"),
    ("%appdata%", "~/appdata"),
    ("$env:localappdata", "~/appdata"),
    ("%localappdata%", "~/appdata"),
    ("$pwd", "."),
    ("$_", "*"),
    ("$psitem", "*"),
    ("%cd%", "."),
    ("$psscriptroot", "."),
    ("%~dp0", "./"),
    ("@path", "*"),
    ("@file", "*"),
];

impl Seen<'_> {
    pub(super) fn has(&self, names: &[&str]) -> bool {
        self.words.iter().any(|word| names.iter().any(|name| word.eq_ignore_ascii_case(name)))
    }

    /// A PowerShell option, whole or cut short (`-Rec`).
    pub(super) fn flag(&self, name: &str, least: usize) -> bool {
        self.words.iter().any(|word| {
            let word = word.to_ascii_lowercase();
            let word = word.split(':').next().unwrap_or_default();
            word.len() >= least && name.starts_with(word)
        })
    }

    /// The words that name things, as paths with `/`.
    pub(super) fn targets(&self) -> Vec<String> {
        let valued = [
            "-filter",
            "-include",
            "-exclude",
            "-value",
            "-encoding",
            "-erroraction",
            "-ea",
            "-depth",
            "-credential",
            "-stream",
            "-newername",
            "-destination",
        ];
        let mut found = Vec::new();
        let mut words = self.words.iter();
        while let Some(word) = words.next() {
            let lower = word.to_ascii_lowercase();
            if valued.contains(&lower.as_str()) {
                words.next();
            } else if !is_option(word)
                && !matches!(lower.as_str(), ">" | ">>" | "2>" | "nul" | "2>nul" | ">nul" | "$null")
            {
                found.extend(word.split(',').filter(|part| !part.is_empty()).map(path));
            }
        }
        found
    }
}

fn is_option(word: &str) -> bool {
    let slash =
        word.starts_with('/') && word.len() <= 3 && word.chars().skip(1).all(|c| c.is_ascii_alphabetic());
    (word.starts_with('-') && word.len() > 1)
        || slash
        || (word.starts_with('/') && word.contains(':') && word.len() < 12)
}

/// A Windows path in the shape that the other tables know.
pub(super) fn path(word: &str) -> String {
    let lower = word.to_ascii_lowercase().replace('\\', "/");
    let word = word.replace('\\', "/");
    for (name, value) in KNOWN {
        if let Some(rest) = lower.strip_prefix(name) {
            let tail = word.get(word.len() - rest.len()..).unwrap_or_default();
            return if tail.starts_with('.') && *value == "*" {
                (*value).to_owned()
            } else {
                format!("{value}{tail}")
            };
        }
    }
    if word.starts_with(['$', '%', '@']) {
        let tail = word.find('/').and_then(|at| word.get(at..)).unwrap_or_default();
        return format!("{UNKNOWN}{tail}");
    }
    without_drive(&word).unwrap_or(word)
}

/// `C:/x` as `/x`; what is a user's, or temporary, as other systems call it.
fn without_drive(word: &str) -> Option<String> {
    let mut chars = word.chars();
    let (Some(drive), Some(':')) = (chars.next(), chars.next()) else { return None };
    if !drive.is_ascii_alphabetic() {
        return None;
    }
    let rest = chars.as_str();
    let lower = rest.to_ascii_lowercase();
    Some(if lower.starts_with("/users") {
        format!("/Users{}", rest.get(6..).unwrap_or_default())
    } else if lower.starts_with("/temp/") || lower.starts_with("/windows/temp/") {
        format!("/tmp{}", rest.rfind('/').and_then(|at| rest.get(at..)).unwrap_or_default())
    } else if rest.starts_with('/') {
        rest.to_owned()
    } else {
        format!("/{rest}")
    })
}
