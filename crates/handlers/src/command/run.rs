//! One run of a program: the event in, its outputs out, and its end.

use super::Place;
use super::family::Family;
use super::start::Start;
use hookgate_core::handler::Fault;
use std::process::ExitStatus;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};

/// More on stdout than this is no verdict.
const LONGEST_STDOUT: usize = 64 * 1024;
/// So much of stderr is kept; the rest is read and forgotten.
const LONGEST_STDERR: usize = 8 * 1024;
/// One read.
const PIECE: usize = 8 * 1024;

/// A program that ended by itself.
#[derive(Debug)]
pub(super) struct Ended {
    /// How.
    pub(super) status: ExitStatus,
    /// What it wrote. Bytes that are no UTF-8 are replacement marks.
    pub(super) stdout: String,
    /// How that began on the other stream.
    pub(super) stderr: String,
}

/// Starts a program, feeds it and waits for its end. Whatever it started ends with it, or with this future.
pub(super) async fn run(start: &Start, input: &[u8], place: Place) -> Result<Ended, Fault> {
    let (mut child, mark) = start.spawn(&format!("{:032x}", fastrand::u128(..))).await?;
    let mut pipes = Pipes::new(&mut child, input);
    let mut family = Family::new(child, mark, place);
    let flood = |_: Flood| {
        let most = LONGEST_STDOUT / 1024;
        let detail = format!("`{}` was stopped: more than {most} KiB on stdout is no verdict", start.shown);
        Fault::failed("it was stopped because it wrote too much", detail)
    };
    let status = loop {
        tokio::select! {
            biased;
            status = family.ended() => break status,
            moved = pipes.step() => moved.map_err(flood)?,
        }
    };
    let lost = |error| Fault::failed("its program was lost", format!("`{}` was lost: {error}", start.shown));
    let status = status.map_err(lost)?;
    // the verdict is complete when the program ends; a child of it may hold the pipes open for ever
    let drained = pipes.drain();
    drop(family);
    drained.map_err(flood)?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok(Ended { status, stdout: text(&pipes.out), stderr: text(&pipes.err) })
}

/// It wrote too much.
struct Flood;

/// The three pipes of a program. Each is dropped when its other end is closed.
struct Pipes<'a> {
    stdin: Option<ChildStdin>,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    input: &'a [u8],
    out: Vec<u8>,
    err: Vec<u8>,
    out_piece: Box<[u8]>,
    err_piece: Box<[u8]>,
}

impl<'a> Pipes<'a> {
    fn new(child: &mut tokio::process::Child, input: &'a [u8]) -> Pipes<'a> {
        Pipes {
            stdin: child.stdin.take(),
            stdout: child.stdout.take(),
            stderr: child.stderr.take(),
            input,
            out: Vec::new(),
            err: Vec::new(),
            out_piece: vec![0; PIECE].into(),
            err_piece: vec![0; PIECE].into(),
        }
    }

    /// Moves some bytes in one of the pipes; waits for ever when all are closed.
    async fn step(&mut self) -> Result<(), Flood> {
        tokio::select! {
            count = read(&mut self.stdout, &mut self.out_piece) => {
                if count == 0 {
                    self.stdout = None;
                }
                keep_all(&mut self.out, self.out_piece.get(..count).unwrap_or_default())
            }
            count = read(&mut self.stderr, &mut self.err_piece) => {
                if count == 0 {
                    self.stderr = None;
                }
                keep_some(&mut self.err, self.err_piece.get(..count).unwrap_or_default());
                Ok(())
            }
            count = write(&mut self.stdin, self.input) => {
                self.input = self.input.get(count..).unwrap_or_default();
                if count == 0 || self.input.is_empty() {
                    // a program that does not read its input does nothing wrong
                    self.stdin = None;
                }
                Ok(())
            }
        }
    }

    /// Takes what already stands in the pipes, without waiting for more.
    fn drain(&mut self) -> Result<(), Flood> {
        self.stdin = None;
        while let Some(count) = read_now(self.stdout.as_ref(), &mut self.out_piece) {
            keep_all(&mut self.out, self.out_piece.get(..count).unwrap_or_default())?;
        }
        while self.err.len() < LONGEST_STDERR
            && let Some(count) = read_now(self.stderr.as_ref(), &mut self.err_piece)
        {
            keep_some(&mut self.err, self.err_piece.get(..count).unwrap_or_default());
        }
        Ok(())
    }
}

/// Reads from a pipe; 0 at its end, for ever if it is closed.
async fn read(pipe: &mut Option<impl tokio::io::AsyncRead + Unpin>, piece: &mut [u8]) -> usize {
    match pipe {
        Some(pipe) => pipe.read(piece).await.unwrap_or(0),
        None => std::future::pending().await,
    }
}

/// Writes to a pipe; 0 if nobody reads any more.
async fn write(pipe: &mut Option<ChildStdin>, bytes: &[u8]) -> usize {
    match pipe {
        Some(pipe) => pipe.write(bytes).await.unwrap_or(0),
        None => std::future::pending().await,
    }
}

/// Reads what is there now. The pipe does not block; what the runtime believes about it may be old.
fn read_now(pipe: Option<impl rustix::fd::AsFd>, piece: &mut [u8]) -> Option<usize> {
    loop {
        match rustix::io::read(pipe.as_ref()?, &mut *piece) {
            Ok(0) => return None,
            Ok(count) => return Some(count),
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return None,
        }
    }
}

fn keep_all(kept: &mut Vec<u8>, more: &[u8]) -> Result<(), Flood> {
    kept.extend_from_slice(more);
    if kept.len() <= LONGEST_STDOUT { Ok(()) } else { Err(Flood) }
}

fn keep_some(kept: &mut Vec<u8>, more: &[u8]) {
    let room = LONGEST_STDERR.saturating_sub(kept.len());
    kept.extend_from_slice(more.get(..room.min(more.len())).unwrap_or_default());
}
