//! The chat service with model, tools and hooks as configured.

use super::Display;
use crate::config::{Backend, Settings, ToolName};
use crate::failure::{Failure, with_causes};
use crate::problems;
use crate::workshop::workshop;
use hookgate_chat::tools::{
    Exec, ExecSettings, FetchPage, FetchPageSettings, ReadFile, ReadFileSettings, Workdir, WriteFile,
    WriteFileSettings,
};
use hookgate_chat::{BuildError, ChatBuilder, ChatService, Subagents};
use hookgate_llm::{Client, Request, Scripted};
use std::fs;
use std::path::Path;

/// A larger file is no script.
const LARGEST_SCRIPT: u64 = 64 * 1024 * 1024;

/// Builds it. What is wrong with hooks and does not prevent that is shown.
pub(crate) fn build(settings: &Settings, display: &Display) -> Result<ChatService, Failure> {
    let builder = with_model(&settings.backend)?;
    let mut builder = with_tools(builder, settings)?
        .request(Request {
            model: model_name(&settings.backend).to_owned(),
            max_tokens: settings.max_tokens,
            temperature: settings.temperature,
            ..Request::default()
        })
        .on_invalid(settings.on_invalid)
        .workshop(workshop())
        .observer(display.observer());
    if let Some(dir) = &settings.hooks_dir {
        builder = builder.hooks_dir(dir);
    }
    if let Some(system) = &settings.system {
        builder = builder.system_prompt(system);
    }
    if let Some(rounds) = settings.max_tool_call_rounds {
        builder = builder.max_tool_call_rounds(rounds);
    }
    if let Some(resends) = settings.max_resends {
        builder = builder.max_resends(resends);
    }
    if let Some(tenant) = &settings.tenant {
        builder = builder.tenant(tenant);
    }
    if let Some(agent) = &settings.agent {
        builder = builder.agent(agent);
    }
    let service = builder.build().map_err(|error| match error {
        BuildError::Hooks(problems) => Failure::Hooks(problems),
        other => Failure::new(other.to_string()),
    })?;
    let status = service.status();
    display.tell(&problems::text(&status.problems));
    display.tell(&problems::warnings(&status.warnings));
    Ok(service)
}

fn model_name(backend: &Backend) -> &str {
    match backend {
        Backend::Demo | Backend::Script(_) => "scripted",
        Backend::Remote(remote) => &remote.model,
    }
}

fn with_model(backend: &Backend) -> Result<ChatBuilder, Failure> {
    Ok(match backend {
        Backend::Demo => ChatService::builder(Scripted::demo()),
        Backend::Script(path) => ChatService::builder(script(path)?),
        Backend::Remote(remote) => {
            let mut client = Client::builder(remote.provider);
            if let Some(url) = &remote.base_url {
                client = client.base_url(url);
            }
            if let Some(key) = &remote.key {
                client = client.api_key(key);
            }
            ChatService::builder(client.build().map_err(|error| Failure::new(with_causes(&error)))?)
        }
    })
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

fn with_tools(mut builder: ChatBuilder, settings: &Settings) -> Result<ChatBuilder, Failure> {
    if settings.tools.is_empty() {
        return Ok(builder);
    }
    let workdir = Workdir::open(&settings.workdir).map_err(|error| {
        Failure::new(format!(
            "the working directory {} cannot be opened: {error}",
            settings.workdir.display()
        ))
    })?;
    for tool in &settings.tools {
        builder = match tool {
            ToolName::Exec => builder.tool(Exec::new(exec(settings, &workdir))),
            ToolName::ReadFile => builder.tool(ReadFile::new(ReadFileSettings::new(workdir.clone()))),
            ToolName::WriteFile => builder.tool(WriteFile::new(WriteFileSettings::new(workdir.clone()))),
            ToolName::FetchPage => builder.tool(fetch_page(settings)?),
            ToolName::Task => builder.subagents(Subagents::default()),
        };
    }
    Ok(builder)
}

fn exec(settings: &Settings, workdir: &Workdir) -> ExecSettings {
    let mut exec = ExecSettings::new(workdir.path());
    if let Some(timeout) = settings.exec_timeout {
        exec.timeout = timeout;
    }
    exec.hidden_env.clone_from(&settings.hidden_env);
    exec
}

fn fetch_page(settings: &Settings) -> Result<FetchPage, Failure> {
    let fetch = FetchPageSettings { allow_private: settings.allow_private, ..FetchPageSettings::default() };
    FetchPage::new(fetch).map_err(|error| Failure::new(error.to_string()))
}
