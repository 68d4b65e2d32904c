//! Handlers of hooks that a dry run does not ask: what reaches out of this process is only noted.

use hookgate_core::future::BoxFuture;
use hookgate_core::handler::{Answer, Call, Fault, Handler, HandlerType};
use hookgate_handlers::workshop::Workshop;
use std::sync::Arc;

/// The kinds of handler that a dry run does not ask.
pub const NOT_ASKED: [HandlerType; 3] = [HandlerType::Command, HandlerType::Http, HandlerType::Prompt];

/// What a handler that was not asked leaves on its console.
pub(crate) const MARK: &str = "not asked: this is a dry run";

/// The workshop with stand-ins for [`NOT_ASKED`]; they let everything through.
pub fn dry(workshop: Workshop) -> Workshop {
    NOT_ASKED.into_iter().fold(workshop, |workshop, kind| {
        workshop.with(kind, |_, _| Ok(Arc::new(NotAsked) as Arc<dyn Handler>))
    })
}

#[derive(Debug)]
struct NotAsked;

impl Handler for NotAsked {
    fn ask<'a>(&'a self, _: Call<'a>) -> BoxFuture<'a, Result<Answer, Fault>> {
        let answer = Answer { console: MARK.to_owned(), ..Answer::with_decision("allow") };
        Box::pin(std::future::ready(Ok(answer)))
    }
}
