//! Events for people: the answer on standard output as it comes, everything else on standard error.
//!
//! What was printed cannot be taken back. An interrupt after the first piece of an answer says that the answer is
//! withdrawn, and the next answer begins on a line of its own.

use crate::terminal::{self, DIM, YELLOW, printable, styled};
use anstyle::Style;
use hookgate_chat::{ChatEvent, Role};
use hookgate_core::effect::{HookName, Level};
use hookgate_core::event::{Chunk, ToolOutcome, ToolRun};
use hookgate_core::point::Stage;
use hookgate_core::verdict::{Block, Ran};
use hookgate_llm::Usage;
use std::io::{self, Write};

/// Longer arguments and results of tools are cut.
const LONGEST_NOTE: usize = 200;

/// The two streams, and where their cursors stand.
pub(super) struct Screen {
    out: Stream,
    err: Stream,
    verbose: bool,
    /// The last line of standard output has no end yet.
    line_open: bool,
    /// A line of thoughts on standard error has no end yet.
    thoughts_open: bool,
    /// Something of the current response was printed.
    printed: bool,
    /// Both streams end in the same place, so that their lines can run into each other.
    shared: bool,
    usage: Usage,
    /// The reason of the last block, which the failed tool repeats.
    told: String,
    lost: bool,
    error: Option<io::Error>,
}

/// One stream and what it is.
struct Stream {
    to: Box<dyn Write + Send>,
    terminal: bool,
    colours: bool,
}

impl Screen {
    pub(super) fn standard(verbose: bool) -> Screen {
        let (out, err) = (io::stdout(), io::stderr());
        let colours = terminal::wants_colour(&err);
        let shared = terminal::is_same(&out, &err);
        Screen::new(
            Stream { terminal: terminal::is_terminal(&out), colours: false, to: Box::new(out) },
            Stream { terminal: terminal::is_terminal(&err), colours, to: Box::new(err) },
            shared,
            verbose,
        )
    }

    fn new(out: Stream, err: Stream, shared: bool, verbose: bool) -> Screen {
        Screen {
            out,
            err,
            verbose,
            line_open: false,
            thoughts_open: false,
            printed: false,
            shared,
            usage: Usage::default(),
            told: String::new(),
            lost: false,
            error: None,
        }
    }

    pub(super) fn event(&mut self, event: &ChatEvent<'_>) {
        match event {
            ChatEvent::Request { .. } => {
                self.printed = false;
                self.usage = Usage::default();
            }
            ChatEvent::Chunk(Chunk::Content(text)) => self.answer(text),
            ChatEvent::Chunk(Chunk::Reasoning(text)) => self.think(text),
            ChatEvent::Chunk(Chunk::ToolCallDelta { .. } | Chunk::Finish { .. }) => {}
            ChatEvent::Message(message) if message.role == Role::Assistant => self.complete(),
            ChatEvent::Message(_) | ChatEvent::Fired { .. } => {}
            ChatEvent::Usage(usage) => self.usage.merge(**usage),
            ChatEvent::Other(text) => self.detail(&format!("not understood: {}", shortened(text))),
            ChatEvent::Tool(run) => self.tool(run),
            ChatEvent::Log { level, text, .. } => self.log(*level, text),
            ChatEvent::Queued { hook, message } => {
                self.detail(&format!("hook {hook} queued a message of role {}", message.role));
            }
            ChatEvent::Interrupt { hook, resend } => self.interrupt(hook, *resend),
            ChatEvent::Resend { hook } => {
                self.line(&format!("hook {hook} asks for one more answer"), Style::new());
            }
            ChatEvent::Decided { ran } => self.decided(ran),
            ChatEvent::Warning { warning } => {
                self.line(&format!("hook {}: {} ({})", warning.hook, warning.text, warning.code), YELLOW);
            }
            ChatEvent::Blocked { what, block } => self.blocked(what, block),
            ChatEvent::Append { text } => self.addition(text.trim_start_matches('\n')),
            ChatEvent::Send { message } => self.addition(&message.content),
        }
    }

    /// A decision is shown only to those who look for it; but where no gate tells of a failure, a line does.
    fn decided(&mut self, ran: &Ran) {
        if let Some(why) = ran.why.filter(|_| ran.point.stage() != Stage::Gate) {
            self.line(&format!("hook {} failed at {}: {why}", ran.hook, ran.point), YELLOW);
        }
        self.detail(&format!(
            "hook {}: {} in {:.1} ms",
            ran.hook,
            ran.decision,
            ran.took.as_secs_f64() * 1000.0
        ));
        for line in ran.console.lines() {
            self.detail(&format!("hook {} says: {line}", ran.hook));
        }
    }

