//! One session, played: its steps become the events that a door would have told, in the same order.
//!
//! | step | events |
//! |---|---|
//! | begin | `session_end` of the session before, `session_start` |
//! | prompt | `stop` of a turn that had no answer, `user_prompt_submit`, `message` |
//! | piece | `chunk` |
//! | end of the answer | `chunk` of each call and of the finish, `message` of thoughts and answer; then each call's `pre_tool_use` (and `subagent_start`), or without calls `pre_response` and `stop` |
//! | result | `post_tool_use` or `tool_error` |
//! | message | `message` |
//!
//! A sub-agent has no prompts and no turns of its own; its end is `subagent_stop`.

use super::judge::{Judge, Rules};
use super::step::{Outcome, Step};
use super::tally::{Scene, Tally};
use hookgate_agents::call::Call;
use hookgate_core::event::{Chunk, Origin, Role};
use hookgate_core::facts::{Head, LifeEvent};
use hookgate_core::point::Point;
use serde_json::json;
use std::collections::HashMap;
use std::fmt::Write;

/// Calls without a result that are remembered; their results may come late, or never.
const MOST_OPEN: usize = 10_000;

/// Plays one session, of the user's agent or of a sub-agent.
pub(crate) struct Player<'r> {
    judges: Vec<Judge<'r>>,
    head: Head,
    /// Makes the ids of events unlike those of any other player.
    tag: String,
    n_events: u64,
    answer: Answer,
    open: HashMap<String, Call>,
    /// The turn has begun and not ended.
    in_turn: bool,
    /// The last answer of a sub-agent.
    last: String,
}

/// The answer that is arriving.
#[derive(Default)]
struct Answer {
    thoughts: String,
    text: String,
    calls: Vec<(u64, String, Call)>,
    /// Where it begins.
    line: u64,
    arriving: bool,
}

/// Where a step stands.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) line: u64,
    pub(crate) time: Option<&'a str>,
}

/// Who plays: for whom hooks are bound to one.
#[derive(Debug, Clone, Default)]
pub(crate) struct Who {
    pub(crate) session: String,
    pub(crate) agent: Option<String>,
    pub(crate) tenant_id: Option<String>,
    pub(crate) agent_id: Option<String>,
}

