//! How a service is put together. Hooks are loaded here, before any message can be added.

use crate::event::ChatEvent;
use crate::history::Conversation;
use crate::lifecycle::{Lifecycle, Who, events_of};
use crate::service::{ChatService, Inner, Observer, Status};
use crate::subagent::{Subagents, Task};
use crate::tools::{Tool, Toolbox};
use hookgate_core::action::ActionKinds;
use hookgate_core::define::Problem;
use hookgate_core::dispatch::Dispatcher;
use hookgate_core::gate::Surroundings;
use hookgate_core::record::{Memory, Recorder};
use hookgate_core::set::HookSet;
use hookgate_handlers::clock::TokioTimer;
use hookgate_handlers::folder::{self, HOOKS_DIR_VARIABLE, HookFolder, OnInvalid};
use hookgate_handlers::outbox::Outbox;
use hookgate_handlers::prompt::Turns;
use hookgate_handlers::sources::Sources;
use hookgate_handlers::watchers::{Kept, Limits, OnTrace, Watchers};
use hookgate_handlers::workshop::Workshop;
use hookgate_llm::{Model, Request};
use serde_json::{Map, Value};
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The environment variable that limits rounds of tool calls.
pub const MAX_TOOL_CALL_ROUNDS_VARIABLE: &str = "LLM_CHAT_MAX_TOOL_CALL_ROUNDS";

const DEFAULT_TOOL_CALL_ROUNDS: u32 = 10;
const DEFAULT_RESENDS: u32 = 10;
/// Records that stay in memory where there is no store.
const NEWEST_RECORDS: usize = 10_000;
/// All hooks of one event together.
const CHAIN_BUDGET: Duration = Duration::from_secs(60);

/// Builds a [`ChatService`].
pub struct ChatBuilder {
    model: Arc<dyn Model>,
    tools: Toolbox,
    request: Request,
    system: Option<String>,
    hooks_dir: Option<PathBuf>,
    trusted_dir: Option<PathBuf>,
    builtins: Vec<(String, Map<String, Value>, String)>,
    on_invalid: OnInvalid,
    actions: ActionKinds,
    workshop: Workshop,
    turns: Turns,
    max_tool_call_rounds: Option<u32>,
    max_resends: u32,
    observer: Option<Observer>,
    environment: Environment,
    who: Who,
    recorder: Arc<dyn Recorder>,
    outbox: Option<Arc<dyn Outbox>>,
    chain_budget: Duration,
    subagents: Option<Subagents>,
}

/// Looks an environment variable up.
type Environment = Box<dyn Fn(&str) -> Option<OsString>>;

/// Why no service could be built.
#[derive(Debug)]
#[non_exhaustive]
pub enum BuildError {
    /// The hooks cannot be used.
    Hooks(Vec<Problem>),
    /// An environment variable cannot be read.
    Environment {
        /// Its name.
        name: &'static str,
        /// What stands in it.
        found: String,
        /// What may stand in it.
        expected: &'static str,
    },
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BuildError::Hooks(problems) => {
                let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
                f.write_str(&lines.join("\n"))
            }
            BuildError::Environment { name, found, expected } => {
                write!(f, "environment variable {name}: expected {expected}, found `{found}`")
            }
        }
    }
}

impl std::error::Error for BuildError {}

impl ChatBuilder {
    pub(crate) fn new(model: Arc<dyn Model>) -> ChatBuilder {
        ChatBuilder {
            model,
            tools: Toolbox::default(),
            request: Request::default(),
            system: None,
            hooks_dir: None,
            trusted_dir: None,
            builtins: Vec::new(),
            on_invalid: OnInvalid::Skip,
            actions: ActionKinds::standard(),
            workshop: Workshop::empty(),
            turns: Turns::default(),
            max_tool_call_rounds: None,
            max_resends: DEFAULT_RESENDS,
            observer: None,
            environment: Box::new(|name| std::env::var_os(name)),
            who: Who { session_id: new_session_id(), ..Who::default() },
            recorder: Arc::new(Memory::new(NEWEST_RECORDS)),
            outbox: None,
            chain_budget: CHAIN_BUDGET,
            subagents: None,
        }
    }

