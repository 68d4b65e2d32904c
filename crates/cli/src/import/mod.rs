//! Reads an agent's own hook settings: what they say, what is wrong with them, and our hooks for what can be said so.
//!
//! One bad entry switches no other off, and nothing is guessed: what is not understood is told with its place. The file
//! is never changed. [`shape`] walks the file, [`advice`] says what is allowed and probably not meant, [`convert`]
//! writes our hooks.

mod advice;
mod convert;
mod shape;

use hookgate_agents::agent::Agent;
use serde_json::Value;

/// What came of a file.
#[derive(Debug, Default)]
pub(crate) struct Imported {
    /// Our hooks, one for each handler that can be said so.
    pub(crate) hooks: Vec<Value>,
    /// What is wrong, unusual or not carried over, each with its place.
    pub(crate) says: Vec<String>,
    /// Handlers that are right and that we have no words for.
    pub(crate) left: Vec<String>,
}

/// Reads a file's text.
pub(crate) fn import(agent: &'static dyn Agent, text: &str) -> Imported {
    let mut imported = Imported::default();
    for handler in shape::handlers(agent, text, &mut imported.says) {
        advice::look(agent, &handler, &mut imported.says);
        match convert::hook(agent, &handler) {
            Ok(hook) => imported.hooks.push(hook),
            Err(why) => imported.left.push(format!("{}: {why}", handler.place)),
        }
    }
    advice::repeated(&mut imported.says);
    imported
}

#[cfg(test)]
mod tests {
    use super::*;
    use hookgate_core::action::ActionKinds;
    use hookgate_core::define;
    use hookgate_core::hook::Source;
    use std::path::PathBuf;

    fn corpus() -> PathBuf {
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../corpus/configs")
    }

    fn index() -> Vec<Value> {
        let text = std::fs::read_to_string(corpus().join("index.json")).unwrap();
        serde_json::from_str::<Vec<Value>>(&text).unwrap()
    }

    fn read(file: &str) -> String {
        std::fs::read_to_string(corpus().join(file)).unwrap()
    }

    /// The words of a saying that must occur: places, names and numbers, not the sentence around them.
    fn key_words(saying: &str) -> Vec<String> {
        let plain = |c: char| c.is_alphanumeric() || "_.*$|".contains(c);
        let words = saying.split(|c: char| !plain(c)).filter(|word| word.len() > 3 && !word.contains(".."));
        let ordinary = [
            "this",
            "that",
            "into",
            "were",
            "only",
            "belongs",
            "there",
            "with",
            "from",
            "cannot",
            "written",
            "handler",
            "around",
            "needed",
            "does",
            "meant",
            "likely",
            "milliseconds",
            "seconds",
            "matches",
            "names",
            "rather",
            "guard",
            "allows",
            "inside",
            "read",
            "stdin",
            "given",
            "lines",
            "changed",
            "file",
            "program",
            "fails",
            "code",
        ];
        words.map(str::to_lowercase).filter(|word| !ordinary.contains(&word.as_str())).collect()
    }

    #[test]
    fn the_corpus_is_handled_as_its_index_says() {
        let mut n = 0;
        for entry in index() {
            let (file, name) = (entry["file"].as_str().unwrap(), entry["agent"].as_str().unwrap());
            let name = if name == "copilot" { "copilot-cli" } else { name };
            let Some(agent) = hookgate_agents::table::find(name) else { continue };
            let text = read(file);
            let imported = import(agent, &text);
            let said = imported.says.join("\n").to_lowercase();
            let wanted = entry["loader_should_say"].as_array().unwrap();
            assert_eq!(imported.says.is_empty(), wanted.is_empty(), "{file}: {said}");
            for saying in wanted
                .iter()
                .filter_map(Value::as_str)
                .filter(|saying| !saying.contains("file is not changed"))
            {
                let missing: Vec<String> =
                    key_words(saying).into_iter().filter(|word| !said.contains(word)).collect();
                assert!(missing.is_empty(), "{file}: `{saying}` lacks {missing:?} in:\n{said}");
            }
            assert_eq!(read(file), text, "never changed");
            let active = entry["still_active"].as_str().unwrap();
            let any = !(imported.hooks.is_empty() && imported.left.is_empty());
            // a matcher that fits nothing is carried over as it is, and told
            let none = active.starts_with("none") && active != "none fires";
            assert_eq!(any, !none, "{file}: {active}: {:?} {:?}", imported.hooks, imported.left);
            n += 1;
        }
        assert!(n >= 30, "{n}");
    }

    #[test]
    fn what_is_written_are_hooks_of_ours() {
        let mut n = 0;
        for entry in index() {
            let name = entry["agent"].as_str().unwrap().replace("copilot", "copilot-cli");
            let Some(agent) = hookgate_agents::table::find(&name) else { continue };
            let file = entry["file"].as_str().unwrap();
            let imported = import(agent, &read(file));
            let text = Value::Array(imported.hooks.clone()).to_string();
            let loaded = define::read("h.json", &text, Source::User, &ActionKinds::standard());
            assert!(loaded.problems.is_empty(), "{file}: {:?}", loaded.problems);
            n += loaded.hooks.len();
        }
        assert!(n > 20, "{n}");
    }

    #[test]
    fn our_own_formats_are_read_by_the_loader() {
        for entry in index() {
            let file = entry["file"].as_str().unwrap();
            if !matches!(entry["agent"].as_str().unwrap(), "json-hooks" | "agent-hooks") {
                continue;
            }
            let loaded = define::read(file, &read(file), Source::User, &ActionKinds::standard());
            // the loader wants a tenant and `agents` for that scope, and says so
            let right = entry["loader_should_say"].as_array().unwrap().is_empty()
                && !file.ends_with("01-three-scopes.json");
            assert_eq!(loaded.problems.is_empty(), right, "{file}: {:?}", loaded.problems);
        }
    }

    #[test]
    fn a_handler_in_our_words() {
        let agent = hookgate_agents::table::find("claude-code").unwrap();
        let text = r#"{"hooks":{"PreToolUse":[{"matcher":"Edit|Write","hooks":[{"type":"command","command":"./g.sh","timeout":5}]}]}}"#;
        let imported = import(agent, text);
        assert_eq!(
            imported.hooks,
            [serde_json::json!({
                "id": "claude-code/PreToolUse-0-0", "event": "pre_tool_use", "matcher": "Edit|Write", "timeout_ms": 5000,
                "handler": {"type": "command", "shell": "./g.sh"}
            })]
        );
    }
}
