//! The pool's end of one worker: requests out, replies in. It never blocks unless asked to.

use super::protocol::{self, HEAD, Reply, Request, Said};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::HashSet;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::time::Instant;
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::runtime;

/// A buffer that grew beyond this is given back after the call.
const KEPT: usize = 1 << 20;
/// So many scripts are remembered as known to the worker; it says so itself if one is not.
const MOST_KNOWN: usize = 512;

/// A connection to a worker.
#[derive(Debug)]
pub(super) struct Link {
    /// The worker's number.
    pub(super) id: u64,
    /// The script that it was asked last: it has the next call of it ready.
    pub(super) last: u64,
    /// Requests. Pipes wake the other side faster than sockets do.
    to: PipeWriter,
    /// Replies.
    from: PipeReader,
    /// Their twins in the runtime of the last call.
    watched: Option<Watched>,
    known: HashSet<u64>,
    wire: Wire,
}

#[derive(Debug)]
struct Watched {
    runtime: runtime::Id,
    from: Receiver,
    /// Only where a request did not fit into the pipe.
    to: Option<Sender>,
}

/// What is under way.
#[derive(Debug, Default)]
struct Wire {
    out: Vec<u8>,
    sent: usize,
    input: Vec<u8>,
    number: u64,
    /// The worker's hello is still to come, before its first reply.
    hello_is_due: bool,
}

impl Link {
    pub(super) fn new(id: u64, to: PipeWriter, from: PipeReader) -> io::Result<Link> {
        rustix::io::ioctl_fionbio(&to, true)?;
        rustix::io::ioctl_fionbio(&from, true)?;
        Ok(Link { id, last: 0, to, from, watched: None, known: HashSet::new(), wire: Wire::default() })
    }

    /// The same to a worker that is asked before it has said hello: it finds the request when it is ready.
    pub(super) fn asked_at_once(mut self) -> Link {
        self.wire.hello_is_due = true;
        self
    }

    /// What becomes readable with a reply, or with the worker's end.
    pub(super) fn replies(&self) -> &PipeReader {
        &self.from
    }

    /// Was the worker given this script? From here on it was.
    pub(super) fn learns(&mut self, script: u64) -> bool {
        self.last = script;
        if self.known.len() >= MOST_KNOWN {
            self.known.clear();
        }
        self.known.insert(script)
    }

    /// The number of the next request.
    pub(super) fn next_number(&mut self) -> u64 {
        self.wire.number = self.wire.number.wrapping_add(1);
        self.wire.number
    }

    /// Begins a request. An error means that the worker was gone before it: nothing was asked.
    pub(super) fn begin(&mut self, request: &Request<'_>) -> io::Result<()> {
        self.wire.out.clear();
        self.wire.sent = 0;
        protocol::write_request(&mut self.wire.out, request);
        match self.wire.push(&self.to) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            result => result,
        }
    }

    /// Waits for the reply to the request that was begun.
    pub(super) async fn reply(&mut self) -> io::Result<Reply> {
        let here = runtime::Handle::current().id();
        if self.watched.as_ref().is_none_or(|watched| watched.runtime != here) {
            let from = Receiver::from_owned_fd_unchecked(self.from.try_clone()?.into())?;
            self.watched = Some(Watched { runtime: here, from, to: None });
        }
        let Link { to, from, wire, watched, .. } = self;
        let Some(watched) = watched else { return Err(io::ErrorKind::NotConnected.into()) };
        while wire.unsent() {
            let sender = match &watched.to {
                Some(sender) => sender,
                None => watched.to.insert(Sender::from_owned_fd_unchecked(to.try_clone()?.into())?),
            };
            sender.writable().await?;
            match sender.try_io(|| wire.push(to)) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                result => result?,
            }
        }
        loop {
            watched.from.readable().await?;
            match watched.from.try_io(|| wire.pull(from)) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                result => return result,
            }
        }
    }

    /// The same, with this thread.
    pub(super) fn reply_blocking(&mut self, until: Instant) -> io::Result<Reply> {
        loop {
            match self.pull() {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                result => return result,
            }
            let left = until.checked_duration_since(Instant::now()).ok_or(io::ErrorKind::TimedOut)?;
            let unsent = match self.wire.push(&self.to) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => true,
                result => result.map(|()| false)?,
            };
            let timeout = Timespec::try_from(left).map_err(io::Error::other)?;
            let sent = if unsent { PollFlags::OUT } else { PollFlags::empty() };
            let mut ends = [PollFd::new(&self.from, PollFlags::IN), PollFd::new(&self.to, sent)];
            match poll(&mut ends, Some(&timeout)) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Reads what is there. [`io::ErrorKind::WouldBlock`]: not yet a whole reply.
    pub(super) fn pull(&mut self) -> io::Result<Reply> {
        self.wire.pull(&self.from)
    }
}

impl Wire {
    fn unsent(&self) -> bool {
        self.sent < self.out.len()
    }

    /// Sends the rest.
    fn push(&mut self, mut to: &PipeWriter) -> io::Result<()> {
        while let Some(rest) = self.out.get(self.sent..).filter(|rest| !rest.is_empty()) {
            match to.write(rest) {
                Ok(sent) => self.sent = self.sent.saturating_add(sent),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        if self.out.capacity() > KEPT {
            self.out = Vec::new();
            self.sent = 0;
        }
        Ok(())
    }

    /// Reads what is there.
    fn pull(&mut self, mut from: &PipeReader) -> io::Result<Reply> {
        let mut chunk = [0; 16 * 1024];
        loop {
            match from.read(&mut chunk) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(read) => {
                    self.input.extend(chunk.iter().take(read));
                    if let Some(reply) = self.whole()? {
                        return Ok(reply);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// The reply, if it is complete. There is never more than one under way.
    fn whole(&mut self) -> io::Result<Option<Reply>> {
        let invalid = || io::Error::from(io::ErrorKind::InvalidData);
        let length = match protocol::length(&self.input) {
            None => return Ok(None),
            // a result, a console and some text, each with its own bound
            Some(Ok(length)) if length <= 256 * 1024 => length,
            Some(_) => return Err(invalid()),
        };
        let end = length.saturating_add(HEAD);
        let Some(frame) = self.input.get(HEAD..end) else { return Ok(None) };
        if self.hello_is_due {
            let hello = protocol::read_reply(frame).ok_or_else(invalid)?;
            if !matches!(hello.said, Said::Hello(_)) {
                return Err(invalid());
            }
            self.hello_is_due = false;
            self.input.drain(..end);
            return self.whole();
        }
        if self.input.len() > end {
            return Err(invalid());
        }
        let reply = protocol::read_reply(frame).ok_or_else(invalid)?;
        self.input.clear();
        if reply.number == self.number { Ok(Some(reply)) } else { Err(invalid()) }
    }
}
