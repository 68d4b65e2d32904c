//! Project chores. The corpus runner is a library so that tests run the same code as the command.

pub mod book;
pub mod ci;
pub mod corpus;
pub mod links;
pub mod package;
pub mod sbom;
pub mod score;
