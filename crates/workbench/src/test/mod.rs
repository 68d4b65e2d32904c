//! Tests beside hooks: `NAME.test.json`, whose format `docs/tests.md` describes.
//!
//! [`mod@file`] reads them, [`run`] plays them and gives a [`run::Report`], [`expect`] compares it with what was [`found`], [`coverage`] tells what no test
//! touched, [`update`] writes what happened into the files, [`junit`] writes for CI.

pub mod coverage;
pub mod expect;
pub mod file;
pub mod found;
pub mod junit;
pub mod run;
pub mod schema;
pub mod update;
mod wanted;
