//! The worker process: reads requests from stdin, answers on stdout, ends with stdin.

use super::confine::{self, Fuel};
use super::engine::{Engine, Keeps, MOST_MEMORY, Outcome, Question};
use super::protocol::{self, Ask, HEAD, Reply, Request, Said};
use rustix::process::Pid;
use std::io;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// The first argument of a program that is started as a worker.
pub const WORKER_WORD: &str = "__script-worker";

/// Stands behind the parent's number where a script is not expected to be asked twice.
pub(super) const ONCE: &str = "once";

/// A buffer that grew beyond this is given back after the call.
const KEPT: usize = 1 << 20;
/// The longest time that a call may ask for.
const LONGEST: Duration = Duration::from_secs(3600);

/// Is this process meant to be a worker? Look at the first argument before anything else.
pub fn is_worker() -> bool {
    std::env::args_os().nth(1).is_some_and(|word| word == WORKER_WORD)
}

/// The whole life of a worker. The program calls it first of all if [`is_worker`] says so.
pub fn worker_main() -> ExitCode {
    let parent = std::env::args().nth(2).and_then(|id| id.parse().ok()).and_then(Pid::from_raw);
    if !confine::begin(parent) {
        return ExitCode::FAILURE;
    }
    let keeps = if std::env::args_os().nth(3).is_some_and(|word| word == ONCE) {
        Keeps::Nothing
    } else {
        Keeps::Images
    };
    let Ok(engine) = Engine::new(keeps) else { return ExitCode::FAILURE };
    let missing = confine::finish().join(", ");
    let mut worker = Worker { engine, fuel: Fuel::new(), out: Vec::new() };
    let hello = Reply { number: 0, said: Said::Hello(missing), console: String::new() };
    if worker.send(&hello).is_err() {
        return ExitCode::FAILURE;
    }
    match worker.serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

struct Worker {
    engine: Engine,
    fuel: Fuel,
    out: Vec<u8>,
}

impl Worker {
    fn serve(&mut self) -> io::Result<()> {
        let mut input = vec![0; 64 * 1024];
        let mut filled = 0;
        loop {
            let need = match protocol::length(input.get(..filled).unwrap_or_default()) {
                Some(Ok(length)) => length.saturating_add(HEAD),
                Some(Err(())) => return Err(io::ErrorKind::InvalidData.into()),
                None => HEAD,
            };
            if filled >= need && need > HEAD {
                let frame = input.get(HEAD..need).unwrap_or_default();
                let Some(request) = protocol::read_request(frame) else {
                    return Err(io::ErrorKind::InvalidData.into());
                };
                let next = self.answer(&request)?;
                input.copy_within(need..filled, 0);
                filled = filled.saturating_sub(need);
                if input.len() > KEPT {
                    input.truncate(KEPT.max(filled));
                    input.shrink_to_fit();
                }
                // the answer is on its way: now there is time
                if let Some(script) = next {
                    self.engine.ready(script);
                }
                continue;
            }
            if input.len() < need {
                input.resize(need, 0);
            }
            match rustix::io::read(rustix::stdio::stdin(), input.get_mut(filled..).unwrap_or_default()) {
                Ok(0) => return Ok(()),
                Ok(read) => filled = filled.saturating_add(read),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Answers; tells which script will probably be asked next.
    fn answer(&mut self, request: &Request<'_>) -> io::Result<Option<u64>> {
        match request {
            Request::Check { number, source } => {
                self.fuel.fill(LONGEST);
                let said = match self.engine.check(source) {
                    Ok(()) => Said::Sound,
                    Err(why) => Said::Done(Outcome::Failed(why)),
                };
                self.send(&Reply { number: *number, said, console: String::new() })?;
                Ok(None)
            }
            Request::Ask(ask) => {
                let (said, console) = self.ask(ask);
                self.send(&Reply { number: ask.number, said, console })?;
                Ok(Some(ask.script))
            }
        }
    }

    fn ask(&mut self, ask: &Ask<'_>) -> (Said, String) {
        let time = ask.time.min(LONGEST);
        let deadline = Instant::now() + time;
        self.fuel.fill(time);
        if !self.engine.knows(ask.script) {
            let Some(source) = ask.source else { return (Said::Unknown, String::new()) };
            if let Err(why) = self.engine.load(ask.script, source) {
                return (Said::Done(Outcome::Failed(why)), String::new());
            }
        }
        let memory = ask.memory.min(MOST_MEMORY);
        let question = Question { event: ask.event, deadline, memory, now: ask.now, seed: ask.seed };
        let (outcome, console) = self.engine.ask(ask.script, &question);
        (Said::Done(outcome), console)
    }

    fn send(&mut self, reply: &Reply) -> io::Result<()> {
        self.out.clear();
        protocol::write_reply(&mut self.out, reply);
        let mut rest = self.out.as_slice();
        while !rest.is_empty() {
            match rustix::io::write(rustix::stdio::stdout(), rest) {
                Ok(written) => rest = rest.get(written..).unwrap_or_default(),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}
