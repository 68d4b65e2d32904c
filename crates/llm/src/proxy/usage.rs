//! What several answers cost together.

use serde_json::Value;

/// Adds the counts of one answer to those of another, whatever the provider names them; what is no number stays.
pub(super) fn add(total: &mut Value, more: &Value) {
    match (total, more) {
        (total @ Value::Null, more) => *total = more.clone(),
        (Value::Object(total), Value::Object(more)) => {
            for (name, count) in more {
                add(total.entry(name.as_str()).or_insert(Value::Null), count);
            }
        }
        (Value::Array(total), Value::Array(more)) => total.extend(more.iter().cloned()),
        (Value::Number(total), Value::Number(more)) => {
            if let (Some(a), Some(b)) = (total.as_u64(), more.as_u64()) {
                *total = a.saturating_add(b).into();
            } else if let (Some(a), Some(b)) = (total.as_f64(), more.as_f64()) {
                *total = serde_json::Number::from_f64(a + b).unwrap_or_else(|| total.clone());
            }
        }
        _ => {}
    }
}

/// Takes over what a later report says, and keeps what it does not speak of.
pub(super) fn merge(known: &mut Value, later: &Value) {
    match (known, later) {
        (_, Value::Null) => {}
        (Value::Object(known), Value::Object(later)) => {
            for (name, count) in later {
                merge(known.entry(name.as_str()).or_insert(Value::Null), count);
            }
        }
        (known, later) => *known = later.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn counts_add_up_at_any_depth() {
        let mut total = json!({"a": 1, "d": {"x": 2}, "tier": "s", "none": null});
        add(&mut total, &json!({"a": 2, "b": 3, "d": {"x": 1, "y": 1.5}, "tier": "t", "none": 4}));
        assert_eq!(total, json!({"a": 3, "d": {"x": 3, "y": 1.5}, "tier": "s", "none": 4, "b": 3}));
        let mut total = Value::Null;
        add(&mut total, &json!({"a": u64::MAX}));
        add(&mut total, &json!({"a": 1, "c": 0.5}));
        add(&mut total, &json!({"c": 1}));
        assert_eq!(total, json!({"a": u64::MAX, "c": 1.5}));
    }

    #[test]
    fn later_reports_replace_earlier_ones() {
        let mut known = json!({"in": 5, "out": 1, "d": {"x": 1}});
        merge(&mut known, &json!({"out": 7, "in": null, "d": {"y": 2}}));
        assert_eq!(known, json!({"in": 5, "out": 7, "d": {"x": 1, "y": 2}}));
    }
}
