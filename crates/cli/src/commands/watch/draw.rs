//! The live view on a screen of any size. Colours only where they are wanted; nothing depends on them.

use super::view::View;
use crate::terminal;
use hookgate_store::query::Entry;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Cell, Paragraph, Row, Table, TableState, Wrap};

/// Rows of the pane that shows one in full.
const PANE: u16 = 12;

/// What the drawing needs beside the view.
pub(super) struct Setting<'a> {
    /// Where the trail is.
    pub(super) place: &'a str,
    pub(super) colours: bool,
    /// The chosen row with its detail opened.
    pub(super) detail: Option<&'a Entry>,
}

/// Draws all of it.
pub(super) fn draw(frame: &mut Frame<'_>, view: &View, setting: &Setting<'_>) {
    let pane = if view.detail { PANE.min(frame.area().height / 2) } else { 0 };
    let parts = Layout::vertical([
        Constraint::Length(1),
        Constraint::Min(3),
        Constraint::Length(pane),
        Constraint::Length(1),
    ]);
    let [head, table, detail, foot] = parts.areas(frame.area());
    frame.render_widget(Paragraph::new(title(view, setting)), head);
    rows(frame, table, view, setting);
    if view.detail {
        let block = Block::new().borders(Borders::TOP).title(" in full ");
        let text = setting.detail.map(in_full).unwrap_or_default();
        frame.render_widget(Paragraph::new(text).wrap(Wrap { trim: false }).block(block), detail);
    }
    frame.render_widget(Paragraph::new(keys(view)), foot);
}

/// `3 rows  1 block  no failures  median 1.2 ms  p95 8.0 ms   data`
fn title(view: &View, setting: &Setting<'_>) -> Line<'static> {
    let numbers = view.numbers();
    let count = |n: usize, one: &str| format!("{n} {one}{}", if n == 1 { "" } else { "s" });
    let time = |micros| format!("{} ms", super::super::audit::milliseconds(micros));
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let mut spans = vec![
        Span::styled("hookgate watch  ", bold),
        Span::raw(format!("{}  ", count(numbers.rows, "row"))),
        Span::styled(format!("{}  ", count(numbers.blocks, "block")), style("block", setting.colours)),
        Span::raw(format!("{}  ", count(numbers.failures, "failure"))),
        Span::raw(format!("median {}  p95 {}  ", time(numbers.median), time(numbers.p95))),
    ];
    if view.paused {
        spans.push(Span::styled(format!("paused, {} more  ", view.n_held()), bold));
    } else if !view.follows() {
        spans.push(Span::styled("End follows again  ", bold));
    }
    spans.push(Span::raw(if view.status.is_empty() {
        setting.place.to_owned()
    } else {
        terminal::printable(&view.status, true).into_owned()
    }));
    Line::from(spans)
}

fn rows(frame: &mut Frame<'_>, area: Rect, view: &View, setting: &Setting<'_>) {
    // only what fits is made; the head takes a line
    let room = usize::from(area.height.saturating_sub(1));
    let place = view.place();
    let n_shown = view.shown().count();
    let first = place.saturating_add(1).saturating_sub(room).min(n_shown.saturating_sub(room));
    let wide = area.width >= 100;
    let mut head = vec!["TIME", "DECISION", "HOOK", "EVENT", "TOOL", "MS"];
    let mut widths = vec![
        Constraint::Length(12),
        Constraint::Length(8),
        Constraint::Fill(3),
        Constraint::Length(18),
        Constraint::Fill(2),
        Constraint::Length(8),
    ];
    if wide {
        head.extend(["SESSION", "WHY"]);
        widths.extend([Constraint::Fill(3), Constraint::Fill(5)]);
    }
    let lines = view.shown().skip(first).take(room).map(|row| line(row, wide, setting.colours));
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let table = Table::new(lines, widths)
        .header(Row::new(head).style(bold))
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED));
    let mut state = TableState::new().with_selected((n_shown > 0).then(|| place.saturating_sub(first)));
    frame.render_stateful_widget(table, area, &mut state);
}

fn line(row: &Entry, wide: bool, colours: bool) -> Row<'static> {
    let text =
        |text: &str| Cell::from(terminal::printable(&text.replace(['\n', '\t'], " "), true).into_owned());
    let time = super::super::audit::time(row.created_at);
    let clock = time.split_once('T').map_or(time.as_str(), |(_, clock)| clock).trim_end_matches('Z');
    let took = super::super::audit::milliseconds(row.duration_us);
    let mut cells = vec![
        text(clock),
        text(&row.decision),
        text(&row.hook_label),
        text(&row.event),
        text(row.tool_name.as_deref().unwrap_or("-")),
        Cell::from(Line::from(took).right_aligned()),
    ];
    if wide {
        cells.extend([text(&row.session_id), text(row.error.as_deref().unwrap_or_default())]);
    }
    Row::new(cells).style(style(&row.decision, colours))
}

fn style(decision: &str, colours: bool) -> Style {
    match decision {
        _ if !colours => Style::new(),
        "block" => Style::new().fg(Color::Red),
        "error" | "timeout" => Style::new().fg(Color::Yellow),
        _ => Style::new(),
    }
}

/// A row with all that people ask for.
fn in_full(row: &Entry) -> Vec<Line<'static>> {
    let optional = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".into());
    let took = super::super::audit::milliseconds(row.duration_us);
    let mut facts = vec![
        ("hook", format!("{} (version {})", row.hook_label, row.hook_version)),
        ("decision", format!("{} after {took} ms", row.decision)),
        ("event", format!("{} ({})", row.event, row.event_id)),
        ("tool", optional(&row.tool_name)),
        ("session", row.session_id.clone()),
        ("tenant, agent", format!("{}, {}", optional(&row.tenant_id), optional(&row.agent_id))),
        ("row, time", format!("{}, {}", row.id, super::super::audit::time(row.created_at))),
        ("why", optional(&row.error)),
    ];
    if row.times > 1 {
        facts.push(("firings", row.times.to_string()));
    }
    match (&row.error_detail, &row.key_id) {
        (Some(detail), _) => facts.push(("detail", detail.clone())),
        (None, Some(key)) => facts.push(("detail", format!("sealed with key {key}, which is not at hand"))),
        (None, None) => {}
    }
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let line = |(name, value): (&str, String)| {
        let value = terminal::printable(&value.replace(['\n', '\t'], " "), true).into_owned();
        Line::from(vec![Span::styled(format!("{name:<14}"), bold), Span::raw(value)])
    };
    facts.into_iter().map(line).collect()
}

fn keys(view: &View) -> Line<'static> {
    if !view.typing {
        return Line::from(
            "type to filter · ↑↓ PgUp PgDn Home End scroll · space pauses · Enter in full · q quits",
        );
    }
    let filter = terminal::printable(&view.filter, true).into_owned();
    let bold = Style::new().add_modifier(Modifier::BOLD);
    Line::from(vec![Span::raw("filter: "), Span::styled(filter, bold), Span::raw("▏  Esc clears")])
}

#[cfg(test)]
mod tests;
