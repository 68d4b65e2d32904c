//! The hooks of each tenant, loaded at the start and again when their folders change. A set is put in place whole; an
//! edit that cannot be loaded takes no rule away, and is seen at `/readyz`.

use super::log::Log;
use super::settings::{Settings, TenantSettings};
use crate::failure::Failure;
use crate::problems;
use hookgate_core::action::ActionKinds;
use hookgate_core::define;
use hookgate_core::dispatch::Dispatcher;
use hookgate_core::hook::Source;
use hookgate_core::record::Recorder;
use hookgate_core::set::HookSet;
use hookgate_handlers::folder::{HookFolder, Loaded, OnInvalid};
use hookgate_handlers::sources::Sources;
use hookgate_handlers::workshop::Workshop;
use hookgate_server::metrics::Metrics;
use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Folders deeper than this are no hook folders.
const DEEPEST: usize = 4;
/// More files than this are not looked at for changes.
const MOST_FILES: usize = 20_000;

/// All sets. Clones share them.
#[derive(Clone)]
pub(super) struct HookSets {
    entries: Arc<Vec<Entry>>,
    on_invalid: OnInvalid,
    wrong: Arc<Mutex<Option<String>>>,
}

/// The hooks of one tenant.
pub(super) struct Entry {
    pub(super) tenant: Option<String>,
    pub(super) agent: Option<String>,
    pub(super) max_requests: usize,
    pub(super) dispatcher: Arc<Dispatcher>,
    pub(super) sources: Sources,
    dirs: Vec<PathBuf>,
    /// What the folders were like before they were loaded.
    print: u64,
}

impl HookSets {
    /// Loads them for the first time. Who cannot load them does not start.
    pub(super) fn load(
        settings: &Settings,
        workshop: Workshop,
        recorder: &dyn Recorder,
        log: &Log,
    ) -> Result<HookSets, Failure> {
        let mut entries = Vec::new();
        for tenant in &settings.tenants {
            let (sources, dirs) = sources_of(settings, tenant, workshop.clone());
            // first, so that an edit meanwhile is seen as one
            let print = print_of(&dirs);
            let loaded = sources.load();
            sources.tell_installed(&loaded, recorder);
            for warning in &loaded.warnings {
                log.say(&format!("warning: {warning}"));
            }
            let (set, problems) = loaded.into_set(settings.on_invalid);
            let Some(set) = set else { return Err(Failure::Hooks(problems)) };
            if !problems.is_empty() {
                log.say(&problems::text(&problems));
            }
            entries.push(Entry {
                tenant: tenant.id.clone(),
                agent: tenant.agent.clone(),
                max_requests: tenant.max_requests,
                dispatcher: Arc::new(Dispatcher::new(set)),
                sources,
                dirs,
                print,
            });
        }
        Ok(HookSets { entries: Arc::new(entries), on_invalid: settings.on_invalid, wrong: Arc::default() })
    }

    pub(super) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// How many hooks there are, in words.
    pub(super) fn summary(&self) -> String {
        let hooks: usize = self.entries.iter().map(|entry| entry.dispatcher.current().hooks().len()).sum();
        let tenants = self.entries.len();
        match tenants {
            1 => format!("{hooks} hooks"),
            _ => format!("{tenants} tenants, {hooks} hooks together"),
        }
    }

