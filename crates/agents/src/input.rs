//! A tool's input in our words: the agent's own members stay, and beside them stand those that rules can count on.
//!
//! | kind | members |
//! |---|---|
//! | exec | `command`, `cwd` |
//! | write_file | `path`, `content` |
//! | edit_file | `path`, `paths` of a patch, `old`, `new`, `content` |
//! | read_file | `path`, `paths` |
//! | search | `query`, `path` |
//! | fetch_page | `url`, `urls` |
//! | web_search | `query` |
//! | subagent | `prompt`, `agentType` |
//! | mcp | `mcp.server`, `mcp.tool` |
//!
//! Paths are absolute where the working directory is known. The member that a kind is about is `null` where it was not
//! found: a rule must be able to tell "unknown" from "not there".

use crate::read::{Alias, Read};
use crate::tools::Tool;
use serde_json::{Map, Value, json};

const COMMAND: &[&str] = &["command", "cmd", "CommandLine", "command_line", "script"];
const CWD: &[&str] = &["cwd", "Cwd", "workdir", "directory", "dir_path"];
const PATH: &[&str] = &[
    "file_path",
    "filePath",
    "path",
    "notebook_path",
    "TargetFile",
    "AbsolutePath",
    "target_file",
    "dir_path",
];
const CONTENT: &[&str] = &["content", "file_text", "new_text", "new_source", "CodeContent"];
const OLD: &[&str] = &["old_string", "oldString", "old_str", "old_text", "before"];
const NEW: &[&str] = &["new_string", "newString", "new_str", "new_text", "new_source", "after"];
const QUERY: &[&str] = &["query", "pattern"];
const URL: &[&str] = &["url", "Url"];
const PROMPT: &[&str] = &["prompt", "message", "task", "description"];
const AGENT_TYPE: &[&str] = &["subagent_type", "agent_type", "agent_name"];

/// The input of a call in our words, and what each new word stands for.
pub(crate) fn canonical(
    tool: Option<Tool>,
    native: &Value,
    cwd: Option<&str>,
    mcp: Option<(Option<&str>, Option<&str>)>,
) -> (Value, Vec<Alias>) {
    let members = match native {
        Value::Object(members) => members.clone(),
        Value::Null => Map::new(),
        // nobody knows what it means, but text rules can look at it
        other => Map::from_iter([("raw".to_owned(), other.clone())]),
    };
    let mut input = Input { native: members.clone(), members, aliases: Vec::new(), cwd };
    match tool {
        Some(Tool::Exec) => input.exec(),
        Some(Tool::WriteFile) => {
            input.path(true);
            input.one("content", CONTENT, true);
        }
        Some(Tool::EditFile) => input.edit(),
        Some(Tool::Patch) => input.patch(),
        Some(Tool::WriteWithWord) => {
            input.rename("command", "action");
            input.path(true);
            input.one("content", CONTENT, true);
        }
        Some(Tool::WriteOrEdit) => {
            input.rename("command", "action");
            input.edit();
        }
        Some(Tool::ReadFile) => input.path(true),
        Some(Tool::Search) => {
            input.one("query", QUERY, false);
            input.joined("query", "queries", &[]);
            input.unknown("query");
            input.path(false);
        }
        Some(Tool::FetchPage) => input.fetch(),
        Some(Tool::WebSearch) => input.one("query", QUERY, true),
        Some(Tool::Subagent) => {
            input.one("prompt", PROMPT, true);
            input.one("agentType", AGENT_TYPE, false);
        }
        Some(Tool::Mcp) => {
            let (server, tool) = mcp.unwrap_or((None, None));
            input.derived("mcp", json!({"server": server, "tool": tool}));
        }
        None => {}
    }
    (Value::Object(input.members), input.aliases)
}

/// An input that is being put into our words.
struct Input<'a> {
    native: Map<String, Value>,
    members: Map<String, Value>,
    aliases: Vec<Alias>,
    cwd: Option<&'a str>,
}

