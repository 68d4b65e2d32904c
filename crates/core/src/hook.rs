//! A checked definition. Both written formats end here; nothing is validated again later.

use crate::action::Action;
use crate::effect::HookName;
use crate::event::{ChunkKind, Role, ToolMoment};
use crate::filter::Filter;
use crate::handler::{Handler, HandlerSpec};
use crate::pattern::Pattern;
use crate::point::Point;
use crate::scan::Scan;
use crate::version::Version;
use crate::word::{Word, WordSet, words};
use std::sync::Arc;

words! {
    /// What a JSON hook listens to.
    pub enum Target("target") {
        /// Messages that enter the history.
        Chat = "chat",
        /// Pieces of a streamed answer.
        Stream = "stream",
        /// Tools that run.
        Tool = "tool",
    }
}

words! {
    /// Whose events a lifecycle hook sees.
    pub enum Scope("scope") {
        /// Everybody's.
        Global = "global",
        /// One tenant's.
        Tenant = "tenant",
        /// Those of one tenant's named agents.
        Agent = "agent",
    }
}

/// One rule.
#[derive(Debug)]
pub struct Hook {
    /// The same over reloads as long as the rule stays where it is: its id, or file and place in it.
    pub key: Arc<str>,
    /// The label as written; empty if there is none.
    pub label: String,
    /// What people see: the label or id, else file and place.
    pub name: HookName,
    /// The file it was written in, as the user knows it.
    pub file: String,
    /// Its place in that file, from 0.
    pub index: usize,
    /// The events it wants to see.
    pub listens: Listens,
    /// Stops after this many firings in a session.
    pub max_triggers: Option<u64>,
    /// Higher runs first.
    pub priority: i64,
    /// Whose events it sees.
    pub reach: Reach,
    /// What it does.
    pub work: Work,
    /// Fields of the input that it may change; only a built-in hook has any.
    pub mutable_fields: Vec<String>,
    /// Which wording of the rule it is.
    pub version: Version,
    /// Which tier the text came from. Never read from a file: it follows from where the text was loaded.
    pub source: Source,
}

/// The events a hook wants, with all filters that need no handler.
#[derive(Debug)]
pub enum Listens {
    /// Target `chat`.
    Message {
        /// Only these roles.
        roles: WordSet<Role>,
        /// Only texts in which this is found.
        regex: Option<Pattern>,
    },
    /// Target `stream`.
    Chunk {
        /// Only these types.
        kinds: WordSet<ChunkKind>,
        /// Only where a match of this is completed, over the text of the channel so far.
        regex: Option<Pattern>,
    },
    /// As target `stream`, for a hook of the program that looks for what no pattern can describe.
    Scan {
        /// Only these types; a finish has no text.
        kinds: WordSet<ChunkKind>,
        /// Only where this finds something, in the text of the channel so far.
        scan: Arc<dyn Scan>,
    },
    /// Target `tool`.
    Tool {
        /// Before, after or on error.
        moment: ToolMoment,
        /// Only these tools; empty: all.
        names: Vec<String>,
        /// Only where this is found in the arguments (before), the result (after) or the error.
        regex: Option<Pattern>,
    },
    /// A lifecycle hook.
    Point {
        /// Where.
        point: Point,
        /// Which of its events.
        filter: Filter,
    },
}

impl Listens {
    /// The point at which the hook listens.
    pub fn point(&self) -> Point {
        match self {
            Listens::Message { .. } => Point::Message,
            Listens::Chunk { .. } | Listens::Scan { .. } => Point::Chunk,
            Listens::Tool { moment: ToolMoment::Before, .. } => Point::PreToolUse,
            Listens::Tool { moment: ToolMoment::After, .. } => Point::PostToolUse,
            Listens::Tool { moment: ToolMoment::Error, .. } => Point::ToolError,
            Listens::Point { point, .. } => *point,
        }
    }

    /// The target, for a JSON hook.
    pub fn target(&self) -> Option<Target> {
        match self {
            Listens::Message { .. } => Some(Target::Chat),
            Listens::Chunk { .. } | Listens::Scan { .. } => Some(Target::Stream),
            Listens::Tool { .. } => Some(Target::Tool),
            Listens::Point { .. } => None,
        }
    }

    /// The pattern that the set matches together with the others of its point: over the event's text, or over
    /// the tool's name.
    pub(crate) fn pattern(&self) -> Option<&Pattern> {
        match self {
            Listens::Point { filter, .. } => filter.matcher.as_ref(),
            other => other.regex(),
        }
    }

    /// The pattern over the event's text.
    pub fn regex(&self) -> Option<&Pattern> {
        match self {
            Listens::Message { regex, .. } | Listens::Chunk { regex, .. } | Listens::Tool { regex, .. } => {
                regex.as_ref()
            }
            Listens::Point { .. } | Listens::Scan { .. } => None,
        }
    }
}

/// Whose events a hook sees, with the names that this needs.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Reach {
    /// Everybody's.
    Global,
    /// One tenant's.
    Tenant(String),
    /// Those of some agents of one tenant.
    Agents {
        /// The tenant.
        tenant: String,
        /// The agents' ids; never empty.
        agents: Vec<String>,
    },
}

impl Reach {
    /// The written scope.
    pub fn scope(&self) -> Scope {
        match self {
            Reach::Global => Scope::Global,
            Reach::Tenant(_) => Scope::Tenant,
            Reach::Agents { .. } => Scope::Agent,
        }
    }
}

/// What a hook does when it fires.
#[derive(Debug)]
pub enum Work {
    /// Runs these in order.
    Actions(Vec<Box<dyn Action>>),
    /// Asks a handler.
    Handler {
        /// What was written.
        spec: HandlerSpec,
        /// What runs it; none until a door that can run it has said so.
        run: Option<Arc<dyn Handler>>,
    },
}

/// How far a hook is trusted. Follows from where its text was loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// Part of the program.
    Builtin,
    /// A folder that the operator's configuration marks as trusted.
    Operator,
    /// Anything else.
    User,
}

/// A hook as `list` shows it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct HookListing {
    /// The label; empty if none was given.
    pub label: String,
    /// `chat`, `stream` or `tool`; none for a lifecycle hook.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<&'static str>,
    /// The point.
    pub event: &'static str,
    /// What runs: `actions`, the handler's type, or `builtin`.
    pub handler: &'static str,
    /// The file.
    pub file: String,
    /// The place in the file, from 0.
    pub index: usize,
}

impl Hook {
    /// The hook as a list shows it.
    pub fn listing(&self) -> HookListing {
        HookListing {
            label: self.label.clone(),
            target: self.listens.target().map(Word::as_str),
            event: self.listens.point().as_str(),
            handler: match &self.work {
                Work::Actions(_) => "actions",
                Work::Handler { spec, .. } => spec.type_name(),
            },
            file: self.file.clone(),
            index: self.index,
        }
    }
}
