//! The adapters against what agents really send and take.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "also in the helpers, a test may stop"
)]
#![allow(clippy::disallowed_methods, reason = "the tests read the corpus; the adapters do not")]

mod captured;
mod pages;
mod payloads;
mod rules;

use serde_json::Value;
use std::path::PathBuf;

fn corpus(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../corpus/agents").join(path)
}

fn json(path: &str) -> Value {
    let path = corpus(path);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
