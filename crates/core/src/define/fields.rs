//! Reads the fields of one object strictly: a fault never stops the reading, so that all are told at once,
//! and a field that nobody asked for is a fault too.

use super::node::{Entry, Node, NodeValue, shorten};
use super::problem::{HookRef, Places, Problem};
use crate::word::{Word, WordSet};
use std::cell::RefCell;

/// Collects the problems of one definition, or of a whole text that holds none.
pub struct Report<'a> {
    file: &'a str,
    places: &'a Places<'a>,
    /// None where the text holds no hooks.
    hook: Option<HookRef>,
    problems: RefCell<Vec<Problem>>,
}

impl<'a> Report<'a> {
    pub(crate) fn new(file: &'a str, places: &'a Places<'a>, hook: HookRef) -> Self {
        Report { hook: Some(hook), ..Report::of_file(file, places) }
    }

    pub(crate) fn of_file(file: &'a str, places: &'a Places<'a>) -> Self {
        Report { file, places, hook: None, problems: RefCell::default() }
    }

    /// Notes a fault at a place: `at` in bytes, the field as a path.
    pub fn add(&self, at: usize, field: &str, message: String, help: Option<String>) {
        self.note(None, at, field, message, help);
    }

    /// Notes what is allowed and probably not meant, under the lasting name of the rule that says so.
    pub(crate) fn warn(
        &self,
        rule: &'static str,
        at: usize,
        field: &str,
        message: String,
        help: Option<String>,
    ) {
        self.note(Some(rule), at, field, message, help);
    }

    fn note(
        &self,
        rule: Option<&'static str>,
        at: usize,
        field: &str,
        message: String,
        help: Option<String>,
    ) {
        self.problems.borrow_mut().push(Problem {
            file: self.file.to_owned(),
            place: Some(self.places.of(at)),
            hook: self.hook.clone(),
            field: (!field.is_empty()).then(|| field.to_owned()),
            message,
            help,
            rule,
        });
    }

    /// All faults, in the order of the text.
    pub(crate) fn into_problems(self) -> Vec<Problem> {
        let mut problems = self.problems.into_inner();
        problems.sort_by_key(|problem| problem.place);
        problems
    }
}

/// The fields of one object, to be asked for by name.
pub struct Fields<'a> {
    report: &'a Report<'a>,
    at: usize,
    path: String,
    entries: &'a [Entry],
    known: RefCell<Vec<&'a str>>,
    /// Required fields that are not there: told at the end, when it is known which fields have another meaning.
    missing: RefCell<Vec<Missing>>,
}

/// A required field that is not there.
struct Missing {
    /// Its names, any of which would do.
    names: Vec<String>,
    expected: String,
}

