//! Worker processes for scripts: a bounded number, kept warm, shared out fairly, and replaced when one is lost.
//!
//! A call takes a worker, sends the event, and waits. If its future is dropped before the answer is there, as the
//! engine does at the time limit, the worker goes to the [`super::keeper`], which gives it a moment to answer after
//! all and then kills it. A worker is never handed on with a question open.

use super::engine::Outcome;
use super::keeper::{self, Abandoned, Bell, Note};
use super::link::Link;
use super::moment::Moments;
use super::protocol::{Ask, Request, Said};
use super::shares::{Shares, Tenant};
use super::wrecks::{WreckLimits, Wrecks};
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// How long a load waits for a worker that checks a script.
const CHECKING: Duration = Duration::from_secs(5);

/// The program that is started as a worker, see [`super::worker_main`].
#[derive(Debug, Clone)]
pub struct WorkerProgram {
    /// The program.
    pub path: PathBuf,
    /// Its arguments. The parent's process number follows them.
    pub args: Vec<OsString>,
}

impl WorkerProgram {
    /// This program, started anew with [`super::WORKER_WORD`]. Its `main` must look at [`super::is_worker`] first.
    ///
    /// # Errors
    /// The system does not tell where the program is.
    pub fn this() -> io::Result<WorkerProgram> {
        let own = PathBuf::from("/proc/self/exe");
        // the link leads to the running program even after its file was replaced
        let path = if own.exists() { own } else { std::env::current_exe()? };
        Ok(WorkerProgram { path, args: vec![super::WORKER_WORD.into()] })
    }
}

/// How many, how long.
#[derive(Debug, Clone)]
pub struct PoolSettings {
    /// What to start.
    pub program: WorkerProgram,
    /// Workers that run calls. Default: one a core.
    pub workers: usize,
    /// Workers that are kept beside them, ready to take the place of a lost one. Default: one.
    pub spare: usize,
    /// Whether scripts are compiled when their hooks are loaded. Without it the first call says what is wrong: for a
    /// process that makes one call. Default: yes.
    pub checks: bool,
    /// The most workers, while some are held up. Default: four a core, at least eight.
    pub most: usize,
    /// The most calls of one tenant that run at once. Default: one a core.
    pub share: usize,
    /// The most calls of one tenant that wait.
    pub queue: usize,
    /// How long a worker may take to answer after its call's time is up, before it is killed.
    pub grace: Duration,
    /// When a script that wrecks its workers is put to rest.
    pub wrecks: WreckLimits,
    /// Whether the first worker is started by the thread that makes the pool, which must live as long as it, and is asked
    /// before it has said that it is ready; and whether workers keep nothing of a script for its next call. Default: no.
    pub at_once: bool,
}

impl PoolSettings {
    /// The defaults.
    pub fn new(program: WorkerProgram) -> PoolSettings {
        let cores = std::thread::available_parallelism().map_or(1, usize::from).min(64);
        PoolSettings {
            workers: cores,
            spare: 1,
            checks: true,
            most: cores.saturating_mul(4).max(8),
            share: cores,
            at_once: false,
            ..PoolSettings::for_one_event(program)
        }
    }

    /// Those of a process that answers one event: one worker, started at once, none in reserve, and scripts are
    /// not compiled beforehand.
    pub fn for_one_event(program: WorkerProgram) -> PoolSettings {
        PoolSettings {
            program,
            workers: 1,
            spare: 0,
            checks: false,
            most: 1,
            share: 1,
            queue: 1024,
            grace: Duration::from_millis(25),
            wrecks: WreckLimits::default(),
            at_once: true,
        }
    }
}

/// A pool of workers. When it is dropped its workers are killed and waited for.
#[derive(Debug)]
pub struct Pool {
    shared: Arc<Shared>,
    keeper: Option<JoinHandle<()>>,
}

/// What the pool, its calls and its keeper share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) settings: PoolSettings,
    state: Mutex<State>,
    pub(super) bell: Bell,
    scripts: AtomicU64,
    /// When events were first seen; kept over reloads.
    pub(super) moments: Moments,
}

