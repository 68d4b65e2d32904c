//! The long-running doors of Hookgate. So far one: a [gateway] between agents and their model providers.
//!
//! Must not: read the environment or a configuration; make a hook; decide anything that a hook decides.

pub mod gateway;
pub mod metrics;
pub mod traces;
