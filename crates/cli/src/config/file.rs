//! `hookgate.toml`, found upward from the working directory. Strict: a key that is not known is refused, with its
//! place and what is allowed. Relative paths are relative to the file.

use super::builtins::Builtins;
use super::gateway::{GatewayTable, TenantTable};
use crate::args::OnInvalidArg;
use crate::failure::Failure;
use clap::ValueEnum;
use hookgate_handlers::folder::OnInvalid;
use hookgate_store::spool::Durability;
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

const NAME: &str = "hookgate.toml";

/// A larger file is no configuration.
const LARGEST_FILE: u64 = 1024 * 1024;

/// What stands in the file.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ConfigFile {
    /// Where it was found; none if there is no file.
    #[serde(skip)]
    pub(crate) path: Option<PathBuf>,
    /// The hook files.
    pub(crate) hooks: Hooks,
    /// Hooks of the program by name: `true`, or a table of settings.
    #[schemars(with = "BTreeMap<String, serde_json::Value>")]
    pub(crate) builtin: Builtins,
    /// The model that `hookgate chat` talks to.
    pub(crate) model: Model,
    /// The model that prompt hooks ask; without it the one that answers.
    pub(crate) judge: Judge,
    /// Limits of `hookgate chat`, and whose conversation it is.
    pub(crate) chat: Chat,
    /// The tools of `hookgate chat`.
    pub(crate) tools: Tools,
    /// The trail of what hooks did.
    pub(crate) audit: AuditTable,
    /// The gateway.
    pub(crate) gateway: GatewayTable,
    /// The tenants of the gateway.
    pub(crate) tenants: Vec<TenantTable>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Hooks {
    /// The folder of hook files. It beats `LLM_CHAT_HOOKS_DIR`.
    pub(crate) dir: Option<PathBuf>,
    /// The operator's own folder: loaded before `dir`, and trusted further (`redact`).
    pub(crate) trusted_dir: Option<PathBuf>,
    /// What a bad hook file does: `refuse` to start, or `skip` the bad hooks [default: refuse].
    #[schemars(with = "Option<OnInvalidArg>")]
    pub(crate) on_invalid: Option<OnInvalid>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Model {
    /// Who answers [default: scripted, until a model, an address or a key is configured].
    pub(crate) provider: Option<ProviderName>,
    /// The model's name at the provider.
    pub(crate) name: Option<String>,
    /// Where the provider is [default: its public address].
    pub(crate) base_url: Option<String>,
    /// The environment variable that holds the key [default: `OPENAI_API_KEY` or `ANTHROPIC_API_KEY`].
    pub(crate) api_key_env: Option<String>,
    /// The script that the scripted model plays [default: a demonstration].
    pub(crate) script: Option<PathBuf>,
    /// Instructions that stand above the conversation.
    pub(crate) system: Option<String>,
    /// How long an answer may be, in tokens.
    pub(crate) max_tokens: Option<u32>,
    /// How free the model is, as the provider understands it.
    pub(crate) temperature: Option<f64>,
}

/// The model that prompt hooks ask; by default the one that answers.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Judge {
    /// Who judges [default: openai, or scripted where a script is named].
    pub(crate) provider: Option<ProviderName>,
    /// The model's name at the provider.
    pub(crate) name: Option<String>,
    /// Where the provider is [default: its public address].
    pub(crate) base_url: Option<String>,
    /// The environment variable that holds the key [default: `OPENAI_API_KEY` or `ANTHROPIC_API_KEY`].
    pub(crate) api_key_env: Option<String>,
    /// The script that the scripted model plays.
    pub(crate) script: Option<PathBuf>,
    /// What a tenant's questions may cost in an hour, in tokens [default: no limit].
    pub(crate) tokens_per_hour: Option<u64>,
}

