//! `[builtin]`: which hooks of the program are on. `name = true`, or a table `[builtin.name]` with settings; what the
//! settings may be is the hook's own matter.

use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use serde_json::{Map, Value};
use std::fmt;

/// The enabled ones by name, each with its settings.
#[derive(Debug, Default, Clone, PartialEq)]
pub(crate) struct Builtins(pub(crate) Vec<(String, Map<String, Value>)>);

impl<'de> Deserialize<'de> for Builtins {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Table)
    }
}

struct Table;

impl<'de> Visitor<'de> for Table {
    type Value = Builtins;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a table of built-in hooks")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut table: A) -> Result<Builtins, A::Error> {
        let mut enabled = Vec::new();
        while let Some((name, value)) = table.next_entry::<String, Value>()? {
            match value {
                Value::Bool(true) => enabled.push((name, Map::new())),
                Value::Bool(false) => {}
                Value::Object(settings) => enabled.push((name, settings)),
                other => {
                    let expected =
                        format!("`{name}`: expected true, false or a table of settings, found {other}");
                    return Err(A::Error::custom(expected));
                }
            }
        }
        Ok(Builtins(enabled))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_name_is_on_with_true_or_a_table() {
        let text = "secrets = true\npii_tools = false\n[policy_text]\ntext = 'No advice.'\n";
        let Builtins(enabled) = toml::from_str(text).unwrap();
        assert_eq!(json!(enabled), json!([["policy_text", {"text": "No advice."}], ["secrets", {}]]));
        let error = toml::from_str::<Builtins>("secrets = 1").unwrap_err().to_string();
        assert!(error.contains("`secrets`: expected true, false or a table"), "{error}");
    }
}
