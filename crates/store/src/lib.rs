//! The audit trail and the outbox of Hookgate: what happened, provably, and nothing lost.
//!
//! The path of a record: [`Store`](store::Store) seals what must not stand in the open and hands the row to the
//! [`spool`], a file in front of the database; as soon as the row is there, the gate goes on. In the background rows
//! move into a [`Database`](database::Database), one [SQLite](sqlite) file or [PostgreSQL](postgres), and are linked into a
//! [`chain`]. An [`Audit`](audit::Audit) answers questions, an [`Outbox`](outbox::Outbox) hands out background work.
//!
//! What this crate does not do: read the environment or a configuration, print, decide anything, run a hook.

pub mod audit;
pub mod outbox;
pub mod store;

pub mod spool;

pub mod job;
pub mod query;
pub mod row;
pub mod trace;

pub mod chain;
pub mod keys;
pub mod verify;

pub mod database;
pub mod postgres;
pub mod sqlite;

mod error;
mod files;
mod memory;
mod wire;

pub use error::StoreError;
pub use memory::Memory;
