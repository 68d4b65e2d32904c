//! Shell words: quotes, escapes, variables, substitutions and braces, as far as the line itself tells their value.
//! What it does not tell is [`UNKNOWN`].

use super::budget::replaced;
use super::call::UNKNOWN;

/// What a word may ask for while it is expanded.
pub(super) trait Surroundings {
    /// The value of a variable; none: not known from the line.
    fn variable(&mut self, name: &str) -> Option<String>;
    /// Runs a command substitution and gives its output, if it can be told.
    fn substitution(&mut self, line: &str) -> Option<String>;
    /// `${name:=value}`.
    fn assign(&mut self, name: &str, value: &str);
    /// Begins an expansion of so many bytes. False: not any more, and then there is no [`leave`](Self::leave).
    fn enter(&mut self, bytes: usize) -> bool;
    /// Ends it.
    fn leave(&mut self);
    /// Notes work that was done.
    fn spend(&mut self, bytes: usize);
}

/// Most fields one word may become.
const MOST_FIELDS: usize = 64;
/// Longest value.
const LONGEST: usize = 16 << 10;

/// Expands a word to fields.
pub(super) fn expand(raw: &str, around: &mut dyn Surroundings) -> Vec<String> {
    if !raw.contains(['\\', '\'', '"', '$', '`', '{', '~']) {
        return vec![raw.to_owned()];
    }
    if !around.enter(raw.len()) {
        return vec![UNKNOWN.to_string()];
    }
    let mut fields = Vec::new();
    for raw in braces(raw) {
        around.spend(raw.len());
        let mut out = Fields::default();
        let mut scan = Scan { rest: &raw };
        if raw.starts_with('~') {
            out.push('~');
            scan.next();
        }
        words(&mut scan, &mut out, around, Quote::Bare);
        out.end(&mut fields);
        if fields.len() >= MOST_FIELDS {
            break;
        }
    }
    around.spend(fields.iter().map(String::len).sum());
    around.leave();
    fields
}

/// Expands to one string, as inside double quotes or in an assignment.
pub(super) fn expand_whole(raw: &str, around: &mut dyn Surroundings) -> String {
    if !around.enter(raw.len()) {
        return UNKNOWN.to_string();
    }
    let mut out = Fields { whole: true, ..Fields::default() };
    let mut scan = Scan { rest: raw };
    if raw.starts_with('~') {
        out.push('~');
        scan.next();
    }
    words(&mut scan, &mut out, around, Quote::Bare);
    around.spend(out.now.len());
    around.leave();
    out.now
}

/// Expands the body of a here-document: as in double quotes, but quotes are only characters.
pub(super) fn expand_document(raw: &str, around: &mut dyn Surroundings) -> String {
    if !around.enter(raw.len()) {
        return UNKNOWN.to_string();
    }
    let mut out = Fields { whole: true, ..Fields::default() };
    words(&mut Scan { rest: raw }, &mut out, around, Quote::Document);
    around.spend(out.now.len());
    around.leave();
    out.now
}

#[derive(Default)]
struct Fields {
    now: String,
    /// Something stands in the field, be it empty quotes.
    real: bool,
    done: Vec<String>,
    whole: bool,
}

impl Fields {
    fn push(&mut self, c: char) {
        self.real = true;
        if self.now.len() < LONGEST {
            self.now.push(c);
        }
    }

    fn text(&mut self, text: &str) {
        text.chars().for_each(|c| self.push(c));
    }

    /// The value of an expansion that stands outside quotes: blanks in it separate fields.
    fn split(&mut self, text: &str) {
        for c in text.chars() {
            if c.is_ascii_whitespace() && !self.whole {
                self.cut();
            } else {
                self.push(c);
            }
        }
    }

    fn cut(&mut self) {
        if self.real && self.done.len() < MOST_FIELDS {
            self.done.push(std::mem::take(&mut self.now));
        }
        self.now.clear();
        self.real = false;
    }

