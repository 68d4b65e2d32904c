//! Ends a program with everything that it started.
//!
//! The program leads a process group, which one signal ends. A child that left the group (`setsid`, a daemon) is
//! found by what it cannot shed by accident: an environment variable with a random value that only this call has.
//! Its process number tells where to look: numbers are given out in ascending order, so whatever the program started
//! has one between the program's own and the newest. If the newest is the program's own, it started nothing, and
//! looking costs one read of `/proc/loadavg`.
//!
//! While the program still lives, the tree of parents counts too, so that even a child with an emptied environment
//! is found. What stays out of reach: a process that left the group, emptied its environment and outlived all its
//! ancestors; and, without `/proc` (systems other than Linux), everything that left the group.

use rustix::process::{Pid, Signal, kill_process_group};
use std::process::ExitStatus;
use std::time::{Duration, Instant};
use tokio::process::Child;
use tokio::sync::OwnedSemaphorePermit;

/// Rounds at once, before a thread goes on.
const ROUNDS_AT_ONCE: u32 = 3;
/// How long a thread goes on looking.
const LOOK_FOR: Duration = Duration::from_secs(5);

/// A program and what it started. Dropping it ends them all.
pub(super) struct Family {
    leader: Option<Pid>,
    program: Option<Child>,
    mark: String,
    began: Instant,
    /// The place among the commands that may run at once; given back when all is quiet.
    place: Option<OwnedSemaphorePermit>,
}

impl Family {
    /// The family of a program that got `mark` (`NAME=value`) in its environment.
    pub(super) fn new(program: Child, mark: String, place: OwnedSemaphorePermit) -> Family {
        let leader = program.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        Family { leader, program: Some(program), mark, began: Instant::now(), place: Some(place) }
    }

    /// Waits for the program itself.
    pub(super) async fn ended(&mut self) -> std::io::Result<ExitStatus> {
        match &mut self.program {
            Some(program) => program.wait().await,
            None => std::future::pending().await,
        }
    }
}

impl Drop for Family {
    fn drop(&mut self) {
        let Some(leader) = self.leader else { return };
        let hunt = Hunt { leader, mark: std::mem::take(&mut self.mark), began: self.began };
        if proc::is_short(leader, self.began) && (0..ROUNDS_AT_ONCE).any(|_| hunt.round() == Round::Quiet) {
            return;
        }
        // the caller has its answer to give. The program is dropped, and so killed, last: while it lives the tree of
        // its children is known
        let (held, again) = ((self.place.take(), self.program.take()), hunt.clone());
        let thread = std::thread::Builder::new().name("hookgate-hunt".into()).spawn(move || {
            hunt.go_on();
            drop(held);
        });
        if thread.is_err() {
            again.round();
        }
    }
}

/// What one look came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Round {
    /// Nothing is left.
    Quiet,
    /// Something was killed, or could not be looked at: look again.
    Again,
}

#[derive(Clone)]
struct Hunt {
    leader: Pid,
    mark: String,
    began: Instant,
}

impl Hunt {
    fn go_on(&self) {
        let began = Instant::now();
        let mut pause = Duration::from_millis(1);
        while self.round() == Round::Again && began.elapsed() < LOOK_FOR {
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(50));
        }
    }

    /// Kills whatever can be seen. Members are looked up before the group dies: afterwards nobody's parent is known.
    fn round(&self) -> Round {
        let members = proc::members(self.leader, &self.mark, self.began);
        // gone already is fine
        let _ = kill_process_group(self.leader, Signal::KILL);
        members.round()
    }
}

#[cfg(target_os = "linux")]
mod proc {
    use super::Round;
    use rustix::io::Errno;
    use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
    use std::collections::HashSet;
    use std::time::{Duration, Instant};

    /// So many numbers are looked at while somebody waits.
    const FEW: i32 = 128;
    /// More than this are not tried one by one.
    const MANY: i32 = 2048;
    /// In this time process numbers cannot have come round.
    const NO_WRAP: Duration = Duration::from_secs(2);
    /// How often a look goes on with the numbers that were given out during it.
    const MOST_LOOKS: u32 = 16;

    #[derive(Default)]
    pub(super) struct Members {
        found: bool,
        unsure: bool,
    }

    impl Members {
        pub(super) fn round(&self) -> Round {
            if self.unsure || self.found { Round::Again } else { Round::Quiet }
        }
    }

    /// What a process tells about itself.
    struct About {
        dead: bool,
        parent: i32,
        group: i32,
        session: i32,
    }

    /// Whether a look is short: few numbers were given out since the program began.
    pub(super) fn is_short(leader: Pid, began: Instant) -> bool {
        let leader = leader.as_raw_pid();
        let few = |newest: i32| newest.checked_sub(leader).is_some_and(|count| (0..=FEW).contains(&count));
        began.elapsed() < NO_WRAP && newest().map_or_else(|error| lost(&error).is_some(), few)
    }

