//! A handler that plays what its "script" says, and remembers what it was asked.

use hookgate_core::future::BoxFuture;
use hookgate_core::handler::{
    Answer, Call, Fault, Handler, HandlerKind, HandlerSpec, HandlerType, Mode, ScriptText,
};
use hookgate_handlers::workshop::Workshop;
use serde_json::Value;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What handlers were asked: the hook's id and the event.
pub(crate) type Asked = Arc<Mutex<Vec<(String, Value)>>>;

/// A workshop in which a script's source is JSON: `block_if` (text in the event) or `block`, `reason`, `append`, `send`,
/// `fail`, `wait_ms`.
pub(crate) fn workshop(asked: Asked) -> Workshop {
    Workshop::empty().with(HandlerType::Script, move |spec: &HandlerSpec, _| {
        let HandlerKind::Script { text: ScriptText::Inline(source), .. } = &spec.kind else {
            return Err("only inline".into());
        };
        let script = serde_json::from_str(source).map_err(|error| error.to_string())?;
        Ok(Arc::new(Played { script, asked: asked.clone() }))
    })
}

#[derive(Debug)]
struct Played {
    script: Value,
    asked: Asked,
}

impl Handler for Played {
    fn ask<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Result<Answer, Fault>> {
        Box::pin(async move {
            let event: Value = serde_json::from_str(call.json).unwrap();
            self.asked.lock().unwrap().push((call.hook.to_string(), event.clone()));
            if let Some(ms) = self.script["wait_ms"].as_u64() {
                tokio::time::sleep(Duration::from_millis(ms)).await;
            }
            if self.script["fail"] == true {
                return Err(Fault::failed("it failed", "it failed"));
            }
            let text = |name: &str| self.script[name].as_str().map(str::to_owned);
            let found = text("block_if").is_some_and(|word| event.to_string().contains(&word));
            let mut answer =
                Answer::with_decision(if found || self.script["block"] == true { "block" } else { "allow" });
            answer.reason = text("reason");
            let addition = |name: &str, mode| text(name).map(|text| (Some(mode), text));
            answer.additions = [addition("append", Mode::Append), addition("send", Mode::Send)]
                .into_iter()
                .flatten()
                .collect();
            Ok(answer)
        })
    }
}
