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
//! | end | the verdict counts when the program itself ends; whatever it started is killed then, or at the time limit, also what left its process group (the `family` module says how) |
//! | at once | a bounded number of programs; waiting for a place counts as the hook's time |
//!
//! Nothing of an event is ever put into a command line: a placeholder in `argv` or `shell` is refused.

mod family;
mod run;
mod start;
mod verdict;

use hookgate_core::future::BoxFuture;
use hookgate_core::handler::{Answer, Call, Fault, Handler, HandlerKind, HandlerSpec};
use start::Start;
use std::path::Path;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// How many programs may run at once by default.
const AT_ONCE: usize = 64;

/// What all command hooks of a door share.
#[derive(Debug, Clone)]
pub struct Commands {
    places: Arc<Semaphore>,
}

impl Commands {
    /// At most this many programs at once.
    pub fn at_once(most: usize) -> Commands {
        Commands { places: Arc::new(Semaphore::new(most.clamp(1, Semaphore::MAX_PERMITS))) }
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
            let place = self.commands.places.clone().acquire_owned().await;
            let closed = |_| Fault::failed("it could not be started", "no more commands are started");
            let ended = run::run(&self.start, call.json.as_bytes(), place.map_err(closed)?).await?;
            verdict::of(&self.start.shown, call.facts.point().stage(), &ended)
        })
    }
}
