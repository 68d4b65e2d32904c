//! The handler of one script hook, and the maker that a workshop takes.

use super::engine::{LONGEST_ERROR, MOST_MEMORY, Outcome};
use super::pool::{Job, Lost, Pool, Unsound};
use super::shares::Tenant;
use super::wrecks::Wrecks;
use super::{source, verdict};
use hookgate_core::future::BoxFuture;
use hookgate_core::handler::{Answer, Call, Fault, Handler, HandlerKind, HandlerSpec};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Memory of a script that asks for none, in MiB.
const MEMORY: u64 = 16;
const DIED: &str = "the script worker ended during the call";
/// A longer event is not given to a script.
const LONGEST_EVENT: usize = 32 << 20;

/// A script hook.
#[derive(Debug)]
pub struct ScriptHandler {
    pool: Arc<Pool>,
    number: u64,
    source: String,
    memory: usize,
    timeout: Duration,
    wrecks: Arc<Wrecks>,
}

/// Makes script handlers whose calls run in this pool.
pub fn maker(
    pool: Arc<Pool>,
) -> impl Fn(&HandlerSpec, &Path) -> Result<Arc<dyn Handler>, String> + Send + Sync + 'static {
    move |spec, folder| {
        ScriptHandler::new(spec, folder, &pool).map(|handler| Arc::new(handler) as Arc<dyn Handler>)
    }
}

impl ScriptHandler {
    fn new(spec: &HandlerSpec, folder: &Path, pool: &Arc<Pool>) -> Result<ScriptHandler, String> {
        let HandlerKind::Script { text, memory_mb } = &spec.kind else {
            return Err(format!("a {} is no script", spec.type_name()));
        };
        let most = u64::try_from(MOST_MEMORY >> 20).unwrap_or(MEMORY);
        let memory = memory_mb.unwrap_or(MEMORY);
        if !(1..=most).contains(&memory) {
            return Err(format!("`memory_mb` is {memory}; expected 1 to {most}"));
        }
        let source = source::text(text, folder)?;
        let checked = if pool.shared().settings.checks { pool.shared().check(&source) } else { Ok(()) };
        match checked {
            Ok(()) => {}
            Err(Unsound::Wrong(why)) => return Err(format!("the script does not compile: {why}")),
            // not the definition's fault: every call will say that there is no worker, or what is wrong
            Err(Unsound::Unseen) => {}
        }
        Ok(ScriptHandler {
            pool: pool.clone(),
            number: pool.shared().number(),
            source,
            memory: usize::try_from(memory << 20).unwrap_or(MOST_MEMORY),
            timeout: spec.timeout,
            wrecks: Arc::new(Wrecks::new(pool.shared().settings.wrecks)),
        })
    }

    async fn run(&self, call: Call<'_>) -> Result<Answer, Fault> {
        let started = Instant::now();
        let deadline = started + call.within.min(self.timeout);
        let rests = |detail| Fault::failed("its script rests after it wrecked its workers", detail);
        self.wrecks.allow(started).map_err(rests)?;
        if call.json.len() > LONGEST_EVENT {
            let detail = format!("an event of {} bytes is too long for a script", call.json.len());
            return Err(Fault::failed("the event is too long for a script", detail));
        }
        if tokio::runtime::Handle::try_current().is_err() {
            let why = "script hooks need a tokio runtime";
            return Err(Fault::failed(why, why));
        }
        let head = call.facts.head();
        let tenant: Tenant = head.tenant_id.as_deref().unwrap_or_default().into();
        let moment = self.pool.shared().moments.of(&head.session_id, &head.event_id);
        let job = Job {
            script: self.number,
            source: &self.source,
            event: call.json.as_bytes(),
            deadline,
            memory: self.memory,
            now: moment.now,
            seed: moment.seed,
        };
        let late = deadline + self.pool.shared().settings.grace;
        let asked = self.pool.shared().ask(&tenant, &self.wrecks, &job);
        // the dispatcher has a clock of its own; this one is for callers who have none
        let Ok(asked) = tokio::time::timeout_at(late.into(), asked).await else { return Err(Fault::Timeout) };
        let (outcome, console) = asked.map_err(|lost| match lost {
            Lost::NoWorker(why) => Fault::passing("no script worker can be had", why),
            Lost::Died => Fault::failed(DIED, DIED),
        })?;
        let stage = call.facts.point().stage();
        let answer = match outcome {
            Outcome::Value(json) => {
                verdict::read(&json, stage).map_err(|detail| ("its result is no verdict", detail))
            }
            Outcome::Nothing => verdict::nothing(stage).map_err(|detail| ("it returned nothing", detail)),
            Outcome::Timeout => return Err(Fault::Timeout),
            Outcome::Failed(detail) => Err((words(&detail), detail)),
        };
        match answer {
            Ok(answer) => Ok(Answer { console, ..answer }),
            Err((why, detail)) => {
                Err(Fault::failed(why, detail.chars().take(LONGEST_ERROR).collect::<String>()))
            }
        }
    }
}

/// What kind of failure this is. A script that throws such a text chooses between these words, no more.
fn words(detail: &str) -> &'static str {
    if detail.starts_with("out of memory") {
        "its script ran out of memory"
    } else if detail.starts_with("the result has ") {
        "its result is too long"
    } else {
        "its script failed"
    }
}

impl Handler for ScriptHandler {
    fn ask<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Result<Answer, Fault>> {
        Box::pin(self.run(call))
    }
}
