//! Everything that only reads.

use crate::chain::{Anchor, ChainState, Epoch, Link};
use crate::query::{Entry, Filter, Group, InChain, Order, Stats};
use crate::row::{Dedup, Row, Sealed, dedup};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Error};

const COLUMNS: &str = "e.n, c.writer, e.seq, e.hash, e.hook_id, e.hook_label, e.hook_version, e.session_id, e.tenant_id,
    e.agent_id, e.event_id, e.event, e.tool_name, e.input_hash, e.decision, e.cause, e.duration_us, e.dedup, e.error,
    e.refused_fields, e.tokens, e.trace_id, e.created_at, e.key_id, e.detail,
    e.times";
const FROM: &str = "FROM hookgate_executions e JOIN hookgate_chains c ON c.n = e.chain";

/// A value of a condition.
type Value = Box<dyn ToSql + Sync + Send>;

/// A condition with its values.
struct Where {
    text: String,
    values: Vec<Value>,
}

impl Where {
    /// Adds a condition in which `?` stands for the value.
    fn and(&mut self, condition: &str, value: Value) {
        self.values.push(value);
        let mark = format!("${}", self.values.len());
        self.text.push_str(" AND ");
        self.text.push_str(&condition.replace('?', &mark));
    }

    async fn of(client: &Client, filter: &Filter) -> Result<Where, Error> {
        let mut all = Where { text: "TRUE".into(), values: Vec::new() };
        for (condition, wanted) in [
            ("e.session_id = ?", &filter.session_id),
            ("e.tenant_id = ?", &filter.tenant_id),
            ("e.agent_id = ?", &filter.agent_id),
            ("(e.hook_id = ? OR e.hook_label = ?)", &filter.hook),
            ("e.event = ?", &filter.event),
            ("e.tool_name = ?", &filter.tool_name),
            ("e.decision = ?", &filter.decision),
            ("e.trace_id = ?", &filter.trace_id),
        ] {
            if let Some(wanted) = wanted {
                all.and(condition, Box::new(wanted.clone()));
            }
        }
        if let Some(event_id) = &filter.event_id {
            let mut keys: Vec<Vec<u8>> = Vec::new();
            for row in client.query("SELECT tag FROM hookgate_tags", &[]).await? {
                keys.push(dedup(&fixed(row.try_get(0)?), event_id).to_vec());
            }
            all.and("e.dedup = ANY(?)", Box::new(keys));
        }
        if let Some(hash) = &filter.input_hash {
            all.and("e.input_hash = ?", Box::new(hash.to_vec()));
        }
        if let Some(since) = filter.since {
            all.and("e.created_at >= ?", Box::new(since));
        }
        if let Some(until) = filter.until {
            all.and("e.created_at < ?", Box::new(until));
        }
        Ok(all)
    }

    fn values(&self) -> Vec<&(dyn ToSql + Sync)> {
        self.values.iter().map(|value| &**value as &(dyn ToSql + Sync)).collect()
    }
}

pub(super) async fn page(
    client: &Client,
    filter: &Filter,
    order: Order,
    after: Option<i64>,
    limit: usize,
) -> Result<Vec<tokio_postgres::Row>, Error> {
    let mut wanted = Where::of(client, filter).await?;
    let (beyond, direction) = match order {
        Order::OldestFirst => ("e.n > ?", "ASC"),
        Order::NewestFirst => ("e.n < ?", "DESC"),
    };
    if let Some(after) = after {
        wanted.and(beyond, Box::new(after));
    }
    let text =
        format!("SELECT {COLUMNS} {FROM} WHERE {} ORDER BY e.n {direction} LIMIT {limit}", wanted.text);
    client.query(&text, &wanted.values()).await
}

pub(super) async fn get(client: &Client, id: i64) -> Result<Option<Entry>, Error> {
    let row = client.query_opt(&format!("SELECT {COLUMNS} {FROM} WHERE e.n = $1"), &[&id]).await?;
    row.map(|row| read_row(&row, |place, row| Entry::of(row, place))).transpose()
}

pub(super) async fn stats(client: &Client, filter: &Filter) -> Result<Stats, Error> {
    let wanted = Where::of(client, filter).await?;
    let text = format!(
        "SELECT e.hook_label, e.decision, count(*), min(e.created_at), max(e.created_at),
         sum(e.duration_us)::bigint, max(e.duration_us) FROM hookgate_executions e WHERE {} GROUP BY 1, 2",
        wanted.text
    );
    let mut stats = Stats::default();
    for row in client.query(&text, &wanted.values()).await? {
        let number = |at: usize| row.try_get::<_, i64>(at).map(i64::unsigned_abs);
        let group = Group {
            rows: number(2)?,
            first: row.try_get(3)?,
            last: row.try_get(4)?,
            total_us: number(5)?,
            longest_us: number(6)?,
        };
        stats.add(row.try_get(0)?, row.try_get(1)?, &group);
    }
    Ok(stats)
}

