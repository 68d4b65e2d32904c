//! `hookgate schema`: the JSON Schemas of hook files (`"$schema"` in one) and of `hookgate.toml`, for editors.

use crate::args::SchemaOf;
use crate::config::ConfigFile;
use crate::exit::Exit;
use crate::failure::Failure;
use hookgate_core::define::schema;
use std::io::{self, Write};

pub(super) fn run(of: SchemaOf) -> Result<Exit, Failure> {
    let schema = match of {
        SchemaOf::Hooks => schema::hook_file(),
        SchemaOf::Config => ConfigFile::schema(),
    };
    let mut text = serde_json::to_string_pretty(&schema)
        .map_err(|error| Failure::new(format!("the schema cannot be written: {error}")))?;
    text.push('\n');
    io::stdout().lock().write_all(text.as_bytes())?;
    Ok(Exit::Done)
}
