//! The schema, by version. A new version is one more text at the end of the list; old ones are never edited.
//!
//! Texts that repeat stand once, in `hooks`, `subjects` and `kinds`; the view `hook_executions` shows the rows with the
//! columns that people and other programs know.

use crate::error::StoreError;
use rusqlite::{Connection, TransactionBehavior};

/// Each step takes the schema from the version before it to its own, from version 1 on.
const STEPS: [&str; 3] = [FIRST, SECOND, THIRD];

const FIRST: &str = "
CREATE TABLE hooks(
    n INTEGER PRIMARY KEY,
    hook_id TEXT,               -- NULL once the hook is deleted
    tag BLOB NOT NULL,          -- a hash of the key, which stays
    label TEXT NOT NULL,
    version TEXT NOT NULL
) STRICT;
CREATE INDEX hooks_by_key ON hooks(hook_id);
CREATE TABLE subjects(n INTEGER PRIMARY KEY, session_id TEXT NOT NULL, tenant_id TEXT, agent_id TEXT) STRICT;
CREATE INDEX subjects_by_session ON subjects(session_id);
CREATE TABLE kinds(
    n INTEGER PRIMARY KEY, event TEXT NOT NULL, tool_name TEXT, decision TEXT NOT NULL, cause TEXT
) STRICT;
CREATE INDEX kinds_by_event ON kinds(event);
CREATE TABLE chains(
    n INTEGER PRIMARY KEY, writer TEXT NOT NULL UNIQUE, seq INTEGER NOT NULL, hash BLOB NOT NULL
) STRICT;
CREATE TABLE epochs(chain INTEGER NOT NULL, start INTEGER NOT NULL, key_id TEXT, PRIMARY KEY(chain, start)) STRICT;
CREATE TABLE anchors(
    chain INTEGER PRIMARY KEY, seq INTEGER NOT NULL, hash BLOB NOT NULL, last_n INTEGER NOT NULL, key_id TEXT, mark BLOB
) STRICT;
CREATE TABLE state(one INTEGER PRIMARY KEY CHECK(one = 1), generation INTEGER NOT NULL) STRICT;
INSERT INTO state VALUES(1, 0);
CREATE TABLE executions(
    n INTEGER PRIMARY KEY,
    hook INTEGER NOT NULL,
    subject INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    chain INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    duration_us INTEGER NOT NULL,
    input_hash BLOB NOT NULL,
    dedup BLOB NOT NULL,
    hash BLOB NOT NULL,
    event_id TEXT NOT NULL,
    error TEXT,
    refused_fields TEXT,
    tokens INTEGER,
    trace_id TEXT,
    key_id TEXT,
    detail BLOB
) STRICT;
CREATE UNIQUE INDEX executions_by_dedup ON executions(dedup);
CREATE INDEX executions_by_subject ON executions(subject);
CREATE INDEX executions_by_time ON executions(created_at);
CREATE VIEW hook_executions AS SELECT
    e.n AS id, h.hook_id, s.session_id, k.event, lower(hex(e.input_hash)) AS input_hash, k.decision,
    e.duration_us / 1000 AS duration_ms, lower(hex(e.dedup)) AS dedup_key, e.error, e.detail AS error_detail,
    e.created_at, s.tenant_id, s.agent_id, k.cause, h.label AS hook_label, h.version AS hook_version,
    e.refused_fields, k.tool_name, e.trace_id, e.tokens, e.key_id, e.event_id, c.writer, e.seq,
    lower(hex(e.hash)) AS hash
FROM executions e JOIN hooks h ON h.n = e.hook JOIN subjects s ON s.n = e.subject JOIN kinds k ON k.n = e.kind
    JOIN chains c ON c.n = e.chain;
CREATE TABLE outbox(
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    dedup BLOB NOT NULL UNIQUE,
    hook TEXT NOT NULL,
    event_id TEXT NOT NULL,
    state INTEGER NOT NULL,     -- 0 due, 1 dead, 2 done
    attempts INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    lease_until INTEGER,
    created_at INTEGER NOT NULL,
    error TEXT,
    key_id TEXT,
    payload BLOB
) STRICT;
CREATE INDEX outbox_by_due ON outbox(state, due_at);
";

