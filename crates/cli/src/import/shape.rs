//! From a settings file to its handlers, however oddly it is written.

use hookgate_agents::agent::Agent;
use hookgate_agents::event::Effect;
use hookgate_agents::setup::{Entry, Shape};
use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstNode, CstObject, CstRootNode};
use serde_json::{Map, Value};

/// One handler with the entry that it stands in.
#[derive(Debug)]
pub(super) struct Handler {
    /// As people write it: `PreToolUse[0].hooks[1]`.
    pub(super) place: String,
    /// The same with the place in the entry, also where it stands there alone.
    pub(super) full: String,
    /// The entry alone: `PreToolUse[0]`.
    pub(super) entry: String,
    /// The agent's name of the event.
    pub(super) event: &'static hookgate_agents::event::Event,
    pub(super) matcher: Option<String>,
    pub(super) members: Map<String, Value>,
    /// How many of the limit's units are a second.
    pub(super) units: u64,
}

/// The handlers that a file holds. What is wrong with the others is said.
pub(super) fn handlers(agent: &'static dyn Agent, text: &str, says: &mut Vec<String>) -> Vec<Handler> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let Some(root) = parsed(text, says) else { return Vec::new() };
    let Some(top) = root.object_value() else {
        says.push("the settings are no object".into());
        return Vec::new();
    };
    let (grouped, versioned, units) = layout(agent);
    let Some(hooks) = top.get("hooks") else {
        for property in top.properties().iter().filter_map(|property| property.decoded_name()) {
            if agent.event(&property).is_some() {
                says.push(format!("{property} stands at the top; hooks is missing around it"));
            }
        }
        return Vec::new();
    };
    if versioned && top.get("version").is_none() {
        says.push("version is missing: the agent ignores the file".into());
    }
    let Some(events) = hooks.object_value() else {
        says.push("hooks: an object is needed".into());
        return Vec::new();
    };
    let names: Vec<String> =
        events.properties().iter().filter_map(|property| property.decoded_name()).collect();
    if let Some(twice) = names
        .iter()
        .enumerate()
        .find(|(at, name)| names.iter().skip(at.saturating_add(1)).any(|other| other == *name))
    {
        says.push(format!("{} is written twice: most readers keep the second one only", twice.1));
        return Vec::new();
    }
    let mut walk = Walk { agent, grouped, units, says, found: Vec::new() };
    walk.events(&events);
    walk.found
}

/// Whether entries are groups, whether the file needs a version, and the units of a limit in a second.
fn layout(agent: &dyn Agent) -> (bool, bool, u64) {
    let of = |entry: &Entry| (entry.version.is_some(), entry.timeout.map_or(1, |(_, units)| units));
    match agent.setup().map(|setup| &setup.shape) {
        Some(Shape::Grouped(entry)) => (true, of(entry).0, of(entry).1),
        Some(Shape::Flat(entry) | Shape::Named(entry)) => (false, of(entry).0, of(entry).1),
        _ => (true, false, 1),
    }
}

/// The file, with a word on what a strict reader would not take.
fn parsed(text: &str, says: &mut Vec<String>) -> Option<CstRootNode> {
    let options = ParseOptions {
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
        ..ParseOptions::default()
    };
    if let Some(line) = text.lines().position(|line| !line.trim().is_empty())
        && text.lines().nth(line).is_some_and(|line| line.trim_start().starts_with('#'))
    {
        says.push(format!("line {}: JSON has no comments", line.saturating_add(1)));
        return None;
    }
    let root = match CstRootNode::parse(text, &options) {
        Ok(root) => root,
        Err(error) => {
            says.push(broken(text, error.line_display(), &error.kind().to_string()));
            return None;
        }
    };
    let strict = ParseOptions { allow_comments: false, allow_trailing_commas: false, ..options };
    if CstRootNode::parse(text, &strict).is_err() {
        loose(text, says);
    }
    Some(root)
}

