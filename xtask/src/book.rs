//! `cargo xtask book`: builds the site from `docs/` with mdBook, without warnings, and follows its links.

use crate::links;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::Command;

/// Set by CI, where a check that is skipped would go unseen.
const REQUIRED: &str = "HOOKGATE_TEST_BOOK";

/// Builds and checks. `false`: something is wrong, and was told.
///
/// # Errors
/// `out` or a page cannot be written or read.
pub fn run(out: &mut dyn Write) -> io::Result<bool> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize()?;
    if Command::new("mdbook").arg("--version").output().is_err() {
        let required = std::env::var_os(REQUIRED).is_some();
        let word = if required { "failed" } else { "skipped" };
        writeln!(out, "{word}: mdbook is not installed")?;
        return Ok(!required);
    }
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let book = target.join("book");
    let build = Command::new("mdbook").arg("build").arg("--dest-dir").arg(&book).arg(&root).output()?;
    let said = String::from_utf8_lossy(&build.stderr);
    let complaints: Vec<&str> = said.lines().filter(|line| is_complaint(line)).collect();
    for line in &complaints {
        writeln!(out, "{line}")?;
    }
    if !build.status.success() {
        writeln!(out, "failed: mdbook ended with {}", build.status)?;
        return Ok(false);
    }
    let broken = links::of_the_book(&book)?;
    for link in &broken {
        writeln!(out, "leads nowhere: {link}")?;
    }
    writeln!(out, "{}: {} warnings, {} broken links", book.display(), complaints.len(), broken.len())?;
    Ok(complaints.is_empty() && broken.is_empty())
}

/// Whether a line of mdBook's log is more than news.
fn is_complaint(line: &str) -> bool {
    let line = line.trim_start();
    !line.is_empty() && !line.starts_with("INFO")
}
