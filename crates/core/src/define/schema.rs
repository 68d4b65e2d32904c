//! The JSON Schema of hook files, made from the types below. Editors use it (`"$schema"` in a hook file);
//! the loader does not: its own reading gives better texts. A test holds the two together.

use crate::effect::Level;
use crate::event::{ChunkKind, Role, ToolMoment};
use crate::handler::{Fallback, Mode};
use crate::hook::Scope;
use crate::word::words;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// The schema of a hook file.
pub fn hook_file() -> schemars::Schema {
    let mut schema = schemars::schema_for!(HookFile);
    schema.insert("$id".into(), SCHEMA_ID.into());
    let mut value = schema.to_value();
    drop_empty_defaults(&mut value);
    schemars::Schema::try_from(value).unwrap_or_default()
}

/// An omitted text, number or list means "not set", which no default value says.
fn drop_empty_defaults(value: &mut serde_json::Value) {
    match value {
        serde_json::Value::Object(members) => {
            let empty = |default: &serde_json::Value| {
                default == "" || default == 0 || default.as_array().is_some_and(Vec::is_empty)
            };
            if members.get("default").is_some_and(empty) {
                members.remove("default");
            }
            members.values_mut().for_each(drop_empty_defaults);
        }
        serde_json::Value::Array(items) => items.iter_mut().for_each(drop_empty_defaults),
        _ => {}
    }
}

/// The name under which the schema is published; its number is the version of the format ([`super::format`]).
pub const SCHEMA_ID: &str = "https://hookgate.dev/schema/hooks-1.json";

/// One hook, or a list of hooks.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
#[allow(dead_code, clippy::large_enum_variant, reason = "only its schema is used")]
enum HookFile {
    One(Definition),
    Many(Vec<Definition>),
}

#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
#[allow(dead_code, clippy::large_enum_variant, reason = "only its schema is used")]
enum Definition {
    Chat(ChatHook),
    Stream(StreamHook),
    Tool(ToolHook),
    Lifecycle(LifecycleHook),
}

words! {
    /// Reacts to messages.
    pub enum ChatOnly("target") {
        /// Messages.
        Chat = "chat",
    }
}

words! {
    /// Reacts to pieces of a streamed answer.
    pub enum StreamOnly("target") {
        /// Chunks.
        Stream = "stream",
    }
}

words! {
    /// Reacts to tools.
    pub enum ToolOnly("target") {
        /// Tools.
        Tool = "tool",
    }
}

/// Fires when a message is added to the history.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ChatHook {
    /// The address of this schema, for editors; it names the version of the format.
    #[serde(rename = "$schema", default)]
    schema: String,
    target: ChatOnly,
    /// A name for people.
    #[serde(default)]
    label: String,
    /// `false` leaves the hook out.
    #[serde(default = "yes")]
    enabled: bool,
    /// Only these roles; omitted or empty: all.
    #[serde(default)]
    roles: Vec<Role>,
    /// Only messages in which this JavaScript pattern is found.
    #[serde(default)]
    regex: String,
    /// Stop firing after this many times in a session.
    #[serde(default)]
    max_triggers: u64,
    /// What to do, in order; omitted or empty: log a dump of the event.
    #[serde(default)]
    actions: Vec<ActionDef>,
}

/// Fires for each chunk of a streamed answer.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct StreamHook {
    /// The address of this schema, for editors; it names the version of the format.
    #[serde(rename = "$schema", default)]
    schema: String,
    target: StreamOnly,
    /// A name for people.
    #[serde(default)]
    label: String,
    /// `false` leaves the hook out.
    #[serde(default = "yes")]
    enabled: bool,
    /// Only these chunk types; omitted or empty: all.
    #[serde(default)]
    chunks: Vec<ChunkKind>,
    /// Only where a match of this JavaScript pattern in the text so far is completed.
    #[serde(default)]
    regex: String,
    /// Stop firing after this many times in a session.
    #[serde(default)]
    max_triggers: u64,
    /// What to do, in order; omitted or empty: log a dump of the event.
    #[serde(default)]
    actions: Vec<StreamActionDef>,
}

