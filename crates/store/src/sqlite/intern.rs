//! Texts that repeat stand once in the database. Here are the numbers of those met lately, both ways, with a bound.

use crate::row::{Framed, Row, hook_tag};
use rusqlite::{Connection, OptionalExtension, params};
use std::collections::HashMap;
use std::sync::Arc;

/// More are forgotten all at once and looked up again.
const MOST: usize = 32_768;

/// From texts to numbers, for writing.
#[derive(Debug, Default)]
pub(super) struct Cache {
    /// What the database's numbers were valid for: retention and deleted hooks begin a new generation.
    generation: Option<i64>,
    hooks: Written,
    subjects: Written,
    kinds: Written,
    scratch: Vec<u8>,
}

/// The numbers of the texts of one table.
#[derive(Debug, Default)]
struct Written {
    /// Rows that come one after the other are often of one session.
    last: (Vec<u8>, i64),
    all: HashMap<Vec<u8>, i64>,
}

/// The numbers of a row's texts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Numbers {
    pub(super) hook: i64,
    pub(super) subject: i64,
    pub(super) kind: i64,
}

impl Cache {
    pub(super) fn clear(&mut self) {
        *self = Cache::default();
    }

    /// Forgets all if the database has begun a new generation.
    pub(super) fn renew(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        let mut statement = connection.prepare_cached("SELECT generation FROM state")?;
        let generation = statement.query_row([], |row| row.get(0))?;
        if self.generation != Some(generation) {
            self.clear();
            self.generation = Some(generation);
        }
        Ok(())
    }

    /// The numbers of a row's texts; new texts are written.
    pub(super) fn numbers(
        &mut self,
        connection: &Connection,
        framed: &Framed<'_>,
    ) -> rusqlite::Result<Numbers> {
        let row = &framed.row;
        self.scratch.clear();
        self.scratch.extend_from_slice(framed.wording);
        self.scratch.extend_from_slice(row.hook.as_bytes());
        Ok(Numbers {
            hook: self.hooks.number(&self.scratch, || hook(connection, row))?,
            subject: self.subjects.number(framed.subject, || subject(connection, row))?,
            kind: self.kinds.number(framed.kind, || kind(connection, row))?,
        })
    }
}

impl Written {
    /// The number of a text, which is never empty; `make` asks the database for it.
    fn number(&mut self, text: &[u8], make: impl FnOnce() -> rusqlite::Result<i64>) -> rusqlite::Result<i64> {
        if self.last.0 == text {
            return Ok(self.last.1);
        }
        let number = match self.all.get(text) {
            Some(number) => *number,
            None => {
                let number = make()?;
                if self.all.len() >= MOST {
                    self.all.clear();
                }
                self.all.insert(text.to_owned(), number);
                number
            }
        };
        self.last.0.clear();
        self.last.0.extend_from_slice(text);
        self.last.1 = number;
        Ok(number)
    }
}

fn hook(connection: &Connection, row: &Row<'_>) -> rusqlite::Result<i64> {
    let mut find = connection
        .prepare_cached("SELECT n FROM hooks WHERE hook_id = ?1 AND label = ?2 AND version = ?3")?;
    let wanted = params![row.hook, row.label, row.version];
    if let Some(number) = find.query_row(wanted, |row| row.get(0)).optional()? {
        return Ok(number);
    }
    let mut add = connection
        .prepare_cached("INSERT INTO hooks(hook_id, tag, label, version) VALUES(?1, ?2, ?3, ?4)")?;
    add.insert(params![row.hook, hook_tag(row.hook), row.label, row.version])
}

fn subject(connection: &Connection, row: &Row<'_>) -> rusqlite::Result<i64> {
    let mut find = connection.prepare_cached(
        "SELECT n FROM subjects WHERE session_id = ?1 AND tenant_id IS ?2 AND agent_id IS ?3",
    )?;
    let wanted = params![row.session_id, row.tenant_id, row.agent_id];
    if let Some(number) = find.query_row(wanted, |row| row.get(0)).optional()? {
        return Ok(number);
    }
    let mut add = connection
        .prepare_cached("INSERT INTO subjects(session_id, tenant_id, agent_id) VALUES(?1, ?2, ?3)")?;
    add.insert(wanted)
}

fn kind(connection: &Connection, row: &Row<'_>) -> rusqlite::Result<i64> {
    let mut find = connection.prepare_cached(
        "SELECT n FROM kinds WHERE event = ?1 AND tool_name IS ?2 AND decision = ?3 AND cause IS ?4",
    )?;
    let wanted = params![row.event, row.tool_name, row.decision, row.cause];
    if let Some(number) = find.query_row(wanted, |row| row.get(0)).optional()? {
        return Ok(number);
    }
    let mut add = connection
        .prepare_cached("INSERT INTO kinds(event, tool_name, decision, cause) VALUES(?1, ?2, ?3, ?4)")?;
    add.insert(wanted)
}

/// From numbers to texts, for going through all rows. Valid within one read of the database.
#[derive(Debug, Default)]
pub(super) struct Texts {
    pub(super) hooks: Known<Hook>,
    pub(super) subjects: Known<Subject>,
    pub(super) kinds: Known<Kind>,
    pub(super) chains: Known<String>,
}

/// What numbers of one table stand for.
#[derive(Debug)]
pub(super) struct Known<T> {
    /// Rows of one session come one after the other.
    last: Option<(i64, Arc<T>)>,
    all: HashMap<i64, Arc<T>>,
}

impl<T> Default for Known<T> {
    fn default() -> Self {
        Known { last: None, all: HashMap::new() }
    }
}

impl<T> Known<T> {
    /// What a number stands for; `find` asks the database.
    pub(super) fn get(
        &mut self,
        number: i64,
        find: impl FnOnce() -> rusqlite::Result<T>,
    ) -> rusqlite::Result<Arc<T>> {
        if let Some((_, found)) = self.last.as_ref().filter(|(last, _)| *last == number) {
            return Ok(found.clone());
        }
        let found = match self.all.get(&number) {
            Some(found) => found.clone(),
            None => {
                let found = Arc::new(find()?);
                if self.all.len() >= MOST {
                    self.all.clear();
                }
                self.all.insert(number, found.clone());
                found
            }
        };
        self.last = Some((number, found.clone()));
        Ok(found)
    }
}

#[derive(Debug)]
pub(super) struct Hook {
    pub(super) hook_id: Option<String>,
    pub(super) label: String,
    pub(super) version: String,
}

#[derive(Debug)]
pub(super) struct Subject {
    pub(super) session_id: String,
    pub(super) tenant_id: Option<String>,
    pub(super) agent_id: Option<String>,
}

#[derive(Debug)]
pub(super) struct Kind {
    pub(super) event: String,
    pub(super) tool_name: Option<String>,
    pub(super) decision: String,
    pub(super) cause: Option<String>,
}

impl Texts {
    pub(super) fn clear(&mut self) {
        *self = Texts::default();
    }
}
