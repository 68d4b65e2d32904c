//! The command line.

use crate::config::{LogName, ProviderName, ToolName};
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

impl Args {
    /// Reads the arguments of this process.
    ///
    /// An agent waits for each `hookgate hook`, so that command is read without making all the others first.
    ///
    /// # Errors
    /// As [`Parser::try_parse`]: also where help or the version is asked for.
    pub fn of_process() -> Result<Args, clap::Error> {
        match HookOnly::of_process() {
            Some(Ok(hook)) => Ok(Args { command: Command::Hook(hook) }),
            // whatever is wrong there is said as for every command
            _ => Args::try_parse(),
        }
    }
}

/// The command line of `hookgate hook` alone.
#[derive(Debug, Parser)]
#[command(disable_help_flag = true)]
pub(crate) struct HookOnly {
    #[command(flatten)]
    hook: HookArgs,
}

impl HookOnly {
    /// The arguments behind `hook`; none: this process was started for something else.
    pub(crate) fn of_process() -> Option<Result<HookArgs, clap::Error>> {
        let mut words = std::env::args_os();
        let program = words.next();
        words.next().filter(|word| word == "hook")?;
        let only = HookOnly::try_parse_from(program.into_iter().chain(words));
        Some(only.map(|only| only.hook))
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Talk to a model that obeys a folder of hooks
    Chat(Box<ChatArgs>),
    /// Stand between agents and their model providers, so that all hooks apply
    Gateway(Box<GatewayArgs>),
    /// Show the gateway at work, without a key or a network
    Demo,
    /// List the hooks of a folder
    List(FolderArgs),
    /// Check the hook files of a folder, and warn of what is probably not meant
    Check(CheckArgs),
    /// Begin a folder of rules with their tests
    Init(InitArgs),
    /// Run the tests beside hooks
    Test(TestArgs),
    /// Show what every hook makes of an event; only scripts and built-in hooks run
    Fire(FireArgs),
    /// Tell why: what hooks make of an event in a file, or what the trail knows of an id
    Why(WhyArgs),
    /// Ask the audit trail: what hooks did, and whether the trail is whole
    Audit(Box<AuditArgs>),
    /// See what hooks decide while it happens
    Watch(Box<WatchArgs>),
    /// See and send again what watching hooks still have to do
    Outbox(Box<OutboxArgs>),
    /// Run past sessions through hooks: what would they have done?
    Replay(Box<ReplayArgs>),
    /// Wire a coding agent: its settings get a line that asks these hooks
    Install(InstallArgs),
    /// Take hookgate out of a coding agent's settings
    Uninstall(UninstallArgs),
    /// Turn a coding agent's own hook settings into hooks of ours
    Import(ImportArgs),
    /// Show which coding agents are wired
    Status,
    /// Try each wired agent's line, and look for settings that switch hooks off
    Doctor,
    /// Stand between an MCP client and its server
    #[cfg(unix)]
    Mcp(McpArgs),
    /// Answer a coding agent's hook call; its settings call this
    Hook(HookArgs),
    /// Print the JSON Schema of hook files, of test files or of hookgate.toml
    Schema {
        /// Of test files instead
        #[arg(long)]
        tests: bool,
        /// Of hookgate.toml instead
        #[arg(long, conflicts_with = "tests")]
        configuration: bool,
    },
    /// Print a completion script for a shell
    Completions {
        /// For which shell
        shell: Shell,
    },
    /// Write a manual page for each command
    #[command(hide = true)]
    Man {
        /// The folder; it is made if it is missing
        dir: PathBuf,
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

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit codes: 0 no problems, 1 problems (or warnings with --deny-warnings), 2 the folder cannot be read.
Each warning with an example: docs/check.md.")]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    pub(crate) folder: FolderArgs,
    /// Print SARIF 2.1.0, for code scanning
    #[arg(long, conflicts_with = "json")]
    pub(crate) sarif: bool,
    /// Warnings count as problems
    #[arg(long)]
    pub(crate) deny_warnings: bool,
    /// Also warn of what this door cannot do: chat, gateway, mcp, or a coding agent; several with commas
    #[arg(long, visible_alias = "agent", value_name = "NAMES", value_delimiter = ',')]
    pub(crate) door: Vec<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct InitArgs {
    /// Where [default: here]
    pub(crate) dir: Option<PathBuf>,
    /// What to begin with: no-destructive, secrets, policy-text, slack-orders [default: no-destructive]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) with: Vec<String>,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit codes: 0 all passed, 1 a test failed, 2 a hook file, a test file or the folder cannot be read.
What a test file may say: docs/tests.md, and `hookgate schema --tests`.")]
pub(crate) struct TestArgs {
    /// The hooks folder [default: all that hookgate.toml loads, else the folder of LLM_CHAT_HOOKS_DIR]
    pub(crate) dir: Option<PathBuf>,
    /// Only tests with this in their name or their file's
    #[arg(long, value_name = "TEXT")]
    pub(crate) filter: Option<String>,
    /// Command, http and prompt handlers run where a test gives no answer for them
    #[arg(long)]
    pub(crate) live: bool,
    /// Write what happened into the tests that failed, for review
    #[arg(long)]
    pub(crate) update: bool,
    /// Also tell which hooks and filters no test touched
    #[arg(long)]
    pub(crate) coverage: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Write the results as JUnit does, for CI
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
    /// That there is no test is a failure
    #[arg(long)]
    pub(crate) require: bool,
    /// The configuration file [default: hookgate.toml in the folder or above]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
An event is written as handlers get it, or in a short form (docs/tests.md), such as
{\"tool\": \"exec\", \"input\": {\"command\": \"ls\"}}. A list, or one a line, is one session.")]
pub(crate) struct FireArgs {
    /// The file with the event; `-` reads standard input
    #[arg(value_name = "EVENT")]
    pub(crate) event: PathBuf,
    /// The hooks folder [default: all that hookgate.toml loads, else the folder of LLM_CHAT_HOOKS_DIR]
    #[arg(long, value_name = "DIR")]
    pub(crate) hooks: Option<PathBuf>,
    /// Command, http and prompt handlers run
    #[arg(long)]
    pub(crate) live: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// The configuration file [default: hookgate.toml in the folder or above]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct WhyArgs {
    /// A file with an event (`-` reads standard input), or the id of a session or of an event
    #[arg(value_name = "WHAT")]
    pub(crate) what: String,
    /// The hooks folder, for an event in a file [default: all that hookgate.toml loads]
    #[arg(long, value_name = "DIR")]
    pub(crate) hooks: Option<PathBuf>,
    /// Where the trail is, for an id [default: HOOKGATE_DATA_DIR, else hookgate.toml, else ~/.local/share/hookgate]
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// The configuration file [default: hookgate.toml here or in a folder above]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct HookArgs {
    /// Which agent calls, such as claude-code
    pub(crate) agent: String,
    /// Which of its events, for payloads that do not say so or cannot be read
    pub(crate) event: Option<String>,
    #[command(flatten)]
    pub(crate) rules: RulesArgs,
    /// How long the agent waits; the answer comes before [default: what the agent waits by itself]
    #[arg(long, value_name = "MS")]
    pub(crate) timeout_ms: Option<u64>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct InstallArgs {
    /// Which agent, such as claude-code
    pub(crate) agent: String,
    #[command(flatten)]
    pub(crate) rules: RulesArgs,
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct UninstallArgs {
    /// Which agent, such as claude-code
    pub(crate) agent: String,
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ImportArgs {
    /// Whose settings, such as claude-code
    pub(crate) agent: String,
    /// The settings file; it is not changed
    pub(crate) file: PathBuf,
}

#[derive(Debug, clap::Args)]
pub(crate) struct McpArgs {
    #[command(flatten)]
    pub(crate) rules: RulesArgs,
    /// The server's name in rules [default: the program's]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// The server and its arguments
    #[arg(last = true, required = true, value_name = "SERVER")]
    pub(crate) server: Vec<String>,
}

/// Which of an agent's settings files.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct PlaceArgs {
    /// The user's settings (default)
    #[arg(long, conflicts_with_all = ["project", "managed", "file"])]
    pub(crate) user: bool,
    /// The settings of the project here
    #[arg(long, conflicts_with_all = ["managed", "file"])]
    pub(crate) project: bool,
    /// The machine's settings, which no project can switch off
    #[arg(long, conflicts_with = "file")]
    pub(crate) managed: bool,
    /// This settings file
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Only show what would change
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// Where a hook call finds its rules.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct RulesArgs {
    /// The hooks folder; without --config no configuration file is looked for
    #[arg(long, value_name = "DIR")]
    pub(crate) hooks: Option<PathBuf>,
    /// The configuration file [default: hookgate.toml here or in a folder above]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Where the audit trail is kept [default: HOOKGATE_DATA_DIR, else ~/.local/share/hookgate]
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct AuditArgs {
    #[command(subcommand)]
    pub(crate) command: AuditCommand,
    /// Where the trail is [default: HOOKGATE_DATA_DIR, else hookgate.toml, else ~/.local/share/hookgate]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    /// The configuration file [default: hookgate.toml here or in a folder above]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Print JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Change nothing, not even move in what other processes left; for copies
    #[arg(long, global = true)]
    pub(crate) read_only: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
On a terminal: letters filter, arrows and page keys scroll, space pauses, Enter shows a row in full, q or Esc quits.
Elsewhere rows are printed as they come: hookgate watch | grep block")]
pub(crate) struct WatchArgs {
    #[command(flatten)]
    pub(crate) filter: FilterArgs,
    /// Begin with so many rows that are there already [default: 200 on a terminal, else 0]
    #[arg(long, value_name = "N")]
    pub(crate) last: Option<usize>,
    /// Print JSON, an object a line
    #[arg(long)]
    pub(crate) json: bool,
    /// Print lines on a terminal, too
    #[arg(long)]
    pub(crate) plain: bool,
    /// Change nothing, not even move in what other processes left
    #[arg(long)]
    pub(crate) read_only: bool,
    /// Where the trail is [default: HOOKGATE_DATA_DIR, else hookgate.toml, else ~/.local/share/hookgate]
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    /// The configuration file [default: hookgate.toml here or in a folder above]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

#[derive(Debug, Default, clap::Args)]
#[command(after_help = "\
Reads transcripts of Claude Code and Codex, logs of `hookgate chat --json`, and lists of messages as OpenAI's and Anthropic's
requests have them; the content of a file tells which. Folders are walked for .jsonl, .ndjson, .json and .log.
Exit codes: 0 done, 1 with --strict something could not be read, 2 error.")]
pub(crate) struct ReplayArgs {
    /// Files and folders with past sessions
    #[arg(required = true, value_name = "HISTORY")]
    pub(crate) histories: Vec<PathBuf>,
    /// The hooks folder; without --config no configuration file is looked for
    #[arg(long, value_name = "DIR")]
    pub(crate) hooks: Option<PathBuf>,
    /// Compare with these hooks: show what only one of the two sets does
    #[arg(long, value_name = "DIR")]
    pub(crate) against: Option<PathBuf>,
    /// Take the folders as the operator's own, whose hooks may redact
    #[arg(long)]
    pub(crate) trusted: bool,
    /// The configuration file [default: hookgate.toml here or in a folder above]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// What the files are [default: seen in their content]
    #[arg(long, value_name = "NAME")]
    pub(crate) format: Option<String>,
    /// Whose tools lists of messages name, such as claude-code [default: names are taken as they are]
    #[arg(long, value_name = "AGENT")]
    pub(crate) tools_of: Option<String>,
    /// The tenant, for hooks that are bound to one
    #[arg(long, value_name = "ID")]
    pub(crate) tenant: Option<String>,
    /// The agent, for hooks that are bound to some
    #[arg(long, value_name = "ID")]
    pub(crate) agent: Option<String>,
    /// Really run http, command and prompt handlers
    #[arg(long)]
    pub(crate) live: bool,
    /// End with exit code 1 if anything could not be read
    #[arg(long)]
    pub(crate) strict: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Also write the report as a page
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// How many files are read at once [default: one a core]
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<usize>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct OutboxArgs {
    #[command(subcommand)]
    pub(crate) command: OutboxCommand,
    /// Where the trail is [default: HOOKGATE_DATA_DIR, else hookgate.toml, else ~/.local/share/hookgate]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    /// The configuration file [default: hookgate.toml here or in a folder above]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Print JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum OutboxCommand {
    /// List what waits and what was given up, with the reason
    List {
        /// Only what stands so
        #[arg(long)]
        state: Option<JobStateArg>,
        /// At most so many
        #[arg(long, default_value_t = 50)]
        limit: usize,
    },
    /// Try dead letters again: one, or all
    Resend {
        /// The number of one
        #[arg(required_unless_present = "all")]
        id: Option<i64>,
        /// All of them
        #[arg(long, conflicts_with = "id")]
        all: bool,
    },
    /// Run what is due now, with the hooks that are configured here
    Drain {
        /// The hooks folder [default: as for chat]
        #[arg(long, value_name = "DIR")]
        hooks: Option<PathBuf>,
        /// For how long at most
        #[arg(long, value_name = "TIME", default_value = "60s")]
        within: String,
    },
}

/// How a job stands.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum JobStateArg {
    /// To be run, now or later
    Due,
    /// Given up
    Dead,
    /// Done within the last day
    Done,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AuditCommand {
    /// List rows, the newest first
    List {
        #[command(flatten)]
        filter: FilterArgs,
        /// At most so many
        #[arg(long, default_value_t = 50)]
        limit: usize,
    },
    /// Show one row with its detail
    Show {
        /// Its number
        id: i64,
    },
    /// Tell in words what hooks did in a session or about an event
    Why {
        /// The id of a session or of an event
        id: String,
    },
    /// Count rows by hook and decision
    Stats {
        #[command(flatten)]
        filter: FilterArgs,
    },
    /// Write rows, the oldest first
    Export {
        #[command(flatten)]
        filter: FilterArgs,
        /// As what
        #[arg(long, default_value = "jsonl")]
        format: ExportFormat,
    },
    /// Check that no row was changed, taken out, added or moved
    Verify {
        /// Also that nothing is missing since this checkpoint was taken
        #[arg(long, value_name = "FILE")]
        against: Option<PathBuf>,
    },
    /// Print the ends of the trail, to be kept where its editor cannot reach
    Checkpoint,
    /// Delete old rows; the rest can still be checked
    Prune {
        /// How long rows are kept, such as 90d [default: `keep` under [audit] in hookgate.toml]
        #[arg(long, value_name = "TIME")]
        keep: Option<String>,
    },
    /// Say that a hook is deleted: its rows keep its label and lose its id
    Forget {
        /// The hook's id
        hook: String,
    },
    /// Make a new key and seal all details with it
    Rekey,
}

/// What an export is written as.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum ExportFormat {
    /// A JSON object a line, with the table's columns
    Jsonl,
    /// Comma-separated values
    Csv,
    /// CloudEvents 1.0, a JSON object a line
    Cloudevents,
}

#[derive(Debug, Default, clap::Args)]
pub(crate) struct FilterArgs {
    /// Rows since then: 2026-11-30, 2026-11-30T08:00:00Z, or an age such as 2h or 7d
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    /// Rows before then
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<String>,
    /// Rows of a session
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// Rows of a tenant
    #[arg(long, value_name = "ID")]
    pub(crate) tenant: Option<String>,
    /// Rows of an agent
    #[arg(long, value_name = "ID")]
    pub(crate) agent: Option<String>,
    /// Rows of a hook, by id or label
    #[arg(long, value_name = "NAME")]
    pub(crate) hook: Option<String>,
    /// Rows of a point, such as pre_tool_use
    #[arg(long, value_name = "NAME")]
    pub(crate) event: Option<String>,
    /// Rows of one event
    #[arg(long, value_name = "ID")]
    pub(crate) event_id: Option<String>,
    /// Rows about a tool
    #[arg(long, value_name = "NAME")]
    pub(crate) tool: Option<String>,
    /// Rows that ended so: allow, block, error or timeout
    #[arg(long, value_name = "WORD")]
    pub(crate) decision: Option<String>,
    /// Rows about the same input
    #[arg(long, value_name = "HEX")]
    pub(crate) input_hash: Option<String>,
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
    /// Where the audit trail is kept [default: HOOKGATE_DATA_DIR, else ~/.local/share/hookgate]
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    /// The configuration file [default: hookgate.toml here or in a folder above]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

#[derive(Debug, Default, clap::Args)]
#[command(after_help = "\
Agents set their base URL to the gateway: OPENAI_BASE_URL=http://127.0.0.1:8787/v1, ANTHROPIC_BASE_URL=http://127.0.0.1:8787.
Flags beat hookgate.toml ([gateway], [[tenants]]). SIGTERM and Ctrl-C let open answers finish.")]
pub(crate) struct GatewayArgs {
    /// The provider, such as https://api.openai.com
    #[arg(long, value_name = "URL")]
    pub(crate) upstream: Option<String>,
    /// Where to listen [default: 127.0.0.1:8787]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<String>,
    /// Listen on a Unix socket instead
    #[arg(long, value_name = "FILE", conflicts_with = "listen")]
    pub(crate) socket: Option<PathBuf>,
    /// The variable that holds the provider's API key; what clients send as a key is replaced by it
    #[arg(long, value_name = "NAME")]
    pub(crate) key_env: Option<String>,
    /// The hooks folder
    #[arg(long, value_name = "DIR")]
    pub(crate) hooks: Option<PathBuf>,
    /// The operator's own hooks folder, whose hooks may change answers
    #[arg(long, value_name = "DIR")]
    pub(crate) trusted_hooks: Option<PathBuf>,
    /// What a bad hook file does: refuse to start, or skip the bad hooks [default: refuse]
    #[arg(long)]
    pub(crate) on_invalid: Option<OnInvalidArg>,
    /// What is written to standard error [default: json]
    #[arg(long)]
    pub(crate) log: Option<LogName>,
    /// Where the audit trail is kept [default: HOOKGATE_DATA_DIR, else ~/.local/share/hookgate]
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    /// The configuration file [default: hookgate.toml here or in a folder above]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

/// [`OnInvalid`] on the command line.
#[derive(Debug, Clone, Copy, ValueEnum, schemars::JsonSchema)]
#[schemars(rename_all = "lowercase")]
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
