//! `hookgate mcp -- SERVER ARGS…`: stands between an MCP client and the server that it would start.

use crate::agent::load;
use crate::args::McpArgs;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::mcp::{Gate, run as relay};
use hookgate_core::dispatch::Dispatcher;
use hookgate_core::facts::Head;
use hookgate_core::gate::Surroundings;
use hookgate_core::session::Session;
use hookgate_handlers::clock::TokioTimer;
use hookgate_handlers::watchers::{Limits, Watchers};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How long all hooks of one call may take together, unless configured.
const BUDGET: Duration = Duration::from_secs(60);

pub(super) fn run(args: &McpArgs) -> Result<Exit, Failure> {
    let loaded = load(&args.rules)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| Failure::new(format!("there is no runtime for hooks: {error}")))?;
    let around = Surroundings {
        timer: Arc::new(TokioTimer::new()),
        recorder: loaded.recorder,
        budget: loaded.budget.unwrap_or(BUDGET),
    };
    let program = args.server.first().map(String::as_str).unwrap_or_default();
    let stem = Path::new(program).file_stem().and_then(|stem| stem.to_str()).unwrap_or(program);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    let gate = Gate {
        dispatcher: Dispatcher::new(loaded.set),
        watchers: Watchers::new(around.clone(), Limits::default()),
        around,
        server: args.name.clone().unwrap_or_else(|| stem.to_owned()),
        head: Head {
            session_id: format!("mcp-{now:x}-{}", std::process::id()),
            tenant_id: loaded.tenant,
            agent_id: loaded.agent.or_else(|| Some("mcp".to_owned())),
            ..Head::default()
        },
        session: std::sync::Mutex::new(Session::new()),
        n_events: AtomicU64::new(0),
    };
    let done = relay(gate, &runtime, &args.server);
    runtime.shutdown_background();
    done
}
