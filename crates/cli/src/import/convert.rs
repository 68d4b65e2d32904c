//! A handler of an agent in our words, where we have words for it.

use super::shape::Handler;
use hookgate_agents::agent::Agent;
use hookgate_core::point::{Point, Stage};
use serde_json::{Map, Value, json};

/// Our hook, or why there is none.
pub(super) fn hook(agent: &dyn Agent, handler: &Handler) -> Result<Value, String> {
    let point = handler.event.point.ok_or("we have no such point")?;
    let members = &handler.members;
    let text = |key: &str| members.get(key).and_then(Value::as_str);
    if let Some(condition) = text("if") {
        return Err(format!("`if` holds a permission rule ({condition}); write it as `if_expr`"));
    }
    let mut hook = Map::new();
    let id = handler.place.replace(".hooks[", "-").replace('[', "-").replace(']', "");
    let id = if handler.place == handler.entry { format!("{id}-0") } else { id };
    hook.insert("id".into(), format!("{}/{id}", agent.name()).into());
    hook.insert("event".into(), point.to_string().into());
    let of_tools = matches!(point, Point::PreToolUse | Point::PostToolUse | Point::ToolError);
    match handler.matcher.as_deref().filter(|matcher| !matches!(*matcher, "" | "*")) {
        Some(matcher) if handler.event.name.ends_with("ShellExecution") => {
            // it looks at the command there, not at a name
            hook.insert("matcher".into(), "exec".into());
            hook.insert("regex".into(), matcher.into());
        }
        Some(matcher) if of_tools => {
            hook.insert("matcher".into(), matcher.into());
        }
        Some(matcher) => return Err(format!("our {point} has no matcher ({matcher})")),
        None if handler.event.name.ends_with("ShellExecution") => {
            hook.insert("matcher".into(), "exec".into());
        }
        None => {}
    }
    let limit = ["timeout", "timeoutSec", "timeout_ms"].iter().find_map(|key| members.get(*key)?.as_u64());
    if let Some(limit) = limit.filter(|limit| *limit > 0) {
        let ms = limit.saturating_mul(1000).checked_div(handler.units).unwrap_or(limit);
        hook.insert("timeout_ms".into(), ms.clamp(1, 600_000).into());
    }
    hook.insert("handler".into(), ours(handler, point)?);
    Ok(Value::Object(hook))
}

fn ours(handler: &Handler, point: Point) -> Result<Value, String> {
    let members = &handler.members;
    let text = |key: &str| members.get(key).and_then(Value::as_str);
    match text("type").unwrap_or("command") {
        "command" => {
            let line = text("command").or(text("bash")).ok_or("it has no line for a POSIX shell")?;
            if line.contains("{{") {
                return Err("its line holds a placeholder, which ours must not".into());
            }
            Ok(json!({"type": "command", "shell": line}))
        }
        "http" => {
            let url = text("url").ok_or("it has no address")?;
            if members.contains_key("headers") {
                return Err(
                    "headers with variables are not carried over; ours are signed by `secret_env`".into()
                );
            }
            Ok(json!({"type": "http", "url": url}))
        }
        "prompt" if point.stage() == Stage::Gate && handler.matcher.is_some() => {
            Ok(json!({"type": "prompt", "prompt": text("prompt").unwrap_or_default()}))
        }
        kind => Err(format!("a {kind} handler has no counterpart at {point}")),
    }
}
