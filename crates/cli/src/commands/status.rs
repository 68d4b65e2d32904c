//! `hookgate status`: which agents are wired, and with what.

use super::install::print;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::install::{place, plan};

pub(super) fn run() -> Result<Exit, Failure> {
    let mut text = String::new();
    for found in place::all() {
        let (name, path) = (found.agent.name(), found.path.display());
        match plan::lines(&found) {
            Ok(lines) if lines.is_empty() => {}
            Ok(lines) => {
                let wanted = found.agent.events().iter().filter(|event| event.installed).count();
                let n = lines.len();
                let part = match lines.first() {
                    Some((event, _)) if event == "plugin" => "a plugin".to_owned(),
                    _ if n == wanted => format!("{n} events"),
                    _ => format!("{n} of {wanted} events; install it again"),
                };
                text.push_str(&format!("{name}: {path}: {part}\n"));
                if let Some((_, line)) = lines.first() {
                    text.push_str(&format!("    {line}\n"));
                }
            }
            Err(failure) => text.push_str(&format!("{name}: {failure}\n")),
        }
    }
    if text.is_empty() {
        text.push_str("no agent is wired\n");
    }
    print(&text)
}
