//! Everything that only reads.
//!
//! A filter's texts are first turned into the numbers that stand for them, so that the rows of one session come from an
//! index however many others there are.

use super::intern::{Hook, Kind, Subject, Texts};
use crate::chain::{Anchor, ChainState, Epoch, Link};
use crate::database::See;
use crate::error::StoreError;
use crate::query::{Entry, Filter, Group, InChain, Order, Stats};
use crate::row::{Dedup, Row, Sealed};
use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, OptionalExtension, params_from_iter};
use std::collections::HashMap;

const COLUMNS: &str = "e.n, e.chain, e.seq, e.hash, e.hook, e.subject, e.kind, e.created_at, e.duration_us,
    e.input_hash, e.dedup, e.event_id, e.error, e.refused_fields, e.tokens, e.trace_id, e.key_id, e.detail, e.times";

/// A condition over `executions e` with its values.
struct Where {
    text: String,
    values: Vec<Value>,
}

impl Where {
    fn and(&mut self, condition: &str, values: impl IntoIterator<Item = Value>) {
        self.text.push_str(" AND ");
        self.text.push_str(condition);
        self.values.extend(values);
    }

    fn of(filter: &Filter) -> Where {
        let mut all = Where { text: "1".into(), values: Vec::new() };
        let text = |text: &String| Value::from(text.clone());
        let subject = [
            ("session_id", &filter.session_id),
            ("tenant_id", &filter.tenant_id),
            ("agent_id", &filter.agent_id),
        ];
        let kind =
            [("event", &filter.event), ("tool_name", &filter.tool_name), ("decision", &filter.decision)];
        for (column, table, fields) in [("subject", "subjects", subject), ("kind", "kinds", kind)] {
            let wanted = fields.iter().filter_map(|(name, value)| Some((name, value.as_ref()?)));
            let (names, values): (Vec<String>, Vec<Value>) =
                wanted.map(|(name, value)| (format!("{name} = ?"), text(value))).unzip();
            if !names.is_empty() {
                let condition =
                    format!("e.{column} IN (SELECT n FROM {table} WHERE {})", names.join(" AND "));
                all.and(&condition, values);
            }
        }
        if let Some(hook) = &filter.hook {
            all.and(
                "e.hook IN (SELECT n FROM hooks WHERE hook_id = ? OR label = ?)",
                [text(hook), text(hook)],
            );
        }
        if let Some(event_id) = &filter.event_id {
            all.and("e.event_id = ?", [text(event_id)]);
        }
        if let Some(hash) = &filter.input_hash {
            all.and("e.input_hash = ?", [Value::Blob(hash.to_vec())]);
        }
        if let Some(trace) = &filter.trace_id {
            all.and("e.trace_id = ?", [text(trace)]);
        }
        all.and_times(filter);
        all
    }

    fn and_times(&mut self, filter: &Filter) {
        if let Some(since) = filter.since {
            self.and("e.created_at >= ?", [Value::Integer(since)]);
        }
        if let Some(until) = filter.until {
            self.and("e.created_at < ?", [Value::Integer(until)]);
        }
    }
}

pub(super) fn page(
    connection: &Connection,
    filter: &Filter,
    order: Order,
    after: Option<i64>,
    limit: usize,
) -> rusqlite::Result<Vec<Entry>> {
    let mut wanted = Where::of(filter);
    let (sign, direction) = match order {
        Order::OldestFirst => (">", "ASC"),
        Order::NewestFirst => ("<", "DESC"),
    };
    if let Some(after) = after {
        wanted.and(&format!("e.n {sign} ?"), [Value::Integer(after)]);
    }
    wanted.values.push(Value::Integer(i64::try_from(limit).unwrap_or(i64::MAX)));
    let text =
        format!("SELECT {COLUMNS} FROM executions e WHERE {} ORDER BY e.n {direction} LIMIT ?", wanted.text);
    let mut entries = Vec::new();
    let mut texts = Texts::default();
    let mut statement = connection.prepare_cached(&text)?;
    let mut rows = statement.query(params_from_iter(wanted.values))?;
    while let Some(row) = rows.next()? {
        read_row(connection, row, &mut texts, |place, row| entries.push(Entry::of(row, place)))?;
    }
    Ok(entries)
}

pub(super) fn get(connection: &Connection, id: i64) -> rusqlite::Result<Option<Entry>> {
    let mut texts = Texts::default();
    let mut statement =
        connection.prepare_cached(&format!("SELECT {COLUMNS} FROM executions e WHERE e.n = ?1"))?;
    let mut rows = statement.query([id])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    read_row(connection, row, &mut texts, |place, row| Entry::of(row, place)).map(Some)
}

