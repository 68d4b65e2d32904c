//! A conversation on a terminal: a line editor, commands, and answers that Ctrl-C stops.

use super::turn::{Engine, Turn};
use super::why::looked;
use super::{Assembled, Display};
use crate::config::{Backend, Settings};
use crate::exit::Exit;
use crate::failure::{Failure, with_causes};
use crate::trail::Trail;
use crate::{problems, table};
use hookgate_chat::{ChatService, Reload, Role};
use rustyline::config::Config;
use rustyline::error::ReadlineError;
use rustyline::history::MemHistory;

const PROMPT: &str = "> ";

/// Events whose filters `/why` can tell of.
const REMEMBERED: usize = 20;

const HELP: &str = "\
/hooks    the hooks that are in force
/history  the messages so far
/reload   read the hooks folder again
/why      which hooks the last events concerned, and what kept them from others
/help     this
/quit     the end (also Ctrl-D)
Ctrl-C stops an answer. A text that begins with a slash is sent with two of them.";

type Editor = rustyline::Editor<(), MemHistory>;

/// What a line asks for.
#[derive(Debug, PartialEq)]
enum Line<'a> {
    Nothing,
    Send(&'a str),
    Hooks,
    History,
    Reload,
    Why,
    Help,
    Quit,
    Unknown(&'a str),
}

impl Line<'_> {
    fn read(line: &str) -> Line<'_> {
        let line = line.trim();
        match line {
            "" => Line::Nothing,
            "/hooks" => Line::Hooks,
            "/history" => Line::History,
            "/reload" => Line::Reload,
            "/why" => Line::Why,
            "/help" => Line::Help,
            "/quit" => Line::Quit,
            _ => match line.strip_prefix('/') {
                None => Line::Send(line),
                Some(rest) if rest.starts_with('/') => Line::Send(rest),
                Some(_) => Line::Unknown(line),
            },
        }
    }
}

/// Talks until the person leaves.
pub(crate) fn converse(
    assembled: &Assembled,
    settings: &Settings,
    display: &Display,
) -> Result<Exit, Failure> {
    let Assembled { service, trail } = assembled;
    if let Some(trail) = trail {
        trail.remember(REMEMBERED);
    }
    introduce(service, settings, display);
    let engine = Engine::start()?;
    let mut signals = engine.interrupts()?;
    let mut editor = editor()?;
    while let Some(line) = ask(&mut editor, display)? {
        match Line::read(&line) {
            Line::Nothing => {}
            Line::Send(text) => {
                service.queue_message(Role::User, text);
                let turn = engine.send(service, display, &mut signals);
                if let Some(failure) = after(turn, display) {
                    engine.leave();
                    return Err(failure);
                }
            }
            Line::Hooks => hooks(service, display),
            Line::History => display.tell(&history(service)),
            Line::Reload => reload(service, display),
            Line::Why => why(trail.as_ref(), display),
            Line::Help => display.tell(HELP),
            Line::Quit => break,
            Line::Unknown(command) => {
                display.tell(&format!("there is no command {command}; /help shows all, // sends a slash"));
            }
        }
    }
    engine.close(service, display);
    engine.leave();
    Ok(Exit::Done)
}

fn editor() -> Result<Editor, Failure> {
    Editor::with_history(Config::default(), MemHistory::new()).map_err(|error| no_terminal(&error))
}

fn no_terminal(error: &ReadlineError) -> Failure {
    Failure::new(format!("the terminal cannot be read: {error}"))
}

/// The next line; none when the person leaves. Ctrl-C twice in a row asks whether to leave.
fn ask(editor: &mut Editor, display: &Display) -> Result<Option<String>, Failure> {
    let mut asked_to_stop = false;
    loop {
        match editor.readline(PROMPT) {
            Ok(line) => {
                if !line.trim().is_empty() {
                    // an editor without history still edits
                    let _ = editor.add_history_entry(line.as_str());
                }
                return Ok(Some(line));
            }
            Err(ReadlineError::Eof) => return Ok(None),
            Err(ReadlineError::Interrupted) if asked_to_stop => match editor.readline("leave? [y/N] ") {
                Ok(answer) if answer.trim().eq_ignore_ascii_case("y") => return Ok(None),
                Ok(_) | Err(ReadlineError::Interrupted) => asked_to_stop = false,
                Err(ReadlineError::Eof) => return Ok(None),
                Err(error) => return Err(no_terminal(&error)),
            },
            Err(ReadlineError::Interrupted) => {
                display.whisper("(Ctrl-D or /quit leaves)");
                asked_to_stop = true;
            }
            Err(error) => return Err(no_terminal(&error)),
        }
    }
}

