//! What stands after `(`.

use super::super::PatternError;
use super::scan::Scan;

/// The flags in force at a place.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Flags {
    pub(super) ignore_case: bool,
    pub(super) multiline: bool,
    pub(super) dot_all: bool,
}

/// How a group begins.
pub(super) enum Opening {
    /// `(`, `(?:` or `(?i:`, with the flags inside it.
    Plain(Flags),
    /// `(?<name>`.
    Named(String),
}

/// Reads the flags at the very beginning, `(?i)`; JavaScript itself writes them outside of the pattern.
pub(super) fn leading_flags(scan: &mut Scan<'_>) -> Flags {
    let flags = scan.rest().strip_prefix("(?").and_then(|rest| rest.split_once(')')).map(|(flags, _)| flags);
    let mut set = Flags::default();
    match flags {
        Some(letters) if !letters.is_empty() && switch(&mut set, letters, true) => {
            scan.skip(letters.len() + 3);
            set
        }
        _ => Flags::default(),
    }
}

/// Reads what follows a `(` at `start`.
pub(super) fn opening(scan: &mut Scan<'_>, start: usize, flags: Flags) -> Result<Opening, PatternError> {
    if !scan.eat("?") {
        return Ok(Opening::Plain(flags));
    }
    if scan.eat(":") {
        return Ok(Opening::Plain(flags));
    }
    for around in ["=", "!", "<=", "<!"] {
        if scan.rest().starts_with(around) {
            return Err(look_around(start, around, start == 0));
        }
    }
    if scan.eat("<") {
        return name(scan, start).map(Opening::Named);
    }
    modifiers(scan, start, flags)
}

/// `(?i:`, `(?-i:`, `(?i-s:`.
fn modifiers(scan: &mut Scan<'_>, start: usize, mut flags: Flags) -> Result<Opening, PatternError> {
    let rest = scan.rest();
    let n = rest.bytes().take_while(|byte| byte.is_ascii_alphabetic() || *byte == b'-').count();
    let letters = rest.get(..n).unwrap_or_default();
    let end = rest.get(n..).and_then(|rest| rest.chars().next());
    if end != Some(':') {
        return Err(unknown_group(start, rest, letters, end));
    }
    let (on, off) = letters.split_once('-').unwrap_or((letters, ""));
    let twice = on.chars().any(|letter| off.contains(letter));
    if letters == "-" || twice || !switch(&mut flags, on, true) || !switch(&mut flags, off, false) {
        return Err(PatternError::new(
            start,
            format!("found the flags `(?{letters}:`; allowed are `i`, `m` and `s`, each once"),
        ));
    }
    scan.skip(n + 1);
    Ok(Opening::Plain(flags))
}

/// Switches the flags named by `letters`; false when one is unknown or stands twice.
fn switch(flags: &mut Flags, letters: &str, on: bool) -> bool {
    let mut seen = Flags::default();
    letters.chars().all(|letter| {
        let (flag, seen) = match letter {
            'i' => (&mut flags.ignore_case, &mut seen.ignore_case),
            'm' => (&mut flags.multiline, &mut seen.multiline),
            's' => (&mut flags.dot_all, &mut seen.dot_all),
            _ => return false,
        };
        *flag = on;
        !std::mem::replace(seen, true)
    })
}

fn unknown_group(start: usize, rest: &str, letters: &str, end: Option<char>) -> PatternError {
    let hint = match rest.chars().next() {
        Some('P') => "write `(?<name>...)` for a named group",
        Some('>') => "write `(?:...)`; matching takes linear time without atomic groups",
        Some('#') => "leave the comment out",
        _ if end == Some(')') && !letters.is_empty() => {
            "the flags `(?i)`, `(?m)` and `(?s)` may stand at the very beginning; elsewhere write `(?i:...)`"
        }
        _ => "allowed are `(...)`, `(?:...)`, `(?<name>...)` and `(?i:...)`",
    };
    let shown: String = rest.chars().take(letters.chars().count() + 1).collect();
    PatternError::new(start, format!("found `(?{shown}`, a group that JavaScript does not know")).hint(hint)
}

fn look_around(start: usize, around: &str, leading: bool) -> PatternError {
    let hint = match (around, leading) {
        ("=", true) => {
            "give each condition its own hook, or join them in `if_expr` with `matches(...) && matches(...)`"
        }
        ("=", false) => {
            "write what follows as part of the pattern, for example `rm\\s` instead of `rm(?=\\s)`"
        }
        ("!", true) => "write what must match here, and the exception in `if_expr` as `!matches(...)`",
        ("!", false) => {
            "write what may follow, for example `foo(?:[^b]|$)` instead of `foo(?!b)`, or the exception in `if_expr`"
        }
        ("<=", _) => {
            "write what comes before as part of the pattern, for example `\\$\\d+` instead of `(?<=\\$)\\d+`"
        }
        _ => "write what may come before, for example `(?:^|[^a-z])rm` instead of `(?<![a-z])rm`",
    };
    let name = if around.starts_with('<') { "look-behind" } else { "look-ahead" };
    PatternError::new(start, format!("found `(?{around}`, a {name}; matching in linear time has none"))
        .hint(hint)
}

/// A group's name after `(?<`.
fn name(scan: &mut Scan<'_>, start: usize) -> Result<String, PatternError> {
    let refused = || {
        PatternError::new(
            start,
            "found a group whose name is not one; expected `(?<name>...)` with letters, digits, `_` and `$`",
        )
    };
    let mut name = String::new();
    loop {
        let letter = match scan.next().ok_or_else(refused)? {
            '>' if !name.is_empty() => return Ok(name),
            '\\' => escaped_letter(scan).ok_or_else(refused)?,
            letter => letter,
        };
        let first = letter.is_alphabetic() || letter == '_' || letter == '$';
        let later = letter.is_alphanumeric() || matches!(letter, '\u{200C}' | '\u{200D}');
        if !(first || (later && !name.is_empty())) {
            return Err(refused());
        }
        name.push(letter);
    }
}

fn escaped_letter(scan: &mut Scan<'_>) -> Option<char> {
    if !scan.eat("u") {
        return None;
    }
    if !scan.eat("{") {
        return char::from_u32(scan.hex(4)?);
    }
    let (digits, _) = scan.rest().split_once('}')?;
    let found = scan.hex(digits.len()).and_then(char::from_u32)?;
    scan.eat("}").then_some(found)
}
