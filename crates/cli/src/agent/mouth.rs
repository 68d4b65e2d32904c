//! One answer, in time. Agents run a tool when a hook process is late or dies without a word, so there is always
//! somebody who says no: a thread that waits for the end of the time, and whoever comes first speaks.

use hookgate_agents::agent::Agent;
use hookgate_agents::event::Event;
use hookgate_agents::outcome::Said;
use std::io::{self, Read, Write};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What the agent reads when nothing else was ready.
const LATE: &str = "blocked because hookgate had no answer in time";

/// How much earlier than the agent's limit the answer comes: a quarter of it, within these bounds.
const LEAST_MARGIN: Duration = Duration::from_millis(150);
const MOST_MARGIN: Duration = Duration::from_secs(3);

/// Speaks once.
#[derive(Debug)]
pub(crate) struct Mouth {
    agent: &'static dyn Agent,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    spoken: bool,
    /// What the call is about, as soon as that is known.
    event: Option<&'static Event>,
}

impl Mouth {
    pub(crate) fn new(agent: &'static dyn Agent, event: Option<&'static Event>) -> Arc<Mouth> {
        Arc::new(Mouth { agent, state: Mutex::new(State { spoken: false, event }) })
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The call is about this event.
    pub(crate) fn about(&self, event: &'static Event) {
        self.state().event = Some(event);
    }

    /// The answer to a fault, as far as is known what the call is about.
    pub(crate) fn fault(&self, reason: &str) -> Said {
        let event = self.state().event;
        self.agent.fault(event, reason)
    }

    /// Says it, unless something was said before; gives the exit code to end with.
    pub(crate) fn say(&self, said: &Said) -> u8 {
        let mut state = self.state();
        if std::mem::replace(&mut state.spoken, true) {
            return said.exit;
        }
        // nobody reads where this fails; the code that most agents take for a no is all that is left
        match write(said) {
            Ok(()) => said.exit,
            Err(_) => 2,
        }
    }

    /// Does what ends with another program in this one's place: not while somebody speaks, and nobody speaks meanwhile.
    pub(crate) fn silently(&self, act: impl FnOnce()) {
        let state = self.state();
        if !state.spoken {
            act();
        }
    }

    /// Starts the clock: at `deadline` the answer is no, and the process ends. The guard stops it.
    pub(crate) fn watch(self: &Arc<Self>, deadline: Instant) -> io::Result<Watch> {
        let (stop, stopped) = mpsc::channel::<()>();
        let mouth = self.clone();
        let body = move || {
            let left = deadline.saturating_duration_since(Instant::now());
            if let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(left) {
                let code = mouth.say(&mouth.fault(LATE));
                // whatever holds up the rest of the process ends with it
                std::process::exit(code.into());
            }
        };
        std::thread::Builder::new().name("deadline".into()).stack_size(256 << 10).spawn(body)?;
        Ok(Watch { _stop: stop })
    }
}

/// While it lives, the clock runs.
#[derive(Debug)]
pub(crate) struct Watch {
    _stop: mpsc::Sender<()>,
}

fn write(said: &Said) -> io::Result<()> {
    let mut stderr = io::stderr().lock();
    stderr.write_all(said.stderr.as_bytes())?;
    let mut stdout = io::stdout().lock();
    stdout.write_all(said.stdout.as_bytes())?;
    stdout.flush()
}

/// When the answer must be out: the agent's limit less a margin, from the start of the process.
pub(crate) fn deadline(limit: Duration) -> Instant {
    let now = Instant::now();
    let left = limit.saturating_sub(margin(limit)).saturating_sub(age());
    now.checked_add(left).unwrap_or(now)
}

fn margin(limit: Duration) -> Duration {
    (limit / 4).clamp(LEAST_MARGIN, MOST_MARGIN).min(limit / 2)
}

/// How long this process has been running, as far as the system tells. Loading the program takes long on a busy
/// machine, and the agent's clock runs meanwhile.
fn age() -> Duration {
    #[cfg(target_os = "linux")]
    if let Some(started) = started() {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        let now = Duration::try_from(now).unwrap_or_default();
        return now.saturating_sub(started).min(Duration::from_secs(60));
    }
    Duration::ZERO
}

/// When this process was started, from the start of the system.
#[cfg(target_os = "linux")]
fn started() -> Option<Duration> {
    let mut text = [0; 1024];
    let read = std::fs::File::open("/proc/self/stat").ok()?.read(&mut text).ok()?;
    // the name in brackets may hold blanks and brackets
    let text = text.get(..read)?;
    let name_ends = text.iter().rposition(|byte| *byte == b')')?;
    let fields = std::str::from_utf8(text.get(name_ends..)?).ok()?;
    // in hundredths of a second, whatever the kernel's own clock
    let hundredths: u64 = fields.split_ascii_whitespace().nth(20)?.parse().ok()?;
    Some(Duration::from_millis(hundredths.saturating_mul(10)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_margin_grows_with_the_limit() {
        for (limit, want) in
            [(200, 100), (1000, 250), (2000, 500), (5000, 1250), (30_000, 3000), (600_000, 3000)]
        {
            let got = margin(Duration::from_millis(limit));
            assert_eq!(got, Duration::from_millis(want), "{limit}");
        }
    }
}
