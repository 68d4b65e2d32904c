//! The command line.

use crate::config::{ProviderName, ToolName};
use clap::{Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use hookgate_handlers::folder::OnInvalid;
use std::path::PathBuf;

/// Change what an LLM agent does without touching its code: rules that live in hook files outside it.
#[derive(Debug, Parser)]
#[command(name = "hookgate", version, max_term_width = 100)]
pub struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Talk to a model that obeys a folder of hooks
    Chat(Box<ChatArgs>),
    /// List the hooks of a folder
    List(FolderArgs),
    /// Check the hook files of a folder
    Check(FolderArgs),
    /// Print the JSON Schema of hook files
    Schema,
    /// Print a completion script for a shell
    Completions {
        /// For which shell
        shell: Shell,
    },
}

#[derive(Debug, clap::Args)]
pub(crate) struct FolderArgs {
    /// The hooks folder [default: the one of hookgate.toml, else of LLM_CHAT_HOOKS_DIR]
    pub(crate) dir: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// The configuration file [default: hookgate.toml here or in a folder above]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

#[derive(Debug, Default, clap::Args)]
#[command(after_help = "\
Exit codes: 0 answered, 1 interrupted by a hook, 2 error, 130 stopped by Ctrl-C.
API keys come from OPENAI_API_KEY or ANTHROPIC_API_KEY, or the variable that api_key_env in hookgate.toml names.
Flags beat the environment, which beats hookgate.toml; for the hooks folder hookgate.toml beats LLM_CHAT_HOOKS_DIR.")]
pub(crate) struct ChatArgs {
    /// What to ask; `-` or nothing reads it from standard input, or opens a conversation on a terminal
    pub(crate) prompt: Option<String>,
    /// The hooks folder
    #[arg(long, value_name = "DIR")]
    pub(crate) hooks: Option<PathBuf>,
    /// Who answers [default: scripted, a built-in model, until a model, a base URL or a key is configured]
    #[arg(long)]
    pub(crate) provider: Option<ProviderName>,
    /// The model's name at the provider
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// Where the provider is
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,
    /// The script that the scripted model plays [default: a demonstration]
    #[arg(long, value_name = "FILE")]
    pub(crate) script: Option<PathBuf>,
    /// Instructions that stand above the conversation
    #[arg(long, value_name = "TEXT")]
    pub(crate) system: Option<String>,
    /// Tools that the model may use; off unless named
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) tools: Option<Vec<ToolName>>,
    /// No tools, whatever hookgate.toml enables
    #[arg(long, conflicts_with = "tools")]
    pub(crate) no_tools: bool,
    /// Where tools work; files outside are out of reach of read_file and write_file [default: here]
    #[arg(long, value_name = "DIR")]
    pub(crate) workdir: Option<PathBuf>,
    /// How many rounds of tool calls one answer may take [default: 10]
    #[arg(long, value_name = "N")]
    pub(crate) max_tool_call_rounds: Option<u32>,
    /// How often hooks may ask again for one answer [default: 10]
    #[arg(long, value_name = "N")]
    pub(crate) max_resends: Option<u32>,
    /// The tenant, for hooks that are bound to one
    #[arg(long, value_name = "ID")]
    pub(crate) tenant: Option<String>,
    /// The agent, for hooks that are bound to some
    #[arg(long, value_name = "ID")]
    pub(crate) agent: Option<String>,
    /// What a bad hook file does: refuse to start, or skip the bad hooks [default: refuse]
    #[arg(long)]
    pub(crate) on_invalid: Option<OnInvalidArg>,
    /// Print events as JSON lines instead of the answer (docs/chat-events.md)
    #[arg(long)]
    pub(crate) json: bool,
    /// Show debug lines, the model's thoughts and the results of tools
    #[arg(short, long)]
    pub(crate) verbose: bool,
    /// The configuration file [default: hookgate.toml here or in a folder above]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

/// [`OnInvalid`] on the command line.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum OnInvalidArg {
    /// Do not start
    Refuse,
    /// Use the good hooks, report the rest
    Skip,
}

impl From<OnInvalidArg> for OnInvalid {
    fn from(arg: OnInvalidArg) -> OnInvalid {
        match arg {
            OnInvalidArg::Refuse => OnInvalid::Refuse,
            OnInvalidArg::Skip => OnInvalid::Skip,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_sound() {
        Args::command().debug_assert();
    }
}
