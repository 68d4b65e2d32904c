//! `agents.log` in the data directory: what hooks log, and what was odd. Agents read standard output and standard error,
//! so nothing of this may go there. Bounded: a full file is moved aside, over the one before.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

/// A file beyond this size is moved aside.
const FULL: u64 = 1 << 20;
/// More of one line is not kept.
const LONGEST: usize = 4096;

/// Where lines go; nowhere if there is no data directory.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    file: Option<PathBuf>,
    agent: &'static str,
}

impl Journal {
    pub(crate) fn new(dir: Option<&std::path::Path>, agent: &'static str) -> Journal {
        Journal { file: dir.map(|dir| dir.join("agents.log")), agent }
    }

    /// Notes a line. That it cannot be written is nobody's fault who could be told.
    pub(crate) fn note(&self, text: &str) {
        let Some(file) = &self.file else { return };
        if let Some(folder) = file.parent() {
            let mut make = fs::DirBuilder::new();
            make.recursive(true);
            #[cfg(unix)]
            std::os::unix::fs::DirBuilderExt::mode(&mut make, 0o700);
            // if there is none, the file will not open either
            let _ = make.create(folder);
        }
        if fs::metadata(file).is_ok_and(|about| about.len() > FULL) {
            let _ = fs::rename(file, file.with_extension("log.1"));
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let text: String = text.chars().take(LONGEST).map(|c| if c.is_control() { ' ' } else { c }).collect();
        let line = format!("{now} {} {text}\n", self.agent);
        let mut options = OpenOptions::new();
        options.append(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let _ = options.open(file).and_then(|mut file| file.write_all(line.as_bytes()));
    }
}
