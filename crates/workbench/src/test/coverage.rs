//! What no test touched: hooks that never fired, and filters that no test saw say yes, or no. A filter that always says yes
//! may be one that filters nothing.
//!
//! The first filter that says no counts; those behind it were not asked.

use crate::happened::Happened;
use hookgate_core::event::{ChunkKind, Role};
use hookgate_core::explain::FilteredBy;
use hookgate_core::hook::{Hook, Listens, Reach};
use hookgate_core::point::Point;
use hookgate_core::set::HookSet;
use hookgate_core::word::WordSet;
use serde::Serialize;
use std::collections::HashMap;

/// The hooks of a set, with what tests saw of them.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(transparent)]
pub struct Coverage {
    hooks: Vec<HookCoverage>,
    /// Places in the list, by key.
    #[serde(skip)]
    places: HashMap<String, usize>,
}

/// A hook.
#[derive(Debug, Clone, Serialize)]
pub struct HookCoverage {
    /// Its name.
    pub hook: String,
    /// Its file.
    pub file: String,
    /// Whether a test made it fire, or its handler asked.
    pub fired: bool,
    /// Its filters, in the order in which they are asked.
    pub filters: Vec<FilterCoverage>,
}

/// A filter.
#[derive(Debug, Clone, Serialize)]
pub struct FilterCoverage {
    /// The field.
    pub field: &'static str,
    /// What is written there.
    pub wanted: String,
    /// A test saw it let an event through.
    pub said_yes: bool,
    /// A test saw it rule its hook out.
    pub said_no: bool,
}

impl Coverage {
    /// Nothing was touched yet.
    pub fn of(set: &HookSet) -> Coverage {
        let of_hook = |hook: &Hook| HookCoverage {
            hook: hook.name.to_string(),
            file: hook.file.clone(),
            fired: false,
            filters: filters(hook),
        };
        let places = set.hooks().iter().enumerate().map(|(place, hook)| (hook.key.to_string(), place));
        Coverage { hooks: set.hooks().iter().map(of_hook).collect(), places: places.collect() }
    }

    /// Adds what one test saw.
    pub fn add(&mut self, events: &[Happened]) {
        // a pattern on a stream says no with every piece before the one that completes it: only a whole test counts
        let mut in_pieces: Vec<(usize, FilteredBy)> = Vec::new();
        let mut fired_now: Vec<usize> = Vec::new();
        for event in events {
            let hooks = event.hooks();
            for looked in &event.looked {
                let Some(place) = self.places.get(&looked.key).copied() else { continue };
                let Some(hook) = self.hooks.get_mut(place) else { continue };
                let fires = hooks.contains(&looked.hook.as_str());
                match &looked.out {
                    // of a chain that somebody stopped before it came to this hook, nothing is known of it
                    None if fires => {
                        hook.fired = true;
                        fired_now.push(place);
                        hook.filters.iter_mut().for_each(|filter| filter.said_yes = true);
                    }
                    None => hook.filters.iter_mut().for_each(|filter| filter.said_yes = true),
                    Some(out) => {
                        let in_a_stream = event.point == Point::Chunk
                            && matches!(out.by, FilteredBy::Regex | FilteredBy::Search);
                        hook.note(out.by, !in_a_stream);
                        if in_a_stream {
                            in_pieces.push((place, out.by));
                        }
                    }
                }
            }
        }
        for (place, by) in in_pieces.into_iter().filter(|(place, _)| !fired_now.contains(place)) {
            if let Some(hook) = self.hooks.get_mut(place) {
                hook.note(by, true);
            }
        }
    }

    /// All hooks in run order.
    pub fn hooks(&self) -> &[HookCoverage] {
        &self.hooks
    }

    /// How many hooks no test fired.
    pub fn n_untouched(&self) -> usize {
        self.hooks.iter().filter(|hook| !hook.fired).count()
    }
}

impl HookCoverage {
    /// A filter ruled it out; those before it let the event through.
    fn note(&mut self, by: FilteredBy, says_no: bool) {
        for filter in &mut self.filters {
            if filter.field == by.as_str() {
                filter.said_no |= says_no;
                return;
            }
            filter.said_yes = true;
        }
    }
}

/// The filters that are set, in the order in which they are asked.
fn filters(hook: &Hook) -> Vec<FilterCoverage> {
    let mut filters = Vec::new();
    let mut add = |by: FilteredBy, wanted: String| {
        filters.push(FilterCoverage { field: by.as_str(), wanted, said_yes: false, said_no: false });
    };
    match &hook.reach {
        Reach::Global => {}
        Reach::Tenant(tenant) => add(FilteredBy::Scope, tenant.clone()),
        Reach::Agents { tenant, agents } => {
            add(FilteredBy::Scope, format!("{tenant}: {}", agents.join(", ")))
        }
    }
    match &hook.listens {
        Listens::Message { roles, regex } => {
            if *roles != WordSet::<Role>::all() {
                add(FilteredBy::Role, listed(roles.words()));
            }
            regex.iter().for_each(|regex| add(FilteredBy::Regex, regex.source().to_owned()));
        }
        Listens::Chunk { kinds, regex } => {
            if *kinds != WordSet::<ChunkKind>::all() {
                add(FilteredBy::Chunks, listed(kinds.words()));
            }
            regex.iter().for_each(|regex| add(FilteredBy::Regex, regex.source().to_owned()));
        }
        Listens::Scan { .. } => add(FilteredBy::Search, "its own".into()),
        Listens::Tool { names, regex, .. } => {
            if !names.is_empty() {
                add(FilteredBy::Tools, names.join(", "));
            }
            regex.iter().for_each(|regex| add(FilteredBy::Regex, regex.source().to_owned()));
        }
        Listens::Point { filter, .. } => {
            filter.matcher.iter().for_each(|matcher| add(FilteredBy::Matcher, matcher.source().to_owned()));
            filter.roles.iter().for_each(|roles| add(FilteredBy::Role, listed(roles.words())));
            filter.regex.iter().for_each(|regex| add(FilteredBy::Regex, regex.source().to_owned()));
            filter.if_expr.iter().for_each(|expr| add(FilteredBy::IfExpr, expr.source().to_owned()));
        }
    }
    if let Some(max) = hook.max_triggers {
        add(FilteredBy::MaxTriggers, max.to_string());
    }
    filters
}

fn listed<'a>(words: impl Iterator<Item = &'a str>) -> String {
    words.collect::<Vec<_>>().join(", ")
}
