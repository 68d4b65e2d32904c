//! The rules of a hook call: which hooks are loaded, whose events they see, and where records go.
//!
//! | flags | configuration | hooks |
//! |---|---|---|
//! | `--config FILE` | that file | its folders, its built-in hooks, `--hooks` in place of its `dir` |
//! | `--hooks DIR` | none: one that lies in the opened project must not change the user's rules | that folder |
//! | neither | `hookgate.toml` here or in a folder above | its own, else `LLM_CHAT_HOOKS_DIR` |
//!
//! No hooks at all is an error, and so is everything about them that cannot be read: the caller blocks.

use super::lazy::lazily;
use crate::args::{ChatArgs, RulesArgs};
use crate::config::{ConfigFile, Settings};
use crate::data::DataDir;
use crate::failure::Failure;
use crate::model;
use crate::trail::Trail;
use crate::workshop::{one_shot_workshop, workshop};
use hookgate_core::point::Point;
use hookgate_core::record::{Memory as InMemory, Recorder};
use hookgate_core::set::HookSet;
use hookgate_handlers::command::Commands;
use hookgate_handlers::folder::{self, HOOKS_DIR_VARIABLE, HookFolder, OnInvalid};
use hookgate_handlers::prompt::{Judges, Spending};
use hookgate_handlers::sources::Sources;
use hookgate_handlers::workshop::Workshop;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// What is configured; nothing is loaded yet.
#[derive(Debug)]
pub(crate) struct Rules {
    file: ConfigFile,
    hooks: Option<PathBuf>,
    /// The configuration file that was named, for whoever reads it again.
    named: Option<PathBuf>,
    /// Where records go.
    pub(crate) data: Option<DataDir>,
}

impl Rules {
    /// Finds what the flags and the environment say.
    pub(crate) fn find(args: &RulesArgs) -> Result<Rules, Failure> {
        let file = match (&args.config, &args.hooks) {
            (None, Some(_)) => ConfigFile::default(),
            (named, _) => crate::commands::configuration(named.as_deref())?,
        };
        let data = DataDir::find(args.data_dir.as_deref(), &file.audit, &|name| std::env::var_os(name))?;
        Ok(Rules { file, hooks: args.hooks.clone(), named: args.config.clone(), data })
    }

    /// The tenant and the agent's id of the configuration.
    pub(crate) fn who(&self) -> (Option<String>, Option<String>) {
        (self.file.chat.tenant.clone(), self.file.chat.agent.clone())
    }

    /// How long all hooks of one event may take together, if that is configured.
    pub(crate) fn budget(&self) -> Option<Duration> {
        self.file.chat.chain_budget_ms.map(Duration::from_millis)
    }

    /// Loads the hooks that listen at these points. An error is one sentence; all files are read for it, because a
    /// rule that cannot be read may be one for this event.
    pub(crate) fn load(mut self, points: &[Point], commands: Commands) -> Result<HookSet, String> {
        let on_invalid = self.file.hooks.on_invalid.unwrap_or(OnInvalid::Refuse);
        let workshop = one_shot_workshop(commands, judges(self.named.take()), Spending::default());
        let sources = self.sources(lazily(&workshop))?;
        let mut loaded = sources.read();
        loaded.hooks.retain(|hook| points.contains(&hook.listens.point()));
        let (set, problems) = sources.equip(loaded).into_set(on_invalid);
        set.ok_or_else(|| {
            let more = problems.len().saturating_sub(1);
            let first = problems.first().map(ToString::to_string).unwrap_or_default();
            let others = if more > 0 { format!(" (and {more} more)") } else { String::new() };
            format!("the hooks cannot be used: {first}{others}; `hookgate check` shows what is wrong")
        })
    }

    /// The places that hooks come from; an error if there are none.
    fn sources(mut self, workshop: Workshop) -> Result<Sources, String> {
        let place = self.file.path.as_deref().unwrap_or(Path::new("hookgate.toml")).display().to_string();
        let mut sources = Sources::new(workshop);
        for (name, settings) in std::mem::take(&mut self.file.builtin.0) {
            sources = sources.with_builtin(&name, settings, &place);
        }
        if let Some(dir) = &self.file.hooks.trusted_dir {
            sources = sources.with_folder(HookFolder::of_operator(dir));
        }
        let configured = self.hooks.take().or(self.file.hooks.dir.take());
        if let Some(dir) = folder::resolve(configured, std::env::var_os(HOOKS_DIR_VARIABLE)) {
            sources = sources.with_folder(HookFolder::new(dir));
        }
        if sources.is_empty() {
            return Err(format!(
                "no hooks are configured: set `dir` under [hooks] in hookgate.toml, or {HOOKS_DIR_VARIABLE}, or give --hooks"
            ));
        }
        Ok(sources)
    }
}

/// Who judges for prompt hooks, found when the first one needs it: what is wrong with a model's settings is no matter
/// of a call that asks none.
pub(crate) fn judges(named: Option<PathBuf>) -> Arc<Judges> {
    let found: OnceLock<Result<Arc<Judges>, String>> = OnceLock::new();
    Arc::new(move |model| {
        let find = || {
            let file =
                crate::commands::configuration(named.as_deref()).map_err(|failure| failure.to_string())?;
            let settings = Settings::resolve(&ChatArgs::default(), file, &|name| std::env::var_os(name));
            settings
                .map(|settings| model::judges(settings.judging.backend))
                .map_err(|failure| failure.to_string())
        };
        found.get_or_init(find).as_ref().map_err(Clone::clone).and_then(|judges| judges(model))
    })
}

/// All hooks, for a door that lives on.
pub(crate) struct Standing {
    pub(crate) set: HookSet,
    pub(crate) recorder: Arc<dyn Recorder>,
    pub(crate) budget: Option<Duration>,
    pub(crate) tenant: Option<String>,
    pub(crate) agent: Option<String>,
}

/// Loads all hooks of the rules. Any problem with them is a failure, unless `on_invalid` says otherwise.
pub(crate) fn standing(args: &RulesArgs) -> Result<Standing, Failure> {
    let rules = Rules::find(args)?;
    let (tenant, agent) = rules.who();
    let budget = rules.budget();
    let recorder: Arc<dyn Recorder> = match rules.data.clone() {
        Some(place) => Arc::new(Trail::new(place, |_| {})),
        None => Arc::new(InMemory::new(1000)),
    };
    let on_invalid = rules.file.hooks.on_invalid.unwrap_or(OnInvalid::Refuse);
    let workshop = workshop(Commands::default(), judges(rules.named.clone()), Spending::default());
    let (set, problems) = rules.sources(workshop).map_err(Failure::new)?.load().into_set(on_invalid);
    match set {
        Some(set) => Ok(Standing { set, recorder, budget, tenant, agent }),
        None => Err(Failure::Hooks(problems)),
    }
}
