//! The thread that starts, kills and buries workers. It lives as long as the pool: a worker's death signal is tied to
//! the thread that started it, so no other thread may do so.

use super::link::Link;
use super::pool::{PoolSettings, Shared};
use super::protocol::Said;
use super::shares::Tenant;
use super::worker::ONCE;
use super::wrecks::Wrecks;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

/// The number of a worker that the pool starts itself.
pub(super) const FIRST: u64 = 1;
/// A worker that does not say hello within this time does not come up.
const STARTING: Duration = Duration::from_secs(10);
/// Somebody must have waited so long before workers beyond the usual number are started.
const PATIENCE: Duration = Duration::from_millis(2);
/// Workers beyond the usual number end after this time without need.
const SURPLUS: Duration = Duration::from_secs(10);
/// Pauses between tries while no worker comes up.
const PAUSES: [Duration; 4] =
    [Duration::from_millis(100), Duration::from_secs(1), Duration::from_secs(5), Duration::from_secs(30)];

/// What the keeper is told.
#[derive(Debug)]
pub(super) enum Note {
    /// A call was given up before its answer came.
    Abandoned(Box<Abandoned>),
    /// This worker is of no use any more.
    Dead(u64),
    /// Somebody waits.
    Wanted,
    /// The pool is gone.
    Stop,
}

/// A worker with a question open that nobody waits for any more.
#[derive(Debug)]
pub(super) struct Abandoned {
    pub(super) link: Link,
    /// Whose share it counts on.
    pub(super) tenant: Option<Tenant>,
    /// When it is killed.
    pub(super) due: Instant,
    /// Who counts it.
    pub(super) wrecks: Option<Arc<Wrecks>>,
}

/// Tells the keeper.
#[derive(Debug)]
pub(super) struct Bell {
    notes: mpsc::Sender<Note>,
    wire: Option<UnixStream>,
    /// It rang for somebody who waits, and the keeper has not looked yet.
    wanted: AtomicBool,
}

/// The keeper's end.
#[derive(Debug)]
pub(super) struct Notes {
    notes: mpsc::Receiver<Note>,
    wire: Option<UnixStream>,
}

/// A bell and what it rings at.
pub(super) fn bell() -> (Bell, Notes) {
    let (sender, receiver) = mpsc::channel();
    let pair = UnixStream::pair().and_then(|(near, far)| {
        near.set_nonblocking(true)?;
        far.set_nonblocking(true)?;
        Ok((near, far))
    });
    // without a wire (no descriptors left) the keeper looks from time to time
    let (near, far) = pair.map_or((None, None), |(near, far)| (Some(near), Some(far)));
    (Bell { notes: sender, wire: near, wanted: AtomicBool::new(false) }, Notes { notes: receiver, wire: far })
}

impl Bell {
    /// Somebody waits for a worker. Rings once until [`Bell::looked`].
    pub(super) fn want(&self) {
        if !self.wanted.swap(true, Ordering::Relaxed) {
            self.ring(Note::Wanted);
        }
    }

    /// The keeper looked who waits.
    fn looked(&self) {
        self.wanted.store(false, Ordering::Relaxed);
    }

    pub(super) fn ring(&self, note: Note) {
        let _ = self.notes.send(note);
        if let Some(mut wire) = self.wire.as_ref() {
            // a full wire rings already
            let _ = wire.write(&[1]);
        }
    }
}

struct Keeper<'a> {
    shared: &'a Arc<Shared>,
    children: HashMap<u64, Kept>,
    starting: Vec<Starting>,
    abandoned: Vec<Abandoned>,
    next_id: u64,
    failures: usize,
    /// Nothing is started before.
    pause_until: Option<Instant>,
    /// When to see whether somebody still waits.
    look_at: Option<Instant>,
    /// When a worker too many may end.
    shrink_at: Option<Instant>,
}

struct Kept {
    child: Child,
    /// Becomes readable when the process ends.
    #[cfg(target_os = "linux")]
    end: Option<OwnedFd>,
}

struct Starting {
    link: Link,
    due: Instant,
}

