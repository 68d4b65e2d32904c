//! A PostgreSQL server of the test's own: a new cluster in a temporary folder, reached through a socket there.

use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Set to `require` where a machine without PostgreSQL must fail instead of being skipped.
const REQUIRE: &str = "HOOKGATE_TEST_POSTGRES";

pub(crate) struct Server {
    programs: PathBuf,
    dir: tempfile::TempDir,
    syncs: bool,
    child: Option<Child>,
    databases: std::cell::Cell<u32>,
}

impl Server {
    /// Starts a server; none if PostgreSQL is not installed.
    pub(crate) fn start(syncs: bool) -> Option<Server> {
        let Some(programs) = programs() else {
            assert!(
                std::env::var(REQUIRE).as_deref() != Ok("require"),
                "{REQUIRE}=require, and neither /usr/lib/postgresql/*/bin nor the path has initdb and postgres"
            );
            eprintln!("skipped: PostgreSQL is not installed (Debian: postgresql)");
            return None;
        };
        let dir = tempfile::tempdir().unwrap();
        let mut server = Server { programs, dir, syncs, child: None, databases: 0.into() };
        if let Some(user) = other_user() {
            std::os::unix::fs::chown(server.dir.path(), Some(user), Some(user)).unwrap();
        }
        let mut init = server.command("initdb");
        init.args(["-U", "test", "-A", "trust", "-E", "UTF8", "--no-locale", "-N", "-D"]).arg(server.data());
        let made = init.stdout(Stdio::null()).status().unwrap();
        assert!(made.success(), "initdb failed");
        server.run();
        Some(server)
    }

    fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    /// Programs of PostgreSQL refuse to run as root.
    fn command(&self, name: &str) -> Command {
        let mut command = Command::new(self.programs.join(name));
        command.current_dir(self.dir.path()).stderr(Stdio::null());
        if let Some(user) = other_user() {
            command.uid(user).gid(user);
        }
        command
    }

    /// Starts it, also again.
    pub(crate) fn run(&mut self) {
        let mut command = self.command("postgres");
        command.arg("-D").arg(self.data()).arg("-k").arg(self.dir.path());
        command.args(["-c", "listen_addresses=", "-c", "shared_buffers=64MB", "-c", "max_connections=40"]);
        if !self.syncs {
            command.args(["-c", "fsync=off"]);
        }
        self.child = Some(command.stdout(Stdio::null()).spawn().unwrap());
        let began = Instant::now();
        while self.execute("postgres", "SELECT 1").is_err() {
            assert!(began.elapsed() < Duration::from_secs(60), "the server does not answer");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Stops it without letting anybody finish.
    pub(crate) fn stop(&mut self) {
        let Some(mut child) = self.child.take() else { return };
        let pid = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(pid, rustix::process::Signal::QUIT).unwrap();
        child.wait().unwrap();
    }

    /// The connection string of a new and empty database.
    pub(crate) fn fresh(&self) -> String {
        self.databases.set(self.databases.get() + 1);
        let name = format!("d{}", self.databases.get());
        self.execute("postgres", &format!("CREATE DATABASE {name}")).unwrap();
        self.connection(&name)
    }

    pub(crate) fn connection(&self, database: &str) -> String {
        format!("host={} user=test dbname={database}", self.dir.path().display())
    }

    pub(crate) fn execute(&self, database: &str, sql: &str) -> Result<(), tokio_postgres::Error> {
        execute(&self.connection(database), sql)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Runs statements.
pub(crate) fn execute(connection: &str, sql: &str) -> Result<(), tokio_postgres::Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (client, connection) = tokio_postgres::connect(connection, tokio_postgres::NoTls).await?;
        tokio::spawn(connection);
        client.batch_execute(sql).await
    })
}

/// Debian keeps the server's programs out of the path.
fn programs() -> Option<PathBuf> {
    let of_debian = std::fs::read_dir("/usr/lib/postgresql").ok().into_iter().flatten();
    let mut folders: Vec<PathBuf> = of_debian.map(|entry| entry.unwrap().path().join("bin")).collect();
    folders.sort();
    folders.reverse();
    folders.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
    let has = |folder: &PathBuf| ["initdb", "postgres"].iter().all(|name| folder.join(name).exists());
    folders.into_iter().find(has)
}

fn other_user() -> Option<u32> {
    const NOBODY: u32 = 65_534;
    (std::fs::metadata(Path::new("/proc/self")).ok()?.uid() == 0).then_some(NOBODY)
}
