//! How much work one line may cause. One budget covers everything that the line opens: loops, functions, lines inside
//! lines, code, lines of other shells. When it is used up, everything stops at once, and the line is refused: what was
//! not looked at may be anything.
//!
//! The unit is about the time that a byte takes to be looked at. The limit is chosen so that no line takes more than some
//! 50 ms in an optimized build.

use super::call::{Danger, danger};
use std::cell::Cell;
use std::rc::Rc;

/// One program, beside its bytes.
pub(super) const STEP: usize = 512;
/// One word of a program, beside its bytes: the tables look at each several times.
pub(super) const WORD: usize = 96;
/// One byte of text that is parsed.
pub(super) const PARSED: usize = 16;
/// All that a line may cost.
const MOST: usize = 4_000 * STEP;
/// Most openings inside each other, of whatever kind: the stack is not endless.
const MOST_LEVELS: u32 = 160;
/// Deeper than this, functions that call themselves are not followed.
const MANY_LEVELS: u32 = 100;
/// Longest text that a replacement may make.
const LONGEST_MADE: usize = 256 << 10;

/// What is left of a line's budget. Clones share it.
#[derive(Debug, Clone)]
pub(super) struct Budget {
    left: Rc<Cell<usize>>,
    levels: Rc<Cell<u32>>,
}

/// One opening inside others, until it is dropped.
pub(super) struct Level(Rc<Cell<u32>>);

impl Drop for Level {
    fn drop(&mut self) {
        self.0.set(self.0.get().saturating_sub(1));
    }
}

impl Default for Budget {
    fn default() -> Self {
        Budget { left: Rc::new(Cell::new(MOST)), levels: Rc::default() }
    }
}

impl Budget {
    /// Takes some of it. False: it is used up.
    pub(super) fn spend(&self, work: usize) -> bool {
        self.left.set(self.left.get().saturating_sub(work));
        !self.is_spent()
    }

    /// One opening more. None: it is nested too deeply, which uses up the budget.
    pub(super) fn enter(&self) -> Option<Level> {
        let levels = self.levels.get().saturating_add(1);
        if levels > MOST_LEVELS {
            self.give_up();
            return None;
        }
        self.levels.set(levels);
        Some(Level(Rc::clone(&self.levels)))
    }

    pub(super) fn is_deep(&self) -> bool {
        self.levels.get() > MANY_LEVELS
    }

    /// Stops the walk: something is nested too deeply to be followed.
    pub(super) fn give_up(&self) {
        self.left.set(0);
    }

    pub(super) fn is_spent(&self) -> bool {
        self.left.get() == 0
    }

    /// Why the line is refused, if the budget is used up.
    pub(super) fn danger(&self) -> Option<Danger> {
        danger("unknown-code", "the line is too complex to be judged").filter(|_| self.is_spent())
    }
}

/// `text` with `to` for each `from`. None: that would be too long, or there is nothing to look for.
pub(super) fn replaced(text: &str, from: &str, to: &str) -> Option<String> {
    if from.is_empty() {
        return None;
    }
    let grown = text.matches(from).count().checked_mul(to.len())?;
    (text.len().checked_add(grown)? <= LONGEST_MADE).then(|| text.replace(from, to))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spent_budget_is_spent_for_all() {
        let budget = Budget::default();
        let other = budget.clone();
        assert!(budget.spend(MOST - 1) && other.danger().is_none());
        assert!(!other.spend(1) && budget.is_spent() && budget.danger().is_some());
        assert!(!budget.spend(0));
        let other = Budget::default();
        other.give_up();
        assert!(other.danger().is_some());
    }

    #[test]
    fn levels_end_with_what_holds_them() {
        let budget = Budget::default();
        for _ in 0..2 * MOST_LEVELS {
            assert!(budget.enter().is_some());
        }
        let held: Vec<_> = (0..MOST_LEVELS).map_while(|_| budget.clone().enter()).collect();
        assert!(budget.is_deep() && !budget.is_spent());
        assert!(budget.enter().is_none() && budget.is_spent());
        drop(held);
        assert!(!budget.is_deep());
    }

    #[test]
    fn replacements_do_not_grow_without_end() {
        assert_eq!(replaced("a-b-c", "-", "+").as_deref(), Some("a+b+c"));
        assert_eq!(replaced("abc", "", "+"), None);
        assert_eq!(replaced(&"a".repeat(100_000), "a", &"b".repeat(100_000)), None);
    }
}