    fn end(mut self, fields: &mut Vec<String>) {
        self.cut();
        fields.append(&mut self.done);
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Quote {
    Bare,
    Double,
    Document,
}

struct Scan<'a> {
    rest: &'a str,
}

impl<'a> Scan<'a> {
    fn next(&mut self) -> Option<char> {
        let c = self.rest.chars().next()?;
        self.rest = self.rest.get(c.len_utf8()..).unwrap_or_default();
        Some(c)
    }

    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn eat(&mut self, text: &str) -> bool {
        match self.rest.strip_prefix(text) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn take_while(&mut self, keep: impl Fn(char) -> bool) -> &'a str {
        let end = self.rest.find(|c| !keep(c)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at_checked(end).unwrap_or((self.rest, ""));
        self.rest = rest;
        taken
    }

    /// Up to the closing character that belongs to an opening one already taken; quotes are minded.
    fn until(&mut self, open: char, close: char) -> &'a str {
        let whole = self.rest;
        let mut depth = 0_usize;
        while let Some(c) = self.next() {
            match c {
                '\\' => {
                    self.next();
                }
                '\'' => {
                    self.take_while(|c| c != '\'');
                    self.next();
                }
                '"' => self.skip_double(),
                c if c == close && depth == 0 => {
                    let end = whole.len() - self.rest.len() - close.len_utf8();
                    return whole.get(..end).unwrap_or_default();
                }
                c if c == close => depth -= 1,
                c if c == open => depth += 1,
                _ => {}
            }
        }
        whole
    }