    /// The hooks folder. It beats the environment variable `LLM_CHAT_HOOKS_DIR`; with neither there are no hooks.
    #[must_use]
    pub fn hooks_dir(mut self, path: impl Into<PathBuf>) -> Self {
        self.hooks_dir = Some(path.into());
        self
    }

    /// A folder of hooks that the operator trusts; they are loaded before those of the hooks folder.
    #[must_use]
    pub fn trusted_hooks_dir(mut self, path: impl Into<PathBuf>) -> Self {
        self.trusted_dir = Some(path.into());
        self
    }

    /// Enables a hook of the program ([`hookgate_handlers::builtin::ALL`]) with its settings. `place` names the
    /// configuration in problems.
    #[must_use]
    pub fn builtin(mut self, name: &str, settings: Map<String, Value>, place: &str) -> Self {
        self.builtins.push((name.to_owned(), settings, place.to_owned()));
        self
    }

    /// What a bad definition does at the start: `Skip` (default here) uses the good ones and
    /// [`ChatService::status`] tells of the rest; `Refuse` builds no service.
    #[must_use]
    pub fn on_invalid(mut self, on_invalid: OnInvalid) -> Self {
        self.on_invalid = on_invalid;
        self
    }

    /// The actions that hook files may name, own ones among them.
    #[must_use]
    pub fn actions(mut self, actions: ActionKinds) -> Self {
        self.actions = actions;
        self
    }

    /// The handlers that lifecycle hooks may name; with none, such a hook is a problem.
    #[must_use]
    pub fn workshop(mut self, workshop: Workshop) -> Self {
        self.workshop = workshop;
        self
    }

    /// The count of questions that prompt hooks ask, shared with their workshop: each send begins a new turn.
    #[must_use]
    pub fn turns(mut self, turns: Turns) -> Self {
        self.turns = turns;
        self
    }

    /// The session's id in records; by default a new one.
    #[must_use]
    pub fn session_id(mut self, id: impl Into<String>) -> Self {
        self.who.session_id = id.into();
        self
    }

    /// Whose conversation it is, for hooks that are bound to a tenant.
    #[must_use]
    pub fn tenant(mut self, id: impl Into<String>) -> Self {
        self.who.tenant_id = Some(id.into());
        self
    }

    /// Which agent it is, for hooks that are bound to one.
    #[must_use]
    pub fn agent(mut self, id: impl Into<String>) -> Self {
        self.who.agent_id = Some(id.into());
        self
    }

    /// Where the records of lifecycle hooks go; by default the newest 10,000 stay in memory.
    #[must_use]
    pub fn recorder(mut self, recorder: Arc<dyn Recorder>) -> Self {
        self.recorder = recorder;
        self
    }

    /// Where the work of watching hooks is kept until it is done; by default it is in memory and ends with the process.
    #[must_use]
    pub fn outbox(mut self, outbox: Arc<dyn Outbox>) -> Self {
        self.outbox = Some(outbox);
        self
    }

    /// How long all hooks of one event may take together (default 60 s).
    #[must_use]
    pub fn chain_budget(mut self, budget: Duration) -> Self {
        self.chain_budget = budget;
        self
    }

    /// Offers the tool `task`, with which the model starts sub-agents: conversations of their own with the same
    /// model, hooks and tools, nested at most as deep as hooks allow.
    #[must_use]
    pub fn subagents(mut self, limits: Subagents) -> Self {
        self.subagents = Some(limits);
        self
    }

    /// Offers a tool to the model.
    #[must_use]
    pub fn tool(mut self, tool: impl Tool + 'static) -> Self {
        self.tools.add(Arc::new(tool));
        self
    }

    /// The model's name at the provider and its parameters; messages and tools in it are ignored.
    #[must_use]
    pub fn request(mut self, request: Request) -> Self {
        self.request = request;
        self
    }

    /// A system prompt, sent in front of the history.
    #[must_use]
    pub fn system_prompt(mut self, text: impl Into<String>) -> Self {
        self.system = Some(text.into());
        self
    }

    /// How many rounds of tool calls one send may make (default 10, or `LLM_CHAT_MAX_TOOL_CALL_ROUNDS`).
    #[must_use]
    pub fn max_tool_call_rounds(mut self, rounds: u32) -> Self {
        self.max_tool_call_rounds = Some(rounds);
        self
    }

