//! What to write in the place of a pattern that cannot be used, where that follows from the pattern alone.

use crate::pattern::Pattern;

/// The suggestion for a pattern that was refused at this byte: a file glob as a pattern, or a look-around written out.
pub(super) fn of_pattern(source: &str, at: Option<usize>) -> Option<String> {
    if let Some(glob) = glob_meant(source) {
        return Some(format!("this is a pattern, not a file glob; {} was probably meant", quoted(&glob)));
    }
    let (new, same) = without_look_around(source, at?)?;
    Pattern::parse(&new).ok()?;
    Some(format!("{} {same}", quoted(&new)))
}

/// A pattern in backticks, and how it is written in a file where that differs: each backslash is two in JSON.
pub fn quoted(pattern: &str) -> String {
    if pattern.contains(['\\', '"']) {
        let json = serde_json::Value::from(pattern).to_string();
        format!("`{pattern}` (in JSON: `{json}`)")
    } else {
        format!("`{pattern}`")
    }
}

/// The pattern for a text that looks like a file glob, such as `*.rs` or `src/**`, to be found in a path. It has no
/// anchors, as paths stand inside of other texts.
pub fn glob_meant(source: &str) -> Option<String> {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '*' | '?' | '.' | '/' | '_' | '-' | '~' | ' ');
    if !source.chars().all(plain) || !has_wild_star(source) {
        return None;
    }
    let mut pattern = String::new();
    // what may stand before or behind needs no words
    let mut rest = source.trim_start_matches("./").trim_start_matches(['*', '/']);
    if rest.is_empty() {
        return None;
    }
    let open_end = rest.ends_with("/**") || rest.ends_with("/*");
    rest = rest.trim_end_matches('*');
    while let Some(c) = rest.chars().next() {
        let (piece, taken) = match c {
            '*' if rest.starts_with("**/") => ("(?:.*/)?", 3),
            '*' if rest.starts_with("**") => (".*", 2),
            '*' => ("[^/]*", 1),
            '?' => ("[^/]", 1),
            '.' => ("\\.", 1),
            _ => ("", c.len_utf8()),
        };
        if piece.is_empty() {
            pattern.push(c)
        } else {
            pattern.push_str(piece)
        }
        rest = rest.get(taken..).unwrap_or_default();
    }
    if !open_end && pattern.ends_with(|c: char| c.is_ascii_alphanumeric()) && !source.ends_with('*') {
        pattern.push_str("\\b");
    }
    Pattern::parse(&pattern).is_ok().then_some(pattern)
}

/// A star that repeats nothing one would want repeated: at the beginning, or behind `/` or another star.
fn has_wild_star(source: &str) -> bool {
    let mut before = None;
    let mut found = false;
    for c in source.chars() {
        found |= c == '*' && matches!(before, None | Some('/' | '*' | ' '));
        before = Some(c);
    }
    found
}

/// The pattern without the look-around that stands at `at`, and what is true of it.
fn without_look_around(source: &str, at: usize) -> Option<(String, &'static str)> {
    let (before, from) = source.split_at_checked(at)?;
    let (mark, inner_from) = ["(?<=", "(?<!", "(?=", "(?!"]
        .iter()
        .find_map(|mark| from.strip_prefix(mark).map(|rest| (*mark, rest)))?;
    let end = end_of_group(inner_from)?;
    let (inner, after) = (inner_from.get(..end)?, inner_from.get(end.checked_add(1)?..)?);
    // a choice around it, or a group that holds it, would have to be taken apart
    if is_choice(before) || is_choice(after) || before.contains('(') && end_of_group(after).is_some() {
        return None;
    }
    let inner_group = if is_choice(inner) { format!("(?:{inner})") } else { inner.to_owned() };
    const SAME: &str = "is found in the same texts";
    match mark {
        "(?=" if after.is_empty() => Some((format!("{before}{inner_group}"), SAME)),
        "(?<=" if before.is_empty() => Some((format!("{inner_group}{after}"), SAME)),
        "(?!" if after.is_empty() => Some((format!("{before}(?:{}|$)", other_than(inner)?), SAME)),
        "(?<!" if before.is_empty() => Some((format!("(?:^|{}){after}", other_than(inner)?), SAME)),
        _ => None,
    }
}

