//! `hookgate hook AGENT [EVENT]`: what a coding agent's settings call. The payload comes on standard input; standard
//! output, standard error and the exit code are the agent's own language.

use crate::agent::call::{self, Program};
use crate::args::HookArgs;
use crate::exit::Exit;
use crate::failure::Failure;

pub(super) fn run(args: &HookArgs) -> Result<Exit, Failure> {
    call::answer(args, Program::Whole)
}
