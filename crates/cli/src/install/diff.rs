//! What a change looks like: lines with `-` and `+`, three lines around them.

use super::files::Change;
use std::fmt::Write;

/// Lines that are shown around a change.
const AROUND: usize = 3;
/// Longer texts are not compared line by line.
const LONGEST: usize = 4000;

/// A change as people read it.
pub(crate) fn of(change: &Change) -> String {
    let name = change.path.display();
    let lines = |text: &Option<String>| -> Vec<String> {
        text.as_deref().unwrap_or_default().lines().map(str::to_owned).collect()
    };
    let (before, after) = (lines(&change.before), lines(&change.after));
    let mut text =
        format!("--- {}\n", if change.before.is_some() { name.to_string() } else { "(no file)".into() });
    let _ =
        writeln!(text, "+++ {}", if change.after.is_some() { name.to_string() } else { "(no file)".into() });
    let steps = steps(&before, &after);
    let near = |at: usize| {
        let from = at.saturating_sub(AROUND);
        let to = at.saturating_add(AROUND).saturating_add(1);
        steps.get(from..to.min(steps.len())).unwrap_or_default().iter().any(|(mark, _)| *mark != ' ')
    };
    let mut skipped = false;
    for (at, (mark, line)) in steps.iter().enumerate() {
        if near(at) {
            let _ = writeln!(text, "{mark}{line}");
            skipped = false;
        } else if !std::mem::replace(&mut skipped, true) {
            text.push_str(" …\n");
        }
    }
    text
}

/// The way from one text to the other: kept, removed and added lines.
fn steps<'t>(before: &'t [String], after: &'t [String]) -> Vec<(char, &'t str)> {
    let same_head = before.iter().zip(after).take_while(|(a, b)| a == b).count();
    let rest = |lines: &'t [String]| lines.get(same_head..).unwrap_or_default();
    let (old, new) = (rest(before), rest(after));
    let same_tail = old.iter().rev().zip(new.iter().rev()).take_while(|(a, b)| a == b).count();
    let middle = |lines: &'t [String]| lines.get(..lines.len().saturating_sub(same_tail)).unwrap_or_default();
    let (old_middle, new_middle) = (middle(old), middle(new));
    let kept = |line: &'t String| (' ', line.as_str());
    let mut steps: Vec<(char, &str)> = before.iter().take(same_head).map(kept).collect();
    if old_middle.len().saturating_mul(new_middle.len()) <= LONGEST.saturating_mul(LONGEST) {
        common(old_middle, new_middle, &mut steps);
    } else {
        steps.extend(old_middle.iter().map(|line| ('-', line.as_str())));
        steps.extend(new_middle.iter().map(|line| ('+', line.as_str())));
    }
    steps.extend(old.iter().skip(old_middle.len()).map(kept));
    steps
}

/// The longest common lines of two texts, by the usual table.
fn common<'t>(old: &'t [String], new: &'t [String], steps: &mut Vec<(char, &'t str)>) {
    let width = new.len().saturating_add(1);
    let at = |row: usize, column: usize| row.saturating_mul(width).saturating_add(column);
    let mut table = vec![0u32; old.len().saturating_add(1).saturating_mul(width)];
    let get = |table: &[u32], row, column| table.get(at(row, column)).copied().unwrap_or(0);
    for (row, a) in old.iter().enumerate().rev() {
        for (column, b) in new.iter().enumerate().rev() {
            let (down, right) = (row.saturating_add(1), column.saturating_add(1));
            let longest = if a == b {
                get(&table, down, right).saturating_add(1)
            } else {
                get(&table, down, column).max(get(&table, row, right))
            };
            if let Some(cell) = table.get_mut(at(row, column)) {
                *cell = longest;
            }
        }
    }
    let (mut row, mut column) = (0, 0);
    loop {
        match (old.get(row), new.get(column)) {
            (Some(a), Some(b)) if a == b => {
                steps.push((' ', a));
                (row, column) = (row.saturating_add(1), column.saturating_add(1));
            }
            (Some(a), b)
                if b.is_none()
                    || get(&table, row.saturating_add(1), column)
                        >= get(&table, row, column.saturating_add(1)) =>
            {
                steps.push(('-', a));
                row = row.saturating_add(1);
            }
            (_, Some(b)) => {
                steps.push(('+', b));
                column = column.saturating_add(1);
            }
            (_, None) => break,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_marked() {
        let change = |before: &str, after: &str| {
            of(&Change {
                path: "s".into(),
                before: Some(before.into()),
                after: Some(after.into()),
                program: false,
            })
        };
        assert_eq!(change("a\nb\nc\n", "a\nx\nc\ny\n"), "--- s\n+++ s\n a\n-b\n+x\n c\n+y\n");
        let long: String = (0..20).map(|n| format!("{n}\n")).collect();
        assert_eq!(change(&long, &format!("{long}end\n")), "--- s\n+++ s\n …\n 17\n 18\n 19\n+end\n");
        let new = Change { path: "s".into(), before: None, after: Some("a\n".into()), program: false };
        assert_eq!(of(&new), "--- (no file)\n+++ s\n+a\n");
    }
}
