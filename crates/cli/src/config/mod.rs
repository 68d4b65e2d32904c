//! What is configured: the file `hookgate.toml`, and how it goes together with flags and the environment.

mod builtins;
mod file;
mod gateway;
mod settings;

pub(crate) use file::{AuditTable, ConfigFile, Hooks, ProviderName, ToolName};
pub(crate) use gateway::{LogName, OnBlockName, OnHoldLimitName, TenantTable};
pub(crate) use settings::{Backend, Judging, Settings};
