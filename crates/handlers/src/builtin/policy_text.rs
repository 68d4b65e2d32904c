//! `builtin/policy_text`: each answer carries a configured text.

use super::settings::Settings;
use super::{Asked, Made};
use hookgate_core::future::BoxFuture;
use hookgate_core::handler::{Answer, Call, Fault, Handler, Mode};

pub(super) fn make(settings: &Settings<'_>) -> Result<Made, String> {
    let text = settings.text("text")?.filter(|text| !text.trim().is_empty());
    let text = text.ok_or("setting `text`: expected the text that answers carry")?.to_owned();
    let mode = match settings.text("mode")? {
        None | Some("append") => Mode::Append,
        Some("send") => Mode::Send,
        Some(other) => return Err(format!("setting `mode`: expected append or send, found `{other}`")),
    };
    Ok(Made::Asked(Asked { mode, ..Asked::new(Policy { text }) }))
}

#[derive(Debug)]
struct Policy {
    text: String,
}

impl Handler for Policy {
    fn ask<'a>(&'a self, _: Call<'a>) -> BoxFuture<'a, Result<Answer, Fault>> {
        Box::pin(async move {
            let additions = vec![(None, self.text.clone())];
            Ok(Answer { additions, ..Answer::default() })
        })
    }
}
