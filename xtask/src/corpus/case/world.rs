//! What exists while a case runs: the folder, the service, the model, and what was seen.

use super::super::{model::Answers, stand_in};
use hookgate_chat::{ChatEvent, ChatService};
use hookgate_core::word::Word;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// What observers saw since it was last taken.
#[derive(Debug, Default)]
pub(super) struct Trace {
    pub(super) fired: Vec<String>,
    pub(super) log: Vec<(String, String)>,
    pub(super) resends: usize,
}

pub(super) struct World {
    dir: tempfile::TempDir,
    service: Option<ChatService>,
    pub(super) model: Answers,
    trace: Arc<Mutex<Trace>>,
    resend_cap: Option<u32>,
    /// The hook files as they were laid out.
    pub(super) laid_out: BTreeMap<PathBuf, Vec<u8>>,
}

impl World {
    pub(super) fn new(setup: &Value) -> Result<World, String> {
        let dir = tempfile::tempdir().map_err(|error| error.to_string())?;
        let cap = setup.get("limits").and_then(|limits| limits.get("resend_cap")).and_then(Value::as_u64);
        let mut world = World {
            dir,
            service: None,
            model: Answers::default(),
            trace: Arc::default(),
            resend_cap: cap.and_then(|cap| u32::try_from(cap).ok()),
            laid_out: BTreeMap::new(),
        };
        let hooks = world.hooks_dir();
        std::fs::create_dir(&hooks).map_err(|error| error.to_string())?;
        for (name, content) in setup.get("hook_files").and_then(Value::as_object).into_iter().flatten() {
            let path = hooks.join(name);
            let bytes = stand_in::bytes(content)?;
            std::fs::write(&path, &bytes).map_err(|error| error.to_string())?;
            world.laid_out.insert(path, bytes);
        }
        Ok(world)
    }

    pub(super) fn dir(&self) -> String {
        self.dir.path().display().to_string()
    }

    pub(super) fn hooks_dir(&self) -> PathBuf {
        self.dir.path().join("hooks")
    }

    /// A path of a case, which is meant from the hooks folder.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        match name.strip_prefix("../") {
            Some(beside) => self.dir.path().join(beside),
            None => self.hooks_dir().join(name),
        }
    }

    /// Loads the hooks and begins a conversation.
    pub(super) fn load(&mut self) -> Result<(), String> {
        let trace = self.trace.clone();
        let mut builder = ChatService::builder(self.model.clone())
            .environment(|_| None)
            .hooks_dir(self.hooks_dir())
            .observer(move |event| note(event, &mut trace.lock().unwrap_or_else(PoisonError::into_inner)));
        if let Some(cap) = self.resend_cap {
            builder = builder.max_resends(cap);
        }
        self.service = Some(builder.build().map_err(|error| error.to_string())?);
        Ok(())
    }

    pub(super) fn service(&self) -> Result<&ChatService, String> {
        self.service.as_ref().ok_or_else(|| "no hooks are loaded".into())
    }

    pub(super) fn take_trace(&self) -> Trace {
        std::mem::take(&mut self.trace.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// True if no hook file differs from what was laid out.
    pub(super) fn files_unchanged(&self) -> bool {
        let same = |(path, bytes): (&PathBuf, &Vec<u8>)| std::fs::read(path).is_ok_and(|now| now == *bytes);
        self.laid_out.iter().all(same) && count_files(&self.hooks_dir()) == self.laid_out.len()
    }
}

fn count_files(folder: &Path) -> usize {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter(|entry| entry.path().is_file()).count()
}

fn note(event: &ChatEvent<'_>, trace: &mut Trace) {
    match *event {
        ChatEvent::Fired { hook } => trace.fired.push(hook.to_string()),
        ChatEvent::Log { level, text, .. } => trace.log.push((level.as_str().to_owned(), text.to_owned())),
        ChatEvent::Resend { .. } => trace.resends += 1,
        _ => {}
    }
}
