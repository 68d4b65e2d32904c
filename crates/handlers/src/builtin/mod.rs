//! Hooks that are part of the program. Each is off until a configuration enables it, and trusted
//! ([`Source::Builtin`]): only they may change input, and only the fields in their line of [`ALL`].
//!
//! | name | listens to | settings |
//! | --- | --- | --- |
//! | `destructive` | pre_tool_use | `tools`, `shell` (`bash`, `windows`) |
//! | `secrets` | pre_tool_use | `tools`, `kinds` (`secret`, `pii`) |
//! | `secrets_stream` | chunk (answer, thoughts, arguments) | `kinds`, `resend`, `redact` |
//! | `pii_prompt` | user_prompt_submit | |
//! | `pii_tools` | pre_tool_use | `tools` |
//! | `protected_paths` | pre_tool_use | `tools`, `paths` |
//! | `policy_text` | pre_response | `text`, `mode` (`append`, `send`) |
//!
//! All take `priority` and, where they are asked, `timeout_ms`. `tools` adds names to the built-in list, where there is one. Nothing here does
//! IO; what is known of a command or a path is its text.

mod destructive_hook;
mod pii;
mod policy_text;
mod protected_paths;
mod secrets_hook;
mod secrets_stream;
mod settings;
mod texts;

pub mod destructive;
pub mod secrets;

use hookgate_core::action::Action;
use hookgate_core::event::ChunkKind;
use hookgate_core::filter::Filter;
use hookgate_core::handler::{Fallback, Handler, HandlerKind, HandlerSpec, Mode, Withholds};
use hookgate_core::hook::{Hook, Listens, Reach, Source, Work};
use hookgate_core::pattern::Pattern;
use hookgate_core::point::Point;
use hookgate_core::scan::Scan;
use hookgate_core::version::Version;
use hookgate_core::word::WordSet;
use serde_json::{Map, Value};
use settings::Settings;
use std::sync::Arc;
use std::time::Duration;

/// A built-in hook.
#[derive(Debug)]
pub struct Builtin {
    /// Its name in the configuration; the hook's id is `builtin/<name>`.
    pub name: &'static str,
    /// Where it listens.
    pub point: Point,
    /// What it does, in one line.
    pub summary: &'static str,
    /// The fields of the input that it may change.
    pub changes: &'static [&'static str],
    settings: &'static [&'static str],
    make: fn(&Settings<'_>) -> Result<Made, String>,
}

/// What a built-in hook's own file makes of its settings.
enum Made {
    Asked(Asked),
    Streamed(Streamed),
}

/// A hook of the lifecycle that is asked.
struct Asked {
    handler: Arc<dyn Handler>,
    /// Only these tools; none: all.
    tools: Option<Vec<String>>,
    mode: Mode,
}

/// A hook that looks at the answer as it arrives.
struct Streamed {
    kinds: WordSet<ChunkKind>,
    scan: Arc<dyn Scan>,
    actions: Vec<Box<dyn Action>>,
}

impl Asked {
    fn new(handler: impl Handler + 'static) -> Asked {
        Asked { handler: Arc::new(handler), tools: None, mode: Mode::Append }
    }

    fn for_tools(self, standard: &[&str], more: Vec<String>) -> Asked {
        let tools = standard.iter().map(|name| (*name).to_owned()).chain(more).collect();
        Asked { tools: Some(tools), ..self }
    }
}

/// All of them.
pub static ALL: &[Builtin] = &[
    Builtin {
        name: "destructive",
        point: Point::PreToolUse,
        summary: "blocks shell lines that delete, overwrite, stop or open up what is not made again",
        changes: &[],
        settings: &["tools", "shell"],
        make: destructive_hook::make,
    },
    Builtin {
        name: "secrets",
        point: Point::PreToolUse,
        summary: "blocks tool calls whose input holds a credential",
        changes: &[],
        settings: &["tools", "kinds"],
        make: secrets_hook::make,
    },
    Builtin {
        name: "secrets_stream",
        point: Point::Chunk,
        summary: "withdraws an answer in which a credential appears, or replaces the credential",
        changes: &[],
        settings: &["kinds", "resend", "redact"],
        make: secrets_stream::make,
    },
    Builtin {
        name: "pii_prompt",
        point: Point::UserPromptSubmit,
        summary: "replaces personal data in what the user wrote",
        changes: &["rawInput"],
        settings: &[],
        make: pii::make_for_prompts,
    },
    Builtin {
        name: "pii_tools",
        point: Point::PreToolUse,
        summary: "replaces personal data in the input of tools",
        changes: &["toolInput"],
        settings: &["tools"],
        make: pii::make_for_tools,
    },
    Builtin {
        name: "protected_paths",
        point: Point::PreToolUse,
        summary: "blocks tools and shell lines that write to protected paths",
        changes: &[],
        settings: &["tools", "paths"],
        make: protected_paths::make,
    },
    Builtin {
        name: "policy_text",
        point: Point::PreResponse,
        summary: "adds a configured text to each answer",
        changes: &[],
        settings: &["text", "mode"],
        make: policy_text::make,
    },
];