    fn blocked(&mut self, what: &str, block: &Block) {
        if what == "response" && std::mem::take(&mut self.printed) {
            self.line(&format!("[answer withdrawn by hook {}]", block.by), Style::new());
        }
        self.line(&format!("{what} {}", block.reason), YELLOW);
        self.told.clone_from(&block.reason);
    }

    /// What hooks add stands on lines of its own behind the answer.
    fn addition(&mut self, text: &str) {
        self.answer(text);
        self.end_line();
    }

    /// Ends the open lines.
    pub(super) fn end_line(&mut self) {
        if std::mem::take(&mut self.thoughts_open) {
            self.write_err("\n");
        }
        if std::mem::take(&mut self.line_open) {
            self.write_out("\n");
        }
    }

    /// Whole lines for the person.
    pub(super) fn tell(&mut self, text: &str) {
        if !text.is_empty() {
            self.line(text.trim_end_matches('\n'), Style::new());
        }
    }

    /// A line beside the point.
    pub(super) fn whisper(&mut self, text: &str) {
        self.line(text, DIM);
    }

    pub(super) fn is_lost(&self) -> bool {
        self.lost
    }

    pub(super) fn take_error(&mut self) -> Option<io::Error> {
        self.error.take()
    }

    fn answer(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        if std::mem::take(&mut self.thoughts_open) {
            self.write_err("\n");
        }
        self.printed = true;
        self.line_open = !text.ends_with('\n');
        let text = printable(text, self.out.terminal);
        self.write_out(&text);
    }

    /// The answer, or the text before tool calls, is complete.
    fn complete(&mut self) {
        self.end_line();
        let usage = std::mem::take(&mut self.usage);
        if !usage.is_empty() {
            let count = |n: Option<u64>| n.map_or("?".to_owned(), |n| n.to_string());
            self.detail(&format!(
                "{} tokens in, {} out",
                count(usage.input_tokens),
                count(usage.output_tokens)
            ));
        }
    }

    fn think(&mut self, text: &str) {
        if !self.verbose || text.is_empty() {
            return;
        }
        if !self.thoughts_open {
            self.free_line();
        }
        self.thoughts_open = !text.ends_with('\n');
        let text = printable(text, self.err.terminal);
        let text = styled(&text, DIM, self.err.colours).into_owned();
        self.write_err(&text);
    }

    fn log(&mut self, level: Level, text: &str) {
        match level {
            Level::Log | Level::Info => self.line(text, Style::new()),
            Level::Warn => self.line(text, YELLOW),
            Level::Debug => self.detail(text),
        }
    }

    fn tool(&mut self, run: &ToolRun<'_>) {
        let name = run.name;
        match run.outcome {
            ToolOutcome::Before => {
                self.line(&format!("tool {name} {}", shortened(&run.args.to_string())), DIM);
            }
            ToolOutcome::Result(result) => {
                self.detail(&format!("tool {name} gave {}", shortened(&result.to_string())));
            }
            ToolOutcome::Error(error) if error == self.told => {}
            ToolOutcome::Error(error) => {
                self.line(&format!("tool {name} failed: {}", shortened(error)), DIM);
            }
        }
    }

    fn interrupt(&mut self, hook: &HookName, resend: bool) {
        if std::mem::take(&mut self.printed) {
            self.end_line();
            self.line(&format!("[answer withdrawn by hook {hook}]"), Style::new());
        }
        let then = if resend { "; asking again" } else { "" };
        self.line(&format!("hook {hook} interrupted{then}"), Style::new());
    }

    /// A line for those who asked for details.
    fn detail(&mut self, text: &str) {
        if self.verbose {
            self.line(text, DIM);
        }
    }

    /// A whole line on standard error.
    fn line(&mut self, text: &str, style: Style) {
        self.free_line();
        let text = printable(text, self.err.terminal);
        let text = format!("{}\n", styled(&text, style, self.err.colours));
        self.write_err(&text);
    }

    /// Brings the cursor of standard error to the beginning of a line. It may be that of the answer, too.
    fn free_line(&mut self) {
        if std::mem::take(&mut self.thoughts_open) {
            self.write_err("\n");
        }
        if self.shared && std::mem::take(&mut self.line_open) {
            self.write_err("\n");
        }
    }

    fn write_out(&mut self, text: &str) {
        if self.lost {
            return;
        }
        if let Err(error) = self.out.to.write_all(text.as_bytes()).and_then(|()| self.out.to.flush()) {
            self.lost = true;
            self.error = Some(error);
        }
    }

    /// Lines that cannot be written are lost: a log must not stop the agent.
    fn write_err(&mut self, text: &str) {
        let _ = self.err.to.write_all(text.as_bytes());
    }
}

