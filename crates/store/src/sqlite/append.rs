//! Everything that changes rows: adding, retention, deleted hooks, new seals.

use super::intern::{Cache, Numbers};
use crate::chain::{Anchor, Link, start};
use crate::database::{Appended, Batch, MarkAnchor, Pruned};
use crate::job::NewJob;
use crate::keys::ChainKey;
use crate::row::{Hash, Row, Sealed};
use rusqlite::{Connection, OptionalExtension, Statement, Transaction, TransactionBehavior, params};

/// Rows that retention takes out in one transaction, so that writers get their turn.
const AT_ONCE: i64 = 10_000;

/// A chain as a transaction found it.
struct Found {
    number: i64,
    head: Link,
    /// The key of the last rows; the outer `None`: there are no rows yet.
    key_id: Option<Option<String>>,
}

fn begin(connection: &mut Connection) -> rusqlite::Result<Transaction<'_>> {
    connection.transaction_with_behavior(TransactionBehavior::Immediate)
}

/// The numbers in the database are those that SQLite can hold.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(super) fn append(
    connection: &mut Connection,
    cache: &mut Cache,
    writer: &str,
    key: &ChainKey,
    batch: &Batch<'_>,
) -> rusqlite::Result<Appended> {
    let transaction = begin(connection)?;
    let appended = Appended {
        rows: append_rows(&transaction, cache, writer, key, batch)?,
        jobs: append_jobs(&transaction, &batch.jobs)?,
    };
    super::more::append_traces(&transaction, &batch.traces)?;
    transaction.commit()?;
    Ok(appended)
}

/// What every row has.
const INSERT: &str = "
INSERT INTO executions(n, hook, subject, kind, chain, seq, created_at, duration_us, input_hash, dedup, hash, event_id)
VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12) ON CONFLICT(event_id, dedup) DO NOTHING";

/// All that a row can have: the rest is NULL in most rows, and handing that over costs too.
const INSERT_MORE: &str = "
INSERT INTO executions(n, hook, subject, kind, chain, seq, created_at, duration_us, input_hash, dedup, hash, event_id,
error, refused_fields, tokens, trace_id, key_id, detail, times)
VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19)
ON CONFLICT(event_id, dedup) DO NOTHING";

/// Whether a row has more than what every row has.
fn has_more(row: &Row<'_>) -> bool {
    let Row { error, refused_fields, tokens, trace_id, detail, times, .. } = row;
    let has_text = error.is_some() || refused_fields.is_some() || trace_id.is_some();
    has_text || tokens.is_some() || detail.is_some() || *times > 1
}

/// Where a row comes to stand.
struct Place {
    n: i64,
    chain: i64,
    link: Link,
}

/// Gives a row to its statement.
fn bind(insert: &mut Statement<'_>, row: &Row<'_>, numbers: Numbers, place: &Place) -> rusqlite::Result<()> {
    let Numbers { hook, subject, kind } = numbers;
    for (column, number) in (1..).zip([
        place.n,
        hook,
        subject,
        kind,
        place.chain,
        signed(place.link.seq),
        row.created_at,
        signed(row.duration_us),
    ]) {
        insert.raw_bind_parameter(column, number)?;
    }
    insert.raw_bind_parameter(9, row.input_hash)?;
    insert.raw_bind_parameter(10, row.dedup)?;
    insert.raw_bind_parameter(11, place.link.hash)?;
    insert.raw_bind_parameter(12, row.event_id)?;
    if has_more(row) {
        insert.raw_bind_parameter(13, row.error)?;
        insert.raw_bind_parameter(14, row.refused_fields.as_deref())?;
        insert.raw_bind_parameter(15, row.tokens.map(signed))?;
        insert.raw_bind_parameter(16, row.trace_id)?;
        insert.raw_bind_parameter(17, row.detail.as_ref().map(|sealed| &*sealed.key_id))?;
        insert.raw_bind_parameter(18, row.detail.as_ref().map(|sealed| &*sealed.bytes))?;
        insert.raw_bind_parameter(19, (row.times > 1).then_some(signed(row.times)))?;
    }
    Ok(())
}

