//! `hookgate outbox …`: what watching hooks still have to do, and what was given up.

mod drain;
mod list;

use super::audit::of_store;
use crate::args::{OutboxArgs, OutboxCommand};
use crate::data::DataDir;
use crate::exit::Exit;
use crate::failure::Failure;
use hookgate_store::outbox::{Outbox, Retry};
use std::io::{self, Write};

pub(super) fn run(args: &OutboxArgs) -> Result<Exit, Failure> {
    let file = super::configuration(args.config.as_deref())?;
    let lookup = |name: &str| std::env::var_os(name);
    let place = DataDir::find(args.data_dir.as_deref(), &file.audit, &lookup)?.ok_or_else(|| {
        Failure::new(
            "which outbox? give --data-dir, or set HOOKGATE_DATA_DIR, or `dir` under [audit] in hookgate.toml",
        )
    })?;
    if !place.path().exists() {
        let dir = place.path().display();
        return Err(Failure::new(format!(
            "there is no outbox in {dir}: no hook has left anything there yet"
        )));
    }
    let open = || Outbox::open(&place.options()?, Retry::default()).map_err(of_store);
    match &args.command {
        OutboxCommand::List { state, limit } => list::run(&mut open()?, *state, *limit, args.json),
        OutboxCommand::Resend { id, .. } => resend(&mut open()?, *id, args.json),
        OutboxCommand::Drain { hooks, within } => {
            drain::run(args, hooks.as_deref(), within, file)?;
            list::summary(&mut open()?, args.json)
        }
    }
}

fn resend(outbox: &mut Outbox, id: Option<i64>, json: bool) -> Result<Exit, Failure> {
    let n = outbox.resend(id).map_err(of_store)?;
    if let (0, Some(id)) = (n, id) {
        return Err(Failure::new(format!(
            "there is no dead letter {id}; `hookgate outbox list --state dead` has all"
        )));
    }
    let mut stdout = io::stdout().lock();
    match (json, n) {
        (true, n) => writeln!(stdout, "{}", serde_json::json!({ "resent": n }))?,
        (false, 1) => writeln!(
            stdout,
            "1 dead letter is due again; the next session with its hooks sends it, or `hookgate outbox drain`"
        )?,
        (false, n) => writeln!(
            stdout,
            "{n} dead letters are due again; the next session with their hooks sends them, or `hookgate outbox drain`"
        )?,
    }
    Ok(Exit::Done)
}
