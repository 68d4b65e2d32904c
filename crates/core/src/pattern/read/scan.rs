//! A place in the source, and what must be known about the whole source before reading it.

/// The source and how far it was read.
#[derive(Clone, Copy)]
pub(super) struct Scan<'s> {
    source: &'s str,
    at: usize,
}

impl<'s> Scan<'s> {
    pub(super) fn new(source: &'s str) -> Self {
        Self { source, at: 0 }
    }

    pub(super) fn at(&self) -> usize {
        self.at
    }

    pub(super) fn rest(&self) -> &'s str {
        self.source.get(self.at..).unwrap_or_default()
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    pub(super) fn next(&mut self) -> Option<char> {
        let found = self.peek()?;
        self.at += found.len_utf8();
        Some(found)
    }

    /// Steps over `text` when it comes next.
    pub(super) fn eat(&mut self, text: &str) -> bool {
        let found = self.rest().starts_with(text);
        if found {
            self.at += text.len();
        }
        found
    }

    /// Steps over `n` bytes that were looked at already.
    pub(super) fn skip(&mut self, n: usize) {
        self.at = (self.at + n).min(self.source.len());
    }

    /// The next `n` characters as a hexadecimal number, read only when all of them are digits.
    pub(super) fn hex(&mut self, n: usize) -> Option<u32> {
        let digits = self.rest().get(..n)?;
        if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        let value = u32::from_str_radix(digits, 16).ok()?;
        self.skip(n);
        Some(value)
    }

    /// A run of decimal digits, as large as fits.
    pub(super) fn decimal(&mut self) -> Option<u32> {
        let rest = self.rest();
        let n = rest.bytes().take_while(u8::is_ascii_digit).count();
        let digits = rest.get(..n).filter(|digits| !digits.is_empty())?;
        self.skip(n);
        Some(digits.parse().unwrap_or(u32::MAX))
    }
}

/// The capture groups of a source: `\1` and `\k` mean one thing with them and another without.
#[derive(Clone, Copy, Default)]
pub(super) struct Groups {
    pub(super) count: u32,
    pub(super) named: bool,
}

impl Groups {
    pub(super) fn of(source: &str) -> Self {
        let mut groups = Self::default();
        let mut scan = Scan::new(source);
        let mut in_class = false;
        while let Some(found) = scan.next() {
            match found {
                '\\' => {
                    scan.next();
                }
                '[' => in_class = true,
                ']' => in_class = false,
                '(' if !in_class => {
                    let rest = scan.rest();
                    let named =
                        rest.starts_with("?<") && !rest.starts_with("?<=") && !rest.starts_with("?<!");
                    groups.named |= named;
                    groups.count = groups.count.saturating_add(u32::from(named || !rest.starts_with('?')));
                }
                _ => {}
            }
        }
        groups
    }
}