fn append_rows(
    transaction: &Transaction<'_>,
    cache: &mut Cache,
    writer: &str,
    key: &ChainKey,
    batch: &Batch<'_>,
) -> rusqlite::Result<u64> {
    if batch.rows.is_empty() {
        return Ok(0);
    }
    cache.renew(transaction)?;
    let chain = chain_of(transaction, writer)?;
    let (mut head, mut number, mut added) = (chain.head, last_number(transaction)?, 0u64);
    let (mut insert, mut insert_more) =
        (transaction.prepare_cached(INSERT)?, transaction.prepare_cached(INSERT_MORE)?);
    for framed in &batch.rows {
        let numbers = cache.numbers(transaction, framed)?;
        let next = head.next(key, framed.canonical);
        let place = Place { n: number.saturating_add(1), chain: chain.number, link: next };
        let insert = if has_more(&framed.row) { &mut insert_more } else { &mut insert };
        bind(insert, &framed.row, numbers, &place)?;
        let changed = insert.raw_execute()?;
        // a row that is there already leaves no gap: its place goes to the next one
        if changed > 0 {
            (head, number, added) = (next, number.saturating_add(1), added.saturating_add(1));
        }
    }
    if added > 0 {
        let first = chain.head.seq.saturating_add(1);
        keep_epoch(transaction, &chain, first, key)?;
        let mut keep = transaction.prepare_cached("UPDATE chains SET seq = ?2, hash = ?3 WHERE n = ?1")?;
        keep.execute(params![chain.number, signed(head.seq), head.hash])?;
    }
    Ok(added)
}

fn chain_of(transaction: &Transaction<'_>, writer: &str) -> rusqlite::Result<Found> {
    let mut find = transaction.prepare_cached("SELECT n, seq, hash FROM chains WHERE writer = ?1")?;
    let found = find.query_row([writer], |row| {
        Ok((row.get(0)?, Link { seq: row.get::<_, i64>(1)?.unsigned_abs(), hash: row.get(2)? }))
    });
    let (number, head) = match found.optional()? {
        Some(found) => found,
        None => {
            let head = start(writer);
            let mut add =
                transaction.prepare_cached("INSERT INTO chains(writer, seq, hash) VALUES(?1, 0, ?2)")?;
            (add.insert(params![writer, head.hash])?, head)
        }
    };
    let mut last = transaction
        .prepare_cached("SELECT key_id FROM epochs WHERE chain = ?1 ORDER BY start DESC LIMIT 1")?;
    let key_id = last.query_row([number], |row| row.get(0)).optional()?;
    Ok(Found { number, head, key_id })
}

/// Notes from which place on another key makes the hashes.
fn keep_epoch(
    transaction: &Transaction<'_>,
    chain: &Found,
    first: u64,
    key: &ChainKey,
) -> rusqlite::Result<()> {
    if chain.key_id.as_ref().is_none_or(|key_id| key_id.as_deref() != key.id()) {
        let mut add =
            transaction.prepare_cached("INSERT INTO epochs(chain, start, key_id) VALUES(?1, ?2, ?3)")?;
        add.execute(params![chain.number, signed(first), key.id()])?;
    }
    Ok(())
}

/// The last number that a row has or had: numbers are not used again after retention.
fn last_number(transaction: &Transaction<'_>) -> rusqlite::Result<i64> {
    let mut last = transaction.prepare_cached(
        "SELECT max(coalesce((SELECT max(n) FROM executions), 0), coalesce((SELECT max(last_n) FROM anchors), 0))",
    )?;
    last.query_row([], |row| row.get(0))
}

fn append_jobs(transaction: &Transaction<'_>, jobs: &[NewJob<'_>]) -> rusqlite::Result<u64> {
    let mut added = 0u64;
    if jobs.is_empty() {
        return Ok(added);
    }
    let mut insert = transaction.prepare_cached(
        "INSERT INTO outbox(dedup, hook, event_id, state, attempts, due_at, created_at, key_id, payload, origin)
         VALUES(?1, ?2, ?3, 0, 0, ?4, ?4, ?5, ?6, ?7) ON CONFLICT(dedup) DO NOTHING",
    )?;
    for job in jobs {
        let (key_id, bytes) = (&*job.payload.key_id, &*job.payload.bytes);
        let changed = insert.execute(params![
            job.dedup,
            job.hook,
            job.event_id,
            job.created_at,
            key_id,
            bytes,
            job.origin
        ])?;
        added = added.saturating_add(u64::from(changed > 0));
    }
    Ok(added)
}

