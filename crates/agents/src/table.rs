//! The agents. Adding one is a file and a line here.

use crate::agent::Agent;

/// All of them, the best known first.
pub static ALL: &[&dyn Agent] = &[
    &crate::claude_code::ClaudeCode,
    &crate::codex::Codex,
    &crate::gemini_cli::GeminiCli,
    &crate::qwen_code::QwenCode,
    &crate::copilot_cli::CopilotCli,
    &crate::cursor::Cursor,
    &crate::opencode::OpenCode,
    &crate::kiro::Kiro,
    &crate::cline::Cline,
    &crate::openclaw::OpenClaw,
    &crate::vscode::VsCode,
    &crate::windsurf::Windsurf,
    &crate::goose::Goose,
    &crate::droid::Droid,
    &crate::grok::Grok,
    &crate::antigravity::Antigravity,
    &crate::docker_agent::DockerAgent,
];

/// An agent by its name.
pub fn find(name: &str) -> Option<&'static dyn Agent> {
    ALL.iter().copied().find(|agent| agent.name() == name)
}

/// The names, for an error text.
pub fn names() -> String {
    ALL.iter().map(|agent| agent.name()).collect::<Vec<_>>().join(", ")
}
