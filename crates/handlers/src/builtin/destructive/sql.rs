//! Databases: their programs, the statements given to them, and the frameworks' commands that reset them.

use super::call::{Call, Danger, UNKNOWN, danger};

const CLIENTS: &[&str] = &[
    "psql",
    "mysql",
    "mariadb",
    "sqlite3",
    "sqlite",
    "cqlsh",
    "clickhouse-client",
    "clickhouse",
    "sqlcmd",
    "sqlplus",
    "mssql-cli",
    "pgcli",
    "mycli",
    "litecli",
    "duckdb",
    "cockroach",
    "usql",
    "snowsql",
    "bq",
    "trino",
    "presto",
    "hive",
    "beeline",
    "spark-sql",
    "influx",
    "isql",
    "db2",
    "wrangler",
    "turso",
    "impala-shell",
    "osql",
    "vsql",
    "tsql",
    "usql",
    "dbt",
    "ysqlsh",
    "rqlite",
    "libsql",
];

pub(super) fn judge(call: &Call<'_>) -> Option<Danger> {
    let name = call.name;
    if call.is_harmless_mode() {
        return None;
    }
    if CLIENTS.contains(&name) {
        if call.args.iter().any(|arg| arg == ":memory:") {
            return None;
        }
        return call.args.iter().map(String::as_str).chain(call.stdin.known()).find_map(statements);
    }
    let first = call.operand(0).unwrap_or_default();
    match name {
        "mongosh" | "mongo" => call.args.iter().map(String::as_str).chain(call.stdin.known()).find_map(mongo),
        "redis-cli" | "valkey-cli" | "keydb-cli" => call
            .args
            .iter()
            .map(String::as_str)
            .chain(call.stdin.known().into_iter().flat_map(str::lines))
            .find_map(|text| redis(text, call)),
        "dropdb" | "dropuser" | "pg_resetwal" | "pg_dropcluster" | "mongorestore" | "pg_restore" => {
            let drops =
                !matches!(name, "mongorestore" | "pg_restore") || call.any(&["--drop", "--clean", "-c"]);
            danger("database", format!("`{name}` removes a database or what is in it")).filter(|_| drops)
        }
        "mysqladmin" => danger("database", "drops a database or stops the server")
            .filter(|_| call.operands().any(|word| matches!(word, "drop" | "shutdown"))),
        "pg_ctl" => danger("database", "stops the server").filter(|_| {
            call.operands().any(|word| word == "stop") && call.args.iter().any(|arg| arg == "immediate")
        }),
        "influxd" | "cockroach-sql" => None,
        "liquibase" => framework(call, first),
        _ => framework(call, first),
    }
}

/// Tasks of frameworks that empty or drop a database.
const TASKS: &[&str] = &[
    "db:drop",
    "db:reset",
    "db:purge",
    "db:wipe",
    "db:drop:all",
    "db:schema:load",
    "db:migrate:reset",
    "db:clean",
    "migrate:fresh",
    "migrate:reset",
    "migrate:refresh",
    "schema:drop",
    "ecto.drop",
    "ecto.reset",
    "doctrine:database:drop",
    "doctrine:schema:drop",
    "doctrine:mongodb:schema:drop",
    "db:seed:replant",
    "db:truncate_all",
    "schema:fresh",
    "db:fresh",
    "migration:fresh",
    "db:migrate:undo:all",
    "database:drop",
    "orm:schema-tool:drop",
];

/// `manage.py flush`, `rails db:drop`, `artisan migrate:fresh`…
fn framework(call: &Call<'_>, first: &str) -> Option<Danger> {
    let words: Vec<&str> = call.operands().collect();
    let has = |word: &str| words.contains(&word);
    let pair = |a: &str, b: &str| words.windows(2).any(|pair| pair == [a, b]);
    let django =
        words.iter().chain([&call.name]).any(|word| word.ends_with("manage.py") || *word == "django-admin");
    let task = |word: &&str| TASKS.contains(word);
    let bad = match call.name {
        "rails" | "rake" | "artisan" | "php" | "mix" | "sequelize" | "sequelize-cli" | "typeorm"
        | "bin/rails" | "console" | "npm" | "yarn" | "pnpm" | "node" | "ts-node" | "mikro-orm" | "adonis"
        | "ace" | "sail" | "symfony" | "tsx" | "doctrine" => words.iter().any(task),
        "prisma" => {
            pair("migrate", "reset")
                || (pair("db", "push") && call.any(&["--force-reset", "--accept-data-loss"]))
        }
        "alembic" => first == "downgrade",
        "flask" => pair("db", "downgrade"),
        "knex" => has("migrate:rollback") && call.exact("--all"),
        "flyway" => has("clean") || has("undo"),
        "liquibase" => words.iter().any(|word| matches!(*word, "drop-all" | "dropAll" | "rollback")),
        "diesel" => pair("database", "reset") || pair("database", "drop"),
        "sqlx" => {
            pair("database", "drop") || pair("database", "reset") || pair("db", "drop") || pair("db", "reset")
        }
        "supabase" => pair("db", "reset"),
        "drizzle-kit" => has("drop"),
        "goose" | "migrate" | "dbmate" | "atlas" => {
            words.iter().any(|word| matches!(*word, "reset" | "drop" | "down-to" | "clean"))
        }
        "hasura" => pair("metadata", "clear"),
        "edgedb" | "gel" => pair("database", "drop") || pair("instance", "destroy"),
        "bench" | "wp" | "drush" => {
            words.iter().any(|word| {
                matches!(*word, "drop-site" | "reinstall" | "sql-drop" | "sql:drop" | "site-install" | "sin")
            }) || pair("db", "reset")
                || pair("db", "drop")
                || pair("site", "empty")
        }
        _ => false,
    };
    let django = django
        && words
            .iter()
            .any(|word| matches!(*word, "flush" | "reset_db" | "sqlflush_run" | "clean_db" | "drop_db"))
        || (django && has("migrate") && has("zero"));
    danger("database", format!("`{}` empties or drops a database", call.name)).filter(|_| bad || django)
}

