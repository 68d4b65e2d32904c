//! The outbox's table. Workers step over jobs that others are just claiming.

use crate::database::Claimant;
use crate::job::{JobCounts, JobFilter, JobState, StoredJob};
use crate::row::Sealed;
use tokio_postgres::{Client, Error, Row};

const COLUMNS: &str = "id, hook, event_id, state, attempts, due_at, lease_until, created_at, error, key_id, payload, dedup, origin";

pub(super) async fn claim(
    client: &Client,
    now: i64,
    lease_until: i64,
    limit: usize,
    who: Claimant<'_>,
) -> Result<Vec<StoredJob>, Error> {
    let claim = format!(
        "UPDATE hookgate_outbox SET lease_until = $2, attempts = attempts + 1, owner = $3 WHERE id IN (
         SELECT id FROM hookgate_outbox WHERE state = 0 AND due_at <= $1 AND (lease_until IS NULL OR lease_until <= $1)
         AND ($4::text[] IS NULL OR origin = ANY($4)) ORDER BY due_at, id LIMIT {limit} FOR UPDATE SKIP LOCKED) RETURNING {COLUMNS}"
    );
    let rows = client.query(&claim, &[&now, &lease_until, &who.owner, &who.origins]).await?;
    let mut jobs = rows.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    jobs.sort_by_key(|job| (job.due_at, job.id));
    Ok(jobs)
}

pub(super) async fn free_leases(client: &Client, owner: &str) -> Result<u64, Error> {
    let free = "UPDATE hookgate_outbox SET lease_until = NULL
                WHERE state = 0 AND owner = $1 AND lease_until IS NOT NULL";
    client.execute(free, &[&owner]).await
}

pub(super) async fn finish(client: &Client, id: i64, lease: i64, now: i64) -> Result<bool, Error> {
    let finish =
        "UPDATE hookgate_outbox SET state = 2, due_at = $3, lease_until = NULL, error = NULL, key_id = NULL,
                  payload = NULL WHERE id = $1 AND lease_until = $2";
    Ok(client.execute(finish, &[&id, &lease, &now]).await? > 0)
}

pub(super) async fn fail(
    client: &Client,
    id: i64,
    lease: i64,
    due: Option<i64>,
    error: &str,
) -> Result<bool, Error> {
    let state = if due.is_some() { JobState::Due } else { JobState::Dead };
    let fail =
        "UPDATE hookgate_outbox SET state = $3, due_at = coalesce($4, due_at), lease_until = NULL, error = $5
                WHERE id = $1 AND lease_until = $2";
    Ok(client.execute(fail, &[&id, &lease, &state.number(), &due, &error]).await? > 0)
}

pub(super) async fn list(client: &Client, filter: JobFilter, limit: usize) -> Result<Vec<StoredJob>, Error> {
    let list = format!(
        "SELECT {COLUMNS} FROM hookgate_outbox WHERE $1::bigint IS NULL OR state = $1 ORDER BY id LIMIT {limit}"
    );
    let rows = client.query(&list, &[&filter.state.map(JobState::number)]).await?;
    rows.iter().map(read).collect()
}

pub(super) async fn counts(client: &Client) -> Result<JobCounts, Error> {
    let count = "SELECT count(*) FILTER (WHERE state = $1), count(*) FILTER (WHERE state = $2)
                 FROM hookgate_outbox WHERE state IN ($1, $2)";
    let row = client.query_one(count, &[&JobState::Due.number(), &JobState::Dead.number()]).await?;
    let of = |index: usize| row.try_get(index).map(|n: i64| u64::try_from(n).unwrap_or(0));
    Ok(JobCounts { waiting: of(0)?, dead: of(1)? })
}

pub(super) async fn resend(client: &Client, id: Option<i64>, now: i64) -> Result<u64, Error> {
    let resend = "UPDATE hookgate_outbox SET state = 0, attempts = 0, due_at = $2
                  WHERE state = 1 AND ($1::bigint IS NULL OR id = $1)";
    client.execute(resend, &[&id, &now]).await
}

pub(super) async fn next_due(client: &Client, origins: Option<&[String]>) -> Result<Option<i64>, Error> {
    let next =
        "SELECT min(greatest(due_at, coalesce(lease_until, due_at))) FROM hookgate_outbox WHERE state = 0
         AND ($1::text[] IS NULL OR origin = ANY($1))";
    client.query_one(next, &[&origins]).await?.try_get(0)
}

pub(super) async fn clean(client: &Client, before: i64) -> Result<u64, Error> {
    client.execute("DELETE FROM hookgate_outbox WHERE state = 2 AND due_at < $1", &[&before]).await
}

fn read(row: &Row) -> Result<StoredJob, Error> {
    let payload = match (row.try_get::<_, Option<String>>(9)?, row.try_get::<_, Option<Vec<u8>>>(10)?) {
        (Some(key_id), Some(bytes)) => Some(Sealed { key_id: key_id.into(), bytes: bytes.into() }),
        _ => None,
    };
    Ok(StoredJob {
        id: row.try_get(0)?,
        hook: row.try_get(1)?,
        event_id: row.try_get(2)?,
        state: JobState::of_number(row.try_get(3)?),
        attempts: u32::try_from(row.try_get::<_, i64>(4)?).unwrap_or(u32::MAX),
        due_at: row.try_get(5)?,
        lease_until: row.try_get(6)?,
        created_at: row.try_get(7)?,
        error: row.try_get(8)?,
        payload,
        dedup: super::read::fixed(row.try_get(11)?),
        origin: row.try_get(12)?,
    })
}
