//! What a lifecycle hook wants and one coding agent cannot do.

use hookgate_agents::agent::Agent;
use hookgate_agents::event::{Can, Effect};
use hookgate_agents::tools::Tool;
use hookgate_core::handler::Mode;
use hookgate_core::hook::{Hook, Work};
use hookgate_core::point::{Point, Stage};
use std::time::Duration;

/// What is to be said of one hook: the field, and the message.
pub(super) fn beyond(agent: &'static dyn Agent, hook: &Hook) -> Vec<(&'static str, String)> {
    let means = means(agent, hook).map(|message| ("event", message));
    let sent = sent(agent, hook).map(|message| ("mode", message));
    let time = patience(agent, hook).map(|message| ("timeout_ms", message));
    means.into_iter().chain(sent).chain(time).collect()
}

fn means(agent: &'static dyn Agent, hook: &Hook) -> Option<String> {
    let (point, title) = (hook.listens.point(), agent.title());
    let can = |effect| agent.can(point, effect);
    // sub-agents are asked about when the tool that starts them is called, messages are told of with other events
    let starts_by_tool = agent.tools().iter().any(|(_, tool)| *tool == Tool::Subagent);
    let elsewhere = point == Point::Message || (point == Point::SubagentStart && starts_by_tool);
    let changes = !hook.mutable_fields.is_empty();
    if elsewhere {
        None
    } else if can(Effect::Block) == Can::Never {
        Some(format!("{title} never tells of {point}: the hook never runs there"))
    } else if point.stage() == Stage::Gate && can(Effect::Block) == Can::No {
        Some(format!("{title} cannot be stopped at {point}: a block of the hook has no effect there"))
    } else if changes && can(Effect::ChangeInput) == Can::No {
        Some(format!("{title} cannot take over a changed input at {point}: the hook blocks there instead"))
    } else if changes && can(Effect::ChangeInput) == Can::Sometimes {
        Some(format!(
            "{title} takes over a changed input at some events of {point} only: elsewhere the hook blocks"
        ))
    } else if point == Point::PreResponse && can(Effect::ChangeText) == Can::No {
        Some(format!("{title} cannot change an answer: what the hook adds is lost there"))
    } else {
        None
    }
}

/// A message of its own where an answer is one text.
fn sent(agent: &'static dyn Agent, hook: &Hook) -> Option<String> {
    let Work::Handler { spec, .. } = &hook.work else { return None };
    let point = hook.listens.point();
    let changes = matches!(agent.can(point, Effect::ChangeText), Can::Yes | Can::Sometimes);
    (point == Point::PreResponse && spec.mode == Mode::Send && changes).then(|| {
        format!("{} has one text for an answer: what the hook sends stands at its end", agent.title())
    })
}

/// A time limit beyond the agent's: the answer goes out before it.
fn patience(agent: &'static dyn Agent, hook: &Hook) -> Option<String> {
    let Work::Handler { spec, .. } = &hook.work else { return None };
    let (point, title) = (hook.listens.point(), agent.title());
    if point.stage() == Stage::Watch {
        return None;
    }
    let whole = agent.setup().map_or_else(|| agent.patience(), |setup| setup.limit);
    let here = agent.events().iter().filter(|event| event.point == Some(point) && event.installed);
    let limit: Duration = here.map(|event| event.patience.map_or(whole, |own| own.min(whole))).min()?;
    (spec.timeout > limit).then(|| {
        format!(
            "{title} waits {} seconds at {point}, so the hook never gets its {} there",
            limit.as_secs_f64(),
            spec.timeout.as_secs_f64()
        )
    })
}
