//! The program `hookgate-hook`: `hookgate hook` alone, for coding agents, which start it anew for each event. It holds
//! only what such a call can need, because most of a short process's time is what the system spends on loading it.

use std::process::ExitCode;

fn main() -> ExitCode {
    hookgate_cli::as_script_worker().unwrap_or_else(hookgate_cli::hook_of_process)
}
