//! `hookgate check [DIR]`: everything that would keep a door from using the folder, and what is probably not meant.
//!
//! Exit code 0: fine (warnings are allowed, unless `--deny-warnings`), 1: problems, 2: the folder cannot be read.

mod agent;
mod beyond;
mod door;
mod json;
mod sarif;

use self::door::Door;
use crate::args::CheckArgs;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::snippet::{self, Severity, Texts};
use crate::workbench::Bench;
use crate::{sources, terminal};
use hookgate_core::define::{Problem, read_document};
use hookgate_handlers::folder::{self, OnInvalid};
use hookgate_workbench::lint::{self, Written};
use hookgate_workbench::test::file::{self, Names};
use std::io::{self, Write};
use std::path::PathBuf;

/// What was found.
struct Found {
    n_hooks: usize,
    problems: Vec<Problem>,
    warnings: Vec<Problem>,
    texts: Texts,
}

pub(super) fn run(args: &CheckArgs) -> Result<Exit, Failure> {
    let mut found = find(args)?;
    let mut stdout = io::stdout().lock();
    if args.folder.json {
        writeln!(stdout, "{}", json::document(&found.problems, &found.warnings)?)?;
    } else if args.sarif {
        writeln!(stdout, "{}", sarif::document(&found.problems, &found.warnings, &mut found.texts)?)?;
    } else {
        let colours = terminal::wants_colour(&stdout);
        stdout.write_all(text(&mut found, colours).as_bytes())?;
    }
    let is_fine = found.problems.is_empty() && (found.warnings.is_empty() || !args.deny_warnings);
    Ok(if is_fine { Exit::Done } else { Exit::Problems })
}

fn find(args: &CheckArgs) -> Result<Found, Failure> {
    let doors = args.door.iter().map(|name| Door::named(name)).collect::<Result<Vec<Door>, Failure>>()?;
    let sources = sources::of(&args.folder)?;
    let loaded = sources.load();
    let mut texts = Texts::default();
    let files = loaded.hooks.iter().map(|hook| hook.file.as_str());
    let files: Vec<&str> = files.chain(loaded.problems.iter().map(|problem| problem.file.as_str())).collect();
    let written = Written::of(files, |file| texts.of(file).map(str::to_owned));
    let mut warnings = loaded.warnings.clone();
    warnings.extend(lint::warnings(&loaded.hooks, &written));
    for door in &doors {
        warnings.extend(loaded.hooks.iter().flat_map(|hook| beyond::warnings(door, hook)));
    }
    let n_hooks = loaded.hooks.len();
    // making the set finds what only all hooks together can have, such as patterns that are too many
    let (set, mut problems) = loaded.into_set(OnInvalid::Refuse);
    let folders: Vec<PathBuf> = sources.folders().map(PathBuf::from).collect();
    problems.extend(test_files(args, &folders, set.is_some())?);
    for problem in problems.iter_mut().chain(&mut warnings).filter(|problem| problem.place.is_none()) {
        // who makes a handler, and who compares hooks, does not know how they are written
        let field = finer(problem);
        problem.place =
            problem.hook.as_ref().and_then(|hook| written.place(&problem.file, hook.index, &field));
    }
    warnings.sort_by(|one, other| (&one.file, one.place).cmp(&(&other.file, other.place)));
    Ok(Found { n_hooks, problems, warnings, texts })
}

/// The field that a problem is about. Who makes handlers names theirs in the words: `url_env: …`, `the script file …`.
fn finer(problem: &Problem) -> String {
    let field = problem.field.as_deref().unwrap_or_default();
    if field != "handler" {
        return field.to_owned();
    }
    let first = problem.message.split(':').next().unwrap_or_default();
    let inner = match first {
        words if words.starts_with("the script file") => "file",
        words if words.starts_with("the script") => "source",
        word => word,
    };
    format!("{field}.{inner}")
}

/// What is wrong with the test files of the folders. Whether the hooks that they name are there can only be told where
/// all hooks are good.
fn test_files(args: &CheckArgs, folders: &[PathBuf], is_whole: bool) -> Result<Vec<Problem>, Failure> {
    let mut paths = Vec::new();
    for folder in folders {
        let found = folder::test_files(folder).map_err(|error| {
            Failure::new(format!("the folder {} cannot be read: {error}", folder.display()))
        })?;
        paths.extend(found);
    }
    let names = if paths.is_empty() || !is_whole {
        None
    } else {
        // as `hookgate test` would load them
        let bench = Bench::open(args.folder.dir.as_deref(), args.folder.config.as_deref());
        bench.ok().map(|bench| Names::of(&bench.stage.set()))
    };
    let mut problems = Vec::new();
    for path in paths {
        let name = path.display().to_string();
        match (folder::read_text(&path), &names) {
            (Ok(text), Some(names)) => {
                problems.extend(file::read(&name, &text, names).err().unwrap_or_default());
            }
            (Ok(text), None) => {
                problems.extend(read_document(&name, &text, |_, _| Some(())).err().unwrap_or_default());
            }
            (Err(why), _) => problems.push(Problem::of_file(&name, why)),
        }
    }
    Ok(problems)
}

fn text(found: &mut Found, colours: bool) -> String {
    let Found { n_hooks, problems, warnings, texts } = found;
    let mut text = String::new();
    for (severity, findings) in [(Severity::Error, &*problems), (Severity::Warning, &*warnings)] {
        for finding in findings {
            text.push_str(&snippet::shown(finding, severity, texts, colours));
        }
    }
    text.push_str(&summary(*n_hooks, problems.len(), warnings.len()));
    text
}

/// `3 good hooks, 1 problem, no warnings`
fn summary(n_hooks: usize, n_problems: usize, n_warnings: usize) -> String {
    let count = |n: usize, what: &str| match n {
        0 => format!("no {what}s"),
        1 => format!("1 {what}"),
        n => format!("{n} {what}s"),
    };
    let hooks = count(n_hooks, "good hook");
    format!("{hooks}, {}, {}\n", count(n_problems, "problem"), count(n_warnings, "warning"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_counts() {
        assert_eq!(summary(1, 0, 2), "1 good hook, no problems, 2 warnings\n");
    }
}
