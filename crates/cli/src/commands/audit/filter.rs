//! The filters of the command line, strictly read: a word that is misspelt would show nothing and look like an answer.

use crate::args::FilterArgs;
use crate::failure::Failure;
use hookgate_core::point::Point;
use hookgate_core::verdict::Decision;
use hookgate_core::word::Word;
use hookgate_store::query::Filter;
use hookgate_store::row::Hash;

/// Reads them; ages count back from `now`, in milliseconds since 1970.
pub(in crate::commands) fn read(args: &FilterArgs, now: i64) -> Result<Filter, Failure> {
    let time = |text: &Option<String>| text.as_deref().map(|text| time(text, now)).transpose();
    Ok(Filter {
        since: time(&args.since)?,
        until: time(&args.until)?,
        session_id: args.session.clone(),
        tenant_id: args.tenant.clone(),
        agent_id: args.agent.clone(),
        hook: args.hook.clone(),
        event: args.event.as_deref().map(word::<Point>).transpose()?,
        event_id: args.event_id.clone(),
        tool_name: args.tool.clone(),
        decision: args.decision.as_deref().map(word::<Decision>).transpose()?,
        input_hash: args.input_hash.as_deref().map(hash).transpose()?,
        trace_id: None,
    })
}

fn word<W: Word>(text: &str) -> Result<String, Failure> {
    match W::from_word(text) {
        Some(word) => Ok(word.as_str().to_owned()),
        None => Err(Failure::new(format!("unknown {} `{text}`; expected one of {}", W::KIND, W::allowed()))),
    }
}

fn hash(text: &str) -> Result<Hash, Failure> {
    let wrong = || Failure::new(format!("`{text}` is no input hash; expected 64 hex digits"));
    let mut hash = Hash::default();
    if text.len() != hash.len().saturating_mul(2) {
        return Err(wrong());
    }
    for (byte, at) in hash.iter_mut().zip((0..).step_by(2)) {
        let digits: &str = text.get(at..at + 2).ok_or_else(wrong)?;
        *byte = u8::from_str_radix(digits, 16).map_err(|_| wrong())?;
    }
    Ok(hash)
}

/// A day, a moment, or an age.
fn time(text: &str, now: i64) -> Result<i64, Failure> {
    if let Some(age) = age(text) {
        return Ok(now.saturating_sub(age));
    }
    if let Ok(moment) = text.parse::<jiff::Timestamp>() {
        return Ok(moment.as_millisecond());
    }
    let start = format!("{text}T00:00:00Z").parse::<jiff::Timestamp>();
    start.map(|start| start.as_millisecond()).map_err(|_| {
        Failure::new(format!(
            "`{text}` is no time; expected 2026-11-30, 2026-11-30T08:00:00Z, or an age such as 30m, 2h or 7d"
        ))
    })
}

/// `90d` in milliseconds.
pub(super) fn age(text: &str) -> Option<i64> {
    i64::try_from(crate::age::read(text)?.as_millis()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_days_moments_or_ages() {
        let check = |text: &str, want: Option<i64>| assert_eq!(time(text, 1_000_000).ok(), want, "{text}");
        check("1970-01-02", Some(86_400_000));
        check("1970-01-01T00:00:01Z", Some(1000));
        check("1970-01-01T01:00:00+01:00", Some(0));
        check("10s", Some(990_000));
        check("0d", Some(1_000_000));
        for wrong in ["", "d", "-1d", "yesterday", "1970-02-31", "99999999999999999d", "5 d", "é"] {
            check(wrong, None);
        }
    }

    #[test]
    fn misspelt_words_are_refused() {
        let refused = |args: FilterArgs, want: &str| {
            let error = read(&args, 0).unwrap_err().to_string();
            assert!(error.contains(want), "{error}");
        };
        refused(
            FilterArgs { decision: Some("blocked".into()), ..FilterArgs::default() },
            "expected one of allow, block",
        );
        refused(
            FilterArgs { event: Some("pre_tool".into()), ..FilterArgs::default() },
            "unknown point `pre_tool`",
        );
        refused(FilterArgs { input_hash: Some("abc".into()), ..FilterArgs::default() }, "64 hex digits");
        let hash = Some("é".repeat(32));
        refused(FilterArgs { input_hash: hash, ..FilterArgs::default() }, "64 hex digits");
    }
}
