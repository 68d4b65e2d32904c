//! `hookgate test [DIR]`: the tests beside hooks. What a test file may say is in `docs/tests.md`.
//!
//! Exit code 0: all passed; 1: a test failed, or there is none and one is required; 2: something cannot be read.

mod json;
mod shown;

use crate::args::TestArgs;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::terminal;
use crate::workbench::Bench;
use hookgate_core::define::Problem;
use hookgate_handlers::folder;
use hookgate_workbench::stage::Stage;
use hookgate_workbench::test::file::{self, Names, Tests};
use hookgate_workbench::test::junit;
use hookgate_workbench::test::run::{self, Options, Report, TestFile};
use hookgate_workbench::test::update;
use std::collections::HashMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(super) fn run(args: &TestArgs) -> Result<Exit, Failure> {
    let bench = Bench::open(args.dir.as_deref(), args.config.as_deref())?;
    let files = read(&bench)?;
    let options = Options {
        filter: args.filter.clone(),
        live: args.live,
        at_a_time: std::thread::available_parallelism().map_or(1, usize::from),
        tenant: bench.tenant.clone(),
    };
    let report = super::fire::runtime()?.block_on(run::run(&bench.stage.set(), files, &options));
    if report.files.is_empty() {
        return none(args, &bench.folders);
    }
    if let Some(path) = &args.junit {
        let document = junit::document(&report, |_, test| shown::faults(test));
        fs::write(path, document).map_err(|error| cannot_write(path, &error))?;
    }
    let updated = if args.update { update_files(&report)? } else { Vec::new() };
    let mut stdout = io::stdout().lock();
    if args.json {
        writeln!(stdout, "{}", json::document(&report, args.coverage)?)?;
    } else {
        let mut text = shown::report(&report, &updated);
        if args.coverage {
            text.push_str(&shown::coverage(&report.coverage));
        }
        stdout.write_all(terminal::printable(&text, terminal::is_terminal(&stdout)).as_bytes())?;
    }
    let left = report.files.iter().filter(|file| file.n_failed() > 0 && !updated.contains(&file.name));
    let all_known = |file: &&run::FileReport| file.tests.iter().all(update::is_known);
    let unknown = report.files.iter().filter(|file| updated.contains(&file.name) && !all_known(file));
    Ok(if left.chain(unknown).next().is_none() { Exit::Done } else { Exit::Problems })
}

/// All test files; what is wrong in any of them is told at once.
fn read(bench: &Bench) -> Result<Vec<TestFile>, Failure> {
    let names = Names::of(&bench.stage.set());
    let mut stages = Stages { bench, made: HashMap::new() };
    let (mut files, mut problems) = (Vec::new(), Vec::new());
    for folder in &bench.folders {
        let paths = folder::test_files(folder).map_err(|error| {
            Failure::new(format!("the folder {} cannot be read: {error}", folder.display()))
        })?;
        for path in paths {
            let name = path.display().to_string();
            match folder::read_text(&path) {
                Ok(text) => match file::read(&name, &text, &names) {
                    Ok(Tests { tests, only }) => {
                        let stage = stages.of(only)?;
                        files.push(TestFile { name, tests, stage });
                    }
                    Err(of_file) => problems.extend(of_file),
                },
                Err(why) => problems.push(Problem::of_file(&name, why)),
            }
        }
    }
    if problems.is_empty() { Ok(files) } else { Err(Failure::Hooks(problems)) }
}

/// The stages of test files: one for all hooks, one for each choice among them.
struct Stages<'a> {
    bench: &'a Bench,
    made: HashMap<Vec<String>, Arc<Stage>>,
}

impl Stages<'_> {
    fn of(&mut self, only: Option<Vec<String>>) -> Result<Arc<Stage>, Failure> {
        let Some(only) = only else { return Ok(self.bench.stage.clone()) };
        if let Some(made) = self.made.get(&only) {
            return Ok(made.clone());
        }
        let stage = self.bench.only(&only)?;
        self.made.insert(only, stage.clone());
        Ok(stage)
    }
}

/// Nothing was run.
fn none(args: &TestArgs, folders: &[PathBuf]) -> Result<Exit, Failure> {
    let names: Vec<String> = folders.iter().map(|folder| folder.display().to_string()).collect();
    let mut text = match &args.filter {
        Some(part) => format!("no test has `{part}` in its name\n"),
        None => format!("no tests in {}\n", names.join(", ")),
    };
    if args.filter.is_none() {
        let below = folders.iter().map(|folder| folder.join("hooks")).find(|folder| folder.is_dir());
        text.push_str(&match below {
            Some(below) => format!("was {} meant?\n", below.display()),
            None => {
                "tests stand in NAME.test.json beside the hooks; `hookgate init` writes some to begin with\n"
                    .to_owned()
            }
        });
    }
    let mut stdout = io::stdout().lock();
    if args.json {
        writeln!(
            stdout,
            "{}",
            json::document(&Report { files: Vec::new(), coverage: Default::default() }, false)?
        )?;
    } else {
        stdout.write_all(terminal::printable(&text, terminal::is_terminal(&stdout)).as_bytes())?;
    }
    Ok(if args.require { Exit::Problems } else { Exit::Done })
}

/// Writes what happened into the files of tests that failed; gives their names.
fn update_files(report: &Report) -> Result<Vec<String>, Failure> {
    let mut updated = Vec::new();
    for file in report.files.iter().filter(|file| file.n_failed() > 0) {
        let path = Path::new(&file.name);
        let text = folder::read_text(path).map_err(|why| Failure::new(format!("{}: {why}", file.name)))?;
        let new = update::rewrite(&text, &file.tests)
            .map_err(|why| Failure::new(format!("{} cannot be updated: {why}", file.name)))?;
        if let Some(new) = new {
            fs::write(path, new).map_err(|error| cannot_write(path, &error))?;
            updated.push(file.name.clone());
        }
    }
    Ok(updated)
}

fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    Failure::new(format!("{} cannot be written: {error}", path.display()))
}
