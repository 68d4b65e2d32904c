//! Hooks that run a local program.
//!
//! | part | contract |
//! |---|---|
//! | program | `argv`, or `sh -c` with the line in `shell`; a name with a slash is meant from the hook file's folder, one without is looked up on the PATH |
//! | event | as JSON on stdin and nowhere else; whoever does not read it does nothing wrong |
//! | working directory | `cwd`, meant from the hook file's folder; without it that folder |
//! | environment | empty, but for `PATH` (the door's own, absolute places only), the variables named in `env`, and `HOOKGATE_CALL`, the mark of this call |
//! | exit 0, gate | stdout empty: allow; with JSON: the strictest of its verdicts; anything else: a fault |
//! | exit 0, pre_response | stdout is the text to add, or an object with `append` / `send` |
//! | exit 0, watched event | fine; stdout goes to the console |
//! | exit 2 | block; stderr is the reason, whatever stands on stdout |
//! | any other end | a fault that names the exit code or signal, with stderr |
//! | limits | stdout 64 KiB, more stops the program and is a fault; of stderr 8 KiB are kept |
//! | text | UTF-8; other bytes become replacement marks |
//! | end | the verdict counts when the program itself ends; whatever it started is killed then, or at the time limit: its process group before the answer is given, what left the group at once or by a thread in the background, for 5 s at most (the `family` module says how) |
//! | end of the door | a door calls [`Commands::settle`] before it exits, and so waits for those threads; the last [`Commands`] or handler to be dropped waits for a second by itself |
//! | at once | a bounded number of programs; waiting for a place counts as the hook's time |
//!
//! Nothing of an event is ever put into a command line: a placeholder in `argv` or `shell` is refused.

mod family;
mod hunts;
mod run;
mod start;
mod verdict;

use hookgate_core::future::BoxFuture;
use hookgate_core::handler::{Answer, Call, Fault, Handler, HandlerKind, HandlerSpec};
use hunts::Hunts;
use start::Start;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

/// How many programs may run at once by default.
const AT_ONCE: usize = 64;

/// How long the last one waits for hunts when nobody called [`Commands::settle`].
const LAST_MOMENT: Duration = Duration::from_secs(1);

/// What all command hooks of a door share.
#[derive(Debug, Clone)]
pub struct Commands {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    places: Arc<Semaphore>,
    hunts: Hunts,
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.hunts.wait(LAST_MOMENT);
    }
}

/// A place among the programs that may run at once.
struct Place {
    _permit: OwnedSemaphorePermit,
    hunts: Hunts,
}

impl Commands {
    /// At most this many programs at once.
    pub fn at_once(most: usize) -> Commands {
        let places = Arc::new(Semaphore::new(most.clamp(1, Semaphore::MAX_PERMITS)));
        Commands { shared: Arc::new(Shared { places, hunts: Hunts::default() }) }
    }

    /// Waits until nothing is left of the programs that ended or were stopped, and gives the number of hunts that
    /// still go on at the limit. For doors, just before they exit: a hunt is a thread, and ends with the process.
    /// Blocks the calling thread; needs no runtime. Programs that still run are not waited for: drop their calls
    /// before.
    pub fn settle(&self, limit: Duration) -> usize {
        self.shared.hunts.wait(limit)
    }

    async fn place(&self) -> Result<Place, AcquireError> {
        let permit = self.shared.places.clone().acquire_owned().await?;
        Ok(Place { _permit: permit, hunts: self.shared.hunts.clone() })
    }
}

impl Default for Commands {
    fn default() -> Self {
        Commands::at_once(AT_ONCE)
    }
}

/// A command hook's handler.
#[derive(Debug)]
struct CommandHandler {
    start: Start,
    commands: Commands,
}

/// The maker of command handlers for a [`Workshop`](crate::workshop::Workshop).
pub fn maker(
    commands: Commands,
) -> impl Fn(&HandlerSpec, &Path) -> Result<Arc<dyn Handler>, String> + Send + Sync + 'static {
    move |spec, folder| {
        let HandlerKind::Command { start, env, cwd } = &spec.kind else {
            return Err("is no command".into());
        };
        let start = Start::new(start, env, cwd.as_deref(), folder)?;
        Ok(Arc::new(CommandHandler { start, commands: commands.clone() }))
    }
}

impl Handler for CommandHandler {
    fn ask<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Result<Answer, Fault>> {
        Box::pin(async move {
            let place = self.commands.place().await;
            let closed = |_| Fault::passing("it could not be started", "no more commands are started");
            let ended = run::run(&self.start, call.json.as_bytes(), place.map_err(closed)?).await?;
            verdict::of(&self.start.shown, call.facts.point().stage(), &ended)
        })
    }
}
