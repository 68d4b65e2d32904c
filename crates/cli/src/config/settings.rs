//! What holds in the end: flags beat the environment, the environment beats the file. The hooks folder is the
//! exception of the first text: flag and file beat `LLM_CHAT_HOOKS_DIR`.

use super::file::Judge;
use super::{ConfigFile, ProviderName, ToolName};
use crate::args::ChatArgs;
use crate::data::DataDir;
use crate::failure::Failure;
use hookgate_chat::MAX_TOOL_CALL_ROUNDS_VARIABLE;
use hookgate_handlers::folder::OnInvalid;
use hookgate_llm::Provider;
use serde_json::{Map, Value};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Where variables are looked up.
type Environment<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// What `chat` works with.
#[derive(Debug)]
pub(crate) struct Settings {
    /// None leaves it to the environment.
    pub(crate) hooks_dir: Option<PathBuf>,
    pub(crate) trusted_hooks_dir: Option<PathBuf>,
    /// The hooks of the program that are on, with their settings.
    pub(crate) builtins: Vec<(String, Map<String, Value>)>,
    pub(crate) on_invalid: OnInvalid,
    pub(crate) backend: Backend,
    pub(crate) judging: Judging,
    pub(crate) system: Option<String>,
    pub(crate) max_tokens: Option<u32>,
    pub(crate) temperature: Option<f64>,
    /// None leaves it to the environment and the service's default.
    pub(crate) max_tool_call_rounds: Option<u32>,
    pub(crate) max_resends: Option<u32>,
    pub(crate) chain_budget: Option<Duration>,
    pub(crate) tenant: Option<String>,
    pub(crate) agent: Option<String>,
    pub(crate) tools: Vec<ToolName>,
    pub(crate) workdir: PathBuf,
    pub(crate) allow_private: bool,
    pub(crate) exec_timeout: Option<Duration>,
    /// Variables that commands of the model must not see.
    pub(crate) hidden_env: Vec<String>,
    pub(crate) config_file: Option<PathBuf>,
    /// Where records go; none: they stay in memory.
    pub(crate) data: Option<DataDir>,
}

/// Who judges for prompt hooks.
#[derive(Debug)]
pub(crate) struct Judging {
    pub(crate) backend: Backend,
    /// What a tenant's questions may cost in an hour.
    pub(crate) tokens_per_hour: Option<u64>,
}

/// Who answers.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Backend {
    /// The built-in demonstration.
    Demo,
    /// A script.
    Script(PathBuf),
    /// A model behind HTTP.
    Remote(Remote),
}

/// A model behind HTTP.
#[derive(Clone, PartialEq)]
pub(crate) struct Remote {
    pub(crate) provider: Provider,
    pub(crate) model: String,
    pub(crate) base_url: Option<String>,
    pub(crate) key: Option<String>,
}

impl std::fmt::Debug for Remote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let key = self.key.as_ref().map(|_| "set");
        write!(f, "Remote({}, {}, {:?}, key {key:?})", self.provider, self.model, self.base_url)
    }
}

/// The model's name where a server of one's own is asked and none was given: such servers mostly have one model.
const ANY_MODEL: &str = "default";

