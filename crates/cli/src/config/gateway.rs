//! `[gateway]` and `[[tenants]]`: the door between agents and their providers.

use schemars::JsonSchema;
use serde::Deserialize;
use std::path::PathBuf;

/// The gateway.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct GatewayTable {
    /// Address and port [default: `127.0.0.1:8787`].
    pub(crate) listen: Option<String>,
    /// A Unix socket instead.
    pub(crate) socket: Option<PathBuf>,
    /// An address of its own for `/metrics`, which clients cannot reach.
    pub(crate) admin_listen: Option<String>,
    /// The provider; behind the list of `upstreams`, where both stand.
    pub(crate) upstream: Option<String>,
    /// The variable with that provider's key: whatever key a client sends is replaced by it.
    pub(crate) key_env: Option<String>,
    /// Several providers; the first that takes a request gets it.
    pub(crate) upstreams: Vec<UpstreamTable>,
    /// The certificate's PEM file, together with `tls_key`: TLS 1.2 and 1.3, HTTP/1.1 and HTTP/2.
    pub(crate) tls_cert: Option<PathBuf>,
    /// The key's PEM file.
    pub(crate) tls_key: Option<PathBuf>,
    /// What becomes of a blocked call [default: tell-model].
    pub(crate) on_block: Option<OnBlockName>,
    /// How often in one request the model may read why a call was blocked [default: 3].
    pub(crate) max_told: Option<u32>,
    /// How often in one request hooks may have the provider asked again [default: 10].
    pub(crate) max_resends: Option<u32>,
    /// Time of all hooks of one event together [default: 60000].
    pub(crate) chain_budget_ms: Option<u64>,
    /// What becomes of text that waits too long [default: block].
    pub(crate) on_hold_limit: Option<OnHoldLimitName>,
    /// Bytes of events that wait because text may become a match [default: 65536].
    pub(crate) max_hold_bytes: Option<usize>,
    /// How long they may wait [default: 60000].
    pub(crate) max_hold_ms: Option<u64>,
    /// A request's body; larger: 413 [default: 67108864].
    pub(crate) max_body_bytes: Option<usize>,
    /// An answer that hooks look at, in one piece or as a stream [default: 67108864].
    pub(crate) max_answer_bytes: Option<usize>,
    /// At a time; more wait in the system's queue [default: 20000].
    pub(crate) max_connections: Option<usize>,
    /// Requests of one tenant that run at a time; more: 429 [default: 1000].
    pub(crate) max_requests: Option<usize>,
    /// Conversations of one tenant that are remembered [default: 10000].
    pub(crate) max_sessions: Option<usize>,
    /// How long a provider may think before its answer's head; longer: 504 [default: 600000].
    pub(crate) first_byte_ms: Option<u64>,
    /// How long a stream may be silent [default: 300000].
    pub(crate) idle_ms: Option<u64>,
    /// How long a client may take nothing of its answer; longer: it is hung up on [default: 300000].
    pub(crate) client_idle_ms: Option<u64>,
    /// How long open answers may take at the end [default: 30000].
    pub(crate) drain_ms: Option<u64>,
    /// How often hook folders are looked at for changes, at least 10 [default: 250].
    pub(crate) reload_ms: Option<u64>,
    /// What is written to standard error [default: json].
    pub(crate) log: Option<LogName>,
    /// Where traces go: the address of an OpenTelemetry collector.
    pub(crate) otlp_endpoint: Option<String>,
    /// The header by which a proxy in front says whose request it is.
    pub(crate) tenant_header: Option<String>,
    /// The header by which a proxy in front names the tenant's agent.
    pub(crate) agent_header: Option<String>,
    /// Whose requests they are where all are one's.
    pub(crate) tenant: Option<String>,
    /// The agent, where all requests are one's.
    pub(crate) agent: Option<String>,
}

/// One provider.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct UpstreamTable {
    /// Scheme, host, port, and a path that stands before every request's.
    pub(crate) url: String,
    /// Only requests under this path, which is taken away [default: all].
    #[serde(default)]
    pub(crate) path: String,
    /// Only these models; `*` at the end stands for any rest. Requests without a model fit too [default: all].
    #[serde(default)]
    pub(crate) models: Vec<String>,
    /// The variable with the provider's key: whatever key a client sends is replaced by it.
    pub(crate) key_env: Option<String>,
}

/// One tenant.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TenantTable {
    /// The name that hooks with a `scope` and the audit trail see.
    pub(crate) id: String,
    /// SHA-256 of the keys that its agents use, as 64 hex digits: `printf %s KEY | sha256sum`.
    #[serde(default)]
    pub(crate) key_sha256: Vec<String>,
    /// Keys of single agents.
    #[serde(default)]
    pub(crate) agents: Vec<AgentTable>,
    /// A folder of its own, loaded behind the common ones.
    pub(crate) hooks_dir: Option<PathBuf>,
    /// Its requests that run at a time; more: 429 [default: as under `gateway`].
    pub(crate) max_requests: Option<usize>,
}

/// One agent of a tenant.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AgentTable {
    /// The name that hooks with a `scope` and the audit trail see.
    pub(crate) id: String,
    /// SHA-256 of the keys that it uses.
    pub(crate) key_sha256: Vec<String>,
}

/// What becomes of a blocked tool call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum OnBlockName {
    /// The model reads the reason and goes on.
    TellModel,
    /// The client reads it.
    Refuse,
}

/// What becomes of text that waits too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum OnHoldLimitName {
    /// The answer ends.
    Block,
    /// It is passed on.
    Release,
}

/// How requests and hooks are logged to standard error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
#[value(rename_all = "lowercase")]
pub(crate) enum LogName {
    /// A JSON object a line
    Json,
    /// For people
    Text,
    /// Nothing
    Off,
}
