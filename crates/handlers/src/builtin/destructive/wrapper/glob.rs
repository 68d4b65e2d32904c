//! Program names written as patterns.

use super::super::call::base_name;

/// A program's name that a pattern means, if it means a dangerous one.
pub(in crate::builtin::destructive) fn globbed(word: &str) -> Option<&'static str> {
    let pattern = base_name(word);
    if !word.contains('/') || pattern.chars().all(|c| c == '*') {
        return None;
    }
    ["rm", "dd", "mkfs", "shred", "bash", "sh", "wipefs", "chmod", "chown"]
        .into_iter()
        .find(|name| glob_matches(pattern, name))
}

fn glob_matches(pattern: &str, name: &str) -> bool {
    let mut chars = pattern.chars();
    match chars.next() {
        None => name.is_empty(),
        Some('*') => {
            (0..=name.len()).any(|at| name.get(at..).is_some_and(|rest| glob_matches(chars.as_str(), rest)))
        }
        Some('[') => {
            let Some((set, rest)) = chars.as_str().split_once(']') else { return false };
            name.chars().next().is_some_and(|c| {
                set.contains(c) && glob_matches(rest, name.get(c.len_utf8()..).unwrap_or_default())
            })
        }
        Some(c) => name.chars().next().is_some_and(|first| {
            (c == '?' || c == first)
                && glob_matches(chars.as_str(), name.get(first.len_utf8()..).unwrap_or_default())
        }),
    }
}