/// The keeper's life.
pub(super) fn run(shared: &Arc<Shared>, notes: Notes, first: Option<Child>) {
    let mut keeper = Keeper {
        shared,
        children: HashMap::new(),
        starting: Vec::new(),
        abandoned: Vec::new(),
        next_id: FIRST.saturating_add(1),
        failures: 0,
        pause_until: None,
        look_at: None,
        shrink_at: None,
    };
    if let Some(child) = first {
        keeper.keep(FIRST, child);
    }
    loop {
        keeper.staff();
        keeper.wait(notes.wire.as_ref());
        if let Some(mut wire) = notes.wire.as_ref() {
            let mut rung = [0; 256];
            while matches!(wire.read(&mut rung), Ok(n) if n == rung.len()) {}
        }
        loop {
            match notes.notes.try_recv() {
                Ok(Note::Abandoned(abandoned)) => keeper.abandoned.push(*abandoned),
                Ok(Note::Dead(id)) => keeper.bury(id),
                Ok(Note::Wanted) => {
                    keeper.look_at.get_or_insert_with(|| Instant::now() + PATIENCE);
                }
                Ok(Note::Stop) | Err(mpsc::TryRecvError::Disconnected) => return keeper.stop(),
                Err(mpsc::TryRecvError::Empty) => break,
            }
        }
        keeper.greet();
        keeper.judge();
        keeper.look_after();
    }
}

