//! The hooks that their author tries out: those of a folder alone, or all that the configuration loads, each folder
//! trusted as it says. Their handlers are made only when one runs in earnest.

use crate::args::ChatArgs;
use crate::config::{ConfigFile, Settings};
use crate::failure::Failure;
use crate::{model, sources, workshop};
use hookgate_core::define::Problem;
use hookgate_handlers::command::Commands;
use hookgate_handlers::folder::{HookFolder, OnInvalid};
use hookgate_handlers::prompt::{Judges, Spending};
use hookgate_handlers::sources::Sources;
use hookgate_workbench::desk;
use hookgate_workbench::stage::Stage;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// How long all hooks of one event may take, as in every door that is told nothing else.
const CHAIN_BUDGET: Duration = Duration::from_secs(60);

/// Hooks to be tried out.
pub(crate) struct Bench {
    sources: Sources,
    budget: Duration,
    /// All of them.
    pub(crate) stage: Arc<Stage>,
    /// The folders that the hooks come from, and where their tests are.
    pub(crate) folders: Vec<PathBuf>,
    /// Whose events they are where nothing else is said: the tenant whose folder it is.
    pub(crate) tenant: Option<String>,
}

impl Bench {
    /// Loads the hooks. Whatever the policy of a door: an author does not try out a set that is not whole.
    pub(crate) fn open(dir: Option<&Path>, config: Option<&Path>) -> Result<Bench, Failure> {
        let here = here()?;
        let from = dir.map_or_else(|| here.clone(), |dir| here.join(dir));
        let file = ConfigFile::find(config, &from)?;
        let budget = file.chat.chain_budget_ms.map_or(CHAIN_BUDGET, Duration::from_millis);
        let workshop =
            workshop::workshop(Commands::default(), judges(file.path.clone()), Spending::default());
        let sources = Sources::new(desk::late(&workshop));
        let is_named = config.is_some();
        let beside_it = file.path.as_deref().and_then(Path::parent).map(Path::to_owned);
        let (sources, mut folders, tenant) = match dir {
            None => {
                let (sources, folders) = sources::configured(sources, file)?;
                (sources, folders, None)
            }
            Some(dir) => of_folder(sources, file, sources::readable(dir)?, is_named)?,
        };
        let stage = stage(&sources, budget, None).map_err(|failure| with_hint(failure, dir))?;
        if folders.is_empty() {
            // hooks of the program alone: their tests stand beside the configuration
            folders.extend(beside_it);
        }
        let folders = folders.iter().map(|folder| shortened(folder, &here)).collect();
        Ok(Bench { sources, budget, stage, folders, tenant })
    }

    /// A stage with the hooks of these names alone. Hooks are used where they were made: they are loaded once more.
    pub(crate) fn only(&self, names: &[String]) -> Result<Arc<Stage>, Failure> {
        stage(&self.sources, self.budget, Some(names))
    }
}

fn stage(sources: &Sources, budget: Duration, only: Option<&[String]>) -> Result<Arc<Stage>, Failure> {
    let mut loaded = desk::stand_in(sources.load());
    if let Some(only) = only {
        loaded.hooks.retain(|hook| only.iter().any(|name| **name == *hook.name));
    }
    let (set, problems) = loaded.into_set(OnInvalid::Refuse);
    let set = set.ok_or(Failure::Hooks(problems))?;
    Ok(Arc::new(Stage::new(set, budget)))
}

/// A folder that holds a folder `hooks` is most often not the one that was meant.
fn with_hint(failure: Failure, dir: Option<&Path>) -> Failure {
    match (failure, dir) {
        (Failure::Hooks(mut problems), Some(dir)) if dir.join("hooks").is_dir() => {
            let message = format!("is taken for a hooks folder; was {} meant?", dir.join("hooks").display());
            problems.push(Problem::of_file(&dir.display().to_string(), message));
            Failure::Hooks(problems)
        }
        (failure, _) => failure,
    }
}

type Found = (Sources, Vec<PathBuf>, Option<String>);

/// The hooks of a folder, with all that the configuration loads beside them if it is one of its own.
fn of_folder(sources: Sources, file: ConfigFile, dir: &Path, is_named: bool) -> Result<Found, Failure> {
    let is_here = |path: &Path| same(path, dir);
    let lies_in_it = file.path.as_deref().and_then(Path::parent).is_some_and(|folder| {
        // the parent of `hookgate.toml` alone is the empty path
        is_here(if folder.as_os_str().is_empty() { Path::new(".") } else { folder })
    });
    let named = [&file.hooks.dir, &file.hooks.trusted_dir].into_iter().flatten().any(|path| is_here(path));
    let of_tenant = file.tenants.iter().find(|tenant| tenant.hooks_dir.as_deref().is_some_and(is_here));
    let tenant = of_tenant.map(|tenant| tenant.id.clone());
    if lies_in_it || named || tenant.is_some() {
        let own = of_tenant.and_then(|tenant| tenant.hooks_dir.clone());
        let (sources, folders) = sources::configured(sources, file)?;
        // what is asked for is this folder; the others' tests are theirs
        return Ok(match own {
            Some(own) => (sources.with_folder(HookFolder::new(&own)), vec![own], tenant),
            None if named => (sources, vec![dir.to_owned()], None),
            None => (sources, folders, None),
        });
    }
    if is_named {
        // as for a door: the folder takes the place of the configured one
        let hooks = crate::config::Hooks { dir: Some(dir.to_owned()), ..file.hooks };
        let (sources, _) = sources::configured(sources, ConfigFile { hooks, ..file })?;
        return Ok((sources, vec![dir.to_owned()], None));
    }
    Ok((sources.with_folder(HookFolder::new(dir)), vec![dir.to_owned()], None))
}

/// Who judges, for the prompt hooks of a live run: as for `chat`. The configuration is read when the first one asks; a
/// run that is not live needs no key.
fn judges(config: Option<PathBuf>) -> Arc<Judges> {
    let judges: OnceLock<Result<Arc<Judges>, String>> = OnceLock::new();
    Arc::new(move |named| {
        let made = judges.get_or_init(|| {
            let here = here().map_err(|failure| failure.to_string())?;
            let settings = ConfigFile::find(config.as_deref(), &here).and_then(|file| {
                Settings::resolve(&ChatArgs::default(), file, &|name| std::env::var_os(name))
            });
            let settings = settings.map_err(|failure| failure.to_string())?;
            Ok(model::judges(settings.judging.backend))
        });
        made.clone().and_then(|judges| judges(named))
    })
}

fn here() -> Result<PathBuf, Failure> {
    std::env::current_dir()
        .map_err(|error| Failure::new(format!("the working directory cannot be found: {error}")))
}

fn same(one: &Path, other: &Path) -> bool {
    match (std::fs::canonicalize(one), std::fs::canonicalize(other)) {
        (Ok(one), Ok(other)) => one == other,
        _ => false,
    }
}

/// The path as one would write it here.
fn shortened(path: &Path, here: &Path) -> PathBuf {
    match path.strip_prefix(here) {
        Ok(rest) if rest.as_os_str().is_empty() => PathBuf::from("."),
        Ok(rest) => rest.to_owned(),
        Err(_) => path.to_owned(),
    }
}
