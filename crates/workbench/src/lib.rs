//! The hook author's workbench: what a hook set would do, found out before anybody depends on it.
//!
//! [`stage`] plays events to a set as a door would and keeps what [`happened`], [`desk`] stands in for handlers that must not
//! run, [`step`] is how events are written in files. On these stand [`mod@test`] (tests beside hooks) and [`fire`] (one event,
//! explained). [`replay`] runs past sessions through a set. [`lint`] finds what is probably not meant. [`starter`] is what a
//! new folder begins with.

pub mod desk;
pub mod fire;
pub mod happened;
pub mod lint;
pub mod replay;
pub mod stage;
pub mod starter;
pub mod step;
pub mod test;
