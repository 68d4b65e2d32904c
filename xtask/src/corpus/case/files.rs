//! The file operations of a case.

use super::world::World;
use serde_json::Value;
use std::path::Path;
use std::time::Duration;

/// Does one operation. `between` runs every now and then while a slow write goes on.
pub(super) fn run(
    world: &World,
    step: &Value,
    between: &mut dyn FnMut() -> Result<(), String>,
) -> Result<(), String> {
    let text = |key: &str| step.get(key).and_then(Value::as_str).unwrap_or_default();
    let path = world.path(text("path"));
    let done = match text("op") {
        "write" => std::fs::write(&path, text("text")),
        "replace" => replace(&path, text("text")),
        "remove" => std::fs::remove_file(&path),
        "mkdir" => std::fs::create_dir_all(&path),
        "write_slow" => return write_slow(&path, step, between),
        "rename_away_and_back" => rename_away_and_back(&path, between)?,
        "symlink_dir_as_hooks" => link(&world.path(text("target")), &world.hooks_dir()),
        "write_many" => write_many(world, step),
        other => return Err(format!("unknown file operation `{other}`")),
    };
    done.map_err(|error| format!("{}: {error}", path.display()))
}

fn replace(path: &Path, text: &str) -> std::io::Result<()> {
    let beside = path.with_extension("json.new");
    std::fs::write(&beside, text)?;
    std::fs::rename(beside, path)
}

fn rename_away_and_back(
    path: &Path,
    between: &mut dyn FnMut() -> Result<(), String>,
) -> Result<std::io::Result<()>, String> {
    let away = path.with_extension("json.away");
    if let Err(error) = std::fs::rename(path, &away) {
        return Ok(Err(error));
    }
    between()?;
    Ok(std::fs::rename(away, path))
}

#[cfg(unix)]
fn link(target: &Path, hooks: &Path) -> std::io::Result<()> {
    std::fs::remove_dir_all(hooks)?;
    std::os::unix::fs::symlink(target, hooks)
}

#[cfg(not(unix))]
fn link(_target: &Path, _hooks: &Path) -> std::io::Result<()> {
    Err(std::io::Error::other("links need a Unix system"))
}

fn write_many(world: &World, step: &Value) -> std::io::Result<()> {
    let count = step.get("count").and_then(Value::as_u64).unwrap_or(0);
    let text = |key: &str| step.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    for i in 0..count {
        let name = text("path").replace("{i}", &i.to_string());
        std::fs::write(world.path(&name), text("text").replace("{i}", &i.to_string()))?;
    }
    Ok(())
}

/// Empties the file, then adds its pieces with pauses before them, as some editors do.
fn write_slow(
    path: &Path,
    step: &Value,
    between: &mut dyn FnMut() -> Result<(), String>,
) -> Result<(), String> {
    let pieces = step.get("pieces").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let every = step.get("meanwhile").and_then(|m| m.get("every_ms")).and_then(Value::as_u64).unwrap_or(50);
    std::fs::write(path, "").map_err(|error| error.to_string())?;
    let mut whole = String::new();
    for piece in pieces {
        let pause = piece.get(1).and_then(Value::as_u64).unwrap_or(0);
        for _ in 0..pause / every.max(1) {
            std::thread::sleep(Duration::from_millis(every));
            between()?;
        }
        whole.push_str(piece.get(0).and_then(Value::as_str).unwrap_or_default());
        std::fs::write(path, &whole).map_err(|error| error.to_string())?;
    }
    Ok(())
}
