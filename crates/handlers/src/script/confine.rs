//! What a worker gives up before it sees its first script.
//!
//! | what | how | where the kernel lacks it |
//! |---|---|---|
//! | the parent's open files | closed, beside stdin, stdout and stderr | refuses to start |
//! | life beyond the parent's | a death signal, and the end of stdin | the end of stdin |
//! | new privileges | `no_new_privs` | told in the hello |
//! | files, sockets, programs, processes, signals to others | a seccomp filter that lets memory, time and the pipe through; anything else gets `EPERM` | told in the hello |
//! | memory that can be run as code | the same filter: no `PROT_EXEC` | told in the hello |
//! | more memory | `RLIMIT_AS` | told in the hello |
//! | more files, processes, core dumps, file sizes | limits of 0 | told in the hello |
//! | processor time | `RLIMIT_CPU`, moved on with each call that needs more | told in the hello |

use rustix::process::{Pid, Resource, Rlimit, getppid, getrlimit, setrlimit};
use std::time::{Duration, Instant};

/// What a worker may map beyond what it has when it is ready: the pipe's buffers, and slack.
const SLACK: u64 = 320 << 20;
/// A worker never gets more processor time than this, whatever it asks for.
const LIFE: u64 = 24 * 3600;

/// First of all, before there is anything to hide. `false`: the parent is gone already.
pub(super) fn begin(parent: Option<Pid>) -> bool {
    #[cfg(target_os = "linux")]
    {
        close_all_but_standard();
        let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
    }
    // the signal is for a death that comes after it was asked for
    let _ = rustix::process::chdir("/");
    parent.is_none_or(|parent| getppid() == Some(parent))
}

/// Last of all, when everything is reserved and loaded. Tells what could not be done.
pub(super) fn finish() -> Vec<&'static str> {
    let mut missing = Vec::new();
    // read before the limit on files: afterwards nothing can be opened
    let mapped = mapped();
    let mut limit = |resource, most, name| {
        let most = getrlimit(resource).maximum.map_or(most, |hard| hard.min(most));
        if setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) }).is_err() {
            missing.push(name);
        }
    };
    limit(Resource::Core, 0, "core limit");
    limit(Resource::Fsize, 0, "file size limit");
    limit(Resource::Nofile, 0, "file limit");
    limit(Resource::Nproc, 0, "process limit");
    match mapped {
        Some(now) => limit(Resource::As, now.saturating_add(SLACK), "memory limit"),
        None => missing.push("memory limit"),
    }
    #[cfg(target_os = "linux")]
    {
        if rustix::thread::set_no_new_privs(true).is_err() {
            missing.push("no_new_privs");
        }
        if filter().is_none() {
            missing.push("seccomp");
        }
    }
    #[cfg(not(target_os = "linux"))]
    missing.push("seccomp");
    missing
}

/// Processor time, as the last resort: the parent's clock comes first, the engine's own before that.
#[derive(Debug)]
pub(super) struct Fuel {
    /// Until when the limit is surely far enough away, and for how long a call.
    good: Option<(Instant, Duration)>,
}

impl Fuel {
    pub(super) fn new() -> Fuel {
        Fuel { good: None }
    }

    /// Makes sure that a call of this length has enough, and not much more.
    pub(super) fn fill(&mut self, call: Duration) {
        let now = Instant::now();
        // a process cannot use more processor time than passes on the wall: it has one thread
        if self.good.is_some_and(|(until, length)| now < until && call <= length) {
            return;
        }
        const AHEAD: Duration = Duration::from_secs(5);
        let used = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime).tv_sec;
        let most = u64::try_from(used)
            .unwrap_or(0)
            .saturating_add(AHEAD.as_secs())
            .saturating_add(call.as_secs())
            .saturating_add(2)
            .min(LIFE);
        let maximum = Some(getrlimit(Resource::Cpu).maximum.map_or(LIFE, |hard| hard.min(LIFE)));
        if setrlimit(Resource::Cpu, Rlimit { current: Some(most), maximum }).is_ok() {
            self.good = now.checked_add(AHEAD).map(|until| (until, call));
        }
    }
}

/// How much this process has mapped.
fn mapped() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = text.split(' ').next()?.parse().ok()?;
    pages.checked_mul(u64::try_from(rustix::param::page_size()).ok()?)
}

#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "no safe crate closes a range of descriptors")]
fn close_all_but_standard() {
    // SAFETY: this is the first thing that the process does; nobody in it owns a descriptor above 2.
    unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, 0) };
}

/// Lets through what an engine that owns its memory needs, and the pipe.
#[cfg(target_os = "linux")]
fn filter() -> Option<()> {
    use seccompiler::{
        BpfProgram, SeccompAction, SeccompCmpArgLen as Len, SeccompCmpOp as Op,
        SeccompCondition as Condition, SeccompFilter, SeccompRule as Rule,
    };
    let rule = |condition: Condition| Rule::new(vec![condition]).ok().map(|rule| vec![rule]);
    let exec = u64::try_from(libc::PROT_EXEC).ok()?;
    let no_code = || rule(Condition::new(2, Len::Dword, Op::MaskedEq(exec), 0).ok()?);
    let me = u64::try_from(rustix::process::getpid().as_raw_nonzero().get()).ok()?;
    let rules = [
        (libc::SYS_read, Vec::new()),
        (libc::SYS_write, Vec::new()),
        (libc::SYS_close, Vec::new()),
        (libc::SYS_brk, Vec::new()),
        (libc::SYS_mmap, no_code()?),
        (libc::SYS_mprotect, no_code()?),
        (libc::SYS_mremap, Vec::new()),
        (libc::SYS_munmap, Vec::new()),
        (libc::SYS_madvise, Vec::new()),
        (libc::SYS_futex, Vec::new()),
        (libc::SYS_clock_gettime, Vec::new()),
        (libc::SYS_gettimeofday, Vec::new()),
        (libc::SYS_getrandom, Vec::new()),
        (libc::SYS_sched_yield, Vec::new()),
        (libc::SYS_restart_syscall, Vec::new()),
        (libc::SYS_rt_sigaction, Vec::new()),
        (libc::SYS_rt_sigprocmask, Vec::new()),
        (libc::SYS_rt_sigreturn, Vec::new()),
        (libc::SYS_sigaltstack, Vec::new()),
        (libc::SYS_getpid, Vec::new()),
        (libc::SYS_gettid, Vec::new()),
        // an abort signals the process itself, nobody else
        (libc::SYS_tgkill, rule(Condition::new(0, Len::Dword, Op::Eq, me).ok()?)?),
        (libc::SYS_prlimit64, rule(Condition::new(0, Len::Dword, Op::Eq, 0).ok()?)?),
        (libc::SYS_exit, Vec::new()),
        (libc::SYS_exit_group, Vec::new()),
    ];
    let denied = SeccompAction::Errno(u32::try_from(libc::EPERM).ok()?);
    let arch = std::env::consts::ARCH.try_into().ok()?;
    let filter = SeccompFilter::new(rules.into_iter().collect(), denied, SeccompAction::Allow, arch).ok()?;
    let program: BpfProgram = filter.try_into().ok()?;
    seccompiler::apply_filter(&program).ok()
}
