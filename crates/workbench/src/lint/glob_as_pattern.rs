//! A file glob in the place of a pattern: `src/*.rs` means something else there, and `*.rs` cannot be one (that is an
//! error of its own).

use super::condition_pattern::patterns;
use super::rule::{Notes, Rule};
use hookgate_core::define::{glob_meant, quoted};
use hookgate_core::hook::{Hook, Listens};

pub(super) const RULE: Rule =
    Rule { id: "glob-as-pattern", about: "a file glob where a pattern is read", look: Some(look) };

fn look(hooks: &[&Hook], notes: &mut Notes<'_>) {
    for hook in hooks {
        let (matcher, regex) = match &hook.listens {
            Listens::Point { filter, .. } => (filter.matcher.as_ref(), filter.regex.as_ref()),
            other => (None, other.regex()),
        };
        if let Some(regex) = regex
            && let Some(meant) = glob_meant(regex.source())
        {
            let message = format!("`{}` is a pattern, not a file glob", regex.source());
            notes.add(hook, "regex", message, &format!("{} was probably meant", quoted(&meant)));
        }
        if let Some(matcher) = matcher
            && glob_meant(matcher.source()).is_some()
            && !matcher.source().ends_with('*')
        {
            let message = format!("`{}` names files, and a matcher is for names of tools", matcher.source());
            let help = "ask for files in the condition, such as `has(toolInput.path) && toolInput.path.endsWith('.rs')`";
            notes.add(hook, "matcher", message, help);
        }
        for pattern in patterns(hook) {
            if let Some(meant) = glob_meant(&pattern) {
                let message = format!("`{pattern}` is a pattern in `matches()`, not a file glob");
                notes.add(hook, "if_expr", message, &in_condition(&pattern, &meant));
            }
        }
    }
}

/// What to write in a condition, where a backslash would need another one.
fn in_condition(glob: &str, meant: &str) -> String {
    let ending = glob.trim_start_matches(['*', '/']);
    let is_ending = ending.starts_with('.') && !ending.contains(['*', '/', '?']);
    if is_ending {
        return format!("`endsWith('{ending}')` was probably meant");
    }
    let anchored = meant.strip_suffix("\\b").map_or_else(|| meant.to_owned(), |meant| format!("{meant}$"));
    format!("`matches('{}')` was probably meant", anchored.replace("\\.", "[.]"))
}

#[cfg(test)]
mod tests {
    use super::super::rule::tests::check;
    use super::RULE;

    #[test]
    fn globs() {
        let gate = |fields: &str, want: &[&str]| {
            let text =
                format!(r#"{{"event":"pre_tool_use",{fields},"handler":{{"type":"script","source":"x"}}}}"#);
            check(RULE.id, &text, want);
        };
        gate(
            r#""regex":"src/*.rs""#,
            &[r#"`src/[^/]*\.rs\b` (in JSON: `"src/[^/]*\\.rs\\b"`) was probably meant"#],
        );
        gate(r#""matcher":"src/*.rs""#, &["matcher: `src/*.rs` names files"]);
        gate(r#""matcher":"mcp__*""#, &["`mcp__.*` was probably meant"]);
        gate(r#""if_expr":"toolInput.path.matches('*.rs')""#, &["`endsWith('.rs')` was probably meant"]);
        gate(r#""if_expr":"toolInput.path.matches('src/*.rs')""#, &["`matches('src/[^/]*[.]rs$')`"]);
        gate(r#""regex":"rm -rf /.*""#, &[]);
        gate(r#""regex":"src/[^/]*\\.rs""#, &[]);
        gate(r#""matcher":"mcp__.*""#, &[]);
        gate(r#""if_expr":"toolInput.path.matches('/etc/.*')""#, &[]);
        check(RULE.id, r#"{"target":"stream","regex":"logs/*.txt"}"#, &["regex: `logs/*.txt`"]);
        check(RULE.id, r#"{"target":"stream","regex":"[a-z]*password"}"#, &[]);
    }
}
