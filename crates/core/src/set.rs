//! All hooks of a door, arranged so that finding those that an event concerns costs little.
//!
//! For each point the hooks without a pattern stand in lists by role, chunk type or tool name; the patterns of
//! a point are matched together in one pass. Lists hold places in run order, ascending.

use crate::define::Problem;
use crate::event::{ChunkKind, Role, ToolMoment};
use crate::facts::{Facts, Head};
use crate::hook::{Hook, HookListing, Listens, Reach, Work};
use crate::pattern::{Hit, HoldSet, Pattern, PatternError, StreamSet, TextSet};
use crate::point::Point;
use crate::scan::Scan;
use crate::session::Found;
use crate::word::Word;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The place of a hook in its set.
pub(crate) type Slot = u32;

/// An immutable set of hooks. A reload makes a new one.
#[derive(Debug)]
pub struct HookSet {
    hooks: Vec<Hook>,
    messages: [Vec<Slot>; Role::ALL.len()],
    message_patterns: Option<TextPatterns>,
    chunks: [ChunkHooks; ChunkKind::ALL.len()],
    tools: [ToolHooks; ToolMoment::ALL.len()],
    points: [PointHooks; Point::ALL.len()],
    /// Whether some key stands for several hooks: the same rule for several tenants.
    repeats: bool,
}

/// The lifecycle hooks of a point.
#[derive(Debug, Default)]
struct PointHooks {
    /// Those that see every event of the point.
    any: Vec<Slot>,
    /// Those whose matcher is a plain list of names.
    by_name: HashMap<String, Vec<Slot>>,
    /// Those with any other matcher.
    matchers: Option<TextPatterns>,
}

/// The hooks with a pattern, by what they listen to, while a set is arranged.
#[derive(Default)]
struct Patterned {
    messages: Vec<Slot>,
    chunks: [Vec<Slot>; ChunkKind::ALL.len()],
    tools: [Vec<Slot>; ToolMoment::ALL.len()],
    points: [Vec<Slot>; Point::ALL.len()],
}

/// The patterns of a point over whole texts, and whose they are.
#[derive(Debug)]
pub(crate) struct TextPatterns {
    set: TextSet,
    slots: Vec<Slot>,
}

/// The hooks of one chunk type.
#[derive(Debug, Default)]
pub(crate) struct ChunkHooks {
    /// Those without a pattern.
    pub(crate) plain: Vec<Slot>,
    /// Those with one. Types with the same hooks share the set.
    pub(crate) patterns: Option<Arc<StreamPatterns>>,
    /// Those that scan.
    pub(crate) scans: Vec<ScanHook>,
    /// The patterns of those that keep what they find from the reader.
    pub(crate) holds: Option<HoldSet>,
}

/// A hook that scans.
#[derive(Debug)]
pub(crate) struct ScanHook {
    pub(crate) slot: Slot,
    pub(crate) scan: Arc<dyn Scan>,
    /// It keeps what it finds from the reader.
    pub(crate) holds: bool,
}

/// The patterns of a channel, and whose they are.
#[derive(Debug)]
pub(crate) struct StreamPatterns {
    pub(crate) set: StreamSet,
    pub(crate) slots: Vec<Slot>,
}

/// The hooks of one moment of a tool's run.
#[derive(Debug, Default)]
pub(crate) struct ToolHooks {
    any: Vec<Slot>,
    by_name: HashMap<String, Vec<Slot>>,
    patterns: Option<TextPatterns>,
}

impl HookSet {
    /// Arranges hooks. Run order: higher priority first, then global, tenant, agent, then the given order.
    /// Fails if the patterns together are too large.
    pub fn new(mut hooks: Vec<Hook>) -> Result<HookSet, Box<Problem>> {
        hooks.sort_by_key(|hook| (std::cmp::Reverse(hook.priority), hook.reach.scope() as u8));
        let mut set = HookSet::empty();
        let mut patterned = Patterned::default();
        for (slot, hook) in (0..).zip(&hooks) {
            set.place(slot, &hook.listens, &mut patterned);
        }
        set.message_patterns = TextPatterns::new(&hooks, patterned.messages)?;
        let mut made: Vec<Arc<StreamPatterns>> = Vec::new();
        for (index, slots) in set.chunks.iter_mut().zip(patterned.chunks) {
            index.holds = held(&hooks, &slots)?;
            index.patterns = StreamPatterns::shared(&hooks, slots, &mut made)?;
            for scan in &mut index.scans {
                scan.holds = keeps_back(&hooks, scan.slot);
            }
        }
        for (index, slots) in set.tools.iter_mut().zip(patterned.tools) {
            index.patterns = TextPatterns::new(&hooks, slots)?;
        }
        for (index, slots) in set.points.iter_mut().zip(patterned.points) {
            index.matchers = TextPatterns::new(&hooks, slots)?;
        }
        let keys: HashSet<&str> = hooks.iter().map(|hook| &*hook.key).collect();
        set.repeats = keys.len() < hooks.len();
        set.hooks = hooks;
        Ok(set)
    }

