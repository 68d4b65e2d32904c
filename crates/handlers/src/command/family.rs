//! Ends a program with everything that it started.
//!
//! The program leads a process group, which one signal ends. A child that left the group (`setsid`, a daemon) is
//! found by what it cannot shed by accident: an environment variable with a random value that only this call has.
//! Its process number tells where to look: numbers are given out in ascending order, so whatever the program started
//! has one between the program's own and the newest. If the newest is the program's own, it started nothing, and
//! looking costs one read of `/proc/loadavg`.
//!
//! The process group is killed before the answer is given, whatever else is left to do: the system does that in one
//! step, so even a group that grows without end is gone. Those outside the group are looked for at once too, but not
//! for longer than the caller can spare; what is left then is hunted by a thread, which [`super::hunts`] counts and
//! [`super::Commands::settle`] waits for. The group stands still while it is looked through, so that its tree cannot
//! change. A hunt gives up after some seconds: what forks outside the group faster than it is found wins.
//!
//! While the program still lives, the tree of parents counts too, so that even a child with an emptied environment
//! is found. What stays out of reach: a process that left the group, emptied its environment and outlived all its
//! ancestors; and, without `/proc` (systems other than Linux), everything that left the group.

use super::Place;
use rustix::process::{Pid, Signal, kill_process_group};
use std::process::ExitStatus;
use std::time::{Duration, Instant};
use tokio::process::Child;

/// Rounds at once, before a thread goes on.
const ROUNDS_AT_ONCE: u32 = 3;
/// How long those rounds may keep the caller from its answer.
const AT_ONCE: Duration = Duration::from_millis(25);
/// How long a thread goes on looking.
const LOOK_FOR: Duration = Duration::from_secs(5);
/// How often a group is killed in one round: not every system does that in one step.
const GROUP_KILLS: u32 = 3;

/// A program and what it started. Dropping it ends them all.
pub(super) struct Family {
    leader: Option<Pid>,
    program: Option<Child>,
    mark: String,
    began: Instant,
    /// The place among the commands that may run at once; given back when all is quiet.
    place: Option<Place>,
}

impl Family {
    /// The family of a program that got `mark` (`NAME=value`) in its environment.
    pub(super) fn new(program: Child, mark: String, place: Place) -> Family {
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
        if hunt.at_once() == Round::Quiet {
            return;
        }
        // the caller has its answer to give; the program's place is taken until all is quiet
        let hunting = self.place.as_ref().map(|place| place.hunts.begin());
        let (held, again) = ((self.place.take(), self.program.take(), hunting), hunt.clone());
        let thread = std::thread::Builder::new().name("hookgate-hunt".into()).spawn(move || {
            hunt.go_on(LOOK_FOR);
            drop(held);
        });
        if thread.is_err() {
            again.go_on(AT_ONCE);
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
    /// Kills the group, and what else is found in a moment. Members are looked up before the group dies: afterwards
    /// nobody's parent is known.
    fn at_once(&self) -> Round {
        // what stands still starts nothing and leaves its parents as they are
        let _ = kill_process_group(self.leader, Signal::STOP);
        let until = Instant::now() + AT_ONCE;
        for _ in 0..ROUNDS_AT_ONCE {
            let members = proc::members(self, true, until);
            // gone already is fine
            let _ = (0..GROUP_KILLS).try_for_each(|_| kill_process_group(self.leader, Signal::KILL));
            if members.round() == Round::Quiet {
                return Round::Quiet;
            }
        }
        Round::Again
    }

    /// Goes on without the group and the tree: both are gone, and the program's number may be somebody else's soon.
    fn go_on(&self, limit: Duration) {
        let until = Instant::now() + limit;
        let mut pause = Duration::from_millis(1);
        while proc::members(self, false, until).round() == Round::Again && Instant::now() < until {
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(50));
        }
    }
}

#[cfg(target_os = "linux")]
mod proc {
    use super::{Hunt, Round};
    use rustix::io::Errno;
    use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
    use std::collections::HashSet;
    use std::time::{Duration, Instant};

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

    /// Kills all living processes that belong to the leader, without itself, as far as they are found by then.
    /// `with_tree`: the leader's number is still its own, so its group and children are the family's.
    pub(super) fn members(hunt: &Hunt, with_tree: bool, until: Instant) -> Members {
        let leader = hunt.leader.as_raw_pid();
        let mut look = Look {
            leader: with_tree.then_some(leader),
            mark: hunt.mark.as_bytes(),
            family: with_tree.then_some(leader).into_iter().collect(),
            members: Members::default(),
            until,
        };
        let mut from = (hunt.began.elapsed() < NO_WRAP).then_some(leader);
        let mut to = match newest() {
            Ok(newest) => newest,
            Err(error) => {
                // without `/proc` the group is all that is known; without a descriptor nothing is, yet
                look.members.unsure = lost(&error).is_none();
                return look.members;
            }
        };
        if with_tree && from.is_none() {
            look.tree(leader);
        }
        // a process may hand over to a child and end while it is looked for: a look is over when no number was given
        // out meanwhile
        for _ in 0..MOST_LOOKS {
            match candidates(from, to, leader) {
                Some(ids) if look.all(&ids).is_some() => {}
                _ => look.members.unsure = true,
            }
            match newest() {
                Ok(now) if now == to => return look.members,
                Ok(now) if Instant::now() < until => (from, to) = (Some(to), now),
                _ => break,
            }
        }
        look.members.unsure = true;
        look.members
    }

