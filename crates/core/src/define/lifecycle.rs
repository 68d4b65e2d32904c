//! The second written format: `{"event": …, filters…, "handler": {"type": …}}`.
//!
//! | field | value | default |
//! |---|---|---|
//! | `id` | text, unique in its scope | file and place |
//! | `event` | a point of the lifecycle | required |
//! | `matcher` | JavaScript pattern for the whole tool name | any |
//! | `tools` | list of whole tool names, in place of `matcher` | any |
//! | `roles` | list of roles; message only | any |
//! | `regex` | JavaScript pattern, found in the event's text | any |
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
use crate::filter::{Filter, TEXT_POINTS, TOOL_POINTS};
use crate::handler::{
    CommandStart, Fallback, HandlerKind, HandlerSpec, HandlerType, HttpUrl, Mode, ScriptText, Withholds,
};
use crate::hook::{Hook, Listens, Reach, Scope, Source, Work};
use crate::pattern::Pattern;
use crate::point::Point;
use crate::word::Word;
use std::collections::BTreeMap;
use std::time::Duration;

const DEFAULT_TIMEOUT_MS: u64 = 5_000;
const LONGEST_TIMEOUT_MS: u64 = 600_000;

/// Lowers one definition. `None`: a fault was noted; `Some(None)`: it is fine and switched off.
pub(super) fn read(fields: Fields<'_>, written: &Written<'_>, warnings: &Report<'_>) -> Option<Option<Hook>> {
    let id = fields.text("id").unwrap_or_default().to_owned();
    let label = fields.text("label").unwrap_or_default().to_owned();
    let enabled = fields.flag("enabled").unwrap_or(true);
    let point = point(&fields);
    let filter = filter(&fields, point, warnings);
    let mutable_fields = mutable_fields(&fields, written.source);
    let priority = fields.number("priority").unwrap_or(0);
    let reach = reach(&fields);
    let timeout = timeout(&fields);
    let on_timeout = fields.word("on_timeout").unwrap_or(Fallback::Block);
    let on_error = fields.word("on_error").unwrap_or(on_timeout);
    // at pre_response only who writes it wants it: a default of block would lose answers to a slow footer
    let withholds = Withholds {
        late: fields.has("on_timeout") && on_timeout == Fallback::Block,
        failed: (fields.has("on_error") || fields.has("on_timeout")) && on_error == Fallback::Block,
    };
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
        listens: Listens::Point { point: point?, filter },
        max_triggers: None,
        priority,
        reach: reach?,
        work: Work::Handler {
            spec: HandlerSpec { kind: kind?, timeout, on_timeout, on_error, mode, withholds },
            run: None,
        },
        mutable_fields,
        version: written.version.clone(),
        source: written.source,
    };
    Some(enabled.then_some(hook))
}

fn filter(fields: &Fields<'_>, point: Option<Point>, warnings: &Report<'_>) -> Filter {
    let only_at = |name: &str, points: &[Point], what: &str| {
        if let Some(point) = point.filter(|point| fields.has(name) && !points.contains(point)) {
            fields.refuse(name, format!("`{name}` is for {what}, and `{point}` has none"), None);
        }
    };
    only_at("tools", &TOOL_POINTS, "tools");
    only_at("roles", &[Point::Message], "messages");
    only_at("regex", &TEXT_POINTS, "texts");
    let by_pattern = matcher(fields, point, warnings);
    let by_name = tools(fields);
    if by_pattern.is_some() && by_name.is_some() {
        fields.refuse("tools", "only one of `matcher` and `tools` may be given".into(), None);
    }
    Filter {
        matcher: by_pattern.or(by_name),
        roles: fields.words("roles"),
        regex: json_hook::pattern(fields, "regex", warnings).filter(|regex| !regex.source().is_empty()),
        if_expr: condition(fields, point, warnings).map(Box::new),
    }
}

/// `tools`, a list of whole names, as the pattern that says the same.
fn tools(fields: &Fields<'_>) -> Option<Pattern> {
    let names = fields.texts("tools");
    if names.is_empty() {
        return None;
    }
    match Pattern::of_names(&names) {
        Ok(pattern) => Some(pattern),
        Err(error) => {
            fields.refuse("tools", format!("not usable as names: {}", error.reason), error.hint);
            None
        }
    }
}

/// A pattern for the whole tool name, at points that have one.
fn matcher(fields: &Fields<'_>, point: Option<Point>, warnings: &Report<'_>) -> Option<Pattern> {
    let pattern = json_hook::pattern(fields, "matcher", warnings)?;
    if pattern.source().is_empty() {
        return None;
    }
    if let Some(point) = point.filter(|point| !TOOL_POINTS.contains(point)) {
        fields.refuse("matcher", format!("a matcher names tools, and `{point}` has none"), None);
    }
    if let Some(likely) = list_meant(pattern.source()) {
        let note = format!("`{}` is one pattern and matches no tool", pattern.source());
        let help = format!("`{likely}` was probably meant");
        warnings.warn("matcher-list", fields.place_of("matcher"), "matcher", note, Some(help));
    }
    if let Some(likely) = all_meant(pattern.source()) {
        let note = format!("`{}` is a pattern, not a file glob, and matches no such tool", pattern.source());
        let help = format!("`{likely}` was probably meant");
        warnings.warn("glob-as-pattern", fields.place_of("matcher"), "matcher", note, Some(help));
    }
    Some(pattern)
}

