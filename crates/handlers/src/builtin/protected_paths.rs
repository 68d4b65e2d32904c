//! `builtin/protected_paths`: no tool writes to these paths, and no shell line does as far as its text tells.
//!
//! | path | meaning |
//! | --- | --- |
//! | `.env`, `.git/` | a file or folder of this name, wherever it lies, with all in it |
//! | `config/*.pem` | the same; `*` and `?` stand for any signs but `/` |
//! | `~/.ssh` | from the home folder, also written `/home/…`, `/Users/…`, `/root` |
//! | `/etc` | from the root |
//!
//! Letter case is not minded. Links are not followed: nothing is read.

use super::destructive::{Danger, Destructive, Shell};
use super::destructive_hook::{Line, line};
use super::settings::Settings;
use super::{Asked, Made, SHELL_TOOLS};
use hookgate_core::future::BoxFuture;
use hookgate_core::handler::{Answer, Call, Fault, Handler};
use serde_json::Value;

const STANDARD_PATHS: &[&str] = &[
    ".env",
    ".git",
    "~/.ssh",
    "~/.aws",
    "~/.gnupg",
    "/etc",
    // a coding agent's settings can switch its hooks off
    ".claude",
    ".cursor",
    ".codex",
    ".gemini",
    ".qwen",
    ".copilot",
    ".github/hooks",
    ".cline",
    ".clinerules",
    ".opencode",
    ".kiro",
    ".windsurf",
    ".factory",
    "hookgate.toml",
];
const WRITE_TOOLS: &[&str] = &[
    "write_file",
    "edit_file",
    "create_file",
    "delete_file",
    "move_file",
    "apply_patch",
    "Write",
    "Edit",
    "MultiEdit",
    "NotebookEdit",
    "write",
    "edit",
    "replace",
    "str_replace_editor",
    "str_replace_based_edit_tool",
];
/// Members of a tool's input that name a file.
const PATH_FIELDS: &[&str] = &[
    "path",
    "file_path",
    "filePath",
    "file",
    "filename",
    "target_file",
    "notebook_path",
    "destination",
    "to",
    "source",
    "from",
    "target",
    "old_path",
    "new_path",
];

pub(super) fn make(settings: &Settings<'_>) -> Result<Made, String> {
    let mut paths = settings.texts("paths")?;
    if paths.is_empty() {
        paths = STANDARD_PATHS.iter().map(|path| (*path).to_owned()).collect();
    }
    let standard: Vec<&str> = WRITE_TOOLS.iter().chain(SHELL_TOOLS).copied().collect();
    Ok(Made::Asked(Asked::new(Protection { paths }).for_tools(&standard, settings.texts("tools")?)))
}

#[derive(Debug)]
struct Protection {
    paths: Vec<String>,
}

impl Handler for Protection {
    fn ask<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Result<Answer, Fault>> {
        Box::pin(async move { Ok(self.answer(call)) })
    }
}

impl Protection {
    fn answer(&self, call: Call<'_>) -> Answer {
        let blocked = |reason: String| Answer { reason: Some(reason), ..Answer::with_decision("block") };
        let touched = match call.facts.get("toolInput").map(touched) {
            None => return Answer::with_decision("allow"),
            Some(Ok(touched)) => touched,
            Some(Err(danger)) => {
                return blocked(format!("what it writes to cannot be told: {}", danger.what));
            }
        };
        let hit = touched.iter().find_map(|path| {
            let plain = Destructive::plain_path(path).to_lowercase();
            self.paths.iter().find(|glob| protects(glob, &plain)).map(|glob| (path, glob))
        });
        match hit {
            None => Answer::with_decision("allow"),
            Some((path, glob)) => {
                let path: String = path.chars().filter(|c| !c.is_control()).take(120).collect();
                blocked(format!("`{path}` is protected (`{glob}`)"))
            }
        }
    }
}

/// The paths that a tool call writes to.
fn touched(input: &Value) -> Result<Vec<String>, Danger> {
    let mut paths: Vec<String> = PATH_FIELDS
        .iter()
        .filter_map(|name| input.get(name).and_then(Value::as_str))
        .map(str::to_owned)
        .collect();
    if let Some(patch) = input.get("patch").or(input.get("input")).and_then(Value::as_str) {
        paths.extend(patch.lines().filter_map(patched));
    }
    match line(input) {
        Some(Line::Text(text)) => paths.extend(Destructive::written(text, Shell::Bash)?),
        Some(Line::Words(words)) => paths.extend(Destructive::written_by_words(words)?),
        None => {}
    }
    Ok(paths)
}