pub(super) fn prune(
    connection: &mut Connection,
    before: i64,
    mark: &MarkAnchor<'_>,
) -> rusqlite::Result<Pruned> {
    let transaction = begin(connection)?;
    let chains: Vec<(i64, String)> = {
        let mut all = transaction.prepare_cached("SELECT n, writer FROM chains ORDER BY n")?;
        all.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<Result<_, _>>()?
    };
    let mut pruned = Pruned::default();
    for (chain, writer) in chains {
        let (rows, more) = prune_chain(&transaction, chain, &writer, before, mark)?;
        pruned.rows = pruned.rows.saturating_add(rows);
        pruned.more |= more;
    }
    transaction.execute("DELETE FROM filter_traces WHERE created_at < ?1", [before])?;
    if pruned.rows > 0 && !pruned.more {
        // what no row names any more goes too: sessions are about people
        transaction.execute_batch(
            "DELETE FROM subjects WHERE NOT EXISTS (SELECT 1 FROM executions e WHERE e.subject = subjects.n)",
        )?;
    }
    if pruned.rows > 0 {
        transaction.execute("UPDATE state SET generation = generation + 1", [])?;
    }
    transaction.commit()?;
    Ok(pruned)
}

/// Takes the beginning of one chain out, and marks where it begins from then on.
fn prune_chain(
    transaction: &Transaction<'_>,
    chain: i64,
    writer: &str,
    before: i64,
    mark: &MarkAnchor<'_>,
) -> rusqlite::Result<(u64, bool)> {
    let mut oldest = transaction.prepare_cached(
        "SELECT n, seq, hash, created_at FROM executions WHERE chain = ?1 ORDER BY n LIMIT ?2",
    )?;
    let mut rows = oldest.query(params![chain, AT_ONCE])?;
    let mut last: Option<Anchor> = None;
    let mut count = 0i64;
    while let Some(row) = rows.next()? {
        if row.get::<_, i64>(3)? >= before {
            break;
        }
        let link = Link { seq: row.get::<_, i64>(1)?.unsigned_abs(), hash: row.get::<_, Hash>(2)? };
        last = Some(Anchor { link, last_id: row.get(0)?, key_id: None, mark: None });
        count = count.saturating_add(1);
    }
    drop(rows);
    let Some(anchor) = last else { return Ok((0, false)) };
    let anchor = mark(writer, &anchor);
    transaction
        .execute("DELETE FROM executions WHERE chain = ?1 AND n <= ?2", params![chain, anchor.last_id])?;
    transaction.execute(
        "INSERT INTO anchors(chain, seq, hash, last_n, key_id, mark) VALUES(?1, ?2, ?3, ?4, ?5, ?6)
         ON CONFLICT(chain) DO UPDATE SET seq = ?2, hash = ?3, last_n = ?4, key_id = ?5, mark = ?6",
        params![chain, signed(anchor.link.seq), anchor.link.hash, anchor.last_id, anchor.key_id, anchor.mark],
    )?;
    Ok((count.unsigned_abs(), count == AT_ONCE))
}

pub(super) fn forget_hook(connection: &mut Connection, hook: &str) -> rusqlite::Result<u64> {
    let transaction = begin(connection)?;
    let changed = transaction.execute("UPDATE hooks SET hook_id = NULL WHERE hook_id = ?1", [hook])?;
    transaction.execute("UPDATE state SET generation = generation + 1", [])?;
    transaction.commit()?;
    Ok(u64::try_from(changed).unwrap_or(u64::MAX))
}

pub(super) fn reseal(connection: &mut Connection, seals: &[(i64, Sealed<'static>)]) -> rusqlite::Result<()> {
    let transaction = begin(connection)?;
    {
        let mut put =
            transaction.prepare_cached("UPDATE executions SET key_id = ?2, detail = ?3 WHERE n = ?1")?;
        for (id, sealed) in seals {
            put.execute(params![id, &*sealed.key_id, &*sealed.bytes])?;
        }
    }
    transaction.commit()
}
