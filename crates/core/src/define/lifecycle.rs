//! The second written format: `{"event": …, filters…, "handler": {"type": …}}`.
//!
//! | field | value | default |
//! |---|---|---|
//! | `id` | text, unique in its scope | file and place |
//! | `event` | a point of the lifecycle | required |
//! | `matcher` | JavaScript pattern for the whole tool name | any |
//! | `if_expr` | CEL condition | always |
//! | `priority` | whole number, higher first | 0 |
//! | `scope`, `tenant`, `agents` | `global`, `tenant`, `agent` and the names that these need | global |
//! | `timeout_ms` | 1 to 600,000 | 5,000 |
//! | `on_timeout`, `on_error` | `block`, `allow` | block; that of `on_timeout` |
//! | `mode` | `append`, `send`; pre_response only | append |
//! | `enabled` | `false` leaves the definition out | true |
//! | `handler` | `script`, `command`, `http`, `prompt`, each with its fields | required |

use super::{Fields, Report, Written, json_hook};
use crate::expr::Condition;
use crate::handler::{CommandStart, Fallback, HandlerKind, HandlerSpec, HandlerType, Mode, ScriptText};
use crate::hook::{Hook, Listens, Reach, Scope, Source, Work};
use crate::pattern::Pattern;
use crate::point::Point;
use crate::word::Word;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

const DEFAULT_TIMEOUT_MS: u64 = 5_000;
const LONGEST_TIMEOUT_MS: u64 = 600_000;

/// Lowers one definition. `None`: a fault was noted; `Some(None)`: it is fine and switched off.
pub(super) fn read(fields: Fields<'_>, written: &Written<'_>, warnings: &Report<'_>) -> Option<Option<Hook>> {
    let id = fields.text("id").unwrap_or_default().to_owned();
    let label = fields.text("label").unwrap_or_default().to_owned();
    let enabled = fields.flag("enabled").unwrap_or(true);
    let point = point(&fields);
    let matcher = matcher(&fields, point, warnings);
    let if_expr = condition(&fields);
    let mutable_fields = mutable_fields(&fields, written.source);
    let priority = fields.number("priority").unwrap_or(0);
    let reach = reach(&fields);
    let timeout = timeout(&fields);
    let on_timeout = fields.word("on_timeout").unwrap_or(Fallback::Block);
    let on_error = fields.word("on_error").unwrap_or(on_timeout);
    let withholds = fields.has("on_timeout") && on_timeout == Fallback::Block;
    let mode = fields.word("mode").unwrap_or(Mode::Append);
    if fields.has("mode") && point.is_some_and(|point| point != Point::PreResponse) {
        fields.refuse("mode", "only a hook on pre_response has a mode".into(), None);
    }
    let kind = handler(&fields);
    fields.finish();
    let place = super::place_name(written.file, written.index);
    let name = [&id, &label].into_iter().find(|text| !text.is_empty()).cloned().unwrap_or(place);
    let hook = Hook {
        key: if id.is_empty() { format!("{}#{}", written.file, written.index) } else { id }.into(),
        label: if label.is_empty() { name.clone() } else { label },
        name: name.into(),
        file: written.file.to_owned(),
        index: written.index,
        listens: Listens::Point { point: point?, matcher, if_expr },
        max_triggers: None,
        priority,
        reach: reach?,
        work: Work::Handler {
            spec: HandlerSpec { kind: kind?, timeout, on_timeout, on_error, mode, withholds },
            run: None,
        },
        mutable_fields,
        // known when the whole definition is read
        version: Arc::default(),
        source: written.source,
    };
    Some(enabled.then_some(hook))
}

/// A pattern for the whole tool name, at points that have one.
fn matcher(fields: &Fields<'_>, point: Option<Point>, warnings: &Report<'_>) -> Option<Pattern> {
    let pattern = json_hook::pattern(fields, "matcher", warnings)?;
    if pattern.source().is_empty() {
        return None;
    }
    let has_tool = |point| matches!(point, Point::PreToolUse | Point::PostToolUse | Point::ToolError);
    if let Some(point) = point.filter(|point| !has_tool(*point)) {
        fields.refuse("matcher", format!("a matcher names tools, and `{point}` has none"), None);
    }
    if let Some(likely) = glob_meant(pattern.source()) {
        let note = format!(
            "`{}` is a pattern, not a file glob, and matches no such tool; `{likely}` was probably meant",
            pattern.source()
        );
        warnings.add(fields.place_of("matcher"), "matcher", note, None);
    }
    Some(pattern)
}

/// `mcp__*` matches `mcp_`, `mcp__`, `mcp___`…, which nobody means.
fn glob_meant(source: &str) -> Option<String> {
    let before = source.strip_suffix('*')?;
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '/' | ':');
    (before.is_empty() || before.chars().all(plain)).then(|| format!("{before}.*"))
}

fn condition(fields: &Fields<'_>) -> Option<Condition> {
    match Condition::parse(fields.text("if_expr").filter(|text| !text.is_empty())?) {
        Ok(condition) => Some(condition),
        Err(why) => {
            fields.refuse("if_expr", why, None);
            None
        }
    }
}

