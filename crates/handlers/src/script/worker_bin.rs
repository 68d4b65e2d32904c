//! A program that is nothing but a script worker, for doors whose own program cannot be started again.

use std::process::ExitCode;

fn main() -> ExitCode {
    hookgate_handlers::script::worker_main()
}
