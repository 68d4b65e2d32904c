//! One hook call: payload in, the agent's answer out. Whatever goes wrong on the way is the agent's word for no.

use super::engine::{Engine, points};
use super::handover;
use super::journal::Journal;
use super::memory::Memory;
use super::mouth::{Mouth, deadline};
use super::rules::Rules;
use crate::args::{HookArgs, HookOnly};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::short_trail::ShortTrail;
use hookgate_agents::agent::Agent;
use hookgate_agents::event::{Effect, Event};
use hookgate_agents::outcome::{Outcome, Said, Word};
use hookgate_agents::read::{self, LONGEST_PAYLOAD, Read, Told, Unread};
use hookgate_agents::table;
use hookgate_core::dispatch::Dispatcher;
use hookgate_core::facts::{GateEvent, Head, LifeEvent};
use hookgate_core::gate::Surroundings;
use hookgate_core::record::{Memory as InMemory, Recorder};
use hookgate_handlers::clock::TokioTimer;
use hookgate_handlers::command::Commands;
use serde_json::Value;
use std::io::{self, Read as _};
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// What is left for the records and the answer after the chain's own time is over: a tenth of the time, within these
/// bounds. A chain that ends by itself names the hook that was late, the clock behind it cannot.
const LEAST_FOR_THE_ANSWER: Duration = Duration::from_millis(100);
const MOST_FOR_THE_ANSWER: Duration = Duration::from_millis(500);
/// How long the end waits for the processes of command hooks to be hunted down.
const SETTLING: Duration = Duration::from_millis(100);
/// So many bytes of records wait for somebody with more time before a process is started that takes them.
const MANY_RECORDS: u64 = 1 << 20;

/// Which of the two programs this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Program {
    /// `hookgate`.
    Whole,
    /// `hookgate-hook`.
    Small,
}

/// Answers one call.
///
/// # Errors
/// There is no such agent. Everything else is an answer.
pub(crate) fn answer(args: &HookArgs, program: Program) -> Result<Exit, Failure> {
    let agent = table::find(&args.agent).ok_or_else(|| {
        Failure::new(format!("unknown agent `{}`; expected one of {}", args.agent, table::names()))
    })?;
    let hint = args.event.as_deref().and_then(|name| agent.event(name));
    let limit = args.timeout_ms.map_or_else(|| patience(agent, hint), Duration::from_millis);
    let deadline = deadline(limit);
    let mouth = Mouth::new(agent, hint);
    // a message on standard error would be read as the answer
    std::panic::set_hook(Box::new(|_| {}));
    let watch = mouth.watch(deadline);
    let call = Call { agent, args, program, deadline, mouth: &mouth };
    let said = match &watch {
        Ok(_) => guarded(&mouth, || call.said()),
        Err(error) => mouth.fault(&format!("blocked because hookgate cannot keep time: {error}")),
    };
    let code = mouth.say(&said);
    drop(watch);
    Ok(Exit::Agent(code))
}

/// What the call says; if it panics, the agent's word for no, as far as is known by then what it is about.
fn guarded(mouth: &Mouth, call: impl FnOnce() -> Said) -> Said {
    catch_unwind(AssertUnwindSafe(call))
        .unwrap_or_else(|_| mouth.fault("blocked because hookgate failed: a fault in the program itself"))
}

/// The whole of the program `hookgate-hook`, which knows `hook` and its arguments alone.
pub fn hook_of_process() -> ExitCode {
    let answered = match HookOnly::of_process() {
        Some(Ok(args)) => answer(&args, Program::Small),
        Some(Err(error)) => answer_to_unknown_arguments().ok_or_else(|| error.exit()),
        None => Err(Failure::new("this program is for coding agents: `hookgate-hook hook AGENT [EVENT]`")),
    };
    answered.map_or_else(|failure| failure.report().into(), Into::into)
}

/// Answers a call whose arguments are not known, as after a change of versions: some agents read no exit code. None: it
/// is no such call.
pub fn answer_to_unknown_arguments() -> Option<Exit> {
    let mut words = std::env::args().skip(1);
    let is_call = words.next().is_some_and(|word| word == "hook");
    let agent = table::find(&words.next().filter(|_| is_call)?)?;
    let event = words.next().and_then(|name| agent.event(&name));
    let said = agent.fault(event, "blocked because hookgate does not know its arguments: install it again");
    Some(Exit::Agent(Mouth::new(agent, event).say(&said)))
}