/// Tells how an answer ended, where that is not to be seen. A failure ends the conversation.
fn after(turn: Turn, display: &Display) -> Option<Failure> {
    match turn {
        Turn::Sent(Ok(outcome)) => display.ended(&outcome),
        Turn::Sent(Err(error)) => {
            let text = with_causes(&error);
            display.failed(&text);
            display.tell(&format!("error: {text}"));
        }
        Turn::Stopped(_) => {
            display.failed("stopped");
            display.tell("[stopped]");
        }
        Turn::Lost => display.tell("error: the answer broke off inside the program"),
    }
    display.take_error().map(Failure::Output)
}

fn introduce(service: &ChatService, settings: &Settings, display: &Display) {
    display.whisper(&match &settings.backend {
        Backend::Demo => {
            "a built-in scripted model answers, without key or network; --model or --base-url names a real one"
                .to_owned()
        }
        Backend::Script(path) => format!("the script {} answers", path.display()),
        Backend::Remote(remote) => {
            let url = remote.base_url.as_deref().unwrap_or(remote.provider.default_base_url());
            format!("model {} of {} at {url} answers", remote.model, remote.provider)
        }
    });
    if let Some(path) = &settings.config_file {
        display.whisper(&format!("configuration: {}", path.display()));
    }
    if !settings.tools.is_empty() {
        let names: Vec<String> = settings.tools.iter().map(|tool| tool.to_string()).collect();
        display.whisper(&format!("tools: {} in {}", names.join(", "), settings.workdir.display()));
    }
    let n_hooks = service.hooks().len();
    let hooks = if n_hooks == 1 { "1 hook".to_owned() } else { format!("{n_hooks} hooks") };
    display.whisper(&format!("{hooks} in force; /help shows the commands"));
}

fn hooks(service: &ChatService, display: &Display) {
    display.tell(&table::hooks(&service.hooks()));
    let status = service.status();
    if status.is_degraded() {
        display.tell("not in force, because of these problems:");
        display.tell(&problems::text(&status.problems));
    }
    display.tell(&problems::warnings(&status.warnings));
}

fn why(trail: Option<&Trail>, display: &Display) {
    match trail {
        Some(trail) => display.tell(&looked(&trail.remembered())),
        None => display.tell("no trail is kept here (--data-dir DIR)"),
    }
}

fn history(service: &ChatService) -> String {
    let mut text = String::new();
    for message in service.history() {
        text.push_str(&format!("{} ({}): {}\n", message.role, message.origin, message.content));
        for call in &message.tool_calls {
            text.push_str(&format!("  calls {} {}\n", call.name, call.arguments));
        }
    }
    for message in service.queue() {
        text.push_str(&format!("queued {} ({}): {}\n", message.role, message.origin, message.content));
    }
    if text.is_empty() { "nothing yet".into() } else { text }
}

fn reload(service: &ChatService, display: &Display) {
    match service.reload() {
        Reload::Installed { hooks: 1 } => display.tell("1 hook in force"),
        Reload::Installed { hooks } => display.tell(&format!("{hooks} hooks in force")),
        Reload::KeptLastGood { problems } => {
            display.tell(&problems::text(&problems));
            display.tell("the hooks that were in force stay in force");
        }
        Reload::NoFolder => display.tell("there is no hooks folder (--hooks DIR)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slash_begins_a_command() {
        for (line, expected) in [
            ("  ", Line::Nothing),
            (" hi / ho ", Line::Send("hi / ho")),
            ("/quit", Line::Quit),
            ("/ quit", Line::Unknown("/ quit")),
            ("//etc", Line::Send("/etc")),
        ] {
            assert_eq!(Line::read(line), expected);
        }
    }
}