impl Settings {
    /// Puts flags, environment and file together.
    pub(crate) fn resolve(
        flags: &ChatArgs,
        file: ConfigFile,
        environment: Environment<'_>,
    ) -> Result<Settings, Failure> {
        let backend = backend(flags, &file, environment)?;
        let judging = Judging::resolve(&file.judge, &backend, environment)?;
        let data = DataDir::find(flags.data_dir.as_deref(), &file.audit, environment)?;
        let rounds_in_environment = environment(MAX_TOOL_CALL_ROUNDS_VARIABLE).is_some();
        Ok(Settings {
            hooks_dir: flags.hooks.clone().or(file.hooks.dir),
            trusted_hooks_dir: file.hooks.trusted_dir,
            builtins: file.builtin.0,
            on_invalid: flags.on_invalid.map(Into::into).or(file.hooks.on_invalid).unwrap_or_default(),
            backend,
            judging,
            system: flags.system.clone().or(file.model.system),
            max_tokens: file.model.max_tokens,
            temperature: file.model.temperature,
            max_tool_call_rounds: flags
                .max_tool_call_rounds
                .or(file.chat.max_tool_call_rounds.filter(|_| !rounds_in_environment)),
            max_resends: flags.max_resends.or(file.chat.max_resends),
            chain_budget: file.chat.chain_budget_ms.map(Duration::from_millis),
            tenant: flags.tenant.clone().or(file.chat.tenant),
            agent: flags.agent.clone().or(file.chat.agent),
            tools: if flags.no_tools { Vec::new() } else { flags.tools.clone().unwrap_or(file.tools.enable) },
            workdir: flags.workdir.clone().or(file.tools.workdir).unwrap_or_else(|| ".".into()),
            allow_private: file.tools.allow_private,
            exec_timeout: file.tools.exec_timeout_ms.map(Duration::from_millis),
            hidden_env: file.model.api_key_env.into_iter().chain(file.judge.api_key_env).collect(),
            config_file: file.path,
            data,
        })
    }

    /// The configuration's name in texts about it.
    pub(crate) fn config_name(&self) -> String {
        self.config_file
            .as_ref()
            .map_or_else(|| "hookgate.toml".to_owned(), |path| path.display().to_string())
    }
}

impl Judging {
    /// The model of `[judge]`; none where there is none.
    pub(crate) fn of_judge(judge: &Judge, environment: Environment<'_>) -> Result<Judging, Failure> {
        Judging::resolve(judge, &Backend::Demo, environment)
    }

    /// The model of `[judge]`, else the one that answers.
    fn resolve(judge: &Judge, answers: &Backend, environment: Environment<'_>) -> Result<Judging, Failure> {
        let backend = match judge.own_model() {
            Some(model) => {
                let file = ConfigFile { model, ..ConfigFile::default() };
                backend(&ChatArgs::default(), &file, environment)
                    .map_err(|failure| Failure::new(format!("[judge]: {failure}")))?
            }
            None => answers.clone(),
        };
        Ok(Judging { backend, tokens_per_hour: judge.tokens_per_hour })
    }
}

fn backend(flags: &ChatArgs, file: &ConfigFile, environment: Environment<'_>) -> Result<Backend, Failure> {
    let asked = Asked::read(flags, file, environment)?;
    let provider = match asked.provider {
        Some(ProviderName::Scripted) => None,
        Some(ProviderName::OpenAi) => Some(Provider::OpenAiChat),
        Some(ProviderName::Anthropic) => Some(Provider::Anthropic),
        None => asked.likely_provider(),
    };
    let Some(provider) = provider else {
        let script = flags.script.as_ref().or(file.model.script.as_ref());
        let script = script.filter(|path| !path.as_os_str().is_empty());
        return Ok(script.map_or(Backend::Demo, |path| Backend::Script(path.clone())));
    };
    if flags.script.is_some() {
        return Err(Failure::new(
            "--script is for the scripted model; take it out, or say --provider scripted",
        ));
    }
    let of_provider = asked.of(provider);
    let base_url = asked.base_url.clone().or(of_provider.base_url.clone()).or(file.model.base_url.clone());
    let key = match &file.model.api_key_env {
        Some(name) => Some(text(environment, name)?.ok_or_else(|| {
            Failure::new(format!("the environment variable {name}, which api_key_env names, is not set"))
        })?),
        None => of_provider.key.clone(),
    };
    if base_url.is_none() && key.is_none() {
        return Err(Failure::new(format!(
            "{provider} needs a key: set the environment variable {} (or --base-url for a server of your own)",
            provider.key_env()
        )));
    }
    let model = match asked.model {
        Some(model) => model,
        None if base_url.is_some() => ANY_MODEL.to_owned(),
        None => {
            return Err(Failure::new(format!(
                "no model is named for {provider}: add --model NAME, or `name` under [model] in hookgate.toml \
                 (--provider scripted asks the built-in one)"
            )));
        }
    };
    Ok(Backend::Remote(Remote { provider, model, base_url, key }))
}