    /// Puts a hook where its events will look for it: into the lists, or to those with a pattern.
    fn place(&mut self, slot: Slot, listens: &Listens, patterned: &mut Patterned) {
        match listens {
            Listens::Message { regex: Some(_), .. } => patterned.messages.push(slot),
            Listens::Message { roles, regex: None } => {
                let lists = self.messages.iter_mut().zip(Role::ALL);
                lists.filter(|(_, (_, role))| roles.contains(*role)).for_each(|(list, _)| list.push(slot));
            }
            Listens::Chunk { kinds, regex } => {
                let lists = self.chunks.iter_mut().zip(&mut patterned.chunks).zip(ChunkKind::ALL);
                for ((hooks, slots), (_, kind)) in lists.filter(|(_, (_, kind))| kinds.contains(*kind)) {
                    match regex {
                        None => hooks.plain.push(slot),
                        // a finish has no text, so a pattern cannot be found in it
                        Some(_) if *kind == ChunkKind::Finish => {}
                        Some(_) => slots.push(slot),
                    }
                }
            }
            Listens::Scan { kinds, scan } => {
                let lists = self.chunks.iter_mut().zip(ChunkKind::ALL);
                for (hooks, _) in lists.filter(|(_, (_, kind))| kinds.contains(*kind)) {
                    hooks.scans.push(ScanHook { slot, scan: scan.clone(), holds: false });
                }
            }
            Listens::Tool { moment, names, regex } => {
                let lists = self.tools.iter_mut().zip(&mut patterned.tools).zip(ToolMoment::ALL);
                for ((hooks, slots), _) in lists.filter(|(_, (_, m))| m == moment) {
                    match regex {
                        None => hooks.add(slot, names),
                        Some(_) => slots.push(slot),
                    }
                }
            }
            Listens::Point { point, filter } => {
                let lists = self.points.iter_mut().zip(&mut patterned.points).zip(Point::ALL);
                for ((hooks, slots), _) in lists.filter(|(_, (_, p))| p == point) {
                    match filter.matcher.as_ref().map(|matcher| plain_names(matcher.source())) {
                        None => hooks.any.push(slot),
                        Some(Some(names)) => {
                            for name in names {
                                let slots = hooks.by_name.entry(name).or_default();
                                if slots.last() != Some(&slot) {
                                    slots.push(slot);
                                }
                            }
                        }
                        Some(None) => slots.push(slot),
                    }
                }
            }
        }
    }

    /// A set without hooks.
    pub fn empty() -> HookSet {
        HookSet {
            hooks: Vec::new(),
            messages: Default::default(),
            message_patterns: None,
            chunks: Default::default(),
            tools: Default::default(),
            points: Default::default(),
            repeats: false,
        }
    }

    /// The hooks in run order.
    pub fn hooks(&self) -> &[Hook] {
        &self.hooks
    }

    /// What is loaded, in run order.
    pub fn listing(&self) -> Vec<HookListing> {
        self.hooks.iter().map(Hook::listing).collect()
    }

    pub(crate) fn hook(&self, slot: Slot) -> Option<&Hook> {
        self.hooks.get(usize::try_from(slot).ok()?)
    }

    /// The place of the lifecycle hook with this key that may see an event.
    pub(crate) fn place_of(&self, key: &str, facts: &Facts) -> Option<Slot> {
        let fits = |hook: &Hook| {
            let at_point = matches!(hook.listens, Listens::Point { point, .. } if point == facts.point());
            at_point && *hook.key == *key && sees(&hook.reach, facts.head())
        };
        (0..).zip(&self.hooks).find(|(_, hook)| fits(hook)).map(|(slot, _)| slot)
    }

    pub(crate) fn chunk(&self, kind: ChunkKind) -> &ChunkHooks {
        let [content, reasoning, tool_call_delta, finish] = &self.chunks;
        match kind {
            ChunkKind::Content => content,
            ChunkKind::Reasoning => reasoning,
            ChunkKind::ToolCallDelta => tool_call_delta,
            ChunkKind::Finish => finish,
        }
    }

    /// Whether some hook looks at chunks of this type.
    pub fn listens_to_chunks(&self, kind: ChunkKind) -> bool {
        let hooks = self.chunk(kind);
        !hooks.plain.is_empty() || hooks.patterns.is_some() || !hooks.scans.is_empty()
    }