/// A text that ends too early, mostly: a quote in it was not escaped.
fn broken(text: &str, line: usize, kind: &str) -> String {
    let words = text.lines().nth(line.saturating_sub(1)).unwrap_or_default();
    // the text behind the last colon before the break
    let value = words.rsplit_once(": \"").map(|(_, value)| value.split('"').next().unwrap_or_default());
    match value.filter(|value| words.matches('"').count().is_multiple_of(2) && value.ends_with(' ')) {
        Some(value) => {
            format!("line {line}: unexpected text after \"{value}\"; quotes inside a text need a backslash")
        }
        None => format!("line {line}: not JSON ({})", kind.trim_end_matches('.').to_lowercase()),
    }
}

/// Comments and commas that a strict reader does not take.
fn loose(text: &str, says: &mut Vec<String>) {
    let (mut commas, mut in_text, mut escaped, mut comma_at) = (Vec::new(), false, false, None);
    let (mut line, mut column) = (1usize, 0usize);
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        column = column.saturating_add(1);
        match c {
            '\n' => (line, column) = (line.saturating_add(1), 0),
            _ if in_text => {
                in_text = escaped || c != '"';
                escaped = c == '\\' && !escaped;
            }
            '"' => (in_text, comma_at) = (true, None),
            '/' if matches!(characters.peek(), Some('/' | '*')) => {
                if !says.iter().any(|said| said.ends_with(": comment")) {
                    says.push(format!("line {line}, column {column}: comment"));
                }
                while characters.peek().is_some_and(|c| *c != '\n') {
                    characters.next();
                }
            }
            ',' => comma_at = Some(line),
            '}' | ']' => commas.extend(comma_at.take()),
            c if c.is_whitespace() => {}
            _ => comma_at = None,
        }
    }
    commas.dedup();
    if let Some((first, more)) = commas.split_first() {
        let more: Vec<String> = more.iter().map(usize::to_string).collect();
        let more = if more.is_empty() { String::new() } else { format!(" (and lines {})", more.join(", ")) };
        says.push(format!("line {first}: trailing comma{more}"));
    }
}

struct Walk<'a> {
    agent: &'static dyn Agent,
    grouped: bool,
    units: u64,
    says: &'a mut Vec<String>,
    found: Vec<Handler>,
}

