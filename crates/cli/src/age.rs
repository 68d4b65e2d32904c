//! Ages as people write them: `30m`, `12h`, `90d`.

use std::time::Duration;

/// Reads one; `None` if it is none.
pub(crate) fn read(text: &str) -> Option<Duration> {
    let unit = text.chars().last()?;
    let number: u64 = text.strip_suffix(unit)?.parse().ok()?;
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3_600,
        'd' => 86_400,
        'w' => 604_800,
        _ => return None,
    };
    // in milliseconds it still has to be a number
    number
        .checked_mul(seconds)
        .filter(|seconds| seconds.checked_mul(1000).is_some_and(|ms| i64::try_from(ms).is_ok()))
        .map(Duration::from_secs)
}
