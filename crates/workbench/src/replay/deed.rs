//! What a hook would have done.

use hookgate_core::effect::HookName;
use hookgate_core::word::Word;

/// The kinds of things that hooks do, the gravest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum What {
    /// Stop a prompt, a tool or a sub-agent.
    Block,
    /// Keep an answer back.
    Withhold,
    /// Drop the answer that is arriving.
    Interrupt,
    /// Put something else in the place of a text.
    Redact,
    /// Change a prompt or a tool's input.
    Change,
    /// Ask the model again.
    Resend,
    /// Join a text to the answer.
    Append,
    /// Send a message behind the answer.
    Send,
    /// Put a message into the next request.
    Queue,
    /// Say no where nothing can be stopped any more.
    Object,
    /// Fail, or be late.
    Fault,
    /// Be asked: its handler runs only when it is allowed to.
    Ask,
    /// Print a line.
    Log,
    /// Something odd that stopped nothing.
    Warn,
}

impl Word for What {
    const KIND: &'static str = "deed";
    const ALL: &'static [(&'static str, Self)] = &[
        ("block", What::Block),
        ("withhold", What::Withhold),
        ("interrupt", What::Interrupt),
        ("redact", What::Redact),
        ("change", What::Change),
        ("resend", What::Resend),
        ("append", What::Append),
        ("send", What::Send),
        ("queue", What::Queue),
        ("object", What::Object),
        ("fault", What::Fault),
        ("ask", What::Ask),
        ("log", What::Log),
        ("warn", What::Warn),
    ];

    fn as_str(self) -> &'static str {
        match self {
            What::Block => "block",
            What::Withhold => "withhold",
            What::Interrupt => "interrupt",
            What::Redact => "redact",
            What::Change => "change",
            What::Resend => "resend",
            What::Append => "append",
            What::Send => "send",
            What::Queue => "queue",
            What::Object => "object",
            What::Fault => "fault",
            What::Ask => "ask",
            What::Log => "log",
            What::Warn => "warn",
        }
    }
}

/// One thing that one hook would have done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deed {
    /// The hook.
    pub hook: HookName,
    /// What.
    pub what: What,
    /// The reason, the text, or the line; may be empty.
    pub text: String,
}

impl Deed {
    pub(crate) fn new(hook: &HookName, what: What, text: impl Into<String>) -> Deed {
        Deed { hook: hook.clone(), what, text: text.into() }
    }
}