impl<'r> Player<'r> {
    /// A session before its first event. `tag` is no other player's.
    pub(crate) fn new(rules: &'r [Rules], who: &Who, tag: String) -> Player<'r> {
        let (session_id, root_session_id) = match &who.agent {
            Some(agent) => (format!("{}/{agent}", who.session), Some(who.session.clone())),
            None => (who.session.clone(), None),
        };
        let head = Head {
            session_id,
            depth: u32::from(root_session_id.is_some()),
            root_session_id,
            tenant_id: who.tenant_id.clone(),
            agent_id: who.agent_id.clone(),
            ..Head::default()
        };
        Player {
            judges: rules.iter().map(Judge::new).collect(),
            head,
            tag,
            n_events: 0,
            answer: Answer::default(),
            open: HashMap::new(),
            in_turn: false,
            last: String::new(),
        }
    }

    fn is_sub(&self) -> bool {
        self.head.depth > 0
    }

    /// The session begins.
    pub(crate) async fn begin(&mut self, at: Place<'_>, tally: &mut Tally<'r>) {
        if !self.is_sub() {
            self.life(at, Point::SessionStart, LifeEvent::SessionStart, tally).await;
        }
    }

    /// The session is over.
    pub(crate) async fn end(&mut self, at: Place<'_>, tally: &mut Tally<'r>) {
        self.finish_answer(at, tally).await;
        self.end_turn(at, tally).await;
        if self.is_sub() {
            let agent = self.head.session_id.rsplit('/').next().unwrap_or_default();
            let subagent = json!({"id": agent, "result": self.last});
            self.life(at, Point::SubagentStop, LifeEvent::SubagentStop { subagent }, tally).await;
        } else {
            self.life(at, Point::SessionEnd, LifeEvent::SessionEnd, tally).await;
        }
    }

    /// The next step. An error says in a few words what is missing for it.
    pub(crate) async fn step(
        &mut self,
        at: Place<'_>,
        step: Step,
        tally: &mut Tally<'r>,
    ) -> Result<(), String> {
        match step {
            // whose it is was seen before it came here
            Step::Begin { .. } => {}
            Step::Prompt(text) => self.prompt(at, &text, tally).await,
            Step::Piece { is_thought, text } => self.piece(at, is_thought, &text, tally),
            Step::Call { id, call } => {
                self.answer.arrive(at.line);
                self.answer.calls.push((at.line, id, *call));
            }
            Step::AnswerEnd => self.finish_answer(at, tally).await,
            Step::Void => {
                self.answer = Answer::default();
                self.judges.iter_mut().for_each(Judge::void);
            }
            Step::Result { id, outcome } => {
                self.finish_answer(at, tally).await;
                return self.result(at, &id, &outcome, tally).await;
            }
            Step::Message { role, origin, text } => {
                self.finish_answer(at, tally).await;
                self.message(at, role, origin, &text, tally).await;
            }
        }
        Ok(())
    }

    /// Another agent of the session speaks: the calls that started it were made.
    pub(crate) async fn others_speak(&mut self, at: Place<'_>, tally: &mut Tally<'r>) {
        if !self.answer.calls.is_empty() {
            self.finish_answer(at, tally).await;
        }
    }

    async fn prompt(&mut self, at: Place<'_>, text: &str, tally: &mut Tally<'r>) {
        self.finish_answer(at, tally).await;
        self.end_turn(at, tally).await;
        self.in_turn = true;
        let Player { judges, head, .. } = self.next_event();
        for judge in judges {
            judge.prompt(head, text).await;
        }
        self.settle(Scene::text(at, Point::UserPromptSubmit, text), tally);
        self.message(at, Role::User, Origin::User, text, tally).await;
    }

    async fn message(
        &mut self,
        at: Place<'_>,
        role: Role,
        origin: Origin,
        text: &str,
        tally: &mut Tally<'r>,
    ) {
        let Player { judges, head, .. } = self.next_event();
        for judge in judges {
            judge.message(head, role, origin, text).await;
        }
        self.settle(Scene::text(at, Point::Message, text), tally);
    }

    fn piece(&mut self, at: Place<'_>, is_thought: bool, text: &str, tally: &mut Tally<'r>) {
        self.answer.arrive(at.line);
        let whole = if is_thought { &mut self.answer.thoughts } else { &mut self.answer.text };
        whole.push_str(text);
        self.chunk(at, if is_thought { Chunk::Reasoning(text) } else { Chunk::Content(text) }, tally);
    }

    fn chunk(&mut self, at: Place<'_>, chunk: Chunk<'_>, tally: &mut Tally<'r>) {
        let text = chunk.text().unwrap_or_default();
        let Player { judges, .. } = self.next_event();
        judges.iter_mut().for_each(|judge| judge.chunk(chunk));
        self.settle(Scene::text(at, Point::Chunk, text), tally);
    }

    async fn finish_answer(&mut self, at: Place<'_>, tally: &mut Tally<'r>) {
        let Answer { thoughts, text, calls, line, arriving } = std::mem::take(&mut self.answer);
        if !arriving {
            return;
        }
        self.in_turn = true;
        let here = Place { line, ..at };
        if self.judges.iter().any(Judge::wants_call_pieces) {
            for (index, (line, id, call)) in (0..).zip(&calls) {
                let text = call.tool_input.to_string();
                let chunk = Chunk::ToolCallDelta { index, id: Some(id), text: &text };
                self.chunk(Place { line: *line, ..at }, chunk, tally);
            }
        }
        let reason = if calls.is_empty() { "stop" } else { "tool_calls" };
        self.chunk(here, Chunk::Finish { reason }, tally);
        for (role, text) in [(Role::Reasoning, &thoughts), (Role::Assistant, &text)] {
            if !text.is_empty() {
                self.message(here, role, Origin::Model, text, tally).await;
            }
        }
        let is_last = calls.is_empty();
        for (line, id, call) in calls {
            self.call(Place { line, ..at }, id, call, tally).await;
        }
        if is_last && self.is_sub() {
            self.last = text;
        } else if is_last {
            let Player { judges, head, .. } = self.next_event();
            for judge in judges {
                judge.answer(head, &text).await;
            }
            self.settle(Scene::text(here, Point::PreResponse, &text), tally);
            self.end_turn(here, tally).await;
        }
    }

    async fn call(&mut self, at: Place<'_>, id: String, call: Call, tally: &mut Tally<'r>) {
        let Player { judges, head, .. } = self.next_event();
        head.tool_names.clone_from(&call.tool_names);
        for judge in judges {
            judge.before(head, &call).await;
        }
        head.tool_names.clear();
        self.settle(Scene::call(at, Point::PreToolUse, &call, None), tally);
        if let Some(subagent) = call.subagent() {
            let Player { judges, head, .. } = self.next_event();
            for judge in judges {
                judge.subagent(head, &subagent).await;
            }
            self.settle(Scene::call(at, Point::SubagentStart, &call, None), tally);
        }
        if self.open.len() < MOST_OPEN {
            self.open.insert(id, call);
        }
    }

    async fn result(
        &mut self,
        at: Place<'_>,
        id: &str,
        outcome: &Outcome,
        tally: &mut Tally<'r>,
    ) -> Result<(), String> {
        let Some(call) = self.open.remove(id) else {
            let id: String = id.chars().take(60).collect();
            return Err(format!("a result without its call (`{id}`)"));
        };
        let Player { judges, head, .. } = self.next_event();
        head.tool_names.clone_from(&call.tool_names);
        for judge in judges {
            judge.after(head, &call, outcome).await;
        }
        head.tool_names.clear();
        let point = match outcome {
            Outcome::Output(_) => Point::PostToolUse,
            Outcome::Error(_) => Point::ToolError,
        };
        self.settle(Scene::call(at, point, &call, Some(outcome)), tally);
        Ok(())
    }

    async fn end_turn(&mut self, at: Place<'_>, tally: &mut Tally<'r>) {
        if std::mem::replace(&mut self.in_turn, false) && !self.is_sub() {
            self.life(at, Point::Stop, LifeEvent::Stop, tally).await;
        }
    }

    async fn life(&mut self, at: Place<'_>, point: Point, event: LifeEvent, tally: &mut Tally<'r>) {
        let Player { judges, head, .. } = self.next_event();
        for judge in judges {
            judge.life(head, point, || event.clone()).await;
        }
        self.settle(Scene::text(at, point, ""), tally);
    }

    /// Gives the next event its id.
    fn next_event(&mut self) -> &mut Player<'r> {
        self.n_events = self.n_events.saturating_add(1);
        self.head.event_id.clear();
        // writing to a String cannot fail
        let _ = write!(self.head.event_id, "{}-{}-{}", self.head.session_id, self.tag, self.n_events);
        self
    }

    /// Hands what hooks wanted to the tally.
    fn settle(&mut self, scene: Scene<'_>, tally: &mut Tally<'r>) {
        tally.event(scene, self.judges.iter_mut().map(|judge| &mut judge.deeds));
    }
}

impl Answer {
    fn arrive(&mut self, line: u64) {
        if !std::mem::replace(&mut self.arriving, true) {
            self.line = line;
        }
    }
}
