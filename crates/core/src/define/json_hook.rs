//! The first written format: `{"target": …, filters…, "actions": […]}`.
//!
//! | field | targets | value |
//! |---|---|---|
//! | `target` | | `chat`, `stream`, `tool` |
//! | `label` | all | text |
//! | `enabled` | all | `false` leaves the definition out |
//! | `roles` | chat | list of roles |
//! | `chunks` | stream | list of chunk types |
//! | `tools`, `event` | tool | list of whole tool names; `before`, `after` (default), `error` |
//! | `regex` | all | JavaScript pattern |
//! | `maxTriggers` | all | whole number, 0 means never |
//! | `actions` | all | list; omitted or empty: one `log` with the default dump |

use super::{Fields, Report, Written, instead};
use crate::action::{Action, ActionKinds, Fits};
use crate::event::ToolMoment;
use crate::hook::{Hook, Listens, Reach, Source, Target, Work};
use crate::pattern::{CAN_BE_EMPTY, Pattern};
use crate::word::{Word, WordSet};

/// Lowers one definition. `None`: a fault was noted; `Some(None)`: it is fine and switched off.
pub(super) fn read(
    fields: Fields<'_>,
    written: &Written<'_>,
    kinds: &ActionKinds,
    warnings: &Report<'_>,
) -> Option<Option<Hook>> {
    let target = target(&fields);
    let label = fields.text("label").unwrap_or_default().to_owned();
    let enabled = fields.flag("enabled").unwrap_or(true);
    let regex = pattern(&fields, "regex", warnings);
    let max_triggers = fields.count("maxTriggers");
    let listens_to = Where {
        before_a_tool: target == Some(Target::Tool) && fields.text("event") == Some("before"),
        match_in_a_stream: target == Some(Target::Stream) && fields.has("regex"),
        trusted: written.source != Source::User,
    };
    let (actions, lasts) = actions(&fields, kinds, &listens_to);
    if let Some(what) = lasts.filter(|_| max_triggers.is_some()) {
        let message = format!("a hook that {what} would stop doing so after so many times; leave it out");
        fields.refuse("maxTriggers", message, None);
    }
    let Some(target) = target else {
        // without a target nobody can say which filters belong; the missing target is the fault to mend
        return None;
    };
    let listens = match target {
        Target::Chat => Listens::Message { roles: fields.words("roles").unwrap_or_else(WordSet::all), regex },
        Target::Stream => {
            Listens::Chunk { kinds: fields.words("chunks").unwrap_or_else(WordSet::all), regex }
        }
        Target::Tool => Listens::Tool {
            moment: fields.word("event").unwrap_or(ToolMoment::After),
            names: fields.texts("tools"),
            regex,
        },
    };
    fields.finish();
    let place = super::place_name(written.file, written.index);
    let name = if label.is_empty() { place } else { label.clone() };
    let hook = Hook {
        key: format!("{}#{}", written.file, written.index).into(),
        name: name.into(),
        label,
        file: written.file.to_owned(),
        index: written.index,
        listens,
        max_triggers,
        priority: 0,
        reach: Reach::Global,
        work: Work::Actions(actions),
        mutable_fields: Vec::new(),
        version: written.version.clone(),
        source: written.source,
    };
    Some(enabled.then_some(hook))
}

fn target(fields: &Fields<'_>) -> Option<Target> {
    if fields.has("handler") && fields.nearly_has("event") {
        fields.missing("event", "a point of the lifecycle, beside `handler`");
        return None;
    }
    if fields.has("event") && fields.nearly_has("handler") {
        fields.missing("handler", "what runs at the event");
        return None;
    }
    if !fields.has("target") {
        let expected = format!(
            "one of {} (JSON hook), or `event` together with `handler` (lifecycle hook)",
            Target::allowed()
        );
        fields.missing("target", &expected);
    }
    fields.word("target")
}

