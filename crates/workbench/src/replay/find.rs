//! Which files are histories: those that are named, and those in named folders whose names end as histories do.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};

/// Endings of files in folders that are looked at. A file that is named is looked at whatever it is called.
const ENDINGS: [&str; 4] = ["jsonl", "ndjson", "json", "log"];
/// Folders inside each other; links may lead in circles.
const DEEPEST: usize = 32;

/// A file to be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Where it is.
    pub path: PathBuf,
    /// Its size in bytes.
    pub size: u64,
    /// It was named, not only met in a folder.
    pub is_named: bool,
}

/// The files behind these paths, each once, those of a folder in name order.
///
/// # Errors
/// A named file or a folder cannot be read; the path comes with the error.
pub fn find(paths: &[PathBuf]) -> Result<Vec<Found>, (PathBuf, io::Error)> {
    let mut found = Vec::new();
    for path in paths {
        let about = std::fs::metadata(path).map_err(|error| (path.clone(), error))?;
        if about.is_dir() {
            walk(path, 0, &mut found)?;
        } else {
            found.push(Found { path: path.clone(), size: about.len(), is_named: true });
        }
    }
    let named: HashSet<PathBuf> =
        found.iter().filter(|file| file.is_named).map(|file| file.path.clone()).collect();
    let mut seen = HashSet::new();
    found.retain(|file| seen.insert(file.path.clone()));
    for file in &mut found {
        file.is_named = named.contains(&file.path);
    }
    Ok(found)
}

fn walk(folder: &Path, depth: usize, found: &mut Vec<Found>) -> Result<(), (PathBuf, io::Error)> {
    let at = |error| (folder.to_owned(), error);
    let mut entries = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(at)? {
        entries.push(entry.map_err(at)?.path());
    }
    entries.sort();
    for path in entries {
        // what vanished meanwhile, or leads nowhere, is no history
        let Ok(about) = std::fs::metadata(&path) else { continue };
        if about.is_dir() {
            if depth < DEEPEST {
                walk(&path, depth.saturating_add(1), found)?;
            }
        } else if about.is_file() && ends_as_history(&path) {
            found.push(Found { path, size: about.len(), is_named: false });
        }
    }
    Ok(())
}

fn ends_as_history(path: &Path) -> bool {
    path.extension().and_then(|ending| ending.to_str()).is_some_and(|ending| ENDINGS.contains(&ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_walked_in_name_order() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("b/c")).unwrap();
        for name in ["z.jsonl", "b/c/a.json", "b/notes.md", "a.log"] {
            std::fs::write(dir.path().join(name), "x").unwrap();
        }
        let named = dir.path().join("b/notes.md");
        let files = find(&[dir.path().to_owned(), named.clone(), named]).unwrap();
        let names: Vec<String> = files
            .iter()
            .map(|file| file.path.strip_prefix(dir.path()).unwrap().display().to_string())
            .collect();
        assert_eq!(names, ["a.log", "b/c/a.json", "z.jsonl", "b/notes.md"]);
        assert!(files[3].is_named && !files[0].is_named);
        assert_eq!(find(&[dir.path().join("none")]).unwrap_err().0, dir.path().join("none"));
    }
}
