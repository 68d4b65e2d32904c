//! The schema, by version. A new version is one more text at the end of the list; old ones are never edited.

use super::fault;
use crate::error::StoreError;
use tokio_postgres::Client;

/// Each step takes the schema from the version before it to its own, from version 1 on.
const STEPS: [&str; 2] = [FIRST, SECOND];
/// Processes that begin at once bring the schema up to date one after the other.
const LOCK: &str = "SELECT pg_advisory_xact_lock(4877390)";

const FIRST: &str = "
CREATE TABLE hookgate_tags(tag BYTEA PRIMARY KEY);
CREATE TABLE hookgate_chains(
    n BIGSERIAL PRIMARY KEY, writer TEXT NOT NULL UNIQUE, seq BIGINT NOT NULL, hash BYTEA NOT NULL
);
CREATE TABLE hookgate_epochs(chain BIGINT NOT NULL, start BIGINT NOT NULL, key_id TEXT, PRIMARY KEY(chain, start));
CREATE TABLE hookgate_anchors(
    chain BIGINT PRIMARY KEY, seq BIGINT NOT NULL, hash BYTEA NOT NULL, last_n BIGINT NOT NULL, key_id TEXT, mark BYTEA
);
CREATE TABLE hookgate_executions(
    n BIGSERIAL PRIMARY KEY,
    hook_id TEXT,
    hook_label TEXT NOT NULL,
    hook_version TEXT NOT NULL,
    session_id TEXT NOT NULL,
    tenant_id TEXT,
    agent_id TEXT,
    event_id TEXT NOT NULL,
    event TEXT NOT NULL,
    tool_name TEXT,
    input_hash BYTEA NOT NULL,
    decision TEXT NOT NULL,
    cause TEXT,
    duration_us BIGINT NOT NULL,
    dedup BYTEA NOT NULL UNIQUE,
    error TEXT,
    refused_fields TEXT,
    tokens BIGINT,
    trace_id TEXT,
    created_at BIGINT NOT NULL,
    key_id TEXT,
    detail BYTEA,
    chain BIGINT NOT NULL,
    seq BIGINT NOT NULL,
    hash BYTEA NOT NULL
);
CREATE INDEX hookgate_by_session ON hookgate_executions(session_id, n);
CREATE INDEX hookgate_by_time ON hookgate_executions(created_at);
CREATE VIEW hook_executions AS SELECT
    e.n AS id, hook_id, session_id, event, encode(input_hash, 'hex') AS input_hash, decision,
    duration_us / 1000 AS duration_ms, encode(dedup, 'hex') AS dedup_key, error, detail AS error_detail, created_at,
    tenant_id, agent_id, cause, hook_label, hook_version, refused_fields, tool_name, trace_id, tokens, key_id, event_id,
    c.writer, e.seq, encode(e.hash, 'hex') AS hash
FROM hookgate_executions e JOIN hookgate_chains c ON c.n = e.chain;
CREATE TABLE hookgate_outbox(
    id BIGSERIAL PRIMARY KEY,
    dedup BYTEA NOT NULL UNIQUE,
    hook TEXT NOT NULL,
    event_id TEXT NOT NULL,
    state BIGINT NOT NULL,
    attempts BIGINT NOT NULL,
    due_at BIGINT NOT NULL,
    lease_until BIGINT,
    created_at BIGINT NOT NULL,
    error TEXT,
    key_id TEXT,
    payload BYTEA
);
CREATE INDEX hookgate_outbox_by_due ON hookgate_outbox(state, due_at);
";

/// Firings of JSON hooks, who works on a job, filter traces, which hooks each folder has, and when retention ran.
const SECOND: &str = "
ALTER TABLE hookgate_executions ADD COLUMN times BIGINT;
DROP VIEW hook_executions;
CREATE VIEW hook_executions AS SELECT
    e.n AS id, hook_id, session_id, event, encode(input_hash, 'hex') AS input_hash, decision,
    duration_us / 1000 AS duration_ms, encode(dedup, 'hex') AS dedup_key, error, detail AS error_detail, created_at,
    tenant_id, agent_id, cause, hook_label, hook_version, refused_fields, tool_name, trace_id, tokens,
    coalesce(times, 1) AS times, key_id, event_id, c.writer, e.seq, encode(e.hash, 'hex') AS hash
FROM hookgate_executions e JOIN hookgate_chains c ON c.n = e.chain;
ALTER TABLE hookgate_outbox ADD COLUMN origin TEXT NOT NULL DEFAULT '';
ALTER TABLE hookgate_outbox ADD COLUMN owner TEXT;
CREATE TABLE hookgate_filter_traces(
    n BIGSERIAL PRIMARY KEY,
    event_id TEXT NOT NULL,
    session_id TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    key_id TEXT NOT NULL,
    payload BYTEA NOT NULL,
    UNIQUE(event_id, session_id)
);
CREATE INDEX hookgate_filter_traces_by_session ON hookgate_filter_traces(session_id);
CREATE INDEX hookgate_filter_traces_by_time ON hookgate_filter_traces(created_at);
CREATE TABLE hookgate_installed(source TEXT NOT NULL, hook TEXT NOT NULL, PRIMARY KEY(source, hook));
CREATE INDEX hookgate_installed_by_hook ON hookgate_installed(hook);
ALTER TABLE hookgate_schema ADD COLUMN pruned_at BIGINT;
";

/// Brings the schema up to date.
pub(super) async fn migrate(client: &mut Client, what: &str) -> Result<(), StoreError> {
    let known = i64::try_from(STEPS.len()).unwrap_or(i64::MAX);
    let fault = |error| fault(what, error);
    let transaction = client.transaction().await.map_err(fault)?;
    transaction.batch_execute(LOCK).await.map_err(fault)?;
    let there = transaction
        .query_opt(
            "SELECT 1 FROM pg_tables WHERE tablename = 'hookgate_schema' AND schemaname = current_schema()",
            &[],
        )
        .await
        .map_err(fault)?;
    let found: i64 = match there {
        Some(_) => {
            let row =
                transaction.query_one("SELECT version FROM hookgate_schema", &[]).await.map_err(fault)?;
            row.try_get(0).map_err(fault)?
        }
        None => {
            let begin = "CREATE TABLE hookgate_schema(version BIGINT NOT NULL); INSERT INTO hookgate_schema VALUES(0)";
            transaction.batch_execute(begin).await.map_err(fault)?;
            0
        }
    };
    if found > known {
        return Err(StoreError::Newer { what: what.to_owned(), found, known });
    }
    for (number, step) in (1..).zip(STEPS) {
        if number > found {
            transaction.batch_execute(step).await.map_err(fault)?;
        }
    }
    transaction.execute("UPDATE hookgate_schema SET version = $1", &[&known]).await.map_err(fault)?;
    transaction.commit().await.map_err(fault)
}
