//! The chat service with model, tools and hooks as configured.

use super::Display;
use crate::config::{Settings, ToolName};
use crate::deliveries::Deliveries;
use crate::failure::Failure;
use crate::trail::Trail;
use crate::workshop::workshop;
use crate::{model, problems};
use hookgate_chat::tools::{
    Exec, ExecSettings, FetchPage, FetchPageSettings, ReadFile, ReadFileSettings, Workdir, WriteFile,
    WriteFileSettings,
};
use hookgate_chat::{BuildError, ChatBuilder, ChatService, Subagents};
use hookgate_handlers::command::Commands;
use hookgate_llm::Request;
use std::sync::Arc;

/// A service, and the trail that its hooks leave, if any is kept.
pub(crate) struct Assembled {
    pub(crate) service: ChatService,
    pub(crate) trail: Option<Trail>,
}

/// Builds it. What is wrong with hooks and does not prevent that is shown.
pub(crate) fn build(
    settings: &Settings,
    commands: Commands,
    display: &Display,
) -> Result<Assembled, Failure> {
    let spending = model::spending(&settings.judging);
    let builder = ChatService::builder(model::open(&settings.backend)?).turns(spending.turns.clone());
    let judges = model::judges(settings.judging.backend.clone());
    let mut builder = with_tools(builder, settings)?
        .request(Request {
            model: model::name(&settings.backend).to_owned(),
            max_tokens: settings.max_tokens,
            temperature: settings.temperature,
            ..Request::default()
        })
        .on_invalid(settings.on_invalid)
        .workshop(workshop(commands, judges, spending))
        .observer(display.observer());
    if let Some(dir) = &settings.hooks_dir {
        builder = builder.hooks_dir(dir);
    }
    if let Some(dir) = &settings.trusted_hooks_dir {
        builder = builder.trusted_hooks_dir(dir);
    }
    for (name, enabled) in &settings.builtins {
        builder = builder.builtin(name, enabled.clone(), &settings.config_name());
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
    let trail = settings.data.clone().map(|place| {
        let display = display.clone();
        Trail::new(place, move |line| display.tell(line))
    });
    if let Some(trail) = &trail {
        let outbox = Arc::new(Deliveries::new(trail.clone()));
        builder = builder.recorder(Arc::new(trail.clone())).outbox(outbox);
    }
    if let Some(budget) = settings.chain_budget {
        builder = builder.chain_budget(budget);
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
    Ok(Assembled { service, trail })
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