impl Input<'_> {
    fn exec(&mut self) {
        self.one("command", COMMAND, false);
        // several lines in one call
        self.joined("command", "commands", &["command"]);
        self.unknown("command");
        self.one("cwd", CWD, false);
        if !self.members.contains_key("cwd")
            && let Some(cwd) = self.cwd
        {
            self.derived("cwd", cwd.into());
        } else if let Some(at) =
            self.members.get("cwd").and_then(Value::as_str).and_then(|at| self.absolute(at))
        {
            self.members.insert("cwd".into(), at.into());
        }
    }

    fn edit(&mut self) {
        self.path(true);
        self.one("old", OLD, false);
        self.one("new", NEW, false);
        self.joined("old", "edits", OLD);
        self.joined("new", "edits", NEW);
        self.one("content", CONTENT, false);
    }

    /// A patch names its files in its text.
    fn patch(&mut self) {
        self.rename("command", "patch");
        let text = self
            .members
            .get("patch")
            .or(self.members.get("input"))
            .and_then(Value::as_str)
            .unwrap_or_default();
        let paths: Vec<String> = text.lines().filter_map(patched).map(str::to_owned).collect();
        let content = text.to_owned();
        self.paths(paths);
        self.unknown("path");
        if !content.is_empty() {
            self.derived("content", content.into());
        }
    }

    fn fetch(&mut self) {
        self.one("url", URL, false);
        let mut urls = self.listed("requests", &["url"]);
        urls.extend(self.listed("urls", &[]));
        if let Some(prompt) = self.members.get("prompt").and_then(Value::as_str)
            && !self.members.contains_key("url")
        {
            urls.extend(addresses(prompt));
        }
        if let Some(first) = urls.first().cloned() {
            self.derived("url", first.into());
            self.derived("urls", urls.into());
        }
        self.unknown("url");
    }

    /// `path`, absolute, and `paths` where there are several.
    fn path(&mut self, primary: bool) {
        self.one("path", PATH, false);
        match self.members.get("path").and_then(Value::as_str).map(|path| self.absolute(path)) {
            Some(Some(path)) => {
                let from_native = self.aliases.iter().any(|alias| alias.ours == "path");
                self.members.insert("path".into(), path.into());
                if !from_native {
                    self.aliases.push(Alias { ours: "path", theirs: Some("path".into()), renamed: false });
                }
            }
            Some(None) => {}
            None => {
                let mut paths = self.listed("files", &["path", "file_path"]);
                paths.extend(self.listed("operations", &["path"]));
                paths.extend(self.listed("paths", &[]));
                self.paths(paths);
            }
        }
        if primary {
            self.unknown("path");
        }
    }

    fn paths(&mut self, paths: Vec<String>) {
        let paths: Vec<String> = paths.into_iter().map(|path| self.absolute(&path).unwrap_or(path)).collect();
        if let Some(first) = paths.first().cloned() {
            self.derived("path", first.into());
            self.derived("paths", paths.into());
        }
    }

    /// The path from the root, if it is not one and the working directory is known.
    fn absolute(&self, path: &str) -> Option<String> {
        let rooted = path.starts_with(['/', '\\', '~']) || path.as_bytes().get(1) == Some(&b':');
        let cwd = self.cwd.filter(|cwd| !cwd.is_empty() && !rooted && !path.is_empty())?;
        Some(format!("{}/{}", cwd.trim_end_matches('/'), path.strip_prefix("./").unwrap_or(path)))
    }

    /// A member under our name, from the first of the agent's names that is there.
    fn one(&mut self, ours: &'static str, theirs: &[&str], primary: bool) {
        if !self.members.contains_key(ours)
            && let Some(name) =
                theirs.iter().find(|name| self.native.get(**name).is_some_and(|value| !value.is_null()))
            && let Some(value) = self.native.get(*name).cloned()
        {
            self.members.insert(ours.to_owned(), value);
            self.aliases.push(Alias { ours, theirs: Some((*name).to_owned()), renamed: false });
        }
        if primary {
            self.unknown(ours);
        }
    }

    /// A member that is not the agent's own; it takes nobody's place.
    fn derived(&mut self, ours: &'static str, value: Value) {
        if !self.members.contains_key(ours) {
            self.members.insert(ours.to_owned(), value);
            self.aliases.push(Alias { ours, theirs: None, renamed: false });
        }
    }

    /// The texts of a list under one name, a line each.
    fn joined(&mut self, ours: &'static str, list: &str, names: &[&str]) {
        let texts = self.listed(list, names);
        if !texts.is_empty() {
            self.derived(ours, texts.join("\n").into());
        }
    }

    /// The texts of a list: its items, or the first of these members in them. A text that holds JSON is looked into.
    fn listed(&self, list: &str, names: &[&str]) -> Vec<String> {
        let Some(value) = self.native.get(list) else { return Vec::new() };
        let items = match value {
            Value::Array(items) => items.clone(),
            Value::String(text) => match serde_json::from_str(text) {
                Ok(Value::Array(items)) => items,
                _ => vec![value.clone()],
            },
            _ => return Vec::new(),
        };
        let text = |item: &Value| match item {
            Value::String(text) => Some(text.clone()),
            item => names.iter().find_map(|name| item.get(name)).and_then(Value::as_str).map(str::to_owned),
        };
        items.iter().filter_map(text).collect()
    }

    fn rename(&mut self, theirs: &'static str, ours: &'static str) {
        if let Some(value) = self.members.shift_remove(theirs) {
            self.members.insert(ours.to_owned(), value);
            self.aliases.push(Alias { ours, theirs: Some(theirs.to_owned()), renamed: true });
        }
    }

    /// Says that a member is not known, if it is not there.
    fn unknown(&mut self, ours: &'static str) {
        self.derived(ours, Value::Null);
    }
}

