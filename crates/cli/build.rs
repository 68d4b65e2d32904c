//! How `hookgate-hook` is linked.
//!
//! A coding agent starts it anew for each event, so what the system does to start it counts:
//!
//! - At a fixed address: else the system writes tens of thousands of addresses into the program at each start, which takes
//!   longer than all that the program then does. Stack and heap stay where chance puts them.
//! - As one piece, with the C library in it, where a system with glibc has that library in this form: finding, mapping
//!   and tying three libraries together takes as long as the rest of a call. Such a program cannot load what a system may
//!   need to find a name's address, so hooks that talk to the network are asked by `hookgate` (`agent/handover.rs`, where
//!   this is known as `one_piece`).
//!
//! `hookgate` itself, which lives long and talks to networks, is linked as usual.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The libraries that a Rust program names to the linker, and where each one's code is.
const LIBRARIES: [(&str, &str); 7] = [
    ("libgcc_s.so", "libgcc_eh.a"),
    ("libc.so", "libc.a"),
    ("libm.so", "libm.a"),
    ("libutil.so", "libutil.a"),
    ("librt.so", "librt.a"),
    ("libpthread.so", "libpthread.a"),
    ("libdl.so", "libdl.a"),
];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=RUSTC_LINKER");
    println!("cargo::rustc-check-cfg=cfg(one_piece)");
    let is = |name: &str, want: &str| std::env::var(name).is_ok_and(|value| value == want);
    if !is("CARGO_CFG_TARGET_OS", "linux") || !is("CARGO_CFG_TARGET_ENV", "gnu") {
        return;
    }
    tell_linker("-no-pie");
    if let Some(folder) = one_piece() {
        println!("cargo::rustc-cfg=one_piece");
        tell_linker("-static");
        tell_linker(&format!("-L{}", folder.display()));
    }
}

fn tell_linker(what: &str) {
    println!("cargo::rustc-link-arg-bin=hookgate-hook={what}");
}

/// A folder in which the linker finds each library as a part of the program. None: the system does not have them so.
fn one_piece() -> Option<PathBuf> {
    // another system's libraries are not ours to look for
    if std::env::var_os("HOST") != std::env::var_os("TARGET") {
        return None;
    }
    let folder = PathBuf::from(std::env::var_os("OUT_DIR")?).join("one-piece");
    std::fs::create_dir_all(&folder).ok()?;
    for (name, code) in LIBRARIES {
        let path = path_of(code)?;
        println!("cargo::rerun-if-changed={}", path.display());
        std::fs::write(folder.join(name), format!("INPUT(\"{}\")\n", path.display())).ok()?;
    }
    Some(folder)
}

/// Where the linker's own compiler keeps a library.
fn path_of(library: &str) -> Option<PathBuf> {
    let compiler = std::env::var_os("RUSTC_LINKER").unwrap_or_else(|| "cc".into());
    let told = Command::new(compiler).arg(format!("-print-file-name={library}")).output().ok()?;
    let path = Path::new(std::str::from_utf8(&told.stdout).ok()?.trim()).to_owned();
    // what it does not have it gives back as it was asked
    (path.is_absolute() && path.is_file()).then_some(path)
}
