//! Moves in what dead processes left. Any number of processes may try at once: a file's lock decides.

use super::frame;
use super::mover::{ROWS, read_piece};
use super::segment::Segment;
use super::shared;
use crate::database::Database;
use crate::error::StoreError;
use crate::store::Place;
use std::path::{Path, PathBuf};

/// What was found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Adopted {
    /// Rows that were not in the database yet.
    pub(crate) rows: u64,
    /// Damaged places that were skipped.
    pub(crate) damaged: u64,
}

/// Moves every spool file in whose process is dead.
pub(crate) fn adopt(place: &Place, database: &mut dyn Database) -> Result<Adopted, StoreError> {
    let mut adopted = Adopted::default();
    for path in spools(&place.spool)? {
        let Some(mut segment) = Segment::take_over(&path)? else { continue };
        if path.file_name().is_some_and(|name| name == shared::NAME) {
            // under another name nobody appends to it any more
            let taken = path.with_file_name(format!("{}-taken.spool", crate::files::random_name()?));
            std::fs::rename(&path, &taken).map_err(StoreError::file(&path))?;
            segment.path = taken;
        }
        move_all(place, database, &segment, &mut adopted)?;
    }
    Ok(adopted)
}

fn move_all(
    place: &Place,
    database: &mut dyn Database,
    segment: &Segment,
    adopted: &mut Adopted,
) -> Result<(), StoreError> {
    let at = StoreError::file(&segment.path);
    let Some(header) = segment.header().map_err(at)? else {
        return put_away(segment, adopted);
    };
    let end = segment.len().map_err(StoreError::file(&segment.path))?;
    if header.syncs {
        // it was promised to outlive a power cut, wherever it is
        database.sync_each(true)?;
    }
    let (mut moved, mut piece) = (header.moved, Vec::new());
    while moved < end {
        read_piece(segment, moved, end, &mut piece)?;
        let last = moved.saturating_add(u64::try_from(piece.len()).unwrap_or(0)) >= end;
        let found = frame::read(&piece, header.generation, ROWS, last);
        if found.used == 0 {
            break;
        }
        let appended = database.append(&place.writer, &place.chain_key(), &found.batch)?;
        adopted.rows = adopted.rows.saturating_add(appended.rows);
        adopted.damaged = adopted.damaged.saturating_add(found.damaged);
        moved = moved.saturating_add(u64::try_from(found.used).unwrap_or(u64::MAX));
        // if the note is lost, the rows are moved again and change nothing
        segment.put_moved(moved).ok();
    }
    // the jobs that the dead process had are due again
    let stem = segment.path.file_stem().unwrap_or_default().to_string_lossy();
    if let Some((owner, "a" | "b")) = stem.rsplit_once('-') {
        database.free_leases(owner)?;
    }
    std::fs::remove_file(&segment.path).map_err(StoreError::file(&segment.path))?;
    if header.syncs && !place.syncs {
        database.sync_each(false)?;
    }
    Ok(())
}

/// A file that is no spool is kept under a name that nobody looks for. An empty one was just begun.
fn put_away(segment: &Segment, adopted: &mut Adopted) -> Result<(), StoreError> {
    let at = || StoreError::file(&segment.path);
    if segment.len().map_err(at())? == 0 {
        return std::fs::remove_file(&segment.path).map_err(at());
    }
    adopted.damaged = adopted.damaged.saturating_add(1);
    std::fs::rename(&segment.path, segment.path.with_extension("damaged")).map_err(at())
}

fn spools(folder: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(StoreError::file(folder))? {
        let path = entry.map_err(StoreError::file(folder))?.path();
        if path.extension().is_some_and(|end| end == "spool") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}