impl<'a> Fields<'a> {
    /// The fields of `node`, which stands at `path` (empty for the definition itself). A node that is no
    /// object is a fault.
    pub fn of(report: &'a Report<'a>, node: &'a Node, path: String) -> Option<Fields<'a>> {
        match &node.value {
            NodeValue::Object(entries) => Some(Fields {
                report,
                at: node.at,
                path,
                entries,
                known: RefCell::default(),
                missing: RefCell::default(),
            }),
            _ => {
                let message = format!("expected an object, found {}", node.describe());
                report.add(node.at, &path, message, None);
                None
            }
        }
    }

    /// The node of a field, which becomes known by being asked for.
    pub fn node(&self, name: &'a str) -> Option<&'a Node> {
        let mut known = self.known.borrow_mut();
        if !known.contains(&name) {
            known.push(name);
        }
        drop(known);
        self.entries.iter().find(|entry| entry.key == name).map(|entry| &entry.node)
    }

    /// A text.
    pub fn text(&self, name: &'a str) -> Option<&'a str> {
        match self.node(name)? {
            Node { value: NodeValue::Text(text), .. } => Some(text),
            other => self.wrong(name, other, "a text"),
        }
    }

    /// `true` or `false`.
    pub fn flag(&self, name: &'a str) -> Option<bool> {
        match self.node(name)? {
            Node { value: NodeValue::Bool(flag), .. } => Some(*flag),
            other => self.wrong(name, other, "true or false"),
        }
    }

    /// A whole number, zero or more.
    pub fn count(&self, name: &'a str) -> Option<u64> {
        let node = self.node(name)?;
        match &node.value {
            NodeValue::Number(text) => match text.parse::<u64>() {
                Ok(number) => Some(number),
                Err(_) => self.wrong(name, node, "a whole number, zero or more"),
            },
            _ => self.wrong(name, node, "a whole number, zero or more"),
        }
    }

    /// A whole number, possibly below zero.
    pub fn number(&self, name: &'a str) -> Option<i64> {
        let node = self.node(name)?;
        match &node.value {
            NodeValue::Number(text) => match text.parse::<i64>() {
                Ok(number) => Some(number),
                Err(_) => self.wrong(name, node, "a whole number"),
            },
            _ => self.wrong(name, node, "a whole number"),
        }
    }

    /// One of the words of `W`.
    pub fn word<W: Word>(&self, name: &'a str) -> Option<W> {
        let node = self.node(name)?;
        self.word_at(node, &self.field(name))
    }

    /// A list of words of `W` as a set. No field, or an empty list: `None`, which means no filter.
    pub fn words<W: Word + PartialEq>(&self, name: &'a str) -> Option<WordSet<W>> {
        let items = self.list(name)?;
        let mut set = WordSet::none();
        for (index, item) in items.iter().enumerate() {
            if let Some(word) = self.word_at(item, &format!("{}[{index}]", self.field(name))) {
                set.insert(word);
            }
        }
        (!items.is_empty()).then_some(set)
    }

    /// A list of texts; no field or an empty list gives an empty one.
    pub fn texts(&self, name: &'a str) -> Vec<String> {
        let mut texts = Vec::new();
        for (index, item) in self.list(name).unwrap_or_default().iter().enumerate() {
            match &item.value {
                NodeValue::Text(text) => texts.push(text.clone()),
                _ => {
                    let message = format!("expected a text, found {}", item.describe());
                    self.report.add(item.at, &format!("{}[{index}]", self.field(name)), message, None);
                }
            }
        }
        texts
    }

    /// A list.
    pub fn list(&self, name: &'a str) -> Option<&'a [Node]> {
        match self.node(name)? {
            Node { value: NodeValue::List(items), .. } => Some(items),
            other => self.wrong(name, other, "a list"),
        }
    }

    /// An object inside this one.
    pub fn object(&self, name: &'a str) -> Option<Fields<'a>> {
        let node = self.node(name)?;
        Fields::of(self.report, node, self.field(name))
    }

    /// The object at place `index` of the list `name`.
    pub fn item(&self, name: &str, index: usize, node: &'a Node) -> Option<Fields<'a>> {
        Fields::of(self.report, node, format!("{}[{index}]", self.field(name)))
    }

    /// Notes that a required field is missing. A field that nobody knows and that is nearly it is told as one fault
    /// together with it.
    pub fn missing(&self, name: &str, expected: &str) {
        self.missing_any(&[name], expected);
    }

    /// The same of several fields, one of which is required.
    pub fn missing_any(&self, names: &[&str], expected: &str) {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        self.missing.borrow_mut().push(Missing { names, expected: expected.to_owned() });
    }

    /// Whether there is no such field, and one that is nearly it.
    pub fn nearly_has(&self, name: &str) -> bool {
        !self.has(name) && self.entries.iter().any(|entry| nearest(&entry.key, &[name]).is_some())
    }

    /// Notes a fault of a field's value.
    pub fn refuse(&self, name: &str, message: String, help: Option<String>) {
        self.report.add(self.place_of(name), &self.field(name), message, help);
    }

    /// Notes a fault `n` bytes into a field's text; none: of the text as a whole.
    pub(crate) fn refuse_inside(&self, name: &str, n: Option<usize>, message: String, help: Option<String>) {
        let at = self.place_of(name);
        let at = n.map_or(at, |n| self.report.places.inside(at, n));
        self.report.add(at, &self.field(name), message, help);
    }

    /// True if the object has this field; asking does not make it known.
    pub fn has(&self, name: &str) -> bool {
        self.entries.iter().any(|entry| entry.key == name)
    }

    /// The keys, in order.
    pub fn names(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.entries.iter().map(|entry| entry.key.as_str())
    }

    /// The byte offset of a field's value, or of the object if it has no such field.
    pub fn place_of(&self, name: &str) -> usize {
        self.entries.iter().find(|entry| entry.key == name).map_or(self.at, |entry| entry.node.at)
    }

    /// An object without fields at the same place, for what is done where nothing is written.
    pub(crate) fn nothing(&self) -> Fields<'a> {
        Fields {
            report: self.report,
            at: self.at,
            path: self.path.clone(),
            entries: &[],
            known: RefCell::default(),
            missing: RefCell::default(),
        }
    }

    /// Reports every field that was not asked for.
    pub fn finish(self) {
        let mistyped = self.tell_missing();
        let known = self.known.borrow();
        let unknown = self.entries.iter().filter(|entry| !known.contains(&entry.key.as_str()));
        for entry in unknown.filter(|entry| !mistyped.contains(&entry.at)) {
            let allowed = known.join(", ");
            let message = format!("unknown field `{}`; expected one of {allowed}", shorten(&entry.key));
            self.report.add(
                entry.at,
                &self.field(&shorten(&entry.key)),
                message,
                nearest(&entry.key, &known),
            );
        }
    }

    /// Tells which required fields are missing. Gives the places of those that are there under nearly their name.
    fn tell_missing(&self) -> Vec<usize> {
        let mut mistyped = Vec::new();
        let known = self.known.borrow();
        for Missing { names, expected } in self.missing.take() {
            let name = names.first().map(String::as_str).unwrap_or_default();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let free = |entry: &&Entry| !known.contains(&entry.key.as_str()) && !mistyped.contains(&entry.at);
            let meant = self
                .entries
                .iter()
                .filter(free)
                .find_map(|entry| Some((entry, nearest(&entry.key, &names)?)));
            match meant {
                Some((entry, help)) => {
                    let key = shorten(&entry.key);
                    let message =
                        format!("unknown field `{key}`, and `{name}` is missing; expected {expected}");
                    self.report.add(entry.at, &self.field(&key), message, Some(help));
                    mistyped.push(entry.at);
                }
                None => {
                    self.report.add(
                        self.at,
                        &self.field(name),
                        format!("missing; expected {expected}"),
                        None,
                    );
                }
            }
        }
        mistyped
    }

    fn word_at<W: Word>(&self, node: &Node, path: &str) -> Option<W> {
        let NodeValue::Text(text) = &node.value else {
            let message = format!("expected one of {}, found {}", W::allowed(), node.describe());
            self.report.add(node.at, path, message, None);
            return None;
        };
        let word = W::from_word(text);
        if word.is_none() {
            let names: Vec<&str> = W::ALL.iter().map(|(name, _)| *name).collect();
            let message =
                format!("unknown {} `{}`; expected one of {}", W::KIND, shorten(text), W::allowed());
            self.report.add(node.at, path, message, nearest(text, &names));
        }
        word
    }

    fn wrong<T>(&self, name: &str, node: &Node, expected: &str) -> Option<T> {
        let message = format!("expected {expected}, found {}", node.describe());
        self.report.add(node.at, &self.field(name), message, None);
        None
    }

    fn field(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }
}

/// Where the reading ended early, what is missing is still told.
impl Drop for Fields<'_> {
    fn drop(&mut self) {
        self.tell_missing();
    }
}

/// "did you mean …?" for a word that is nearly one of these.
pub fn nearest(word: &str, names: &[&str]) -> Option<String> {
    if word.len() > 64 {
        return None;
    }
    let lower = word.to_lowercase();
    names
        .iter()
        .map(|name| (strsim::damerau_levenshtein(&lower, &name.to_lowercase()), name))
        .filter(|(distance, name)| *distance <= 1 + name.len() / 4)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| format!("did you mean `{name}`?"))
}

#[cfg(test)]
mod tests {
    use super::nearest;
    use crate::action::ActionKinds;
    use crate::define::read;
    use crate::hook::Source;

    /// What is said of a hook: `field: message (help)`, as one line each.
    #[track_caller]
    fn check(hook: &str, want: &[&str]) {
        let problems = read("h.json", hook, Source::User, &ActionKinds::standard()).problems;
        let got: Vec<String> = problems
            .iter()
            .map(|problem| {
                let field = problem.field.as_deref().unwrap_or_default();
                format!("{field}: {} ({})", problem.message, problem.help.as_deref().unwrap_or_default())
            })
            .collect();
        assert_eq!(got.len(), want.len(), "{hook}: {got:#?}");
        for (got, want) in got.iter().zip(want) {
            let (field, help) = want.split_once(' ').unwrap();
            assert!(got.starts_with(&format!("{field}: unknown field `")), "{got}");
            assert!(got.contains(" is missing; expected ") && got.ends_with(&format!("({help})")), "{got}");
        }
    }

    #[test]
    fn a_mistyped_required_field_is_one_fault() {
        check(r#"{"targt":"chat"}"#, &["targt did you mean `target`?"]);
        check(r#"{"target":"chat","actions":[{"tpye":"log"}]}"#, &["actions[0].tpye did you mean `type`?"]);
        let handler = |handler: &str, want: &str| {
            check(&format!(r#"{{"event":"stop","handler":{handler}}}"#), &[want]);
        };
        handler(r#"{"typ":"script","source":"x"}"#, "handler.typ did you mean `type`?");
        handler(r#"{"type":"script","sorce":"x"}"#, "handler.sorce did you mean `source`?");
        handler(r#"{"type":"script","fil":"x.js"}"#, "handler.fil did you mean `file`?");
        handler(r#"{"type":"command","shel":"x"}"#, "handler.shel did you mean `shell`?");
        handler(r#"{"type":"command","arvg":["x"]}"#, "handler.arvg did you mean `argv`?");
        handler(r#"{"type":"http","ulr":"https://h"}"#, "handler.ulr did you mean `url`?");
        handler(r#"{"type":"prompt","promt":"x"}"#, "handler.promt did you mean `prompt`?");
        let script = r#"{"type":"script","source":"x"}"#;
        check(&format!(r#"{{"event":"stop","handlr":{script}}}"#), &["handlr did you mean `handler`?"]);
        check(&format!(r#"{{"evnt":"stop","handler":{script}}}"#), &["evnt did you mean `event`?"]);
        let tenant = format!(r#"{{"event":"stop","handler":{script},"scope":"tenant","tennant":"acme"}}"#);
        check(&tenant, &["tennant did you mean `tenant`?"]);
    }

    #[test]
    fn a_field_with_a_meaning_of_its_own_stands_for_no_other() {
        let said = |hook: &str| -> Vec<String> {
            let problems = read("h.json", hook, Source::User, &ActionKinds::standard()).problems;
            problems.into_iter().map(|problem| problem.message).collect()
        };
        let got = said(r#"{"event":"stop","handler":{"type":"script","memory_mb":1}}"#);
        assert_eq!(got, ["missing; expected `source` or `file`"]);
        // each typo stands for one field
        let got = said(r#"{"event":"stop","handler":{"type":"script","sorce":"x","sourc":"y"}}"#);
        assert_eq!(got.len(), 2, "{got:?}");
        assert!(got[0].contains("`sorce`, and `source` is missing"), "{got:?}");
        assert!(got[1].starts_with("unknown field `sourc`; expected one of "), "{got:?}");
    }

    #[test]
    fn guesses_only_what_is_near() {
        assert_eq!(nearest("asistant", &["user", "assistant"]), Some("did you mean `assistant`?".into()));
        assert_eq!(nearest("Chat", &["chat", "stream"]), Some("did you mean `chat`?".into()));
        assert_eq!(nearest("robot", &["user", "assistant", "tool"]), None);
    }
}