/// Firings of JSON hooks, who works on a job, filter traces, which hooks each folder has, and when retention ran.
const SECOND: &str = "
ALTER TABLE executions ADD COLUMN times INTEGER;    -- NULL stands for one
DROP VIEW hook_executions;
CREATE VIEW hook_executions AS SELECT
    e.n AS id, h.hook_id, s.session_id, k.event, lower(hex(e.input_hash)) AS input_hash, k.decision,
    e.duration_us / 1000 AS duration_ms, lower(hex(e.dedup)) AS dedup_key, e.error, e.detail AS error_detail,
    e.created_at, s.tenant_id, s.agent_id, k.cause, h.label AS hook_label, h.version AS hook_version,
    e.refused_fields, k.tool_name, e.trace_id, e.tokens, coalesce(e.times, 1) AS times, e.key_id, e.event_id, c.writer,
    e.seq, lower(hex(e.hash)) AS hash
FROM executions e JOIN hooks h ON h.n = e.hook JOIN subjects s ON s.n = e.subject JOIN kinds k ON k.n = e.kind
    JOIN chains c ON c.n = e.chain;
ALTER TABLE outbox ADD COLUMN origin TEXT NOT NULL DEFAULT '';
ALTER TABLE outbox ADD COLUMN owner TEXT;
CREATE TABLE filter_traces(
    n INTEGER PRIMARY KEY,
    event_id TEXT NOT NULL,
    session_id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    key_id TEXT NOT NULL,
    payload BLOB NOT NULL,
    UNIQUE(event_id, session_id)
) STRICT;
CREATE INDEX filter_traces_by_session ON filter_traces(session_id);
CREATE INDEX filter_traces_by_time ON filter_traces(created_at);
CREATE TABLE installed(source TEXT NOT NULL, hook TEXT NOT NULL, PRIMARY KEY(source, hook)) STRICT, WITHOUT ROWID;
CREATE INDEX installed_by_hook ON installed(hook);
ALTER TABLE state ADD COLUMN pruned_at INTEGER;
";

/// Hook and event by the event first. Doors count their events up, so that rows that come together stand together in the
/// index; by the hash alone, each row of a large trail touched a page of its own. It answers questions for an event, too.
const THIRD: &str = "
DROP INDEX executions_by_dedup;
CREATE UNIQUE INDEX executions_by_event ON executions(event_id, dedup);
";

/// Whether a schema that cannot be changed is this program's.
pub(super) fn check(found: i64, what: &str) -> Result<(), StoreError> {
    let known = i64::try_from(STEPS.len()).unwrap_or(i64::MAX);
    if found > known {
        return Err(StoreError::Newer { what: what.to_owned(), found, known });
    }
    if found < known {
        return Err(StoreError::Refused(format!(
            "{what} has schema version {found} and may not be changed; this program reads version {known}, so let it open \
             a copy that it may write to"
        )));
    }
    Ok(())
}

/// Brings the schema up to date. Several processes may do so at once.
pub(super) fn migrate(connection: &mut Connection, what: &str) -> Result<(), StoreError> {
    let version = |connection: &Connection| -> rusqlite::Result<i64> {
        connection.query_row("PRAGMA user_version", [], |row| row.get(0))
    };
    let known = i64::try_from(STEPS.len()).unwrap_or(i64::MAX);
    let fault = |error| super::fault(what, error);
    if version(connection).map_err(fault)? == known {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(fault)?;
    // another process may have been faster
    let found = version(&transaction).map_err(fault)?;
    if found > known {
        return Err(StoreError::Newer { what: what.to_owned(), found, known });
    }
    for (number, step) in (1..).zip(STEPS) {
        if number > found {
            transaction.execute_batch(step).map_err(fault)?;
        }
    }
    transaction.pragma_update(None, "user_version", known).map_err(fault)?;
    transaction.commit().map_err(fault)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_each_earlier_version_keeps_its_rows() {
        for version in 1..STEPS.len() {
            let mut connection = Connection::open_in_memory().unwrap();
            STEPS[..version].iter().for_each(|step| connection.execute_batch(step).unwrap());
            connection.pragma_update(None, "user_version", version as i64).unwrap();
            let insert =
                "INSERT INTO executions(hook, subject, kind, chain, seq, created_at, duration_us, input_hash,
                dedup, hash, event_id) VALUES(1, 1, 1, 1, 1, 5, 9, x'00', x'01', x'02', 'e-1')";
            connection.execute_batch(insert).unwrap();
            migrate(&mut connection, "x").unwrap();
            migrate(&mut connection, "x").unwrap();
            let count = |connection: &Connection| -> i64 {
                connection.query_row("SELECT count(*) FROM executions", [], |row| row.get(0)).unwrap()
            };
            assert_eq!(count(&connection), 1, "{version}");
            // the same hook and event again is refused as before
            connection.execute_batch(insert).unwrap_err();
            connection.execute_batch(&insert.replace("x'01'", "x'07'")).unwrap();
            assert_eq!(count(&connection), 2, "{version}");
        }
    }
}
