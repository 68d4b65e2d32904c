//! `hookgate demo`: shows the gateway at work, without a key or a network.

use crate::exit::Exit;
use crate::failure::Failure;
use crate::gateway;

pub(super) fn run() -> Result<Exit, Failure> {
    gateway::demo()
}
