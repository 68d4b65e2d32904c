//! Answers in the place of handlers: what a test or a dry run lets them say, and what they really said.
//!
//! Every handler of a set is put behind a stand-in. A command, http or prompt handler is asked only where the
//! [`Desk`] of the moment is live; a script or a hook of the program always, unless an answer is given. What a handler said
//! is kept for the one who looks.
//!
//! Nothing is decided here: an answer goes the way of every other through the dispatcher.

use hookgate_core::future::BoxFuture;
use hookgate_core::handler::{Answer, Call, Fault, Handler, HandlerSpec, HandlerType};
use hookgate_core::hook::Work;
use hookgate_core::point::Stage;
use hookgate_handlers::folder::Loaded;
use hookgate_handlers::workshop::Workshop;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// The kinds that reach out of the process and run only when somebody says so.
const OUTSIDE: [HandlerType; 3] = [HandlerType::Command, HandlerType::Http, HandlerType::Prompt];

/// What a handler is made to say.
#[derive(Debug, Clone, PartialEq)]
pub enum Given {
    /// This.
    Answer(Box<Answer>),
    /// Nothing in time.
    Late,
    /// That it failed, with these words.
    Failed(String),
}

/// What becomes of a handler that may not run and has no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unanswered {
    /// It counts as failed: a test must say what it answers.
    Fails,
    /// It counts as silent agreement: a dry run goes on.
    Agrees,
}

/// What a handler was asked, and what it said.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    /// The hook.
    pub hook: String,
    /// The handler's type, or `builtin`.
    pub kind: &'static str,
    /// Whose words it were.
    pub by: By,
    /// What was said.
    pub said: Result<Answer, Fault>,
    /// How long it took.
    pub took: Duration,
}

/// Whose words an answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// The handler's own.
    Itself,
    /// Given beforehand.
    Given,
    /// Nobody's: it may not run, and nothing was given.
    Nobody,
}

/// The rules of the moment, and what was said under them.
#[derive(Debug)]
pub struct Desk {
    live: bool,
    unanswered: Unanswered,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// What is given next, by the hook's name. The last one of a hook stays.
    given: HashMap<String, Vec<Given>>,
    asked: Vec<Asked>,
}

tokio::task_local! {
    // a handler is called with an event and nothing else, by the task that plays it; this is how it finds the desk
    static DESK: Arc<Desk>;
}

impl Desk {
    /// `live`: handlers that reach out of the process run where nothing is given for them. `given`: by the hook's name.
    pub fn new(live: bool, unanswered: Unanswered, given: HashMap<String, Vec<Given>>) -> Arc<Desk> {
        // from the end, so that the last one is what stays
        let given =
            given.into_iter().map(|(hook, given)| (hook, given.into_iter().rev().collect())).collect();
        Arc::new(Desk { live, unanswered, state: Mutex::new(State { given, asked: Vec::new() }) })
    }

    /// Plays something under the rules of this desk.
    pub async fn rule<T>(self: &Arc<Desk>, play: impl Future<Output = T>) -> T {
        DESK.scope(self.clone(), play).await
    }

    /// What was said since the last call.
    pub fn take_asked(&self) -> Vec<Asked> {
        std::mem::take(&mut self.state().asked)
    }

    fn next_given(&self, hook: &str) -> Option<Given> {
        let mut state = self.state();
        let given = state.given.get_mut(hook)?;
        if given.len() > 1 { given.pop() } else { given.first().cloned() }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The workshop with handlers that are made only when they are first asked: a test or a dry run must not need what they
/// need, such as a variable with an address.
#[must_use]
pub fn late(workshop: &Workshop) -> Workshop {
    let mut lazy = workshop.clone();
    for kind in OUTSIDE {
        let real = workshop.clone();
        lazy = lazy.with(kind, move |spec, folder| {
            let (spec, folder, workshop) = (spec.clone(), folder.to_owned(), real.clone());
            Ok(Arc::new(Late { spec, folder, workshop, made: OnceLock::new() }))
        });
    }
    lazy
}

/// Puts every handler of what was loaded behind a stand-in.
#[must_use]
pub fn stand_in(mut loaded: Loaded) -> Loaded {
    for hook in &mut loaded.hooks {
        let name = hook.name.to_string();
        if let Work::Handler { spec, run } = &mut hook.work
            && let Some(real) = run.take()
        {
            let outside = spec.written_type().is_some_and(|kind| OUTSIDE.contains(&kind));
            *run = Some(Arc::new(StandIn { name, kind: spec.type_name(), outside, real }));
        }
    }
    loaded
}

/// Stands before a handler.
#[derive(Debug)]
struct StandIn {
    name: String,
    kind: &'static str,
    outside: bool,
    real: Arc<dyn Handler>,
}

impl StandIn {
    async fn answer(&self, call: Call<'_>, desk: &Desk) -> (By, Result<Answer, Fault>) {
        match desk.next_given(&self.name) {
            Some(Given::Answer(answer)) => (By::Given, Ok(*answer)),
            Some(Given::Late) => (By::Given, Err(Fault::Timeout)),
            Some(Given::Failed(why)) => (By::Given, Err(Fault::failed("it failed, as the test says", why))),
            None if !self.outside || desk.live => (By::Itself, self.real.ask(call).await),
            None => (By::Nobody, desk.unanswered.said(call.facts.point().stage(), self.kind)),
        }
    }
}

impl Unanswered {
    fn said(self, stage: Stage, kind: &str) -> Result<Answer, Fault> {
        match (self, stage) {
            (Unanswered::Agrees, Stage::Gate) => Ok(Answer::with_decision("allow")),
            (Unanswered::Agrees, Stage::Shape | Stage::Watch) => Ok(Answer::default()),
            (Unanswered::Fails, _) => {
                let detail = format!("the {kind} handler does not run here, and no answer is given for it");
                Err(Fault::failed("no answer is given for it", detail))
            }
        }
    }
}

impl Handler for StandIn {
    fn ask<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Result<Answer, Fault>> {
        Box::pin(async move {
            let Ok(desk) = DESK.try_with(Arc::clone) else {
                // not on a stage: nobody said that it may run
                return Unanswered::Fails.said(call.facts.point().stage(), self.kind);
            };
            let began = Instant::now();
            let (by, said) = self.answer(call, &desk).await;
            let asked = Asked {
                hook: self.name.clone(),
                kind: self.kind,
                by,
                said: said.clone(),
                took: began.elapsed(),
            };
            desk.state().asked.push(asked);
            said
        })
    }
}

/// A handler that is made when it is first asked.
struct Late {
    spec: HandlerSpec,
    folder: PathBuf,
    workshop: Workshop,
    made: OnceLock<Result<Arc<dyn Handler>, String>>,
}

impl Handler for Late {
    fn ask<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Result<Answer, Fault>> {
        let folder: &Path = &self.folder;
        match self.made.get_or_init(|| self.workshop.make(&self.spec, folder)) {
            Ok(handler) => handler.ask(call),
            Err(why) => {
                let fault = Fault::failed("its handler cannot run here", why.clone());
                Box::pin(std::future::ready(Err(fault)))
            }
        }
    }
}

impl std::fmt::Debug for Late {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Late").field("kind", &self.spec.type_name()).finish_non_exhaustive()
    }
}
