//! `hookgate fire EVENT.json`, and `hookgate why` of a file: what every hook made of an event.
//!
//! Exit code 0: told, whatever hooks said; 2: the event or the hooks cannot be read.

use crate::args::FireArgs;
use crate::chat::ruled_out;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::workbench::Bench;
use hookgate_core::point::{Point, Stage};
use hookgate_core::word::Word;
use hookgate_workbench::fire::{self, Became, Fired, HookTrace};
use hookgate_workbench::step::Step;
use std::io::Read;
use std::path::Path;

/// A larger file holds no events for people to look at.
const LARGEST_FILE: u64 = 64 * 1024 * 1024;

pub(super) fn run(args: &FireArgs) -> Result<Exit, Failure> {
    let steps = read(&args.event)?;
    let bench = Bench::open(args.hooks.as_deref(), args.config.as_deref())?;
    let runtime = runtime()?;
    let fired = runtime.block_on(fire::fire(&bench.stage, &steps, args.live));
    super::audit::print(args.json, &fired, || told(&fired))
}

/// The threads on which hooks are asked.
pub(super) fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(format!("the program cannot start its threads: {error}")))
}

fn read(path: &Path) -> Result<Vec<Step>, Failure> {
    let is_input = path == Path::new("-");
    let name = if is_input { "standard input".to_owned() } else { path.display().to_string() };
    let cannot = |why: String| Failure::new(format!("{name} cannot be read: {why}"));
    let mut text = String::new();
    let mut take = |from: &mut dyn Read| from.take(LARGEST_FILE).read_to_string(&mut text);
    let taken = if is_input {
        take(&mut std::io::stdin().lock())
    } else {
        std::fs::File::open(path).and_then(|mut file| take(&mut file))
    };
    taken.map_err(|error| cannot(error.to_string()))?;
    fire::read(&name, &text).map_err(Failure::Hooks)
}

/// A paragraph an event, a line a hook. Pieces of an answer that nobody fired on are told together.
pub(super) fn told(fired: &[Fired]) -> String {
    let mut text = String::new();
    let mut quiet: Vec<&Fired> = Vec::new();
    // of a session only what some hook listens to is worth a line
    let nobody_listens = fired.iter().all(|event| event.hooks.is_empty());
    for event in fired.iter().filter(|event| nobody_listens || !event.hooks.is_empty()) {
        if is_quiet(event) {
            quiet.push(event);
            continue;
        }
        text.push_str(&told_quiet(&quiet));
        quiet.clear();
        text.push_str(&told_event(event));
    }
    text.push_str(&told_quiet(&quiet));
    text
}

/// A piece of an answer on which no hook fired.
fn is_quiet(event: &Fired) -> bool {
    let ruled_out = |trace: &HookTrace| matches!(trace.became, Became::RuledOut { .. });
    event.event == "chunk" && event.hooks.iter().all(ruled_out)
}

fn told_quiet(pieces: &[&Fired]) -> String {
    let Some(first) = pieces.first() else { return String::new() };
    let mut text = match pieces.len() {
        1 => "chunk\n".to_owned(),
        number => format!("chunk, {number} pieces\n"),
    };
    // that a finish is no text says less than what the text did not have
    let is_of_kind = |trace: &HookTrace| matches!(trace.became, Became::RuledOut { by: "chunks", .. });
    for place in 0..first.hooks.len() {
        let traces = || pieces.iter().rev().filter_map(|piece| piece.hooks.get(place));
        let told = traces().find(|trace| !is_of_kind(trace)).or_else(|| traces().next());
        text.extend(told.map(told_hook));
    }
    text
}

fn told_event(event: &Fired) -> String {
    let about = event.tool_name.as_deref().map(|tool| format!(" of {tool}")).unwrap_or_default();
    let mut text = format!("{}{about}\n", event.event);
    text.push_str(&told_hooks(event));
    for effect in &event.effects {
        text.push_str(&format!("  asked for: {effect}\n"));
    }
    for warning in &event.warnings {
        text.push_str(&format!("  warning: {warning}\n"));
    }
    for (member, value) in &event.updated_input {
        text.push_str(&format!("  {member} is now {value}\n"));
    }
    for (how, texts) in [("append", &event.append), ("send", &event.send)] {
        for added in texts {
            text.push_str(&format!("  {how}: {added}\n"));
        }
    }
    text.push_str(&verdict(event));
    text
}

fn is_watched(event: &Fired) -> bool {
    Point::from_word(event.event).is_some_and(|point| point.stage() == Stage::Watch)
}

/// What comes of the event in the end.
fn verdict(event: &Fired) -> String {
    let open: Vec<&str> = event.would_run().map(|trace| trace.hook.as_str()).collect();
    match (&event.hook, event.reason.as_deref()) {
        (Some(hook), None | Some("")) => format!("  -> block, by hook {hook}\n"),
        (Some(hook), Some(reason)) => format!("  -> block, by hook {hook}: {reason}\n"),
        (None, _) if !open.is_empty() && !is_watched(event) => {
            format!("  -> allow, unless {} says otherwise\n", open.join(" or "))
        }
        // where nothing can be stopped, that nobody wanted to is no news
        (None, _) if is_watched(event) => String::new(),
        (None, _) => "  -> allow\n".to_owned(),
    }
}

fn told_hooks(event: &Fired) -> String {
    if event.hooks.is_empty() {
        return "  no hook listens here\n".into();
    }
    event.hooks.iter().map(told_hook).collect()
}

fn told_hook(trace: &HookTrace) -> String {
    let hook = &trace.hook;
    match &trace.became {
        Became::RuledOut { by, wanted, found } => ruled_out(hook, by, wanted, found),
        Became::Fired => format!("  hook {hook} fired\n"),
        Became::WouldRun { handler } => {
            format!("  hook {hook} ({handler}) would run; only --live runs it\n")
        }
        Became::NotAsked => format!("  hook {hook} was not asked: another had stopped it by then\n"),
        Became::Asked { handler, decision, said, console, took_us } => {
            let took = match took_us / 1000 {
                0 => "in less than 1 ms".to_owned(),
                ms => format!("after {ms} ms"),
            };
            let said = said.as_deref().filter(|said| !said.is_empty());
            let said = said.map(|said| format!(": {said}")).unwrap_or_default();
            let mut text = format!("  hook {hook} ({handler}) said {decision} {took}{said}\n");
            for line in console.lines() {
                text.push_str(&format!("    it wrote: {line}\n"));
            }
            text
        }
    }
}
