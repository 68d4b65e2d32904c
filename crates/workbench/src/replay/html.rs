//! The report as one page that needs nothing else: style and script stand inside, and a policy allows these two and
//! nothing more.
//!
//! All texts come from histories, and histories hold what tools printed: markup included. Every text goes through
//! `Text`, which lets none of it be markup, and shows characters that would turn the direction of a line around.

use super::deed::What;
use super::report::{Finding, Report, Row, Side};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hookgate_core::word::Word;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::fmt::{self, Write};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");
/// Sessions in the timeline.
const MOST_LANES: usize = 200;
/// Marks in one lane.
const MOST_MARKS: usize = 400;
/// Findings on the page.
const MOST_ROWS: usize = 5_000;

/// The page.
pub fn page(report: &Report) -> String {
    let mut page = String::with_capacity(64 << 10);
    // writing to a String cannot fail
    let _ = write_page(&mut page, report);
    page
}

/// A text that is shown as it is.
struct Text<'a>(&'a str);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                '\n' | '\t' => f.write_char(c)?,
                c if c.is_control() || turns_around(c) => write!(f, "\\u{{{:x}}}", u32::from(c))?,
                c => f.write_char(c)?,
            }
        }
        Ok(())
    }
}

/// Characters that make a line read in another order.
fn turns_around(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{61c}')
}

fn write_page(page: &mut String, report: &Report) -> fmt::Result {
    let (style, script) = (hash(STYLE), hash(SCRIPT));
    let title = match &report.against {
        Some(against) => format!("{} against {against}", report.hooks),
        None => format!("{} on past sessions", report.hooks),
    };
    let title = Text(&title);
    write!(
        page,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src '{style}'; \
         script-src '{script}'; base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n\
         <title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n"
    )?;
    page.push_str("<p class=\"soft\">What hooks would have done. The past is not changed by it: what follows a blocked step is what followed.</p>\n");
    tiles(page, report)?;
    rows(page, report)?;
    timeline(page, report)?;
    findings(page, report)?;
    rest(page, report)?;
    write!(page, "<script>{SCRIPT}</script>\n</body>\n</html>\n")
}

/// What a policy calls a text that stands in the page.
fn hash(text: &str) -> String {
    format!("sha256-{}", BASE64_STANDARD.encode(Sha256::digest(text)))
}

fn tiles(page: &mut String, report: &Report) -> fmt::Result {
    let blocked: u64 = report.rows.iter().filter(|row| row.what == What::Block).map(|row| row.times).sum();
    page.push_str("<ul class=\"tiles\">\n");
    for (name, number, is_bad) in [
        ("files", report.files, false),
        ("sessions", report.sessions, false),
        ("events", report.events, false),
        ("blocked", blocked, blocked > 0),
        ("damaged lines", report.damaged, report.damaged > 0),
    ] {
        let class = if is_bad { " class=\"bad\"" } else { "" };
        writeln!(page, "<li{class}><b>{}</b>{name}</li>", grouped(number))?;
    }
    page.push_str("</ul>\n");
    Ok(())
}

/// A number with blanks between its thousands.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && digits.len().saturating_sub(place).is_multiple_of(3) {
            text.push('\u{a0}');
        }
        text.push(digit);
    }
    text
}

fn rows(page: &mut String, report: &Report) -> fmt::Result {
    page.push_str("<h2>By hook</h2>\n");
    if report.rows.is_empty() {
        page.push_str("<p>No hook would have done anything.</p>\n");
        return Ok(());
    }
    let two = report.against.is_some();
    page.push_str("<table><thead><tr><th>Would</th><th>Hook</th>");
    page.push_str(if two {
        "<th class=\"n\">Times</th><th class=\"n\">Against</th><th class=\"n\">Only hooks</th><th class=\"n\">Only against</th>"
    } else {
        "<th class=\"n\">Times</th><th class=\"n\">Sessions</th>"
    });
    page.push_str("<th>First</th></tr></thead>\n<tbody>\n");
    for row in &report.rows {
        row_of(page, row)?;
    }
    page.push_str("</tbody></table>\n");
    Ok(())
}

