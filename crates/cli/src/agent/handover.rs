//! A call that needs the network goes on as `hookgate`.
//!
//! `hookgate-hook` may be linked as one piece (`build.rs`). To find a name's address a system may want to load more
//! code into the program, which such a program cannot. So where a hook that talks to the network listens, the small
//! program gives the call to the whole one: in its own place, with the same arguments and the same payload.

use super::engine::place_of;
use crate::programs;
use hookgate_agents::read::Read;
use hookgate_core::facts::Head;
use hookgate_core::handler::HandlerKind;
use hookgate_core::hook::{Hook, Work};
use hookgate_core::set::HookSet;
use std::fs::File;
use std::process::Command;

/// Whether one of the hooks that the payload concerns talks to the network.
pub(super) fn is_needed(set: &HookSet, read: &Read, head: &Head) -> bool {
    read.told.iter().map(place_of).any(|(point, tool)| set.hooks_at(point, tool, head).any(needs_network))
}

fn needs_network(hook: &Hook) -> bool {
    match &hook.work {
        Work::Handler { spec, .. } => {
            matches!(spec.kind, HandlerKind::Http { .. } | HandlerKind::Prompt { .. })
        }
        Work::Actions(_) => false,
    }
}

/// Becomes `hookgate`, where it is installed beside. Returns if that cannot be; then the call goes on here, where
/// addresses that are numbers can still be asked.
pub(super) fn go_on_as_whole(payload: &[u8]) {
    let Ok(Some(program)) = programs::whole_beside() else { return };
    let Some(payload) = held(payload) else { return };
    let mut command = Command::new(program);
    command.args(std::env::args_os().skip(1)).stdin(payload);
    // comes back with an error only; the clock goes on, because it counts from the start of this very process
    #[cfg(unix)]
    let _ = std::os::unix::process::CommandExt::exec(&mut command);
}

/// The payload as a file that is in no folder, to be read from its beginning.
#[cfg(target_os = "linux")]
fn held(payload: &[u8]) -> Option<File> {
    use std::io::{Seek, Write};
    let file = rustix::fs::memfd_create("payload", rustix::fs::MemfdFlags::CLOEXEC).ok()?;
    let mut file = File::from(file);
    file.write_all(payload).ok()?;
    file.rewind().ok()?;
    Some(file)
}

/// Only Linux links programs as one piece.
#[cfg(not(target_os = "linux"))]
fn held(_: &[u8]) -> Option<File> {
    None
}