pub(super) fn stats(connection: &Connection, filter: &Filter) -> rusqlite::Result<Stats> {
    let wanted = Where::of(filter);
    let mut statement = connection.prepare_cached(&format!(
        "SELECT e.hook, e.kind, e.created_at, e.duration_us FROM executions e WHERE {}",
        wanted.text
    ))?;
    // SQLite would sort all rows to group them
    let mut groups: HashMap<(i64, i64), Group> = HashMap::new();
    let mut rows = statement.query(params_from_iter(wanted.values))?;
    while let Some(row) = rows.next()? {
        let (at, us) = (row.get(2)?, row.get::<_, i64>(3)?.unsigned_abs());
        let none = Group { rows: 0, first: at, last: at, total_us: 0, longest_us: 0 };
        groups.entry((row.get(0)?, row.get(1)?)).or_insert(none).add(at, us);
    }
    let mut stats = Stats::default();
    for ((of_hook, of_kind), group) in groups {
        stats.add(&hook(connection, of_hook)?.label, &kind(connection, of_kind)?.decision, &group);
    }
    Ok(stats)
}

/// The inner result is the looker's own.
pub(super) fn walk(
    connection: &Connection,
    texts: &mut Texts,
    see: &mut See<'_>,
) -> rusqlite::Result<Result<(), StoreError>> {
    texts.clear();
    let mut statement =
        connection.prepare_cached(&format!("SELECT {COLUMNS} FROM executions e ORDER BY e.n"))?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        match read_row(connection, row, texts, |place, row| see(place, row))? {
            Ok(true) => {}
            Ok(false) => break,
            Err(error) => return Ok(Err(error)),
        }
    }
    Ok(Ok(()))
}

/// Puts a row together from its columns and the texts that they name. A number that names nothing is a row that somebody
/// bent: it reads as empty, and the chain tells.
fn read_row<T>(
    connection: &Connection,
    row: &rusqlite::Row<'_>,
    texts: &mut Texts,
    see: impl FnOnce(InChain<'_>, &Row<'_>) -> T,
) -> rusqlite::Result<T> {
    let hook = texts.hooks.get(row.get(4)?, || hook(connection, row.get(4)?))?;
    let subject = texts.subjects.get(row.get(5)?, || subject(connection, row.get(5)?))?;
    let kind = texts.kinds.get(row.get(6)?, || kind(connection, row.get(6)?))?;
    let chain = row.get(1)?;
    let writer = texts.chains.get(chain, || writer(connection, chain))?;
    let number = |at| row.get::<_, i64>(at).map(i64::unsigned_abs);
    let key_id = text(row, 16)?;
    let detail = match (key_id, row.get_ref(17)?) {
        (Some(key_id), ValueRef::Blob(bytes)) => Some(Sealed { key_id: key_id.into(), bytes: bytes.into() }),
        _ => None,
    };
    let place = InChain { id: row.get(0)?, writer: &writer, seq: number(2)?, hash: blob(row, 3)? };
    let shown = Row {
        hook: hook.hook_id.as_deref().unwrap_or_default(),
        label: &hook.label,
        version: &hook.version,
        session_id: &subject.session_id,
        tenant_id: subject.tenant_id.as_deref(),
        agent_id: subject.agent_id.as_deref(),
        event_id: text(row, 11)?.unwrap_or_default(),
        event: &kind.event,
        tool_name: kind.tool_name.as_deref(),
        input_hash: blob(row, 9)?,
        decision: &kind.decision,
        cause: kind.cause.as_deref(),
        duration_us: number(8)?,
        dedup: blob(row, 10)?,
        error: text(row, 12)?,
        refused_fields: text(row, 13)?.map(Into::into),
        tokens: row.get::<_, Option<i64>>(14)?.map(i64::unsigned_abs),
        times: row.get::<_, Option<i64>>(18)?.map_or(1, i64::unsigned_abs),
        trace_id: text(row, 15)?,
        created_at: row.get(7)?,
        detail,
    };
    Ok(see(place, &shown))
}

fn text<'r>(row: &'r rusqlite::Row<'_>, at: usize) -> rusqlite::Result<Option<&'r str>> {
    Ok(row.get_ref(at)?.as_str_or_null()?)
}

