//! Reading JSON as providers write it: fields may be missing, null or of another type than promised.

use serde_json::Value;

/// Parses `text`; `None` when it is no JSON. What serde_json refuses is read as [`readable`] has it.
pub(crate) fn parse(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok().or_else(|| serde_json::from_str(&readable(text)?).ok())
}

/// The same with what serde_json refuses although it is JSON made readable; `None` when there is nothing of it. Half
/// surrogate pairs become U+FFFD: servers that cut text by UTF-16 units do send them. Numbers that no double holds
/// become the largest that one does.
pub(crate) fn readable(text: &str) -> Option<String> {
    let whole = whole_surrogates(text);
    let held = held_numbers(whole.as_deref().unwrap_or(text));
    held.or(whole)
}

/// The text of `field`; `None` when it is missing, no string or empty.
pub(crate) fn text<'a>(value: &'a Value, field: &str) -> Option<&'a str> {
    value.get(field).and_then(Value::as_str).filter(|text| !text.is_empty())
}

/// The count in `field`, at the end of a path of fields.
pub(crate) fn count(value: &Value, path: &[&str]) -> Option<u64> {
    path.iter().try_fold(value, |value, field| value.get(field))?.as_u64()
}

/// The elements of the array in `field`; none when it is missing or no array.
pub(crate) fn list<'a>(value: &'a Value, field: &str) -> &'a [Value] {
    value.get(field).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Whether there is something in the field: not null, not an empty text, list or object.
pub(crate) fn is_something(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        Value::Bool(_) | Value::Number(_) => true,
    }
}

/// Replaces numbers such as `1e400`; `None` when there is none.
fn held_numbers(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let (mut rest, mut changed) = (text, false);
    while let Some(at) = rest.find(|c: char| matches!(c, '"' | '-' | '0'..='9')) {
        let (before, from) = rest.split_at_checked(at)?;
        out.push_str(before);
        let length = match from.strip_prefix('"') {
            Some(string) => string_end(string)?.saturating_add(1),
            None => from
                .find(|c: char| !matches!(c, '0'..='9' | '+' | '-' | '.' | 'e' | 'E'))
                .unwrap_or(from.len()),
        };
        let (token, left) = from.split_at_checked(length)?;
        match token.parse::<f64>() {
            Ok(number) if number.is_infinite() => {
                changed = true;
                out.push_str(if number > 0.0 { "1.7976931348623157e308" } else { "-1.7976931348623157e308" });
            }
            _ => out.push_str(token),
        }
        rest = left;
    }
    out.push_str(rest);
    changed.then_some(out)
}

/// How long a string is whose quote was read, with the quote at its end.
fn string_end(text: &str) -> Option<usize> {
    let mut escaped = false;
    let end = text.bytes().position(|byte| {
        let ends = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        ends
    });
    Some(end?.saturating_add(1))
}

/// Replaces `\uD83D` without its other half by `\uFFFD`; `None` when there is none.
fn whole_surrogates(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut changed = false;
    while let Some((before, after)) = rest.split_once('\\') {
        out.push_str(before);
        let half = escape(after);
        let pair = half.filter(|unit| (0xD800..0xDC00).contains(unit)).and_then(|_| {
            let low = after.get(5..)?.strip_prefix('\\').and_then(escape)?;
            (0xDC00..0xE000).contains(&low).then_some(11)
        });
        let lone = pair.is_none() && half.is_some_and(|unit| (0xD800..0xE000).contains(&unit));
        let length =
            pair.unwrap_or(if half.is_some() { 5 } else { after.chars().next().map_or(0, char::len_utf8) });
        let (taken, left) = after.split_at_checked(length)?;
        out.push('\\');
        out.push_str(if lone { "ufffd" } else { taken });
        changed |= lone;
        rest = left;
    }
    out.push_str(rest);
    changed.then_some(out)
}

/// The code unit of `uXXXX` at the beginning of `after`, which stands behind a backslash.
fn escape(after: &str) -> Option<u32> {
    let digits = after.strip_prefix('u')?.get(..4)?;
    u32::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_surrogate_pairs_become_the_replacement_character() {
        for (text, expected) in [
            (r#""a\ud83d""#, "a\u{fffd}"),
            (r#""\ude00b""#, "\u{fffd}b"),
            (r#""\ud83d\ude00\ud83d""#, "\u{1f600}\u{fffd}"),
            (r#""\\ud83d\ud83d""#, "\\ud83d\u{fffd}"),
            (r#""\ud83d\n""#, "\u{fffd}\n"),
        ] {
            assert_eq!(parse(text), Some(Value::from(expected)), "{text}");
        }
        for (text, expected) in [
            (
                r#"[1e400, -1E+999, "1e400", "\"1e400", 1e-400, 12345678901234567890123]"#,
                serde_json::json!([f64::MAX, -f64::MAX, "1e400", "\"1e400", 0.0, 12345678901234567890123.0]),
            ),
            (r#"["\ud83d",1e400]"#, serde_json::json!(["\u{fffd}", f64::MAX])),
        ] {
            assert_eq!(parse(text), Some(expected), "{text}");
        }
        assert_eq!(parse("[1e400,]"), None);
        assert_eq!(parse("1e400e"), None);
        assert_eq!(parse(r#""\ud83"#), None);
        assert_eq!(parse(r#"\"#), None);
    }
}