fn patience(agent: &dyn Agent, event: Option<&Event>) -> Duration {
    event.and_then(|event| event.patience).unwrap_or_else(|| agent.patience())
}

struct Call<'a> {
    agent: &'static dyn Agent,
    args: &'a HookArgs,
    program: Program,
    deadline: Instant,
    mouth: &'a Mouth,
}

impl Call<'_> {
    fn said(&self) -> Said {
        match self.outcome() {
            Ok((read, outcome)) => self.agent.answer(&read, &outcome),
            Err(Stop::Unknown(event)) => {
                // nothing of ours happens there
                self.journal(None).note(&format!("unknown event `{event}`: let pass"));
                Said::nothing()
            }
            Err(Stop::Fault(why)) => {
                self.journal(None).note(&why);
                self.mouth.fault(&format!("blocked because hookgate cannot decide: {why}"))
            }
        }
    }

    fn outcome(&self) -> Result<(Read, Outcome), Stop> {
        let (payload, read) = self.read()?;
        self.mouth.about(read.event);
        if read.told.is_empty() {
            return Ok((read, Outcome::default()));
        }
        let rules = Rules::find(&self.args.rules).map_err(|failure| Stop::Fault(failure.to_string()))?;
        let outcome = self.ask(rules, &read, &payload).map_err(Stop::Fault)?;
        Ok((read, outcome))
    }

    /// The payload, as bytes and as what it says.
    fn read(&self) -> Result<(Vec<u8>, Read), Stop> {
        let mut bytes = Vec::with_capacity(8 * 1024);
        let most = u64::try_from(LONGEST_PAYLOAD).unwrap_or(u64::MAX).saturating_add(1);
        let fault = |why: Unread| Stop::Fault(why.to_string());
        io::stdin()
            .lock()
            .take(most)
            .read_to_end(&mut bytes)
            .map_err(|error| Stop::Fault(format!("the agent's payload cannot be read: {error}")))?;
        let payload: Value = read::parse(&bytes).map_err(fault)?;
        let hint = self.args.event.as_deref();
        if let Some(event) = self.agent.event_of(hint, &payload) {
            self.mouth.about(event);
        }
        match self.agent.read(hint, payload) {
            Err(Unread::UnknownEvent(event)) => Err(Stop::Unknown(event)),
            read => Ok((bytes, read.map_err(fault)?)),
        }
    }

    fn ask(&self, rules: Rules, read: &Read, payload: &[u8]) -> Result<Outcome, String> {
        let data = rules.data.clone();
        let dir = data.as_ref().map(|place| place.path());
        let journal = self.journal(dir);
        let memory = Memory::of(dir, self.agent.name(), &read.session);
        let head = self.head(&rules, read);
        let budget = rules.budget();
        // the processes of command hooks and workers end with this one; waiting for them is not the answer's business
        let commands = ManuallyDrop::new(Commands::default());
        let set = rules.load(&points(read), Commands::clone(&commands))?;
        if cfg!(one_piece) && self.program == Program::Small && handover::is_needed(&set, read, &head) {
            self.mouth.silently(|| handover::go_on_as_whole(payload));
        }
        let trail = data.clone().map(|place| Arc::new(ShortTrail::new(place)));
        let recorder: Arc<dyn Recorder> = match &trail {
            Some(trail) => trail.clone(),
            None => Arc::new(InMemory::new(1)),
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| format!("there is no runtime for hooks: {error}"))?;
        let until_the_end = || self.deadline.saturating_duration_since(Instant::now());
        let answering = (until_the_end() / 10).clamp(LEAST_FOR_THE_ANSWER, MOST_FOR_THE_ANSWER);
        let left = || until_the_end().saturating_sub(answering);
        let outcome = runtime.block_on(async {
            let around = Surroundings {
                timer: Arc::new(TokioTimer::new()),
                recorder,
                budget: budget.map_or_else(left, |budget| budget.min(left())),
            };
            let engine = ManuallyDrop::new(Engine {
                dispatcher: Dispatcher::new(set),
                around,
                head,
                memory: &memory,
                journal: &journal,
                until: Instant::now().checked_add(left()).unwrap_or(self.deadline),
            });
            engine.run(read).await
        });
        runtime.shutdown_background();
        for told in &read.told {
            match told {
                Told::Gate(GateEvent::UserPromptSubmit { .. }) => memory.new_turn(),
                Told::Life(LifeEvent::SessionStart) => memory.tidy(),
                Told::Life(LifeEvent::SessionEnd) => memory.end(),
                _ => {}
            }
        }
        if let Ok(outcome) = &outcome {
            note_lost(read, outcome, &journal);
        }
        if commands.settle(SETTLING.min(left())) > 0 {
            journal.note("processes of command hooks may still run");
        }
        if trail.is_some_and(|trail| trail.waiting_bytes() > MANY_RECORDS) {
            move_records(self.args, &journal);
        }
        outcome
    }

    /// Whom the events are about. A call that the agent repeats has the same id and leaves one record.
    fn head(&self, rules: &Rules, read: &Read) -> Head {
        let (tenant_id, agent_id) = rules.who();
        let occurrence = read.call.clone().unwrap_or_else(|| {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
            format!("{now:x}-{}", std::process::id())
        });
        Head {
            event_id: format!("{}:{}:{}:{occurrence}", self.agent.name(), read.session, read.event.name),
            session_id: read.session.clone(),
            root_session_id: read.root.clone(),
            tenant_id,
            agent_id: agent_id.or_else(|| Some(self.agent.name().to_owned())),
            depth: u32::from(read.root.is_some()),
            trace_id: None,
            tool_names: read.tool_names.clone(),
        }
    }

    fn journal(&self, dir: Option<&std::path::Path>) -> Journal {
        let found = || Rules::find(&self.args.rules).ok().and_then(|rules| rules.data);
        match dir {
            Some(dir) => Journal::new(Some(dir), self.agent.name()),
            None => Journal::new(found().as_ref().map(|place| place.path()), self.agent.name()),
        }
    }
}