/// Reads a pattern field; what the pattern's reader finds odd becomes a warning.
pub(super) fn pattern<'a>(fields: &Fields<'a>, name: &'a str, warnings: &Report<'_>) -> Option<Pattern> {
    let source = fields.text(name)?;
    match Pattern::parse(source) {
        Ok(pattern) => {
            note(fields.place_of(name), name, &pattern, warnings);
            Some(pattern)
        }
        Err(error) => {
            let help = instead::of_pattern(source, error.at).or(error.hint);
            let message = format!("not a usable pattern: {}", error.reason);
            fields.refuse_inside(name, error.at, message, help);
            None
        }
    }
}

/// What the pattern's reader found odd. A matcher is held against whole names, and none is empty.
fn note(at: usize, name: &str, pattern: &Pattern, warnings: &Report<'_>) {
    for note in pattern.notes().iter().filter(|note| *note != CAN_BE_EMPTY) {
        warnings.warn("pattern-reading", at, name, note.clone(), None);
    }
    if name != "matcher" && !pattern.source().is_empty() && pattern.can_match_empty() {
        let message = "the pattern can match the empty text, so it is found in every text".to_owned();
        let help = "let it need at least one character, such as `+` in the place of `*`; to see every event, leave it out";
        warnings.warn("empty-match", at, name, message, Some(help.to_owned()));
    }
}

/// What a hook listens to, as far as actions care.
struct Where {
    before_a_tool: bool,
    match_in_a_stream: bool,
    trusted: bool,
}

impl Where {
    /// Why an action of this name means nothing here.
    fn refuses(&self, name: &str, fits: Fits) -> Option<String> {
        match fits {
            Fits::Anywhere => None,
            Fits::BeforeATool => (!self.before_a_tool).then(|| {
                format!("`{name}` stops a tool before it runs: it needs `target` tool and `event` before")
            }),
            Fits::MatchInAStream if !self.match_in_a_stream => Some(format!(
                "`{name}` replaces what a pattern finds in an answer: it needs `target` stream and a `regex`"
            )),
            Fits::MatchInAStream => (!self.trusted).then(|| {
                format!(
                    "`{name}` changes answers: only hooks in the trusted folder (`hooks.trusted_dir`) may"
                )
            }),
        }
    }
}

/// The actions, and what one of them does that must not end after some times.
fn actions(
    fields: &Fields<'_>,
    kinds: &ActionKinds,
    listens_to: &Where,
) -> (Vec<Box<dyn Action>>, Option<&'static str>) {
    let mut actions = Vec::new();
    let mut lasts = None;
    let items = fields.list("actions").unwrap_or_default();
    for (index, node) in items.iter().enumerate() {
        let Some(action) = fields.item("actions", index, node) else { continue };
        if !action.has("type") {
            let names: Vec<&str> = kinds.names().collect();
            action.missing("type", &format!("one of {}", names.join(", ")));
            continue;
        }
        let Some(name) = action.text("type") else { continue };
        match kinds.get(name) {
            Some(kind) => {
                actions.extend((kind.read)(&action));
                match kind.fits {
                    Fits::Anywhere => {}
                    Fits::BeforeATool => lasts = Some("blocks"),
                    Fits::MatchInAStream => lasts = Some("redacts"),
                }
                if let Some(message) = listens_to.refuses(name, kind.fits) {
                    action.refuse("type", message, None);
                }
                action.finish();
            }
            None => {
                let names: Vec<&str> = kinds.names().collect();
                let message = format!(
                    "unknown action `{}`; expected one of {}",
                    super::node::shorten(name),
                    names.join(", ")
                );
                action.refuse("type", message, super::fields::nearest(name, &names));
            }
        }
    }
    if items.is_empty() {
        // a bare hook is a probe: it logs what it saw
        actions.extend(default_action(fields, kinds));
    }
    (actions, lasts)
}

/// What a hook without actions does: `{"type": "log"}`.
fn default_action(fields: &Fields<'_>, kinds: &ActionKinds) -> Option<Box<dyn Action>> {
    kinds.get("log").and_then(|kind| (kind.read)(&fields.nothing()))
}