    /// How many resends by hooks one send may make (default 10).
    #[must_use]
    pub fn max_resends(mut self, resends: u32) -> Self {
        self.max_resends = resends;
        self
    }

    /// Sees every event, also of messages that are added outside a send, and of hooks that run in the background: those
    /// at any time until [`ChatService::close`] is done.
    #[must_use]
    pub fn observer(mut self, observer: impl Fn(&ChatEvent<'_>) + Send + Sync + 'static) -> Self {
        self.observer = Some(Arc::new(observer));
        self
    }

    /// Where environment variables are looked up; by default the process's environment.
    #[must_use]
    pub fn environment(mut self, lookup: impl Fn(&str) -> Option<OsString> + 'static) -> Self {
        self.environment = Box::new(lookup);
        self
    }

    /// Loads the hooks and makes the service.
    pub fn build(self) -> Result<ChatService, BuildError> {
        let max_tool_call_rounds = match self.max_tool_call_rounds {
            Some(rounds) => rounds,
            None => self.rounds_from_environment()?,
        };
        let mut sources = Sources::new(self.workshop);
        for (name, settings, place) in self.builtins {
            sources = sources.with_builtin(&name, settings, &place);
        }
        let trusted = self.trusted_dir.map(HookFolder::of_operator);
        let users =
            folder::resolve(self.hooks_dir, (self.environment)(HOOKS_DIR_VARIABLE)).map(HookFolder::new);
        for folder in trusted.into_iter().chain(users) {
            sources = sources.with_folder(folder.with_actions(self.actions.clone()));
        }
        let loaded = sources.load();
        sources.tell_installed(&loaded, &*self.recorder);
        let warnings = loaded.warnings.clone();
        let (set, problems) = loaded.into_set(self.on_invalid);
        let Some(set) = set.or_else(|| (self.on_invalid == OnInvalid::Skip).then(HookSet::empty)) else {
            return Err(BuildError::Hooks(problems));
        };
        let around = Surroundings {
            timer: Arc::new(TokioTimer::new()),
            recorder: self.recorder,
            budget: self.chain_budget,
        };
        let on_trace = self.observer.clone().map(|observer| {
            let told: Box<OnTrace> =
                Box::new(move |trace| events_of(trace).for_each(|event| observer(&event)));
            told
        });
        let dispatcher = Arc::new(Dispatcher::new(set));
        let kept = self.outbox.map(|outbox| Kept {
            outbox,
            dispatcher: dispatcher.clone(),
            origins: sources.origins(),
        });
        let watchers = Watchers::with_outbox(around.clone(), Limits::default(), on_trace, kept);
        let mut conversation = Conversation::default();
        conversation.session.keep_firings();
        let mut inner = Inner {
            model: self.model,
            tools: self.tools,
            request: self.request,
            system: self.system,
            max_tool_call_rounds,
            max_resends: self.max_resends,
            dispatcher,
            lifecycle: Lifecycle {
                who: self.who,
                watchers: Arc::new(watchers),
                around,
                turns: self.turns,
                n_events: AtomicU64::new(0),
                started: AtomicBool::new(false),
            },
            sources,
            status: Mutex::new(Status { problems, warnings }),
            observer: self.observer,
            conversation: Mutex::new(conversation),
            turn: tokio::sync::Mutex::new(()),
        };
        if let Some(limits) = self.subagents {
            let task = Task::new(&inner, limits);
            inner.tools.add(Arc::new(task));
        }
        Ok(ChatService { inner: Arc::new(inner) })
    }

    fn rounds_from_environment(&self) -> Result<u32, BuildError> {
        let Some(found) = (self.environment)(MAX_TOOL_CALL_ROUNDS_VARIABLE) else {
            return Ok(DEFAULT_TOOL_CALL_ROUNDS);
        };
        let text = found.to_string_lossy();
        text.trim().parse().map_err(|_| BuildError::Environment {
            name: MAX_TOOL_CALL_ROUNDS_VARIABLE,
            found: text.into_owned(),
            expected: "a whole number, zero or more",
        })
    }
}

/// An id that no other session of this machine has: the time, the process and a number.
pub(crate) fn new_session_id() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_micros());
    let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    format!("chat-{now:x}-{:x}-{number:x}", std::process::id())
}
