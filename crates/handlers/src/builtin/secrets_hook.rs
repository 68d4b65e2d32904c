//! `builtin/secrets`: blocks a tool call with a credential anywhere in its input. The reason names the kinds, never the
//! text.

use super::secrets::{Kind, Secrets};
use super::settings::Settings;
use super::texts;
use super::{Asked, Made};
use hookgate_core::future::BoxFuture;
use hookgate_core::handler::{Answer, Call, Fault, Handler};

pub(super) fn make(settings: &Settings<'_>) -> Result<Made, String> {
    let asked = Asked::new(Search { secrets: secrets(settings)? });
    let tools = settings.texts("tools")?;
    Ok(Made::Asked(if tools.is_empty() { asked } else { asked.for_tools(&[], tools) }))
}

/// The rules of the kinds that are set.
pub(super) fn secrets(settings: &Settings<'_>) -> Result<Secrets, String> {
    let mut kinds = Vec::new();
    for kind in settings.texts("kinds")? {
        kinds.push(match kind.as_str() {
            "secret" => Kind::Secret,
            "pii" => Kind::Pii,
            other => return Err(format!("setting `kinds`: expected secret or pii, found `{other}`")),
        });
    }
    if kinds.is_empty() {
        kinds.push(Kind::Secret);
    }
    Secrets::new(&kinds).map_err(|error| error.to_string())
}

#[derive(Debug)]
struct Search {
    secrets: Secrets,
}

impl Handler for Search {
    fn ask<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Result<Answer, Fault>> {
        Box::pin(async move { Ok(self.answer(call)) })
    }
}

impl Search {
    fn answer(&self, call: Call<'_>) -> Answer {
        let mut classes: Vec<&'static str> = Vec::new();
        if let Some(input) = call.facts.get("toolInput") {
            texts::each(input, &mut |text| {
                classes.extend(self.secrets.find(text).iter().map(|found| found.class));
            });
        }
        classes.sort_unstable();
        classes.dedup();
        if classes.is_empty() {
            Answer::with_decision("allow")
        } else {
            let reason = format!("the input of the tool holds: {}", classes.join(", "));
            Answer { reason: Some(reason), ..Answer::with_decision("block") }
        }
    }
}
