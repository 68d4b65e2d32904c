//! `hookgate gateway`: stands between agents and their model providers.

use crate::args::GatewayArgs;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::gateway;

pub(super) fn run(args: &GatewayArgs) -> Result<Exit, Failure> {
    let file = super::configuration(args.config.as_deref())?;
    gateway::run(args, file)
}
