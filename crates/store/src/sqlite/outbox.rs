//! The outbox's table. A lease is a time: whoever finishes a job shows the one that was given out.

use crate::database::Claimant;
use crate::job::{JobCounts, JobFilter, JobState, StoredJob};
use crate::row::Sealed;
use rusqlite::{Connection, Row, TransactionBehavior, params};

const COLUMNS: &str = "id, hook, event_id, state, attempts, due_at, lease_until, created_at, error, key_id, payload, dedup, origin";

pub(super) fn claim(
    connection: &mut Connection,
    now: i64,
    lease_until: i64,
    limit: usize,
    who: Claimant<'_>,
) -> rusqlite::Result<Vec<StoredJob>> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let mut jobs: Vec<StoredJob> = {
        let mut claim = transaction.prepare_cached(&format!(
            "UPDATE outbox SET lease_until = ?2, attempts = attempts + 1, owner = ?4 WHERE id IN (
             SELECT id FROM outbox WHERE state = 0 AND due_at <= ?1 AND (lease_until IS NULL OR lease_until <= ?1)
             AND (?5 IS NULL OR origin IN (SELECT value FROM json_each(?5)))
             ORDER BY due_at, id LIMIT ?3) RETURNING {COLUMNS}"
        ))?;
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let origins = who.origins.map(list_of);
        claim
            .query_map(params![now, lease_until, limit, who.owner, origins], read)?
            .collect::<Result<_, _>>()?
    };
    transaction.commit()?;
    jobs.sort_by_key(|job| (job.due_at, job.id));
    Ok(jobs)
}

pub(super) fn free_leases(connection: &Connection, owner: &str) -> rusqlite::Result<u64> {
    let mut free = connection.prepare_cached(
        "UPDATE outbox SET lease_until = NULL WHERE state = 0 AND owner = ?1 AND lease_until IS NOT NULL",
    )?;
    Ok(u64::try_from(free.execute([owner])?).unwrap_or(u64::MAX))
}

/// Names as a JSON list, which SQLite can look into.
fn list_of(names: &[String]) -> String {
    serde_json::Value::from(names).to_string()
}

pub(super) fn finish(connection: &Connection, id: i64, lease: i64, now: i64) -> rusqlite::Result<bool> {
    let mut finish = connection.prepare_cached(
        "UPDATE outbox SET state = 2, due_at = ?3, lease_until = NULL, error = NULL, key_id = NULL, payload = NULL
         WHERE id = ?1 AND lease_until = ?2",
    )?;
    Ok(finish.execute(params![id, lease, now])? > 0)
}

pub(super) fn fail(
    connection: &Connection,
    id: i64,
    lease: i64,
    due: Option<i64>,
    error: &str,
) -> rusqlite::Result<bool> {
    let state = if due.is_some() { JobState::Due } else { JobState::Dead };
    let mut fail = connection.prepare_cached(
        "UPDATE outbox SET state = ?3, due_at = coalesce(?4, due_at), lease_until = NULL, error = ?5
         WHERE id = ?1 AND lease_until = ?2",
    )?;
    Ok(fail.execute(params![id, lease, state.number(), due, error])? > 0)
}

pub(super) fn list(
    connection: &Connection,
    filter: JobFilter,
    limit: usize,
) -> rusqlite::Result<Vec<StoredJob>> {
    let mut list = connection.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM outbox WHERE ?1 IS NULL OR state = ?1 ORDER BY id LIMIT ?2"
    ))?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    list.query_map(params![filter.state.map(JobState::number), limit], read)?.collect()
}

pub(super) fn counts(connection: &Connection) -> rusqlite::Result<JobCounts> {
    let mut count = connection.prepare_cached("SELECT count(*) FROM outbox WHERE state = ?1")?;
    let mut of = |state: JobState| -> rusqlite::Result<u64> {
        let n: i64 = count.query_row([state.number()], |row| row.get(0))?;
        Ok(u64::try_from(n).unwrap_or(0))
    };
    Ok(JobCounts { waiting: of(JobState::Due)?, dead: of(JobState::Dead)? })
}

pub(super) fn resend(connection: &Connection, id: Option<i64>, now: i64) -> rusqlite::Result<u64> {
    let changed = connection.execute(
        "UPDATE outbox SET state = 0, attempts = 0, due_at = ?2 WHERE state = 1 AND (?1 IS NULL OR id = ?1)",
        params![id, now],
    )?;
    Ok(u64::try_from(changed).unwrap_or(u64::MAX))
}

pub(super) fn next_due(connection: &Connection, origins: Option<&[String]>) -> rusqlite::Result<Option<i64>> {
    let mut next = connection.prepare_cached(
        "SELECT min(max(due_at, coalesce(lease_until, due_at))) FROM outbox WHERE state = 0
         AND (?1 IS NULL OR origin IN (SELECT value FROM json_each(?1)))",
    )?;
    next.query_row([origins.map(list_of)], |row| row.get(0))
}

pub(super) fn clean(connection: &Connection, before: i64) -> rusqlite::Result<u64> {
    let changed = connection.execute("DELETE FROM outbox WHERE state = 2 AND due_at < ?1", [before])?;
    Ok(u64::try_from(changed).unwrap_or(u64::MAX))
}

fn read(row: &Row<'_>) -> rusqlite::Result<StoredJob> {
    let payload = match (row.get::<_, Option<String>>(9)?, row.get::<_, Option<Vec<u8>>>(10)?) {
        (Some(key_id), Some(bytes)) => Some(Sealed { key_id: key_id.into(), bytes: bytes.into() }),
        _ => None,
    };
    Ok(StoredJob {
        id: row.get(0)?,
        hook: row.get(1)?,
        event_id: row.get(2)?,
        state: JobState::of_number(row.get(3)?),
        attempts: row.get(4)?,
        due_at: row.get(5)?,
        lease_until: row.get(6)?,
        created_at: row.get(7)?,
        error: row.get(8)?,
        payload,
        dedup: row.get(11)?,
        origin: row.get(12)?,
    })
}