    fn skip_double(&mut self) {
        while let Some(c) = self.next() {
            match c {
                '\\' => {
                    self.next();
                }
                '"' => return,
                _ => {}
            }
        }
    }
}

fn words(scan: &mut Scan<'_>, out: &mut Fields, around: &mut dyn Surroundings, quote: Quote) {
    while let Some(c) = scan.next() {
        match (c, quote) {
            ('"', Quote::Double) => return,
            ('\\', Quote::Bare) => match scan.next() {
                Some('\n') | None => {}
                Some(c) => out.push(c),
            },
            ('\\', _) => match scan.peek() {
                Some('\n') => {
                    scan.next();
                }
                Some(c @ ('$' | '`' | '"' | '\\')) => {
                    scan.next();
                    out.push(c);
                }
                _ => out.push('\\'),
            },
            ('\'', Quote::Bare) => {
                out.real = true;
                single(scan, out);
            }
            ('"', Quote::Bare) => {
                out.real = true;
                words(scan, out, around, Quote::Double);
            }
            ('`', _) => {
                let line = backquoted(scan);
                let value = around.substitution(&line);
                put(out, value, quote);
            }
            ('$', _) => dollar(scan, out, around, quote),
            (c, _) => out.push(c),
        }
    }
}

fn single(scan: &mut Scan<'_>, out: &mut Fields) {
    let text = scan.take_while(|c| c != '\'');
    // a quoted tilde is no home
    if out.now.is_empty() && text.starts_with('~') {
        out.text("./");
    }
    out.text(text);
    scan.next();
}

fn backquoted(scan: &mut Scan<'_>) -> String {
    let mut line = String::new();
    while let Some(c) = scan.next() {
        match c {
            '`' => break,
            '\\' => match scan.next() {
                Some(c @ ('`' | '$' | '\\')) => line.push(c),
                Some(c) => {
                    line.push('\\');
                    line.push(c);
                }
                None => {}
            },
            c => line.push(c),
        }
    }
    line
}

fn put(out: &mut Fields, value: Option<String>, quote: Quote) {
    let value = value.unwrap_or_else(|| UNKNOWN.to_string());
    if quote == Quote::Bare { out.split(&value) } else { out.text(&value) }
}

fn dollar(scan: &mut Scan<'_>, out: &mut Fields, around: &mut dyn Surroundings, quote: Quote) {
    if quote == Quote::Bare && scan.eat("'") {
        out.real = true;
        ansi(scan, out);
    } else if quote == Quote::Bare && scan.eat("\"") {
        out.real = true;
        words(scan, out, around, Quote::Double);
    } else if scan.eat("((") {
        let inner = scan.until('(', ')').to_owned();
        scan.eat(")");
        let value = arithmetic(&inner, around);
        put(out, value, quote);
    } else if scan.eat("(") {
        let line = scan.until('(', ')').to_owned();
        let value = around.substitution(&line);
        put(out, value, quote);
    } else if scan.eat("{") {
        let inner = scan.until('{', '}').to_owned();
        let value = parameter(&inner, around);
        // each element of `"${list[@]}"` is a word of its own, also in quotes
        let list = inner.ends_with("[@]") || inner == "@";
        put(out, value, if list { Quote::Bare } else { quote });
    } else if scan.peek().is_some_and(|c| c.is_ascii_alphabetic() || c == '_') {
        let name = scan.take_while(|c| c.is_ascii_alphanumeric() || c == '_');
        let value = around.variable(name);
        put(out, value, quote);
    } else if let Some(c) = scan.peek().filter(|c| c.is_ascii_digit() || "@*#?$!-".contains(*c)) {
        scan.next();
        let value = around.variable(&c.to_string());
        put(out, value, if c == '@' { Quote::Bare } else { quote });
    } else {
        out.push('$');
    }
}

/// Only numbers are told; substitutions inside still run.
fn arithmetic(inner: &str, around: &mut dyn Surroundings) -> Option<String> {
    let text = if inner.contains(['$', '`']) { expand_document(inner, around) } else { inner.to_owned() };
    text.trim().parse::<i64>().ok().map(|number| number.to_string())
}

fn parameter(inner: &str, around: &mut dyn Surroundings) -> Option<String> {
    let mut scan = Scan { rest: inner };
    if scan.peek() == Some('#') && inner.len() > 1 {
        return None;
    }
    let indirect = scan.eat("!");
    let mut name = scan.take_while(|c| c.is_ascii_alphanumeric() || c == '_').to_owned();
    if name.is_empty() {
        name = scan.next().map(String::from).unwrap_or_default();
    }
    let mut value = around.variable(&name);
    if indirect {
        value = value.and_then(|name| around.variable(&name));
    }
    if scan.eat("[") {
        let index = scan.until('[', ']');
        value = pick(value, index);
    }
    let rest = scan.rest;
    let set = value.as_deref().is_some_and(|value| !value.is_empty());
    if rest.is_empty() {
        return value;
    }
    if let Some(word) = rest.strip_prefix(":-").or(rest.strip_prefix('-')) {
        return if set { value } else { Some(expand_whole(word, around)) };
    }
    if let Some(word) = rest.strip_prefix(":=").or(rest.strip_prefix('=')) {
        if !set {
            let word = expand_whole(word, around);
            around.assign(&name, &word);
            return Some(word);
        }
        return value;
    }
    if let Some(word) = rest.strip_prefix(":+").or(rest.strip_prefix('+')) {
        return Some(expand_whole(word, around));
    }
    if rest.starts_with(":?") || rest.starts_with('?') {
        return value;
    }
    edited(value?, rest)
}

/// An array is kept as its fields, joined by blanks.
fn pick(value: Option<String>, index: &str) -> Option<String> {
    let value = value?;
    match index.trim().parse::<usize>() {
        Ok(n) => value.split_whitespace().nth(n).map(str::to_owned),
        Err(_) => Some(value),
    }
}

/// `:from:count`, cut-off ends, case: for a value that is known.
fn edited(value: String, rest: &str) -> Option<String> {
    if value.contains(UNKNOWN) {
        return None;
    }
    if let Some(range) = rest.strip_prefix(':') {
        let (from, count) = range.split_once(':').unwrap_or((range, ""));
        let from: usize = from.trim().parse().ok()?;
        let count = if count.is_empty() { usize::MAX } else { count.trim().parse().ok()? };
        return Some(value.chars().skip(from).take(count).collect());
    }
    match rest {
        "^^" => return Some(value.to_uppercase()),
        ",," | "," => return Some(value.to_lowercase()),
        "@Q" | "@E" | "@P" => return Some(value),
        _ => {}
    }
    let plain = |text: &str| !text.contains(['*', '?', '[', '$']);
    if let Some(end) = rest.strip_prefix('%').map(|end| end.trim_start_matches('%')).filter(|end| plain(end))
    {
        return Some(value.strip_suffix(end).unwrap_or(&value).to_owned());
    }
    if let Some(head) =
        rest.strip_prefix('#').map(|head| head.trim_start_matches('#')).filter(|head| plain(head))
    {
        return Some(value.strip_prefix(head).unwrap_or(&value).to_owned());
    }
    if let Some(pair) = rest.strip_prefix('/') {
        let (all, pair) = pair.strip_prefix('/').map_or((false, pair), |pair| (true, pair));
        let (from, to) = pair.split_once('/').unwrap_or((pair, ""));
        if plain(from) && plain(to) && !from.is_empty() {
            return if all { replaced(&value, from, to) } else { Some(value.replacen(from, to, 1)) };
        }
    }
    None
}

/// `$'…'`.
fn ansi(scan: &mut Scan<'_>, out: &mut Fields) {
    while let Some(c) = scan.next() {
        match c {
            '\'' => return,
            '\\' => escape(scan, out),
            c => out.push(c),
        }
    }
}

fn escape(scan: &mut Scan<'_>, out: &mut Fields) {
    let Some(c) = scan.next() else { return };
    let (radix, most) = match c {
        'x' => (16, 2),
        'u' => (16, 4),
        'U' => (16, 8),
        '0'..='7' => (8, 2),
        other => {
            out.push(match other {
                'n' => '\n',
                't' => '\t',
                'r' => '\r',
                'e' | 'E' => '\u{1b}',
                other => other,
            });
            return;
        }
    };
    let mut code = if radix == 8 { c.to_digit(8).unwrap_or(0) } else { 0 };
    for _ in 0..most {
        let Some(digit) = scan.peek().and_then(|c| c.to_digit(radix)) else { break };
        scan.next();
        code = code.wrapping_mul(radix).wrapping_add(digit);
    }
    if let Some(c) = char::from_u32(code).filter(|c| *c != UNKNOWN) {
        out.push(c);
    }
}

/// Text with the escapes of `echo -e` and `printf` worked out.
pub(super) fn unescape(text: &str) -> String {
    let mut out = Fields { whole: true, ..Fields::default() };
    let mut scan = Scan { rest: text };
    while let Some(c) = scan.next() {
        if c == '\\' { escape(&mut scan, &mut out) } else { out.push(c) }
    }
    out.now
}

/// Brace expansion, `{a,b}` only, and not inside quotes or expansions.
fn braces(raw: &str) -> Vec<String> {
    let mut done = Vec::new();
    let mut open = vec![raw.to_owned()];
    while let Some(word) = open.pop() {
        match split_braces(&word) {
            Some(mut parts) if open.len() + done.len() + parts.len() <= MOST_FIELDS => {
                parts.reverse();
                open.append(&mut parts);
            }
            _ => done.push(word),
        }
    }
    done
}

/// The words that the first brace list of a word makes.
fn split_braces(word: &str) -> Option<Vec<String>> {
    let mut scan = Scan { rest: word };
    while let Some(c) = scan.next() {
        match c {
            '\\' => {
                scan.next();
            }
            '\'' => {
                scan.take_while(|c| c != '\'');
                scan.next();
            }
            '"' => scan.skip_double(),
            '$' if scan.eat("{") => {
                scan.until('{', '}');
            }
            '$' if scan.eat("(") => {
                scan.until('(', ')');
            }
            '`' => {
                backquoted(&mut scan);
            }
            '{' => {
                let before = word.get(..word.len() - scan.rest.len() - 1)?;
                let inner = scan.until('{', '}');
                let parts = commas(inner);
                if parts.len() > 1 {
                    let after = scan.rest;
                    return Some(parts.into_iter().map(|part| format!("{before}{part}{after}")).collect());
                }
            }
            _ => {}
        }
    }
    None
}

fn commas(inner: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut depth = 0_usize;
    let mut from = 0;
    for (at, c) in inner.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.extend(inner.get(from..at));
                from = at + 1;
            }
            _ => {}
        }
    }
    parts.extend(inner.get(from..));
    parts
}