impl Judge {
    /// Whether it names a model of its own, and which.
    pub(crate) fn own_model(&self) -> Option<Model> {
        let Judge { provider, name, base_url, api_key_env, script, tokens_per_hour: _ } = self;
        let own = provider.is_some() || name.is_some() || base_url.is_some() || script.is_some();
        own.then(|| Model {
            provider: provider.or(script.as_ref().map(|_| ProviderName::Scripted)),
            name: name.clone(),
            base_url: base_url.clone(),
            api_key_env: api_key_env.clone(),
            script: script.clone(),
            ..Model::default()
        })
    }
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Chat {
    /// How many rounds of tool calls one answer may take [default: 10].
    pub(crate) max_tool_call_rounds: Option<u32>,
    /// How often hooks may ask again for one answer [default: 10].
    pub(crate) max_resends: Option<u32>,
    /// How long all hooks of one event may take together [default: 60000].
    pub(crate) chain_budget_ms: Option<u64>,
    /// The tenant, for hooks that are bound to one.
    pub(crate) tenant: Option<String>,
    /// The agent, for hooks that are bound to some.
    pub(crate) agent: Option<String>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Tools {
    /// Which tools the model may use [default: none].
    pub(crate) enable: Vec<ToolName>,
    /// Where tools work; files outside are out of reach of `read_file` and `write_file` [default: the working directory].
    pub(crate) workdir: Option<PathBuf>,
    /// Whether `fetch_page` may reach loopback and private addresses.
    pub(crate) allow_private: bool,
    /// How long a command may run [default: 60000].
    pub(crate) exec_timeout_ms: Option<u64>,
}

/// The trail of what hooks did.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct AuditTable {
    /// `false`: records stay in memory and end with the program [default: true].
    pub(crate) enabled: Option<bool>,
    /// Where the trail is kept [default: `$XDG_DATA_HOME/hookgate`, else `~/.local/share/hookgate`].
    pub(crate) dir: Option<PathBuf>,
    /// The file with the keys of the trail; made where it is missing [default: `keys` in that directory].
    pub(crate) key_file: Option<PathBuf>,
    /// What a record has outlived before a verdict is out [default: process].
    pub(crate) durability: Option<DurabilityName>,
    /// The environment variable that holds a connection string of PostgreSQL [default: SQLite].
    pub(crate) postgres_env: Option<String>,
    /// How long rows are kept, such as `90d`; older ones are deleted at the start and once an hour [default: for ever].
    pub(crate) keep: Option<String>,
    /// `true`: for each event the trail keeps which hooks a filter ruled out, and with which values; sealed [default: false].
    pub(crate) filter_trace: Option<bool>,
}

/// What a gate waits for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum DurabilityName {
    /// The record outlives the process.
    #[default]
    Process,
    /// The record outlives a power cut.
    Power,
    /// Nothing: the last moments may be lost with the process.
    Relaxed,
}

impl From<DurabilityName> for Durability {
    fn from(name: DurabilityName) -> Durability {
        match name {
            DurabilityName::Process => Durability::Process,
            DurabilityName::Power => Durability::Power,
            DurabilityName::Relaxed => Durability::Relaxed,
        }
    }
}

/// Who answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[value(rename_all = "lowercase")]
pub(crate) enum ProviderName {
    /// The built-in model that plays a script
    Scripted,
    /// OpenAI's chat completions, and servers that speak like it
    OpenAi,
    /// Anthropic's messages, and servers that speak like it
    Anthropic,
}

/// A built-in tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[value(rename_all = "snake_case")]
pub(crate) enum ToolName {
    /// Run shell commands
    Exec,
    /// Read text files in the working directory
    ReadFile,
    /// Write text files in the working directory
    WriteFile,
    /// Get pages from the public web
    FetchPage,
    /// Start sub-agents, conversations of their own with the same hooks and tools
    Task,
}

impl fmt::Display for ToolName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ToolName::Exec => "exec",
            ToolName::ReadFile => "read_file",
            ToolName::WriteFile => "write_file",
            ToolName::FetchPage => "fetch_page",
            ToolName::Task => "task",
        })
    }
}

impl ConfigFile {
    /// The JSON Schema of the file, made from the tables above.
    pub(crate) fn schema() -> schemars::Schema {
        schemars::schema_for!(ConfigFile)
    }

    /// The file named, else the nearest one in this folder or above, else nothing.
    pub(crate) fn find(named: Option<&Path>, from: &Path) -> Result<ConfigFile, Failure> {
        match named {
            Some(path) => ConfigFile::read(path),
            None => match from.ancestors().map(|folder| folder.join(NAME)).find(|path| path.is_file()) {
                Some(path) => ConfigFile::read(&path),
                None => Ok(ConfigFile::default()),
            },
        }
    }

