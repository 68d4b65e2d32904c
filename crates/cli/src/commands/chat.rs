//! `hookgate chat [PROMPT]`: one prompt and its answer, or a conversation on a terminal.

use crate::args::ChatArgs;
use crate::chat::{self, Display, Prompt};
use crate::config::Settings;
use crate::exit::Exit;
use crate::failure::Failure;
use hookgate_handlers::command::Commands;
use std::time::Duration;

/// How long the end waits for the trail, and for the processes of command hooks to end.
const SETTLING: Duration = Duration::from_secs(2);

pub(super) fn run(args: &ChatArgs) -> Result<Exit, Failure> {
    let display = Display::new(args.json, args.verbose);
    let result = begin(args, &display);
    if let Err(failure) = &result {
        display.failed(&failure.to_string());
    }
    result
}

fn begin(args: &ChatArgs, display: &Display) -> Result<Exit, Failure> {
    let file = super::configuration(args.config.as_deref())?;
    let settings = Settings::resolve(args, file, &|name| std::env::var_os(name))?;
    let commands = Commands::default();
    let assembled = chat::build(&settings, commands.clone(), display)?;
    let done = match Prompt::read(args.prompt.as_deref(), args.json)? {
        Prompt::Text(text) => chat::answer(&assembled.service, text, display),
        Prompt::Terminal => chat::converse(&assembled, &settings, display),
    };
    if let Some(trail) = &assembled.trail {
        trail.settle(SETTLING);
    }
    // what command hooks left running must not outlive the program
    drop(assembled);
    let left = commands.settle(SETTLING);
    if left > 0 {
        display.tell(&format!("the processes of {left} command hooks may still run"));
    }
    done
}