/// The fields that a built-in hook may change. In a user's file the key does not exist.
fn mutable_fields(fields: &Fields<'_>, source: Source) -> Vec<String> {
    if source != Source::Builtin {
        return Vec::new();
    }
    let wrap = |path: String| match path.split('.').next() {
        Some("toolInput" | "rawInput") => path,
        _ => format!("toolInput.{path}"),
    };
    fields.texts("mutable_fields").into_iter().map(wrap).collect()
}

/// Message and chunk belong to JSON hooks; the other points are the lifecycle's.
fn point(fields: &Fields<'_>) -> Option<Point> {
    match fields.word("event")? {
        point @ (Point::Message | Point::Chunk) => {
            let message = format!("`{point}` is not a lifecycle event; use a JSON hook (`target`) for it");
            fields.refuse("event", message, None);
            None
        }
        point => Some(point),
    }
}

fn reach(fields: &Fields<'_>) -> Option<Reach> {
    let scope = if fields.has("scope") { fields.word("scope")? } else { Scope::Global };
    let tenant = fields.text("tenant").unwrap_or_default().to_owned();
    let agents = fields.texts("agents");
    for (name, needed) in [("tenant", scope != Scope::Global), ("agents", scope == Scope::Agent)] {
        let empty = if name == "tenant" { tenant.is_empty() } else { agents.is_empty() };
        if needed && empty {
            fields.missing(name, &format!("a value, because of the scope `{scope}`"));
            return None;
        }
        if !needed && fields.has(name) {
            // a name that the scope does not use would silently widen the hook
            fields.refuse(name, format!("has no meaning because of the scope `{scope}`"), None);
            return None;
        }
    }
    Some(match scope {
        Scope::Global => Reach::Global,
        Scope::Tenant => Reach::Tenant(tenant),
        Scope::Agent => Reach::Agents { tenant, agents },
    })
}

fn timeout(fields: &Fields<'_>) -> Duration {
    let ms = fields.count("timeout_ms").unwrap_or(DEFAULT_TIMEOUT_MS);
    if !(1..=LONGEST_TIMEOUT_MS).contains(&ms) {
        let message = format!("expected 1 to {LONGEST_TIMEOUT_MS}, found {ms}");
        fields.refuse("timeout_ms", message, None);
    }
    Duration::from_millis(ms)
}

fn handler(fields: &Fields<'_>) -> Option<HandlerKind> {
    let handler = fields.object("handler")?;
    if !handler.has("type") {
        handler.missing("type", &format!("one of {}", HandlerType::allowed()));
        return None;
    }
    let kind = match handler.word::<HandlerType>("type")? {
        HandlerType::Script => script(&handler),
        HandlerType::Command => command(&handler),
        HandlerType::Http => http(&handler),
        HandlerType::Prompt => prompt(&handler),
    };
    handler.finish();
    kind
}

fn script(handler: &Fields<'_>) -> Option<HandlerKind> {
    let text = match (handler.text("source"), handler.text("file")) {
        (Some(source), None) => Some(ScriptText::Inline(source.to_owned())),
        (None, Some(file)) => Some(ScriptText::File(file.to_owned())),
        (None, None) => {
            handler.missing("source", "`source` or `file`");
            None
        }
        (Some(_), Some(_)) => {
            handler.refuse("file", "only one of `source` and `file` may be given".into(), None);
            None
        }
    };
    let memory_mb = handler.count("memory_mb");
    Some(HandlerKind::Script { text: text?, memory_mb })
}

fn command(handler: &Fields<'_>) -> Option<HandlerKind> {
    let argv = handler.has("argv").then(|| handler.texts("argv"));
    let start = match (argv, handler.text("shell")) {
        (Some(argv), None) if !argv.is_empty() => Some(CommandStart::Argv(argv)),
        (None, Some(line)) => Some(CommandStart::Shell(line.to_owned())),
        (Some(_), None) => {
            handler.refuse("argv", "expected at least the program's name".into(), None);
            None
        }
        (None, None) => {
            handler.node("argv");
            handler.missing("argv", "`argv` or `shell`");
            None
        }
        (Some(_), Some(_)) => {
            handler.refuse("shell", "only one of `argv` and `shell` may be given".into(), None);
            None
        }
    };
    let env = handler.texts("env");
    let cwd = handler.text("cwd").map(str::to_owned);
    Some(HandlerKind::Command { start: start?, env, cwd })
}

fn http(handler: &Fields<'_>) -> Option<HandlerKind> {
    if !handler.has("url") {
        handler.missing("url", "the endpoint's address");
    }
    let url = handler.text("url").map(str::to_owned);
    let mut headers = BTreeMap::new();
    if let Some(given) = handler.object("headers") {
        for name in given.names() {
            if let Some(value) = given.text(name) {
                headers.insert(name.to_owned(), value.to_owned());
            }
        }
    }
    let secret_env = handler.text("secret_env").map(str::to_owned);
    let allow_private = handler.flag("allow_private").unwrap_or(false);
    Some(HandlerKind::Http { url: url?, headers, secret_env, allow_private })
}

fn prompt(handler: &Fields<'_>) -> Option<HandlerKind> {
    if !handler.has("prompt") {
        handler.missing("prompt", "the policy in words");
    }
    let prompt = handler.text("prompt").map(str::to_owned);
    let model = handler.text("model").map(str::to_owned);
    let max_per_turn = handler.count("max_per_turn");
    Some(HandlerKind::Prompt { prompt: prompt?, model, max_per_turn })
}
