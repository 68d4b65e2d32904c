//! Hooks written in JavaScript, run in worker processes that can be killed.
//!
//! | part | contract |
//! |---|---|
//! | source | `source`, or `file` beside the hook file; UTF-8, 1 to 32,768 bytes; compiled when the hook is loaded, and an error names line and column |
//! | language | strict mode, current syntax, the language's own objects; no modules, no code from text, no timers, no shared memory, nothing of a host but `console` |
//! | call | the top level runs, then `handle(event)` once; every call begins from the same state |
//! | event | what `JSON.parse` gives, frozen at every level |
//! | time, chance | `Date` and `Math.random` are the event's: an event that is asked about again meets the same |
//! | verdict, gate | an object with `decision`: `allow` or `block`; `reason` text (1,024 characters); `updatedInput` an object. Read from the JSON that the engine's own serialiser writes; own members only, others are passed over |
//! | verdict, pre_response | `append`, `appendResponse`: text or texts to join to the answer; `send`, `extraMessages`: messages of their own; `output`: as the hook's `mode` says. Nothing is fine too |
//! | watched event | nothing is fine |
//! | fault | whatever is no verdict: a throw, a promise, a result over 65,536 bytes, half a result, out of memory. The text has at most 256 characters, line and column, and no path |
//! | console | `log`, `error`, `warn`, `info`, `debug`, `trace`; the first 4,096 bytes are kept |
//! | time limit | the hook's, for everything together, by the wall; the worker's processor time is limited by the kernel as well. Cannot be caught |
//! | memory | `memory_mb`, 16 by default, 128 at most, beyond the event itself |
//! | worker | empty environment, `/`, no files, sockets, programs or other processes (the `confine` module has the list) |
//! | a tenant's share | one call a core at once; further ones wait, and no tenant waits behind another's queue |
//! | wrecks | a script that costs its worker five times in a row is not run for 30 s: its calls are faults. Blocks and noticed timeouts never count |
//!
//! The path of a call: [`ScriptHandler`] takes a worker from the [`Pool`] and sends the event; in the worker
//! (`worker`) the engine (`engine`) copies the script's image into its arena, runs it, and answers; `verdict` reads
//! the answer. A call that is given up leaves its worker to the `keeper`, which kills it if it stays silent.

mod arena;
mod bytecode;
mod confine;
mod engine;
mod handler;
mod keeper;
mod link;
mod moment;
mod pool;
mod protocol;
mod shares;
mod source;
mod verdict;
mod worker;
mod wrecks;

pub use engine::{Engine, Keeps, Outcome, Question};
pub use handler::{ScriptHandler, maker};
pub use pool::{Pool, PoolSettings, WorkerProgram};
pub use worker::{WORKER_WORD, is_worker, worker_main};
pub use wrecks::WreckLimits;