/// SQL: statements that drop, truncate, or change all rows.
pub(super) fn statements(text: &str) -> Option<Danger> {
    if text.len() < 8 || !text.contains(char::is_whitespace) {
        return None;
    }
    let plain = bare(text);
    let all: Vec<Vec<String>> = plain
        .split(';')
        .map(|statement| statement.split_whitespace().map(str::to_ascii_uppercase).collect())
        .filter(|words: &Vec<String>| !words.is_empty())
        .collect();
    let undone = all.last().is_some_and(|last| last.first().is_some_and(|word| word == "ROLLBACK"))
        && all.iter().any(|words| matches!(words.first().map(String::as_str), Some("BEGIN" | "START")));
    if undone {
        return None;
    }
    all.iter().find_map(|words| statement(words))
}

/// Without comments; texts in quotes become `''`.
fn bare(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\'' => {
                out.push_str("''");
                while chars.next().is_some_and(|c| c != '\'') {}
            }
            '-' if chars.peek() == Some(&'-') => while chars.next().is_some_and(|c| c != '\n') {},
            '/' if chars.peek() == Some(&'*') => {
                let mut last = ' ';
                for c in chars.by_ref() {
                    if last == '*' && c == '/' {
                        break;
                    }
                    last = c;
                }
                out.push(' ');
            }
            '(' | ')' | ',' => {
                out.push(' ');
                out.push(c);
                out.push(' ');
            }
            c => out.push(c),
        }
    }
    out
}

fn statement(words: &[String]) -> Option<Danger> {
    let word = |n: usize| words.get(n).map_or("", String::as_str);
    let has = |name: &str| words.iter().any(|word| word == name);
    let start = match word(0) {
        "EXPLAIN" if word(1) != "ANALYZE" => return None,
        "WITH" | "BEGIN" | "START" => words
            .iter()
            .position(|word| matches!(word.as_str(), "DELETE" | "UPDATE" | "DROP" | "TRUNCATE"))
            .unwrap_or(0),
        _ => 0,
    };
    let says = |what: &str| danger("database", what);
    match word(start) {
        "DROP" => says("drops a table, a database or the like")
            .filter(|_| !matches!(word(start + 1), "TEMPORARY" | "TEMP" | "PREPARE" | "")),
        "TRUNCATE" => says("empties a table"),
        "DELETE" if word(start + 1) == "FROM" => says("deletes all rows").filter(|_| is_everywhere(words)),
        "UPDATE" if has("SET") => says("changes all rows").filter(|_| is_everywhere(words)),
        "ALTER" => says("drops a column, a partition or the like")
            .filter(|_| has("DROP") && !has("CONSTRAINT") && !has("DEFAULT") && !has("INDEX")),
        "FLUSH" if word(start + 1) == "TABLES" => None,
        "SHUTDOWN" => says("stops the server"),
        "PURGE" | "RESET" => {
            says("removes logs").filter(|_| matches!(word(start + 1), "BINARY" | "MASTER" | "RECYCLEBIN"))
        }
        "REVOKE" => says("takes rights away"),
        _ => None,
    }
}

/// No condition, or one that is always true.
fn is_everywhere(words: &[String]) -> bool {
    let Some(at) = words.iter().position(|word| word == "WHERE") else { return true };
    let rest: String = words.iter().skip(at + 1).map(String::as_str).collect();
    let rest = rest.split("RETURNING").next().unwrap_or_default();
    matches!(rest, "1" | "TRUE" | "1=1" | "''=''" | "(1=1)" | "0=0" | "NOTFALSE")
        || rest.starts_with("1=1OR")
        || rest.ends_with("OR1=1")
        || rest.ends_with("ORTRUE")
}

fn mongo(text: &str) -> Option<Danger> {
    let text: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    let all = [
        "dropDatabase(",
        ".drop(",
        "deleteMany({})",
        ".remove({})",
        ".dropIndexes(",
        "dropUser(",
        "dropAllUsers",
        "shutdownServer(",
        ".deleteMany()",
        "{dropDatabase:",
    ];
    danger("database", "drops a database or a collection")
        .filter(|_| all.iter().any(|call| text.contains(call)))
}

fn redis(text: &str, call: &Call<'_>) -> Option<Danger> {
    let word = text.split_whitespace().next().unwrap_or_default().to_ascii_uppercase();
    let all = call.args.iter().any(|arg| arg.contains('*') || arg.contains(UNKNOWN));
    danger("database", "empties or stops the store").filter(|_| {
        matches!(word.as_str(), "FLUSHALL" | "FLUSHDB" | "SHUTDOWN" | "DEBUG")
            || (matches!(word.as_str(), "DEL" | "UNLINK") && all)
            || (word == "SCRIPT" && text.to_ascii_uppercase().contains("FLUSHALL"))
    })
}
