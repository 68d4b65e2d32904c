//! What becomes, in the hook process of a coding agent, of what hooks wish: [`engine`](super::engine) makes an outcome of
//! it, and the agent's file says what of an outcome the agent takes over. A test below plays every payload of the corpus.

use hookgate_agents::agent::Agent;
use hookgate_agents::event::{Effect, Event};
use hookgate_core::event::Role;
use hookgate_core::point::Point;
use hookgate_core::wish::{Can, Spot, Wish};

/// What stops something: any of them is heard.
const STOPS: &[Effect] = &[Effect::Block, Effect::Feedback, Effect::KeepGoing];

/// What becomes of a wish at a spot, where a hook wishes these others as well. Where only some of the agent's events of
/// the spot can do it, it can.
pub(crate) fn can(agent: &'static dyn Agent, spot: Spot, wish: Wish, beside: &[Wish]) -> Can {
    let here: Vec<&Event> =
        agent.events().iter().filter(|event| event.installed && tells(agent, event, spot)).collect();
    if here.is_empty() {
        return Can::Never;
    }
    let some = |effects: &[Effect]| here.iter().any(|event| effects.iter().any(|effect| event.can(*effect)));
    let can = |is_so: bool, why: &'static str| if is_so { Can::Yes } else { Can::No(why) };
    let is_any = |of: &[Wish]| wish_is(wish, of) || beside.iter().any(|other| wish_is(*other, of));
    let asks_again = is_any(&[Wish::Retry, Wish::Resend]);
    let stops = is_any(&[Wish::Block, Wish::Interrupt, Wish::Retry]);
    match (spot, wish) {
        (Spot::Message(Role::Assistant), Wish::Queue) if asks_again => {
            can(some(STOPS), "the agent cannot be made to go on")
        }
        // what is stopped carries a reason and nothing else
        (Spot::Message(Role::User) | Spot::At(Point::PreToolUse), Wish::Queue)
            if stops && some(&[Effect::Block]) =>
        {
            Can::No("the hook stops what it sees, and the agent then takes over the reason only")
        }
        (_, Wish::Queue) => can(some(&[Effect::AddContext]), "the agent takes over no message there"),
        (Spot::Message(Role::Assistant), Wish::Retry | Wish::Resend) => {
            can(some(STOPS), "the agent cannot be made to go on")
        }
        (Spot::Message(Role::Assistant | Role::Reasoning), Wish::Interrupt) => {
            Can::No("the answer has been shown when the agent tells of it")
        }
        (Spot::Message(Role::Tool), Wish::Interrupt | Wish::Retry) => {
            Can::No("the tool has run; a hook on `tool` is heard there")
        }
        (Spot::At(Point::PostToolUse | Point::ToolError), Wish::Interrupt) => {
            can(some(STOPS), "the tool has run, and the agent does not hear what hooks say of it")
        }
        (Spot::At(Point::PostToolUse | Point::ToolError), Wish::Retry) => {
            Can::No("the agent asks its model itself: at most it tells it what the hook says")
        }
        (_, Wish::Retry) if some(&[Effect::Block]) => {
            Can::No("it is stopped, and the agent does not ask its model again")
        }
        (_, Wish::Resend) => Can::No("there is no answer yet that could be asked for again"),
        (_, Wish::Interrupt | Wish::Retry | Wish::Block) => {
            can(some(&[Effect::Block]), "the agent cannot be stopped there")
        }
        (_, Wish::Append) => can(some(&[Effect::ChangeText]), "the agent takes over no changed answer"),
        (_, Wish::Send) => Can::No("an answer is one message, so at most what is sent stands at its end"),
        // no agent tells of chunks
        (_, Wish::Redact) => Can::Never,
    }
}

fn wish_is(wish: Wish, of: &[Wish]) -> bool {
    of.contains(&wish)
}

