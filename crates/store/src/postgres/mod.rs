//! The second database: PostgreSQL, for several machines with one trail.
//!
//! One connection, without TLS: through a socket, the loopback, or a network that is safe by itself. When it is lost it
//! is made anew with the next call; until then rows wait in the spool. Calls block and may be made from anywhere, also
//! from asynchronous code.

mod append;
mod more;
mod outbox;
mod read;
mod schema;

use crate::chain::{Anchor, ChainState, Link};
use crate::database::{Appended, Batch, Claimant, Database, MarkAnchor, Pruned, See};
use crate::error::StoreError;
use crate::job::{JobCounts, JobFilter, StoredJob};
use crate::keys::ChainKey;
use crate::query::{Entry, Filter, Order, Stats};
use crate::row::{Dedup, Sealed};
use crate::trace::StoredTrace;
use std::future::Future;
use std::time::Duration;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio_postgres::{Client, Config, Error, NoTls};

/// How long to wait for a server that does not answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Rows of one step on the way through all.
const STEP: usize = 10_000;

/// Runs one call on the connection.
macro_rules! call {
    ($self:ident, |$client:ident| $call:expr) => {{
        let (runtime, $client, what) = $self.ready()?;
        wait(runtime, async { $call.await }).map_err(|error| fault(what, error))
    }};
}
/// A connection to a server.
#[derive(Debug)]
pub struct Postgres {
    config: Config,
    what: String,
    /// Taken only at the end.
    runtime: Option<Runtime>,
    client: Option<Client>,
}

