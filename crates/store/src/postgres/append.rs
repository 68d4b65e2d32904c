//! Adding rows and jobs: arrays, so that a thousand rows are one statement.

use crate::chain::{Link, start};
use crate::database::{Appended, Batch};
use crate::job::NewJob;
use crate::keys::ChainKey;
use crate::row::{Framed, hook_tag};
use futures_util::stream::{self, StreamExt, TryStreamExt};
use hookgate_core::future::BoxFuture;
use std::collections::HashSet;
use tokio_postgres::{Client, Error, Statement, Transaction};

const INSERT: &str = "INSERT INTO hookgate_executions(hook_id, hook_label, hook_version, session_id, tenant_id, agent_id, event_id,
             event, tool_name, input_hash, decision, cause, duration_us, dedup, error, refused_fields, tokens, trace_id,
             created_at, key_id, detail, seq, hash, times, chain)
             SELECT u.*, $25 FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[],
             $7::text[], $8::text[], $9::text[], $10::bytea[], $11::text[], $12::text[], $13::bigint[], $14::bytea[],
             $15::text[], $16::text[], $17::bigint[], $18::text[], $19::bigint[], $20::text[], $21::bytea[],
             $22::bigint[], $23::bytea[], $24::bigint[]) u ON CONFLICT(dedup) DO NOTHING";

/// Rows in one statement.
const AT_ONCE: usize = 1024;

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(super) async fn append(
    client: &mut Client,
    writer: &str,
    key: &ChainKey,
    batch: &Batch<'_>,
) -> Result<Appended, Error> {
    // rows that are there already are rare: they are looked for when it turns out that there are some
    let mut looks = false;
    loop {
        let transaction = client.transaction().await?;
        if let Some(rows) = append_rows(&transaction, writer, key, &batch.rows, looks).await? {
            let jobs = append_jobs(&transaction, &batch.jobs).await?;
            super::more::append_traces(&transaction, &batch.traces).await?;
            transaction.commit().await?;
            return Ok(Appended { rows, jobs });
        }
        transaction.rollback().await?;
        looks = true;
    }
}

