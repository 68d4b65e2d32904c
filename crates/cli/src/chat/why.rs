//! In words: which hooks an event concerned, and what kept it from the others.

use hookgate_core::explain::{FilterTrace, Looked};
use hookgate_core::record::open_text;

/// Characters of a filter as written that are shown.
const LONGEST_FILTER: usize = 80;

/// A line for each hook that a filter ruled out.
pub(crate) fn filtered_out(trace: &FilterTrace) -> String {
    let mut text = String::new();
    for Looked { hook, out, .. } in &trace.looked {
        if let Some(out) = out {
            text.push_str(&ruled_out(hook, out.by.as_str(), &out.wanted, &open_text(&out.found)));
        }
    }
    text
}

/// The line of a hook that a filter ruled out.
pub(crate) fn ruled_out(hook: &str, by: &str, wanted: &str, found: &str) -> String {
    let shown: String = wanted.chars().take(LONGEST_FILTER).collect();
    let cut = if shown.len() < wanted.len() { "…" } else { "" };
    format!("  hook {hook} was ruled out by {by} `{shown}{cut}`: {found}\n")
}

/// The newest events, each with the hooks that it concerned and those that it did not.
pub(crate) fn looked(traces: &[FilterTrace]) -> String {
    if traces.is_empty() {
        return "no event yet that a hook listens to\n".into();
    }
    let mut text = String::new();
    for trace in traces {
        let about = trace.tool_name.as_deref().map(|tool| format!(" of {tool}")).unwrap_or_default();
        text.push_str(&format!("{}{about} (event {})\n", trace.event, trace.event_id));
        for concerned in trace.looked.iter().filter(|looked| looked.out.is_none()) {
            text.push_str(&format!("  hook {} was concerned\n", concerned.hook));
        }
        text.push_str(&filtered_out(trace));
    }
    text
}
