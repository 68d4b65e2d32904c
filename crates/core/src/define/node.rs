//! JSON text with positions: strict (RFC 8259), nothing twice, nothing too deep.

use super::problem::{Places, Problem};
use jsonc_parser::ast::Value as Ast;
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use std::collections::HashSet;

/// A JSON value that knows where it stands in its file.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Byte offset of its first character.
    pub at: usize,
    /// The value.
    pub value: NodeValue,
}

/// The value of a [`Node`].
#[derive(Debug, Clone, PartialEq)]
pub enum NodeValue {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number as it is written.
    Number(String),
    /// A text.
    Text(String),
    /// A list.
    List(Vec<Node>),
    /// An object; no key occurs twice.
    Object(Vec<Entry>),
}

/// One member of an object.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// Byte offset of the key.
    pub at: usize,
    /// The value.
    pub node: Node,
}

/// Up to so many keys are compared one by one.
const FEW: usize = 16;

/// Definitions nest five levels deep; this leaves room for the free-form parts of later ones.
const DEEPEST: usize = 64;

impl Node {
    /// Parses a JSON text. A key that is written twice is a fault of its own; all are reported.
    pub fn parse(file: &str, text: &str) -> Result<Node, Vec<Problem>> {
        let fault = |offset: usize, message: String| Problem {
            place: Some(Places::new(text).of(offset)),
            ..Problem::of_file(file, message)
        };
        if let Some(offset) = too_deep(text) {
            return Err(vec![fault(offset, format!("nested deeper than {DEEPEST} levels"))]);
        }
        // serde_json is the judge of what JSON is; the other parser knows where things stand
        if let Err(error) = serde_json::from_str::<Judged>(text) {
            return Err(vec![syntax_problem(file, text, &error)]);
        }
        match parse_to_ast(text, &CollectOptions::default(), &strict()) {
            Ok(result) => {
                let Some(ast) = result.value else {
                    return Err(vec![fault(
                        0,
                        "the file is empty; expected a hook or a list of hooks".into(),
                    )]);
                };
                let mut problems = Vec::new();
                let node = convert(&ast, &mut |offset, key| {
                    let message = format!("the key `{key}` is written twice in one object");
                    problems.push(Problem { field: Some(key.to_owned()), ..fault(offset, message) });
                });
                if problems.is_empty() { Ok(node) } else { Err(problems) }
            }
            Err(error) => Err(vec![fault(error.range().start, format!("not valid JSON: {}", error.kind()))]),
        }
    }

    /// The node at a path such as `handler.argv[0]`, as far as the path leads.
    pub fn nearest_at(&self, path: &str) -> &Node {
        let mut node = self;
        for step in path.split(['.', '[']).map(|step| step.trim_end_matches(']')) {
            let next = match &node.value {
                NodeValue::Object(entries) => {
                    entries.iter().find(|entry| entry.key == step).map(|entry| &entry.node)
                }
                NodeValue::List(items) => step.parse().ok().and_then(|at: usize| items.get(at)),
                _ => None,
            };
            match next {
                Some(next) => node = next,
                None => break,
            }
        }
        node
    }

    /// What it is, for error texts: `a number`, `the text "abc"`.
    pub fn describe(&self) -> String {
        match &self.value {
            NodeValue::Null => "null".into(),
            NodeValue::Bool(value) => format!("`{value}`"),
            NodeValue::Number(text) => format!("the number `{}`", shorten(text)),
            NodeValue::Text(text) => format!("the text `{}`", shorten(text)),
            NodeValue::List(_) => "a list".into(),
            NodeValue::Object(_) => "an object".into(),
        }
    }

    /// The plain JSON value, without positions.
    pub fn to_json(&self) -> serde_json::Value {
        use serde_json::Value;
        match &self.value {
            NodeValue::Null => Value::Null,
            NodeValue::Bool(value) => Value::Bool(*value),
            NodeValue::Number(text) => serde_json::from_str(text).unwrap_or(Value::Null),
            NodeValue::Text(text) => Value::String(text.clone()),
            NodeValue::List(items) => Value::Array(items.iter().map(Node::to_json).collect()),
            NodeValue::Object(entries) => {
                Value::Object(entries.iter().map(|e| (e.key.clone(), e.node.to_json())).collect())
            }
        }
    }
}

/// At most 40 characters of a user's text, for an error line.
pub(crate) fn shorten(text: &str) -> String {
    let mut short: String = text.chars().take(40).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short.replace(['\n', '\r'], " ")
}

/// A JSON value that was read in full and is not kept: texts and numbers are looked at as if somebody wanted them.
struct Judged;

impl<'de> Deserialize<'de> for Judged {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Judged, D::Error> {
        from.deserialize_any(Judged)
    }
}