impl Keeper<'_> {
    /// Starts what is missing.
    fn staff(&mut self) {
        let now = Instant::now();
        if self.pause_until.is_some_and(|until| now < until) {
            return;
        }
        self.pause_until = None;
        let settings = &self.shared.settings;
        let usual = settings.workers.max(1).saturating_add(settings.spare);
        if self.look_at.is_some_and(|at| now >= at) {
            self.look_at = None;
            self.shared.bell.looked();
            let room = self.children.len() < settings.most.max(usual);
            if self.children.len() >= usual && self.shared.hungry() {
                if room && self.starting.is_empty() {
                    self.start();
                }
                // whoever still waits is looked at again
                if room {
                    self.look_at = Some(now + PATIENCE);
                }
            }
        }
        while self.children.len() < usual && self.pause_until.is_none() {
            self.start();
        }
        let surplus = self.children.len() > usual;
        match self.shrink_at {
            _ if !surplus => self.shrink_at = None,
            None => self.shrink_at = Some(now + SURPLUS),
            Some(at) if now >= at => {
                self.shrink_at = Some(now + SURPLUS / 10);
                if let Some(link) = self.shared.take_idle(None) {
                    self.bury(link.id);
                }
            }
            Some(_) => {}
        }
    }

    fn start(&mut self) {
        let id = self.next_id;
        self.next_id = self.next_id.saturating_add(1);
        match spawn(&self.shared.settings, id) {
            Ok((child, link)) => {
                self.keep(id, child);
                self.starting.push(Starting { link, due: Instant::now() + STARTING });
            }
            Err(error) => self.failed(&format!("no script worker could be started: {}", plain(&error))),
        }
    }

    /// Waits for the end of a worker from now on.
    fn keep(&mut self, id: u64, child: Child) {
        #[cfg(target_os = "linux")]
        let end = rustix::process::pidfd_open(
            rustix::process::Pid::from_child(&child),
            rustix::process::PidfdFlags::empty(),
        )
        .ok();
        #[cfg(target_os = "linux")]
        self.children.insert(id, Kept { child, end });
        #[cfg(not(target_os = "linux"))]
        self.children.insert(id, Kept { child });
    }

    /// A worker did not come up. Once is an accident, which the next one mends; twice in a row is a reason to say no.
    fn failed(&mut self, why: &str) {
        let pause = PAUSES.get(self.failures.min(PAUSES.len() - 1)).copied().unwrap_or_default();
        self.failures = self.failures.saturating_add(1);
        self.pause_until = Some(Instant::now() + pause);
        if self.failures > 1 {
            self.shared.down(why);
        }
    }

    /// Sleeps until something happens.
    fn wait(&mut self, wire: Option<&UnixStream>) {
        let mut fds = Vec::new();
        fds.extend(wire.map(|wire| PollFd::new(wire, PollFlags::IN)));
        fds.extend(self.starting.iter().map(|starting| PollFd::new(starting.link.replies(), PollFlags::IN)));
        fds.extend(
            self.abandoned.iter().map(|abandoned| PollFd::new(abandoned.link.replies(), PollFlags::IN)),
        );
        #[cfg(target_os = "linux")]
        fds.extend(
            self.children
                .values()
                .filter_map(|kept| kept.end.as_ref())
                .map(|end| PollFd::from_borrowed_fd(end.as_fd(), PollFlags::IN)),
        );
        let dues = (self.starting.iter().map(|starting| starting.due))
            .chain(self.abandoned.iter().map(|abandoned| abandoned.due))
            .chain([self.pause_until, self.look_at, self.shrink_at].into_iter().flatten())
            .chain(wire.is_none().then(|| Instant::now() + Duration::from_millis(5)));
        let left = dues.min().map(|due| due.saturating_duration_since(Instant::now()));
        // an interrupted or refused poll only means that everything is looked at now
        let _ = poll(&mut fds, left.and_then(|left| Timespec::try_from(left).ok()).as_ref());
    }

    /// Workers that say hello are put to work.
    fn greet(&mut self) {
        let now = Instant::now();
        for mut starting in std::mem::take(&mut self.starting) {
            match starting.link.pull() {
                Ok(reply) => {
                    if let Said::Hello(unconfined) = reply.said {
                        self.failures = 0;
                        self.shared.up(starting.link, unconfined);
                    } else {
                        self.turn_away(&starting.link, "the program is no script worker");
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if now < starting.due {
                        self.starting.push(starting);
                    } else {
                        self.turn_away(&starting.link, "it does not answer");
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                    self.turn_away(&starting.link, "the program is no script worker");
                }
                Err(_) => self.turn_away(&starting.link, "it ends at once"),
            }
        }
    }

    fn turn_away(&mut self, link: &Link, why: &str) {
        self.bury(link.id);
        self.failed(&format!("no script worker could be started: {why}"));
    }

    /// Workers whose call was given up: late answers make them free, silence is death.
    fn judge(&mut self) {
        let now = Instant::now();
        for mut abandoned in std::mem::take(&mut self.abandoned) {
            match abandoned.link.pull() {
                Ok(_) => {
                    if let Some(wrecks) = &abandoned.wrecks {
                        wrecks.survived();
                    }
                    self.shared.give_back(abandoned.link, abandoned.tenant.as_ref());
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && now < abandoned.due => {
                    self.abandoned.push(abandoned);
                }
                Err(_) => {
                    if let Some(wrecks) = &abandoned.wrecks {
                        wrecks.wrecked(now);
                    }
                    self.bury(abandoned.link.id);
                    if let Some(tenant) = &abandoned.tenant {
                        self.shared.leave(tenant);
                    }
                }
            }
        }
    }

    /// Workers that ended by themselves.
    fn look_after(&mut self) {
        let ended: Vec<u64> = self
            .children
            .iter_mut()
            .filter_map(|(id, kept)| matches!(kept.child.try_wait(), Ok(Some(_))).then_some(*id))
            .collect();
        for id in ended {
            drop(self.shared.take_idle(Some(id)));
            self.bury(id);
        }
    }

    /// Kills a worker and waits for its end, which takes no time: nothing can hold it up.
    fn bury(&mut self, id: u64) {
        if let Some(mut kept) = self.children.remove(&id) {
            let _ = kept.child.kill();
            let _ = kept.child.wait();
        }
    }

    fn stop(mut self) {
        for kept in self.children.values_mut() {
            let _ = kept.child.kill();
        }
        for kept in self.children.values_mut() {
            let _ = kept.child.wait();
        }
        self.shared.down("the script workers are shut down");
    }
}

/// Starts a worker.
pub(super) fn spawn(settings: &PoolSettings, id: u64) -> io::Result<(Child, Link)> {
    let (stdin, to) = io::pipe()?;
    let (from, stdout) = io::pipe()?;
    let child = Command::new(&settings.program.path)
        .args(&settings.program.args)
        .arg(std::process::id().to_string())
        .args(settings.at_once.then_some(ONCE))
        .env_clear()
        .current_dir("/")
        // the terminal's signals are for the door, not for its workers
        .process_group(0)
        .stdin(Stdio::from(stdin))
        .stdout(Stdio::from(stdout))
        .stderr(Stdio::null())
        .spawn()?;
    Ok((child, Link::new(id, to, from)?))
}

/// The system's words without its number.
fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_lowercase()
}
