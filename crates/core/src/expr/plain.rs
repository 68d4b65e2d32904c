//! Reads conditions of the plain form from their text, without CEL's own parser: making that ready takes longer than all
//! else that a coding agent's hook call does.
//!
//! It reads a strict part of the grammar, and leaves everything else to CEL: paths, texts without escapes, `==`, `!=`,
//! `startsWith`, `endsWith`, `contains`, `has()`, `!` before brackets and calls, `&&`, `||`. What it reads, CEL reads as
//! well, and means the same by it; a test holds both against each other.

use super::ROOTS;
use super::quick::{Compare, Path, Quick};

/// Words that are no names in CEL.
const RESERVED: [&str; 22] = [
    "in",
    "true",
    "false",
    "null",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
    "has",
];

/// A condition of the plain form.
pub(super) struct Plain {
    pub(super) quick: Quick,
    /// The names that it uses, as written, each once.
    pub(super) roots: Vec<(&'static str, &'static str)>,
}

/// Reads a condition; none: it is of another form, or wrong.
pub(super) fn read(source: &str) -> Option<Plain> {
    let mut reader = Reader { tokens: tokens(source)?, at: 0, roots: Vec::new() };
    let quick = reader.any()?;
    (reader.at == reader.tokens.len()).then_some(Plain { quick, roots: reader.roots })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token<'s> {
    Name(&'s str),
    Text(&'s str),
    Sign(&'static str),
}

fn tokens(source: &str) -> Option<Vec<Token<'_>>> {
    const SIGNS: [&str; 8] = ["&&", "||", "==", "!=", "!", "(", ")", "."];
    let mut tokens = Vec::new();
    let mut rest = source;
    loop {
        rest = rest.trim_start_matches([' ', '\t', '\n', '\r']);
        let Some(first) = rest.chars().next() else { return Some(tokens) };
        if first.is_ascii_alphabetic() || first == '_' {
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
            let (name, after) = rest.split_at_checked(end)?;
            // `r'...'` and `b'...'` are other texts
            if after.starts_with(['\'', '"']) {
                return None;
            }
            tokens.push(Token::Name(name));
            rest = after;
        } else if first == '\'' || first == '"' {
            let (text, after) = rest.get(1..)?.split_once(first)?;
            if text.contains(['\\', '\n', '\r']) {
                return None;
            }
            tokens.push(Token::Text(text));
            rest = after;
        } else {
            let sign = SIGNS.into_iter().find(|sign| rest.starts_with(sign))?;
            tokens.push(Token::Sign(sign));
            rest = rest.get(sign.len()..)?;
        }
    }
}

struct Reader<'s> {
    tokens: Vec<Token<'s>>,
    at: usize,
    roots: Vec<(&'static str, &'static str)>,
}

impl<'s> Reader<'s> {
    fn peek(&self) -> Option<Token<'s>> {
        self.tokens.get(self.at).copied()
    }

    fn next(&mut self) -> Option<Token<'s>> {
        let token = self.peek()?;
        self.at = self.at.saturating_add(1);
        Some(token)
    }

    fn takes(&mut self, sign: &'static str) -> bool {
        let is_next = self.peek() == Some(Token::Sign(sign));
        self.at = self.at.saturating_add(usize::from(is_next));
        is_next
    }

    fn any(&mut self) -> Option<Quick> {
        let mut left = self.all()?;
        while self.takes("||") {
            left = Quick::Any(Box::new([left, self.all()?]));
        }
        Some(left)
    }

    fn all(&mut self) -> Option<Quick> {
        let mut left = self.one()?;
        while self.takes("&&") {
            left = Quick::All(Box::new([left, self.one()?]));
        }
        Some(left)
    }

    fn one(&mut self) -> Option<Quick> {
        if !self.takes("!") {
            return self.part(true);
        }
        Some(Quick::Not(Box::new(self.part(false)?)))
    }

    /// Brackets, a call, or, if that may be, a comparison.
    fn part(&mut self, may_compare: bool) -> Option<Quick> {
        match self.next()? {
            Token::Sign("(") => {
                let inner = self.any()?;
                self.takes(")").then_some(inner)
            }
            Token::Name("has") => {
                let path = self.takes("(").then(|| self.next())?.and_then(|root| self.path(root))?;
                (self.takes(")") && !path.fields.is_empty()).then_some(Quick::Has(path))
            }
            Token::Text(text) if may_compare => {
                let compare = self.equality()?;
                let path = self.next().and_then(|root| self.path(root))?;
                Some(Quick::Text(path, compare, text.to_owned()))
            }
            root @ Token::Name(_) => self.about(root, may_compare),
            _ => None,
        }
    }

    /// What is asked about a path.
    fn about(&mut self, root: Token<'s>, may_compare: bool) -> Option<Quick> {
        let mut path = self.path(root)?;
        let compare = if self.takes("(") {
            match path.fields.pop()?.as_str() {
                "startsWith" => Compare::StartsWith,
                "endsWith" => Compare::EndsWith,
                "contains" => Compare::Contains,
                _ => return None,
            }
        } else {
            let compare = self.equality().filter(|_| may_compare)?;
            let Token::Text(text) = self.next()? else { return None };
            return Some(Quick::Text(path, compare, text.to_owned()));
        };
        let Token::Text(text) = self.next()? else { return None };
        self.takes(")").then(|| Quick::Text(path, compare, text.to_owned()))
    }

    fn equality(&mut self) -> Option<Compare> {
        if self.takes("==") { Some(Compare::Equal) } else { self.takes("!=").then_some(Compare::NotEqual) }
    }

    fn path(&mut self, root: Token<'s>) -> Option<Path> {
        let Token::Name(root) = root else { return None };
        let known = *ROOTS.iter().find(|(name, _)| *name == root)?;
        if !self.roots.contains(&known) {
            self.roots.push(known);
        }
        let mut fields = Vec::new();
        while self.takes(".") {
            let Token::Name(field) = self.next()? else { return None };
            if RESERVED.contains(&field) {
                return None;
            }
            fields.push(field.to_owned());
        }
        Some(Path { member: known.1, fields })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cel::Program;
    use proptest::prelude::*;
    use proptest::sample::select;

    /// What is read here is read by CEL, and as the same.
    #[track_caller]
    fn check(source: &str) -> bool {
        let Some(plain) = read(source) else { return false };
        let program = Program::compile(source).unwrap_or_else(|error| panic!("{source}: {error}"));
        let quick =
            Quick::read(program.expression()).unwrap_or_else(|| panic!("{source}: is not plain to CEL"));
        assert_eq!(flat(&plain.quick), flat(&quick), "{source}");
        let mut names: Vec<String> = plain.roots.iter().map(|(name, _)| (*name).to_owned()).collect();
        let mut known: Vec<String> =
            program.references().variables().into_iter().map(str::to_owned).collect();
        names.sort();
        known.sort();
        assert_eq!(names, known, "{source}");
        true
    }

    /// How sides are grouped means nothing.
    fn flat(quick: &Quick) -> String {
        fn sides<'q>(quick: &'q Quick, all: bool, out: &mut Vec<&'q Quick>) {
            match quick {
                Quick::All(pair) if all => pair.iter().for_each(|side| sides(side, all, out)),
                Quick::Any(pair) if !all => pair.iter().for_each(|side| sides(side, all, out)),
                other => out.push(other),
            }
        }
        let joined = |all| {
            let mut parts = Vec::new();
            sides(quick, all, &mut parts);
            parts.into_iter().map(flat).collect::<Vec<_>>().join(if all { " and " } else { " or " })
        };
        match quick {
            Quick::All(_) => format!("({})", joined(true)),
            Quick::Any(_) => format!("({})", joined(false)),
            Quick::Not(side) => format!("not {}", flat(side)),
            Quick::Has(_) | Quick::Text(..) => format!("{quick:?}"),
        }
    }

    #[test]
    fn the_plain_form_is_read_and_nothing_else() {
        for plain in [
            "toolInput.command.contains('rm -rf')",
            "tool_name == \"exec\" && !toolInput.path.startsWith('/home/me')",
            "'exec' != toolName || has(toolInput.a.b) && !(rawInput == '')",
            " ( ( toolName=='x' ) )\n&& has( toolInput . a ) ",
            "toolName == 'a' || toolName == 'b' || toolName == 'c' && content != ''",
            "toolName == 'ü \"q\"'",
        ] {
            assert!(check(plain), "{plain}");
        }
        for other in [
            "",
            "toolName",
            "!toolName == 'x'",
            "!!has(toolInput.a)",
            "toolName == 'a\\n'",
            "toolName == r'a'",
            "toolName == b'a'",
            "toolName == '''a'''",
            "has(toolName)",
            "toolInput.in == 'x'",
            "toolInput.while == 'x'",
            "toolInput['a'] == 'x'",
            "toolName == 'a' == 'b'",
            "toolName.matches('a')",
            "depth == 1",
            "nothing == 'x'",
            "toolName == 'x' // end",
            "toolName == 'x' ? true : false",
            "(toolName) == 'x'",
            "toolName == ('x')",
            "toolName == 'x' &&",
            "toolInput.a.contains('x').b == 'c'",
            "toolInput.?a == 'x'",
            ".toolName == 'x'",
            "toolName == 'x' 'y'",
            "toolName.contains('x', 'y')",
            "contains(toolName, 'x')",
            "toolName == 'x",
        ] {
            assert!(!check(other), "{other}");
        }
    }

    proptest! {
        #[test]
        fn whatever_is_read_is_read_by_cel_as_the_same(parts in proptest::collection::vec(select(vec![
            "toolName", "toolInput", ".a", ".in", ".b.c", " == ", "!=", "'x'", "\"y z\"", "''", "&&", " || ", "!", "(",
            ")", "has(", ".contains(", ".startsWith('q')", ".endsWith(", "has(toolInput.a)", "toolName == 'x'", " ", "r",
        ]), 1..9)) {
            check(&parts.concat());
        }
    }
}
