//! What holds for the gateway in the end: flags beat the file.

use super::collector;
use crate::args::GatewayArgs;
use crate::config::{ConfigFile, Judging, LogName, OnBlockName, OnHoldLimitName, TenantTable};
use crate::data::DataDir;
use crate::failure::Failure;
use hookgate_handlers::folder::{self, HOOKS_DIR_VARIABLE, OnInvalid};
use hookgate_server::gateway::{KeyHash, Limits, OnBlock, OnHoldLimit, Upstream};
use hookgate_server::traces::Collector;
use secrecy::SecretString;
use serde_json::{Map, Value};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Where variables are looked up.
pub(super) type Environment<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// Where a gateway listens when nobody says otherwise.
const LISTEN: &str = "127.0.0.1:8787";

/// What the gateway works with.
pub(super) struct Settings {
    pub(super) place: Place,
    pub(super) admin: Option<String>,
    pub(super) open_metrics: bool,
    pub(super) upstreams: Vec<Upstream>,
    pub(super) hooks_dir: Option<PathBuf>,
    pub(super) trusted_dir: Option<PathBuf>,
    pub(super) builtins: Vec<(String, Map<String, Value>)>,
    pub(super) on_invalid: OnInvalid,
    pub(super) config_name: String,
    pub(super) tenants: Vec<TenantSettings>,
    pub(super) identity: Identity,
    pub(super) max_sessions: usize,
    pub(super) judging: Judging,
    pub(super) data: Option<DataDir>,
    pub(super) chain_budget: Duration,
    pub(super) on_block: OnBlock,
    pub(super) on_hold_limit: OnHoldLimit,
    pub(super) max_resends: u32,
    pub(super) limits: Limits,
    pub(super) drain: Duration,
    pub(super) reload: Duration,
    pub(super) log: LogName,
    pub(super) collector: Option<Collector>,
}

/// Where it listens.
pub(super) enum Place {
    Tcp { address: String, tls: Option<(PathBuf, PathBuf)> },
    Unix(PathBuf),
}

/// One tenant.
pub(super) struct TenantSettings {
    pub(super) id: Option<String>,
    pub(super) agent: Option<String>,
    pub(super) hooks_dir: Option<PathBuf>,
    pub(super) max_requests: usize,
}

/// How clients say whose request it is.
pub(super) enum Identity {
    One,
    Header {
        tenant: String,
        agent: Option<String>,
    },
    /// Hash of a key, index of the tenant, agent.
    Keys(Vec<(KeyHash, usize, Option<String>)>),
}

impl Settings {
    /// Puts flags, environment and file together.
    pub(super) fn resolve(
        flags: &GatewayArgs,
        file: ConfigFile,
        environment: Environment<'_>,
    ) -> Result<Settings, Failure> {
        let upstreams = upstreams(flags, &file, environment)?;
        let identity = identity(&file)?;
        let place = place(flags, &file)?;
        let table = &file.gateway;
        let ms = Duration::from_millis;
        let usual = Limits::default();
        let limits = Limits {
            max_body_bytes: table.max_body_bytes.unwrap_or(usual.max_body_bytes),
            max_answer_bytes: table.max_answer_bytes.unwrap_or(usual.max_answer_bytes),
            max_hold_bytes: table.max_hold_bytes.unwrap_or(usual.max_hold_bytes),
            max_hold: table.max_hold_ms.map_or(usual.max_hold, ms),
            first_byte: table.first_byte_ms.map_or(usual.first_byte, ms),
            idle: table.idle_ms.map_or(usual.idle, ms),
            client_idle: table.client_idle_ms.map_or(usual.client_idle, ms),
            connections: table.max_connections.unwrap_or(usual.connections),
            ..usual
        };
        let several = !matches!(identity, Identity::One);
        Ok(Settings {
            place,
            open_metrics: table.admin_listen.is_none() && !several,
            admin: table.admin_listen.clone(),
            upstreams,
            hooks_dir: folder::resolve(
                flags.hooks.clone().or(file.hooks.dir.clone()),
                environment(HOOKS_DIR_VARIABLE),
            ),
            trusted_dir: flags.trusted_hooks.clone().or(file.hooks.trusted_dir.clone()),
            on_invalid: flags.on_invalid.map(Into::into).or(file.hooks.on_invalid).unwrap_or_default(),
            config_name: file
                .path
                .as_ref()
                .map_or_else(|| "hookgate.toml".into(), |path| path.display().to_string()),
            tenants: tenants(&file),
            identity,
            max_sessions: table.max_sessions.unwrap_or(10_000),
            judging: Judging::of_judge(&file.judge, environment)?,
            data: DataDir::find(flags.data_dir.as_deref(), &file.audit, environment)?,
            chain_budget: table.chain_budget_ms.map_or(Duration::from_secs(60), ms),
            on_block: match table.on_block.unwrap_or(OnBlockName::TellModel) {
                OnBlockName::TellModel => OnBlock::TellModel { most: table.max_told.unwrap_or(3) },
                OnBlockName::Refuse => OnBlock::Refuse,
            },
            on_hold_limit: match table.on_hold_limit.unwrap_or(OnHoldLimitName::Block) {
                OnHoldLimitName::Block => OnHoldLimit::Block,
                OnHoldLimitName::Release => OnHoldLimit::Release,
            },
            max_resends: table.max_resends.unwrap_or(10),
            limits,
            drain: table.drain_ms.map_or(Duration::from_secs(30), ms),
            reload: table.reload_ms.map_or(Duration::from_millis(250), ms).max(ms(10)),
            log: flags.log.or(table.log).unwrap_or(LogName::Json),
            collector: collector::find(table.otlp_endpoint.as_deref(), environment)?,
            builtins: file.builtin.0,
        })
    }
}

