//! The view on a screen that only tests see.

use super::*;
use crate::commands::watch::view::Wish;
use ratatui::Terminal;
use ratatui::backend::TestBackend;

/// A row with this number; entries are made by reading what a store writes, here from JSON.
fn entry(id: i64, decision: &str, hook: &str, tool: Option<&str>, error: Option<&str>) -> Entry {
    crate::commands::watch::tests::entry(id, decision, hook, tool, error)
}

fn screen(view: &View, width: u16, height: u16) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    let detail = view.detail.then(|| view.row().cloned()).flatten();
    let setting = Setting { place: "data", colours: true, detail: detail.as_ref() };
    terminal.draw(|frame| draw(frame, view, &setting)).unwrap();
    let buffer = terminal.backend().buffer();
    let line = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
    (0..height).map(line).collect()
}

fn view(rows: Vec<Entry>) -> View {
    let mut view = View::default();
    view.add(rows);
    view
}

fn three() -> View {
    view(vec![
        entry(1, "allow", "guard", Some("exec"), None),
        entry(2, "block", "no-deleting", Some("exec"), Some("ask a person")),
        entry(3, "error", "judge", None, Some("no model")),
    ])
}

fn type_in(view: &mut View, text: &str) {
    for letter in text.chars() {
        assert!(!view.wish(Wish::Letter(letter)), "{text}");
    }
}

#[test]
fn rows_numbers_and_keys_are_shown() {
    let lines = screen(&three(), 120, 8);
    assert_eq!(lines[0], "hookgate watch  3 rows  1 block  1 failure  median 2.0 ms  p95 3.0 ms  data");
    assert!(lines[1].starts_with("TIME         DECISION HOOK"), "{}", lines[1]);
    assert!(lines[3].contains("block    no-deleting") && lines[3].contains("ask a person"), "{}", lines[3]);
    assert!(lines[7].starts_with("type to filter"), "{}", lines[7]);
    // narrow: what matters less is left out
    let lines = screen(&three(), 60, 8);
    assert!(
        lines[3].contains("block") && lines[3].contains("exec") && !lines[3].contains("ask"),
        "{}",
        lines[3]
    );
}

#[test]
fn typing_filters() {
    let mut view = three();
    type_in(&mut view, "BLOCK exec");
    let lines = screen(&view, 120, 8);
    assert!(lines[0].contains("1 row  1 block  0 failures"), "{}", lines[0]);
    assert!(lines[2].contains("no-deleting") && lines[3].is_empty());
    assert_eq!(lines[7], "filter: BLOCK exec▏  Esc clears");
    type_in(&mut view, "x");
    assert!(screen(&view, 120, 8)[2].is_empty());
    view.wish(Wish::Erase);
    assert_eq!(view.shown().count(), 1);
    assert!(!view.wish(Wish::Escape), "first out of the filter");
    assert_eq!(view.shown().count(), 3);
    assert!(view.wish(Wish::Escape), "then out of the program");
    type_in(&mut view, "/q");
    assert_eq!(view.filter, "q", "a word may begin with q");
    view.wish(Wish::Erase);
    assert!(view.wish(Wish::Letter('q')));
}

#[test]
fn a_pause_holds_rows_back() {
    let mut view = three();
    view.wish(Wish::Letter(' '));
    view.add(vec![entry(4, "allow", "late", None, None)]);
    let lines = screen(&view, 120, 8);
    assert!(lines[0].contains("paused, 1 more") && !lines.concat().contains("late"), "{}", lines[0]);
    view.wish(Wish::Letter(' '));
    assert!(screen(&view, 120, 8).concat().contains("late"));
}

#[test]
fn scrolling_stays_where_it_is() {
    let mut view = view((1..=50).map(|n| entry(n, "allow", &format!("hook-{n}"), None, None)).collect());
    let shows =
        |view: &View, hook: &str| screen(view, 80, 13).iter().any(|line| line.contains(&format!("{hook} ")));
    assert!(shows(&view, "hook-50") && shows(&view, "hook-41") && !shows(&view, "hook-40"));
    view.wish(Wish::PageUp(10));
    view.wish(Wish::Up);
    assert_eq!(view.row().unwrap().id, 39);
    assert!(!view.follows());
    view.add(vec![entry(51, "allow", "hook-51", None, None)]);
    assert_eq!(view.row().unwrap().id, 39, "new rows do not move it");
    view.wish(Wish::Oldest);
    assert!(shows(&view, "hook-1") && view.row().unwrap().id == 1);
    view.wish(Wish::Up);
    assert_eq!(view.row().unwrap().id, 1);
    view.wish(Wish::Newest);
    assert!(view.follows() && shows(&view, "hook-51"));
    view.wish(Wish::Up);
    view.wish(Wish::PageDown(10));
    assert!(view.follows(), "at the end it follows again");
    // the chosen row may be filtered out
    view.wish(Wish::Oldest);
    type_in(&mut view, "hook-4");
    assert_eq!(view.row().unwrap().id, 4);
}

#[test]
fn a_row_is_shown_in_full() {
    let mut view = three();
    view.wish(Wish::Up);
    view.wish(Wish::Detail);
    let text = screen(&view, 100, 30).join("\n");
    for part in ["in full", "no-deleting (version", "block after 2.0 ms", "why           ask a person"] {
        assert!(text.contains(part), "`{part}` in\n{text}");
    }
    assert!(!view.wish(Wish::Escape) && !view.detail);
}

#[test]
fn strangers_do_not_steer_the_terminal() {
    let view = view(vec![entry(1, "block", "\u{1b}[2Jx\u{9b}", Some("a\nb"), Some("\u{7}"))]);
    let text = screen(&view, 120, 6).join("\n");
    assert!(
        !text.contains(['\u{1b}', '\u{9b}', '\u{7}']) && text.contains("\\x1b[2Jx") && text.contains("a b"),
        "{text}"
    );
}

#[test]
fn any_size_will_do() {
    let mut view = three();
    view.detail = true;
    for (width, height) in [(1, 1), (10, 3), (40, 5), (300, 100)] {
        assert_eq!(screen(&view, width, height).len(), usize::from(height));
    }
    assert!(screen(&View::default(), 80, 10)[0].contains("0 rows"));
}
