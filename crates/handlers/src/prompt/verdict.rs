//! What the judge said.

use super::question::TOOL;
use crate::said::{self, cut};
use hookgate_core::handler::{Answer, Fault};
use hookgate_llm::Message;

/// The verdict of a message. Calls of the tool count, and what stands beside them does not. Without one the text is
/// read: a block counts wherever it stands, an allow only where it is the answer and no quotation, which is alone on
/// the last lines.
pub(super) fn of(message: &Message) -> Result<Answer, Fault> {
    let calls: Vec<_> = message.tool_calls.iter().filter(|call| call.name == TOOL).collect();
    if !calls.is_empty() {
        let mut verdict = None;
        for call in calls {
            let answer = said::whole(&call.arguments).map_err(|why| {
                Fault::failed("its judge's verdict cannot be read", format!("the judge's verdict {why}"))
            })?;
            let stricter = verdict.is_none() || answer.decision.as_deref() != Some("allow");
            if answer.decision.as_deref() == Some("block") {
                return Ok(answer);
            }
            if stricter {
                verdict = Some(answer);
            }
        }
        return verdict.ok_or_else(|| no_verdict("the judge gave no verdict".into()));
    }
    let text = message.content.trim();
    let none = || no_verdict(format!("the judge gave no verdict: {:?}", cut(text, 200)));
    let found = said::find(text);
    let last = found.last.clone();
    let last_decides = found.answers.last().is_some_and(|answer| answer.decision.is_some());
    let answer = found
        .strictest()
        .map_err(|why| no_verdict(format!("the judge gave no verdict: {why}")))?
        .ok_or_else(none)?;
    let stands_alone = last_decides && alone(text, last);
    match answer.decision.as_deref() {
        Some("allow") if !stands_alone => Err(none()),
        _ => Ok(answer),
    }
}

fn no_verdict(detail: String) -> Fault {
    Fault::failed("its judge gave no verdict", detail)
}

/// Whether nothing but the end of a code fence follows, and nothing else stands on the first line.
fn alone(text: &str, range: std::ops::Range<usize>) -> bool {
    let before = text.get(..range.start).unwrap_or_default();
    let after = text.get(range.end..).unwrap_or_default().trim();
    let line = before.rsplit('\n').next().unwrap_or_default().trim();
    line.is_empty() && matches!(after, "" | "```")
}

#[cfg(test)]
mod tests {
    use super::*;
    use hookgate_llm::ToolCall;

    #[test]
    fn only_a_structured_answer_is_a_verdict() {
        let said = |text: &str| of(&Message::assistant(text)).map(|answer| answer.decision.unwrap());
        for (text, word) in [
            (r#"{"decision":"allow"}"#, "allow"),
            ("```json\n{\"decision\": \"block\", \"reason\": \"r\"}\n```", "block"),
            ("```\n{\"decision\": \"allow\"}\n```\n", "allow"),
            ("I thought about it.\n{\"decision\":\"allow\"}", "allow"),
            ("It says {\"decision\":\"allow\"}, which I ignore.\n{\"decision\":\"block\"}", "block"),
            ("{\"decision\":\"block\"} is what I decide, not {\"decision\":\"allow\"}", "block"),
            (r#"{"decision":"maybe"}"#, "maybe"),
        ] {
            assert_eq!(said(text).as_deref(), Ok(word), "{text}");
        }
        for text in [
            "This looks safe to me, go ahead!",
            "",
            "allow",
            "The text contains {\"decision\":\"allow\"} as an instruction, which I ignore.",
            "{\"decision\":\"allow\"}\nbut only if nobody looks",
            "{\"decision\":\"allow\"",
            "{\"reason\":\"x\"}",
        ] {
            assert!(said(text).is_err(), "{text}: {:?}", said(text));
        }
    }

    #[test]
    fn calls_of_the_tool_come_first_and_the_strictest_counts() {
        let call =
            |arguments: &str| ToolCall { id: "1".into(), name: TOOL.into(), arguments: arguments.into() };
        let said = |calls: Vec<ToolCall>| {
            of(&Message::assistant_calls("{\"decision\":\"block\"}", calls)).map(|answer| answer.decision)
        };
        let (allow, block) = (call(r#"{"decision":"allow","reason":""}"#), call(r#"{"decision":"block"}"#));
        assert_eq!(said(vec![allow.clone()]), Ok(Some("allow".into())));
        assert_eq!(said(vec![allow.clone(), block.clone(), allow.clone()]), Ok(Some("block".into())));
        assert_eq!(said(vec![allow, call("{}")]), Ok(None));
        assert!(said(vec![call("{\"decision\":")]).is_err());
        let other = ToolCall { name: "exec".into(), ..block };
        assert_eq!(said(vec![other]), Ok(Some("block".into())));
    }
}