/// One line, not too long.
fn shortened(text: &str) -> String {
    let mut line: String = text.chars().take(LONGEST_NOTE).map(|c| if c == '\n' { ' ' } else { c }).collect();
    if text.chars().nth(LONGEST_NOTE).is_some() {
        line.push('…');
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use hookgate_chat::{ChatMessage, Origin};
    use serde_json::json;
    use std::sync::{Arc, Mutex};

    /// Both streams in the order of writing, those of standard error in angle brackets.
    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<String>>);

    struct Half(Written, &'static str, &'static str);

    impl Write for Half {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let text = std::str::from_utf8(bytes).unwrap();
            self.0.0.lock().unwrap().push_str(&format!("{}{text}{}", self.1, self.2));
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[track_caller]
    fn check(terminal: bool, verbose: bool, events: &[ChatEvent<'_>], expected: &str) {
        let written = Written::default();
        let stream = |half| Stream { to: Box::new(half), terminal, colours: terminal };
        let out = stream(Half(written.clone(), "", ""));
        let err = stream(Half(written.clone(), "<", ">"));
        let mut screen = Screen::new(out, err, terminal, verbose);
        events.iter().for_each(|event| screen.event(event));
        screen.end_line();
        assert_eq!(*written.0.lock().unwrap(), expected);
    }

    fn content(text: &str) -> ChatEvent<'_> {
        ChatEvent::Chunk(Chunk::Content(text))
    }

    fn log<'a>(hook: &'a HookName, level: Level, text: &'a str) -> ChatEvent<'a> {
        ChatEvent::Log { hook, level, text }
    }

    #[test]
    fn the_answer_ends_with_a_line_break() {
        check(false, false, &[content("a"), content("b")], "ab\n");
        check(false, false, &[content("a\n")], "a\n");
        let message = ChatMessage::new(Role::Assistant, "a", Origin::Model);
        check(false, false, &[content("a"), ChatEvent::Message(&message), content("b")], "a\nb\n");
    }

    #[test]
    fn log_lines_have_their_level() {
        let hook = &"h".into();
        let all = [Level::Log, Level::Warn, Level::Info, Level::Debug].map(|level| log(hook, level, "t"));
        check(false, false, &all, "<t\n><t\n><t\n>");
        check(false, true, &all, "<t\n><t\n><t\n><t\n>");
        check(true, true, &all, "<t\n><\x1b[33mt\x1b[0m\n><t\n><\x1b[2mt\x1b[0m\n>");
    }

    #[test]
    fn lines_do_not_run_into_the_answer_on_a_terminal() {
        let hook = &"h".into();
        let events = [content("a"), log(hook, Level::Log, "t"), content("b")];
        check(true, false, &events, "a<\n><t\n>b\n");
        check(false, false, &events, "a<t\n>b\n");
    }

    #[test]
    fn an_interrupt_withdraws_what_was_printed() {
        let hook = &"h".into();
        let request = ChatEvent::Request { messages: &[] };
        let interrupt = |resend| ChatEvent::Interrupt { hook, resend };
        check(
            false,
            false,
            &[request, content("a"), interrupt(true), request, content("b")],
            "a\n<[answer withdrawn by hook h]\n><hook h interrupted; asking again\n>b\n",
        );
        check(false, false, &[request, interrupt(false)], "<hook h interrupted\n>");
    }

    #[test]
    fn thoughts_and_results_are_for_those_who_ask() {
        let think = |text| ChatEvent::Chunk(Chunk::Reasoning(text));
        let args = json!({"command": "x".repeat(300)});
        let result = json!("ok\nok");
        let tool = |outcome| ChatEvent::Tool(ToolRun { name: "exec", args: &args, outcome });
        let events = [
            think("h"),
            think("m"),
            content("a"),
            tool(ToolOutcome::Before),
            tool(ToolOutcome::Result(&result)),
        ];
        let line = format!("<tool exec {{\"command\":\"{}…\n>", "x".repeat(188));
        check(false, false, &events, &format!("a{line}\n"));
        check(false, true, &events, &format!("<h><m><\n>a{line}<tool exec gave \"ok\\nok\"\n>\n"));
    }

    #[test]
    fn strangers_do_not_drive_the_terminal() {
        let hook = &"h".into();
        let events = [content("\x1b[2J\r"), log(hook, Level::Log, "\x1b]52;c;eA==\x07")];
        check(true, false, &events, "\\x1b[2J\\x0d<\n><\\x1b]52;c;eA==\\x07\n>");
        check(false, false, &events, "\x1b[2J\r<\x1b]52;c;eA==\x07\n>\n");
    }
}