/// Tools that run a shell line.
const SHELL_TOOLS: &[&str] =
    &["exec", "shell", "bash", "sh", "Bash", "Shell", "run_command", "execute_command", "run_shell_command"];
/// Tools that run a line of PowerShell or cmd.
const WINDOWS_TOOLS: &[&str] = &["powershell", "PowerShell", "pwsh", "cmd"];

/// Makes a built-in hook. The error is one sentence that names the setting.
///
/// # Errors
///
/// An unknown name, an unknown setting, or a setting of the wrong shape.
pub fn hook(name: &str, settings: &Map<String, Value>) -> Result<Hook, String> {
    let Some(builtin) = ALL.iter().find(|builtin| builtin.name == name) else {
        let names: Vec<&str> = ALL.iter().map(|builtin| builtin.name).collect();
        return Err(format!("unknown built-in hook `{name}`; expected one of {}", names.join(", ")));
    };
    let definition = serde_json::json!({"builtin": name, "settings": settings});
    // what is not asked has no time limit
    let common: &[&str] =
        if builtin.point == Point::Chunk { &["priority"] } else { &["priority", "timeout_ms"] };
    let settings = Settings::new(settings, builtin.settings, common)?;
    let priority = settings.number("priority")?.unwrap_or(0);
    let timeout = settings.number("timeout_ms")?.unwrap_or(5_000);
    let timeout = u64::try_from(timeout).ok().filter(|ms| (1..=600_000).contains(ms));
    let timeout = timeout.ok_or("setting `timeout_ms`: expected 1 to 600000")?;
    let (listens, work) = match (builtin.make)(&settings)? {
        Made::Asked(Asked { handler, tools, mode }) => {
            let spec = HandlerSpec {
                kind: HandlerKind::Builtin,
                timeout: Duration::from_millis(timeout),
                on_timeout: Fallback::Block,
                on_error: Fallback::Block,
                mode,
                withholds: if builtin.point == Point::PreResponse {
                    Withholds { late: true, failed: true }
                } else {
                    Withholds::default()
                },
            };
            let matcher = tools.map(|names| Pattern::of_names(&names)).transpose();
            let matcher = matcher.map_err(|error| format!("setting `tools`: {error}"))?;
            let filter = Filter { matcher, ..Filter::default() };
            let listens = Listens::Point { point: builtin.point, filter };
            (listens, Work::Handler { spec, run: Some(handler) })
        }
        Made::Streamed(Streamed { kinds, scan, actions }) => {
            (Listens::Scan { kinds, scan }, Work::Actions(actions))
        }
    };
    let key = format!("builtin/{name}");
    Ok(Hook {
        key: key.as_str().into(),
        label: key.clone(),
        name: key.into(),
        file: "builtin".to_owned(),
        index: ALL.iter().position(|other| other.name == name).unwrap_or(0),
        listens,
        max_triggers: None,
        priority,
        reach: Reach::Global,
        work,
        mutable_fields: builtin.changes.iter().map(|field| (*field).to_owned()).collect(),
        version: Version::of(&definition),
        source: Source::Builtin,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn settings(value: Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap_or_default()
    }

    #[test]
    fn every_hook_can_be_made_and_is_trusted() {
        for builtin in ALL {
            let needed = if builtin.name == "policy_text" { json!({"text": "x"}) } else { json!({}) };
            let hook = hook(builtin.name, &settings(needed)).unwrap();
            assert_eq!(&*hook.key, format!("builtin/{}", builtin.name));
            assert_eq!(hook.source, Source::Builtin);
            assert_eq!(hook.listens.point(), builtin.point);
        }
    }

    #[test]
    fn wrong_settings_are_named() {
        let check = |name: &str, given: Value, want: &str| {
            let error = hook(name, &settings(given)).unwrap_err();
            assert!(error.contains(want), "{error}");
        };
        check("destruktive", json!({}), "unknown built-in hook `destruktive`; expected one of destructive, ");
        check("destructive", json!({"tolls": []}), "unknown setting `tolls`");
        check("destructive", json!({"tools": "exec"}), "setting `tools`");
        check("destructive", json!({"shell": "fish"}), "setting `shell`");
        check("secrets", json!({"kinds": ["all"]}), "setting `kinds`");
        check("policy_text", json!({}), "setting `text`");
        check("policy_text", json!({"text": "x", "timeout_ms": 0}), "setting `timeout_ms`");
    }
}