    /// What is wrong with the newest edit, if something is.
    pub(super) fn degraded(&self) -> Arc<dyn Fn() -> Option<String> + Send + Sync> {
        let wrong = Arc::clone(&self.wrong);
        Arc::new(move || wrong.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }

    /// Looks at the folders again and again, for ever.
    pub(super) async fn follow(
        self,
        every: Duration,
        recorder: Arc<dyn Recorder>,
        log: Log,
        metrics: Arc<Metrics>,
    ) {
        let mut loaded: Vec<u64> = self.entries.iter().map(|entry| entry.print).collect();
        let mut seen = loaded.clone();
        loop {
            tokio::time::sleep(every).await;
            let sets = self.clone();
            let Ok(now) = tokio::task::spawn_blocking(move || sets.prints()).await else { continue };
            // an editor that is still writing is waited for
            let rests = now == seen;
            seen = now;
            if !rests || seen == loaded {
                continue;
            }
            let changed: Vec<bool> = seen.iter().zip(&loaded).map(|(now, then)| now != then).collect();
            loaded.clone_from(&seen);
            let (sets, recorder, told) = (self.clone(), Arc::clone(&recorder), log.clone());
            let reload = move || sets.reload(&changed, &*recorder, &told);
            if let Ok(degraded) = tokio::task::spawn_blocking(reload).await {
                metrics.set_degraded(degraded);
            }
        }
    }

    /// Loads what changed. True: something could not be loaded, and the last good hooks hold there.
    fn reload(&self, changed: &[bool], recorder: &dyn Recorder, log: &Log) -> bool {
        let mut wrong = Vec::new();
        // a set that is degraded is tried again with every change of any
        let degraded = self.wrong.lock().unwrap_or_else(PoisonError::into_inner).is_some();
        for (entry, changed) in self.entries.iter().zip(changed) {
            if !changed && !degraded {
                continue;
            }
            // whatever the policy at the start: a broken edit takes no rule away
            let loaded = entry.sources.load();
            entry.sources.tell_installed(&loaded, recorder);
            let (set, problems) = loaded.into_set(OnInvalid::Refuse);
            match set {
                Some(set) => {
                    log.say(&format!("hooks loaded again: {}", set.hooks().len()));
                    entry.dispatcher.install(set);
                }
                None => {
                    let text = problems::text(&problems);
                    log.say(&format!(
                        "an edit of the hooks cannot be loaded; the last good ones hold\n{text}"
                    ));
                    wrong.push(text);
                }
            }
        }
        let is_wrong = !wrong.is_empty();
        *self.wrong.lock().unwrap_or_else(PoisonError::into_inner) = is_wrong.then(|| wrong.join("\n"));
        is_wrong
    }

    fn prints(&self) -> Vec<u64> {
        self.entries.iter().map(|entry| print_of(&entry.dirs)).collect()
    }
}

impl std::fmt::Debug for HookSets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HookSets").field("on_invalid", &self.on_invalid).finish_non_exhaustive()
    }
}

fn sources_of(settings: &Settings, tenant: &TenantSettings, workshop: Workshop) -> (Sources, Vec<PathBuf>) {
    let mut sources = Sources::new(workshop);
    let mut dirs = Vec::new();
    for (name, enabled) in &settings.builtins {
        sources = sources.with_builtin(name, enabled.clone(), &settings.config_name);
    }
    if let Some(dir) = &settings.trusted_dir {
        sources = sources.with_folder(HookFolder::of_operator(dir));
        dirs.push(dir.clone());
    }
    for dir in settings.hooks_dir.iter().chain(&tenant.hooks_dir) {
        sources = sources.with_folder(HookFolder::new(dir));
        dirs.push(dir.clone());
    }
    (sources, dirs)
}

/// The hooks of the demonstration, trusted as the operator's.
pub(super) fn of_demo(workshop: Workshop) -> Result<HookSet, Failure> {
    let read = define::read("hooks.json", super::demo::HOOKS, Source::Operator, &ActionKinds::standard());
    let loaded = Loaded { hooks: read.hooks, problems: read.problems, ..Loaded::default() };
    let (set, problems) = workshop.equip(loaded).into_set(OnInvalid::Refuse);
    set.ok_or(Failure::Hooks(problems))
}

/// Changes whenever a file in the folders does: names, sizes, times and identities, through links.
fn print_of(dirs: &[PathBuf]) -> u64 {
    let mut hasher = DefaultHasher::new();
    let mut left = MOST_FILES;
    for dir in dirs {
        feed(dir, 0, &mut left, &mut hasher);
    }
    hasher.finish()
}

fn feed(path: &Path, depth: usize, left: &mut usize, hasher: &mut DefaultHasher) {
    use std::os::unix::fs::MetadataExt;
    if *left == 0 {
        return;
    }
    *left -= 1;
    path.hash(hasher);
    let Ok(about) = fs::metadata(path) else { return };
    (about.ino(), about.dev(), about.len(), about.mtime(), about.mtime_nsec(), about.mode()).hash(hasher);
    if !about.is_dir() || depth >= DEEPEST {
        return;
    }
    let Ok(entries) = fs::read_dir(path) else { return };
    let mut names: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    names.sort();
    for name in names {
        feed(&name, depth.saturating_add(1), left, hasher);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_of_saving_is_seen() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let print = || print_of(&[dir.path().to_owned()]);
        let mut last = print();
        let mut changed = |what: &str| {
            let now = print();
            assert_ne!(now, last, "{what}");
            last = now;
        };
        fs::write(at("a.json"), "1").unwrap();
        changed("a new file");
        fs::write(at("b.tmp"), "2").unwrap();
        changed("a temporary file");
        fs::rename(at("b.tmp"), at("a.json")).unwrap();
        changed("a file renamed over another");
        fs::create_dir(at("sub")).unwrap();
        fs::write(at("sub/x.js"), "3").unwrap();
        changed("a script in a folder below");
        fs::remove_file(at("a.json")).unwrap();
        changed("a removed file");
        std::os::unix::fs::symlink(at("sub"), at("link")).unwrap();
        changed("a link");
        let same = print();
        assert_eq!(same, print());
    }
}