/// Fires when a tool runs.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ToolHook {
    /// The address of this schema, for editors; it names the version of the format.
    #[serde(rename = "$schema", default)]
    schema: String,
    target: ToolOnly,
    /// A name for people.
    #[serde(default)]
    label: String,
    /// `false` leaves the hook out.
    #[serde(default = "yes")]
    enabled: bool,
    /// Only these tools, by whole name; omitted or empty: all.
    #[serde(default)]
    tools: Vec<String>,
    /// When: before the tool runs, after it, or when it failed.
    #[serde(default = "after")]
    event: ToolMoment,
    /// Only where this JavaScript pattern is found in the arguments, the result or the error.
    #[serde(default)]
    regex: String,
    /// Stop firing after this many times in a session.
    #[serde(default)]
    max_triggers: u64,
    /// What to do, in order; omitted or empty: log a dump of the event.
    #[serde(default)]
    actions: Vec<ToolActionDef>,
}

/// One thing to do about a tool.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
#[allow(dead_code, reason = "only its schema is used")]
enum ToolActionDef {
    Any(ActionDef),
    Block(BlockAction),
}

/// One thing to do about a piece of an answer.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
#[allow(dead_code, reason = "only its schema is used")]
enum StreamActionDef {
    Any(ActionDef),
    Redact(RedactAction),
}

/// One thing to do.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
#[allow(dead_code, reason = "only its schema is used")]
enum ActionDef {
    Log(LogAction),
    Interrupt(InterruptAction),
    QueueMessage(QueueMessageAction),
    QueueResend(QueueResendAction),
}

/// Prints a message.
#[derive(Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct LogAction {
    r#type: Level,
    /// A template with `{{variable}}` placeholders; omitted: a dump of the event.
    #[serde(default)]
    message: String,
}

words! {
    /// Drops the current response.
    pub enum InterruptOnly("action") {
        /// Drop it.
        Interrupt = "interrupt",
    }
}

/// Drops the current response.
#[derive(Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct InterruptAction {
    r#type: InterruptOnly,
    /// Ask again afterwards.
    #[serde(default)]
    resend: bool,
    /// Not used.
    #[serde(default)]
    message: String,
}

words! {
    /// Queues a message.
    pub enum QueueMessageOnly("action") {
        /// Queue it.
        QueueMessage = "queue-message",
    }
}

/// Queues a message for the next request.
#[derive(Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct QueueMessageAction {
    r#type: QueueMessageOnly,
    /// Who speaks in it.
    #[serde(default = "assistant")]
    role: Role,
    /// A template with `{{variable}}` placeholders; omitted: a dump of the event.
    #[serde(default)]
    message: String,
}

words! {
    /// Asks again.
    pub enum QueueResendOnly("action") {
        /// Ask again.
        QueueResend = "queue-resend",
    }
}

/// Asks again once the current response is complete.
#[derive(Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct QueueResendAction {
    r#type: QueueResendOnly,
}

words! {
    /// Stops a tool.
    pub enum BlockOnly("action") {
        /// Stop it.
        Block = "block",
    }
}

/// Keeps a tool from running; only with `event: before`.
#[derive(Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct BlockAction {
    r#type: BlockOnly,
    /// The reason for model and user: a template with `{{variable}}` placeholders.
    #[serde(default)]
    message: String,
}

words! {
    /// Replaces what was found.
    pub enum RedactOnly("action") {
        /// Replace it.
        Redact = "redact",
    }
}

/// Puts something else in the place of the matched text; only with a `regex`, in the trusted folder.
#[derive(Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RedactAction {
    r#type: RedactOnly,
    /// What stands there: a template with `{{variable}}` placeholders.
    #[serde(default = "redacted")]
    with: String,
}

words! {
    /// Where a lifecycle hook listens.
    pub enum LifecycleEvent("event") {
        /// A session begins.
        SessionStart = "session_start",
        /// A message entered the history.
        Message = "message",
        /// Before the user's input enters.
        UserPromptSubmit = "user_prompt_submit",
        /// Before a tool runs.
        PreToolUse = "pre_tool_use",
        /// After a tool ran.
        PostToolUse = "post_tool_use",
        /// After a tool failed.
        ToolError = "tool_error",
        /// Before the answer is delivered.
        PreResponse = "pre_response",
        /// The turn is over.
        Stop = "stop",
        /// The session is over.
        SessionEnd = "session_end",
        /// A sub-agent is about to start.
        SubagentStart = "subagent_start",
        /// A sub-agent ended.
        SubagentStop = "subagent_stop",
    }
}

