//! The version of a definition, so that a record tells which wording of a rule ran.

use crate::canonical;
use serde_json::{Deserializer, Value};
use sha2::{Digest, Sha256};
use std::sync::{Arc, OnceLock};

/// Twelve hex digits of the hash of a definition's canonical text. Writing order and blanks do not change it. Worked
/// out when somebody asks: most hooks leave no record in a process that answers one event.
#[derive(Debug, Clone)]
pub struct Version {
    /// The text of the whole file, which its hooks share, and where in it the definition begins.
    written: Option<(Arc<str>, usize)>,
    digits: OnceLock<Arc<str>>,
}

impl Version {
    /// That of the definition which begins at this byte of a JSON text.
    pub fn of_text(text: Arc<str>, at: usize) -> Version {
        Version { written: Some((text, at)), digits: OnceLock::new() }
    }

    /// That of a definition.
    pub fn of(definition: &Value) -> Version {
        Version { written: None, digits: OnceLock::from(digits_of(definition)) }
    }

    /// The digits.
    pub fn digits(&self) -> Arc<str> {
        self.digits.get_or_init(|| self.read().as_ref().map(digits_of).unwrap_or_default()).clone()
    }

    /// The definition. There is always one: it was read before.
    fn read(&self) -> Option<Value> {
        let (text, at) = self.written.as_ref()?;
        Deserializer::from_str(text.get(*at..)?).into_iter().next()?.ok()
    }
}

fn digits_of(definition: &Value) -> Arc<str> {
    let mut canonical = Vec::new();
    canonical::write(definition, &mut canonical);
    let digest = Sha256::digest(&canonical);
    digest.iter().take(6).map(|byte| format!("{byte:02x}")).collect::<String>().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_and_blanks_do_not_matter() {
        let of = |text: &str, at| Version::of_text(text.into(), at).digits();
        let first = of(r#"[{"a": 1, "b": [true, "ü"]}, 7]"#, 1);
        assert_eq!(first.len(), 12);
        assert_eq!(first, of("{\"b\":[true,\"\\u00fc\"],\n\"a\":1}", 0));
        assert_eq!(first, Version::of(&serde_json::json!({"a": 1, "b": [true, "ü"]})).digits());
        assert_ne!(first, of(r#"{"a": 1, "b": [true, "u"]}"#, 0));
    }
}
