//! `cargo xtask ci`: everything that must hold before a change lands.

use std::io::{self, Write};
use std::process::Command;

/// One check: what it is called, and what it runs.
struct Check {
    name: &'static str,
    /// Left out, with a line that says so, if this cargo subcommand is missing.
    needs: Option<&'static str>,
    args: &'static [&'static str],
}

const CHECKS: &[Check] = &[
    Check { name: "format", needs: None, args: &["fmt", "--all", "--check"] },
    Check {
        name: "lints",
        needs: None,
        args: &["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"],
    },
    Check {
        name: "licences and doubles",
        needs: Some("deny"),
        args: &["deny", "check", "--hide-inclusion-graph", "licenses", "bans", "sources"],
    },
    Check { name: "docs", needs: None, args: &["doc", "--workspace", "--no-deps", "--locked"] },
    Check { name: "examples in the docs", needs: None, args: &["test", "--workspace", "--doc", "--locked"] },
];

/// A check of this crate: `false` is a failure that it told.
type OwnCheck = fn(&mut dyn Write) -> io::Result<bool>;

const OWN: [(&str, OwnCheck); 2] = [("book", crate::book::run), ("packages", crate::package::run)];

const NEXTEST: &[&str] = &["nextest", "run", "--workspace", "--locked", "--no-fail-fast"];
const PLAIN: &[&str] = &["test", "--workspace", "--locked", "--no-fail-fast", "--lib", "--bins", "--tests"];

/// Runs all checks and names those that failed.
pub fn run(out: &mut dyn Write) -> io::Result<Vec<&'static str>> {
    let mut failed = Vec::new();
    for check in CHECKS {
        writeln!(out, "\n== {}: cargo {}", check.name, check.args.join(" "))?;
        // what cargo prints follows its headline, also in a file
        out.flush()?;
        if let Some(tool) = check.needs
            && !has(tool)
        {
            writeln!(out, "skipped: cargo {tool} is not installed")?;
            continue;
        }
        if !cargo(check.args)? {
            failed.push(check.name);
        }
    }
    for (name, check) in OWN {
        writeln!(out, "\n== {name}")?;
        out.flush()?;
        if !check(out)? {
            failed.push(name);
        }
    }
    // last, so that its sum closes the output
    let tests = if has("nextest") { NEXTEST } else { PLAIN };
    writeln!(out, "\n== tests: cargo {}", tests.join(" "))?;
    out.flush()?;
    if !cargo(tests)? {
        failed.push("tests");
    }
    Ok(failed)
}

fn cargo(args: &[&str]) -> io::Result<bool> {
    let mut command = Command::new(cargo_program());
    Ok(command.args(args).env("RUSTDOCFLAGS", "-D warnings").status()?.success())
}

fn has(tool: &str) -> bool {
    Command::new(cargo_program())
        .args([tool, "--version"])
        .output()
        .is_ok_and(|output| output.status.success())
}

/// The cargo that started us.
pub(crate) fn cargo_program() -> std::ffi::OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}
