//! Between a client and a server of the Model Context Protocol on standard input and output: calls of tools meet the
//! hooks, everything else passes as it came. Why this is no SDK: `docs/design/mcp.md`.
//!
//! [`message`] looks at a line as far as it must, [`gate`] asks the hooks, [`relay`] moves the lines.

mod gate;
mod means;
mod message;
mod relay;

pub(crate) use gate::Gate;
pub(crate) use means::can;
pub(crate) use relay::run;