    fn read(path: &Path) -> Result<ConfigFile, Failure> {
        let cannot = |error: std::io::Error| {
            Failure::new(format!("the configuration file {} cannot be read: {error}", path.display()))
        };
        let about = fs::metadata(path).map_err(cannot)?;
        if !about.is_file() || about.len() > LARGEST_FILE {
            let what = format!("{} is no configuration file", path.display());
            return Err(Failure::new(format!("{what}: expected a text file of at most 1 MiB")));
        }
        let text = fs::read_to_string(path).map_err(cannot)?;
        let file = ConfigFile::parse(&path.display().to_string(), &text)?;
        Ok(file.located_at(path))
    }

    fn parse(name: &str, text: &str) -> Result<ConfigFile, Failure> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        toml::from_str(text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            let before = text.get(..at).unwrap_or_default();
            let line = before.matches('\n').count().saturating_add(1);
            let column = before.chars().rev().take_while(|c| *c != '\n').count().saturating_add(1);
            Failure::new(format!("{name}:{line}:{column}: {}", reworded(error.message())))
        })
    }

    fn located_at(mut self, path: &Path) -> ConfigFile {
        let folder = path.parent().unwrap_or(Path::new(""));
        let places = [
            &mut self.hooks.dir,
            &mut self.hooks.trusted_dir,
            &mut self.model.script,
            &mut self.judge.script,
            &mut self.tools.workdir,
            &mut self.audit.dir,
            &mut self.audit.key_file,
            &mut self.gateway.socket,
            &mut self.gateway.tls_cert,
            &mut self.gateway.tls_key,
        ];
        let places = places.into_iter().chain(self.tenants.iter_mut().map(|tenant| &mut tenant.hooks_dir));
        for place in places {
            // an empty path stays empty: it means "not set"
            if let Some(place) = place.as_mut().filter(|place| !place.as_os_str().is_empty()) {
                *place = folder.join(&*place);
            }
        }
        self.path = Some(path.to_owned());
        self
    }
}

/// The parser's sentence in words of a configuration file, with the nearest allowed word.
fn reworded(message: &str) -> String {
    let mut text =
        message.trim().replace("unknown field", "unknown key").replace("unknown variant", "unknown value");
    text = text.replace('\n', ", ");
    let mut quoted = message.split('`').skip(1).step_by(2);
    if text.starts_with("unknown ")
        && let Some(found) = quoted.next()
        && let Some(near) = quoted.find(|allowed| strsim::damerau_levenshtein(found, allowed) <= 2)
    {
        text.push_str(&format!(" (did you mean `{near}`?)"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refused(text: &str, expected: &str) {
        let error = ConfigFile::parse("x.toml", text).unwrap_err().to_string();
        assert_eq!(error, expected);
    }

    #[test]
    fn what_is_not_known_is_refused_with_its_place() {
        refused(
            "[hooks]\n  dri = 'x'\n",
            "x.toml:2:3: unknown key `dri`, expected one of `dir`, `trusted_dir`, `on_invalid` (did you mean `dir`?)",
        );
        refused(
            "[hook]\n",
            "x.toml:1:2: unknown key `hook`, expected one of `hooks`, `builtin`, `model`, `judge`, `chat`, `tools`, `audit`, `gateway`, `tenants` (did you mean `hooks`?)",
        );
        refused(
            "[model]\nprovider = 'opnai'\n",
            "x.toml:2:12: unknown value `opnai`, expected one of `scripted`, `openai`, `anthropic` (did you mean `openai`?)",
        );
        refused(
            "[tools]\nenable = ['exec', 'rm']\n",
            "x.toml:2:19: unknown value `rm`, expected one of `exec`, `read_file`, `write_file`, `fetch_page`, `task`",
        );
        refused("[chat]\nmax_resends = -1\n", "x.toml:2:15: invalid value: integer `-1`, expected u32");
    }

    #[test]
    fn paths_are_relative_to_the_file() {
        let text = "[hooks]\ndir = 'h'\n[tools]\nworkdir = '/abs'\n[model]\nscript = ''\n";
        let file = ConfigFile::parse("x", text).unwrap().located_at(Path::new("/etc/hg/hookgate.toml"));
        assert_eq!(file.hooks.dir, Some("/etc/hg/h".into()));
        assert_eq!(file.tools.workdir, Some("/abs".into()));
        assert_eq!(file.model.script, Some("".into()));
    }
}
