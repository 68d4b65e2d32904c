//! What exists while a case with agent hooks runs.

use super::super::super::stand_in;
use super::judge::Judge;
use super::names::Names;
use super::servers::Servers;
use super::tls;
use super::trail::Trail;
use hookgate_core::action::ActionKinds;
use hookgate_core::define::{self, Problem};
use hookgate_core::dispatch::Dispatcher;
use hookgate_core::gate::Surroundings;
use hookgate_core::handler::HandlerType;
use hookgate_core::hook::Source;
use hookgate_core::record::{Memory, Recorder};
use hookgate_core::set::HookSet;
use hookgate_handlers::clock::TokioTimer;
use hookgate_handlers::command::{self, Commands};
use hookgate_handlers::folder::Loaded;
use hookgate_handlers::http::{self, Network};
use hookgate_handlers::prompt::{self, Spending};
use hookgate_handlers::watchers::{Limits, Watchers};
use hookgate_handlers::workshop::Workshop;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

pub(in super::super) struct World {
    dir: tempfile::TempDir,
    pub(super) servers: Servers,
    pub(super) judge: Arc<Judge>,
    pub(super) names: Arc<Names>,
    pub(super) allow_private: bool,
    pub(in super::super) dispatcher: Arc<Dispatcher>,
    pub(in super::super) around: Surroundings,
    pub(in super::super) memory: Arc<Memory>,
    /// The store, in cases that are about it.
    pub(super) trail: Option<Arc<Trail>>,
    pub(in super::super) watchers: Watchers,
    hooks: Vec<Value>,
    pub(super) setup: Value,
    /// Ids in use.
    pub(super) loaded: Vec<String>,
    pub(in super::super) problems: Vec<Problem>,
    pub(super) load_warnings: Vec<String>,
}

impl World {
    /// `trail`: with a store in this folder, or in the case's own if it is empty.
    pub(in super::super) async fn new(setup: &Value, trail: Option<&Path>) -> Result<World, String> {
        let dir = tempfile::tempdir().map_err(|error| error.to_string())?;
        let dir_name = dir.path().display().to_string();
        lay_out(setup, dir.path(), &dir_name)?;
        let servers = Servers::start(setup.get("http")).await?;
        let config = setup.get("config").cloned().unwrap_or_default();
        let hooks = setup.get("hooks").map(|hooks| stand_in::expand(hooks, &dir_name)).transpose()?;
        let text = servers.fill(&hooks.unwrap_or_default().to_string());
        let memory = Arc::new(Memory::new(100_000));
        let kept_in = |folder: &Path| {
            if folder.as_os_str().is_empty() { dir.path().to_owned() } else { folder.to_owned() }
        };
        let trail =
            trail.map(|folder| Trail::open(&kept_in(folder), memory.clone())).transpose()?.map(Arc::new);
        let recorder: Arc<dyn Recorder> = match &trail {
            Some(trail) => trail.clone(),
            None => memory.clone(),
        };
        let around =
            Surroundings { timer: Arc::new(TokioTimer::new()), recorder, budget: Duration::from_secs(600) };
        let answers = setup.get("llm").and_then(Value::as_object).and_then(|judges| judges.values().next());
        let watchers = Watchers::new(around.clone(), Limits::default());
        Ok(World {
            dir,
            servers,
            judge: Arc::new(Judge::new(answers.unwrap_or(&Value::Null))),
            names: Arc::new(Names::new(&config)),
            allow_private: config.get("http_allow_loopback").and_then(Value::as_bool).unwrap_or(true),
            dispatcher: Arc::new(Dispatcher::new(HookSet::empty())),
            watchers,
            around,
            memory,
            trail,
            setup: setup.clone(),
            hooks: serde_json::from_str(&text).unwrap_or_default(),
            loaded: Vec::new(),
            problems: Vec::new(),
            load_warnings: Vec::new(),
        })
    }

