//! What an installation changes, and what takes it away.

use super::files::{self, Change};
use super::json::{self, Items};
use super::line::{Line, is_ours};
use super::place::Found;
use super::toml;
use crate::failure::Failure;
use hookgate_agents::event::Event;
use hookgate_agents::setup::{Shape, Switch};
use serde_json::{Value, json};
use std::path::Path;

/// What wiring an agent changes. Nothing where it is wired so already.
pub(crate) fn install(found: &Found, line: &Line) -> Result<Vec<Change>, Failure> {
    match &found.setup.shape {
        Shape::Programs => programs(found, line),
        Shape::Plugin { text } => plugin(found, line, text),
        _ => {
            let now = files::read(&found.path)?;
            let base = original(found, now.as_deref())?;
            let items = items(found, line)?;
            let after = text_with(found, base.as_deref(), &items)?;
            let keep = Change {
                path: files::kept(&found.path),
                before: files::read(&files::kept(&found.path))?,
                after: base,
                program: false,
            };
            let change = Change { path: found.path.clone(), before: now, after: Some(after), program: false };
            // the copy first: there is no moment without one
            Ok([keep, change].into_iter().filter(Change::is_one).collect())
        }
    }
}

/// What takes an installation away.
pub(crate) fn uninstall(found: &Found) -> Result<Vec<Change>, Failure> {
    let gone = |path: &Path, before: Option<String>| Change {
        path: path.to_owned(),
        before,
        after: None,
        program: false,
    };
    match &found.setup.shape {
        Shape::Programs => {
            let mut changes = Vec::new();
            for event in found.agent.events() {
                let path = found.path.join(event.name);
                let text = files::read(&path)?;
                if text.as_deref().is_some_and(|text| has_our_line(text, found)) {
                    changes.push(gone(&path, text));
                }
            }
            Ok(changes)
        }
        Shape::Plugin { .. } => {
            let text = files::read(&found.path)?;
            let ours = text.as_deref().is_some_and(|text| text.contains("hookgate uninstall"));
            Ok(if ours { vec![gone(&found.path, text)] } else { Vec::new() })
        }
        _ => {
            let now = files::read(&found.path)?;
            let Some(text) = &now else { return Ok(Vec::new()) };
            if ours(found, text)?.is_empty() {
                return Ok(Vec::new());
            }
            let after = original(found, Some(text))?;
            let kept = files::kept(&found.path);
            let copy = files::read(&kept)?;
            let change = Change { path: found.path.clone(), before: now, after, program: false };
            Ok([change, gone(&kept, copy)].into_iter().filter(Change::is_one).collect())
        }
    }
}

/// Our lines in a settings file, with their events.
pub(crate) fn lines(found: &Found) -> Result<Vec<(String, String)>, Failure> {
    match &found.setup.shape {
        Shape::Programs => {
            let mut lines = Vec::new();
            for event in found.agent.events() {
                let path = found.path.join(event.name);
                let text = files::read(&path)?;
                if text.as_deref().is_some_and(|text| has_our_line(text, found)) {
                    lines.push((event.name.to_owned(), path.display().to_string()));
                }
            }
            Ok(lines)
        }
        Shape::Plugin { .. } => {
            let text = files::read(&found.path)?.unwrap_or_default();
            Ok(plugin_line(&text).map(|line| vec![("plugin".to_owned(), line)]).unwrap_or_default())
        }
        _ => {
            let Some(text) = files::read(&found.path)? else { return Ok(Vec::new()) };
            let items = ours(found, &text)?;
            let line = |value: &Value| text_in(value, &|text| is_ours(text, found.agent.name()));
            Ok(items.into_iter().filter_map(|(event, item)| Some((event, line(&item)?))).collect())
        }
    }
}

/// Whether a switch is set so that hooks are off.
pub(crate) fn is_off(switch: &Switch) -> Result<bool, Failure> {
    let path = super::place::located(switch.path)?;
    let Some(text) = files::read(&path)? else { return Ok(false) };
    let name = path.display().to_string();
    let set = if is_toml(&path) {
        toml::switch(&name, &text, switch.keys)
    } else {
        json::switch(&name, &text, switch.keys)
    };
    Ok(set.map_err(Failure::new)? == Some(switch.off))
}