#[derive(Debug)]
struct State {
    idle: Vec<Link>,
    shares: Shares<oneshot::Sender<Result<Lease, String>>>,
    /// Why no worker can be started, while that is so.
    down: Option<String>,
    /// What the workers could not confine.
    unconfined: Option<String>,
    closed: bool,
}

/// A worker on loan.
#[derive(Debug)]
pub(super) struct Lease {
    shared: Arc<Shared>,
    link: Option<Link>,
    /// Whose share it counts on; nobody's while a script is checked.
    tenant: Option<Tenant>,
    asking: bool,
    wrecks: Option<Arc<Wrecks>>,
}

/// A call to be made.
#[derive(Debug)]
pub(super) struct Job<'a> {
    pub(super) script: u64,
    pub(super) source: &'a str,
    pub(super) event: &'a [u8],
    pub(super) deadline: Instant,
    pub(super) memory: usize,
    pub(super) now: u64,
    pub(super) seed: u64,
}

/// Why a call has no outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Lost {
    /// No worker to be had.
    NoWorker(String),
    /// It ended during the call.
    Died,
}

/// Why a script was not found sound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Unsound {
    /// There is something wrong with it.
    Wrong(String),
    /// There was no worker to look at it.
    Unseen,
}

/// How the checking of a script ended.
enum Checked {
    /// A worker looked at it.
    Said(Result<(), Unsound>),
    /// The worker had ended before.
    WasGone,
    /// The worker ended while it looked.
    Lost,
}

#[expect(clippy::large_enum_variant, reason = "it is moved once a call; a box would cost more")]
enum Entry {
    Now(Lease),
    Later(oneshot::Receiver<Result<Lease, String>>),
    Refused(String),
}

impl Pool {
    /// Starts workers. That they cannot be started is told by each call.
    pub fn new(settings: PoolSettings) -> Arc<Pool> {
        let (bell, notes) = keeper::bell();
        let shares = Shares::new(settings.share, settings.queue);
        // the keeper tries again what fails here, and tells why
        let first = settings.at_once.then(|| keeper::spawn(&settings, keeper::FIRST).ok()).flatten();
        let (first, idle) = match first {
            Some((child, link)) => (Some(child), vec![link.asked_at_once()]),
            None => (None, Vec::new()),
        };
        let state = State { idle, shares, down: None, unconfined: None, closed: false };
        let shared = Arc::new(Shared {
            settings,
            state: Mutex::new(state),
            bell,
            scripts: AtomicU64::new(1),
            moments: Moments::default(),
        });
        let kept = shared.clone();
        let keeper = std::thread::Builder::new()
            .name("script-keeper".into())
            .spawn(move || keeper::run(&kept, notes, first));
        let keeper = match keeper {
            Ok(keeper) => Some(keeper),
            Err(error) => {
                shared.state().down = Some(format!("no thread for the script workers: {error}"));
                None
            }
        };
        Arc::new(Pool { shared, keeper })
    }

    /// What the kernel does not take from the workers, in words; `None` until the first one is there.
    pub fn unconfined(&self) -> Option<String> {
        self.shared.state().unconfined.clone()
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.state().closed = true;
        self.shared.bell.ring(Note::Stop);
        if let Some(keeper) = self.keeper.take() {
            let _ = keeper.join();
        }
        let idle = std::mem::take(&mut self.shared.state().idle);
        drop(idle);
    }
}

impl Shared {
    /// A number for a script.
    pub(super) fn number(&self) -> u64 {
        self.scripts.fetch_add(1, Ordering::Relaxed)
    }