    pub(in super::super) fn dir(&self) -> &Path {
        self.dir.path()
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Loads the hooks; bad ones are left out and told.
    pub(in super::super) fn load(&mut self) -> Result<(), String> {
        let file = self.path("hooks.json").display().to_string();
        let mut loaded = Loaded::default();
        for (index, hook) in self.hooks.iter().enumerate() {
            let (text, source) = self.written(hook, index);
            let read = define::read(&file, &text.to_string(), source, &ActionKinds::standard());
            loaded.problems.extend(read.problems);
            loaded.warnings.extend(read.warnings);
            loaded.hooks.extend(read.hooks.into_iter().map(|mut made| {
                made.index = index;
                made
            }));
        }
        self.read_files(&mut loaded)?;
        let equipped = self.workshop()?.equip(loaded);
        self.loaded = equipped.hooks.iter().map(|hook| hook.key.to_string()).collect();
        self.load_warnings = equipped.warnings.iter().map(ToString::to_string).collect();
        self.problems = equipped.problems;
        self.dispatcher.install(HookSet::new(equipped.hooks).map_err(|problem| problem.to_string())?);
        Ok(())
    }

    /// The files of JSON hooks beside them, in name order.
    fn read_files(&self, loaded: &mut Loaded) -> Result<(), String> {
        let files = self.setup.get("hook_files").and_then(Value::as_object).into_iter().flatten();
        let mut files: Vec<_> = files.collect();
        files.sort_by_key(|(name, _)| name.as_str());
        for (name, content) in files {
            let bytes = stand_in::bytes(content)?;
            let text = String::from_utf8_lossy(&bytes);
            let read = define::read(name, &text, Source::User, &ActionKinds::standard());
            loaded.problems.extend(read.problems);
            loaded.hooks.extend(read.hooks);
        }
        Ok(())
    }

    /// Scripts cannot make code from text. Where a case does (`note_to_runner`), the value that its event carries is
    /// written into the script.
    pub(super) fn write_value_into_source(&mut self, step: &Value) -> Result<(), String> {
        const EVAL: &str = "eval(\"(\"+e.toolInput.command+\")\")";
        let command = step.get("event").and_then(|event| event.pointer("/toolInput/command"));
        let Some(command) = command.and_then(Value::as_str) else { return Ok(()) };
        let mut written = self.hooks.clone();
        for hook in &mut written {
            let Some(Value::String(source)) = hook.pointer_mut("/handler/source") else { return Ok(()) };
            if !source.contains(EVAL) {
                return Ok(());
            }
            *source = source.replace(EVAL, &format!("({command})"));
        }
        let as_given = std::mem::replace(&mut self.hooks, written);
        let loaded = self.load();
        self.hooks = as_given;
        loaded
    }

    /// A hook of a case as a file would hold it: listed order is running order, and what a case only implies is
    /// written out.
    fn written(&self, hook: &Value, index: usize) -> (Value, Source) {
        let mut members = hook.as_object().cloned().unwrap_or_default();
        let builtin = members.remove("source").is_some_and(|source| source == "builtin");
        if !builtin {
            members.remove("mutable_fields");
        }
        members.insert("priority".into(), json!(1000_i64.saturating_sub(i64::try_from(index).unwrap_or(0))));
        let kind = hook.get("handler").and_then(|handler| handler.get("type")).and_then(Value::as_str);
        match kind {
            Some("prompt") if !members.contains_key("matcher") && !members.contains_key("if_expr") => {
                // a question without a filter is refused; cases leave the filter out where it is not the point
                members.insert("if_expr".into(), json!("true"));
            }
            Some("http") if self.allow_private => {
                if let Some(handler) = members.get_mut("handler").and_then(Value::as_object_mut) {
                    handler.insert("allow_private".into(), json!(true));
                }
            }
            _ => {}
        }
        (Value::Object(members), if builtin { Source::Builtin } else { Source::User })
    }

    fn workshop(&self) -> Result<Workshop, String> {
        let judge = self.judge.clone();
        let judges = move |name: Option<&str>| {
            Ok(prompt::Judge { model: judge.clone(), name: name.unwrap_or("judge").to_owned() })
        };
        let network = if self.servers.speak_tls {
            Network::trusting(self.names.clone(), &tls::trusted())?
        } else {
            Network::with_lookup(self.names.clone())?
        };
        let workshop = Workshop::empty()
            .with(HandlerType::Command, command::maker(Commands::default()))
            .with(HandlerType::Http, http::maker(network))
            .with(HandlerType::Prompt, prompt::maker(Arc::new(judges), Spending::default()));
        Ok(with_scripts(workshop))
    }
}

fn with_scripts(workshop: Workshop) -> Workshop {
    match super::super::super::script::pool() {
        Ok(pool) => workshop.with(HandlerType::Script, hookgate_handlers::script::maker(pool)),
        Err(_) => workshop,
    }
}

/// Writes the programs and files of a case.
pub(in super::super) fn lay_out(setup: &Value, dir: &Path, dir_name: &str) -> Result<(), String> {
    use std::os::unix::fs::PermissionsExt;
    let mode_of = |name: &str| {
        let text = setup.get("program_mode").and_then(|modes| modes.get(name)).and_then(Value::as_str);
        text.and_then(|text| u32::from_str_radix(text, 8).ok()).unwrap_or(0o755)
    };
    for (key, is_program) in [("programs", true), ("files", false)] {
        for (name, content) in setup.get(key).and_then(Value::as_object).into_iter().flatten() {
            let path = dir.join(name);
            let expanded = stand_in::expand(content, dir_name)?;
            std::fs::write(&path, stand_in::bytes(&expanded)?).map_err(|error| error.to_string())?;
            if is_program {
                let mode = std::fs::Permissions::from_mode(mode_of(name));
                std::fs::set_permissions(&path, mode).map_err(|error| error.to_string())?;
            }
        }
    }
    Ok(())
}
