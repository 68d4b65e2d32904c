//! `audit verify`: is the trail what was written?

use super::of_store;
use crate::exit::Exit;
use crate::failure::Failure;
use hookgate_store::audit::Audit;
use hookgate_store::chain::Checkpoint;
use serde_json::json;
use std::io::{self, Write};
use std::path::Path;

pub(super) fn run(audit: &mut Audit, against: Option<&Path>, json: bool) -> Result<Exit, Failure> {
    let verified = match against {
        Some(path) => {
            let text = std::fs::read_to_string(path).map_err(|error| {
                Failure::new(format!("the checkpoint {} cannot be read: {error}", path.display()))
            })?;
            let checkpoint = Checkpoint::parse(&text).map_err(of_store)?;
            audit.verify_against(&checkpoint).map_err(of_store)?
        }
        None => audit.verify().map_err(of_store)?,
    };
    let mut stdout = io::stdout().lock();
    let fault = verified.fault.as_ref().map(ToString::to_string);
    if json {
        let answer = json!({
            "rows": verified.rows, "without_key": verified.without_key, "details": verified.details,
            "key_lost_at": verified.key_lost.as_ref().map(|(writer, seq)| json!({"writer": writer, "seq": seq})),
            "fault": fault,
        });
        writeln!(stdout, "{answer}")?;
    } else {
        match &fault {
            None => writeln!(stdout, "{} rows, none changed, missing, added or moved", verified.rows)?,
            Some(fault) => writeln!(stdout, "the trail was changed: {fault}")?,
        }
        if verified.without_key > 0 {
            let n = verified.without_key;
            writeln!(stdout, "{n} rows were chained without a key, which shows accidents only")?;
        }
        if let Some((writer, seq)) = &verified.key_lost {
            writeln!(
                stdout,
                "from place {seq} on, writer {writer} wrote without the key that it had before"
            )?;
        }
    }
    let sound = fault.is_none() && verified.key_lost.is_none();
    Ok(if sound { Exit::Done } else { Exit::Problems })
}
