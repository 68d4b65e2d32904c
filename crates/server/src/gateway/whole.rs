//! An answer in one piece: the same hooks, the same verdict as for a stream.

use super::asking::Asking;
use super::body;
use super::decode;
use super::driven::Driven;
use super::weave::{Turn, Weave};
use bytes::Bytes;
use hookgate_llm::proxy::{Change, End, Piece, read_json, rewritten};
use http::{HeaderMap, header};
use serde_json::Value;
use std::time::Duration;

/// What the client gets.
pub(super) enum Outcome {
    /// The provider's bytes as they came.
    Same(Bytes),
    /// Others.
    Changed(Bytes),
    /// No answer: why.
    Failed(String),
    /// No answer, because hooks asked for others too often.
    GivenUp(String),
    /// No answer, because of a hook.
    Refused(String),
}

/// Reads an answer, shows it to the hooks and writes what is left of it.
pub(super) async fn answer(
    mut weave: Weave,
    mut asking: Asking,
    headers: &HeaderMap,
    body: Driven,
) -> Outcome {
    let most = weave.door.shared.limits.max_answer_bytes;
    let idle = weave.door.shared.limits.idle;
    let (mut bytes, mut value) = match read(most, idle, headers, body).await {
        Ok(read) => read,
        Err(why) => return Outcome::Failed(why),
    };
    loop {
        let mut seen = Seen::default();
        if let Err(why) = show(&mut weave, &value, &mut seen) {
            return Outcome::Failed(why);
        }
        let mut nowhere = Vec::new();
        let turn = weave.settle().await;
        // a call without a verdict stays here
        for channel in weave.guard.give_up_calls() {
            weave.exchange.drop_call(channel);
        }
        let dropped = matches!(turn, Some(Turn::Drop | Turn::Again(_)));
        if dropped && weave.guard.hit_aside && matches!(turn, Some(Turn::Drop)) {
            let why = "a hook interrupted the answer, and what it found stands where nothing can be left out";
            return Outcome::Refused(why.to_owned());
        }
        if dropped {
            seen.drop_all(&mut weave);
        } else {
            weave.say_all(&mut nowhere);
        }
        let changes = if dropped { seen.blank() } else { weave.guard.changes(&seen.parts) };
        let end = match turn {
            None => None,
            Some(Turn::End(how)) => Some(how),
            Some(Turn::Drop) => Some(End::Filtered),
            Some(Turn::Fail(why) | Turn::FailBehind(why)) => return Outcome::GivenUp(why),
            Some(Turn::Again(more) | Turn::More(more)) => {
                // what is written of this answer stands before the next one
                let _ = weave.exchange.write_body(value, &changes, None);
                if weave.guard.hit_aside {
                    weave.exchange = asking.middle.exchange(true);
                }
                weave.next_answer();
                match ask_again(most, idle, &mut asking, &more).await {
                    Ok(read) => (bytes, value) = read,
                    Err(why) => return Outcome::Failed(why),
                }
                continue;
            }
        };
        let written = weave.exchange.write_body(value.clone(), &changes, end);
        return if written == value { Outcome::Same(bytes) } else { changed(&bytes, &written) };
    }
}

/// `bytes`: the provider's, without their compression.
fn changed(bytes: &[u8], value: &Value) -> Outcome {
    Outcome::Changed(rewritten(&String::from_utf8_lossy(bytes), value).into())
}

/// What an answer holds.
#[derive(Default)]
struct Seen {
    parts: Vec<super::guard::Part>,
    n_texts: u32,
    calls: Vec<hookgate_llm::proxy::Channel>,
}

impl Seen {
    /// Leaves no text.
    fn blank(&self) -> Vec<Change> {
        (0..self.n_texts).map(|nth| Change::Text { nth, text: String::new() }).collect()
    }

    fn drop_all(&self, weave: &mut Weave) {
        for channel in &self.calls {
            weave.exchange.drop_call(*channel);
        }
    }
}

fn show(weave: &mut Weave, value: &Value, seen: &mut Seen) -> Result<(), String> {
    let Weave { exchange, guard, door, .. } = weave;
    let mut waits = Vec::new();
    let Seen { parts, n_texts, calls } = seen;
    let read = exchange.read_body(value, &mut |piece| {
        if let Piece::CallBegin { channel, .. } | Piece::CallEnd { channel, .. } = &piece
            && !calls.contains(channel)
        {
            calls.push(*channel);
        }
        // texts are counted whether or not anybody looks at them
        guard.piece(door, piece, n_texts, &mut waits, parts);
    });
    read.map_err(|odd| format!("the upstream's answer cannot be read: {}", super::relay::told(&odd)))?;
    for choice in guard.open_choices() {
        guard.todo.push_back(super::guard::Todo::Close(choice, "stop".to_owned()));
    }
    Ok(())
}

/// The bytes of a body, and what stands in them without compression.
async fn read(
    most: usize,
    idle: Duration,
    headers: &HeaderMap,
    body: Driven,
) -> Result<(Bytes, Value), String> {
    let bytes = body::read(body, most, idle)
        .await
        .map_err(|error| format!("the upstream's answer cannot be read: {error}"))?;
    let encoding = headers.get(header::CONTENT_ENCODING).and_then(|value| value.to_str().ok());
    let plain = decode::whole(encoding, &bytes)
        .map_err(|error| format!("the upstream's answer cannot be read: {error}"))?;
    let value = read_json(&plain).ok_or("the upstream's answer is no JSON")?;
    // the compression comes off with the header that names it
    Ok((plain.into(), value))
}

async fn ask_again(
    most: usize,
    idle: Duration,
    asking: &mut Asking,
    changes: &[hookgate_llm::proxy::RequestChange],
) -> Result<(Bytes, Value), String> {
    asking.change(changes).map_err(|odd| format!("the request cannot be asked again: {odd}"))?;
    let response = asking.send().await.map_err(|error| error.to_string())?;
    if !response.status().is_success() {
        return Err(format!("asked again, the upstream answered with status {}", response.status()));
    }
    let (parts, body) = response.into_parts();
    read(most, idle, &parts.headers, body).await
}
