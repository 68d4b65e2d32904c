//! The model that answers, and the one that prompt hooks ask, as configured.

use crate::config::{Backend, Judging};
use crate::failure::{Failure, with_causes};
use hookgate_handlers::prompt::{Judge, Judges, Spending, TokensPerTenant};
use hookgate_llm::{Client, Model, Scripted};
use std::fs;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// A larger file is no script.
const LARGEST_SCRIPT: u64 = 64 * 1024 * 1024;

/// The budget of a tenant is counted by the hour.
const BUDGET_SPAN: Duration = Duration::from_secs(3600);

/// Makes the model; nothing is asked yet.
pub(crate) fn open(backend: &Backend) -> Result<Arc<dyn Model>, Failure> {
    Ok(match backend {
        Backend::Demo => Arc::new(Scripted::demo()),
        Backend::Script(path) => Arc::new(script(path)?),
        Backend::Remote(remote) => {
            let mut client = Client::builder(remote.provider);
            if let Some(url) = &remote.base_url {
                client = client.base_url(url);
            }
            if let Some(key) = &remote.key {
                client = client.api_key(key);
            }
            Arc::new(client.build().map_err(|error| Failure::new(with_causes(&error)))?)
        }
    })
}

/// The model's name as its provider spells it.
pub(crate) fn name(backend: &Backend) -> &str {
    match backend {
        Backend::Demo | Backend::Script(_) => "scripted",
        Backend::Remote(remote) => &remote.model,
    }
}

/// Who judges for prompt hooks. The model is made when the first hook needs it; a hook that names another model gets
/// it from the same provider.
pub(crate) fn judges(backend: Backend) -> Arc<Judges> {
    let model: OnceLock<Result<Arc<dyn Model>, String>> = OnceLock::new();
    Arc::new(move |named| {
        if backend == Backend::Demo {
            return Err("no model judges here: name one under [judge] or [model] in hookgate.toml".into());
        }
        let model = model.get_or_init(|| open(&backend).map_err(|failure| failure.to_string())).clone()?;
        Ok(Judge { model, name: named.unwrap_or(name(&backend)).to_owned() })
    })
}

/// What prompt hooks may spend.
pub(crate) fn spending(judging: &Judging) -> Spending {
    match judging.tokens_per_hour {
        Some(tokens) => {
            Spending { budget: Arc::new(TokensPerTenant::new(tokens, BUDGET_SPAN)), ..Spending::default() }
        }
        None => Spending::default(),
    }
}

fn script(path: &Path) -> Result<Scripted, Failure> {
    let cannot = |why: String| Failure::new(format!("the script {} cannot be read: {why}", path.display()));
    let about = fs::metadata(path).map_err(|error| cannot(error.to_string()))?;
    if !about.is_file() || about.len() > LARGEST_SCRIPT {
        return Err(cannot("expected a file of at most 64 MiB".into()));
    }
    let text = fs::read_to_string(path).map_err(|error| cannot(error.to_string()))?;
    Scripted::parse(&text).map_err(|error| Failure::new(format!("{}: {error}", path.display())))
}
