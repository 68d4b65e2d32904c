//! `audit export`: rows for other programs, one at a time, so that a long trail needs no memory.

use super::of_store;
use super::shown::time;
use crate::args::ExportFormat;
use crate::exit::Exit;
use crate::failure::Failure;
use hookgate_store::audit::Audit;
use hookgate_store::query::{Entry, Filter};
use serde_json::{Value, json};
use std::io::{self, BufWriter, Write};

pub(super) fn run(audit: &mut Audit, filter: &Filter, format: ExportFormat) -> Result<Exit, Failure> {
    let mut out = BufWriter::new(io::stdout().lock());
    match format {
        ExportFormat::Jsonl => {
            for row in audit.export(filter) {
                writeln!(out, "{}", object(&row.map_err(of_store)?)?)?;
            }
        }
        ExportFormat::Cloudevents => {
            for row in audit.export(filter) {
                writeln!(out, "{}", cloud_event(&row.map_err(of_store)?)?)?;
            }
        }
        ExportFormat::Csv => {
            let mut table = csv::Writer::from_writer(&mut out);
            let written = |error: csv::Error| Failure::new(format!("the table cannot be written: {error}"));
            for (number, row) in audit.export(filter).enumerate() {
                let row = object(&row.map_err(of_store)?)?;
                let Some(columns) = row.as_object() else { continue };
                if number == 0 {
                    table.write_record(columns.keys()).map_err(written)?;
                }
                table.write_record(columns.values().map(cell)).map_err(written)?;
            }
            table.flush()?;
        }
    }
    out.flush()?;
    Ok(Exit::Done)
}

fn object(row: &Entry) -> Result<Value, Failure> {
    serde_json::to_value(row).map_err(|error| Failure::new(format!("a row cannot be written: {error}")))
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// CloudEvents 1.0 in JSON: the row is its data.
fn cloud_event(row: &Entry) -> Result<Value, Failure> {
    Ok(json!({
        "specversion": "1.0",
        "id": row.dedup_key,
        "source": format!("hookgate:{}", row.writer),
        "type": format!("hookgate.hook.{}", row.decision),
        "subject": row.session_id,
        "time": time(row.created_at),
        "datacontenttype": "application/json",
        "data": object(row)?,
    }))
}