/// What the agent has no words for at this event, and what is no reason to stop it, is at least told here.
fn note_lost(read: &Read, outcome: &Outcome, journal: &Journal) {
    let can = |effect| read.event.can(effect);
    let stops = can(Effect::Block) || can(Effect::Feedback) || can(Effect::KeepGoing);
    if let Word::Block(reason) | Word::Ask(reason) = &outcome.word
        && !stops
    {
        journal.note(&format!("{} cannot be stopped: {reason}", read.event.name));
    }
    if !outcome.context.is_empty() && !can(Effect::AddContext) {
        journal.note(&format!("nothing can be added at {}: {}", read.event.name, outcome.context.join(" ")));
    }
}

/// Why there is no outcome.
enum Stop {
    /// An event that is not known.
    Unknown(String),
    /// Anything else, in one sentence.
    Fault(String),
}

/// Starts a process that moves waiting records into the database. Nobody waits for it.
fn move_records(args: &HookArgs, journal: &Journal) {
    let Ok(Some(program)) = crate::programs::whole_beside() else {
        journal
            .note("records wait to be moved into the database: there is no `hookgate` beside this program");
        return;
    };
    let mut command = std::process::Command::new(program);
    command.args(["audit", "list", "--limit", "1"]);
    let rules = &args.rules;
    if let Some(dir) = &rules.data_dir {
        command.arg("--data-dir").arg(dir);
    }
    if let Some(file) = &rules.config {
        command.arg("--config").arg(file);
    }
    let null = std::process::Stdio::null;
    command.stdin(null()).stdout(null()).stderr(null());
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    // the next call tries again
    let _ = command.spawn();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_a_no_for_every_agent_at_every_event_that_can_be_stopped() {
        let mut stopped = 0;
        for agent in table::ALL {
            for event in agent.events() {
                let mouth = Mouth::new(*agent, None);
                let said = guarded(&mouth, || {
                    mouth.about(event);
                    panic!("on the way")
                });
                let no = agent
                    .fault(Some(event), "blocked because hookgate failed: a fault in the program itself");
                assert_eq!(said, no, "{} {}", agent.name(), event.name);
                if event.can(Effect::Block) {
                    assert_ne!(said, Said::nothing(), "{} {}", agent.name(), event.name);
                    stopped += 1;
                }
            }
        }
        assert!(stopped > 30, "{stopped}");
    }
}