fn place(flags: &GatewayArgs, file: &ConfigFile) -> Result<Place, Failure> {
    let table = &file.gateway;
    let socket = flags.socket.clone().or(table.socket.clone().filter(|_| flags.listen.is_none()));
    if let Some(path) = socket {
        return Ok(Place::Unix(path));
    }
    let address = flags.listen.clone().or(table.listen.clone()).unwrap_or_else(|| LISTEN.to_owned());
    let tls = match (table.tls_cert.clone(), table.tls_key.clone()) {
        (Some(cert), Some(key)) => Some((cert, key)),
        (None, None) => None,
        _ => return Err(Failure::new("[gateway]: `tls_cert` and `tls_key` belong together; one is missing")),
    };
    Ok(Place::Tcp { address, tls })
}

fn upstreams(
    flags: &GatewayArgs,
    file: &ConfigFile,
    environment: Environment<'_>,
) -> Result<Vec<Upstream>, Failure> {
    let key = |name: Option<&String>| -> Result<Option<SecretString>, Failure> {
        let Some(name) = name else { return Ok(None) };
        let value =
            environment(name).and_then(|value| value.into_string().ok()).filter(|value| !value.is_empty());
        match value {
            Some(value) => Ok(Some(SecretString::from(value))),
            None => {
                Err(Failure::new(format!("the environment variable {name}, which key_env names, is not set")))
            }
        }
    };
    let with_key = |upstream: Upstream, key: Option<SecretString>| match key {
        Some(key) => upstream.with_key(key),
        None => upstream,
    };
    let new = |url: &str| Upstream::new(url).map_err(|error| Failure::new(error.to_string()));
    let table = &file.gateway;
    let mut upstreams = Vec::new();
    if let Some(url) = &flags.upstream {
        upstreams.push(with_key(new(url)?, key(flags.key_env.as_ref().or(table.key_env.as_ref()))?));
        return Ok(upstreams);
    }
    for upstream in &table.upstreams {
        let made = new(&upstream.url)?.under(&upstream.path).for_models(upstream.models.clone());
        upstreams.push(with_key(made, key(upstream.key_env.as_ref())?));
    }
    if let Some(url) = &table.upstream {
        upstreams.push(with_key(new(url)?, key(flags.key_env.as_ref().or(table.key_env.as_ref()))?));
    }
    if upstreams.is_empty() {
        return Err(Failure::new(
            "which provider? say --upstream https://api.example.com, or set `upstream` under [gateway] in hookgate.toml",
        ));
    }
    Ok(upstreams)
}

fn tenants(file: &ConfigFile) -> Vec<TenantSettings> {
    let table = &file.gateway;
    let most = |own: Option<usize>| own.or(table.max_requests).unwrap_or(1000);
    if file.tenants.is_empty() {
        let one = TenantSettings {
            id: table.tenant.clone(),
            agent: table.agent.clone(),
            hooks_dir: None,
            max_requests: most(None),
        };
        return vec![one];
    }
    let tenant = |tenant: &TenantTable| TenantSettings {
        id: Some(tenant.id.clone()),
        agent: None,
        hooks_dir: tenant.hooks_dir.clone(),
        max_requests: most(tenant.max_requests),
    };
    file.tenants.iter().map(tenant).collect()
}