/// Everything that says who should answer.
struct Asked {
    provider: Option<ProviderName>,
    model: Option<String>,
    /// From a flag.
    base_url: Option<String>,
    base_url_in_file: bool,
    key_env_in_file: bool,
    script: bool,
    openai: FromEnvironment,
    anthropic: FromEnvironment,
}

/// What the environment says about one provider.
#[derive(Debug, Clone)]
struct FromEnvironment {
    base_url: Option<String>,
    key: Option<String>,
}

impl FromEnvironment {
    fn read(environment: Environment<'_>, base_url: &str, provider: Provider) -> Result<Self, Failure> {
        Ok(FromEnvironment {
            base_url: text(environment, base_url)?,
            key: text(environment, provider.key_env())?,
        })
    }

    fn is_set(&self) -> bool {
        self.base_url.is_some() || self.key.is_some()
    }
}

impl Asked {
    fn read(flags: &ChatArgs, file: &ConfigFile, environment: Environment<'_>) -> Result<Asked, Failure> {
        Ok(Asked {
            provider: flags.provider.or(if flags.script.is_some() {
                Some(ProviderName::Scripted)
            } else {
                file.model.provider
            }),
            model: flags.model.clone().or(file.model.name.clone()),
            base_url: flags.base_url.clone(),
            base_url_in_file: file.model.base_url.is_some(),
            key_env_in_file: file.model.api_key_env.is_some(),
            script: file.model.script.is_some(),
            openai: FromEnvironment::read(environment, "OPENAI_BASE_URL", Provider::OpenAiChat)?,
            anthropic: FromEnvironment::read(environment, "ANTHROPIC_BASE_URL", Provider::Anthropic)?,
        })
    }

    fn of(&self, provider: Provider) -> &FromEnvironment {
        match provider {
            Provider::OpenAiChat => &self.openai,
            Provider::Anthropic => &self.anthropic,
        }
    }

    /// The provider where none is named: none until something is configured that only a real model needs.
    fn likely_provider(&self) -> Option<Provider> {
        let configured = self.base_url.is_some() || self.base_url_in_file || self.key_env_in_file;
        let named = self.model.is_some();
        if !(configured || named || self.openai.is_set() || self.anthropic.is_set()) {
            return None;
        }
        if self.script && !configured && !named {
            return None;
        }
        let claude = self.model.as_ref().is_some_and(|model| model.starts_with("claude"));
        let only_anthropic = self.anthropic.is_set() && !self.openai.is_set() && !configured;
        Some(if claude || only_anthropic { Provider::Anthropic } else { Provider::OpenAiChat })
    }
}