/// Decides or watches at a point of the agent's turn.
#[derive(Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct LifecycleHook {
    /// The address of this schema, for editors; it names the version of the format.
    #[serde(rename = "$schema", default)]
    schema: String,
    /// The name in records.
    #[serde(default)]
    id: String,
    /// A name for people.
    #[serde(default)]
    label: String,
    event: LifecycleEvent,
    /// `false` leaves the hook out.
    #[serde(default = "yes")]
    enabled: bool,
    /// A JavaScript pattern for the whole tool name.
    #[serde(default)]
    matcher: String,
    /// Whole tool names, in place of `matcher`.
    #[serde(default)]
    tools: Vec<String>,
    /// Only messages of these roles; event message only.
    #[serde(default)]
    roles: Vec<Role>,
    /// Only where this JavaScript pattern is found in the prompt, the message, the tool's input, output or error, or the
    /// response.
    #[serde(default)]
    regex: String,
    /// A condition in CEL.
    #[serde(default)]
    if_expr: String,
    /// Higher runs first.
    #[serde(default)]
    priority: i64,
    /// Whose events it sees.
    #[serde(default = "global")]
    scope: Scope,
    /// The tenant, for the scopes tenant and agent.
    #[serde(default)]
    tenant: String,
    /// The agents, for the scope agent.
    #[serde(default)]
    agents: Vec<String>,
    /// How long the handler may take, in milliseconds.
    #[serde(default)]
    #[schemars(range(min = 1, max = 600_000))]
    timeout_ms: u64,
    /// What no answer in time counts as.
    #[serde(default = "block")]
    on_timeout: Fallback,
    /// What a fault counts as; omitted: as `on_timeout`.
    #[serde(default = "block")]
    on_error: Fallback,
    /// How an addition is delivered; pre_response only.
    #[serde(default = "append")]
    mode: Mode,
    handler: HandlerDef,
}

/// What decides.
#[derive(Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
#[allow(dead_code, reason = "only its schema is used")]
enum HandlerDef {
    /// JavaScript in a sandbox; `source` or `file`.
    Script {
        /// The script.
        #[serde(default)]
        source: String,
        /// A file beside the hook file.
        #[serde(default)]
        file: String,
        /// Memory limit in MiB.
        #[serde(default)]
        memory_mb: u64,
    },
    /// A local program; `argv` or `shell`.
    Command {
        /// Program and arguments.
        #[serde(default)]
        argv: Vec<String>,
        /// A line for the shell.
        #[serde(default)]
        shell: String,
        /// Names of environment variables that it may see.
        #[serde(default)]
        env: Vec<String>,
        /// Working directory.
        #[serde(default)]
        cwd: String,
    },
    /// A POST to an endpoint; `url` or `url_env`.
    Http {
        /// Where.
        #[serde(default)]
        url: String,
        /// The environment variable that holds the address.
        #[serde(default)]
        url_env: String,
        /// What is posted instead of the event; `{{toolInput.item}}` in its texts stands for that member of the event.
        #[serde(default)]
        body: BTreeMap<String, serde_json::Value>,
        /// Further headers.
        #[serde(default)]
        headers: BTreeMap<String, String>,
        /// The environment variable that holds the signing secret.
        #[serde(default)]
        secret_env: String,
        /// May the address be private?
        #[serde(default)]
        allow_private: bool,
    },
    /// A question to a model.
    Prompt {
        /// The policy in words.
        prompt: String,
        /// Which model.
        #[serde(default)]
        model: String,
        /// How many questions a turn may cost.
        #[serde(default)]
        max_per_turn: u64,
    },
}

fn yes() -> bool {
    true
}
fn after() -> ToolMoment {
    ToolMoment::After
}
fn assistant() -> Role {
    Role::Assistant
}
fn redacted() -> String {
    crate::action::REDACTED.to_owned()
}
fn global() -> Scope {
    Scope::Global
}
fn block() -> Fallback {
    Fallback::Block
}
fn append() -> Mode {
    Mode::Append
}