fn row_of(page: &mut String, row: &Row) -> fmt::Result {
    let number = |page: &mut String, name: &str, number: u64| {
        write!(page, "<td class=\"n\" data-name=\"{name}\">{}</td>", grouped(number))
    };
    let hook = Text(&row.hook);
    write!(
        page,
        "<tr><td class=\"what {}\">{}</td><td class=\"hook\">{hook}</td>",
        class(row.what),
        row.what.as_str()
    )?;
    match (row.times_against, row.only_hooks, row.only_against) {
        (Some(against), Some(only_hooks), Some(only_against)) => {
            number(page, "times", row.times)?;
            number(page, "against", against)?;
            number(page, "only hooks", only_hooks)?;
            number(page, "only against", only_against)?;
        }
        _ => {
            number(page, "times", row.times)?;
            number(page, "sessions", row.sessions)?;
        }
    }
    match &row.first {
        Some(first) => {
            write!(page, "<td><span class=\"where mono\">{}:{}</span>", Text(&first.file), first.line)?;
            texts(page, first)?;
            page.push_str("</td></tr>\n");
        }
        None => page.push_str("<td class=\"empty\"></td></tr>\n"),
    }
    Ok(())
}

/// What happened, and what the hook says to it.
fn texts(page: &mut String, finding: &Finding) -> fmt::Result {
    if !finding.excerpt.is_empty() {
        write!(page, "<code class=\"excerpt\">{}</code>", Text(&finding.excerpt))?;
    }
    if !finding.text.is_empty() {
        write!(page, "<span class=\"said\">{}</span>", Text(&finding.text))?;
    }
    Ok(())
}

fn class(what: What) -> &'static str {
    match what {
        What::Block | What::Withhold | What::Fault => "grave",
        What::Interrupt | What::Redact | What::Object | What::Warn => "warm",
        What::Change | What::Resend | What::Append | What::Send | What::Queue => "cool",
        What::Ask | What::Log => "calm",
    }
}

fn timeline(page: &mut String, report: &Report) -> fmt::Result {
    if report.found_in.is_empty() {
        return Ok(());
    }
    let mut marks: HashMap<(&str, usize), Vec<(usize, &Finding)>> = HashMap::new();
    for (place, finding) in report.findings.iter().enumerate().take(MOST_ROWS) {
        marks.entry((&finding.file, finding.in_file)).or_default().push((place, finding));
    }
    page.push_str("<h2>Timeline</h2>\n<div class=\"lanes\">\n");
    for session in report.found_in.iter().take(MOST_LANES) {
        // most agents name the file after the session
        let is_said = session.file.contains(&session.id);
        let name = if is_said { session.file.clone() } else { format!("{} · {}", session.file, session.id) };
        // the end of a path tells most, so a lane cuts its beginning off
        write!(
            page,
            "<div class=\"lane\"><span class=\"name mono\" title=\"{0}\"><bdi>{0}</bdi></span>\
             <svg role=\"img\" aria-label=\"findings in {0}\"><rect class=\"rail\" x=\"0\" y=\"10\" width=\"100%\" height=\"2\"/>",
            Text(&name)
        )?;
        let here =
            marks.get(&(session.file.as_str(), session.in_file)).map(Vec::as_slice).unwrap_or_default();
        let mut here: Vec<_> = here.iter().take(MOST_MARKS).collect();
        // the gravest lie on top
        here.sort_by_key(|(_, finding)| std::cmp::Reverse(finding.what));
        for (place, finding) in here {
            mark(page, *place, finding, session.events)?;
        }
        let events = grouped(session.events);
        writeln!(
            page,
            "</svg><span class=\"count\">{} in {events} events</span></div>",
            grouped(session.found)
        )?;
    }
    page.push_str("</div>\n<ul class=\"keys\">");
    for (name, words) in [
        ("grave", "block, withhold, fault"),
        ("warm", "interrupt, redact, object, warn"),
        ("cool", "change, resend, append, send, queue"),
        ("calm", "ask, log"),
    ] {
        write!(page, "<li class=\"{name}\">{words}</li>")?;
    }
    page.push_str("</ul>\n");
    let more = report.found_in.len().saturating_sub(MOST_LANES);
    if more > 0 {
        writeln!(page, "<p class=\"soft\">{more} more sessions are not drawn.</p>")?;
    }
    Ok(())
}

