//! Plays tests and says how each went. Files run beside each other, the tests of a file one after the other.

use super::coverage::Coverage;
use super::expect::{Difference, Expect};
use super::file::Test;
use super::found::Found;
use crate::desk::{By, Desk, Unanswered};
use crate::happened::{Happened, Played};
use crate::stage::Stage;
use crate::step::Whose;
use hookgate_core::set::HookSet;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// What is run.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Only tests with this in their name or their file's.
    pub filter: Option<String>,
    /// All handlers that reach out of the process run, where no answer is given.
    pub live: bool,
    /// Files that run at a time.
    pub at_a_time: usize,
    /// The tenant of tests that name none.
    pub tenant: Option<String>,
}

/// A test file that was read.
#[derive(Debug)]
pub struct TestFile {
    /// Its name as the user knows it.
    pub name: String,
    /// Its tests.
    pub tests: Vec<Test>,
    /// The hooks that it is about.
    pub stage: Arc<Stage>,
}

/// How everything went.
#[derive(Debug)]
pub struct Report {
    /// By file, in the given order. A file in which no test was run is left out.
    pub files: Vec<FileReport>,
    /// What the tests touched.
    pub coverage: Coverage,
}

/// How the tests of a file went.
#[derive(Debug)]
pub struct FileReport {
    /// The file.
    pub name: String,
    /// Its tests in order.
    pub tests: Vec<TestReport>,
    /// How long they took together.
    pub took: Duration,
}

/// How a test went.
#[derive(Debug)]
pub struct TestReport {
    /// Its name.
    pub name: String,
    /// Its place in the file's list, from 0.
    pub index: usize,
    /// What is wrong; empty: it passed.
    pub faults: Vec<Fault>,
    /// What came of the whole test.
    pub found: Found,
    /// What came of each step.
    pub found_by_step: Vec<Found>,
    /// The events, for the one who wants to know why.
    pub events: Vec<Happened>,
    /// How long it took.
    pub took: Duration,
}

/// Something that makes a test fail.
#[derive(Debug, Clone, PartialEq)]
pub enum Fault {
    /// It is not as expected.
    Differs {
        /// The step that it is about, from 0; none: all of them.
        step: Option<usize>,
        /// What.
        difference: Difference,
    },
    /// It expects nothing.
    ExpectsNothing {
        /// The step that it is about, from 0; none: all of them.
        step: Option<usize>,
    },
    /// A handler would have run, and no answer is given for it.
    NoAnswer {
        /// The hook.
        hook: String,
        /// The handler's type.
        kind: &'static str,
    },
    /// The test broke off, which is a fault of the program.
    BrokeOff,
}

impl Report {
    /// How many tests were run.
    pub fn n_tests(&self) -> usize {
        self.files.iter().map(|file| file.tests.len()).sum()
    }

    /// How many of them failed.
    pub fn n_failed(&self) -> usize {
        self.files.iter().map(FileReport::n_failed).sum()
    }
}

impl FileReport {
    /// How many of its tests failed.
    pub fn n_failed(&self) -> usize {
        self.tests.iter().filter(|test| !test.passed()).count()
    }
}

impl TestReport {
    /// Whether all was as expected.
    pub fn passed(&self) -> bool {
        self.faults.is_empty()
    }
}

/// Runs the tests of these files; `all` are the hooks that they could touch. To be called inside a tokio runtime; with several threads files run in parallel.
pub async fn run(all: &HookSet, files: Vec<TestFile>, options: &Options) -> Report {
    let room = Arc::new(Semaphore::new(options.at_a_time.max(1)));
    let mut running = JoinSet::new();
    let names: Vec<String> = files.iter().map(|file| file.name.clone()).collect();
    for (place, file) in files.into_iter().enumerate() {
        let (room, options) = (room.clone(), options.clone());
        running.spawn(async move {
            // the semaphore is never closed
            let _room = room.acquire_owned().await.ok();
            (place, run_file(&file, &options).await)
        });
    }
    let mut reports: Vec<Option<FileReport>> = names.iter().map(|_| None).collect();
    while let Some(ended) = running.join_next().await {
        if let Ok((place, report)) = ended
            && let Some(slot) = reports.get_mut(place)
        {
            *slot = Some(report);
        }
    }
    let files =
        reports.into_iter().zip(names).map(|(report, name)| report.unwrap_or_else(|| broke_off(name)));
    let files: Vec<FileReport> = files.filter(|file| !file.tests.is_empty()).collect();
    let mut coverage = Coverage::of(all);
    files.iter().flat_map(|file| &file.tests).for_each(|test| coverage.add(&test.events));
    Report { files, coverage }
}

