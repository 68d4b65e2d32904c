//! The program `hookgate`: arguments in, exit code out. Everything else is in the library.

use hookgate_cli::{Args, Exit};
use std::process::ExitCode;

fn main() -> ExitCode {
    if let Some(worker) = hookgate_cli::as_script_worker() {
        return worker;
    }
    let args = match Args::of_process() {
        Ok(args) => args,
        Err(error) => {
            // help and version are "errors" with code 0; a closed output is nobody's fault
            if error.use_stderr()
                && let Some(exit) = hookgate_cli::answer_to_unknown_arguments()
            {
                return exit.into();
            }
            let _ = error.print();
            return if error.use_stderr() { Exit::Error.into() } else { Exit::Done.into() };
        }
    };
    match hookgate_cli::run(args) {
        Ok(exit) => exit.into(),
        Err(failure) => failure.report().into(),
    }
}
