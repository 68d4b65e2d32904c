//! The two programs of an installation: `hookgate`, and `hookgate-hook` beside it, which coding agents start.

use std::io;
use std::path::PathBuf;

/// The program with all commands, if it stands beside this one or is this one.
///
/// # Errors
/// The system does not tell where this process's program is.
pub(crate) fn whole_beside() -> io::Result<Option<PathBuf>> {
    beside("hookgate")
}

/// The program that answers coding agents: the small one where it is installed, else this one, which can do the same.
///
/// # Errors
/// As [`whole_beside`].
pub(crate) fn for_agents() -> io::Result<PathBuf> {
    Ok(beside("hookgate-hook")?.unwrap_or(std::env::current_exe()?))
}

/// A program in the folder of this one.
fn beside(name: &str) -> io::Result<Option<PathBuf>> {
    let path = std::env::current_exe()?.with_file_name(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    Ok(path.is_file().then_some(path))
}
