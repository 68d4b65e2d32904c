//! One prompt, one answer.

use super::Display;
use super::turn::{Engine, Turn};
use crate::exit::Exit;
use crate::failure::{Failure, with_causes};
use hookgate_chat::{ChatService, Outcome, Role};

/// Asks and shows the answer.
pub(crate) fn answer(service: &ChatService, prompt: String, display: &Display) -> Result<Exit, Failure> {
    // queued, not added: then a hook may interrupt on the prompt itself
    service.queue_message(Role::User, prompt);
    let engine = Engine::start()?;
    let turn = engine.send(service, display, &mut engine.all_signals()?);
    if matches!(turn, Turn::Sent(_) | Turn::Stopped(_)) {
        engine.close(service, display);
    }
    engine.leave();
    match turn {
        Turn::Sent(Ok(outcome)) => {
            display.ended(&outcome);
            match display.take_error() {
                Some(error) => Err(Failure::Output(error)),
                None => Ok(match outcome {
                    Outcome::Answered(_) => Exit::Done,
                    Outcome::Interrupted { .. } | Outcome::Blocked { .. } => Exit::Interrupted,
                }),
            }
        }
        Turn::Sent(Err(error)) => Err(Failure::new(with_causes(&error))),
        Turn::Stopped(exit) => {
            display.failed("stopped by a signal");
            Ok(exit)
        }
        Turn::Lost => match display.take_error() {
            Some(error) => Err(Failure::Output(error)),
            None => Err(Failure::new("the answer broke off inside the program")),
        },
    }
}
