//! `hookgate schema`: the JSON Schema of hook files, for editors (`"$schema"` in a hook file).

use crate::exit::Exit;
use crate::failure::Failure;
use hookgate_core::define::schema;
use std::io::{self, Write};

pub(super) fn run() -> Result<Exit, Failure> {
    let mut text = serde_json::to_string_pretty(&schema::hook_file())
        .map_err(|error| Failure::new(format!("the schema cannot be written: {error}")))?;
    text.push('\n');
    io::stdout().lock().write_all(text.as_bytes())?;
    Ok(Exit::Done)
}
