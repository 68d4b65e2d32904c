//! The data directory: where the audit trail and its keys are, and the recorder that writes there.
//!
//! | what | from, first that is set |
//! |---|---|
//! | directory | `--data-dir`, `HOOKGATE_DATA_DIR`, `dir` under `[audit]`, `$XDG_DATA_HOME/hookgate`, `~/.local/share/hookgate` |
//! | key file | `HOOKGATE_KEY_FILE`, `key_file` under `[audit]`, `keys` in the directory, made when it is first needed |
//! | database | the variable that `postgres_env` names, else `audit.db` in the directory |

use crate::config::AuditTable;
use crate::failure::Failure;
use hookgate_core::future::BoxFuture;
use hookgate_core::record::{Record, RecordError, Recorder};
use hookgate_store::database::Database;
use hookgate_store::keys::Keys;
use hookgate_store::postgres::Postgres;
use hookgate_store::store::{OneShot, Options, Store};
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// Where variables are looked up.
type Environment<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// Told a line for the person at the terminal.
type Tell = dyn Fn(&str) + Send + Sync;

/// A place for the trail. Nothing is opened or made yet.
#[derive(Debug, Clone)]
pub(crate) struct DataDir {
    dir: PathBuf,
    key_file: PathBuf,
    durability: hookgate_store::spool::Durability,
    /// The connection string of PostgreSQL.
    postgres: Option<String>,
}

impl DataDir {
    /// Finds it; none where the trail is switched off, or where nothing says where it should be.
    pub(crate) fn find(
        flag: Option<&Path>,
        table: &AuditTable,
        environment: Environment<'_>,
    ) -> Result<Option<DataDir>, Failure> {
        if table.enabled == Some(false) && flag.is_none() {
            return Ok(None);
        }
        let set = |name: &str| environment(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let usual = || {
            let share = set("XDG_DATA_HOME").or_else(|| set("HOME").map(|home| home.join(".local/share")));
            share.map(|share| share.join("hookgate"))
        };
        let named = flag.map(Path::to_owned).or_else(|| set("HOOKGATE_DATA_DIR")).or(table.dir.clone());
        let Some(dir) = named.or_else(usual) else { return Ok(None) };
        let key_file =
            set("HOOKGATE_KEY_FILE").or(table.key_file.clone()).unwrap_or_else(|| dir.join("keys"));
        let postgres = match &table.postgres_env {
            Some(name) => {
                Some(environment(name).and_then(|value| value.into_string().ok()).ok_or_else(|| {
                    Failure::new(format!(
                        "the environment variable {name}, which postgres_env names, is not set"
                    ))
                })?)
            }
            None => None,
        };
        let durability = table.durability.unwrap_or_default().into();
        Ok(Some(DataDir { dir, key_file, durability, postgres }))
    }

    /// How the store is opened, with the keys that there are.
    pub(crate) fn options(&self) -> Result<Options, Failure> {
        let keys = match self.key_file.exists() {
            true => Some(Keys::load(&self.key_file).map_err(|error| Failure::new(error.to_string()))?),
            false => None,
        };
        Ok(self.with_keys(keys))
    }

    fn with_keys(&self, keys: Option<Keys>) -> Options {
        let backend = self.postgres.clone().map(|connection| {
            let open: hookgate_store::store::Backend =
                Arc::new(move || Ok(Box::new(Postgres::open(&connection)?) as Box<dyn Database>));
            open
        });
        Options { keys, durability: self.durability, backend, ..Options::new(&self.dir) }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.dir
    }

    pub(crate) fn key_file(&self) -> &Path {
        &self.key_file
    }
}

/// Writes records to the data directory. The store is opened with the first record: who has no hook that leaves any
/// gets no files.
pub(crate) struct Trail {
    place: DataDir,
    store: OnceLock<Result<Store, String>>,
    tell: Box<Tell>,
}

impl Trail {
    pub(crate) fn new(place: DataDir, tell: impl Fn(&str) + Send + Sync + 'static) -> Trail {
        Trail { place, store: OnceLock::new(), tell: Box::new(tell) }
    }

    fn store(&self) -> Result<&Store, RecordError> {
        self.store.get_or_init(|| self.open()).as_ref().map_err(|why| RecordError(why.clone()))
    }