/// The file that a line of a patch names.
fn patched(line: &str) -> Option<String> {
    let marks = [
        "*** Update File: ",
        "*** Add File: ",
        "*** Delete File: ",
        "*** Move to: ",
        "+++ b/",
        "--- a/",
        "+++ ",
    ];
    marks.iter().find_map(|mark| line.strip_prefix(mark)).map(|path| path.trim().to_owned())
}

/// Does a glob name this plain path in lower case, or a folder that it is in?
fn protects(glob: &str, path: &str) -> bool {
    let glob = glob.trim_end_matches('/').to_lowercase();
    if let Some(rest) = glob.strip_prefix("~/") {
        return from_home(path).is_some_and(|path| begins(rest, path));
    }
    if let Some(rest) = glob.strip_prefix('/') {
        return path.strip_prefix('/').is_some_and(|path| begins(rest, path));
    }
    let glob = glob.trim_start_matches("./").trim_start_matches("**/");
    let after_slash = path.match_indices('/').map(|(at, _)| at + 1);
    std::iter::once(0).chain(after_slash).any(|from| path.get(from..).is_some_and(|rest| begins(glob, rest)))
}

fn from_home(path: &str) -> Option<&str> {
    if let Some(rest) = path.strip_prefix("~/").or(path.strip_prefix("/root/")) {
        return Some(rest);
    }
    let rest = path.strip_prefix("/home/").or(path.strip_prefix("/users/"))?;
    rest.split_once('/').map(|(_, rest)| rest)
}

/// Do the first parts of the path match all parts of the glob?
fn begins(glob: &str, path: &str) -> bool {
    let mut path = path.split('/');
    glob.split('/').all(|part| path.next().is_some_and(|name| matches(part, name)))
}

/// One part: `*` and `?`. Steps back to the last `*` only, so the time is bounded by the product of the lengths.
fn matches(glob: &str, name: &str) -> bool {
    let (mut glob, mut name) = (glob, name);
    let mut retry: Option<(&str, &str)> = None;
    loop {
        let (g, n) = (glob.chars().next(), name.chars().next());
        match (g, n) {
            (Some('*'), _) => {
                glob = after(glob, '*');
                retry = Some((glob, name));
            }
            (Some(g), Some(n)) if g == '?' || g == n => {
                glob = after(glob, g);
                name = after(name, n);
            }
            (None, None) => return true,
            _ => match retry {
                Some((from, rest)) if !rest.is_empty() => {
                    let rest = rest.chars().next().map_or("", |c| after(rest, c));
                    (glob, name) = (from, rest);
                    retry = Some((from, rest));
                }
                _ => return false,
            },
        }
    }
}

fn after(text: &str, c: char) -> &str {
    text.get(c.len_utf8()..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn globs() {
        let check = |glob: &str, path: &str, want: bool| {
            let plain = Destructive::plain_path(path).to_lowercase();
            assert_eq!(protects(glob, &plain), want, "{glob} {path}");
        };
        check(".env", ".env", true);
        check(".env", "a/b/.env", true);
        check(".env", ".env.example", false);
        check(".env*", ".env.local", true);
        check(".git/", "x/.git/config", true);
        check(".git", ".github/workflows/ci.yml", false);
        check("~/.ssh", "~/.ssh/id", true);
        check("~/.ssh", "/home/dev/.ssh/id", true);
        check("~/.ssh", "/root/.ssh", true);
        check("/etc", "/etc/hosts", true);
        check("/etc", "/usr/../etc/hosts", true);
        check("/etc", "etc/hosts", false);
        check("config/*.pem", "a/config/x.pem", true);
        check("*a*b*c", "xaybzc", true);
        check("*a*b*c", "xaybz", false);
    }

    #[test]
    fn writes_are_seen_in_fields_patches_and_lines() {
        let check = |input: Value, want: &str| {
            let touched = touched(&input).unwrap();
            assert!(touched.iter().any(|path| path == want), "{touched:?}");
        };
        check(json!({"path": ".env", "content": "x"}), ".env");
        check(json!({"patch": "*** Begin Patch\n*** Update File: .env\n"}), ".env");
        check(json!({"command": "echo x > .env"}), ".env");
        check(json!({"command": "sudo sh -c 'cp a .git/config'"}), ".git/config");
        check(json!({"command": ["bash", "-lc", "sed -i s/a/b/ .env"]}), ".env");
        assert!(touched(&json!({"command": "cat .env | grep x"})).unwrap().is_empty());
    }
}
