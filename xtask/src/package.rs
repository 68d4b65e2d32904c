//! `cargo xtask package`: what would be published is whole. Each crate says who made it and under which licence, carries
//! its licence texts, and the program is installed from the packages alone.

use serde_json::Value;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
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
    let packages = published(out)?;
    let mut whole = !packages.is_empty();
    for Package { name, .. } in &packages {
        let listed = cargo(&["package", "--list", "--allow-dirty", "--package", name])?;
        for file in FILES {
            if !listed.lines().any(|line| line == file) {
                writeln!(out, "{name}: its package has no {file}")?;
                whole = false;
            }
        }
    }
    out.flush()?;
    Ok(installs(&packages, out)? && whole)
}

/// Whether the programs are installed from the packages alone, and start.
///
/// Cargo's own verification builds each package with all its dependencies anew: nine builds of minutes. Here the unpacked
/// packages are a workspace beside ours, with its lock file and target directory, so only they are compiled.
fn installs(packages: &[Package], out: &mut dyn Write) -> io::Result<bool> {
    cargo(&["package", "--workspace", "--exclude", "xtask", "--no-verify", "--locked", "--allow-dirty"])?;
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize()?;
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |dir| root.join(dir));
    let unpacked = target.join("unpacked");
    if unpacked.exists() {
        std::fs::remove_dir_all(&unpacked)?;
    }
    std::fs::create_dir_all(&unpacked)?;
    let mut manifest = "[workspace]\nresolver = \"3\"\nmembers = [\"*-*\"]\n\n[patch.crates-io]\n".to_owned();
    for Package { name, version } in packages {
        let archive = target.join("package").join(format!("{name}-{version}.crate"));
        // archives tell no time of their files: with it, cargo would take what it built from an earlier one for this
        if !Command::new("tar").arg("-xzmf").arg(archive).arg("-C").arg(&unpacked).status()?.success() {
            writeln!(out, "{name}: its package cannot be unpacked")?;
            return Ok(false);
        }
        manifest.push_str(&format!("{name} = {{ path = \"{name}-{version}\" }}\n"));
    }
    // the profile of our workspace, so that what is compiled there counts here
    manifest.push_str("\n[profile.dev]\ndebug = \"line-tables-only\"\n");
    std::fs::write(unpacked.join("Cargo.toml"), manifest)?;
    std::fs::copy(root.join("Cargo.lock"), unpacked.join("Cargo.lock"))?;
    let program = packages.iter().find(|package| package.name == "hookgate");
    let Some(Package { name, version }) = program else { return Ok(false) };
    let installed = unpacked.join("installed");
    let mut install = Command::new(crate::ci::cargo_program());
    // takes what only our chores need out of the lock file; nothing in it moves
    cargo_in(&unpacked, &["metadata", "--format-version", "1"])?;
    install.args(["install", "--quiet", "--debug", "--locked", "--no-track", "--path"]);
    install.arg(unpacked.join(format!("{name}-{version}"))).arg("--root").arg(&installed);
    install.env("CARGO_TARGET_DIR", &target);
    if !install.status()?.success() {
        writeln!(out, "{name}: it cannot be installed from its package")?;
        return Ok(false);
    }
    if !installed.join("bin").join("hookgate-hook").exists() {
        writeln!(out, "{name}: the program for coding agents is not installed from its package")?;
        return Ok(false);
    }
    let answer = Command::new(installed.join("bin").join("hookgate")).arg("--version").output()?;
    let said = String::from_utf8_lossy(&answer.stdout).trim().to_owned();
    writeln!(out, "{} packages, installed: {said}", packages.len())?;
    std::fs::remove_dir_all(&unpacked)?;
    Ok(said == format!("hookgate {version}"))
}

/// A crate that is published.
struct Package {
    name: String,
    version: String,
}

/// The crates that are published; what one of them fails to say is told, and takes it off the list.
fn published(out: &mut dyn Write) -> io::Result<Vec<Package>> {
    let text = cargo(&["metadata", "--no-deps", "--format-version", "1"])?;
    let metadata: Value = serde_json::from_str(&text)?;
    let mut packages = Vec::new();
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
        let version = package.get("version").and_then(Value::as_str).unwrap_or_default();
        packages.push(Package { name: name.to_owned(), version: version.to_owned() });
    }
    if silent {
        packages.clear();
    }
    Ok(packages)
}

fn cargo(args: &[&str]) -> io::Result<String> {
    cargo_in(&PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(".."), args)
}

fn cargo_in(folder: &Path, args: &[&str]) -> io::Result<String> {
    let output = Command::new(crate::ci::cargo_program()).args(args).current_dir(folder).output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(io::Error::other(format!("cargo {}: {said}", args.join(" "))));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
