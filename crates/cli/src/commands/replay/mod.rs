//! `hookgate replay HISTORY…`: what hooks would have done in past sessions.
//!
//! Exit code 0: done; 1: with `--strict`, something could not be read; 2: nothing could be read, or the hooks cannot be
//! used.

mod rules;
mod shown;

use crate::args::ReplayArgs;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::terminal;
use hookgate_core::word::Word;
use hookgate_workbench::replay::find::{self, Found};
use hookgate_workbench::replay::format::Format;
use hookgate_workbench::replay::html;
use hookgate_workbench::replay::report::Report;
use hookgate_workbench::replay::run::{self, Options};
use indicatif::{ProgressBar, ProgressStyle};
use std::io::{self, Write};
use std::path::Path;

pub(super) fn run(args: &ReplayArgs) -> Result<Exit, Failure> {
    let options = options(args)?;
    let rules = rules::load(args)?;
    let files = find::find(&args.histories)
        .map_err(|(path, error)| Failure::new(format!("{} cannot be read: {error}", path.display())))?;
    let mut report = play(&files, &rules, &options)?;
    report.hooks = name(args.hooks.as_deref());
    report.against = args.against.as_deref().map(|dir| name(Some(dir)));
    if report.files == 0 {
        return Err(Failure::new(nothing(args, &report)));
    }
    let mut stderr = io::stderr().lock();
    let warnings = shown::warnings(&report);
    stderr.write_all(terminal::printable(&warnings, terminal::is_terminal(&stderr)).as_bytes())?;
    drop(stderr);
    if let Some(file) = &args.html {
        std::fs::write(file, html::page(&report))
            .map_err(|error| Failure::new(format!("{} cannot be written: {error}", file.display())))?;
    }
    let strict = args.strict && (report.damaged > 0 || report.n_lost > 0);
    super::audit::print(args.json, &report, || shown::text(&report))?;
    Ok(if strict { Exit::Problems } else { Exit::Done })
}

fn options(args: &ReplayArgs) -> Result<Options, Failure> {
    let format = args.format.as_deref().map(|name| {
        Format::from_word(name).ok_or_else(|| {
            Failure::new(format!("unknown format `{name}`; expected one of {}", Format::allowed()))
        })
    });
    let cores = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    Ok(Options {
        format: format.transpose()?,
        tools_of: args.tools_of.as_deref().map(super::install::agent).transpose()?,
        tenant: args.tenant.clone(),
        agent: args.agent.clone(),
        threads: args.threads.unwrap_or_else(cores).max(1),
    })
}

/// Plays all files, with a bar where a person is looking.
fn play(
    files: &[Found],
    rules: &[hookgate_workbench::replay::judge::Rules],
    options: &Options,
) -> Result<Report, Failure> {
    let bytes = files.iter().fold(0u64, |sum, file| sum.saturating_add(file.size));
    let bar =
        if terminal::is_terminal(&io::stderr()) { ProgressBar::new(bytes) } else { ProgressBar::hidden() };
    // a template that cannot be read leaves the usual bar
    if let Ok(style) = ProgressStyle::with_template("{bar:30} {bytes}/{total_bytes} {eta} left") {
        bar.set_style(style);
    }
    let report = run::run(files, rules, options, &|read| bar.inc(read));
    bar.finish_and_clear();
    report.map_err(|error| Failure::new(format!("the sessions cannot be played: {error}")))
}

/// How the report calls a hook set.
fn name(dir: Option<&Path>) -> String {
    dir.map_or_else(|| "the configured hooks".into(), |dir| dir.display().to_string())
}

/// Why there was nothing to replay.
fn nothing(args: &ReplayArgs, report: &Report) -> String {
    let names: Vec<String> = args.histories.iter().map(|path| path.display().to_string()).collect();
    match report.unread.as_slice() {
        [] => format!("there is no history in {}", names.join(", ")),
        [one] => format!("nothing to replay: {}: {}", one.file, one.why),
        [first, ..] => {
            let more = report.n_unread.saturating_sub(1);
            format!("nothing to replay: {}: {} (and {more} more files)", first.file, first.why)
        }
    }
}
