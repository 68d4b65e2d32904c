//! Who wrote a history: seen in its content, not in its name.

use hookgate_core::word::Word;
use serde_json::Value;

/// The formats that are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// A transcript of Claude Code.
    ClaudeCode,
    /// A rollout of Codex.
    Codex,
    /// What `hookgate chat --json` prints.
    ChatLog,
    /// Lists of messages as OpenAI's or Anthropic's requests have them.
    Messages,
}

impl Word for Format {
    const KIND: &'static str = "format";
    const ALL: &'static [(&'static str, Self)] = &[
        ("claude-code", Format::ClaudeCode),
        ("codex", Format::Codex),
        ("chat-log", Format::ChatLog),
        ("messages", Format::Messages),
    ];

    fn as_str(self) -> &'static str {
        match self {
            Format::ClaudeCode => "claude-code",
            Format::Codex => "codex",
            Format::ChatLog => "chat-log",
            Format::Messages => "messages",
        }
    }
}

/// The types of lines that only Claude Code writes beside messages.
const OF_CLAUDE: [&str; 6] =
    ["summary", "file-history-snapshot", "queue-operation", "ai-title", "custom-title", "last-prompt"];
const OF_CODEX: [&str; 5] = ["session_meta", "response_item", "event_msg", "turn_context", "compacted"];
const OF_CHAT: [&str; 5] = ["request", "chunk", "message", "tool", "end"];

impl Format {
    /// The format in which this line can stand; none if it says too little.
    pub fn of(line: &Value) -> Option<Format> {
        let kind = line.get("type").and_then(Value::as_str);
        let has = |name: &str| line.get(name).is_some();
        let is = |kinds: &[&str]| kind.is_some_and(|kind| kinds.contains(&kind));
        if is(&OF_CODEX) && has("payload") {
            return Some(Format::Codex);
        }
        // the head of old rollouts, which had no envelopes
        if kind.is_none() && has("id") && has("timestamp") && (has("instructions") || has("git")) {
            return Some(Format::Codex);
        }
        let is_turn = is(&["user", "assistant"]) && has("message");
        if is_turn || (is(&OF_CLAUDE) && (has("sessionId") || has("leafUuid") || has("messageId"))) {
            return Some(Format::ClaudeCode);
        }
        if kind.is_some() && has("sessionId") && has("uuid") {
            return Some(Format::ClaudeCode);
        }
        let role_inside = || line.get("message").is_some_and(|message| message.get("role").is_some());
        match kind {
            Some("message") if role_inside() => return Some(Format::ChatLog),
            Some("message") => {}
            Some("chunk") if has("chunk") => return Some(Format::ChatLog),
            Some("request") if has("messages") && !has("body") => return Some(Format::ChatLog),
            Some("end") if has("outcome") => return Some(Format::ChatLog),
            _ => {}
        }
        (!is(&OF_CHAT) || kind == Some("message"))
            .then(|| is_list(line).then_some(Format::Messages))
            .flatten()
    }
}

/// Whether this is a list of messages, something that holds one, or a message of one.
pub(crate) fn is_list(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.first().is_some_and(is_list),
        Value::Object(members) => {
            let list = |name: &str| members.get(name).is_some_and(Value::is_array);
            let body = || members.get("body").is_some_and(|body| body.is_object() && is_list(body));
            let item = || {
                let kind = members.get("type").and_then(Value::as_str).unwrap_or_default();
                matches!(kind, "function_call" | "function_call_output")
            };
            let message =
                || members.contains_key("role") && (members.contains_key("content") || list("tool_calls"));
            list("messages") || list("input") || message() || item() || body()
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_shows_who_wrote_it() {
        use Format::*;
        for (line, want) in [
            (
                r#"{"type":"user","message":{"role":"user","content":"hi"},"uuid":"u","sessionId":"s"}"#,
                Some(ClaudeCode),
            ),
            (r#"{"type":"summary","summary":"x","leafUuid":"u"}"#, Some(ClaudeCode)),
            (r#"{"type":"progress","sessionId":"s","uuid":"u"}"#, Some(ClaudeCode)),
            (r#"{"timestamp":"t","type":"session_meta","payload":{"id":"x"}}"#, Some(Codex)),
            (r#"{"id":"x","timestamp":"t","instructions":null}"#, Some(Codex)),
            (r#"{"type":"message","message":{"role":"user","content":"x","origin":"user"}}"#, Some(ChatLog)),
            (r#"{"type":"request","messages":1}"#, Some(ChatLog)),
            (r#"{"type":"end","outcome":"error","message":"x"}"#, Some(ChatLog)),
            (r#"{"messages":[]}"#, Some(Messages)),
            (r#"{"model":"m","input":[{"role":"user","content":"x"}]}"#, Some(Messages)),
            (r#"{"custom_id":"1","body":{"messages":[]}}"#, Some(Messages)),
            (r#"[{"role":"user","content":"x"}]"#, Some(Messages)),
            (r#"{"role":"user","content":"x"}"#, Some(Messages)),
            (r#"{"type":"message","role":"user","content":[]}"#, Some(Messages)),
            (r#"{"type":"function_call","name":"f","arguments":"{}"}"#, Some(Messages)),
            (r#"{"tool":"f"}"#, None),
            (r#"{"type":"log","text":"x"}"#, None),
            ("[]", None),
            ("3", None),
        ] {
            assert_eq!(Format::of(&serde_json::from_str(line).unwrap()), want, "{line}");
        }
    }
}
