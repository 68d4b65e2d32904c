//! The version of the written format. A definition may name it by its `$schema`: `https://hookgate.dev/schema/hooks-1.json`
//! is version 1. Without that member, or with any other address (a file beside it, for an editor), a definition is read
//! as the version that this program knows.
//!
//! A version that is not known is a fault of the definition: a later one may mean something else by the same words, and
//! a rule that is misread is worse than none. Nothing here reads the rest differently for different versions.

use super::Fields;

/// The version that this program reads.
pub const VERSION: u32 = 1;

/// What stands before the version in the published address.
const BEFORE: &str = "hookgate.dev/schema/";

/// Whether the definition is of the version that this program reads; if not, the fault is noted.
pub(super) fn is_known(fields: &Fields<'_>) -> bool {
    let Some(address) = fields.text("$schema") else { return true };
    let named = address.strip_prefix("https://").or_else(|| address.strip_prefix("http://"));
    let Some(file) = named.and_then(|rest| rest.strip_prefix(BEFORE)) else { return true };
    let file = file.trim_end_matches('#');
    let version = file.strip_prefix("hooks-").and_then(|rest| rest.strip_suffix(".json"));
    let message = match version.and_then(|digits| digits.parse::<u32>().ok()) {
        Some(VERSION) => return true,
        Some(other) => {
            format!(
                "written for version {other} of the hook-file format; this program reads version {VERSION}"
            )
        }
        None => format!("`{file}` is no published schema; this program reads `hooks-{VERSION}.json`"),
    };
    let newer = version.and_then(|digits| digits.parse::<u32>().ok()).is_some_and(|other| other > VERSION);
    fields.refuse("$schema", message, newer.then(|| "a newer hookgate reads it".to_owned()));
    false
}

#[cfg(test)]
mod tests {
    use crate::action::ActionKinds;
    use crate::define::{read, schema};
    use crate::hook::Source;

    /// What is said of a hook that names this schema and has a member nobody knows; empty: nothing about the version.
    fn check(address: &str, expected: &str) {
        let text = serde_json::json!({"$schema": address, "target": "chat", "later": true}).to_string();
        let problems = read("h.json", &text, Source::User, &ActionKinds::standard()).problems;
        let got: Vec<String> = problems.iter().map(|problem| problem.message.clone()).collect();
        if expected.is_empty() {
            assert!(
                matches!(got.as_slice(), [only] if only.contains("unknown field `later`")),
                "{address}: {got:?}"
            );
        } else {
            assert_eq!(got, [expected], "{address}");
        }
    }

    #[test]
    fn a_version_that_is_not_known_is_refused_and_nothing_else_is_read() {
        for fine in [schema::SCHEMA_ID, "./hooks-2.json", "https://example.com/hooks-2.json", ""] {
            check(fine, "");
        }
        check(
            "https://hookgate.dev/schema/hooks-2.json",
            "written for version 2 of the hook-file format; this program reads version 1",
        );
        check(
            "http://hookgate.dev/schema/hooks-0.json#",
            "written for version 0 of the hook-file format; this program reads version 1",
        );
        check(
            "https://hookgate.dev/schema/hooks-1.1.json",
            "`hooks-1.1.json` is no published schema; this program reads `hooks-1.json`",
        );
    }

    #[test]
    fn the_published_schema_is_of_the_version_that_is_read() {
        assert_eq!(schema::SCHEMA_ID, format!("https://hookgate.dev/schema/hooks-{}.json", super::VERSION));
    }
}