/// The text without us: the copy from before, if ours is all that was added to it since, else what is left when our
/// items are taken out. None: there was no file.
fn original(found: &Found, now: Option<&str>) -> Result<Option<String>, Failure> {
    let Some(text) = now else { return Ok(None) };
    let items = ours(found, text)?;
    if items.is_empty() {
        return Ok(Some(text.to_owned()));
    }
    let before = files::read(&files::kept(&found.path))?;
    if text_with(found, before.as_deref(), &items).is_ok_and(|with| with == text) {
        return Ok(before);
    }
    let name = found.path.display().to_string();
    let without = if is_toml(&found.path) {
        toml::remove(&name, text, found.agent.name())
    } else {
        json::remove(&name, text, found.setup, found.agent.name())
    };
    without.map(Some).map_err(Failure::new)
}

fn text_with(found: &Found, base: Option<&str>, items: &Items) -> Result<String, Failure> {
    let name = found.path.display().to_string();
    let base = base.unwrap_or_default();
    let text = if is_toml(&found.path) {
        toml::add(&name, base, items)
    } else {
        json::add(&name, base, found.setup, items)
    };
    text.map_err(Failure::new)
}

fn ours(found: &Found, text: &str) -> Result<Items, Failure> {
    let (name, agent) = (found.path.display().to_string(), found.agent.name());
    let items = if is_toml(&found.path) {
        toml::ours(&name, text, agent)
    } else {
        json::ours(&name, text, found.setup, agent)
    };
    items.map_err(Failure::new)
}

fn is_toml(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "toml")
}

fn items(found: &Found, line: &Line) -> Result<Items, Failure> {
    let mut items = Vec::new();
    for event in wired(found) {
        let shell = line.shell(found.agent, event, found.setup.limit_of(event))?;
        items.extend(found.setup.item(event, &shell).map(|item| (event.name.to_owned(), item)));
    }
    Ok(items)
}

fn wired(found: &Found) -> impl Iterator<Item = &'static Event> {
    found.agent.events().iter().filter(|event| event.installed)
}

/// A folder with one program an event.
fn programs(found: &Found, line: &Line) -> Result<Vec<Change>, Failure> {
    let mut changes = Vec::new();
    for event in wired(found) {
        let path = found.path.join(event.name);
        let before = files::read(&path)?;
        if before.as_deref().is_some_and(|text| !has_our_line(text, found)) {
            let text = format!(
                "{} is somebody else's, and there can be only one; it is left as it is",
                path.display()
            );
            return Err(Failure::new(text));
        }
        let shell = line.shell(found.agent, event, found.setup.limit_of(event))?;
        let text = format!("#!/bin/sh\n# written by hookgate install {}\nexec {shell}\n", found.agent.name());
        changes.push(Change { path, before, after: Some(text), program: true });
    }
    Ok(changes.into_iter().filter(Change::is_one).collect())
}

fn has_our_line(text: &str, found: &Found) -> bool {
    text.lines().any(|line| line.strip_prefix("exec ").is_some_and(|line| is_ours(line, found.agent.name())))
}

fn plugin(found: &Found, line: &Line, text: &str) -> Result<Vec<Change>, Failure> {
    let limit = found.setup.limit;
    let mut arguments = line.first(found.agent);
    arguments.extend(["--timeout-ms".to_owned(), limit.as_millis().to_string()]);
    let text = text
        .replace("{{program}}", &json!(line.program()).to_string())
        .replace("{{arguments}}", &json!(arguments).to_string())
        .replace("{{limit}}", &limit.as_millis().to_string());
    let before = files::read(&found.path)?;
    if before.as_deref().is_some_and(|text| !text.contains("hookgate uninstall")) {
        let text = format!("{} is somebody else's; it is left as it is", found.path.display());
        return Err(Failure::new(text));
    }
    let change = Change { path: found.path.clone(), before, after: Some(text), program: false };
    Ok(Some(change).into_iter().filter(Change::is_one).collect())
}

/// The line that a plugin of ours starts, for a shell.
fn plugin_line(text: &str) -> Option<String> {
    let member = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("const {name} = ")))?;
        serde_json::from_str::<Value>(line.trim()).ok()
    };
    let mut words = vec![member("PROGRAM")?.as_str()?.to_owned()];
    let arguments = member("ARGUMENTS")?;
    words.extend(arguments.as_array()?.iter().filter_map(Value::as_str).map(str::to_owned));
    Some(words.iter().map(|word| super::line::quoted(word)).collect::<Vec<_>>().join(" "))
}

/// The first text in a value that fits.
fn text_in(value: &Value, fits: &dyn Fn(&str) -> bool) -> Option<String> {
    match value {
        Value::String(text) => fits(text).then(|| text.clone()),
        Value::Array(items) => items.iter().find_map(|item| text_in(item, fits)),
        Value::Object(members) => members.values().find_map(|item| text_in(item, fits)),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}