    fn open(&self) -> Result<Store, String> {
        let (keys, made) = Keys::load_or_make(&self.place.key_file).map_err(|error| error.to_string())?;
        if made {
            let file = self.place.key_file.display();
            (self.tell)(&format!(
                "audit: made the key file {file}; without it sealed details cannot be read"
            ));
        }
        Store::open(&self.place.with_keys(Some(keys))).map_err(|error| error.to_string())
    }
}

impl Recorder for Trail {
    fn record(&self, record: Record) -> BoxFuture<'_, Result<(), RecordError>> {
        match self.store() {
            Ok(store) => store.record(record),
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }

    fn digest(&self, canonical: &[u8]) -> [u8; 32] {
        match self.store() {
            Ok(store) => store.digest(canonical),
            // the record will be refused with the reason; what its hash would be does not matter
            Err(_) => [0; 32],
        }
    }
}

impl fmt::Debug for Trail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trail").field("place", &self.place).finish_non_exhaustive()
    }
}

/// Writes records to the spool in the data directory, for a process that lives for milliseconds. Opened with the first
/// record, as [`Trail`] is.
pub(crate) struct ShortTrail {
    place: DataDir,
    store: OnceLock<Result<OneShot, String>>,
}

impl ShortTrail {
    pub(crate) fn new(place: DataDir) -> ShortTrail {
        ShortTrail { place, store: OnceLock::new() }
    }

    fn store(&self) -> Result<&OneShot, RecordError> {
        let open = || {
            let (keys, _) = Keys::load_or_make(&self.place.key_file).map_err(|error| error.to_string())?;
            Store::spool_only(&self.place.with_keys(Some(keys))).map_err(|error| error.to_string())
        };
        self.store.get_or_init(open).as_ref().map_err(|why| RecordError(why.clone()))
    }

    /// Bytes that wait for a process with more time; none if nothing was recorded here.
    pub(crate) fn waiting_bytes(&self) -> u64 {
        self.store.get().and_then(|store| store.as_ref().ok()).map_or(0, OneShot::waiting_bytes)
    }
}

impl Recorder for ShortTrail {
    fn record(&self, record: Record) -> BoxFuture<'_, Result<(), RecordError>> {
        match self.store() {
            Ok(store) => store.record(record),
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }

    fn digest(&self, canonical: &[u8]) -> [u8; 32] {
        match self.store() {
            Ok(store) => store.digest(canonical),
            Err(_) => [0; 32],
        }
    }
}

impl fmt::Debug for ShortTrail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShortTrail").field("place", &self.place).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(flag: Option<&str>, table: &str, environment: &[(&str, &str)], want: Option<(&str, &str)>) {
        let table: AuditTable = toml::from_str(table).unwrap();
        let lookup = |name: &str| {
            environment.iter().find(|(known, _)| *known == name).map(|(_, value)| OsString::from(value))
        };
        let found = DataDir::find(flag.map(Path::new), &table, &lookup).unwrap();
        let got = found.map(|place| (place.dir.display().to_string(), place.key_file.display().to_string()));
        assert_eq!(got, want.map(|(dir, keys)| (dir.to_owned(), keys.to_owned())));
    }

    #[test]
    fn the_nearest_word_counts() {
        let home = ("HOME", "/h");
        check(None, "", &[], None);
        check(None, "", &[home], Some(("/h/.local/share/hookgate", "/h/.local/share/hookgate/keys")));
        check(None, "", &[home, ("XDG_DATA_HOME", "/x")], Some(("/x/hookgate", "/x/hookgate/keys")));
        check(None, "dir = '/t'", &[home], Some(("/t", "/t/keys")));
        check(None, "dir = '/t'", &[("HOOKGATE_DATA_DIR", "/e")], Some(("/e", "/e/keys")));
        check(Some("/f"), "dir = '/t'", &[("HOOKGATE_DATA_DIR", "/e")], Some(("/f", "/f/keys")));
        check(None, "key_file = '/k'", &[home], Some(("/h/.local/share/hookgate", "/k")));
        check(None, "dir = '/t'", &[("HOOKGATE_KEY_FILE", "/k2")], Some(("/t", "/k2")));
        check(None, "enabled = false", &[home], None);
    }
}
