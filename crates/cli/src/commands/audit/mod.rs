//! `hookgate audit …`: questions to the trail, and its care. One file a kind of question.
//!
//! Exit code 0: done; 1: `verify` found that the trail was changed; 2: it could not be read.

mod care;
mod export;
pub(in crate::commands) mod filter;
mod shown;
mod verify;
mod why;

pub(super) use shown::{milliseconds, time};

use crate::args::{AuditArgs, AuditCommand};
use crate::data::DataDir;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::terminal;
use hookgate_store::StoreError;
use hookgate_store::audit::Audit;
use hookgate_store::query::Order;
use serde::Serialize;
use std::io::{self, Write};

pub(super) fn run(args: &AuditArgs) -> Result<Exit, Failure> {
    let file = super::configuration(args.config.as_deref())?;
    let lookup = |name: &str| std::env::var_os(name);
    let place = DataDir::find(args.data_dir.as_deref(), &file.audit, &lookup)?.ok_or_else(which)?;
    if !place.path().exists() {
        let dir = place.path().display();
        return Err(Failure::new(format!("there is no trail in {dir}: no hook has left a record there yet")));
    }
    let mut audit = open(&place, args.read_only)?;
    warn(&audit)?;
    match &args.command {
        AuditCommand::List { filter, limit } => {
            let filter = filter::read(filter, now())?;
            let rows = audit.list(&filter, Order::NewestFirst, None, *limit).map_err(of_store)?;
            print(args.json, &rows, || shown::table(&rows))
        }
        AuditCommand::Show { id } => show(&mut audit, *id, args.json),
        AuditCommand::Why { id } => {
            let why = why::Why::read(&mut audit, id).map_err(of_store)?;
            if why.is_empty() {
                return Err(Failure::new(format!("the trail has no session and no event `{id}`")));
            }
            print(args.json, &why, || why.told())
        }
        AuditCommand::Stats { filter } => {
            let stats = audit.stats(&filter::read(filter, now())?).map_err(of_store)?;
            print(args.json, &stats, || shown::stats(&stats))
        }
        AuditCommand::Export { filter, format } => {
            export::run(&mut audit, &filter::read(filter, now())?, *format)
        }
        AuditCommand::Verify { against } => verify::run(&mut audit, against.as_deref(), args.json),
        AuditCommand::Checkpoint => {
            let checkpoint = audit.checkpoint().map_err(of_store)?;
            writeln!(io::stdout().lock(), "{checkpoint}")?;
            Ok(Exit::Done)
        }
        AuditCommand::Prune { keep } => {
            care::prune(&mut audit, keep.as_deref().or(file.audit.keep.as_deref()))
        }
        AuditCommand::Forget { hook } => care::forget(&mut audit, hook),
        AuditCommand::Rekey => care::rekey(&mut audit, &place),
    }
}

/// Nothing says where the trail is.
pub(super) fn which() -> Failure {
    Failure::new(
        "which trail? give --data-dir, or set HOOKGATE_DATA_DIR, or `dir` under [audit] in hookgate.toml",
    )
}

/// Opens the trail; one that this user may not write to is opened to be read.
pub(super) fn open(place: &DataDir, read_only: bool) -> Result<Audit, Failure> {
    let options = place.options()?;
    let file = std::fs::metadata(options.database_file());
    if read_only || file.is_ok_and(|file| file.permissions().readonly()) {
        return Audit::open_read_only(&options).map_err(of_store);
    }
    Audit::open(&options).or_else(|why| match why {
        StoreError::File { .. } | StoreError::Unavailable { .. } if options.database_file().exists() => {
            // the first error says more than the second
            Audit::open_read_only(&options).map_err(|_| of_store(why))
        }
        why => Err(of_store(why)),
    })
}

fn show(audit: &mut Audit, id: i64, json: bool) -> Result<Exit, Failure> {
    let Some((entry, sealed)) = audit.show(id).map_err(of_store)? else {
        return Err(Failure::new(format!("the trail has no row {id}")));
    };
    if let Some(why) = sealed {
        // everything else can be read without the key
        writeln!(io::stderr().lock(), "warning: the detail cannot be opened: {why}")?;
    }
    print(json, &entry, || shown::entry(&entry))
}

/// What is odd about the trail, on standard error.
pub(super) fn warn(audit: &Audit) -> Result<(), Failure> {
    let found = audit.found();
    let mut stderr = io::stderr().lock();
    if found.is_read_only {
        writeln!(
            stderr,
            "warning: the trail is only read; records that have not reached the database are not in these answers"
        )?;
    }
    for file in &found.set_aside {
        let name = file.display();
        writeln!(stderr, "warning: {name} was damaged and set aside; what it held is not in these answers")?;
    }
    if found.damaged > 0 {
        writeln!(stderr, "warning: {} records were damaged before they reached the trail", found.damaged)?;
    }
    if let Some(why) = &found.left {
        writeln!(stderr, "warning: the newest records are not in these answers: {why}")?;
    }
    Ok(())
}

pub(in crate::commands) fn print<T: Serialize>(
    json: bool,
    value: &T,
    text: impl FnOnce() -> String,
) -> Result<Exit, Failure> {
    let mut stdout = io::stdout().lock();
    if json {
        let text = serde_json::to_string_pretty(value)
            .map_err(|error| Failure::new(format!("the answer cannot be written: {error}")))?;
        writeln!(stdout, "{text}")?;
    } else {
        stdout.write_all(terminal::printable(&text(), terminal::is_terminal(&stdout)).as_bytes())?;
    }
    Ok(Exit::Done)
}

pub(in crate::commands) fn of_store(error: StoreError) -> Failure {
    Failure::new(error.to_string())
}

/// Milliseconds since 1970.
pub(super) fn now() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}