/// `None`: some rows are there already, or came from elsewhere while this was under way; the chain would have a gap.
async fn append_rows(
    transaction: &Transaction<'_>,
    writer: &str,
    key: &ChainKey,
    rows: &[Framed<'_>],
    looks: bool,
) -> Result<Option<u64>, Error> {
    if rows.is_empty() {
        return Ok(Some(0));
    }
    let (chain, first) = lock_chain(transaction, writer).await?;
    let mut seen: HashSet<Vec<u8>> = HashSet::new();
    if looks {
        let dedups: Vec<&[u8]> = rows.iter().map(|framed| framed.row.dedup.as_slice()).collect();
        let there = "SELECT dedup FROM hookgate_executions WHERE dedup = ANY($1)";
        for row in transaction.query(there, &[&dedups]).await? {
            seen.insert(row.try_get(0)?);
        }
    }
    let mut head = first;
    let mut links = Vec::with_capacity(rows.len());
    for framed in rows {
        if seen.insert(framed.row.dedup.to_vec()) {
            head = head.next(key, framed.canonical);
            links.push((framed, head));
        }
    }
    let statement = transaction.prepare(INSERT).await?;
    // the next statement is put together while the server works on the one before
    let mut inserts: Vec<BoxFuture<'_, Result<u64, Error>>> = Vec::new();
    for some in links.chunks(AT_ONCE) {
        inserts.push(Box::pin(insert(transaction, &statement, chain, some)));
    }
    let added: Vec<u64> = stream::iter(inserts).buffered(2).try_collect().await?;
    if usize::try_from(added.iter().sum::<u64>()).unwrap_or(usize::MAX) != links.len() {
        return Ok(None);
    }
    if head != first {
        keep_head(transaction, chain, first, head, key).await?;
        keep_tags(transaction, rows).await?;
    }
    Ok(Some(head.seq.saturating_sub(first.seq)))
}

/// The chain and its head. Who else writes to it waits.
async fn lock_chain(transaction: &Transaction<'_>, writer: &str) -> Result<(i64, Link), Error> {
    let begin =
        "INSERT INTO hookgate_chains(writer, seq, hash) VALUES($1, 0, $2) ON CONFLICT(writer) DO NOTHING";
    let find = "SELECT n, seq, hash FROM hookgate_chains WHERE writer = $1 FOR UPDATE";
    let row = match transaction.query_opt(find, &[&writer]).await? {
        Some(row) => row,
        None => {
            transaction.execute(begin, &[&writer, &start(writer).hash.as_slice()]).await?;
            transaction.query_one(find, &[&writer]).await?
        }
    };
    let seq: i64 = row.try_get(1)?;
    Ok((row.try_get(0)?, Link { seq: seq.unsigned_abs(), hash: super::read::fixed(row.try_get(2)?) }))
}

async fn insert(
    transaction: &Transaction<'_>,
    statement: &Statement,
    chain: i64,
    rows: &[(&Framed<'_>, Link)],
) -> Result<u64, Error> {
    macro_rules! column {
        (|$row:ident, $link:ident| $value:expr) => {
            rows.iter()
                .map(|(framed, $link)| {
                    let ($row, _) = (&framed.row, $link);
                    $value
                })
                .collect::<Vec<_>>()
        };
    }
    transaction
        .execute(
            statement,
            &[
                &column!(|row, _l| row.hook),
                &column!(|row, _l| row.label),
                &column!(|row, _l| row.version),
                &column!(|row, _l| row.session_id),
                &column!(|row, _l| row.tenant_id),
                &column!(|row, _l| row.agent_id),
                &column!(|row, _l| row.event_id),
                &column!(|row, _l| row.event),
                &column!(|row, _l| row.tool_name),
                &column!(|row, _l| row.input_hash.as_slice()),
                &column!(|row, _l| row.decision),
                &column!(|row, _l| row.cause),
                &column!(|row, _l| signed(row.duration_us)),
                &column!(|row, _l| row.dedup.as_slice()),
                &column!(|row, _l| row.error),
                &column!(|row, _l| row.refused_fields.as_deref()),
                &column!(|row, _l| row.tokens.map(signed)),
                &column!(|row, _l| row.trace_id),
                &column!(|row, _l| row.created_at),
                &column!(|row, _l| row.detail.as_ref().map(|sealed| &*sealed.key_id)),
                &column!(|row, _l| row.detail.as_ref().map(|sealed| &*sealed.bytes)),
                &column!(|_row, link| signed(link.seq)),
                &column!(|_row, link| link.hash.as_slice()),
                &column!(|row, _l| (row.times > 1).then_some(signed(row.times))),
                &chain,
            ],
        )
        .await
}

async fn keep_head(
    transaction: &Transaction<'_>,
    chain: i64,
    first: Link,
    head: Link,
    key: &ChainKey,
) -> Result<(), Error> {
    let keep = "UPDATE hookgate_chains SET seq = $2, hash = $3 WHERE n = $1";
    transaction.execute(keep, &[&chain, &signed(head.seq), &head.hash.as_slice()]).await?;
    let last = "SELECT key_id FROM hookgate_epochs WHERE chain = $1 ORDER BY start DESC LIMIT 1";
    let same = match transaction.query_opt(last, &[&chain]).await? {
        Some(row) => row.try_get::<_, Option<String>>(0)?.as_deref() == key.id(),
        None => false,
    };
    if !same {
        let add = "INSERT INTO hookgate_epochs(chain, start, key_id) VALUES($1, $2, $3)";
        transaction.execute(add, &[&chain, &signed(first.seq.saturating_add(1)), &key.id()]).await?;
    }
    Ok(())
}

/// The hooks that ever were, by which an event's rows are found.
async fn keep_tags(transaction: &Transaction<'_>, rows: &[Framed<'_>]) -> Result<(), Error> {
    let hooks: HashSet<&str> = rows.iter().map(|framed| framed.row.hook).collect();
    let mut tags: Vec<Vec<u8>> = hooks.into_iter().map(|hook| hook_tag(hook).to_vec()).collect();
    // in one order, so that two writers do not wait for each other
    tags.sort();
    let add = "INSERT INTO hookgate_tags SELECT t.tag FROM unnest($1::bytea[]) t(tag)
               WHERE NOT EXISTS (SELECT 1 FROM hookgate_tags k WHERE k.tag = t.tag) ON CONFLICT DO NOTHING";
    transaction.execute(add, &[&tags]).await?;
    Ok(())
}

async fn append_jobs(transaction: &Transaction<'_>, jobs: &[NewJob<'_>]) -> Result<u64, Error> {
    if jobs.is_empty() {
        return Ok(0);
    }
    let mut seen = HashSet::new();
    let jobs: Vec<&NewJob<'_>> = jobs.iter().filter(|job| seen.insert(job.dedup)).collect();
    let texts = |of: fn(&NewJob<'_>) -> String| jobs.iter().map(|job| of(job)).collect::<Vec<_>>();
    let dedups: Vec<&[u8]> = jobs.iter().map(|job| job.dedup.as_slice()).collect();
    let payloads: Vec<&[u8]> = jobs.iter().map(|job| &*job.payload.bytes).collect();
    let times: Vec<i64> = jobs.iter().map(|job| job.created_at).collect();
    transaction
        .execute(
            "INSERT INTO hookgate_outbox(dedup, hook, event_id, created_at, due_at, key_id, payload, origin, state, attempts)
             SELECT u.a, u.b, u.c, u.d, u.d, u.e, u.f, u.g, 0, 0 FROM unnest($1::bytea[], $2::text[], $3::text[],
             $4::bigint[], $5::text[], $6::bytea[], $7::text[]) u(a, b, c, d, e, f, g) ON CONFLICT(dedup) DO NOTHING",
            &[
                &dedups,
                &texts(|job| job.hook.to_owned()),
                &texts(|job| job.event_id.to_owned()),
                &times,
                &texts(|job| job.payload.key_id.clone().into_owned()),
                &payloads,
                &texts(|job| job.origin.to_owned()),
            ],
        )
        .await
}