fn mark(page: &mut String, place: usize, finding: &Finding, events: u64) -> fmt::Result {
    // in thousandths of the session; a mark at the very end stays inside
    let at = finding.nth.saturating_sub(1).saturating_mul(990).checked_div(events.max(1)).unwrap_or(0);
    let title = format!("{} {} at line {}", finding.what.as_str(), finding.hook, finding.line);
    let (top, height) = if class(finding.what) == "grave" { (0, 22) } else { (4, 14) };
    write!(
        page,
        "<a href=\"#f{place}\" aria-label=\"{0}\"><title>{0}</title><rect class=\"{1}\" x=\"{2}.{3}%\" y=\"{top}\" width=\"5\" height=\"{height}\" rx=\"1.5\"/></a>",
        Text(&title),
        class(finding.what),
        at / 10,
        at % 10
    )
}

fn findings(page: &mut String, report: &Report) -> fmt::Result {
    if report.findings.is_empty() {
        return Ok(());
    }
    let two = report.against.is_some();
    page.push_str(if two { "<h2>Only one set does</h2>\n" } else { "<h2>One by one</h2>\n" });
    page.push_str(
        "<div class=\"search\" id=\"search\" hidden><input id=\"filter\" type=\"search\" autocomplete=\"off\" \
         placeholder=\"Filter: block exec rm\" aria-label=\"Filter the findings\"><span class=\"soft\" id=\"shown\" role=\"status\"></span></div>\n\
         <table id=\"findings\"><thead><tr><th>Would</th><th>Hook</th><th>Where</th><th>Event</th><th>What happened</th></tr></thead>\n<tbody>\n",
    );
    for (place, finding) in report.findings.iter().enumerate().take(MOST_ROWS) {
        let side = match (two, finding.side) {
            (false, _) => "",
            (true, Side::First) => "<span class=\"said\">only hooks</span>",
            (true, Side::Second) => "<span class=\"said\">only against</span>",
        };
        write!(
            page,
            "<tr id=\"f{place}\"><td class=\"what {}\">{}</td><td class=\"hook\">{}{side}</td><td class=\"where mono\">{}:{}",
            class(finding.what),
            finding.what.as_str(),
            Text(&finding.hook),
            Text(&finding.file),
            finding.line
        )?;
        if let Some(time) = &finding.time {
            write!(page, "<span class=\"said\">{}</span>", Text(time))?;
        }
        write!(page, "</td><td>{}", finding.event)?;
        if let Some(tool) = &finding.tool {
            write!(page, "<span class=\"said\">{}</span>", Text(tool))?;
        }
        page.push_str("</td><td>");
        texts(page, finding)?;
        page.push_str("</td></tr>\n");
    }
    page.push_str("</tbody></table>\n");
    let listed = u64::try_from(report.findings.len().min(MOST_ROWS)).unwrap_or(u64::MAX);
    let all = report.unlisted.saturating_add(u64::try_from(report.findings.len()).unwrap_or(u64::MAX));
    if all > listed {
        writeln!(
            page,
            "<p class=\"soft\">{} more are counted above and not listed.</p>",
            grouped(all.saturating_sub(listed))
        )?;
    }
    Ok(())
}

