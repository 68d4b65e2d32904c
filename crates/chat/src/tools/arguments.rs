//! The arguments of a built-in tool: from the model's JSON object to a type.

use super::ToolError;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// Reads the arguments. The error names the field and what is expected, so that the model can mend its call.
pub(super) fn read<T: DeserializeOwned>(args: Map<String, Value>) -> Result<T, ToolError> {
    serde_json::from_value(Value::Object(args))
        .map_err(|error| ToolError(format!("the arguments do not fit: {error}")))
}

/// Cuts a text at a limit of bytes, between characters. True if something was cut off.
pub(super) fn cut(text: &mut String, limit: usize) -> bool {
    if text.len() <= limit {
        return false;
    }
    let end = (0..=limit).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    text.truncate(end);
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_between_characters() {
        let mut text = "aé".to_owned();
        assert!(!cut(&mut text, 3));
        assert!(cut(&mut text, 2));
        assert_eq!(text, "a");
    }
}
