//! The data directory: where the audit trail and its keys are.
//!
//! | what | from, first that is set |
//! |---|---|
//! | directory | `--data-dir`, `HOOKGATE_DATA_DIR`, `dir` under `[audit]`, `$XDG_DATA_HOME/hookgate`, `~/.local/share/hookgate` |
//! | key file | `HOOKGATE_KEY_FILE`, `key_file` under `[audit]`, `keys` in the directory, made when it is first needed |
//! | database | the variable that `postgres_env` names, else `audit.db` in the directory |

use crate::age;
use crate::config::AuditTable;
use crate::failure::Failure;
use hookgate_store::database::Database;
use hookgate_store::keys::Keys;
use hookgate_store::postgres::Postgres;
use hookgate_store::store::Options;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Where variables are looked up.
type Environment<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// A place for the trail. Nothing is opened or made yet.
#[derive(Debug, Clone)]
pub(crate) struct DataDir {
    dir: PathBuf,
    key_file: PathBuf,
    durability: hookgate_store::spool::Durability,
    /// The connection string of PostgreSQL.
    postgres: Option<String>,
    /// How long rows are kept.
    keep: Option<Duration>,
    /// Whether the trail also tells which filters ruled hooks out.
    pub(crate) filter_trace: bool,
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
        let keep = match &table.keep {
            Some(text) => Some(age::read(text).ok_or_else(|| {
                Failure::new(format!(
                    "`keep` under [audit]: `{text}` is no time; expected an age such as 12h or 90d"
                ))
            })?),
            None => None,
        };
        let filter_trace = table.filter_trace.unwrap_or(false);
        Ok(Some(DataDir { dir, key_file, durability, postgres, keep, filter_trace }))
    }

    /// How the store is opened, with the keys that there are.
    pub(crate) fn options(&self) -> Result<Options, Failure> {
        let keys = match self.key_file.exists() {
            true => Some(Keys::load(&self.key_file).map_err(|error| Failure::new(error.to_string()))?),
            false => None,
        };
        Ok(self.with_keys(keys))
    }

    pub(crate) fn with_keys(&self, keys: Option<Keys>) -> Options {
        let backend = self.postgres.clone().map(|connection| {
            let open: hookgate_store::store::Backend =
                Arc::new(move || Ok(Box::new(Postgres::open(&connection)?) as Box<dyn Database>));
            open
        });
        Options { keys, durability: self.durability, keep: self.keep, backend, ..Options::new(&self.dir) }
    }

    /// Whether something was kept here before. Opens and makes nothing.
    pub(crate) fn is_in_use(&self) -> bool {
        let spool = std::fs::read_dir(self.dir.join("spool"));
        self.dir.join(hookgate_store::sqlite::FILE).exists()
            || spool.is_ok_and(|mut files| files.next().is_some())
    }

    /// Whether the rows are in a database that is not here.
    pub(crate) fn is_elsewhere(&self) -> bool {
        self.postgres.is_some()
    }

    pub(crate) fn path(&self) -> &Path {
        &self.dir
    }

    pub(crate) fn key_file(&self) -> &Path {
        &self.key_file
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
        let table = toml::from_str("keep = '90 days'").unwrap();
        let error = DataDir::find(Some(Path::new("d")), &table, &|_| None).unwrap_err().to_string();
        assert!(error.contains("`90 days` is no time; expected an age"), "{error}");
    }
}
