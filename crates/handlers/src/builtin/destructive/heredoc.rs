//! Takes here-documents out of a text before it is parsed. The parser reads those that stand in substitutions wrongly,
//! and `"$(cat <<'EOF' …)"` is how agents write commit messages.

/// Surrounds the number of a document where it stood.
pub(super) const MARK: char = '\u{2}';
/// Most documents of a line.
const MOST: usize = 64;

/// A document that was taken out.
#[derive(Debug, Clone)]
pub(super) struct Document {
    /// Its text.
    pub(super) body: String,
    /// Are variables and substitutions in it expanded?
    pub(super) expands: bool,
}

/// The number in a marked word.
pub(super) fn number(word: &str) -> Option<usize> {
    word.strip_prefix(MARK)?.strip_suffix(MARK)?.parse().ok()
}

#[derive(Clone, Copy, PartialEq)]
enum Inside {
    Bare,
    Double,
    Bracket,
    Arithmetic,
    Backquote,
}

/// The text with a mark for each document; the documents are added to the list.
pub(super) fn take_out(text: &str, documents: &mut Vec<Document>) -> String {
    if !text.contains("<<") || !text.contains('\n') {
        return text.to_owned();
    }
    let mut cut = Cut {
        rest: text,
        out: String::with_capacity(text.len()),
        stack: vec![Inside::Bare],
        open: Vec::new(),
        fresh: true,
        tries: 0,
    };
    while cut.step(documents) {}
    cut.out
}

/// How often ends will be looked for in a text, at most.
pub(super) fn tries(text: &str) -> usize {
    text.matches("<<").take(MOST).count()
}

struct Cut<'a> {
    rest: &'a str,
    out: String,
    stack: Vec<Inside>,
    /// Documents whose bodies begin at the next line.
    open: Vec<Open>,
    /// Does a word begin here?
    fresh: bool,
    /// How often an end was looked for.
    tries: usize,
}

struct Open {
    index: usize,
    end: String,
    tabs: bool,
}

impl Cut<'_> {
    fn take(&mut self) -> Option<char> {
        let c = self.rest.chars().next()?;
        self.rest = self.rest.get(c.len_utf8()..).unwrap_or_default();
        self.out.push(c);
        Some(c)
    }

    fn skip_past(&mut self, end: char) {
        while self.take().is_some_and(|c| c != end) {}
    }

    fn step(&mut self, documents: &mut Vec<Document>) -> bool {
        let inside = self.stack.last().copied().unwrap_or(Inside::Bare);
        let fresh = std::mem::replace(&mut self.fresh, false);
        if inside != Inside::Double
            && inside != Inside::Arithmetic
            && self.rest.starts_with("<<")
            && self.document(documents)
        {
            return true;
        }
        let Some(c) = self.take() else { return false };
        match (c, inside) {
            ('\\', _) => {
                self.take();
            }
            ('"', Inside::Double) => {
                self.stack.pop();
            }
            ('"', _) => self.stack.push(Inside::Double),
            ('\'', Inside::Bare | Inside::Bracket | Inside::Backquote) => self.skip_past('\''),
            ('`', Inside::Backquote) => {
                self.stack.pop();
            }
            ('`', _) => self.stack.push(Inside::Backquote),
            ('$', Inside::Double) if !self.rest.starts_with('(') => {}
            ('(', Inside::Double) if !self.out.ends_with("$(") => {}
            ('(', _) if self.rest.starts_with('(') => {
                self.take();
                self.stack.push(Inside::Arithmetic);
            }
            ('(', _) => self.stack.push(if inside == Inside::Arithmetic {
                Inside::Arithmetic
            } else {
                Inside::Bracket
            }),
            (')', Inside::Arithmetic) => {
                if self.rest.starts_with(')') {
                    self.take();
                }
                self.stack.pop();
            }
            (')', Inside::Bracket) => {
                self.stack.pop();
            }
            ('#', Inside::Bare | Inside::Bracket) if fresh => {
                while !self.rest.is_empty() && !self.rest.starts_with('\n') {
                    self.take();
                }
            }
            ('\n', _) if inside != Inside::Double => self.bodies(documents),
            _ => {}
        }
        self.fresh = c.is_whitespace() || matches!(c, ';' | '(' | '&' | '|');
        true
    }

    /// `<<END`, if a line with the end follows.
    fn document(&mut self, documents: &mut Vec<Document>) -> bool {
        let Some(after) = self.rest.strip_prefix("<<") else { return false };
        if let Some(word) = after.strip_prefix('<') {
            self.out.push_str("<<<");
            self.rest = word;
            return true;
        }
        let (after, tabs) = after.strip_prefix('-').map_or((after, false), |after| (after, true));
        let word = after.trim_start_matches([' ', '\t']);
        let length = word
            .find(|c: char| c.is_whitespace() || matches!(c, ';' | '&' | '|' | '<' | '>' | '(' | ')'))
            .unwrap_or(word.len());
        let (raw, rest) = word.split_at_checked(length).unwrap_or((word, ""));
        let end: String = raw.chars().filter(|c| !matches!(c, '\'' | '"' | '\\')).collect();
        let closes = |line: &str| (if tabs { line.trim_start_matches('\t') } else { line }) == end;
        self.tries += 1;
        if end.is_empty()
            || raw.contains(['$', '`'])
            || documents.len() >= MOST
            || self.tries > MOST
            || !rest.lines().skip(1).any(closes)
        {
            return false;
        }
        self.open.push(Open { index: documents.len(), end, tabs });
        documents.push(Document { body: String::new(), expands: !raw.contains(['\'', '"', '\\']) });
        let index = documents.len() - 1;
        self.out.push_str(&format!("<<< {MARK}{index}{MARK}"));
        self.rest = rest;
        true
    }

    /// Behind a line: the bodies of the documents that it opened.
    fn bodies(&mut self, documents: &mut [Document]) {
        for open in std::mem::take(&mut self.open) {
            let mut body = String::new();
            while !self.rest.is_empty() {
                let (line, rest) = self.rest.split_once('\n').unwrap_or((self.rest, ""));
                self.rest = rest;
                let line = if open.tabs { line.trim_start_matches('\t') } else { line };
                if line == open.end {
                    break;
                }
                body.push_str(line);
                body.push('\n');
            }
            if let Some(document) = documents.get_mut(open.index) {
                document.body = body;
            }
        }
    }
}
