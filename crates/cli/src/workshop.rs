//! The handlers that lifecycle hooks can run in this program: one line a kind.

use hookgate_core::handler::HandlerType;
use hookgate_handlers::command::{self, Commands};
use hookgate_handlers::http::{self, Network};
use hookgate_handlers::prompt::{self, Judges, Spending};
use hookgate_handlers::script::{self, Pool, PoolSettings, WorkerProgram};
use hookgate_handlers::workshop::Workshop;
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};

/// Makes the workshop. Nothing is started until a hook needs it.
pub(crate) fn workshop(commands: Commands, judges: Arc<Judges>, spending: Spending) -> Workshop {
    workshop_with(commands, judges, spending, script_pool)
}

/// The same for a process that answers one event: one script worker, and none in reserve.
pub(crate) fn one_shot_workshop(commands: Commands, judges: Arc<Judges>, spending: Spending) -> Workshop {
    workshop_with(commands, judges, spending, || Ok(Pool::new(PoolSettings::for_one_event(this_program()?))))
}

fn workshop_with(
    commands: Commands,
    judges: Arc<Judges>,
    spending: Spending,
    script_pool: impl Fn() -> Result<Arc<Pool>, String> + Send + Sync + 'static,
) -> Workshop {
    let network: OnceLock<Result<Network, String>> = OnceLock::new();
    let scripts: OnceLock<Result<Arc<Pool>, String>> = OnceLock::new();
    Workshop::empty()
        .with(HandlerType::Command, command::maker(commands))
        .with(HandlerType::Http, move |spec, folder| match network.get_or_init(Network::new) {
            Ok(network) => http::maker(network.clone())(spec, folder),
            Err(why) => Err(why.clone()),
        })
        .with(HandlerType::Script, move |spec, folder| match scripts.get_or_init(&script_pool) {
            Ok(pool) => script::maker(pool.clone())(spec, folder),
            Err(why) => Err(why.clone()),
        })
        .with(HandlerType::Prompt, prompt::maker(judges, spending))
}

/// Workers are this program, started anew; see [`as_script_worker`].
fn script_pool() -> Result<Arc<Pool>, String> {
    Ok(Pool::new(PoolSettings::new(this_program()?)))
}

fn this_program() -> Result<WorkerProgram, String> {
    WorkerProgram::this()
        .map_err(|error| format!("the program cannot find itself to start script workers: {error}"))
}

/// Serves as a script worker, if this process was started as one. `main` must ask before anything else.
pub fn as_script_worker() -> Option<ExitCode> {
    script::is_worker().then(script::worker_main)
}
