//! How hooks are written: the texts of their files, for places and for what a hook no longer shows.

use hookgate_core::define::{Node, NodeValue, Place, Places};
use hookgate_core::hook::Hook;
use std::collections::HashMap;

/// The texts of hook files. A file that is not there, or that is no JSON any more, has no places.
#[derive(Debug, Default)]
pub struct Written {
    sheets: HashMap<String, Sheet>,
}

#[derive(Debug)]
struct Sheet {
    text: String,
    root: Node,
}

impl Written {
    /// Those of these files; `read` gives the text of one.
    pub fn of<'f>(
        files: impl IntoIterator<Item = &'f str>,
        mut read: impl FnMut(&str) -> Option<String>,
    ) -> Written {
        let mut sheets = HashMap::new();
        for file in files {
            if sheets.contains_key(file) {
                continue;
            }
            let Some(text) = read(file) else { continue };
            let text = text.strip_prefix('\u{feff}').map_or_else(|| text.clone(), str::to_owned);
            if let Ok(root) = Node::parse(file, &text) {
                sheets.insert(file.to_owned(), Sheet { text, root });
            }
        }
        Written { sheets }
    }

    /// The place of a field of the definition at `index`, or of what holds it.
    pub fn place(&self, file: &str, index: usize, field: &str) -> Option<Place> {
        Some(self.places(file)?.of(self.offset(file, index, field)?))
    }

    /// The same as an offset for [`places`](Written::places): where many are asked for, the lines are counted once.
    pub(super) fn offset(&self, file: &str, index: usize, field: &str) -> Option<usize> {
        Some(self.sheets.get(file)?.definition(index)?.nearest_at(field).at)
    }

    /// The places of a file.
    pub(super) fn places(&self, file: &str) -> Option<Places<'_>> {
        self.sheets.get(file).map(|sheet| Places::new(&sheet.text))
    }

    /// A field of a hook's definition, if it is written.
    pub(super) fn field(&self, hook: &Hook, name: &str) -> Option<&Node> {
        match &self.sheets.get(&hook.file)?.definition(hook.index)?.value {
            NodeValue::Object(entries) => {
                entries.iter().find(|entry| entry.key == name).map(|entry| &entry.node)
            }
            _ => None,
        }
    }
}

impl Sheet {
    fn definition(&self, index: usize) -> Option<&Node> {
        match &self.root.value {
            NodeValue::List(items) => items.get(index),
            _ => (index == 0).then_some(&self.root),
        }
    }
}
