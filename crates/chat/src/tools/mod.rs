//! Tools that the model may call. An application brings its own by implementing [`Tool`]; these are built in, one
//! file each, and off until an application adds them:
//!
//! | tool | what it may do |
//! |---|---|
//! | [`Exec`] | run a shell command in a folder, with a time limit |
//! | [`ReadFile`], [`WriteFile`] | text files inside one folder, which nothing leads out of |
//! | [`FetchPage`] | get a page from the public web, never from a private address |

mod arguments;
mod exec;
mod fetch_page;
mod read_file;
mod toolbox;
mod workdir;
mod write_file;

pub use exec::{Exec, ExecSettings};
pub use fetch_page::{FetchPage, FetchPageSettings, SetupError};
pub use read_file::{ReadFile, ReadFileSettings};
pub use toolbox::{Tool, ToolError, Toolbox};
pub use workdir::Workdir;
pub use write_file::{WriteFile, WriteFileSettings};

pub(crate) use toolbox::parse_arguments;
