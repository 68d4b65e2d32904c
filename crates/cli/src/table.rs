//! Tables: of hooks, for `list` and `/hooks`, and of anything else.

use hookgate_core::hook::HookListing;
use unicode_width::UnicodeWidthStr;

const HEAD: [&str; 5] = ["LABEL", "TARGET", "EVENT", "HANDLER", "FILE"];

/// The table, with a line break behind each row.
pub(crate) fn hooks(listing: &[HookListing]) -> String {
    if listing.is_empty() {
        return "no hooks\n".into();
    }
    let mut rows = vec![HEAD.map(str::to_owned)];
    rows.extend(listing.iter().map(row));
    lines(&rows)
}

/// Cells as lines in columns that line up.
pub(crate) fn lines<const N: usize>(rows: &[[String; N]]) -> String {
    let mut widths = [0; N];
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.width());
        }
    }
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(widths) {
            line.push_str(cell);
            line.extend(std::iter::repeat_n(' ', width.saturating_sub(cell.width()).saturating_add(2)));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

fn row(hook: &HookListing) -> [String; HEAD.len()] {
    let label = if hook.label.is_empty() { "-" } else { &hook.label };
    [
        label.replace(['\n', '\t'], " "),
        hook.target.unwrap_or("-").to_owned(),
        hook.event.to_owned(),
        hook.handler.to_owned(),
        format!("{}#{}", hook.file, hook.index.saturating_add(1)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let hook = |label: &str, target, index| HookListing {
            label: label.into(),
            target,
            event: "chunk",
            handler: "actions",
            file: "h/a.json".into(),
            index,
        };
        let listing = [hook("日本", Some("stream"), 0), hook("", None, 1)];
        assert_eq!(
            hooks(&listing),
            "LABEL  TARGET  EVENT  HANDLER  FILE\n\
             日本   stream  chunk  actions  h/a.json#1\n\
             -      -       chunk  actions  h/a.json#2\n"
        );
        assert_eq!(hooks(&[]), "no hooks\n");
    }
}
