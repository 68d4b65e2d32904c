//! The settings of a built-in hook, strictly read.

use serde_json::{Map, Value};

/// Settings whose names are known to be right.
pub(super) struct Settings<'a> {
    given: &'a Map<String, Value>,
}

impl<'a> Settings<'a> {
    pub(super) fn new(
        given: &'a Map<String, Value>,
        own: &[&str],
        common: &[&str],
    ) -> Result<Settings<'a>, String> {
        let known = |name: &str| own.contains(&name) || common.contains(&name);
        match given.keys().find(|name| !known(name)) {
            Some(name) => {
                let all: Vec<&str> = own.iter().copied().chain(common.iter().copied()).collect();
                Err(format!("unknown setting `{name}`; expected {}", all.join(", ")))
            }
            None => Ok(Settings { given }),
        }
    }

    pub(super) fn number(&self, name: &str) -> Result<Option<i64>, String> {
        let Some(value) = self.given.get(name) else { return Ok(None) };
        value.as_i64().map(Some).ok_or_else(|| format!("setting `{name}`: expected a whole number"))
    }

    pub(super) fn text(&self, name: &str) -> Result<Option<&'a str>, String> {
        let Some(value) = self.given.get(name) else { return Ok(None) };
        value.as_str().map(Some).ok_or_else(|| format!("setting `{name}`: expected a text"))
    }

    pub(super) fn flag(&self, name: &str) -> Result<Option<bool>, String> {
        let Some(value) = self.given.get(name) else { return Ok(None) };
        value.as_bool().map(Some).ok_or_else(|| format!("setting `{name}`: expected true or false"))
    }

    pub(super) fn texts(&self, name: &str) -> Result<Vec<String>, String> {
        let wrong = || format!("setting `{name}`: expected a list of texts that are not empty");
        let Some(value) = self.given.get(name) else { return Ok(Vec::new()) };
        let list = value.as_array().ok_or_else(wrong)?;
        let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        list.iter().map(text).collect::<Option<_>>().ok_or_else(wrong)
    }
}
