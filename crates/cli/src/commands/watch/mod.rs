//! `hookgate watch`: what hooks decide while it happens, read from the trail.
//!
//! On a terminal a view that can be filtered ([`screen`], drawn by [`draw`] from a [`view`]); elsewhere a line a row
//! ([`lines`]). Both ask [`follow`] for what is new. Nothing here runs a hook or waits for a door.

mod draw;
mod follow;
mod lines;
mod screen;
mod view;

use crate::args::WatchArgs;
use crate::data::DataDir;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::terminal;
use follow::Follow;
use std::io;

/// Rows that are shown at the start on a terminal.
const LAST: usize = 200;

pub(super) fn run(args: &WatchArgs) -> Result<Exit, Failure> {
    let file = super::configuration(args.config.as_deref())?;
    let lookup = |name: &str| std::env::var_os(name);
    let place =
        DataDir::find(args.data_dir.as_deref(), &file.audit, &lookup)?.ok_or_else(super::audit::which)?;
    let filter = super::audit::filter::read(&args.filter, super::audit::now())?;
    let is_screen = terminal::is_terminal(&io::stdout()) && !args.json && !args.plain;
    let last = args.last.unwrap_or(if is_screen { LAST } else { 0 });
    let follow = Follow::new(place, filter, last, args.read_only);
    if is_screen { screen::run(follow) } else { lines::run(follow, args.json) }
}

#[cfg(test)]
mod tests {
    use hookgate_core::record::{InputHash, Record, Recorder};
    use hookgate_core::verdict::Decision;
    use hookgate_store::audit::Audit;
    use hookgate_store::query::{Entry, Filter, Order};
    use hookgate_store::store::{Options, Store};
    use std::sync::OnceLock;
    use std::time::Duration;

    /// A row with a number of the test's choice.
    pub(super) fn entry(
        id: i64,
        decision: &str,
        hook: &str,
        tool: Option<&str>,
        error: Option<&str>,
    ) -> Entry {
        static ROW: OnceLock<Entry> = OnceLock::new();
        let mut row = ROW.get_or_init(stored).clone();
        row.id = id;
        row.decision = decision.to_owned();
        row.hook_label = hook.to_owned();
        row.tool_name = tool.map(str::to_owned);
        row.error = error.map(str::to_owned);
        row.duration_us = id.unsigned_abs() * 1000;
        row
    }

    /// A row as a store gives it.
    fn stored() -> Entry {
        let dir = tempfile::tempdir().unwrap();
        let options = Options::new(dir.path());
        let store = Store::open(&options).unwrap();
        store.record_soon(record("e-1", Decision::Allow));
        store.flush(Duration::from_secs(10)).unwrap();
        let rows =
            Audit::open(&options).unwrap().list(&Filter::default(), Order::OldestFirst, None, 1).unwrap();
        rows.into_iter().next().unwrap()
    }

    pub(super) fn record(event: &str, decision: Decision) -> Record {
        Record {
            hook: "h".into(),
            label: "h".into(),
            hook_version: "0123456789ab".into(),
            session_id: "s-1".into(),
            tenant_id: None,
            agent_id: None,
            event_id: event.into(),
            event: "pre_tool_use",
            tool_name: None,
            input_hash: InputHash::default(),
            decision,
            cause: None,
            duration: Duration::from_millis(1),
            error: None,
            error_detail: None,
            refused_fields: Vec::new(),
            tokens: None,
            times: 1,
            trace_id: None,
        }
    }
}