    /// The numbers after `from` up to `to`; all there are where these may have come round.
    fn candidates(from: Option<i32>, to: i32, leader: i32) -> Option<Vec<i32>> {
        match from.and_then(|from| Some((from.checked_add(1)?, to.checked_sub(from)?))) {
            Some((first, 0..=MANY)) => Some((first..=to).collect()),
            _ => all(leader),
        }
    }

    /// One look for the members of a family.
    struct Look<'a> {
        leader: Option<i32>,
        mark: &'a [u8],
        family: HashSet<i32>,
        members: Members,
        until: Instant,
    }

    impl Look<'_> {
        /// Down the tree, which is far smaller than all there is. Systems without such lists have the longer way.
        fn tree(&mut self, leader: i32) {
            let mut found: Vec<i32> = Vec::new();
            let mut parents = vec![leader];
            while let Some(parent) = parents.pop()
                && Instant::now() < self.until
            {
                let new = children(parent).into_iter().filter(|id| self.family.insert(*id));
                let before = found.len();
                found.extend(new);
                parents.extend_from_slice(found.get(before..).unwrap_or_default());
            }
            // the youngest first: each is looked at while its parent still is
            found.reverse();
            let _ = self.all(&found);
        }

        /// None: there was no time for all.
        fn all(&mut self, ids: &[i32]) -> Option<()> {
            let leader = self.leader;
            for id in ids.iter().copied().filter(|id| Some(*id) != leader) {
                if Instant::now() >= self.until {
                    self.members.unsure = true;
                    return None;
                }
                self.one(id);
            }
            Some(())
        }

        fn one(&mut self, id: i32) {
            let Some(pid) = Pid::from_raw(id) else { return };
            // opened first: what is read afterwards is about this process or about none
            let process = match pidfd_open(pid, PidfdFlags::empty()) {
                Ok(process) => process,
                Err(error) => {
                    self.members.unsure |= matches!(error, Errno::MFILE | Errno::NFILE | Errno::NOMEM);
                    return;
                }
            };
            match self.belongs(id) {
                Some(true) => {
                    self.family.insert(id);
                    // killed at once: what is dead forks no more
                    let _ = pidfd_send_signal(&process, Signal::KILL);
                    self.members.found = true;
                }
                Some(false) => {}
                None => self.members.unsure = true,
            }
        }

        /// Whether a process belongs to the family; `None` if that cannot be told now.
        fn belongs(&self, id: i32) -> Option<bool> {
            let about = match std::fs::read_to_string(format!("/proc/{id}/stat")) {
                Ok(stat) => about(&stat)?,
                Err(error) => return lost(&error),
            };
            if about.dead {
                return Some(false);
            }
            if self.family.contains(&about.parent)
                || [about.group, about.session].map(Some).contains(&self.leader)
            {
                return Some(true);
            }
            match std::fs::read(format!("/proc/{id}/environ")) {
                Ok(environ) if environ.is_empty() => match std::fs::read(format!("/proc/{id}/cmdline")) {
                    // a process between two programs shows nothing at all; so do threads of the kernel, in group 0
                    Ok(line) => (about.group == 0 || !line.is_empty()).then_some(false),
                    Err(error) => lost(&error),
                },
                Ok(environ) => Some(environ.split(|byte| *byte == 0).any(|one| one == self.mark)),
                Err(error) => lost(&error),
            }
        }
    }

    /// The children of all threads of a process; none where the system keeps no such lists.
    fn children(id: i32) -> Vec<i32> {
        let Ok(threads) = std::fs::read_dir(format!("/proc/{id}/task")) else { return Vec::new() };
        let lists =
            threads.filter_map(|thread| std::fs::read_to_string(thread.ok()?.path().join("children")).ok());
        lists
            .flat_map(|list| {
                list.split_ascii_whitespace().filter_map(|id| id.parse().ok()).collect::<Vec<_>>()
            })
            .collect()
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

    /// Every process there is; first those with a number after the leader's, for most of its family are among them.
    fn all(leader: i32) -> Option<Vec<i32>> {
        let entries = std::fs::read_dir("/proc").ok()?;
        let mut ids: Vec<i32> =
            entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect();
        ids.sort_unstable();
        let older = ids.partition_point(|id| *id <= leader);
        ids.rotate_left(older);
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
    use super::{Hunt, Round};
    use std::time::Instant;

    pub(super) struct Members;

    impl Members {
        pub(super) fn round(&self) -> Round {
            Round::Quiet
        }
    }

    /// Nothing is found here: what tells a member apart is of no use.
    pub(super) fn members(hunt: &Hunt, _with_tree: bool, _until: Instant) -> Members {
        let _ = (&hunt.mark, hunt.began);
        Members
    }
}
