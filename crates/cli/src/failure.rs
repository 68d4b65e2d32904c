//! Why a command could not be done.

use crate::exit::Exit;
use crate::{problems, terminal};
use hookgate_core::define::Problem;
use std::fmt;
use std::io::{self, Write};

/// Why a command could not be done.
#[derive(Debug)]
pub enum Failure {
    /// What happened, in one or more lines.
    Message(String),
    /// The hook files cannot be used.
    Hooks(Vec<Problem>),
    /// The output could not be written.
    Output(io::Error),
}

impl Failure {
    pub(crate) fn new(message: impl Into<String>) -> Failure {
        Failure::Message(message.into())
    }

    /// Tells of it on standard error. A reader that went away is no failure.
    pub fn report(self) -> Exit {
        if let Failure::Output(error) = &self
            && error.kind() == io::ErrorKind::BrokenPipe
        {
            return Exit::Done;
        }
        let text = match &self {
            Failure::Hooks(problems) => problems::text(problems),
            other => format!("error: {other}\n"),
        };
        let mut stderr = io::stderr().lock();
        let text = terminal::printable(&text, terminal::is_terminal(&stderr));
        // standard error is the last resort
        let _ = stderr.write_all(text.as_bytes());
        Exit::Error
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Message(text) => f.write_str(text),
            Failure::Hooks(problems) => {
                let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
                f.write_str(&lines.join("\n"))
            }
            Failure::Output(error) => write!(f, "the output cannot be written: {error}"),
        }
    }
}

impl std::error::Error for Failure {}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure::Output(error)
    }
}

/// An error with its causes in one line. A cause that says the same again is left out.
pub(crate) fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let said = error.to_string();
        if !text.contains(&said) {
            text.push_str(": ");
            text.push_str(&said);
        }
        cause = error.source();
    }
    text
}
