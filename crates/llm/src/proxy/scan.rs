//! Where the values of a JSON text begin and end.
//!
//! For texts that serde_json has read: what is no JSON is not told as such, but never read beyond its end.

use serde_json::Value;
use std::borrow::Cow;

use crate::wire::json;

/// Deeper than serde_json reads.
const DEEPEST: usize = 200;

/// A value of the text.
#[derive(Debug)]
pub(super) struct Node<'t> {
    pub(super) raw: &'t str,
    pub(super) kind: Kind<'t>,
}

#[derive(Debug)]
pub(super) enum Kind<'t> {
    Scalar,
    List(Vec<Node<'t>>),
    Object(Vec<Member<'t>>),
    /// It has a key twice.
    Twice,
}

#[derive(Debug)]
pub(super) struct Member<'t> {
    pub(super) name: Cow<'t, str>,
    pub(super) raw_name: &'t str,
    pub(super) value: Node<'t>,
}

/// The values of a text; `None` when they do not end.
pub(super) fn scan(text: &str) -> Option<Node<'_>> {
    Scan { text, at: 0 }.value(0)
}

struct Scan<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Scan<'t> {
    fn value(&mut self, depth: usize) -> Option<Node<'t>> {
        self.skip_blanks();
        let from = self.at;
        let kind = match self.peek()? {
            _ if depth > DEEPEST => return None,
            b'{' => self.object(depth)?,
            b'[' => self.list(depth)?,
            b'"' => {
                self.string()?;
                Kind::Scalar
            }
            _ => {
                let rest = self.text.get(from..)?;
                let ends = |c: char| matches!(c, ',' | ']' | '}' | ' ' | '\t' | '\n' | '\r');
                self.step(rest.find(ends).unwrap_or(rest.len()));
                Kind::Scalar
            }
        };
        Some(Node { raw: self.text.get(from..self.at)?, kind })
    }

    fn object(&mut self, depth: usize) -> Option<Kind<'t>> {
        let mut members: Vec<Member<'t>> = Vec::new();
        let mut names = std::collections::HashSet::new();
        let mut twice = false;
        loop {
            self.step(1);
            self.skip_blanks();
            if self.peek()? == b'}' {
                break;
            }
            let raw_name = self.string()?;
            let name = match raw_name.contains('\\').then(|| json::parse(raw_name)).flatten() {
                Some(Value::String(name)) => Cow::Owned(name),
                _ => Cow::Borrowed(raw_name.strip_prefix('"')?.strip_suffix('"')?),
            };
            twice |= !names.insert(name.clone());
            self.skip_blanks();
            self.step(1);
            let value = self.value(depth.saturating_add(1))?;
            members.push(Member { name, raw_name, value });
            self.skip_blanks();
            if self.peek()? == b'}' {
                break;
            }
        }
        self.step(1);
        Some(if twice { Kind::Twice } else { Kind::Object(members) })
    }

    fn list(&mut self, depth: usize) -> Option<Kind<'t>> {
        let mut items = Vec::new();
        loop {
            self.step(1);
            self.skip_blanks();
            if self.peek()? == b']' {
                break;
            }
            items.push(self.value(depth.saturating_add(1))?);
            self.skip_blanks();
            if self.peek()? == b']' {
                break;
            }
        }
        self.step(1);
        Some(Kind::List(items))
    }

    /// A string with its quotes.
    fn string(&mut self) -> Option<&'t str> {
        let from = self.at;
        self.step(1);
        loop {
            let rest = self.text.as_bytes().get(self.at..)?;
            let at = memchr::memchr2(b'"', b'\\', rest)?;
            let escapes = rest.get(at) == Some(&b'\\');
            self.step(at.saturating_add(if escapes { 2 } else { 1 }));
            if !escapes {
                return self.text.get(from..self.at);
            }
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.step(1);
        }
    }

    fn step(&mut self, n: usize) {
        self.at = self.at.saturating_add(n);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text again, with what it is made of: `s` a scalar, `2` an object with a key twice.
    fn shape(node: &Node<'_>) -> String {
        match &node.kind {
            Kind::Scalar => "s".to_owned(),
            Kind::List(items) => format!("[{}]", items.iter().map(shape).collect::<String>()),
            Kind::Object(members) => {
                members.iter().map(|member| format!("{{{}{}}}", member.name, shape(&member.value))).collect()
            }
            Kind::Twice => "2".to_owned(),
        }
    }

    #[test]
    fn values_are_found_with_their_bytes() {
        let check = |text: &str, raw: &str, want: &str| {
            let node = scan(text).unwrap();
            assert_eq!((node.raw, shape(&node).as_str()), (raw, want), "{text}");
        };
        check(" 1 ", "1", "s");
        check(" [ 1 , \"a,]\\\"\" , [ ] ]", "[ 1 , \"a,]\\\"\" , [ ] ]", "[ss[]]");
        check(
            "{\"a\" : {\"\\u0062\": -1e5}, \"c\":true}",
            "{\"a\" : {\"\\u0062\": -1e5}, \"c\":true}",
            "{a{bs}}{cs}",
        );
        check("{\"a\":1,\"\\u0061\":2}", "{\"a\":1,\"\\u0061\":2}", "2");
        for cut in ["", " ", "[", "[1", "[1,", "{", "{\"a", "{\"a\"", "{\"a\":", "{\"a\":1", "\"a", "\"\\"] {
            assert!(scan(cut).is_none(), "{cut}");
        }
        assert!(scan(&"[".repeat(100_000)).is_none());
    }
}
