//! The findings as SARIF 2.1.0, for GitHub's code scanning and others. Only what such readers use: rules with their help,
//! results with a place, a message and a fingerprint that outlives a shift of lines.

use crate::failure::Failure;
use crate::snippet::Texts;
use hookgate_core::define::Problem;
use hookgate_workbench::lint::{RULES, Rule};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::path::Path;

const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";
/// The rule of all that keeps a file from being used.
const INVALID: &str = "invalid-definition";

pub(super) fn document(
    problems: &[Problem],
    warnings: &[Problem],
    texts: &mut Texts,
) -> Result<String, Failure> {
    let mut seen = HashMap::new();
    let mut results = Vec::new();
    for (level, findings) in [("error", problems), ("warning", warnings)] {
        for finding in findings {
            results.push(result(level, finding, texts, &mut seen));
        }
    }
    let invalid = json!({
        "id": INVALID,
        "shortDescription": {"text": "a hook file or test file that cannot be used"},
        "help": {"text": "the message says what was found and what is allowed"},
        "defaultConfiguration": {"level": "error"},
    });
    let rules: Vec<Value> = std::iter::once(invalid).chain(RULES.iter().map(described)).collect();
    let driver = json!({
        "name": "hookgate",
        "version": env!("CARGO_PKG_VERSION"),
        "semanticVersion": env!("CARGO_PKG_VERSION"),
        "informationUri": env!("CARGO_PKG_REPOSITORY"),
        "rules": rules,
    });
    let document = json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}],
    });
    serde_json::to_string_pretty(&document)
        .map_err(|error| Failure::new(format!("the problems cannot be written: {error}")))
}

fn described(rule: &Rule) -> Value {
    let page = format!("{}/blob/main/docs/check.md#{}", env!("CARGO_PKG_REPOSITORY"), rule.id);
    json!({
        "id": rule.id,
        "shortDescription": {"text": rule.about},
        "help": {"text": format!("an example, and how to mend it: {page}")},
        "helpUri": page,
        "defaultConfiguration": {"level": "warning"},
    })
}

fn result(level: &str, finding: &Problem, texts: &mut Texts, seen: &mut HashMap<String, usize>) -> Value {
    let rule = finding.rule.unwrap_or(INVALID);
    // the invalid ones come first in the list of rules
    let index = RULES.iter().position(|known| known.id == rule).map_or(0, |at| at.saturating_add(1));
    // GitHub shows no result without a line
    let region = match finding.place {
        Some(place) => {
            let end = texts.end_column(&finding.file, place).unwrap_or(place.column.saturating_add(1));
            json!({"startLine": place.line, "startColumn": place.column, "endLine": place.line, "endColumn": end})
        }
        None => json!({"startLine": 1}),
    };
    json!({
        "ruleId": rule,
        "ruleIndex": index,
        "level": level,
        "message": {"text": sentence(finding)},
        "locations": [{"physicalLocation": {
            "artifactLocation": {"uri": uri(&finding.file)},
            "region": region,
        }}],
        "partialFingerprints": {"hookgate/v1": fingerprint(finding, seen)},
    })
}

/// The whole sentence but for the place: hook, field, what is wrong, what helps.
fn sentence(finding: &Problem) -> String {
    let whole = Problem { file: String::new(), place: None, ..finding.clone() }.to_string();
    whole.trim_start_matches(": ").to_owned()
}

/// The same for the same finding wherever it moves in its file; equal ones are numbered.
fn fingerprint(finding: &Problem, seen: &mut HashMap<String, usize>) -> String {
    let label = finding.hook.as_ref().and_then(|hook| hook.label.as_deref()).unwrap_or_default();
    let field = finding.field.as_deref().unwrap_or_default();
    let parts = [&finding.file, label, field, finding.rule.unwrap_or(INVALID), &finding.message];
    let digest = Sha256::digest(parts.join("\0").as_bytes());
    let hash: String = digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    let number = seen.entry(hash.clone()).or_default();
    *number = number.saturating_add(1);
    format!("{hash}:{number}")
}

/// A file as a URI reference: relative where its path is, from the working directory.
fn uri(file: &str) -> String {
    let here = std::env::current_dir().unwrap_or_default();
    let path = Path::new(file);
    let path = path.strip_prefix(&here).unwrap_or(path);
    let text = path.to_string_lossy();
    let text = text.strip_prefix("./").unwrap_or(&text);
    let mut uri = String::from(if text.starts_with('/') { "file://" } else { "" });
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                uri.push(char::from(byte));
            }
            _ => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_uri_references() {
        assert_eq!(uri("./hooks/a b.json"), "hooks/a%20b.json");
        assert_eq!(uri("/etc/ü#.json"), "file:///etc/%C3%BC%23.json");
        let here = std::env::current_dir().unwrap().join("h/a.json");
        assert_eq!(uri(&here.display().to_string()), "h/a.json");
    }

    #[test]
    fn equal_findings_have_fingerprints_of_their_own() {
        let finding = Problem::of_file("a.json", "x");
        let mut seen = HashMap::new();
        let first = fingerprint(&finding, &mut seen);
        assert_ne!(first, fingerprint(&finding, &mut seen));
        let moved = Problem { place: Some(hookgate_core::define::Place { line: 7, column: 1 }), ..finding };
        assert_eq!(first, fingerprint(&moved, &mut HashMap::new()));
    }
}