/// Whether an event of an agent tells hooks of a spot: messages are told of with what brings them.
fn tells(agent: &'static dyn Agent, event: &Event, spot: Spot) -> bool {
    let at = |points: &[Point]| points.iter().any(|point| agent.tells(event, *point));
    match spot {
        Spot::Message(Role::User) => at(&[Point::UserPromptSubmit]),
        Spot::Message(Role::Tool) => at(&[Point::PostToolUse, Point::ToolError]),
        Spot::Message(Role::Assistant) => at(&[Point::Stop, Point::SubagentStop, Point::Message]),
        Spot::Message(Role::Reasoning) | Spot::Chunk(_) => false,
        Spot::At(point) => at(&[point]),
    }
}

#[cfg(test)]
mod tests {
    use super::super::engine::Engine;
    use super::super::journal::Journal;
    use super::super::memory::Memory;
    use super::*;
    use hookgate_agents::outcome::{Outcome, Said};
    use hookgate_agents::read::{Read, Told};
    use hookgate_agents::table;
    use hookgate_core::action::ActionKinds;
    use hookgate_core::define;
    use hookgate_core::dispatch::Dispatcher;
    use hookgate_core::facts::{GateEvent, Head, LifeEvent};
    use hookgate_core::gate::Surroundings;
    use hookgate_core::hook::Source;
    use hookgate_core::record::Memory as InMemory;
    use hookgate_core::set::HookSet;
    use hookgate_handlers::clock::TokioTimer;
    use serde_json::{Value, json};
    use std::path::PathBuf;
    use std::sync::Arc;
    use std::time::{Duration, Instant};

    const WISHES: [Wish; 4] = [Wish::Queue, Wish::Interrupt, Wish::Retry, Wish::Resend];

    fn action(wish: Wish) -> Value {
        match wish {
            Wish::Queue => json!({"type": "queue-message", "message": "QUEUED"}),
            Wish::Interrupt => json!({"type": "interrupt"}),
            Wish::Retry => json!({"type": "interrupt", "resend": true}),
            Wish::Resend => json!({"type": "queue-resend"}),
            Wish::Block => json!({"type": "block"}),
            Wish::Redact | Wish::Append | Wish::Send => panic!("{wish} is not wished of an agent here"),
        }
    }

    fn hook(spot: Spot, wishes: &[Wish]) -> String {
        let actions: Vec<Value> = wishes.iter().map(|wish| action(*wish)).collect();
        let moment = |moment: &str| json!({"target": "tool", "event": moment});
        let mut hook = match spot {
            Spot::Message(role) => json!({"target": "chat", "roles": [role.to_string()]}),
            Spot::At(Point::PreToolUse) => moment("before"),
            Spot::At(Point::PostToolUse) => moment("after"),
            Spot::At(Point::ToolError) => moment("error"),
            Spot::Chunk(_) | Spot::At(_) => panic!("no JSON hook is played at {spot:?}"),
        };
        hook["actions"] = actions.into();
        hook.to_string()
    }

    /// What the agent reads when a hook at the spot wishes this.
    async fn said(agent: &'static dyn Agent, read: &Read, spot: Spot, wishes: &[Wish]) -> Said {
        let text = hook(spot, wishes);
        let defined = define::read("h.json", &text, Source::User, &ActionKinds::standard());
        assert!(defined.problems.is_empty(), "{:?}", defined.problems);
        let dir = tempfile::tempdir().unwrap();
        let engine = Engine {
            dispatcher: Dispatcher::new(HookSet::new(defined.hooks).unwrap()),
            around: Surroundings {
                timer: Arc::new(TokioTimer::new()),
                recorder: Arc::new(InMemory::new(1)),
                budget: Duration::from_secs(60),
            },
            head: Head::default(),
            memory: &Memory::of(Some(dir.path()), agent.name(), "s"),
            journal: &Journal::new(None, agent.name()),
            until: Instant::now() + Duration::from_secs(60),
        };
        agent.answer(read, &engine.run(read).await.unwrap())
    }

    /// The spots of JSON hooks that a payload tells of.
    fn spots(read: &Read) -> Vec<Spot> {
        let spot = |told: &Told| match told {
            Told::Gate(GateEvent::PreToolUse { .. }) => Some(Spot::At(Point::PreToolUse)),
            Told::Life(LifeEvent::Message { role, .. }) => Some(Spot::Message(*role)),
            Told::Life(LifeEvent::PostToolUse { .. }) => Some(Spot::At(Point::PostToolUse)),
            Told::Life(LifeEvent::ToolError { .. }) => Some(Spot::At(Point::ToolError)),
            _ => None,
        };
        read.told.iter().filter_map(spot).collect()
    }

