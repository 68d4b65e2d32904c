//! From text to hooks. Only here is a [`Hook`] made from text.
//!
//! [`read`] takes one file's text: an object is one definition, a list is several. A definition with `target`
//! is a JSON hook, one with `event` and `handler` a lifecycle hook. Every fault is told, with its place.

mod document;
mod fields;
pub mod format;
mod instead;
mod json_hook;
mod lifecycle;
mod node;
mod problem;
pub mod schema;

pub use document::read_document;
pub use fields::{Fields, Report, nearest};
pub use instead::{glob_meant, quoted};
pub use node::{Entry, Node, NodeValue};
pub use problem::{HookRef, Place, Places, Problem};

use crate::action::ActionKinds;
use crate::hook::{Hook, Source};
use crate::version::Version;
use std::sync::Arc;

/// What one file gave: the good hooks in order, and every fault.
#[derive(Debug, Default)]
pub struct Definitions {
    /// Hooks that can be used.
    pub hooks: Vec<Hook>,
    /// What is wrong; a definition named here is not among the hooks.
    pub problems: Vec<Problem>,
    /// What is allowed but probably not meant.
    pub warnings: Vec<Problem>,
}

/// Reads the text of one hook file.
///
/// `file` is the name for error texts; `source` is the tier that the caller gives to the place the text came
/// from. A byte order mark in front is fine.
pub fn read(file: &str, text: &str, source: Source, kinds: &ActionKinds) -> Definitions {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let root = match Node::parse(file, text) {
        Ok(root) => root,
        Err(problems) => return Definitions { problems, ..Definitions::default() },
    };
    let (places, whole) = (Places::new(text), Arc::<str>::from(text));
    let mut definitions = Definitions::default();
    let items: &[Node] = match &root.value {
        NodeValue::List(items) => items,
        NodeValue::Object(_) => std::slice::from_ref(&root),
        _ => {
            let message =
                format!("expected a hook (an object) or a list of hooks, found {}", root.describe());
            definitions
                .problems
                .push(Problem { place: Some(places.of(root.at)), ..Problem::of_file(file, message) });
            &[]
        }
    };
    for (index, node) in items.iter().enumerate() {
        let version = Version::of_text(whole.clone(), node.at);
        let written = Written { file, index, source, version };
        read_one(node, &written, &places, kinds, &mut definitions);
    }
    definitions
}

/// Where a definition stands.
struct Written<'a> {
    file: &'a str,
    index: usize,
    source: Source,
    version: Version,
}

fn read_one(
    node: &Node,
    written: &Written<'_>,
    places: &Places<'_>,
    kinds: &ActionKinds,
    into: &mut Definitions,
) {
    let hook_ref = HookRef { index: written.index, label: name_of(node) };
    let report = Report::new(written.file, places, hook_ref.clone());
    let warnings = Report::new(written.file, places, hook_ref);
    let made = Fields::of(&report, node, String::new()).and_then(|fields| {
        if !format::is_known(&fields) {
            // what a later format means by the rest is not ours to say
            return None;
        }
        if fields.has("target") || !(fields.has("event") && fields.has("handler")) {
            json_hook::read(fields, written, kinds, &warnings)
        } else {
            lifecycle::read(fields, written, &warnings)
        }
    });
    let problems = report.into_problems();
    into.warnings.extend(warnings.into_problems());
    match made {
        Some(hook) if problems.is_empty() => into.hooks.extend(hook),
        _ => into.problems.extend(problems),
    }
}

/// The id or label, for error texts, as far as it can be read.
fn name_of(node: &Node) -> Option<String> {
    let NodeValue::Object(entries) = &node.value else { return None };
    entries.iter().filter(|entry| entry.key == "id" || entry.key == "label").find_map(|entry| {
        match &entry.node.value {
            NodeValue::Text(text) if !text.is_empty() => Some(node::shorten(text)),
            _ => None,
        }
    })
}

/// The name that people see where a definition has none of its own.
fn place_name(file: &str, index: usize) -> String {
    let short = file.rsplit(['/', '\\']).next().unwrap_or(file);
    format!("{short}#{}", index.saturating_add(1))
}
