//! `hookgate schema`: the JSON Schema of hook files, for editors (`"$schema"` in a hook file), or of test files.

use crate::exit::Exit;
use crate::failure::Failure;
use hookgate_core::define::schema;
use hookgate_workbench::test::schema as of_tests;
use std::io::{self, Write};

pub(super) fn run(tests: bool) -> Result<Exit, Failure> {
    let schema = if tests { of_tests::test_file() } else { schema::hook_file().to_value() };
    let mut text = serde_json::to_string_pretty(&schema)
        .map_err(|error| Failure::new(format!("the schema cannot be written: {error}")))?;
    text.push('\n');
    io::stdout().lock().write_all(text.as_bytes())?;
    Ok(Exit::Done)
}