    /// Whether some hook looks at tools at this moment of their run, as JSON hooks do.
    pub fn listens_to_tools(&self, moment: ToolMoment) -> bool {
        let index = self.tools.get(moment as usize);
        index.is_some_and(|at| !at.any.is_empty() || !at.by_name.is_empty() || at.patterns.is_some())
    }

    /// Whether some hook looks at messages, as JSON hooks do.
    pub fn listens_to_messages(&self) -> bool {
        self.message_patterns.is_some() || self.messages.iter().any(|slots| !slots.is_empty())
    }

    /// The hooks that a message concerns, in run order.
    pub(crate) fn on_message(&self, role: Role, text: &str, due: &mut Vec<Slot>) {
        let [user, assistant, tool, reasoning] = &self.messages;
        due.extend_from_slice(match role {
            Role::User => user,
            Role::Assistant => assistant,
            Role::Tool => tool,
            Role::Reasoning => reasoning,
        });
        if let Some(patterns) = &self.message_patterns {
            patterns.matches(text, due, |slot| match self.hook(slot).map(|hook| &hook.listens) {
                Some(Listens::Message { roles, .. }) => roles.contains(role),
                _ => false,
            });
        }
        due.sort_unstable();
    }

    /// The lifecycle hooks that an event of this point concerns by scope and matcher, in run order; nothing is
    /// allocated where there are none.
    pub(crate) fn at_point(&self, point: Point, tool: &str, head: &Head) -> Vec<Slot> {
        let Some(index) = self.points.get(point as usize) else { return Vec::new() };
        let mut due = index.any.clone();
        for tool in std::iter::once(tool).chain(head.tool_names.iter().map(String::as_str)) {
            due.extend_from_slice(index.by_name.get(tool).map(Vec::as_slice).unwrap_or_default());
            if let Some(patterns) = &index.matchers {
                patterns.matches(tool, &mut due, |slot| match self.hook(slot).map(|hook| &hook.listens) {
                    Some(Listens::Point { filter, .. }) => {
                        filter.matcher.as_ref().is_some_and(|matcher| matcher.is_full_match(tool))
                    }
                    _ => false,
                });
            }
        }
        due.sort_unstable();
        due.dedup();
        due.retain(|slot| self.hook(*slot).is_some_and(|hook| sees(&hook.reach, head)));
        due
    }

    /// The hooks that an event of this point concerns by scope and matcher, in run order. `tool` is the tool's name, empty
    /// where there is none.
    pub fn hooks_at(&self, point: Point, tool: &str, head: &Head) -> impl Iterator<Item = &Hook> {
        self.at_point(point, tool, head).into_iter().filter_map(|slot| self.hook(slot))
    }

    /// Whether some hook listens at this point of the lifecycle.
    pub fn listens_at(&self, point: Point) -> bool {
        let index = self.points.get(point as usize);
        index.is_some_and(|at| !at.any.is_empty() || !at.by_name.is_empty() || at.matchers.is_some())
    }

    /// Whether some id stands for several hooks, in different scopes. Of those that an event concerns, after all
    /// filters, only the first runs.
    pub(crate) fn repeats(&self) -> bool {
        self.repeats
    }

    /// The hooks that a tool's run concerns by any of its names, in run order. `text` is made only where a pattern
    /// needs it.
    pub(crate) fn on_tool<'t>(
        &self,
        moment: ToolMoment,
        name: &str,
        others: &[String],
        text: impl FnOnce() -> std::borrow::Cow<'t, str>,
        due: &mut Vec<Slot>,
    ) {
        let [before, after, error] = &self.tools;
        let index = match moment {
            ToolMoment::Before => before,
            ToolMoment::After => after,
            ToolMoment::Error => error,
        };
        due.extend_from_slice(&index.any);
        let called = |wanted: &str| wanted == name || others.iter().any(|other| other == wanted);
        for name in std::iter::once(name).chain(others.iter().map(String::as_str)) {
            due.extend_from_slice(index.by_name.get(name).map(Vec::as_slice).unwrap_or_default());
        }
        if let Some(patterns) = &index.patterns {
            patterns.matches(&text(), due, |slot| match self.hook(slot).map(|hook| &hook.listens) {
                Some(Listens::Tool { names, .. }) => {
                    names.is_empty() || names.iter().any(|name| called(name))
                }
                _ => false,
            });
        }
        due.sort_unstable();
        due.dedup();
    }
}