    /// Asks a script.
    pub(super) async fn ask(
        self: &Arc<Self>,
        tenant: &Tenant,
        wrecks: &Arc<Wrecks>,
        job: &Job<'_>,
    ) -> Result<(Outcome, String), Lost> {
        loop {
            let mut lease = match self.enter(tenant, job.script) {
                Entry::Now(lease) => lease,
                Entry::Later(later) => match later.await {
                    Ok(Ok(lease)) => lease,
                    Ok(Err(why)) => return Err(Lost::NoWorker(why)),
                    Err(_) => return Err(Lost::NoWorker("the script workers are shut down".into())),
                },
                Entry::Refused(why) => return Err(Lost::NoWorker(why)),
            };
            lease.wrecks = Some(wrecks.clone());
            // a worker that ended while it had nothing to do is no fault of this call
            if let Some(result) = lease.ask(job).await {
                return result;
            }
        }
    }

    /// Does this script compile? With this thread.
    pub(super) fn check(self: &Arc<Self>, source: &str) -> Result<(), Unsound> {
        let until = Instant::now() + CHECKING;
        let mut losses = 0u32;
        while Instant::now() < until {
            let mut state = self.state();
            if state.down.is_some() || state.closed {
                return Err(Unsound::Unseen);
            }
            let link = state.idle.pop();
            drop(state);
            match link {
                Some(link) => {
                    let mut lease = self.lease(link, None);
                    match lease.check(source, until) {
                        Checked::Said(result) => return result,
                        Checked::WasGone => {}
                        // one worker may have been lost for reasons of its own; two are the script's doing
                        Checked::Lost => losses = losses.saturating_add(1),
                    }
                    if losses > 1 {
                        return Err(Unsound::Wrong("the engine does not survive compiling it".into()));
                    }
                }
                None => std::thread::sleep(Duration::from_millis(1)),
            }
        }
        Err(Unsound::Unseen)
    }

    fn enter(self: &Arc<Self>, tenant: &Tenant, script: u64) -> Entry {
        let mut state = self.state();
        if state.closed {
            return Entry::Refused("the script workers are shut down".into());
        }
        if !state.idle.is_empty() && state.shares.enter(tenant) {
            let ready = state.idle.iter().rposition(|link| link.last == script);
            let link = match ready {
                Some(place) => Some(state.idle.remove(place)),
                None => state.idle.pop(),
            };
            if let Some(link) = link {
                drop(state);
                return Entry::Now(self.lease(link, Some(tenant.clone())));
            }
        }
        if let Some(why) = &state.down {
            return Entry::Refused(why.clone());
        }
        let (sender, later) = oneshot::channel();
        let waits = state.shares.wait(tenant, sender).is_ok();
        drop(state);
        if !waits {
            return Entry::Refused("too many calls wait for a script worker".into());
        }
        self.bell.want();
        Entry::Later(later)
    }

    fn lease(self: &Arc<Self>, link: Link, tenant: Option<Tenant>) -> Lease {
        Lease { shared: self.clone(), link: Some(link), tenant, asking: false, wrecks: None }
    }

    /// A worker is free.
    pub(super) fn give_back(self: &Arc<Self>, link: Link, tenant: Option<&Tenant>) {
        let mut state = self.state();
        if let Some(tenant) = tenant {
            state.shares.leave(tenant);
        }
        if state.closed {
            return;
        }
        state.idle.push(link);
        drop(state);
        self.hand_out();
    }

    /// A worker is lost.
    pub(super) fn leave(self: &Arc<Self>, tenant: &Tenant) {
        self.state().shares.leave(tenant);
        self.hand_out();
    }

    /// Brings free workers and waiting calls together.
    fn hand_out(self: &Arc<Self>) {
        loop {
            let mut state = self.state();
            if state.idle.is_empty() {
                return;
            }
            let Some((tenant, waiter)) = state.shares.next(|waiter| !waiter.is_closed()) else { return };
            let Some(link) = state.idle.pop() else { return };
            drop(state);
            // whoever gave up in this very moment: the lease gives the worker back as it is dropped
            let _ = waiter.send(Ok(self.lease(link, Some(tenant))));
        }
    }

    /// Is there somebody whom one more worker would help?
    pub(super) fn hungry(&self) -> bool {
        let state = self.state();
        state.idle.is_empty() && state.shares.hungry(|waiter| !waiter.is_closed())
    }