    /// Payloads of the agents' installed events.
    fn payloads() -> Vec<(&'static dyn Agent, Read)> {
        let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../corpus/agents/payloads");
        let json = |path: &str| -> Value {
            serde_json::from_str(&std::fs::read_to_string(root.join(path)).unwrap()).unwrap()
        };
        let index = json("index.json");
        let entries = index["entries"].as_array().unwrap().iter();
        let known = entries.filter_map(|entry| Some((table::find(entry["agent"].as_str()?)?, entry)));
        let read = known.filter_map(|(agent, entry)| {
            let read = agent.read(entry["event"].as_str(), json(entry["input"].as_str()?)).ok()?;
            read.event.installed.then_some((agent, read))
        });
        read.collect()
    }

    /// What of a hook's wishes at a spot the agent got to read: the first of them, beside the others.
    async fn is_done(agent: &'static dyn Agent, read: &Read, spot: Spot, wishes: &[Wish]) -> bool {
        let got = said(agent, read, spot, wishes).await;
        let silence = agent.answer(read, &Outcome::default());
        match wishes[0] {
            Wish::Queue => format!("{got:?}").contains("QUEUED"),
            // asking again is more than stopping
            Wish::Retry => got != silence && got != said(agent, read, spot, &[Wish::Interrupt]).await,
            _ => got != silence,
        }
    }

    #[tokio::test]
    async fn what_is_said_is_what_is_done() {
        let payloads = payloads();
        let (mut n_done, mut n_not) = (0, 0);
        for agent in table::ALL.iter().copied() {
            let of_agent: Vec<&Read> = payloads
                .iter()
                .filter(|(other, _)| other.name() == agent.name())
                .map(|(_, read)| read)
                .collect();
            let mut known: Vec<Spot> = of_agent.iter().flat_map(|read| spots(read)).collect();
            known.dedup();
            for spot in known {
                let here: Vec<&Read> =
                    of_agent.iter().copied().filter(|read| spots(read).contains(&spot)).collect();
                let all_played = agent
                    .events()
                    .iter()
                    .filter(|event| event.installed && tells(agent, event, spot))
                    .all(|event| here.iter().any(|read| read.event.name == event.name));
                let mut lists: Vec<Vec<Wish>> = WISHES.iter().map(|wish| vec![*wish]).collect();
                lists.push(vec![Wish::Queue, Wish::Interrupt]);
                lists.push(vec![Wish::Queue, Wish::Resend]);
                if spot == Spot::At(Point::PreToolUse) {
                    lists.push(vec![Wish::Block]);
                    lists.push(vec![Wish::Queue, Wish::Block]);
                }
                for wishes in lists {
                    let mut done = false;
                    for read in &here {
                        done |= is_done(agent, read, spot, &wishes).await;
                    }
                    let can = can(agent, spot, wishes[0], &wishes[1..]);
                    assert_ne!(can, Can::Never, "{} tells of {spot:?}", agent.name());
                    if all_played || done {
                        let name = agent.name();
                        assert_eq!(can == Can::Yes, done, "{name} at {spot:?}, {wishes:?}: {can:?}");
                    }
                    if done { n_done += 1 } else { n_not += 1 }
                }
            }
        }
        // both were seen often
        assert!(n_done > 50 && n_not > 50, "{n_done} {n_not}");
    }

    #[test]
    fn chunks_and_thoughts_are_no_agent_s_matter() {
        for agent in table::ALL.iter().copied() {
            for spot in
                [Spot::Message(Role::Reasoning), Spot::Chunk(hookgate_core::event::ChunkKind::Content)]
            {
                assert_eq!(can(agent, spot, Wish::Interrupt, &[]), Can::Never, "{}", agent.name());
            }
        }
        // the corpus has no payload that tells of them
        let thinks = |read: &Read| spots(read).contains(&Spot::Message(Role::Reasoning));
        assert!(payloads().iter().all(|(_, read)| !thinks(read)));
    }
}
