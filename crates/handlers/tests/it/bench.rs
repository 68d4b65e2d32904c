//! A dispatcher with one folder of hooks, and what can be seen of a call.

use hookgate_core::action::ActionKinds;
use hookgate_core::define;
use hookgate_core::dispatch::Dispatcher;
use hookgate_core::facts::{GateEvent, Head, LifeEvent, ShapeEvent};
use hookgate_core::gate::Surroundings;
use hookgate_core::hook::Source;
use hookgate_core::record::{Memory, Record};
use hookgate_core::set::HookSet;
use hookgate_core::verdict::{Additions, Ruling, Trace};
use hookgate_handlers::clock::TokioTimer;
use hookgate_handlers::folder::Loaded;
use hookgate_handlers::workshop::Workshop;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(crate) struct Bench {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) dispatcher: Dispatcher,
    pub(crate) around: Surroundings,
    pub(crate) memory: Arc<Memory>,
}

/// Loads hooks as if they stood in a file of `dir`.
pub(crate) fn load(dir: &Path, workshop: &Workshop, hooks: &Value) -> Loaded {
    let file = dir.join("hooks.json").display().to_string();
    let read = define::read(&file, &hooks.to_string(), Source::User, &ActionKinds::standard());
    workshop.equip(Loaded { hooks: read.hooks, problems: read.problems, warnings: read.warnings })
}

impl Bench {
    pub(crate) fn new(dir: tempfile::TempDir, workshop: &Workshop, hooks: &Value) -> Bench {
        let loaded = load(dir.path(), workshop, hooks);
        Bench::of(dir, loaded)
    }

    pub(crate) fn of(dir: tempfile::TempDir, loaded: Loaded) -> Bench {
        let problems: Vec<String> = loaded.problems.iter().map(ToString::to_string).collect();
        assert!(problems.is_empty(), "{problems:?}");
        let memory = Arc::new(Memory::new(1000));
        let around = Surroundings {
            timer: Arc::new(TokioTimer::new()),
            recorder: memory.clone(),
            budget: Duration::from_secs(60),
        };
        let set = HookSet::new(loaded.hooks).unwrap();
        Bench { dir, dispatcher: Dispatcher::new(set), around, memory }
    }

    pub(crate) async fn gate(&self, input: Value) -> Ruling {
        let event = GateEvent::PreToolUse { tool_name: "exec".into(), tool_input: input };
        self.dispatcher.ask(&self.around, &head("e-1"), event).await
    }

    pub(crate) async fn ls(&self) -> Ruling {
        self.gate(json!({"command": "ls"})).await
    }

    pub(crate) async fn shape(&self) -> Additions {
        let event = ShapeEvent::PreResponse { response: "The files are a, b and c.".into() };
        self.dispatcher.shape(&self.around, &head("e-1"), event).await
    }

    pub(crate) async fn watch(&self, event_id: &str) -> Vec<Trace> {
        let mut traces = Vec::new();
        for watch in self.dispatcher.watch(&head(event_id), tool_ran()) {
            traces.push(watch.run(&self.around).await);
        }
        traces
    }

    pub(crate) fn last(&self) -> Record {
        self.memory.records().last().unwrap().clone()
    }

    /// The decision of the last record and its error in full.
    #[track_caller]
    pub(crate) fn recorded(&self, decision: &str, words: &str) {
        let record = self.last();
        let error = record.error_detail.unwrap_or_default();
        assert_eq!(record.decision.to_string(), decision, "{error}");
        assert!(error.contains(words), "{error:?} lacks {words:?}");
    }
}

pub(crate) fn head(event_id: &str) -> Head {
    Head { event_id: event_id.into(), session_id: "s-1".into(), ..Head::default() }
}

pub(crate) fn tool_ran() -> LifeEvent {
    LifeEvent::PostToolUse {
        tool_name: "exec".into(),
        tool_input: json!({"command": "ls"}),
        tool_output: json!("a"),
    }
}

pub(crate) fn reason(ruling: &Ruling) -> &str {
    ruling.block().map_or("(allowed)", |block| block.reason.as_str())
}

/// Living processes whose working directory is the test's.
fn left(dir: &Path) -> Vec<String> {
    let dir = dir.canonicalize().unwrap();
    let mut left = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        if std::fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(&dir)) {
            let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            left.push(String::from_utf8_lossy(&line).replace('\0', " "));
        }
    }
    left
}

#[track_caller]
pub(crate) fn all_gone(dir: &Path) {
    let began = Instant::now();
    while !left(dir).is_empty() {
        assert!(began.elapsed() < Duration::from_secs(1), "left: {:?}", left(dir));
        std::thread::sleep(Duration::from_millis(5));
    }
}