/// A task that ended without a report: its tests count as failed, not as run.
fn broke_off(name: String) -> FileReport {
    let test = TestReport {
        name: "all tests of the file".into(),
        index: 0,
        faults: vec![Fault::BrokeOff],
        found: Found::default(),
        found_by_step: Vec::new(),
        events: Vec::new(),
        took: Duration::ZERO,
    };
    FileReport { name, tests: vec![test], took: Duration::ZERO }
}

async fn run_file(file: &TestFile, options: &Options) -> FileReport {
    let began = Instant::now();
    let wanted = |test: &&Test| {
        options
            .filter
            .as_ref()
            .is_none_or(|part| test.name.contains(part.as_str()) || file.name.contains(part.as_str()))
    };
    let mut tests = Vec::new();
    for test in file.tests.iter().filter(wanted) {
        tests.push(run_test(&file.stage, &file.name, test, options).await);
    }
    FileReport { name: file.name.clone(), tests, took: began.elapsed() }
}

async fn run_test(stage: &Stage, file: &str, test: &Test, options: &Options) -> TestReport {
    let began = Instant::now();
    let desk = Desk::new(options.live || test.live, Unanswered::Fails, test.given.clone());
    // no two tests share a session, so that budgets and memories of handlers are each test's own
    let session_id = format!("{file}#{}", test.index.saturating_add(1));
    let whose = Whose {
        tenant_id: test.whose.tenant_id.clone().or_else(|| options.tenant.clone()),
        ..test.whose.clone()
    };
    let mut scene = stage.begin(desk, &session_id, whose);
    let mut played: Vec<Played> = Vec::new();
    for (step, _) in &test.steps {
        played.push(scene.play(step).await);
    }
    let found = Found::of(&played);
    let found_by_step: Vec<Found> =
        played.iter().map(|played| Found::of(std::slice::from_ref(played))).collect();
    let mut faults = no_answers(&played);
    for (place, ((_, expect), found)) in test.steps.iter().zip(&found_by_step).enumerate() {
        faults.extend(expect.iter().flat_map(|expect| compared(expect, found, Some(place))));
    }
    faults.extend(test.expect.iter().flat_map(|expect| compared(expect, &found, None)));
    let events = played.into_iter().flat_map(|played| played.events).collect();
    TestReport {
        name: test.name.clone(),
        index: test.index,
        faults,
        found,
        found_by_step,
        events,
        took: began.elapsed(),
    }
}

fn compared(expect: &Expect, found: &Found, step: Option<usize>) -> Vec<Fault> {
    if expect.is_empty() {
        return vec![Fault::ExpectsNothing { step }];
    }
    let differs = |difference| Fault::Differs { step, difference };
    expect.compare(found).into_iter().map(differs).collect()
}

/// The handlers that should have had an answer, each once.
fn no_answers(played: &[Played]) -> Vec<Fault> {
    let mut faults: Vec<Fault> = Vec::new();
    let asked = played.iter().flat_map(|played| &played.events).flat_map(|event| &event.asked);
    for asked in asked.filter(|asked| asked.by == By::Nobody) {
        let fault = Fault::NoAnswer { hook: asked.hook.clone(), kind: asked.kind };
        if !faults.contains(&fault) {
            faults.push(fault);
        }
    }
    faults
}

#[cfg(test)]
mod tests;
