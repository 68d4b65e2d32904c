//! Moves lines between a client and the server that it starts through us. A call waits for its verdict; nothing waits
//! behind it.

use super::gate::{Gate, Ruled};
use super::message::{self, Call, Item, Kind};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::signals::Signals;
use hookgate_core::facts::LifeEvent;
use rustix::process::{Pid, Signal, kill_process_group};
use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio::sync::Semaphore;

/// A longer line is no message.
const LONGEST_LINE: u64 = 64 << 20;
/// Calls that wait for their verdict at a time.
const AT_ONCE: usize = 64;
/// Calls whose answer is waited for; of more, the answers are not told to hooks.
const MOST_OPEN: usize = 10_000;
/// How long a server may take to end after its client went away.
const LAST_WORDS: Duration = Duration::from_secs(5);
/// How long the end waits for watching hooks.
const SETTLING: Duration = Duration::from_secs(2);

/// What both directions share.
struct Relay {
    gate: Gate,
    /// Closed when the client went away.
    server: Mutex<Option<ChildStdin>>,
    /// Calls that were passed on, by their id as it was written.
    open: Mutex<HashMap<String, Call>>,
    places: Arc<Semaphore>,
}

/// Starts the server and relays until one side ends.
pub(crate) fn run(gate: Gate, runtime: &Runtime, server: &[String]) -> Result<Exit, Failure> {
    let _guard = runtime.enter();
    // before there is a server that a signal could leave behind
    let signals =
        Signals::all().map_err(|error| Failure::new(format!("signals cannot be awaited: {error}")))?;
    let (program, arguments) =
        server.split_first().ok_or_else(|| Failure::new("which server? name it behind `--`"))?;
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
    // a group of its own, so that whatever it starts can be ended with it
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let mut child = command
        .spawn()
        .map_err(|error| Failure::new(format!("the server `{program}` cannot be started: {error}")))?;
    let group = Group(Pid::from_child(&child));
    let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
    let relay = Arc::new(Relay {
        gate,
        server: Mutex::new(stdin),
        open: Mutex::default(),
        places: Arc::new(Semaphore::new(AT_ONCE)),
    });
    relay.gate.session(LifeEvent::SessionStart);
    let ended_by = watch(signals, runtime, group.0);
    let up = relay.clone();
    let handle = runtime.handle().clone();
    // it ends with the client, or with the process
    std::thread::Builder::new()
        .name("client".into())
        .spawn(move || up.relay_up(&handle))
        .map_err(|error| Failure::new(format!("there is no thread for the client: {error}")))?;
    if let Some(stdout) = stdout {
        relay.relay_down(stdout);
    }
    let code = end(&mut child, group.0);
    relay.gate.session(LifeEvent::SessionEnd);
    runtime.block_on(relay.gate.watchers.drain(SETTLING));
    let by_signal = lock(&ended_by).take();
    Ok(by_signal.unwrap_or(Exit::Agent(code)))
}

impl Relay {
    /// From the client to the server.
    fn relay_up(self: &Arc<Self>, runtime: &tokio::runtime::Handle) {
        let mut input = BufReader::new(io::stdin());
        while let Some(line) = next_line(&mut input) {
            let Ok(text) = std::str::from_utf8(&line) else {
                to_client(&message::unreadable("it is not UTF-8 text"));
                continue;
            };
            match message::of_client(text) {
                Kind::Other => self.to_server(&line),
                Kind::Unreadable(why) => to_client(&message::unreadable(why)),
                Kind::Calls(items) => {
                    let relay = self.clone();
                    let places = self.places.clone();
                    let whole = items.len() == 1;
                    runtime.spawn(async move {
                        // closed never: it lives as long as the relay
                        let _place = places.acquire_owned().await;
                        relay.judge(items, &line, whole).await;
                    });
                }
            }
        }
        // calls that wait for their verdict still go out
        let all = u32::try_from(AT_ONCE).unwrap_or(u32::MAX);
        let _waited = runtime.block_on(self.places.clone().acquire_many_owned(all));
        *lock(&self.server) = None;
    }

