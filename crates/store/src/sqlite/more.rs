//! The small tables beside rows and jobs: filter traces, which hooks each folder has, and when retention ran.

use crate::row::Sealed;
use crate::trace::{NewTrace, StoredTrace};
use rusqlite::{Connection, Transaction, TransactionBehavior, params};
use std::collections::BTreeSet;

pub(super) fn append_traces(transaction: &Transaction<'_>, traces: &[NewTrace<'_>]) -> rusqlite::Result<()> {
    for trace in traces {
        let mut insert = transaction.prepare_cached(
            "INSERT INTO filter_traces(event_id, session_id, created_at, key_id, payload) VALUES(?1, ?2, ?3, ?4, ?5)
             ON CONFLICT(event_id, session_id) DO NOTHING",
        )?;
        let (key_id, bytes) = (&*trace.payload.key_id, &*trace.payload.bytes);
        insert.execute(params![trace.event_id, trace.session_id, trace.created_at, key_id, bytes])?;
    }
    Ok(())
}

/// The newest of an event or session, oldest first.
pub(super) fn traces(connection: &Connection, of: &str, limit: usize) -> rusqlite::Result<Vec<StoredTrace>> {
    let mut find = connection.prepare_cached(
        "SELECT event_id, session_id, created_at, key_id, payload FROM filter_traces
         WHERE event_id = ?1 OR session_id = ?1 ORDER BY n DESC LIMIT ?2",
    )?;
    let found = find.query_map(params![of, i64::try_from(limit).unwrap_or(i64::MAX)], |row| {
        let (key_id, bytes): (String, Vec<u8>) = (row.get(3)?, row.get(4)?);
        Ok(StoredTrace {
            event_id: row.get(0)?,
            session_id: row.get(1)?,
            created_at: row.get(2)?,
            payload: Sealed { key_id: key_id.into(), bytes: bytes.into() },
        })
    })?;
    let mut traces: Vec<StoredTrace> = found.collect::<Result<_, _>>()?;
    traces.reverse();
    Ok(traces)
}

pub(super) fn install(
    connection: &mut Connection,
    source: &str,
    hooks: &[String],
) -> rusqlite::Result<Vec<String>> {
    let wanted: BTreeSet<&str> = hooks.iter().map(String::as_str).collect();
    let before = |connection: &Connection| -> rusqlite::Result<BTreeSet<String>> {
        let mut find = connection.prepare_cached("SELECT hook FROM installed WHERE source = ?1")?;
        find.query_map([source], |row| row.get(0))?.collect()
    };
    if before(connection)?.iter().map(String::as_str).eq(wanted.iter().copied()) {
        return Ok(Vec::new());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let gone: Vec<String> =
        before(&transaction)?.into_iter().filter(|hook| !wanted.contains(hook.as_str())).collect();
    let mut forgotten = Vec::new();
    for hook in gone {
        transaction
            .execute("DELETE FROM installed WHERE source = ?1 AND hook = ?2", params![source, hook])?;
        let elsewhere: bool = transaction.query_row(
            "SELECT EXISTS(SELECT 1 FROM installed WHERE hook = ?1)",
            [&hook],
            |row| row.get(0),
        )?;
        if !elsewhere {
            transaction.execute("UPDATE hooks SET hook_id = NULL WHERE hook_id = ?1", [&hook])?;
            forgotten.push(hook);
        }
    }
    for hook in wanted {
        transaction
            .execute("INSERT OR IGNORE INTO installed(source, hook) VALUES(?1, ?2)", [source, hook])?;
    }
    transaction.execute("UPDATE state SET generation = generation + 1", [])?;
    transaction.commit()?;
    Ok(forgotten)
}

pub(super) fn begin_retention(connection: &Connection, now: i64, each: i64) -> rusqlite::Result<bool> {
    let begun = connection.execute(
        "UPDATE state SET pruned_at = ?1 WHERE pruned_at IS NULL OR pruned_at <= ?1 - ?2 OR pruned_at > ?1",
        [now, each],
    )?;
    Ok(begun > 0)
}