/// The file that a line of a patch names.
fn patched(line: &str) -> Option<&str> {
    const MARKS: [&str; 4] = ["*** Add File:", "*** Update File:", "*** Delete File:", "*** Move to:"];
    MARKS.iter().find_map(|mark| line.trim_start().strip_prefix(mark)).map(str::trim)
}

/// The web addresses in a text.
fn addresses(text: &str) -> Vec<String> {
    let ends = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '<' | '>' | '`');
    let words = text.split(ends).filter_map(|word| word.find("http").and_then(|at| word.get(at..)));
    let is_address = |word: &&str| word.starts_with("http://") || word.starts_with("https://");
    words.filter(is_address).map(|word| word.trim_end_matches([',', '.', ')', ']', ';']).to_owned()).collect()
}

impl Read {
    /// A changed input in the agent's own shape; none if the change cannot be carried over.
    pub fn native(&self, before: &Value, changed: &Value) -> Option<Value> {
        let (before, changed) = (before.as_object()?, changed.as_object()?);
        let mut native = self.native_input.as_object()?.clone();
        let differs = |name: &str| changed.get(name) != before.get(name);
        let mut lost = false;
        for alias in self.aliases.iter().filter(|alias| differs(alias.ours)) {
            match (&alias.theirs, changed.get(alias.ours)) {
                (Some(theirs), Some(value)) => {
                    native.insert(theirs.clone(), value.clone());
                }
                _ => lost = true,
            }
        }
        let is_alias = |name: &str| self.aliases.iter().any(|alias| alias.ours == name);
        for (name, value) in changed.iter().filter(|(name, _)| differs(name) && !is_alias(name)) {
            native.insert(name.clone(), value.clone());
            // what was put together from it changed with it
            lost = false;
        }
        (!lost).then_some(Value::Object(native))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(tool: Tool, native: Value, want: Value) {
        let (got, _) = canonical(Some(tool), &native, Some("/w"), None);
        assert_eq!(got, want);
    }

    #[test]
    fn our_words_stand_beside_the_agents() {
        check(Tool::Exec, json!({"command": "ls"}), json!({"command": "ls", "cwd": "/w"}));
        check(
            Tool::Exec,
            json!({"cmd": "ls", "cwd": "."}),
            json!({"cmd": "ls", "cwd": "/w/.", "command": "ls"}),
        );
        check(
            Tool::Exec,
            json!({"commands": ["a", {"command": "b"}]}),
            json!({"commands": ["a", {"command": "b"}], "command": "a\nb", "cwd": "/w"}),
        );
        check(Tool::Exec, json!({"argv": ["rm"]}), json!({"argv": ["rm"], "command": null, "cwd": "/w"}));
        check(Tool::Exec, json!("ls"), json!({"raw": "ls", "command": null, "cwd": "/w"}));
        check(
            Tool::WriteFile,
            json!({"filePath": "a.txt", "content": "x"}),
            json!({"filePath": "a.txt", "content": "x", "path": "/w/a.txt"}),
        );
        check(Tool::ReadFile, json!({"path": "./a"}), json!({"path": "/w/a"}));
        check(
            Tool::ReadFile,
            json!({"files": [{"path": "/a"}, {"path": "b"}]}),
            json!({"files": [{"path": "/a"}, {"path": "b"}], "path": "/a", "paths": ["/a", "/w/b"]}),
        );
        check(Tool::WriteOrEdit, json!({"command": "create"}), json!({"action": "create", "path": null}));
        check(
            Tool::FetchPage,
            json!({"prompt": "read https://a.example/x, please"}),
            json!({"prompt": "read https://a.example/x, please", "url": "https://a.example/x", "urls": ["https://a.example/x"]}),
        );
        let patch =
            "*** Begin Patch\n*** Add File: a\n+x\n*** Update File: b\n*** Move to: /c\n*** End Patch\n";
        check(
            Tool::Patch,
            json!({"command": patch}),
            json!({"patch": patch, "path": "/w/a", "paths": ["/w/a", "/w/b", "/c"], "content": patch}),
        );
    }
}