impl<'de> Visitor<'de> for Judged {
    type Value = Judged;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("any valid JSON value")
    }

    fn visit_unit<E>(self) -> Result<Judged, E> {
        Ok(Judged)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Judged, E> {
        Ok(Judged)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Judged, E> {
        Ok(Judged)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Judged, E> {
        Ok(Judged)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Judged, E> {
        Ok(Judged)
    }

    fn visit_str<E>(self, _: &str) -> Result<Judged, E> {
        Ok(Judged)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Judged, A::Error> {
        while items.next_element::<Judged>()?.is_some() {}
        Ok(Judged)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Judged, A::Error> {
        while members.next_entry::<Judged, Judged>()?.is_some() {}
        Ok(Judged)
    }
}

fn strict() -> ParseOptions {
    ParseOptions {
        allow_comments: false,
        allow_loose_object_property_names: false,
        allow_trailing_commas: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    }
}

/// The offset at which brackets outside texts nest too deep.
fn too_deep(text: &str) -> Option<usize> {
    let (mut depth, mut in_text, mut escaped) = (0usize, false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            b'[' | b'{' if !in_text => {
                depth = depth.saturating_add(1);
                if depth > DEEPEST {
                    return Some(at);
                }
            }
            b']' | b'}' if !in_text => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    None
}

/// A syntax error in the words of a person who writes hook files.
fn syntax_problem(file: &str, text: &str, error: &serde_json::Error) -> Problem {
    let (line, column) = (error.line().max(1), error.column().max(1));
    let full = error.to_string();
    let words = full.split(" at line ").next().unwrap_or(&full);
    let at_line = text.lines().nth(line.saturating_sub(1)).unwrap_or_default();
    let help = if text.trim().is_empty() {
        Some("the file is empty; write a hook, or [] for none".to_owned())
    } else if at_line.contains("//") || at_line.contains("/*") {
        Some("JSON has no comments".to_owned())
    } else if words.starts_with("trailing comma") {
        Some("take the comma before the closing bracket out".to_owned())
    } else {
        None
    };
    Problem {
        // serde_json counts bytes; the difference shows only behind letters beyond ASCII
        place: Some(super::problem::Place { line, column: chars_before(at_line, column) }),
        help,
        ..Problem::of_file(file, format!("not valid JSON: {words}"))
    }
}

fn chars_before(line: &str, byte_column: usize) -> usize {
    let end = byte_column.saturating_sub(1).min(line.len());
    line.char_indices().take_while(|(at, _)| *at < end).count().saturating_add(1)
}

fn convert(ast: &Ast<'_>, twice: &mut dyn FnMut(usize, &str)) -> Node {
    let value = match ast {
        Ast::StringLit(text) => NodeValue::Text(text.value.to_string()),
        Ast::NumberLit(number) => NodeValue::Number(number.value.to_owned()),
        Ast::BooleanLit(literal) => NodeValue::Bool(literal.value),
        Ast::NullKeyword(_) => NodeValue::Null,
        Ast::Array(list) => NodeValue::List(list.elements.iter().map(|item| convert(item, twice)).collect()),
        Ast::Object(object) => {
            let mut entries: Vec<Entry> = Vec::with_capacity(object.properties.len());
            let mut many = (object.properties.len() > FEW).then(HashSet::new);
            for property in &object.properties {
                let key = property.name.as_str();
                let is_new = match &mut many {
                    Some(seen) => seen.insert(key),
                    None => entries.iter().all(|entry| entry.key != key),
                };
                if !is_new {
                    twice(property.range.start, key);
                }
                entries.push(Entry {
                    key: key.to_owned(),
                    at: property.range.start,
                    node: convert(&property.value, twice),
                });
            }
            NodeValue::Object(entries)
        }
    };
    Node { at: ast.range().start, value }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, want: &[&str]) {
        let problems = Node::parse("f.json", text).err().unwrap_or_default();
        let got: Vec<String> = problems.iter().map(ToString::to_string).collect();
        assert_eq!(got.len(), want.len(), "{text}: {got:?}");
        for (got, want) in got.iter().zip(want) {
            assert!(got.contains(want), "{got} lacks {want}");
        }
    }

    #[test]
    fn strict_json_only() {
        check(r#"{"a":[1,true,null,"x"]}"#, &[]);
        check("", &["f.json:1:1: not valid JSON: EOF while parsing a value (the file is empty"]);
        check("[\n // c\n]", &["f.json:2:2: not valid JSON: expected value (JSON has no comments)"]);
        check("[1,]", &["trailing comma"]);
        check("{'a':1}", &["not valid JSON"]);
        check("[01]", &["not valid JSON"]);
        check("[\"\u{1}\"]", &["not valid JSON"]);
        check(r#"["\ud800"]"#, &["not valid JSON"]);
    }

    #[test]
    fn paths_lead_as_far_as_they_can() {
        let text = r#"{"a": {"b": [1, {"c": true}]}}"#;
        let root = Node::parse("f.json", text).unwrap();
        let check = |path: &str, want: &str| {
            let at = root.nearest_at(path).at;
            let rest = text.split_at(at).1;
            assert!(rest.starts_with(want), "{path}: {rest}");
        };
        check("", "{\"a\"");
        check("a.b[0]", "1,");
        check("a.b[1].c", "true");
        check("a.b[1].nope", "{\"c\"");
        check("a.b[7]", "[1,");
    }

    #[test]
    fn keys_written_twice_are_named() {
        check(r#"{"a":1,"b":2,"a":{"c":1,"c":2}}"#, &["`a` is written twice", "`c` is written twice"]);
        check(r#"{"a":1,"\u0061":2}"#, &["`a` is written twice"]);
    }

    #[test]
    fn deep_nesting_is_refused_without_a_crash() {
        check(&"[".repeat(1_000_000), &["nested deeper"]);
        check(&format!("\"{}\"", "[".repeat(1000)), &[]);
    }
}
