//! `outbox list`, and the summary after `outbox drain`.

use crate::args::JobStateArg;
use crate::commands::audit::{of_store, print, time};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::table;
use hookgate_store::job::{JobFilter, JobState, StoredJob};
use hookgate_store::outbox::Outbox;
use serde_json::json;

/// Characters of an error in the table.
const LONGEST_ERROR: usize = 80;

pub(super) fn run(
    outbox: &mut Outbox,
    state: Option<JobStateArg>,
    limit: usize,
    json: bool,
) -> Result<Exit, Failure> {
    let jobs = match state {
        Some(state) => jobs(outbox, state.into(), limit)?,
        // what is done is of no interest unless it is asked for
        None => {
            let mut jobs = jobs(outbox, JobState::Due, limit)?;
            jobs.extend(self::jobs(outbox, JobState::Dead, limit.saturating_sub(jobs.len()))?);
            jobs
        }
    };
    print(json, &jobs, || shown(&jobs))
}

/// What is left after a drain.
pub(super) fn summary(outbox: &mut Outbox, json: bool) -> Result<Exit, Failure> {
    let mut count = |state| jobs(outbox, state, usize::MAX >> 1).map(|jobs| jobs.len());
    let (due, dead) = (count(JobState::Due)?, count(JobState::Dead)?);
    print(json, &json!({ "due": due, "dead": dead }), || match (due, dead) {
        (0, 0) => "nothing is left\n".into(),
        _ => format!("{due} wait for their next try, {dead} were given up (hookgate outbox list)\n"),
    })
}

fn jobs(outbox: &mut Outbox, state: JobState, limit: usize) -> Result<Vec<StoredJob>, Failure> {
    outbox.list(JobFilter { state: Some(state) }, limit).map_err(of_store)
}

fn shown(jobs: &[StoredJob]) -> String {
    if jobs.is_empty() {
        return "nothing waits\n".into();
    }
    let head = ["JOB", "STATE", "TRIES", "NEXT TRY", "HOOK", "EVENT", "ERROR"];
    let mut lines = vec![head.map(str::to_owned)];
    lines.extend(jobs.iter().map(|job| {
        let (state, next) = match (job.state, job.lease_until) {
            (JobState::Due, Some(_)) => ("running", "-".to_owned()),
            (JobState::Due, None) => ("due", time(job.due_at)),
            (JobState::Dead, _) => ("dead", "-".to_owned()),
            (JobState::Done, _) => ("done", "-".to_owned()),
        };
        [
            job.id.to_string(),
            state.to_owned(),
            job.attempts.to_string(),
            next,
            job.hook.clone(),
            job.event_id.clone(),
            job.error.as_deref().unwrap_or_default().chars().take(LONGEST_ERROR).collect(),
        ]
    }));
    table::lines(&lines)
}

impl From<JobStateArg> for JobState {
    fn from(arg: JobStateArg) -> JobState {
        match arg {
            JobStateArg::Due => JobState::Due,
            JobStateArg::Dead => JobState::Dead,
            JobStateArg::Done => JobState::Done,
        }
    }
}
