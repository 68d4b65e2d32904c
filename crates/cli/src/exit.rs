//! How the program ends.
//!
//! | code | meaning |
//! |---|---|
//! | 0 | done: answered, listed, no problems |
//! | 1 | a rule said so: a hook interrupted the answer, or hook files have problems |
//! | 2 | an error: arguments, configuration, hooks that cannot be used, a model that failed |
//! | any | `hook`: what the calling agent reads from it |
//! | 128 + n | a signal ended a run without a terminal: 130 for Ctrl-C |

use std::process::ExitCode;

/// The result of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// It did what was asked.
    Done,
    /// A hook interrupted the answer.
    Interrupted,
    /// There are problems in hook files.
    Problems,
    /// It could not be done.
    Error,
    /// A signal ended it; its number.
    Signal(u8),
    /// The code that a coding agent reads a meaning from.
    Agent(u8),
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(match exit {
            Exit::Done => 0,
            Exit::Interrupted | Exit::Problems => 1,
            Exit::Error => 2,
            Exit::Signal(number) => 128u8.saturating_add(number),
            Exit::Agent(code) => code,
        })
    }
}