    /// A worker came up: there is no trouble any more.
    pub(super) fn up(self: &Arc<Self>, link: Link, unconfined: String) {
        let mut state = self.state();
        state.down = None;
        state.unconfined = Some(unconfined);
        drop(state);
        self.give_back(link, None);
    }

    /// No worker comes up: whoever waits hears why.
    pub(super) fn down(&self, why: &str) {
        let mut state = self.state();
        state.down = Some(why.to_owned());
        let waiting = if state.idle.is_empty() { state.shares.send_away() } else { Vec::new() };
        drop(state);
        for waiter in waiting {
            let _ = waiter.send(Err(why.to_owned()));
        }
    }

    /// Takes a worker out of the idle ones: a dead one by its number, or the one that rested longest.
    pub(super) fn take_idle(&self, id: Option<u64>) -> Option<Link> {
        let mut state = self.state();
        let place = match id {
            Some(id) => state.idle.iter().position(|link| link.id == id)?,
            None if state.idle.is_empty() => return None,
            None => 0,
        };
        Some(state.idle.remove(place))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lease {
    /// Asks. `None`: the worker was gone before anything was asked.
    async fn ask(&mut self, job: &Job<'_>) -> Option<Result<(Outcome, String), Lost>> {
        let link = self.link.as_mut()?;
        let mut source = link.learns(job.script).then_some(job.source);
        loop {
            let time = job.deadline.saturating_duration_since(Instant::now());
            if time.is_zero() {
                return Some(Ok((Outcome::Timeout, String::new())));
            }
            let Job { script, event, memory, now, seed, .. } = *job;
            let number = link.next_number();
            let request = Request::Ask(Ask { number, script, time, memory, now, seed, source, event });
            self.asking = true;
            if link.begin(&request).is_err() {
                self.lost();
                return None;
            }
            let reply = link.reply().await;
            self.asking = false;
            match reply {
                Ok(reply) => match reply.said {
                    Said::Done(outcome) => {
                        if let Some(wrecks) = &self.wrecks {
                            wrecks.survived();
                        }
                        return Some(Ok((outcome, reply.console)));
                    }
                    Said::Unknown if source.is_none() => source = Some(job.source),
                    Said::Unknown | Said::Sound | Said::Hello(_) => break,
                },
                Err(_) => break,
            }
        }
        if let Some(wrecks) = &self.wrecks {
            wrecks.wrecked(Instant::now());
        }
        self.lost();
        Some(Err(Lost::Died))
    }

    /// Has a script compiled.
    fn check(&mut self, source: &str, until: Instant) -> Checked {
        let Some(link) = self.link.as_mut() else { return Checked::WasGone };
        let number = link.next_number();
        if link.begin(&Request::Check { number, source }).is_err() {
            self.lost();
            return Checked::WasGone;
        }
        let said = link.reply_blocking(until).map(|reply| reply.said);
        match said {
            Ok(Said::Sound) => Checked::Said(Ok(())),
            Ok(Said::Done(Outcome::Failed(why))) => Checked::Said(Err(Unsound::Wrong(why))),
            _ => {
                self.lost();
                Checked::Lost
            }
        }
    }

    /// The worker is not to be used again.
    fn lost(&mut self) {
        self.asking = false;
        if let Some(link) = self.link.take() {
            self.shared.bell.ring(Note::Dead(link.id));
            if let Some(tenant) = self.tenant.take() {
                self.shared.leave(&tenant);
            }
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let Some(link) = self.link.take() else { return };
        let tenant = self.tenant.take();
        if self.asking {
            let due = Instant::now() + self.shared.settings.grace;
            let abandoned = Abandoned { link, tenant, due, wrecks: self.wrecks.take() };
            self.shared.bell.ring(Note::Abandoned(Box::new(abandoned)));
        } else {
            self.shared.give_back(link, tenant.as_ref());
        }
    }
}
