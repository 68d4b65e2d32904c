//! What must be true of a faulty handler at each point.

use crate::bench::{Bench, all_gone, head, reason};
use hookgate_core::facts::GateEvent;
use hookgate_core::verdict::{Block, Cause, Decision};
use hookgate_handlers::workshop::Workshop;
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};
use tokio::sync::Mutex;

/// The limit of handlers that never answer.
const SHORT: u64 = 250;
/// The limit of those that fail by themselves.
const LONG: u64 = 8000;
/// What a gate may take beyond the limit.
const BEYOND: Duration = Duration::from_millis(100);
/// For machines that have other things to do.
const FACTOR: u32 = 2;

/// One kind of handler, and how it works when nothing is wrong.
pub(super) struct Rig {
    pub(super) workshop: Workshop,
    pub(super) healthy: Value,
    /// Puts programs into the hook's folder.
    pub(super) lay_out: fn(&Path),
}

/// One fault.
pub(super) struct Row {
    pub(super) fault: &'static str,
    pub(super) handler: Value,
    pub(super) ends: Ends,
    pub(super) at: &'static [At],
}

/// How a call must end.
#[derive(Debug, Clone, Copy)]
pub(super) enum Ends {
    /// At its limit.
    Late,
    /// Before, with these words in the reason, and these in the record.
    Fails(&'static str, &'static str),
    /// As a block of its own, with these words.
    Blocks(&'static str),
}

/// Where.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum At {
    Prompt,
    Tool,
    Subagent,
    /// At an answer that must not go out without the hook.
    Needed,
    /// At an answer that may.
    Added,
    Watched,
}

/// One of each kind, for what takes long.
pub(super) const SOME: &[At] = &[At::Tool, At::Needed, At::Watched];
pub(super) const GATES: &[At] = &[At::Tool, At::Prompt, At::Subagent];
pub(super) const DECIDING: &[At] = &[At::Tool, At::Prompt, At::Subagent, At::Needed, At::Added];
pub(super) const ALL: &[At] = &[At::Tool, At::Prompt, At::Subagent, At::Needed, At::Added, At::Watched];

/// A row that is the same everywhere.
pub(super) fn row(fault: &'static str, handler: Value, ends: Ends) -> Row {
    Row { fault, handler, ends, at: ALL }
}

/// The row at some points only.
pub(super) fn only(at: &'static [At], row: Row) -> Row {
    Row { at, ..row }
}

/// Plays every row at every point of it.
pub(super) async fn check(rig: &Rig, rows: Vec<Row>) {
    // floods and crowds take the time of others, and the time is looked at
    static ALONE: Mutex<()> = Mutex::const_new(());
    let _alone = ALONE.lock().await;
    for row in &rows {
        for at in row.at {
            let what = format!("{} at {at:?}", row.fault);
            let bench = bench(rig, row, *at);
            let began = Instant::now();
            let block = play(&bench, *at, &what).await;
            let took = began.elapsed();
            let most = (Duration::from_millis(row.limit()) + BEYOND) * FACTOR;
            assert!(took <= most, "{what}: {took:?}");
            ended_well(row, *at, block.as_ref(), &bench, &what);
            all_gone(bench.dir.path());
            goes_on(rig, &what).await;
        }
    }
}

impl Row {
    fn limit(&self) -> u64 {
        if matches!(self.ends, Ends::Late) { SHORT } else { LONG }
    }
}

fn bench(rig: &Rig, row: &Row, at: At) -> Bench {
    let event = match at {
        At::Prompt => "user_prompt_submit",
        At::Tool => "pre_tool_use",
        At::Subagent => "subagent_start",
        At::Needed | At::Added => "pre_response",
        At::Watched => "post_tool_use",
    };
    let mut hook = json!({"id": "f", "event": event, "if_expr": "true", "timeout_ms": row.limit(),
        "handler": row.handler});
    if at == At::Needed {
        hook["on_timeout"] = "block".into();
    }
    let dir = tempfile::tempdir().unwrap();
    (rig.lay_out)(dir.path());
    Bench::new(dir, &rig.workshop, &hook)
}

/// Lets the event happen; gives the block, if there is one.
async fn play(bench: &Bench, at: At, what: &str) -> Option<Block> {
    let gate = async |event| bench.dispatcher.ask(&bench.around, &head("e-1"), event).await.block().cloned();
    match at {
        At::Prompt => gate(GateEvent::UserPromptSubmit { raw_input: "list the files".into() }).await,
        At::Tool => bench.ls().await.block().cloned(),
        At::Subagent => gate(GateEvent::SubagentStart { subagent: json!({"task": "look"}) }).await,
        At::Needed | At::Added => {
            let additions = bench.shape().await;
            assert!(additions.append.is_empty() && additions.send.is_empty(), "{what}: {additions:?}");
            additions.withheld
        }
        At::Watched => {
            let began = Instant::now();
            let work = bench.dispatcher.watch(&head("e-1"), crate::bench::tool_ran());
            assert!(began.elapsed() < Duration::from_millis(50), "{what}: the agent waited");
            for watch in work {
                let trace = watch.run(&bench.around).await;
                assert_ne!(trace.ran[0].decision, Decision::Allow, "{what}");
            }
            None
        }
    }
}

/// The block names the fault; where there is none, the record does.
fn ended_well(row: &Row, at: At, block: Option<&Block>, bench: &Bench, what: &str) {
    let record = bench.last();
    let detail = record.error_detail.unwrap_or_default();
    let reason = block.map_or("(no block)", |block| block.reason.as_str());
    let (decision, cause, says) = match row.ends {
        Ends::Late => (Decision::Timeout, Cause::Timeout, "gave no answer in time"),
        Ends::Fails(why, words) => {
            assert!(detail.contains(words), "{what}: {detail:?} lacks {words:?}");
            (Decision::Error, Cause::Error, why)
        }
        Ends::Blocks(words) => (Decision::Block, Cause::Decision, words),
    };
    assert_eq!(record.decision, decision, "{what}: {reason}; {detail}");
    if matches!(at, At::Added | At::Watched) {
        assert!(block.is_none() && !detail.is_empty(), "{what}: {block:?}");
    } else {
        assert_eq!(block.map(|block| (block.by.as_ref(), block.cause)), Some(("f", cause)), "{what}");
        assert!(reason.contains("hook f") && reason.contains(says), "{what}: {reason:?} lacks {says:?}");
    }
}

/// The same machinery answers the next call.
async fn goes_on(rig: &Rig, what: &str) {
    let hook = json!({"id": "h", "event": "pre_tool_use", "matcher": "exec", "timeout_ms": LONG,
        "handler": rig.healthy});
    let dir = tempfile::tempdir().unwrap();
    (rig.lay_out)(dir.path());
    let bench = Bench::new(dir, &rig.workshop, &hook);
    let ruling = bench.ls().await;
    assert_eq!(reason(&ruling), "(allowed)", "after {what}: {:?}", bench.last());
}