    /// Asks about the calls of a line and passes on what may go.
    async fn judge(&self, items: Vec<Item>, line: &[u8], whole: bool) {
        let mut passed = Vec::new();
        let mut as_it_came = true;
        for item in items {
            match item {
                Item::Other(text) => passed.push(text),
                Item::Call(call) => match self.gate.ask(&call).await {
                    Ruled::AsItCame => {
                        passed.push(call.text.clone());
                        self.expect(call);
                    }
                    Ruled::Changed(arguments) => {
                        as_it_came = false;
                        match call.with_arguments(arguments) {
                            Some(text) => {
                                passed.push(text);
                                self.expect(call);
                            }
                            None => {
                                refuse(&call, "a hook changes the arguments in a way that cannot be written")
                            }
                        }
                    }
                    Ruled::Refused(reason) => {
                        as_it_came = false;
                        refuse(&call, &reason);
                    }
                },
            }
        }
        if as_it_came {
            self.to_server(line);
        } else if !passed.is_empty() {
            let text = if whole { passed.concat() } else { format!("[{}]", passed.join(",")) };
            self.to_server(format!("{text}\n").as_bytes());
        }
    }

    fn expect(&self, call: Call) {
        let mut open = lock(&self.open);
        if open.len() < MOST_OPEN
            && let Some(id) = call.id.clone()
        {
            open.insert(id, call);
        }
    }

    fn to_server(&self, line: &[u8]) {
        if let Some(server) = lock(&self.server).as_mut() {
            // a server that is gone is noticed where its output ends
            let _ = server.write_all(line).and_then(|()| server.flush());
        }
    }

    /// From the server to the client.
    fn relay_down(&self, stdout: impl Read) {
        let mut output = BufReader::new(stdout);
        while let Some(line) = next_line(&mut output) {
            // first the client: hooks only watch here
            write_client(&line);
            if lock(&self.open).is_empty() {
                continue;
            }
            for reply in std::str::from_utf8(&line).map(message::of_server).unwrap_or_default() {
                let call = lock(&self.open).remove(&reply.id);
                if let Some(call) = call {
                    self.gate.told(&call, reply.result);
                }
            }
        }
    }
}

/// A line with its end; none at the end of the input, or where a line is too long to be one.
fn next_line(input: &mut impl BufRead) -> Option<Vec<u8>> {
    let mut line = Vec::new();
    match input.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line) {
        Ok(0) | Err(_) => None,
        Ok(_)
            if line.last() != Some(&b'\n')
                && u64::try_from(line.len()).is_ok_and(|len| len >= LONGEST_LINE) =>
        {
            tell("a line of more than 64 MiB ends the connection");
            None
        }
        Ok(_) => Some(line),
    }
}

fn refuse(call: &Call, reason: &str) {
    if let Some(id) = &call.id {
        to_client(&message::refusal(id, reason));
    }
}

fn to_client(text: &str) {
    write_client(format!("{text}\n").as_bytes());
}

fn write_client(line: &[u8]) {
    let mut stdout = io::stdout().lock();
    // a client that is gone is noticed where its input ends
    let _ = stdout.write_all(line).and_then(|()| stdout.flush());
}

/// Tells the person who looks at the server's messages.
pub(super) fn tell(text: &str) {
    let _ = writeln!(io::stderr().lock(), "hookgate: {text}");
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The server's processes: killed when this is dropped, whatever the way out.
struct Group(Pid);

impl Drop for Group {
    fn drop(&mut self) {
        // none is left in the usual case
        let _ = kill_process_group(self.0, Signal::KILL);
    }
}

/// Waits for the server's end, and helps it after a while; gives its exit code.
fn end(child: &mut Child, group: Pid) -> u8 {
    let began = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1),
            Ok(None) if began.elapsed() < LAST_WORDS => std::thread::sleep(Duration::from_millis(10)),
            _ => {
                let _ = kill_process_group(group, Signal::KILL);
                let _ = child.wait();
                return 1;
            }
        }
    }
}

/// A signal that ends us ends the server first.
fn watch(mut signals: Signals, runtime: &Runtime, group: Pid) -> Arc<Mutex<Option<Exit>>> {
    let ended_by: Arc<Mutex<Option<Exit>>> = Arc::default();
    let note = ended_by.clone();
    runtime.spawn(async move {
        let ended = signals.next().await;
        *lock(&note) = Some(ended);
        let _ = kill_process_group(group, Signal::KILL);
    });
    ended_by
}
