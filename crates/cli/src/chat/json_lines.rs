//! Events for programs: one JSON object a line on standard output, described in `docs/chat-events.md`. The last line
//! has the type `end`.

use hookgate_chat::{ChatEvent, Outcome};
use hookgate_core::event::{Chunk, ToolOutcome, ToolRun};
use hookgate_core::verdict::Ran;
use serde_json::{Value, json};
use std::io::{self, Write};

/// The writer.
pub(super) struct JsonLines {
    out: Box<dyn Write + Send>,
    error: Option<io::Error>,
    lost: bool,
    ended: bool,
}

impl JsonLines {
    pub(super) fn stdout() -> JsonLines {
        JsonLines { out: Box::new(io::stdout()), error: None, lost: false, ended: false }
    }

    pub(super) fn event(&mut self, event: &ChatEvent<'_>) {
        self.write(&line(event));
    }

    /// The last line after an answer or an interrupt.
    pub(super) fn ended(&mut self, outcome: &Outcome) {
        self.end(match outcome {
            Outcome::Answered(answer) => json!({
                "type": "end", "outcome": "answered",
                "text": answer.text, "finish": answer.finish.as_str(), "usage": answer.usage,
            }),
            Outcome::Interrupted { hook } => json!({"type": "end", "outcome": "interrupted", "hook": hook}),
            Outcome::Blocked { hook, reason } => {
                json!({"type": "end", "outcome": "blocked", "hook": hook, "reason": reason})
            }
        });
    }

    /// The last line after an error.
    pub(super) fn failed(&mut self, message: &str) {
        self.end(json!({"type": "end", "outcome": "error", "message": message}));
    }

    pub(super) fn is_lost(&self) -> bool {
        self.lost
    }

    pub(super) fn take_error(&mut self) -> Option<io::Error> {
        self.error.take()
    }

    fn end(&mut self, line: Value) {
        if !self.ended {
            self.ended = true;
            self.write(&line);
        }
    }

    fn write(&mut self, line: &Value) {
        if self.lost {
            return;
        }
        let text = format!("{line}\n");
        if let Err(error) = self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush()) {
            self.lost = true;
            self.error = Some(error);
        }
    }
}

/// An event as it is written.
fn line(event: &ChatEvent<'_>) -> Value {
    match event {
        ChatEvent::Request { messages } => json!({"type": "request", "messages": messages.len()}),
        ChatEvent::Chunk(chunk) => self::chunk(chunk),
        ChatEvent::Usage(usage) => json!({"type": "usage", "usage": usage}),
        ChatEvent::Other(text) => json!({"type": "other", "text": text}),
        ChatEvent::Message(message) => json!({"type": "message", "message": message}),
        ChatEvent::Tool(run) => tool(run),
        ChatEvent::Fired { hook } => json!({"type": "fired", "hook": &***hook}),
        ChatEvent::Log { hook, level, text } => {
            json!({"type": "log", "hook": &***hook, "level": level, "text": text})
        }
        ChatEvent::Queued { hook, message } => {
            json!({"type": "queued", "hook": &***hook, "message": message})
        }
        ChatEvent::Interrupt { hook, resend } => {
            json!({"type": "interrupt", "hook": &***hook, "resend": resend})
        }
        ChatEvent::Resend { hook } => json!({"type": "resend", "hook": &***hook}),
        ChatEvent::Decided { ran } => decided(ran),
        ChatEvent::Warning { warning } => {
            json!({"type": "warning", "hook": &*warning.hook, "code": warning.code, "text": warning.text})
        }
        ChatEvent::Blocked { what, block } => {
            let (hook, reason, cause) = (&*block.by, &block.reason, block.cause);
            json!({"type": "blocked", "what": what, "hook": hook, "reason": reason, "cause": cause})
        }
        ChatEvent::Append { text } => json!({"type": "append", "text": text}),
        ChatEvent::Send { message } => json!({"type": "send", "message": message}),
    }
}

fn decided(ran: &Ran) -> Value {
    let ms = ran.took.as_secs_f64() * 1000.0;
    let mut line = json!({"type": "decided", "hook": &*ran.hook, "event": ran.point, "decision": ran.decision, "ms": ms});
    if let Some(fields) = line.as_object_mut() {
        if let Some(why) = &ran.why {
            fields.insert("why".into(), why.to_string().into());
        }
        if !ran.console.is_empty() {
            fields.insert("console".into(), ran.console.as_str().into());
        }
    }
    line
}

fn chunk(chunk: &Chunk<'_>) -> Value {
    let kind = chunk.kind();
    match chunk {
        Chunk::Content(text) | Chunk::Reasoning(text) => {
            json!({"type": "chunk", "chunk": kind, "text": text})
        }
        Chunk::ToolCallDelta { index, id, text } => {
            json!({"type": "chunk", "chunk": kind, "index": index, "id": id, "text": text})
        }
        Chunk::Finish { reason } => json!({"type": "chunk", "chunk": kind, "reason": reason}),
    }
}