/// Bytes of a stated number. Others are what somebody bent; they read as zeros and the chain tells.
fn blob<const N: usize>(row: &rusqlite::Row<'_>, at: usize) -> rusqlite::Result<[u8; N]> {
    let bytes = row.get_ref(at)?.as_blob_or_null()?.unwrap_or_default();
    Ok(bytes.try_into().unwrap_or([0; N]))
}

fn hook(connection: &Connection, number: i64) -> rusqlite::Result<Hook> {
    let mut find = connection.prepare_cached("SELECT hook_id, label, version FROM hooks WHERE n = ?1")?;
    let found = find.query_row([number], |row| {
        Ok(Hook { hook_id: row.get(0)?, label: row.get(1)?, version: row.get(2)? })
    });
    let none = Hook { hook_id: None, label: String::new(), version: String::new() };
    Ok(found.optional()?.unwrap_or(none))
}

fn subject(connection: &Connection, number: i64) -> rusqlite::Result<Subject> {
    let mut find =
        connection.prepare_cached("SELECT session_id, tenant_id, agent_id FROM subjects WHERE n = ?1")?;
    let found = find.query_row([number], |row| {
        Ok(Subject { session_id: row.get(0)?, tenant_id: row.get(1)?, agent_id: row.get(2)? })
    });
    let none = Subject { session_id: String::new(), tenant_id: None, agent_id: None };
    Ok(found.optional()?.unwrap_or(none))
}

fn kind(connection: &Connection, number: i64) -> rusqlite::Result<Kind> {
    let mut find =
        connection.prepare_cached("SELECT event, tool_name, decision, cause FROM kinds WHERE n = ?1")?;
    let found = find.query_row([number], |row| {
        Ok(Kind { event: row.get(0)?, tool_name: row.get(1)?, decision: row.get(2)?, cause: row.get(3)? })
    });
    let none = Kind { event: String::new(), tool_name: None, decision: String::new(), cause: None };
    Ok(found.optional()?.unwrap_or(none))
}

fn writer(connection: &Connection, number: i64) -> rusqlite::Result<String> {
    let mut find = connection.prepare_cached("SELECT writer FROM chains WHERE n = ?1")?;
    Ok(find.query_row([number], |row| row.get(0)).optional()?.unwrap_or_default())
}

pub(super) fn chains(connection: &Connection) -> rusqlite::Result<Vec<ChainState>> {
    let mut all = connection.prepare_cached(
        "SELECT c.n, c.writer, c.seq, c.hash, a.seq, a.hash, a.last_n, a.key_id, a.mark
         FROM chains c LEFT JOIN anchors a ON a.chain = c.n ORDER BY c.n",
    )?;
    let mut epochs =
        connection.prepare_cached("SELECT start, key_id FROM epochs WHERE chain = ?1 ORDER BY start")?;
    let mut states = Vec::new();
    let mut rows = all.query([])?;
    while let Some(row) = rows.next()? {
        let anchor = match row.get::<_, Option<i64>>(4)? {
            Some(seq) => Some(Anchor {
                link: Link { seq: seq.unsigned_abs(), hash: blob(row, 5)? },
                last_id: row.get(6)?,
                key_id: row.get(7)?,
                mark: row.get(8)?,
            }),
            None => None,
        };
        let of_chain = epochs.query_map([row.get::<_, i64>(0)?], |row| {
            Ok(Epoch { from: row.get::<_, i64>(0)?.unsigned_abs(), key_id: row.get(1)? })
        })?;
        states.push(ChainState {
            writer: row.get(1)?,
            head: Link { seq: row.get::<_, i64>(2)?.unsigned_abs(), hash: blob(row, 3)? },
            anchor,
            epochs: of_chain.collect::<Result<_, _>>()?,
        });
    }
    Ok(states)
}

pub(super) fn sealed_by_others(
    connection: &Connection,
    key_id: &str,
    after: i64,
    limit: usize,
) -> rusqlite::Result<Vec<(i64, Dedup, Sealed<'static>)>> {
    let mut find = connection.prepare_cached(
        "SELECT n, dedup, key_id, detail FROM executions WHERE n > ?1 AND key_id IS NOT NULL AND key_id <> ?2
         ORDER BY n LIMIT ?3",
    )?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let found = find.query_map(rusqlite::params![after, key_id, limit], |row| {
        let (key_id, bytes): (String, Vec<u8>) = (row.get(2)?, row.get(3)?);
        Ok((row.get(0)?, row.get(1)?, Sealed { key_id: key_id.into(), bytes: bytes.into() }))
    })?;
    found.collect()
}