/// The class of all characters but the one, or but those of the class, that stands here.
fn other_than(inner: &str) -> Option<String> {
    let mut chars = inner.chars();
    match (chars.next()?, chars.next(), chars.as_str()) {
        ('\\', Some(letter @ ('d' | 's' | 'w')), "") => Some(format!("\\{}", letter.to_ascii_uppercase())),
        ('\\', Some(letter @ ('D' | 'S' | 'W')), "") => Some(format!("\\{}", letter.to_ascii_lowercase())),
        ('\\', Some(sign), "") if !sign.is_ascii_alphanumeric() => Some(format!("[^\\{sign}]")),
        ('[', Some(first), rest) if first != '^' && first != ']' => {
            (end_of_class(inner)? == inner.len()).then(|| format!("[^{first}{rest}"))
        }
        (one, None, _) if !matches!(one, '.' | '^' | '$' | '\\' | '[' | '(' | '|') => {
            Some(format!("[^{one}]"))
        }
        _ => None,
    }
}

/// How many bytes a class takes, brackets included.
fn end_of_class(text: &str) -> Option<usize> {
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ']' => return at.checked_add(1),
            _ => {}
        }
    }
    None
}

/// The place of the bracket that closes a group whose inside begins here.
fn end_of_group(text: &str) -> Option<usize> {
    let mut depth = 0usize;
    for (at, c) in signs(text) {
        match c {
            '(' => depth = depth.saturating_add(1),
            ')' if depth == 0 => return Some(at),
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    None
}

/// Whether a `|` stands outside of all groups.
fn is_choice(text: &str) -> bool {
    let mut depth = 0usize;
    signs(text).any(|(_, c)| {
        match c {
            '(' => depth = depth.saturating_add(1),
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == '|' && depth == 0
    })
}

/// The characters that are neither escaped nor in a class.
fn signs(text: &str) -> impl Iterator<Item = (usize, char)> {
    let (mut escaped, mut in_class) = (false, false);
    text.char_indices().filter(move |(_, c)| {
        let means = !escaped && !in_class;
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '[' if !in_class => in_class = true,
            ']' if in_class => in_class = false,
            _ => {}
        }
        means && !matches!(c, '[' | '\\')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_become_patterns() {
        let check = |source: &str, want: Option<&str>| {
            assert_eq!(glob_meant(source).as_deref(), want, "{source}");
        };
        check("*.rs", Some(r"\.rs\b"));
        check("**/*.rs", Some(r"\.rs\b"));
        check("src/**", Some("src/"));
        check("src/*.rs", Some(r"src/[^/]*\.rs\b"));
        check("src/**/test_?.py", Some(r"src/(?:.*/)?test_[^/]\.py\b"));
        for pattern in ["rm.*", "a*", "foo.*bar", r"\.rs$", "/etc/.*", "exec|Write", "a/b", "*", "(*.rs)"] {
            check(pattern, None);
        }
    }

    #[test]
    fn look_arounds_are_written_out_where_that_is_mechanical() {
        let check = |source: &str, want: Option<&str>| {
            let at = Pattern::parse(source).unwrap_err().at;
            let got = of_pattern(source, at);
            assert_eq!(
                got.as_deref(),
                want.map(|new| format!("{} is found in the same texts", quoted(new))).as_deref(),
                "{source}"
            );
        };
        check("password(?=:)", Some("password:"));
        check("rm(?=\\s|$)", Some("rm(?:\\s|$)"));
        check("(?<=\\$)\\d+", Some("\\$\\d+"));
        check("(?<!x)rm", Some("(?:^|[^x])rm"));
        check("(?<![a-z])rm", Some("(?:^|[^a-z])rm"));
        check("foo(?!b)", Some("foo(?:[^b]|$)"));
        check("foo(?!\\w)", Some("foo(?:\\W|$)"));
        for kept in ["a|b(?=c)", "a(?=b)c", "foo(?!bar)", "(?!.*x).*", "(a(?=b))c", "(a)\\1", "a(?=b"] {
            check(kept, None);
        }
    }

    #[test]
    fn backslashes_are_shown_as_json_has_them() {
        assert_eq!(quoted("a+"), "`a+`");
        assert_eq!(quoted(r"\.rs"), r#"`\.rs` (in JSON: `"\\.rs"`)"#);
    }

    #[test]
    fn what_is_written_out_is_found_in_the_same_texts() {
        // by hand, as the engine has no look-around to compare with
        let new = of_pattern("foo(?!b)", Some(3)).unwrap();
        let new = Pattern::parse(new.split('`').nth(1).unwrap()).unwrap();
        for (text, found) in [("foo", true), ("fooa", true), ("foob", false), ("foob foo", true)] {
            assert_eq!(new.find(text).is_some(), found, "{text}");
        }
    }
}