fn tool(run: &ToolRun<'_>) -> Value {
    let mut line = json!({"type": "tool", "event": run.moment(), "name": run.name, "args": run.args});
    if let Some(fields) = line.as_object_mut() {
        match run.outcome {
            ToolOutcome::Before => None,
            ToolOutcome::Result(result) => fields.insert("result".into(), result.clone()),
            ToolOutcome::Error(error) => fields.insert("error".into(), error.into()),
        };
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use hookgate_chat::{ChatMessage, Origin, Role};
    use hookgate_core::effect::{HookName, Level};
    use hookgate_core::point::Point;
    use hookgate_core::verdict::{Block, Cause, Decision, Warning, WarningCode};
    use hookgate_llm::Usage;

    #[test]
    fn what_lifecycle_hooks_do() {
        let hook: HookName = "h".into();
        let took = std::time::Duration::from_micros(1500);
        let ran = Ran {
            hook: hook.clone(),
            point: Point::Stop,
            decision: Decision::Timeout,
            why: Some("no answer in time".into()),
            took,
            console: "c".into(),
            reason: None,
        };
        let decided = r#"{"type":"decided","hook":"h","event":"stop","decision":"timeout","ms":1.5,"why":"no answer in time","console":"c"}"#;
        check(&ChatEvent::Decided { ran: &ran }, decided);
        let warning = Warning { hook: hook.clone(), code: WarningCode::BlockIgnored, text: "t".into() };
        let line = r#"{"type":"warning","hook":"h","code":"block_ignored","text":"t"}"#;
        check(&ChatEvent::Warning { warning: &warning }, line);
        let block = Block { by: hook, reason: "r".into(), cause: Cause::Decision };
        let line = r#"{"type":"blocked","what":"exec","hook":"h","reason":"r","cause":"decision"}"#;
        check(&ChatEvent::Blocked { what: "exec", block: &block }, line);
        check(&ChatEvent::Append { text: "t" }, r#"{"type":"append","text":"t"}"#);
        let line = format!(r#"{{"type":"send","message":{MESSAGE}}}"#);
        check(&ChatEvent::Send { message: &message() }, &line);
    }

    #[track_caller]
    fn check(event: &ChatEvent<'_>, expected: &str) {
        assert_eq!(line(event).to_string(), expected);
    }

    fn message() -> ChatMessage {
        ChatMessage::new(Role::User, "hi", Origin::User)
    }

    const MESSAGE: &str = r#"{"role":"user","content":"hi","origin":"user"}"#;

    #[test]
    fn request() {
        check(&ChatEvent::Request { messages: &[message()] }, r#"{"type":"request","messages":1}"#);
    }

    #[test]
    fn chunks() {
        let check = |chunk, expected| check(&ChatEvent::Chunk(chunk), expected);
        check(Chunk::Content("a"), r#"{"type":"chunk","chunk":"content","text":"a"}"#);
        check(Chunk::Reasoning("a\n"), r#"{"type":"chunk","chunk":"reasoning","text":"a\n"}"#);
        check(
            Chunk::ToolCallDelta { index: 1, id: Some("c1"), text: "{" },
            r#"{"type":"chunk","chunk":"tool_call_delta","index":1,"id":"c1","text":"{"}"#,
        );
        check(
            Chunk::ToolCallDelta { index: 0, id: None, text: "}" },
            r#"{"type":"chunk","chunk":"tool_call_delta","index":0,"id":null,"text":"}"}"#,
        );
        check(Chunk::Finish { reason: "stop" }, r#"{"type":"chunk","chunk":"finish","reason":"stop"}"#);
    }

    #[test]
    fn usage() {
        let usage = Usage { input_tokens: Some(3), ..Usage::default() };
        check(
            &ChatEvent::Usage(&usage),
            r#"{"type":"usage","usage":{"input_tokens":3,"output_tokens":null,"reasoning_tokens":null,"cached_tokens":null,"cache_write_tokens":null}}"#,
        );
    }

    #[test]
    fn other() {
        check(&ChatEvent::Other("ping {}"), r#"{"type":"other","text":"ping {}"}"#);
    }

    #[test]
    fn messages() {
        check(&ChatEvent::Message(&message()), &format!(r#"{{"type":"message","message":{MESSAGE}}}"#));
    }

    #[test]
    fn tools() {
        let args = json!({"command": "ls"});
        let result = json!("ok");
        let run = |outcome| ChatEvent::Tool(ToolRun { name: "exec", args: &args, outcome });
        let head = r#""name":"exec","args":{"command":"ls"}"#;
        check(&run(ToolOutcome::Before), &format!(r#"{{"type":"tool","event":"before",{head}}}"#));
        check(
            &run(ToolOutcome::Result(&result)),
            &format!(r#"{{"type":"tool","event":"after",{head},"result":"ok"}}"#),
        );
        check(
            &run(ToolOutcome::Error("no")),
            &format!(r#"{{"type":"tool","event":"error",{head},"error":"no"}}"#),
        );
    }

    #[test]
    fn what_hooks_do() {
        let hook: &HookName = &"h".into();
        let message = &message();
        check(&ChatEvent::Fired { hook }, r#"{"type":"fired","hook":"h"}"#);
        check(
            &ChatEvent::Log { hook, level: Level::Warn, text: "t" },
            r#"{"type":"log","hook":"h","level":"warn","text":"t"}"#,
        );
        check(
            &ChatEvent::Queued { hook, message },
            &format!(r#"{{"type":"queued","hook":"h","message":{MESSAGE}}}"#),
        );
        check(
            &ChatEvent::Interrupt { hook, resend: true },
            r#"{"type":"interrupt","hook":"h","resend":true}"#,
        );
        check(&ChatEvent::Resend { hook }, r#"{"type":"resend","hook":"h"}"#);
    }
}
