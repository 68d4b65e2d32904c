//! Where a door's hooks come from, each with the trust that follows from its place: hooks of the program that the
//! configuration enables, the operator's folder, the user's folder. Loaded in this order; an id that is taken by
//! the more trusted cannot be taken again.

use crate::builtin;
use crate::folder::{HookFolder, Loaded};
use crate::outbox::origin_of;
use crate::workshop::Workshop;
use hookgate_core::define::Problem;
use hookgate_core::hook::Hook;
use hookgate_core::record::Recorder;
use serde_json::{Map, Value};
use std::path::Path;

/// All places that a door loads hooks from, and the workshop that equips them.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    builtins: Vec<Enabled>,
    folders: Vec<HookFolder>,
    workshop: Workshop,
}

/// A built-in hook that a configuration enables.
#[derive(Debug, Clone)]
struct Enabled {
    name: String,
    settings: Map<String, Value>,
    /// Where this was written, for the text of a problem.
    place: String,
}

impl Sources {
    /// No hooks yet; those to come get their handlers from this workshop.
    pub fn new(workshop: Workshop) -> Sources {
        Sources { workshop, ..Sources::default() }
    }

    /// Enables a hook of the program ([`builtin::ALL`]). `place` is the file in which this is written.
    #[must_use]
    pub fn with_builtin(mut self, name: &str, settings: Map<String, Value>, place: &str) -> Sources {
        self.builtins.push(Enabled { name: name.to_owned(), settings, place: place.to_owned() });
        self
    }

    /// Adds a folder. Those of the operator must come before those of users.
    #[must_use]
    pub fn with_folder(mut self, folder: HookFolder) -> Sources {
        self.folders.push(folder);
        self
    }

    /// The folders, as [`origin_of`] names them: whose jobs in an outbox are this door's.
    pub fn origins(&self) -> Vec<String> {
        self.folders.iter().map(|folder| origin_of(folder.path())).collect()
    }

    /// The folders' paths, in the order in which they are loaded.
    pub fn folders(&self) -> impl Iterator<Item = &Path> {
        self.folders.iter().map(HookFolder::path)
    }

    /// Tells the recorder which hooks each folder has, if all could be read: a rule that is broken for a moment is not
    /// gone.
    pub fn tell_installed(&self, loaded: &Loaded, recorder: &dyn Recorder) {
        if !loaded.problems.is_empty() {
            return;
        }
        for folder in &self.folders {
            let is_from = |hook: &&Hook| Path::new(&hook.file).parent() == Some(folder.path());
            let hooks = loaded.hooks.iter().filter(is_from).map(|hook| hook.key.to_string());
            recorder.installed(&origin_of(folder.path()), hooks.collect());
        }
    }

    /// Whether nothing can come from here.
    pub fn is_empty(&self) -> bool {
        self.builtins.is_empty() && self.folders.is_empty()
    }

    /// Loads everything, without handlers: enough for a list.
    pub fn read(&self) -> Loaded {
        let mut loaded = Loaded::default();
        for Enabled { name, settings, place } in &self.builtins {
            match builtin::hook(name, settings) {
                Ok(hook) => loaded.hooks.push(hook),
                Err(why) => {
                    let problem = Problem::of_file(place, why);
                    loaded.problems.push(Problem { field: Some(format!("builtin.{name}")), ..problem });
                }
            }
        }
        for folder in &self.folders {
            loaded.append(folder.load());
        }
        loaded
    }

    /// Loads everything and gives each lifecycle hook its handler.
    pub fn load(&self) -> Loaded {
        self.equip(self.read())
    }

    /// Gives each lifecycle hook its handler, for a door that needs only some of what [`read`](Sources::read) gave.
    pub fn equip(&self, loaded: Loaded) -> Loaded {
        self.workshop.equip(loaded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hookgate_core::hook::Source;
    use serde_json::json;
    use std::fs;

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs::write(dir.path().join(name), text).unwrap();
        }
        dir
    }

    #[test]
    fn trust_follows_from_the_place() {
        let own = folder(&[("a.json", r#"{"target":"chat","label":"operator"}"#)]);
        let users = folder(&[("a.json", r#"{"target":"chat","label":"user"}"#)]);
        let loaded = Sources::default()
            .with_builtin("destructive", Map::new(), "x.toml")
            .with_folder(HookFolder::of_operator(own.path()))
            .with_folder(HookFolder::new(users.path()))
            .load();
        assert!(loaded.problems.is_empty(), "{:?}", loaded.problems);
        let got: Vec<(&str, Source)> =
            loaded.hooks.iter().map(|hook| (hook.label.as_str(), hook.source)).collect();
        let want = [
            ("builtin/destructive", Source::Builtin),
            ("operator", Source::Operator),
            ("user", Source::User),
        ];
        assert_eq!(got, want);
    }

    #[test]
    fn a_user_cannot_take_the_place_of_a_builtin_hook() {
        let users = folder(&[(
            "a.json",
            r#"[{"id":"builtin/destructive","event":"stop","handler":{"type":"script","source":"x"}},
                {"id":"builtin/destructive","event":"pre_tool_use","scope":"tenant","tenant":"acme","priority":9,
                 "handler":{"type":"script","source":"x"}}]"#,
        )]);
        let loaded = Sources::default()
            .with_builtin("destructive", Map::new(), "x.toml")
            .with_folder(HookFolder::new(users.path()))
            .read();
        assert_eq!(loaded.hooks.len(), 1);
        assert_eq!(loaded.hooks[0].source, Source::Builtin);
        assert_eq!(loaded.problems.len(), 2, "in no scope");
        for problem in loaded.problems {
            let text = problem.to_string();
            assert!(text.contains("`builtin/destructive` is already used in builtin"), "{text}");
        }
    }

    #[test]
    fn wrong_settings_name_file_and_key() {
        let settings = json!({"shell": "fish"}).as_object().cloned().unwrap();
        let loaded = Sources::default().with_builtin("destructive", settings, "x.toml").load();
        let text = loaded.problems[0].to_string();
        assert!(text.starts_with("x.toml") && text.contains("builtin.destructive"), "{text}");
        assert!(text.contains("`shell`"), "{text}");
    }
}