fn identity(file: &ConfigFile) -> Result<Identity, Failure> {
    let table = &file.gateway;
    let wrong = |text: String| Err(Failure::new(text));
    if file.tenants.is_empty() {
        return match &table.tenant_header {
            Some(_) => wrong("[gateway]: `tenant_header` needs [[tenants]]: which are there?".into()),
            None => Ok(Identity::One),
        };
    }
    let mut ids: Vec<&str> = file.tenants.iter().map(|tenant| tenant.id.as_str()).collect();
    ids.sort_unstable();
    if let Some(pair) = ids.windows(2).find(|pair| pair.first() == pair.last()) {
        return wrong(format!(
            "[[tenants]]: the id `{}` is there twice",
            pair.first().copied().unwrap_or_default()
        ));
    }
    if let Some(tenant) = &table.tenant_header {
        return Ok(Identity::Header {
            tenant: tenant.to_ascii_lowercase(),
            agent: table.agent_header.clone(),
        });
    }
    let mut keys: Vec<(KeyHash, usize, Option<String>)> = Vec::new();
    for (n, tenant) in file.tenants.iter().enumerate() {
        let own = tenant.key_sha256.iter().map(|key| (key, None));
        let agents = tenant.agents.iter();
        let agents =
            agents.flat_map(|agent| agent.key_sha256.iter().map(|key| (key, Some(agent.id.clone()))));
        for (text, agent) in own.chain(agents) {
            let Some(hash) = hash(text) else {
                return wrong(format!(
                    "[[tenants]] `{}`: `key_sha256` is `{}`: expected 64 hex digits (printf %s KEY | sha256sum)",
                    tenant.id,
                    text.chars().take(12).collect::<String>()
                ));
            };
            if keys.iter().any(|(known, ..)| *known == hash) {
                return wrong(format!(
                    "[[tenants]] `{}`: a key of `key_sha256` is somebody else's already",
                    tenant.id
                ));
            }
            keys.push((hash, n, agent));
        }
    }
    if keys.is_empty() {
        return wrong(
            "[[tenants]]: no tenant has a key (`key_sha256`), and no `tenant_header` is set under [gateway]"
                .into(),
        );
    }
    Ok(Identity::Keys(keys))
}

fn hash(text: &str) -> Option<KeyHash> {
    let mut hash = [0u8; 32];
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    for (byte, digits) in hash.iter_mut().zip(text.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    }
    Some(hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(file: &str, flags: &[&str], want: &str) {
        use clap::Parser;
        let line = ["hookgate", "gateway"].iter().chain(flags);
        let crate::args::Command::Gateway(flags) = crate::args::Args::try_parse_from(line).unwrap().command
        else {
            unreachable!()
        };
        let environment = |name: &str| (name == "SET").then(|| OsString::from("k"));
        let said = match Settings::resolve(&flags, toml::from_str(file).unwrap(), &environment) {
            Ok(settings) => {
                let upstreams: Vec<String> = settings.upstreams.iter().map(Upstream::address).collect();
                format!("{} tenants {upstreams:?}", settings.tenants.len())
            }
            Err(failure) => failure.to_string(),
        };
        assert!(said.contains(want), "`{said}` lacks `{want}`");
    }

    #[test]
    fn what_is_missing_or_doubled_is_named() {
        check("", &[], "which provider? say --upstream");
        check("", &["--upstream", "ftp://x"], "the upstream `ftp://x` is no address");
        check(
            "",
            &["--upstream", "http://x", "--key-env", "UNSET"],
            "variable UNSET, which key_env names, is not set",
        );
        check("", &["--upstream", "http://x", "--key-env", "SET"], "1 tenants [\"http://x/\"]");
        check("[gateway]\nupstream='http://f'", &["--upstream", "http://x"], "[\"http://x/\"]");
        let two = "[gateway]\nupstream='http://f'\n[[gateway.upstreams]]\nurl='http://g'\nmodels=['m*']";
        check(two, &[], "[\"http://g/\", \"http://f/\"]");
        let base = "[gateway]\nupstream='http://f'\n";
        let check_more = |more: &str, want: &str| check(&format!("{base}{more}"), &[], want);
        check_more("tls_cert='c'", "`tls_cert` and `tls_key` belong together");
        check_more("tenant_header='x-t'", "`tenant_header` needs [[tenants]]");
        check_more("[[tenants]]\nid='a'", "no tenant has a key");
        check_more(
            "[[tenants]]\nid='a'\nkey_sha256=['xyz']",
            "`key_sha256` is `xyz`: expected 64 hex digits",
        );
        check_more(
            "tenant_header='x-t'\n[[tenants]]\nid='a'\n[[tenants]]\nid='a'",
            "the id `a` is there twice",
        );
        let key = "a".repeat(64);
        check_more(
            &format!("[[tenants]]\nid='a'\nkey_sha256=['{key}']\n[[tenants]]\nid='b'\nkey_sha256=['{key}']"),
            "somebody else's already",
        );
        check_more(&format!("[[tenants]]\nid='a'\nkey_sha256=['{key}']"), "1 tenants");
    }
}
