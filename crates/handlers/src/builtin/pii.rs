//! `builtin/pii_prompt` and `builtin/pii_tools`: personal data in the input becomes `[redacted:kind]`. The only
//! built-in hooks that change anything.

use super::secrets::{Kind, Secrets};
use super::settings::Settings;
use super::texts;
use super::{Asked, Made};
use hookgate_core::future::BoxFuture;
use hookgate_core::handler::{Answer, Call, Fault, Handler};
use serde_json::Map;

pub(super) fn make_for_prompts(_: &Settings<'_>) -> Result<Made, String> {
    Ok(Made::Asked(Asked::new(Redaction::of("rawInput")?)))
}

pub(super) fn make_for_tools(settings: &Settings<'_>) -> Result<Made, String> {
    let asked = Asked::new(Redaction::of("toolInput")?);
    let tools = settings.texts("tools")?;
    Ok(Made::Asked(if tools.is_empty() { asked } else { asked.for_tools(&[], tools) }))
}

#[derive(Debug)]
struct Redaction {
    field: &'static str,
    secrets: Secrets,
}

impl Redaction {
    fn of(field: &'static str) -> Result<Redaction, String> {
        let secrets = Secrets::new(&[Kind::Pii]).map_err(|error| error.to_string())?;
        Ok(Redaction { field, secrets })
    }
}

impl Handler for Redaction {
    fn ask<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Result<Answer, Fault>> {
        Box::pin(async move { Ok(self.answer(call)) })
    }
}

impl Redaction {
    fn answer(&self, call: Call<'_>) -> Answer {
        let mut answer = Answer::with_decision("allow");
        let changed = call
            .facts
            .get(self.field)
            .and_then(|value| texts::map(value, &|text| redacted(&self.secrets, text)));
        if let Some(changed) = changed {
            answer.updated_input = Some(Map::from_iter([(self.field.to_owned(), changed)]));
        }
        answer
    }
}

/// The text with its finds replaced. None: there are none.
fn redacted(secrets: &Secrets, text: &str) -> Option<String> {
    let found = secrets.find(text);
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for found in &found {
        out.push_str(text.get(at..found.span.start)?);
        out.push_str(&format!("[redacted:{}]", found.class));
        at = found.span.end;
    }
    out.push_str(text.get(at..)?);
    (!found.is_empty()).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_are_replaced_and_the_rest_stays() {
        let secrets = Secrets::new(&[Kind::Pii]).unwrap();
        let check = |text: &str, want: Option<&str>| assert_eq!(redacted(&secrets, text).as_deref(), want);
        check("nothing here", None);
        check("mail a.b@example.org, or c@example.com", Some("mail [redacted:email], or [redacted:email]"));
        check("žluť: 4111 1111 1111 1111 ok", Some("žluť: [redacted:card_number] ok"));
        check("\"078-05-1120\"", Some("\"[redacted:us_ssn]\""));
    }
}
