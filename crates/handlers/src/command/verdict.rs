//! What the end of a program means.

use super::run::Ended;
use crate::said::{self, Found, cut};
use hookgate_core::handler::{Answer, Fault, Why};
use hookgate_core::point::Stage;
use std::os::unix::process::ExitStatusExt;

/// So much of a text is quoted in a fault.
const EXCERPT: usize = 200;

/// The answer of a program that ended, by the contract of [`super`].
pub(super) fn of(name: &str, stage: Stage, ended: &Ended) -> Result<Answer, Fault> {
    let mut answer = match ended.status.code() {
        Some(0) => match stage {
            Stage::Gate => gate(name, &ended.stdout),
            Stage::Shape => shape(name, &ended.stdout),
            Stage::Watch => Ok(Answer::default()),
        },
        Some(2) => Ok(block(ended)),
        Some(code) => Err(Fault::failed(
            Why::numbered("its program ended with exit code", code.into()),
            format!("`{name}` ended with exit code {code}{}", last_words(&ended.stderr)),
        )),
        None => {
            let signal = ended.status.signal().unwrap_or_default();
            Err(Fault::failed(
                Why::numbered("its program was ended by signal", signal.into()),
                format!("`{name}` was ended by signal {signal}{}", last_words(&ended.stderr)),
            ))
        }
    }?;
    for text in [ended.stderr.trim_end(), if stage == Stage::Watch { ended.stdout.trim_end() } else { "" }] {
        if !text.is_empty() {
            let text = cut(text, 4 * 1024);
            answer.console.push_str(if answer.console.is_empty() { "" } else { "\n" });
            answer.console.push_str(text);
        }
    }
    Ok(answer)
}

/// Exit code 2: stderr is the reason, whatever stands on stdout.
fn block(ended: &Ended) -> Answer {
    let mut reason = cut(ended.stderr.trim(), 4 * 1024).to_owned();
    if reason.is_empty()
        && let Ok(Some(said)) = said::find(&ended.stdout).strictest()
        && said.decision.as_deref() == Some("block")
    {
        reason = said.reason.unwrap_or_default();
    }
    Answer { reason: (!reason.is_empty()).then_some(reason), ..Answer::with_decision("block") }
}

/// Exit code 0 at a gate: nothing is an allow, JSON decides, other text is a fault.
fn gate(name: &str, stdout: &str) -> Result<Answer, Fault> {
    if stdout.trim().is_empty() {
        return Ok(Answer::with_decision("allow"));
    }
    let found = said::find(stdout);
    let Found { noise, answers, .. } = &found;
    let odd = *noise || answers.len() > 1;
    let broken = |why| no_verdict(format!("stdout of `{name}` is no verdict: {why}"));
    match found.strictest().map_err(broken)? {
        Some(mut answer) => {
            if odd {
                answer.console =
                    "stdout: there is other text beside the verdict; the strictest counts".into();
            }
            Ok(answer)
        }
        None => {
            let text = cut(stdout.trim(), EXCERPT);
            Err(no_verdict(format!(
                "stdout of `{name}` is no verdict: expected JSON with a `decision`, or nothing; found {text:?}"
            )))
        }
    }
}

/// Exit code 0 at pre_response: an object that says what to add, else the text itself.
fn shape(name: &str, stdout: &str) -> Result<Answer, Fault> {
    let text = stdout.trim_end_matches(['\n', '\r']);
    match said::whole(text) {
        Ok(answer) if answer.decision.is_some() || !answer.additions.is_empty() => Ok(answer),
        Err(why)
            if text.trim_start().strip_prefix('{').is_some_and(|rest| rest.trim_start().starts_with('"')) =>
        {
            Err(Fault::failed("its output is JSON that cannot be read", format!("stdout of `{name}` {why}")))
        }
        _ => Ok(Answer { additions: vec![(None, text.to_owned())], ..Answer::default() }),
    }
}

fn no_verdict(detail: String) -> Fault {
    Fault::failed("its output is no verdict", detail)
}

/// The last line of stderr says most; the whole follows for whoever may see it.
fn last_words(stderr: &str) -> String {
    let text = stderr.trim();
    match text.lines().next_back() {
        None => " and wrote nothing to stderr".into(),
        Some(last) if last.len() == text.len() => format!(": {text}"),
        Some(last) => format!(": {}\n{text}", last.trim()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hookgate_core::handler::Mode;

    fn ended(code: i32, stdout: &str, stderr: &str) -> Ended {
        Ended {
            status: std::process::ExitStatus::from_raw(code << 8),
            stdout: stdout.into(),
            stderr: stderr.into(),
        }
    }

    #[test]
    fn the_table_of_the_contract_holds() {
        let gate = |code, out: &str, err: &str| of("h", Stage::Gate, &ended(code, out, err));
        let said = |code, out: &str, err: &str| {
            let answer = gate(code, out, err).unwrap();
            (answer.decision.unwrap_or_default(), answer.reason.unwrap_or_default())
        };
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        assert_eq!(said(0, "", "noise"), pair("allow", ""));
        assert_eq!(said(0, " \n", ""), pair("allow", ""));
        assert_eq!(said(0, r#"{"decision":"block","reason":"r"}"#, ""), pair("block", "r"));
        assert_eq!(said(2, r#"{"decision":"allow"}"#, "no\n"), pair("block", "no"));
        assert_eq!(said(2, r#"{"decision":"block","reason":"r"}"#, ""), pair("block", "r"));
        assert_eq!(said(2, "", ""), pair("block", ""));
        assert_eq!(said(0, r#"{"decision":"perhaps"}"#, ""), pair("perhaps", ""));
        for (code, out, err, word) in [
            (1, "", "tool call denied\n", "exit code 1: tool call denied"),
            (127, "", "", "exit code 127 and wrote nothing"),
            (0, "hello", "", "found \"hello\""),
            (0, "{}", "", "`decision`"),
            (0, "[1]", "", "`decision`"),
            (0, r#"{"decision":"allow""#, "", "breaks off"),
            (1, "", "Traceback\n  x\nValueError: y", "exit code 1: ValueError: y\nTraceback"),
        ] {
            let error = gate(code, out, err).unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
        }
        let killed = Ended { status: std::process::ExitStatus::from_raw(9), ..ended(0, "", "") };
        assert!(of("h", Stage::Gate, &killed).unwrap_err().to_string().contains("signal 9"));
    }

    #[test]
    fn additions_are_text_or_an_object() {
        let added = |out: &str| of("h", Stage::Shape, &ended(0, out, "")).map(|answer| answer.additions);
        let text = |text: &str| Ok(vec![(None, text.to_owned())]);
        assert_eq!(added("Not legal advice.\n\n"), text("Not legal advice."));
        assert_eq!(added("two\nlines\n"), text("two\nlines"));
        assert_eq!(added(r#"{"data":1}"#), text(r#"{"data":1}"#));
        assert_eq!(added("{company} says"), text("{company} says"));
        assert_eq!(added(r#"{"append":"x"}"#), Ok(vec![(Some(Mode::Append), "x".into())]));
        assert_eq!(added(r#"{"decision":"allow"}"#), Ok(vec![]));
        assert!(added(r#"{"append":"x"#).is_err());
        assert_eq!(of("h", Stage::Watch, &ended(0, "done\n", "")).unwrap().console, "done");
    }
}
