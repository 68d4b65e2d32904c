//! `hookgate init [DIR]`: a folder to begin with. Asks nothing, and writes nothing over.

use crate::args::InitArgs;
use crate::exit::Exit;
use crate::failure::Failure;
use hookgate_core::define::nearest;
use hookgate_workbench::starter::{self, File, KITS, Kit, USUAL};
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

pub(super) fn run(args: &InitArgs) -> Result<Exit, Failure> {
    let kits = chosen(&args.with)?;
    let dir = args.dir.as_deref().unwrap_or(Path::new("."));
    let files: Vec<(PathBuf, File)> =
        starter::files(&kits).into_iter().map(|file| (dir.join(&file.path), file)).collect();
    refuse_taken(&files)?;
    let mut stdout = io::stdout().lock();
    for (path, file) in &files {
        write(path, &file.text)?;
        let shown = path.strip_prefix(".").unwrap_or(path);
        writeln!(stdout, "wrote {}", shown.display())?;
    }
    stdout.write_all(next(dir).as_bytes())?;
    Ok(Exit::Done)
}

/// The kits that were named, each once, in their own order.
fn chosen(names: &[String]) -> Result<Vec<&'static Kit>, Failure> {
    let known: Vec<&str> = KITS.iter().map(|kit| kit.name).collect();
    if let Some(unknown) = names.iter().find(|name| !known.contains(&name.as_str())) {
        let help = nearest(unknown, &known).map(|help| format!(" ({help})")).unwrap_or_default();
        let all = known.join(", ");
        return Err(Failure::new(format!(
            "there is no `{unknown}` to begin with; expected some of {all}{help}"
        )));
    }
    let is_chosen = |kit: &&Kit| match names {
        [] => kit.name == USUAL,
        names => names.iter().any(|name| name == kit.name),
    };
    Ok(KITS.iter().filter(is_chosen).collect())
}

/// Nothing is written where one of the files is there already.
fn refuse_taken(files: &[(PathBuf, File)]) -> Result<(), Failure> {
    let taken: Vec<String> = files
        .iter()
        .filter(|(path, _)| path.symlink_metadata().is_ok())
        .map(|(path, _)| path.strip_prefix(".").unwrap_or(path).display().to_string())
        .collect();
    if taken.is_empty() {
        return Ok(());
    }
    let are = if taken.len() == 1 { "is there already" } else { "are there already" };
    Err(Failure::new(format!("{} {are}; nothing was written: give another folder", taken.join(", "))))
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let cannot = |error: io::Error| Failure::new(format!("{} cannot be written: {error}", path.display()));
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(cannot)?;
    }
    let mut file = OpenOptions::new().write(true).create_new(true).open(path).map_err(cannot)?;
    file.write_all(text.as_bytes()).map_err(cannot)
}

/// What to do now.
fn next(dir: &Path) -> String {
    let mut text = String::from("\nnext:\n");
    if dir != Path::new(".") {
        text.push_str(&format!("  cd {}\n", dir.display()));
    }
    text.push_str(
        "  hookgate check            is every rule well written?\n  \
           hookgate test             do they do what they should?\n  \
           hookgate chat \"hello\"     try them with the built-in model\n\
         and read hooks/README.md\n",
    );
    text
}