    /// All living processes that belong to the leader, without itself.
    pub(super) fn members(leader: Pid, mark: &str, began: Instant) -> Members {
        let mut members = Members::default();
        let leader = leader.as_raw_pid();
        let mut family = HashSet::from([leader]);
        let mut from = if began.elapsed() < NO_WRAP { Some(leader) } else { None };
        let mut to = match newest() {
            Ok(newest) => newest,
            Err(error) => {
                // without `/proc` the group is all that is known; without a descriptor nothing is, yet
                members.unsure = lost(&error).is_none();
                return members;
            }
        };
        // a process may hand over to a child and end while it is looked for: a look is over when no number was given
        // out meanwhile
        for _ in 0..MOST_LOOKS {
            match candidates(from, to) {
                Some(ids) => look(&ids, leader, mark, &mut family, &mut members),
                None => members.unsure = true,
            }
            match newest() {
                Ok(now) if now == to => return members,
                Ok(now) => (from, to) = (Some(to), now),
                Err(_) => break,
            }
        }
        members.unsure = true;
        members
    }

    /// The numbers after `from` up to `to`; all there are where these may have come round.
    fn candidates(from: Option<i32>, to: i32) -> Option<Vec<i32>> {
        match from.and_then(|from| Some((from.checked_add(1)?, to.checked_sub(from)?))) {
            Some((first, 0..=MANY)) => Some((first..=to).collect()),
            _ => all(),
        }
    }

    fn look(ids: &[i32], leader: i32, mark: &str, family: &mut HashSet<i32>, members: &mut Members) {
        for id in ids.iter().copied().filter(|id| *id != leader) {
            let Some(pid) = Pid::from_raw(id) else { continue };
            // opened first: what is read afterwards is about this process or about none
            let process = match pidfd_open(pid, PidfdFlags::empty()) {
                Ok(process) => process,
                Err(error) => {
                    members.unsure |= matches!(error, Errno::MFILE | Errno::NFILE | Errno::NOMEM);
                    continue;
                }
            };
            match belongs(id, leader, mark, family) {
                Some(true) => {
                    family.insert(id);
                    // killed at once: what is dead forks no more
                    let _ = pidfd_send_signal(&process, Signal::KILL);
                    members.found = true;
                }
                Some(false) => {}
                None => members.unsure = true,
            }
        }
    }

    /// Whether a process belongs to the family; `None` if that cannot be told now.
    fn belongs(id: i32, leader: i32, mark: &str, family: &HashSet<i32>) -> Option<bool> {
        let about = match std::fs::read_to_string(format!("/proc/{id}/stat")) {
            Ok(stat) => about(&stat)?,
            Err(error) => return lost(&error),
        };
        if about.dead {
            return Some(false);
        }
        if family.contains(&about.parent) || about.group == leader || about.session == leader {
            return Some(true);
        }
        match std::fs::read(format!("/proc/{id}/environ")) {
            Ok(environ) if environ.is_empty() => match std::fs::read(format!("/proc/{id}/cmdline")) {
                // a process between two programs shows nothing at all; so do threads of the kernel, in group 0
                Ok(line) => (about.group == 0 || !line.is_empty()).then_some(false),
                Err(error) => lost(&error),
            },
            Ok(environ) => Some(environ.split(|byte| *byte == 0).any(|one| one == mark.as_bytes())),
            Err(error) => lost(&error),
        }
    }

    /// A process that is gone or somebody else's is none of ours; a lack of descriptors says nothing.
    fn lost(error: &std::io::Error) -> Option<bool> {
        let code = error.raw_os_error().map(Errno::from_raw_os_error);
        (!matches!(code, Some(Errno::MFILE | Errno::NFILE | Errno::NOMEM))).then_some(false)
    }

    /// Reads `/proc/ID/stat`: `ID (NAME) STATE PARENT GROUP SESSION …`. A name may hold anything.
    fn about(stat: &str) -> Option<About> {
        let (_, rest) = stat.rsplit_once(')')?;
        let mut fields = rest.split_ascii_whitespace();
        let dead = matches!(fields.next()?, "Z" | "X");
        let mut number = || fields.next()?.parse().ok();
        Some(About { dead, parent: number()?, group: number()?, session: number()? })
    }

    /// The newest process number of this system.
    fn newest() -> std::io::Result<i32> {
        let text = std::fs::read_to_string("/proc/loadavg")?;
        let last = text.split_ascii_whitespace().next_back().and_then(|last| last.parse().ok());
        last.ok_or_else(|| std::io::Error::other("no process number"))
    }

    fn all() -> Option<Vec<i32>> {
        let entries = std::fs::read_dir("/proc").ok()?;
        let mut ids: Vec<i32> =
            entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect();
        ids.sort_unstable();
        Some(ids)
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn names_of_programs_cannot_lie() {
            let about = about("12 (a) R 1 (b) Z 7 8 9 0 -1").unwrap();
            assert!(about.dead);
            assert_eq!((about.parent, about.group, about.session), (7, 8, 9));
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod proc {
    use super::Round;
    use rustix::process::Pid;
    use std::time::Instant;

    pub(super) struct Members;

    impl Members {
        pub(super) fn round(&self) -> Round {
            Round::Quiet
        }
    }

    pub(super) fn is_short(_leader: Pid, _began: Instant) -> bool {
        true
    }

    pub(super) fn members(_leader: Pid, _mark: &str, _began: Instant) -> Members {
        Members
    }
}
