//! The small tables beside rows and jobs: filter traces, which hooks each folder has, and when retention ran.

use crate::row::Sealed;
use crate::trace::{NewTrace, StoredTrace};
use std::collections::BTreeSet;
use tokio_postgres::{Client, Error, Transaction};

pub(super) async fn append_traces(
    transaction: &Transaction<'_>,
    traces: &[NewTrace<'_>],
) -> Result<(), Error> {
    if traces.is_empty() {
        return Ok(());
    }
    let events: Vec<&str> = traces.iter().map(|trace| trace.event_id).collect();
    let sessions: Vec<&str> = traces.iter().map(|trace| trace.session_id).collect();
    let times: Vec<i64> = traces.iter().map(|trace| trace.created_at).collect();
    let keys: Vec<&str> = traces.iter().map(|trace| &*trace.payload.key_id).collect();
    let payloads: Vec<&[u8]> = traces.iter().map(|trace| &*trace.payload.bytes).collect();
    let insert = "INSERT INTO hookgate_filter_traces(event_id, session_id, created_at, key_id, payload)
         SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[], $4::text[], $5::bytea[])
         ON CONFLICT(event_id, session_id) DO NOTHING";
    transaction.execute(insert, &[&events, &sessions, &times, &keys, &payloads]).await?;
    Ok(())
}

/// The newest of an event or session, oldest first.
pub(super) async fn traces(client: &Client, of: &str, limit: usize) -> Result<Vec<StoredTrace>, Error> {
    let find = format!(
        "SELECT event_id, session_id, created_at, key_id, payload FROM hookgate_filter_traces
         WHERE event_id = $1 OR session_id = $1 ORDER BY n DESC LIMIT {limit}"
    );
    let mut traces = Vec::new();
    for row in client.query(&find, &[&of]).await? {
        let (key_id, bytes): (String, Vec<u8>) = (row.try_get(3)?, row.try_get(4)?);
        traces.push(StoredTrace {
            event_id: row.try_get(0)?,
            session_id: row.try_get(1)?,
            created_at: row.try_get(2)?,
            payload: Sealed { key_id: key_id.into(), bytes: bytes.into() },
        });
    }
    traces.reverse();
    Ok(traces)
}

pub(super) async fn install(
    client: &mut Client,
    source: &str,
    hooks: &[String],
) -> Result<Vec<String>, Error> {
    let wanted: BTreeSet<&str> = hooks.iter().map(String::as_str).collect();
    let transaction = client.transaction().await?;
    // doors that load at the same time go one after the other: each sees what the one before left
    transaction.batch_execute("LOCK TABLE hookgate_installed IN SHARE ROW EXCLUSIVE MODE").await?;
    let mut forgotten = Vec::new();
    for row in transaction.query("SELECT hook FROM hookgate_installed WHERE source = $1", &[&source]).await? {
        let hook: String = row.try_get(0)?;
        if wanted.contains(hook.as_str()) {
            continue;
        }
        let take_out = "DELETE FROM hookgate_installed WHERE source = $1 AND hook = $2";
        transaction.execute(take_out, &[&source, &hook]).await?;
        let elsewhere = "SELECT 1 FROM hookgate_installed WHERE hook = $1 LIMIT 1";
        if transaction.query_opt(elsewhere, &[&hook]).await?.is_none() {
            let forget = "UPDATE hookgate_executions SET hook_id = NULL WHERE hook_id = $1";
            transaction.execute(forget, &[&hook]).await?;
            forgotten.push(hook);
        }
    }
    let wanted: Vec<&str> = wanted.into_iter().collect();
    let add = "INSERT INTO hookgate_installed SELECT $1, u FROM unnest($2::text[]) u ON CONFLICT DO NOTHING";
    transaction.execute(add, &[&source, &wanted]).await?;
    transaction.commit().await?;
    Ok(forgotten)
}

pub(super) async fn begin_retention(client: &Client, now: i64, each: i64) -> Result<bool, Error> {
    let begin = "UPDATE hookgate_schema SET pruned_at = $1
                 WHERE pruned_at IS NULL OR pruned_at <= $1::bigint - $2::bigint OR pruned_at > $1";
    Ok(client.execute(begin, &[&now, &each]).await? > 0)
}
