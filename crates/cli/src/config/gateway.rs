//! `[gateway]` and `[[tenants]]`: the door between agents and their providers.

use serde::Deserialize;
use std::path::PathBuf;

/// The gateway.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct GatewayTable {
    /// Address and port.
    pub(crate) listen: Option<String>,
    /// A Unix socket instead.
    pub(crate) socket: Option<PathBuf>,
    /// A page of its own for metrics, which clients cannot reach.
    pub(crate) admin_listen: Option<String>,
    /// The provider, where there is one.
    pub(crate) upstream: Option<String>,
    /// The variable that holds the provider's key: clients need none then.
    pub(crate) key_env: Option<String>,
    /// Several providers; the first that takes a request gets it.
    pub(crate) upstreams: Vec<UpstreamTable>,
    pub(crate) tls_cert: Option<PathBuf>,
    pub(crate) tls_key: Option<PathBuf>,
    pub(crate) on_block: Option<OnBlockName>,
    /// How often in one request the model may read why a call was blocked.
    pub(crate) max_told: Option<u32>,
    pub(crate) max_resends: Option<u32>,
    pub(crate) chain_budget_ms: Option<u64>,
    pub(crate) on_hold_limit: Option<OnHoldLimitName>,
    pub(crate) max_hold_bytes: Option<usize>,
    pub(crate) max_hold_ms: Option<u64>,
    pub(crate) max_body_bytes: Option<usize>,
    pub(crate) max_answer_bytes: Option<usize>,
    pub(crate) max_connections: Option<usize>,
    /// Requests of one tenant that run at a time.
    pub(crate) max_requests: Option<usize>,
    /// Conversations of one tenant that are remembered.
    pub(crate) max_sessions: Option<usize>,
    pub(crate) first_byte_ms: Option<u64>,
    pub(crate) idle_ms: Option<u64>,
    pub(crate) drain_ms: Option<u64>,
    /// How often hook folders are looked at for changes.
    pub(crate) reload_ms: Option<u64>,
    pub(crate) log: Option<LogName>,
    /// Where traces go: the address of an OpenTelemetry collector.
    pub(crate) otlp_endpoint: Option<String>,
    /// The header by which a proxy in front says whose request it is.
    pub(crate) tenant_header: Option<String>,
    pub(crate) agent_header: Option<String>,
    /// Whose requests they are where all are one's.
    pub(crate) tenant: Option<String>,
    pub(crate) agent: Option<String>,
}

/// One provider.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct UpstreamTable {
    pub(crate) url: String,
    /// Only requests under this path, which is taken away.
    #[serde(default)]
    pub(crate) path: String,
    /// Only these models; `*` at the end stands for any rest.
    #[serde(default)]
    pub(crate) models: Vec<String>,
    pub(crate) key_env: Option<String>,
}

/// One tenant.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TenantTable {
    pub(crate) id: String,
    /// SHA-256 of the keys that its agents use, as 64 hex digits: `printf %s KEY | sha256sum`.
    #[serde(default)]
    pub(crate) key_sha256: Vec<String>,
    /// Keys of single agents.
    #[serde(default)]
    pub(crate) agents: Vec<AgentTable>,
    /// A folder of its own, beside the gateway's.
    pub(crate) hooks_dir: Option<PathBuf>,
    pub(crate) max_requests: Option<usize>,
}

/// One agent of a tenant.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AgentTable {
    pub(crate) id: String,
    pub(crate) key_sha256: Vec<String>,
}

/// What becomes of a blocked tool call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum OnBlockName {
    /// The model reads the reason and goes on.
    TellModel,
    /// The client reads it.
    Refuse,
}

/// What becomes of text that waits too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum OnHoldLimitName {
    /// The answer ends.
    Block,
    /// It is passed on.
    Release,
}

/// How requests and hooks are logged to standard error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, clap::ValueEnum)]
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