impl ToolHooks {
    fn add(&mut self, slot: Slot, names: &[String]) {
        if names.is_empty() {
            self.any.push(slot);
        }
        for (place, name) in names.iter().enumerate() {
            // a name that is written twice is still one wish
            if !names.iter().take(place).any(|earlier| earlier == name) {
                self.by_name.entry(name.clone()).or_default().push(slot);
            }
        }
    }
}

impl TextPatterns {
    fn new(hooks: &[Hook], slots: Vec<Slot>) -> Result<Option<TextPatterns>, Box<Problem>> {
        if slots.is_empty() {
            return Ok(None);
        }
        let set =
            TextSet::new(&patterns_of(hooks, &slots)).map_err(|error| too_large(hooks, &slots, &error))?;
        Ok(Some(TextPatterns { set, slots }))
    }

    fn matches(&self, text: &str, due: &mut Vec<Slot>, concerns: impl Fn(Slot) -> bool) {
        let mut hits = Vec::new();
        self.set.matches_into(text, &mut hits);
        due.extend(
            hits.iter().filter_map(|hit| self.slots.get(*hit)).copied().filter(|slot| concerns(*slot)),
        );
    }
}

impl StreamPatterns {
    fn shared(
        hooks: &[Hook],
        slots: Vec<Slot>,
        made: &mut Vec<Arc<StreamPatterns>>,
    ) -> Result<Option<Arc<StreamPatterns>>, Box<Problem>> {
        if slots.is_empty() {
            return Ok(None);
        }
        if let Some(same) = made.iter().find(|patterns| patterns.slots == slots) {
            return Ok(Some(same.clone()));
        }
        let set =
            StreamSet::new(&patterns_of(hooks, &slots)).map_err(|error| too_large(hooks, &slots, &error))?;
        let patterns = Arc::new(StreamPatterns { set, slots });
        made.push(patterns.clone());
        Ok(Some(patterns))
    }

    /// Says whose patterns were found.
    pub(crate) fn name(&self, hits: &mut Vec<Hit>, found: &mut Vec<Found>) {
        found.extend(hits.drain(..).filter_map(|hit| {
            self.slots.get(hit.pattern).map(|slot| Found {
                slot: *slot,
                matched: hit.matched,
                spans: Vec::new(),
            })
        }));
    }
}

/// Whose events a hook sees. Of another tenant it sees nothing, whatever its priority.
pub(crate) fn sees(reach: &Reach, head: &Head) -> bool {
    match reach {
        Reach::Global => true,
        Reach::Tenant(tenant) => head.tenant_id.as_ref() == Some(tenant),
        Reach::Agents { tenant, agents } => {
            head.tenant_id.as_ref() == Some(tenant)
                && head.agent_id.as_ref().is_some_and(|agent| agents.contains(agent))
        }
    }
}

/// The names of a matcher that is only a list of names, such as `exec|write_file`.
fn plain_names(source: &str) -> Option<Vec<String>> {
    let plain = |name: &str| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
    };
    let names: Vec<String> = source.split('|').map(str::to_owned).collect();
    names.iter().all(|name| plain(name)).then_some(names)
}

fn patterns_of<'a>(hooks: &'a [Hook], slots: &[Slot]) -> Vec<&'a Pattern> {
    let hook = |slot: &Slot| hooks.get(usize::try_from(*slot).ok()?);
    slots.iter().filter_map(|slot| hook(slot)?.listens.pattern()).collect()
}

/// The patterns of the hooks among these that keep what they find from the reader.
fn held(hooks: &[Hook], slots: &[Slot]) -> Result<Option<HoldSet>, Box<Problem>> {
    let slots: Vec<Slot> = slots.iter().copied().filter(|slot| keeps_back(hooks, *slot)).collect();
    if slots.is_empty() {
        return Ok(None);
    }
    HoldSet::new(&patterns_of(hooks, &slots)).map(Some).map_err(|error| too_large(hooks, &slots, &error))
}

fn keeps_back(hooks: &[Hook], slot: Slot) -> bool {
    let work = usize::try_from(slot).ok().and_then(|slot| hooks.get(slot)).map(|hook| &hook.work);
    matches!(work, Some(Work::Actions(actions)) if actions.iter().any(|action| action.holds()))
}

/// Each pattern alone was fine; together they are more than the engine takes.
fn too_large(hooks: &[Hook], slots: &[Slot], error: &PatternError) -> Box<Problem> {
    let first = slots.first().and_then(|slot| hooks.get(usize::try_from(*slot).ok()?));
    Box::new(Problem::of_file(
        first.map_or("hooks", |hook| &hook.file),
        format!("the {} patterns of this point are too large together: {}", slots.len(), error.reason),
    ))
}
