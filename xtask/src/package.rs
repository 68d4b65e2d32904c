//! `cargo xtask package`: what would be published is whole. Each crate says who made it and under which licence, carries
//! its licence texts, and is built from its package alone, against the packages of the others.

use serde_json::Value;
use std::io::{self, Write};
use std::process::Command;

/// Files that each package holds.
const FILES: [&str; 4] = ["README.md", "LICENSE-MIT", "LICENSE-APACHE", "Cargo.toml"];

/// What a registry asks for, or shows.
const MEMBERS: [&str; 7] =
    ["description", "license", "repository", "readme", "rust_version", "keywords", "categories"];

/// Checks all packages. `false`: something is wrong, and was told.
///
/// # Errors
/// `out` cannot be written, or cargo cannot be started.
pub fn run(out: &mut dyn Write) -> io::Result<bool> {
    let names = published(out)?;
    let mut whole = !names.is_empty();
    for name in &names {
        let listed = cargo(&["package", "--list", "--allow-dirty", "--package", name])?;
        for file in FILES {
            if !listed.lines().any(|line| line == file) {
                writeln!(out, "{name}: its package has no {file}")?;
                whole = false;
            }
        }
    }
    out.flush()?;
    let mut build = Command::new(crate::ci::cargo_program());
    build.args(["package", "--workspace", "--exclude", "xtask", "--locked", "--allow-dirty"]);
    // as the workspace's own profile says, so that what is compiled already counts
    build.env("CARGO_PROFILE_DEV_DEBUG", "line-tables-only");
    Ok(build.status()?.success() && whole)
}

/// The names of the crates that are published; what one of them fails to say is told, and takes it off the list.
fn published(out: &mut dyn Write) -> io::Result<Vec<String>> {
    let text = cargo(&["metadata", "--no-deps", "--format-version", "1"])?;
    let metadata: Value = serde_json::from_str(&text)?;
    let mut names = Vec::new();
    let mut silent = false;
    for package in metadata.get("packages").and_then(Value::as_array).into_iter().flatten() {
        let name = package.get("name").and_then(Value::as_str).unwrap_or_default();
        // `publish = false` is an empty list of registries
        if package.get("publish").and_then(Value::as_array).is_some_and(Vec::is_empty) {
            continue;
        }
        for member in MEMBERS {
            let said = package.get(member);
            let empty =
                |value: &Value| value.is_null() || value == "" || value.as_array().is_some_and(Vec::is_empty);
            if said.is_none_or(empty) {
                writeln!(out, "{name}: its Cargo.toml says no {member}")?;
                silent = true;
            }
        }
        names.push(name.to_owned());
    }
    if silent {
        names.clear();
    }
    Ok(names)
}

fn cargo(args: &[&str]) -> io::Result<String> {
    let output = Command::new(crate::ci::cargo_program()).args(args).output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(io::Error::other(format!("cargo {}: {said}", args.join(" "))));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