/// Puts a row together from its columns.
pub(super) fn read_row<T>(
    row: &tokio_postgres::Row,
    see: impl FnOnce(InChain<'_>, &Row<'_>) -> T,
) -> Result<T, Error> {
    let number = |at: usize| row.try_get::<_, i64>(at).map(i64::unsigned_abs);
    let place = InChain {
        id: row.try_get(0)?,
        writer: row.try_get(1)?,
        seq: number(2)?,
        hash: fixed(row.try_get(3)?),
    };
    let detail = match (row.try_get::<_, Option<&str>>(23)?, row.try_get::<_, Option<&[u8]>>(24)?) {
        (Some(key_id), Some(bytes)) => Some(Sealed { key_id: key_id.into(), bytes: bytes.into() }),
        _ => None,
    };
    let shown = Row {
        hook: row.try_get::<_, Option<&str>>(4)?.unwrap_or_default(),
        label: row.try_get(5)?,
        version: row.try_get(6)?,
        session_id: row.try_get(7)?,
        tenant_id: row.try_get(8)?,
        agent_id: row.try_get(9)?,
        event_id: row.try_get(10)?,
        event: row.try_get(11)?,
        tool_name: row.try_get(12)?,
        input_hash: fixed(row.try_get(13)?),
        decision: row.try_get(14)?,
        cause: row.try_get(15)?,
        duration_us: number(16)?,
        dedup: fixed(row.try_get(17)?),
        error: row.try_get(18)?,
        refused_fields: row.try_get::<_, Option<&str>>(19)?.map(Into::into),
        tokens: row.try_get::<_, Option<i64>>(20)?.map(i64::unsigned_abs),
        times: row.try_get::<_, Option<i64>>(25)?.map_or(1, i64::unsigned_abs),
        trace_id: row.try_get(21)?,
        created_at: row.try_get(22)?,
        detail,
    };
    Ok(see(place, &shown))
}

/// Bytes of a stated number. Others are what somebody bent; they read as zeros and the chain tells.
pub(super) fn fixed<const N: usize>(bytes: &[u8]) -> [u8; N] {
    bytes.try_into().unwrap_or([0; N])
}

pub(super) async fn chains(client: &Client) -> Result<Vec<ChainState>, Error> {
    let all = "SELECT c.n, c.writer, c.seq, c.hash, a.seq, a.hash, a.last_n, a.key_id, a.mark
               FROM hookgate_chains c LEFT JOIN hookgate_anchors a ON a.chain = c.n ORDER BY c.n";
    let epochs = "SELECT start, key_id FROM hookgate_epochs WHERE chain = $1 ORDER BY start";
    let mut states = Vec::new();
    for row in client.query(all, &[]).await? {
        let link = |seq: i64, hash: &[u8]| Link { seq: seq.unsigned_abs(), hash: fixed(hash) };
        let anchor = match row.try_get::<_, Option<i64>>(4)? {
            Some(seq) => Some(Anchor {
                link: link(seq, row.try_get(5)?),
                last_id: row.try_get(6)?,
                key_id: row.try_get(7)?,
                mark: row.try_get::<_, Option<&[u8]>>(8)?.map(fixed::<32>),
            }),
            None => None,
        };
        let mut of_chain = Vec::new();
        for epoch in client.query(epochs, &[&row.try_get::<_, i64>(0)?]).await? {
            let from = epoch.try_get::<_, i64>(0)?.unsigned_abs();
            of_chain.push(Epoch { from, key_id: epoch.try_get(1)? });
        }
        let head = link(row.try_get(2)?, row.try_get(3)?);
        states.push(ChainState { writer: row.try_get(1)?, head, anchor, epochs: of_chain });
    }
    Ok(states)
}

pub(super) async fn sealed_by_others(
    client: &Client,
    key_id: &str,
    after: i64,
    limit: usize,
) -> Result<Vec<(i64, Dedup, Sealed<'static>)>, Error> {
    let find = format!(
        "SELECT n, dedup, key_id, detail FROM hookgate_executions
         WHERE n > $1 AND key_id IS NOT NULL AND key_id <> $2 ORDER BY n LIMIT {limit}"
    );
    let mut found = Vec::new();
    for row in client.query(&find, &[&after, &key_id]).await? {
        let (key_id, bytes): (String, Vec<u8>) = (row.try_get(2)?, row.try_get(3)?);
        let sealed = Sealed { key_id: key_id.into(), bytes: bytes.into() };
        found.push((row.try_get(0)?, fixed(row.try_get(1)?), sealed));
    }
    Ok(found)
}
