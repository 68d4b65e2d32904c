//! `hookgate why WHAT`: of a file with an event what every hook would make of it, of an id what the trail tells. Both have
//! their own command, `fire` and `audit why`; here one need not know which.

use crate::args::{AuditArgs, AuditCommand, FireArgs, WhyArgs};
use crate::exit::Exit;
use crate::failure::Failure;
use std::path::Path;

pub(super) fn run(args: &WhyArgs) -> Result<Exit, Failure> {
    let path = Path::new(&args.what);
    if args.what == "-" || path.is_file() {
        return super::fire::run(&FireArgs {
            event: path.to_owned(),
            hooks: args.hooks.clone(),
            config: args.config.clone(),
            json: args.json,
            live: false,
        });
    }
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    if matches!(ending, "json" | "jsonl" | "ndjson") {
        return Err(Failure::new(format!("there is no file {}", args.what)));
    }
    super::audit::run(&AuditArgs {
        command: AuditCommand::Why { id: args.what.clone() },
        data_dir: args.data_dir.clone(),
        config: args.config.clone(),
        json: args.json,
        read_only: false,
    })
}
