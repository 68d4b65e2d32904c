//! The pages under `docs/reference`, made from the types: hook files and `hookgate.toml` from their JSON Schemas, the
//! command line from clap. The test below holds them to what the program says; `HOOKGATE_UPDATE=1` writes them anew.

mod command_line;
mod schema_page;

use crate::config::ConfigFile;
use hookgate_core::define::schema;
use std::path::PathBuf;

/// Above each page: where it comes from.
const MADE: &str =
    "<!-- made from the types; `HOOKGATE_UPDATE=1 cargo test -p hookgate --lib reference` writes it anew -->";

const HOOK_FILES: &str = "\
A hook file is JSON: one definition, or a list of them. With `target` it is a JSON hook, with `event` and `handler` a
lifecycle hook. A field that does not stand here is an error. `hookgate schema` prints the same as a JSON Schema; name
its address in `$schema` for an editor.";

const CONFIGURATION: &str = "\
`hookgate.toml` is found upward from the working directory; `--config` names another. A key that does not stand here is an
error. Relative paths are meant from the file's folder. Flags beat the environment, which beats the file; only for the hooks
folder the file beats `LLM_CHAT_HOOKS_DIR`. `hookgate schema --configuration` prints the same as a JSON Schema. The names and
settings under `[builtin]`: [built-in hooks](../handlers/builtin.md).";

fn pages() -> [(&'static str, String); 3] {
    let hooks = serde_json::to_value(schema::hook_file()).unwrap();
    let config = serde_json::to_value(ConfigFile::schema()).unwrap();
    [
        ("hook-files.md", schema_page::hooks("Hook files", &format!("{MADE}\n\n{HOOK_FILES}"), &hooks)),
        (
            "configuration.md",
            schema_page::tables("Configuration", &format!("{MADE}\n\n{CONFIGURATION}"), &config),
        ),
        ("command-line.md", command_line::page("Command line", MADE)),
    ]
}

#[test]
fn is_current() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference");
    for (name, page) in pages() {
        let path = folder.join(name);
        if std::env::var_os("HOOKGATE_UPDATE").is_some() {
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(&path, page).unwrap();
        } else {
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            assert!(text == page, "{} is not current", path.display());
        }
    }
}