impl Postgres {
    /// Connects with the words of a connection string (`host=… dbname=…` or `postgres://…`), and brings the schema up
    /// to date.
    pub fn open(connection: &str) -> Result<Postgres, StoreError> {
        // the string may hold a password: no error repeats it
        let mut config: Config = connection
            .parse()
            .map_err(|_| StoreError::Refused("the connection string of PostgreSQL cannot be read".into()))?;
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(PATIENCE);
        }
        let hosts: Vec<String> = config.get_hosts().iter().map(|host| format!("{host:?}")).collect();
        let what = format!("PostgreSQL at {}", hosts.join(", "));
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime =
            runtime.map_err(|why| StoreError::Refused(format!("no runtime for PostgreSQL: {why}")))?;
        let mut postgres = Postgres { config, what, runtime: Some(runtime), client: None };
        postgres.connect()?;
        Ok(postgres)
    }

    fn connect(&mut self) -> Result<(), StoreError> {
        let Postgres { config, what, runtime, client } = self;
        let runtime = runtime.as_ref().ok_or(StoreError::Closed)?;
        *client = Some(wait(runtime, async {
            let (mut client, connection) = config.connect(NoTls).await.map_err(|error| fault(what, error))?;
            // it ends with the client, and the runtime with the store
            tokio::spawn(async move { connection.await.ok() });
            schema::migrate(&mut client, what).await?;
            Ok::<_, StoreError>(client)
        })?);
        Ok(())
    }

    /// The connection, a new one if the old one is lost.
    fn ready(&mut self) -> Result<(&Runtime, &mut Client, &str), StoreError> {
        if self.client.as_ref().is_none_or(Client::is_closed) {
            self.connect()?;
        }
        let Postgres { what, runtime, client, .. } = self;
        match (runtime, client) {
            (Some(runtime), Some(client)) => Ok((runtime, client, what)),
            _ => Err(StoreError::Closed),
        }
    }

    /// Some of all rows, oldest first.
    fn step(&mut self, after: i64) -> Result<Vec<tokio_postgres::Row>, StoreError> {
        let (filter, order) = (Filter::default(), Order::OldestFirst);
        call!(self, |client| read::page(client, &filter, order, Some(after), STEP))
    }

    /// Takes the beginning of one chain out; gives how many rows, and whether there may be more.
    fn prune_chain(
        &mut self,
        chain: i64,
        writer: &str,
        before: i64,
        mark: &MarkAnchor<'_>,
    ) -> Result<(u64, bool), StoreError> {
        let oldest = format!(
            "SELECT n, seq, hash, created_at FROM hookgate_executions WHERE chain = $1 ORDER BY n LIMIT {STEP}"
        );
        let rows = call!(self, |client| client.query(&oldest, &[&chain]))?;
        let read = |row: &tokio_postgres::Row| -> Result<(Anchor, i64), Error> {
            let seq: i64 = row.try_get(1)?;
            let link = Link { seq: seq.unsigned_abs(), hash: read::fixed(row.try_get(2)?) };
            Ok((Anchor { link, last_id: row.try_get(0)?, key_id: None, mark: None }, row.try_get(3)?))
        };
        let (mut last, mut count) = (None, 0u64);
        for row in &rows {
            let (anchor, created_at) = read(row).map_err(|error| fault(&self.what, error))?;
            if created_at >= before {
                break;
            }
            last = Some(anchor);
            count = count.saturating_add(1);
        }
        let Some(anchor) = last else { return Ok((0, false)) };
        let anchor = mark(writer, &anchor);
        call!(self, |client| take_out(client, chain, &anchor))?;
        Ok((count, usize::try_from(count).unwrap_or(0) == STEP))
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.client = None;
        // a runtime that is dropped within asynchronous code panics
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Blocks until it is done. Within asynchronous code a thread of its own does it.
fn wait<T: Send>(runtime: &Runtime, done: impl Future<Output = T> + Send) -> T {
    if Handle::try_current().is_err() {
        return runtime.block_on(done);
    }
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| runtime.block_on(done));
        waiting.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// What follows from an error of the server or the connection: all of them may be over later.
fn fault(what: &str, error: Error) -> StoreError {
    let said = error.as_db_error().map(|error| error.message().to_owned());
    let source = std::error::Error::source(&error).map(ToString::to_string);
    let why = said.or(source).map_or_else(|| error.to_string(), |why| format!("{error}: {why}"));
    StoreError::Unavailable { what: what.to_owned(), why }
}

/// Takes rows out up to an anchor, and keeps the anchor.
async fn take_out(client: &mut Client, chain: i64, anchor: &Anchor) -> Result<(), Error> {
    let transaction = client.transaction().await?;
    let delete = "DELETE FROM hookgate_executions WHERE chain = $1 AND n <= $2";
    transaction.execute(delete, &[&chain, &anchor.last_id]).await?;
    let keep =
        "INSERT INTO hookgate_anchors(chain, seq, hash, last_n, key_id, mark) VALUES($1, $2, $3, $4, $5, $6)
                ON CONFLICT(chain) DO UPDATE SET seq = $2, hash = $3, last_n = $4, key_id = $5, mark = $6
                WHERE hookgate_anchors.seq < $2";
    let seq = i64::try_from(anchor.link.seq).unwrap_or(i64::MAX);
    let (hash, mark) = (anchor.link.hash.as_slice(), anchor.mark.as_ref().map(|mark| mark.as_slice()));
    transaction.execute(keep, &[&chain, &seq, &hash, &anchor.last_id, &anchor.key_id, &mark]).await?;
    transaction.commit().await
}

async fn reseal(client: &mut Client, seals: &[(i64, Sealed<'static>)]) -> Result<(), Error> {
    let ids: Vec<i64> = seals.iter().map(|(id, _)| *id).collect();
    let key_ids: Vec<&str> = seals.iter().map(|(_, sealed)| &*sealed.key_id).collect();
    let bytes: Vec<&[u8]> = seals.iter().map(|(_, sealed)| &*sealed.bytes).collect();
    let put = "UPDATE hookgate_executions e SET key_id = u.key_id, detail = u.detail
               FROM unnest($1::bigint[], $2::text[], $3::bytea[]) u(n, key_id, detail) WHERE e.n = u.n";
    client.execute(put, &[&ids, &key_ids, &bytes]).await.map(|_| ())
}

impl Database for Postgres {
    fn append(&mut self, writer: &str, key: &ChainKey, batch: &Batch<'_>) -> Result<Appended, StoreError> {
        call!(self, |client| append::append(client, writer, key, batch))
    }

    /// The server syncs each transaction unless its owner has set it otherwise.
    fn sync_each(&mut self, _: bool) -> Result<(), StoreError> {
        Ok(())
    }

    fn page(
        &mut self,
        filter: &Filter,
        order: Order,
        after: Option<i64>,
        limit: usize,
    ) -> Result<Vec<Entry>, StoreError> {
        let rows = call!(self, |client| read::page(client, filter, order, after, limit))?;
        let entry = |row| read::read_row(row, |place, row| Entry::of(row, place));
        rows.iter().map(entry).collect::<Result<_, _>>().map_err(|error| fault(&self.what, error))
    }

    fn get(&mut self, id: i64) -> Result<Option<Entry>, StoreError> {
        call!(self, |client| read::get(client, id))
    }

    fn stats(&mut self, filter: &Filter) -> Result<Stats, StoreError> {
        call!(self, |client| read::stats(client, filter))
    }

    fn walk(&mut self, see: &mut See<'_>) -> Result<(), StoreError> {
        let mut after = i64::MIN;
        loop {
            let rows = self.step(after)?;
            for row in &rows {
                let seen = read::read_row(row, |place, row| {
                    after = place.id;
                    see(place, row)
                });
                if !seen.map_err(|error| fault(&self.what, error))?? {
                    return Ok(());
                }
            }
            if rows.len() < STEP {
                return Ok(());
            }
        }
    }

    fn chains(&mut self) -> Result<Vec<ChainState>, StoreError> {
        call!(self, |client| read::chains(client))
    }

    fn prune(&mut self, before: i64, mark: &MarkAnchor<'_>) -> Result<Pruned, StoreError> {
        let chains =
            call!(self, |client| client.query("SELECT n, writer FROM hookgate_chains ORDER BY n", &[]))?;
        let mut pruned = Pruned::default();
        for chain in chains {
            let named = chain.try_get(0).and_then(|number| Ok((number, chain.try_get(1)?)));
            let (number, writer): (i64, String) = named.map_err(|error| fault(&self.what, error))?;
            let (rows, more) = self.prune_chain(number, &writer, before, mark)?;
            pruned.rows = pruned.rows.saturating_add(rows);
            pruned.more |= more;
        }
        let traces = "DELETE FROM hookgate_filter_traces WHERE created_at < $1";
        call!(self, |client| client.execute(traces, &[&before]))?;
        Ok(pruned)
    }

    fn forget_hook(&mut self, hook: &str) -> Result<u64, StoreError> {
        let forget = "UPDATE hookgate_executions SET hook_id = NULL WHERE hook_id = $1";
        call!(self, |client| client.execute(forget, &[&hook]))
    }

    fn sealed_by_others(
        &mut self,
        key_id: &str,
        after: i64,
        limit: usize,
    ) -> Result<Vec<(i64, Dedup, Sealed<'static>)>, StoreError> {
        call!(self, |client| read::sealed_by_others(client, key_id, after, limit))
    }

    fn reseal(&mut self, seals: &[(i64, Sealed<'static>)]) -> Result<(), StoreError> {
        call!(self, |client| reseal(client, seals))
    }

    fn claim(
        &mut self,
        now: i64,
        lease_until: i64,
        limit: usize,
        who: Claimant<'_>,
    ) -> Result<Vec<StoredJob>, StoreError> {
        call!(self, |client| outbox::claim(client, now, lease_until, limit, who))
    }

    fn free_leases(&mut self, owner: &str) -> Result<u64, StoreError> {
        call!(self, |client| outbox::free_leases(client, owner))
    }

    fn finish_job(&mut self, id: i64, lease: i64, now: i64) -> Result<bool, StoreError> {
        call!(self, |client| outbox::finish(client, id, lease, now))
    }

    fn fail_job(&mut self, id: i64, lease: i64, due: Option<i64>, error: &str) -> Result<bool, StoreError> {
        call!(self, |client| outbox::fail(client, id, lease, due, error))
    }

    fn jobs(&mut self, filter: JobFilter, limit: usize) -> Result<Vec<StoredJob>, StoreError> {
        call!(self, |client| outbox::list(client, filter, limit))
    }

    fn resend(&mut self, id: Option<i64>, now: i64) -> Result<u64, StoreError> {
        call!(self, |client| outbox::resend(client, id, now))
    }

    fn job_counts(&mut self) -> Result<JobCounts, StoreError> {
        call!(self, |client| outbox::counts(client))
    }

    fn next_due(&mut self, origins: Option<&[String]>) -> Result<Option<i64>, StoreError> {
        call!(self, |client| outbox::next_due(client, origins))
    }

    fn traces(&mut self, of: &str, limit: usize) -> Result<Vec<StoredTrace>, StoreError> {
        call!(self, |client| more::traces(client, of, limit))
    }

    fn install(&mut self, source: &str, hooks: &[String]) -> Result<Vec<String>, StoreError> {
        call!(self, |client| more::install(client, source, hooks))
    }

    fn begin_retention(&mut self, now: i64, each: i64) -> Result<bool, StoreError> {
        call!(self, |client| more::begin_retention(client, now, each))
    }

    fn clean_jobs(&mut self, before: i64) -> Result<u64, StoreError> {
        call!(self, |client| outbox::clean(client, before))
    }
}