/// What was silent, damaged or unread.
fn rest(page: &mut String, report: &Report) -> fmt::Result {
    list(
        page,
        "Hooks that did nothing",
        0,
        report.silent.iter().map(|silent| match (report.against.is_some(), silent.side) {
            (true, Side::First) => format!("{} (hooks)", silent.hook),
            (true, Side::Second) => format!("{} (against)", silent.hook),
            (false, _) => silent.hook.clone(),
        }),
    )?;
    let more = report.damaged.saturating_sub(u64::try_from(report.damage.len()).unwrap_or(u64::MAX));
    let damage =
        report.damage.iter().map(|damage| format!("{}:{}: {}", damage.file, damage.line, damage.why));
    list(page, "Damaged lines", more, damage)?;
    let more = report.n_unread.saturating_sub(u64::try_from(report.unread.len()).unwrap_or(u64::MAX));
    let unread = report.unread.iter().map(|unread| format!("{}: {}", unread.file, unread.why));
    list(page, "Files that were not read", more, unread)
}

fn list(page: &mut String, title: &str, more: u64, items: impl Iterator<Item = String>) -> fmt::Result {
    let mut items = items.peekable();
    if items.peek().is_none() {
        return Ok(());
    }
    write!(page, "<h2>{title}</h2>\n<ul class=\"plain mono\">\n")?;
    for item in items {
        writeln!(page, "<li>{}</li>", Text(&item))?;
    }
    if more > 0 {
        writeln!(page, "<li>and {} more</li>", grouped(more))?;
    }
    page.push_str("</ul>\n");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_becomes_markup() {
        let hostile = "</script><img src=x onerror=alert(1)>\"'&\u{1b}[31m\u{202e}abc";
        let finding = Finding {
            file: hostile.into(),
            line: 3,
            session: hostile.into(),
            in_file: 0,
            nth: 1,
            time: Some(hostile.into()),
            side: Side::First,
            what: What::Block,
            hook: hostile.into(),
            event: "pre_tool_use",
            tool: Some(hostile.into()),
            excerpt: hostile.into(),
            text: hostile.into(),
        };
        let row = Row {
            what: What::Block,
            hook: hostile.into(),
            times: 1,
            times_against: None,
            only_hooks: None,
            only_against: None,
            sessions: 1,
            first: Some(finding.clone()),
        };
        let session = super::super::report::Session {
            file: hostile.into(),
            id: hostile.into(),
            events: 1,
            found: 1,
            ..Default::default()
        };
        let damage = super::super::report::Damage { file: hostile.into(), line: 1, why: hostile.into() };
        let page = page(&Report {
            hooks: hostile.into(),
            against: Some(hostile.into()),
            rows: vec![row],
            findings: vec![finding],
            found_in: vec![session],
            damage: vec![damage],
            damaged: 1,
            ..Report::default()
        });
        assert!(!page.contains("<img") && !page.contains('\u{1b}') && !page.contains('\u{202e}'));
        assert_eq!(page.matches("</script>").count(), 1);
        assert_eq!(
            page.matches("&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;&quot;&#39;&amp;").count(),
            21
        );
        assert!(page.contains("#f0"), "the mark leads to its row");
    }

    #[test]
    fn the_policy_allows_what_stands_in_the_page_and_no_more() {
        let page = page(&Report::default());
        let inside =
            |from: &str, to: &str| page.split_once(from).unwrap().1.split_once(to).unwrap().0.to_owned();
        for (tag, text) in
            [("style", inside("<style>", "</style>")), ("script", inside("<script>", "</script>"))]
        {
            assert!(page.contains(&format!("{tag}-src '{}'", hash(&text))), "{tag}");
        }
        assert!(page.contains("default-src 'none'") && !page.contains("unsafe-inline"));
        assert!(!page.contains(" style=\"") && !page.contains(" onclick") && !page.contains("http://"));
        assert!(page.contains("No hook would have done anything"));
    }

    #[test]
    fn numbers_are_grouped() {
        assert_eq!([0, 999, 1000, 1234567].map(grouped), ["0", "999", "1\u{a0}000", "1\u{a0}234\u{a0}567"]);
    }
}
