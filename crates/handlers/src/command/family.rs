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
use std::time::{Duration, Instant};
use tokio::sync::OwnedSemaphorePermit;

/// Rounds at once, before a thread goes on.
const ROUNDS_AT_ONCE: u32 = 3;
/// How long a thread goes on looking.
const LOOK_FOR: Duration = Duration::from_secs(5);

/// A program and what it started. Dropping it ends them all.
pub(super) struct Family {
    leader: Option<Pid>,
    mark: String,
    began: Instant,
    /// The place among the commands that may run at once; given back when all is quiet.
    place: Option<OwnedSemaphorePermit>,
}

impl Family {
    /// The family of the program with this process number, which got `mark` (`NAME=value`) in its environment.
    pub(super) fn new(leader: Option<u32>, mark: String, place: OwnedSemaphorePermit) -> Family {
        let leader = leader.and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        Family { leader, mark, began: Instant::now(), place: Some(place) }
    }
}

impl Drop for Family {
    fn drop(&mut self) {
        let Some(leader) = self.leader else { return };
        let mut hunt = Hunt { leader, mark: std::mem::take(&mut self.mark), began: self.began };
        for _ in 0..ROUNDS_AT_ONCE {
            if hunt.round() == Round::Quiet {
                return;
            }
        }
        let place = self.place.take();
        // where no thread can be started nothing is left to try
        let _ = std::thread::Builder::new().name("hookgate-hunt".into()).spawn(move || {
            hunt.go_on();
            drop(place);
        });
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

struct Hunt {
    leader: Pid,
    mark: String,
    began: Instant,
}

impl Hunt {
    fn go_on(&mut self) {
        let began = Instant::now();
        let mut pause = Duration::from_millis(1);
        while self.round() == Round::Again && began.elapsed() < LOOK_FOR {
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(50));
        }
    }

    /// Kills whatever can be seen. Members are looked up before the group dies: afterwards nobody's parent is known.
    fn round(&mut self) -> Round {
        let members = proc::members(self.leader, &self.mark, self.began);
        // gone already is fine
        let _ = kill_process_group(self.leader, Signal::KILL);
        members.kill()
    }
}

#[cfg(target_os = "linux")]
mod proc {
    use super::Round;
    use rustix::fd::OwnedFd;
    use rustix::io::Errno;
    use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
    use std::collections::HashSet;
    use std::time::{Duration, Instant};

    /// More numbers than this are not tried one by one.
    const FEW: i32 = 512;
    /// In this time process numbers cannot have come round.
    const NO_WRAP: Duration = Duration::from_secs(2);

    #[derive(Default)]
    pub(super) struct Members {
        found: Vec<OwnedFd>,
        unsure: bool,
    }

    impl Members {
        pub(super) fn kill(self) -> Round {
            let again = self.unsure || !self.found.is_empty();
            for process in self.found {
                // gone already is fine
                let _ = pidfd_send_signal(&process, Signal::KILL);
            }
            if again { Round::Again } else { Round::Quiet }
        }
    }

    /// What a process tells about itself.
    struct About {
        dead: bool,
        parent: i32,
        group: i32,
        session: i32,
    }

    /// All living processes that belong to the leader, without itself.
    pub(super) fn members(leader: Pid, mark: &str, began: Instant) -> Members {
        let leader = leader.as_raw_pid();
        let mut members = Members::default();
        let Some(newest) = newest() else { return members };
        if newest == leader && began.elapsed() < NO_WRAP {
            return members;
        }
        let candidates = match newest.checked_sub(leader) {
            Some(count @ 0..=FEW) if began.elapsed() < NO_WRAP => {
                (0..count).filter_map(|n| leader.checked_add(n)?.checked_add(1)).collect()
            }
            _ => match all() {
                Some(all) => all,
                None => {
                    members.unsure = true;
                    return members;
                }
            },
        };
        let mut family = HashSet::from([leader]);
        for id in candidates.into_iter().filter(|id| *id != leader) {
            let Some(pid) = Pid::from_raw(id) else { continue };
            // opened first: what is read afterwards is about this process or about none
            let process = match pidfd_open(pid, PidfdFlags::empty()) {
                Ok(process) => process,
                Err(error) => {
                    members.unsure |= matches!(error, Errno::MFILE | Errno::NFILE | Errno::NOMEM);
                    continue;
                }
            };
            match belongs(id, leader, mark, &family) {
                Some(true) => {
                    family.insert(id);
                    members.found.push(process);
                }
                Some(false) => {}
                None => members.unsure = true,
            }
        }
        members
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
    fn newest() -> Option<i32> {
        let text = std::fs::read_to_string("/proc/loadavg").ok()?;
        text.split_ascii_whitespace().next_back()?.parse().ok()
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
        pub(super) fn kill(self) -> Round {
            Round::Quiet
        }
    }

    pub(super) fn members(_leader: Pid, _mark: &str, _began: Instant) -> Members {
        Members
    }
}
