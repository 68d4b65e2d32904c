//! What the live view shows, and what keys do to it. It knows no terminal and no store.

use hookgate_store::query::Entry;
use std::collections::VecDeque;

/// Rows that are kept; older ones are in the trail.
const MOST_ROWS: usize = 10_000;

/// The state of the view.
#[derive(Default)]
pub(super) struct View {
    rows: VecDeque<Entry>,
    /// Rows that came while it was paused.
    held: VecDeque<Entry>,
    pub(super) filter: String,
    /// Letters go into the filter, whatever they mean elsewhere.
    pub(super) typing: bool,
    pub(super) paused: bool,
    pub(super) detail: bool,
    /// The chosen row by its number; none: the newest, whatever it is.
    chosen: Option<i64>,
    /// What is wrong, or waited for.
    pub(super) status: String,
}

/// What a person wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wish {
    /// One row up, towards older ones.
    Up,
    /// One row down.
    Down,
    /// Some rows up.
    PageUp(usize),
    /// Some rows down.
    PageDown(usize),
    /// To the oldest.
    Oldest,
    /// To the newest, and stay there.
    Newest,
    /// A letter.
    Letter(char),
    /// The last letter of the filter away.
    Erase,
    /// Show a row in full, or not.
    Detail,
    /// Out of the filter, else out of the program.
    Escape,
}

/// Numbers over what is shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Numbers {
    pub(super) rows: usize,
    pub(super) blocks: usize,
    pub(super) failures: usize,
    /// The median of how long hooks took, in microseconds.
    pub(super) median: u64,
    /// One in twenty took longer.
    pub(super) p95: u64,
}

impl View {
    /// Takes new rows in, the oldest first.
    pub(super) fn add(&mut self, rows: Vec<Entry>) {
        let into = if self.paused { &mut self.held } else { &mut self.rows };
        into.extend(rows);
        let more = into.len().saturating_sub(MOST_ROWS);
        into.drain(..more);
    }

    /// Does what is wished. True: the program ends.
    pub(super) fn wish(&mut self, wish: Wish) -> bool {
        match wish {
            Wish::Up => self.go(-1),
            Wish::Down => self.go(1),
            Wish::PageUp(rows) => self.go(-(isize::try_from(rows).unwrap_or(isize::MAX))),
            Wish::PageDown(rows) => self.go(isize::try_from(rows).unwrap_or(isize::MAX)),
            Wish::Oldest => {
                let oldest = self.shown().next().map(|row| row.id);
                self.chosen = oldest;
            }
            Wish::Newest => self.chosen = None,
            Wish::Letter('q') if !self.typing => return true,
            Wish::Letter(' ') if !self.typing => self.pause(),
            // for words that begin with one of those
            Wish::Letter('/') if !self.typing => self.typing = true,
            Wish::Letter(letter) => {
                self.typing = true;
                self.filter.push(letter);
            }
            Wish::Erase => {
                self.filter.pop();
                self.typing = !self.filter.is_empty();
            }
            Wish::Detail => self.detail = !self.detail,
            Wish::Escape if self.typing => {
                self.filter.clear();
                self.typing = false;
            }
            Wish::Escape if self.detail => self.detail = false,
            Wish::Escape => return true,
        }
        false
    }

    fn pause(&mut self) {
        self.paused = !self.paused;
        if !self.paused {
            let held = std::mem::take(&mut self.held);
            self.add(held.into());
        }
    }

    fn go(&mut self, by: isize) {
        let ids: Vec<i64> = self.shown().map(|row| row.id).collect();
        let Some(last) = ids.len().checked_sub(1) else { return };
        let to = self.place_in(&ids).saturating_add_signed(by).min(last);
        self.chosen = if to == last { None } else { ids.get(to).copied() };
    }

    /// The rows that the filter lets through, the oldest first.
    pub(super) fn shown(&self) -> impl Iterator<Item = &Entry> {
        let words: Vec<String> = self.filter.to_lowercase().split_whitespace().map(str::to_owned).collect();
        self.rows.iter().filter(move |row| words.iter().all(|word| has(row, word)))
    }

    /// The place of the chosen row among those that are shown.
    pub(super) fn place(&self) -> usize {
        let ids: Vec<i64> = self.shown().map(|row| row.id).collect();
        self.place_in(&ids)
    }

    /// One that is filtered out, or gone, gives way to the next newer one.
    fn place_in(&self, ids: &[i64]) -> usize {
        let last = ids.len().saturating_sub(1);
        self.chosen.map_or(last, |chosen| ids.partition_point(|id| *id < chosen).min(last))
    }

    /// The chosen row.
    pub(super) fn row(&self) -> Option<&Entry> {
        self.shown().nth(self.place())
    }

    /// How many rows wait for the pause to end.
    pub(super) fn n_held(&self) -> usize {
        self.held.len()
    }

    /// Whether it shows the newest row whatever comes.
    pub(super) fn follows(&self) -> bool {
        self.chosen.is_none()
    }

    pub(super) fn numbers(&self) -> Numbers {
        let mut numbers = Numbers::default();
        let mut took = Vec::new();
        for row in self.shown() {
            numbers.rows = numbers.rows.saturating_add(1);
            match row.decision.as_str() {
                "block" => numbers.blocks = numbers.blocks.saturating_add(1),
                "error" | "timeout" => numbers.failures = numbers.failures.saturating_add(1),
                _ => {}
            }
            // actions take no time that anybody measures
            if row.duration_us > 0 {
                took.push(row.duration_us);
            }
        }
        took.sort_unstable();
        let at = |percent: usize| {
            let place = took.len().saturating_mul(percent) / 100;
            took.get(place.min(took.len().saturating_sub(1))).copied().unwrap_or(0)
        };
        (numbers.median, numbers.p95) = (at(50), at(95));
        numbers
    }
}

/// Whether a word stands in what is shown of a row.
fn has(row: &Entry, word: &str) -> bool {
    let texts = [
        Some(row.decision.as_str()),
        Some(row.hook_label.as_str()),
        row.hook_id.as_deref(),
        Some(row.event.as_str()),
        row.tool_name.as_deref(),
        Some(row.session_id.as_str()),
        row.tenant_id.as_deref(),
        row.agent_id.as_deref(),
        row.error.as_deref(),
    ];
    texts.into_iter().flatten().any(|text| text.to_lowercase().contains(word))
}