impl Walk<'_> {
    fn events(&mut self, events: &CstObject) {
        let mut unknown = Vec::new();
        for property in events.properties() {
            let Some(name) = property.decoded_name() else { continue };
            let Some(event) = self.agent.event(&name).filter(|event| event.point.is_some()) else {
                match self.meant(&name) {
                    Some(near) => {
                        self.says.push(format!("{name}: not an event here, {near} was likely meant"))
                    }
                    None => unknown.push(name),
                }
                continue;
            };
            match property.array_value() {
                Some(list) => {
                    for (index, item) in list.elements().iter().enumerate() {
                        self.entry(&format!("{name}[{index}]"), event, item);
                    }
                }
                None => self.says.push(format!("{name}: a list is needed")),
            }
        }
        if !unknown.is_empty() {
            self.says.push(format!("{}: not known to this version of hookgate", unknown.join(", ")));
        }
    }

    /// The event that somebody had in mind.
    fn meant(&self, name: &str) -> Option<String> {
        if self.agent.event(name).is_some() {
            // it is one, and no point of ours
            return None;
        }
        let lower = name.to_lowercase();
        let known =
            |name: &str| self.agent.events().iter().find(|event| event.name.eq_ignore_ascii_case(name));
        if let Some(event) = known(&lower) {
            // a file of another agent: there may be a closer event than the one of the same name
            let same =
                |other: &&hookgate_agents::event::Event| other.point == event.point && other.can(Effect::Ask);
            let closer = self.agent.events().iter().filter(same).map(|event| event.name);
            let closer = closer.filter(|name| !self.grouped && *name != event.name);
            return Some(std::iter::once(event.name).chain(closer).collect::<Vec<_>>().join(" or "));
        }
        let ending = self.agent.events().iter().filter(|event| lower.ends_with(&event.name.to_lowercase()));
        let ending: Vec<&str> = ending.map(|event| event.name).collect();
        if !ending.is_empty() {
            // the same word in another spelling belongs to another program
            let more = self.agent.events().iter().filter(|event| event.name.eq_ignore_ascii_case(name));
            let all: Vec<&str> = more.map(|event| event.name).chain(ending).collect();
            return Some(all.join(" or "));
        }
        // another agent's name for the same thing
        let others = hookgate_agents::table::ALL.iter().filter(|other| other.name() != self.agent.name());
        let point = others.filter_map(|other| other.event(name)?.point).next()?;
        let here = self.agent.events().iter().filter(|event| event.point == Some(point));
        let near: Vec<&str> = here.map(|event| event.name).collect();
        (!near.is_empty()).then(|| near.join(" or "))
    }

    fn entry(&mut self, place: &str, event: &'static hookgate_agents::event::Event, item: &CstNode) {
        let Some(Value::Object(members)) = item.to_serde_value() else {
            return self.says.push(format!("{place}: an object is needed"));
        };
        let matcher = match members.get("matcher") {
            None => None,
            Some(Value::String(text)) => Some(text.clone()),
            Some(other) => {
                let kind = if other.is_object() { "an object" } else { "something else" };
                return self.says.push(format!("{place}.matcher: a text is needed, {kind} was given"));
            }
        };
        let inner = members.get("hooks").and_then(Value::as_array).cloned();
        if !self.grouped {
            if let Some(inner) = inner {
                self.says.push(format!("{place}: hooks inside an entry is not known here"));
                for handler in inner.iter().filter_map(Value::as_object) {
                    super::advice::cannot_block(place, handler, self.says);
                }
                return;
            }
            return self.handler([place, place, place], event, matcher, members);
        }
        let Some(inner) = inner else {
            return self
                .says
                .push(format!("{place}: hooks is missing; the handler belongs into hooks: [...]"));
        };
        let alone = inner.len() == 1;
        for (index, handler) in inner.into_iter().enumerate() {
            let at = format!("{place}.hooks[{index}]");
            match handler {
                Value::Object(members) => {
                    let shown = if alone { place } else { at.as_str() };
                    self.handler([shown, &at, place], event, matcher.clone(), members);
                }
                _ => self.says.push(format!("{at}: an object is needed")),
            }
        }
    }

    fn handler(
        &mut self,
        [place, full, entry]: [&str; 3],
        event: &'static hookgate_agents::event::Event,
        matcher: Option<String>,
        members: Map<String, Value>,
    ) {
        const TYPES: [&str; 5] = ["command", "http", "prompt", "agent", "mcp_tool"];
        let kind = members.get("type").and_then(Value::as_str).unwrap_or("command");
        if !TYPES.contains(&kind) {
            let near = TYPES.iter().min_by_key(|known| strsim::damerau_levenshtein(kind, known));
            let near = near.copied().unwrap_or("command");
            return self.says.push(format!("{place}: type {kind} is not known, {near} was likely meant"));
        }
        let needed: &[&str] = match kind {
            "command" => &["command", "bash", "powershell", "exec"],
            "http" => &["url"],
            "prompt" | "agent" => &["prompt"],
            _ => &[],
        };
        if !needed.is_empty() && !needed.iter().any(|key| members.get(*key).is_some_and(Value::is_string)) {
            let first = needed.first().copied().unwrap_or_default();
            let misspelt = members
                .keys()
                .find(|key| !needed.contains(&key.as_str()) && strsim::damerau_levenshtein(key, first) <= 2);
            let more = misspelt.map(|key| format!(", {key} is not known")).unwrap_or_default();
            return self.says.push(format!("{place}: {first} is missing{more}"));
        }
        self.found.push(Handler {
            place: place.to_owned(),
            full: full.to_owned(),
            entry: entry.to_owned(),
            event,
            matcher,
            members,
            units: self.units,
        });
    }
}