/// A variable's text; empty is not set.
fn text(environment: Environment<'_>, name: &str) -> Result<Option<String>, Failure> {
    match environment(name).map(OsString::into_string) {
        None => Ok(None),
        Some(Ok(text)) => Ok(Some(text).filter(|text| !text.trim().is_empty())),
        Some(Err(_)) => Err(Failure::new(format!("the environment variable {name} is not UTF-8 text"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(flags: &[&str], file: &str, environment: &[(&str, &str)]) -> Result<Settings, Failure> {
        use clap::Parser;
        let line = ["hookgate", "chat"].iter().chain(flags);
        let args = crate::args::Args::try_parse_from(line).unwrap();
        let crate::args::Command::Chat(flags) = args.command else { unreachable!() };
        let file: ConfigFile = toml::from_str(file).unwrap();
        let lookup = |name: &str| {
            environment.iter().find(|(known, _)| *known == name).map(|(_, value)| OsString::from(value))
        };
        Settings::resolve(&flags, file, &lookup)
    }

    #[track_caller]
    fn asks(flags: &[&str], file: &str, environment: &[(&str, &str)], expected: &str) {
        let said = match resolve(flags, file, environment) {
            Ok(settings) => format!("{:?}", settings.backend),
            Err(failure) => failure.to_string(),
        };
        assert!(said.contains(expected), "`{said}` lacks `{expected}`");
    }

    const KEY: (&str, &str) = ("OPENAI_API_KEY", "k");
    const CLAUDE_KEY: (&str, &str) = ("ANTHROPIC_API_KEY", "k");

    #[test]
    fn the_scripted_model_answers_until_a_real_one_is_configured() {
        asks(&[], "", &[], "Demo");
        asks(&[], "", &[("OPENAI_API_KEY", "")], "Demo");
        asks(&["--script", "x"], "", &[KEY], "Script(\"x\")");
        asks(&["--provider", "scripted"], "[model]\nname = 'm'", &[KEY], "Demo");
        asks(&[], "[model]\nscript = 's'", &[KEY], "Script(\"s\")");
        asks(&["--model", "m"], "", &[KEY], "Remote(openai-chat, m, None, key Some(\"set\"))");
        asks(&["--model", "claude-x"], "", &[KEY, CLAUDE_KEY], "Remote(anthropic, claude-x");
        asks(&["--model", "m"], "", &[CLAUDE_KEY], "Remote(anthropic, m");
        asks(
            &["--base-url", "http://u"],
            "",
            &[CLAUDE_KEY],
            "Remote(openai-chat, default, Some(\"http://u\"), key None)",
        );
        asks(&[], "[model]\nprovider = 'anthropic'\nname = 'm'", &[CLAUDE_KEY], "Remote(anthropic, m");
    }

    #[test]
    fn what_is_missing_is_named() {
        asks(&[], "", &[KEY], "no model is named for openai-chat: add --model");
        asks(&["--model", "m"], "", &[], "set the environment variable OPENAI_API_KEY");
        asks(&["--provider", "anthropic"], "", &[], "set the environment variable ANTHROPIC_API_KEY");
        asks(
            &[],
            "[model]\nname = 'm'\napi_key_env = 'K'",
            &[KEY],
            "variable K, which api_key_env names, is not set",
        );
        asks(&["--provider", "openai", "--script", "x"], "", &[KEY], "--script is for the scripted model");
    }

    #[test]
    fn flags_beat_environment_beats_file() {
        let file = "[model]\nbase_url = 'http://file'";
        let environment = [("OPENAI_BASE_URL", "http://env")];
        asks(&["--base-url", "http://flag"], file, &environment, "http://flag");
        asks(&[], file, &environment, "http://env");
        asks(&[], file, &[], "http://file");
        let rounds = |flags: &[&str], environment: &[(&str, &str)]| {
            resolve(flags, "[chat]\nmax_tool_call_rounds = 3", environment).unwrap().max_tool_call_rounds
        };
        let variable = [(MAX_TOOL_CALL_ROUNDS_VARIABLE, "5")];
        assert_eq!(rounds(&["--max-tool-call-rounds", "7"], &variable), Some(7));
        assert_eq!(rounds(&[], &variable), None, "left to the service, which reads the variable");
        assert_eq!(rounds(&[], &[]), Some(3));
    }

    #[test]
    fn the_hooks_folder_of_the_file_is_a_configured_value() {
        let dir =
            |flags: &[&str], file| resolve(flags, file, &[("LLM_CHAT_HOOKS_DIR", "e")]).unwrap().hooks_dir;
        assert_eq!(dir(&["--hooks", "f"], "[hooks]\ndir = 'c'"), Some("f".into()));
        assert_eq!(dir(&[], "[hooks]\ndir = 'c'"), Some("c".into()));
        assert_eq!(dir(&[], ""), None, "left to the service, which reads the variable");
    }
}
