//! `hookgate schema`: the JSON Schemas of hook files (`"$schema"` in one), of test files and of `hookgate.toml`, for editors.

use crate::config::ConfigFile;
use crate::exit::Exit;
use crate::failure::Failure;
use hookgate_core::define::schema;
use hookgate_workbench::test::schema as of_tests;
use std::io::{self, Write};

pub(super) fn run(tests: bool, configuration: bool) -> Result<Exit, Failure> {
    let schema = match (tests, configuration) {
        (true, _) => of_tests::test_file(),
        (_, true) => ConfigFile::schema().to_value(),
        _ => schema::hook_file().to_value(),
    };
    let mut text = serde_json::to_string_pretty(&schema)
        .map_err(|error| Failure::new(format!("the schema cannot be written: {error}")))?;
    text.push('\n');
    io::stdout().lock().write_all(text.as_bytes())?;
    Ok(Exit::Done)
}
