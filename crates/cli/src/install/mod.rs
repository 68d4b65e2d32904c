//! Wiring coding agents: their own settings files get a line that calls `hookgate hook`, and lose it again.
//!
//! [`place`] finds the files, [`line`] writes what stands in them, [`json`] and [`toml`] edit settings in place,
//! [`plan`] puts together what an installation changes, [`files`] changes it, [`diff`] shows it.
//!
//! A file that cannot be read as what it should be is left alone. What it was before stands beside it, as
//! `NAME.before-hookgate`, until the installation is taken away; then it is what it was, byte for byte, if nobody else
//! changed it meanwhile.

pub(crate) mod diff;
pub(crate) mod files;
pub(crate) mod line;
pub(crate) mod place;
pub(crate) mod plan;

mod json;
mod toml;