/// No tool's name has a blank or a comma: `exec, write_file` would guard nothing.
fn list_meant(source: &str) -> Option<String> {
    let names: Vec<&str> = source.split([',', ' ']).filter(|name| !name.is_empty()).collect();
    (source.contains([',', ' ']) && names.len() > 1).then(|| names.join("|"))
}

/// `mcp__*` matches `mcp_`, `mcp__`, `mcp___`…, which nobody means.
fn all_meant(source: &str) -> Option<String> {
    let before = source.strip_suffix('*')?;
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '/' | ':');
    (before.is_empty() || before.chars().all(plain)).then(|| format!("{before}.*"))
}

fn condition(fields: &Fields<'_>, point: Option<Point>, warnings: &Report<'_>) -> Option<Condition> {
    match Condition::parse(fields.text("if_expr").filter(|text| !text.is_empty())?) {
        Ok(condition) => {
            for note in point.map(|point| condition.notes(point)).unwrap_or_default() {
                warnings.warn("never-there", fields.place_of("if_expr"), "if_expr", note, None);
            }
            Some(condition)
        }
        Err(why) => {
            let source = fields.text("if_expr").unwrap_or_default();
            let (at, why) = place_in(source, why);
            fields.refuse_inside("if_expr", at, why, None);
            None
        }
    }
}

/// Where in a condition its fault is, in bytes, as far as the words tell, and the words without that place.
fn place_in(source: &str, why: String) -> (Option<usize>, String) {
    if let Some(name) = why.strip_prefix("unknown ").and_then(|rest| rest.split('`').nth(1)) {
        return (source.find(name), why);
    }
    let Some((before, rest)) = why.split_once("ERROR: <input>:1:") else { return (None, why) };
    let Some((column, rest)) = rest.split_once(": ") else { return (None, why) };
    let rest = rest.strip_prefix("Syntax error: ").unwrap_or(rest);
    let n_chars = column.parse::<usize>().unwrap_or(1).saturating_sub(1);
    let at = source.char_indices().nth(n_chars).map_or(source.len(), |(at, _)| at);
    // the list of all that might follow is longer than it helps
    let rest = rest.split(" expecting {").next().unwrap_or(rest);
    let rest = if rest.ends_with("'<EOF>'") { "it ends too early" } else { rest };
    (Some(at), format!("{before}{rest}"))
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

/// A chunk is too small for a handler; all other points may have one.
fn point(fields: &Fields<'_>) -> Option<Point> {
    match fields.word("event")? {
        Point::Chunk => {
            let message =
                "a chunk is too small for a handler; use a JSON hook (`target` stream) for it".to_owned();
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
            handler.missing_any(&["source", "file"], "`source` or `file`");
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
            handler.missing_any(&["argv", "shell"], "`argv` or `shell`");
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
    let url = match (handler.text("url"), handler.text("url_env")) {
        (Some(url), None) => Some(HttpUrl::Written(url.to_owned())),
        (None, Some(name)) => Some(HttpUrl::Env(name.to_owned())),
        (None, None) => {
            let expected = "the endpoint's address, or `url_env`, a variable that holds it";
            handler.missing_any(&["url", "url_env"], expected);
            None
        }
        (Some(_), Some(_)) => {
            handler.refuse("url_env", "only one of `url` and `url_env` may be given".into(), None);
            None
        }
    };
    // an object, so that the receiver always gets JSON of the form that the hook's author sees
    let body = handler.object("body").and_then(|_| handler.node("body")).map(|node| node.to_json());
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
    Some(HandlerKind::Http { url: url?, body, headers, secret_env, allow_private })
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

#[cfg(test)]
mod tests {
    use crate::action::ActionKinds;
    use crate::define;
    use crate::hook::Source;

    #[test]
    fn a_condition_s_fault_has_its_place() {
        let check = |condition: &str, column: usize, want: &str| {
            let text = format!(
                r#"{{"event":"stop","if_expr":"{condition}","handler":{{"type":"script","source":"x"}}}}"#
            );
            let read = define::read("a.json", &text, Source::User, &ActionKinds::standard());
            let [problem] = read.problems.as_slice() else { panic!("{:?}", read.problems) };
            // the condition begins at column 28
            assert_eq!(problem.place.map(|place| place.column), Some(column + 27), "{problem}");
            assert!(problem.message.contains(want), "{problem}");
        };
        check("depth ==", 9, "not a CEL expression: it ends too early");
        check("depth == == 1", 10, "not a CEL expression: extraneous input");
        check("depth == 1 && tool_nmae == 'x'", 15, "unknown name `tool_nmae`");
        check("sessionId.startWith('x')", 11, "unknown function `startWith`");
        // the text as a whole
        check("'x'", 0, "is a value");
    }
}
