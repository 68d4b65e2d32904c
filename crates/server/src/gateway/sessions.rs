//! Conversations, as far as a gateway can tell them apart, and what is known of each.
//!
//! A request belongs to the conversation that its `x-hookgate-session` header names; else to the one that the wire names
//! (`conversation`, `previous_response_id`, …); else to the one that began with the same messages (all before the first
//! answer, hashed) under the same key. Each tenant has a table of its own: no two share anything.

use hookgate_core::effect::Effect;
use hookgate_core::event::Role;
use hookgate_core::session::Session;
use hookgate_core::word::Word;
use hookgate_llm::proxy::{Asked, Call, Continues, RequestChange, Said, What};
use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Most hashes that are remembered of one conversation; the oldest half is forgotten then.
const MOST_SHOWN: usize = 4096;
/// Most messages of hooks that wait for the next request.
const MOST_QUEUED: usize = 64;
/// Most calls that are remembered.
const MOST_CALLS: usize = 128;

/// The conversations of a tenant. Bounded: the one that was silent for longest is forgotten.
#[derive(Debug)]
pub(super) struct Sessions {
    hasher: RandomState,
    most: usize,
    clock: AtomicU64,
    table: Mutex<HashMap<String, Arc<Conversation>>>,
    answers: Mutex<Answers>,
}

/// The answers by which later requests may name their conversation.
#[derive(Debug, Default)]
struct Answers {
    known: HashMap<String, Named>,
    before: HashMap<String, Named>,
}

/// What an answer's name stands for.
#[derive(Debug, Clone)]
struct Named {
    conversation: String,
    /// The provider knows it by another name: hooks had it asked again.
    provider: Option<String>,
}

/// One conversation.
#[derive(Debug)]
pub(super) struct Conversation {
    pub(super) id: String,
    used: AtomicU64,
    state: Mutex<State>,
}

/// What is known of a conversation.
#[derive(Debug, Default)]
pub(super) struct State {
    /// What hooks count and read.
    pub(super) hooks: Session,
    /// Its first request was seen.
    pub(super) started: bool,
    /// Messages by hooks that join the next request.
    pub(super) queued: Vec<Queued>,
    /// Those that went out with a request that has no answer yet.
    underway: Vec<Queued>,
    /// The user's texts that hooks let through, as they went on: by the hash of the text as it came.
    pub(super) admitted: HashMap<u64, Option<String>>,
    /// The newest calls that went out: a later request may bring only their results.
    calls: VecDeque<Call>,
    /// Room for effects, kept warm.
    pub(super) effects: Vec<Effect>,
    shown: HashSet<u64>,
    shown_before: HashSet<u64>,
}

/// A message by a hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Queued {
    pub(super) role: String,
    pub(super) text: String,
}

impl Sessions {
    pub(super) fn new(most: usize) -> Sessions {
        Sessions {
            hasher: RandomState::new(),
            most,
            clock: AtomicU64::new(0),
            table: Mutex::default(),
            answers: Mutex::default(),
        }
    }

    /// The conversation of a request, and those that had to be forgotten for it.
    pub(super) fn of(
        &self,
        header: Option<&str>,
        key: Option<&str>,
        asked: &Asked,
    ) -> (Arc<Conversation>, Vec<Arc<Conversation>>) {
        let id = match header.filter(|id| !id.is_empty()).or(asked.session.as_deref()) {
            Some(named) => self.answer(named).map_or_else(|| named.to_owned(), |answer| answer.conversation),
            None => format!("gw-{:016x}", self.begun_with(key, &asked.messages)),
        };
        let now = self.clock.fetch_add(1, Ordering::Relaxed);
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = table.get(&id) {
            known.used.store(now, Ordering::Relaxed);
            return (Arc::clone(known), Vec::new());
        }
        let mut state = State::default();
        state.hooks.keep_firings();
        let fresh = Arc::new(Conversation { id: id.clone(), used: now.into(), state: state.into() });
        table.insert(id, Arc::clone(&fresh));
        (fresh, forget(&mut table, self.most))
    }

    /// Notes how a later request may name the conversation.
    pub(super) fn answered(&self, conversation: &Conversation, Continues { client, provider }: Continues) {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        if answers.known.len() >= self.most.saturating_mul(4) {
            answers.before = std::mem::take(&mut answers.known);
        }
        let provider = Some(provider).filter(|provider| *provider != client);
        answers.known.insert(client, Named { conversation: conversation.id.clone(), provider });
    }

    /// The name under which the provider knows the answer that a request goes on from, where it is another.
    pub(super) fn provider_name(&self, asked: &Asked) -> Option<String> {
        self.answer(asked.session.as_deref()?)?.provider
    }

    fn answer(&self, name: &str) -> Option<Named> {
        let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        answers.known.get(name).or_else(|| answers.before.get(name)).cloned()
    }

    /// How many conversations are known.
    pub(super) fn len(&self) -> usize {
        self.table.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Takes all conversations, as at shutdown.
    pub(super) fn take(&self) -> Vec<Arc<Conversation>> {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        table.drain().map(|(_, conversation)| conversation).collect()
    }

    fn begun_with(&self, key: Option<&str>, messages: &[Said]) -> u64 {
        let mut hash = self.hasher.build_hasher();
        key.hash(&mut hash);
        for said in messages.iter().take_while(|said| !matches!(said.what, What::Assistant { .. })) {
            feed(&mut hash, &said.what);
        }
        hash.finish()
    }

    /// For each message the hash of it and all before: the same message in another place is another.
    pub(super) fn chain(&self, messages: &[Said]) -> Vec<u64> {
        let mut before = 0u64;
        let link = |said: &Said| {
            let mut hash = self.hasher.build_hasher();
            before.hash(&mut hash);
            feed(&mut hash, &said.what);
            before = hash.finish();
            before
        };
        messages.iter().map(link).collect()
    }

    /// The hash of a text.
    pub(super) fn hash(&self, text: &str) -> u64 {
        self.hasher.hash_one(text)
    }
}

/// Forgets a tenth of the table, the silent first, when it is over its bound.
fn forget(table: &mut HashMap<String, Arc<Conversation>>, most: usize) -> Vec<Arc<Conversation>> {
    if table.len() <= most {
        return Vec::new();
    }
    let mut by_use: Vec<(u64, String)> = table
        .iter()
        .map(|(id, conversation)| (conversation.used.load(Ordering::Relaxed), id.clone()))
        .collect();
    by_use.sort_unstable();
    let excess = table.len().saturating_sub(most).max(most / 10);
    by_use.iter().take(excess).filter_map(|(_, id)| table.remove(id)).collect()
}

fn feed(hash: &mut impl Hasher, what: &What) {
    match what {
        What::System(text) => (0u8, text).hash(hash),
        What::User(text) => (1u8, text).hash(hash),
        What::Assistant { text, calls } => {
            (2u8, text).hash(hash);
            for call in calls {
                (&call.name, &call.arguments).hash(hash);
            }
        }
        What::Result { call_id, output, is_error, .. } => (3u8, call_id, output, is_error).hash(hash),
    }
}

impl Conversation {
    /// What is known. Held for moments, never while something waits.
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Notes that hooks were told of a message. False: they know it already.
    pub(super) fn show(&mut self, hash: u64) -> bool {
        if self.shown_before.contains(&hash) || !self.shown.insert(hash) {
            return false;
        }
        if self.shown.len() >= MOST_SHOWN {
            self.shown_before = std::mem::take(&mut self.shown);
        }
        true
    }

    /// Forgets that hooks were told of a message.
    pub(super) fn unshow(&mut self, hash: u64) {
        self.shown.remove(&hash);
        self.shown_before.remove(&hash);
    }

    /// Keeps a message for the next request. Beyond the bound the oldest goes.
    pub(super) fn queue(&mut self, role: Role, text: String) {
        if self.queued.len() >= MOST_QUEUED {
            self.queued.remove(0);
        }
        self.queued.push(Queued { role: role.as_str().to_owned(), text });
    }

    /// The messages that join the request that is about to go out.
    pub(super) fn take_queued(&mut self) -> Vec<RequestChange> {
        let append =
            |queued: &Queued| RequestChange::Append { role: queued.role.clone(), text: queued.text.clone() };
        let changes = self.queued.iter().map(append).collect();
        self.underway.append(&mut self.queued);
        changes
    }

    /// The request got its answer, or it failed and its messages wait for the next.
    pub(super) fn answered(&mut self, well: bool) {
        let mut underway = std::mem::take(&mut self.underway);
        if !well {
            underway.append(&mut self.queued);
            self.queued = underway;
        }
    }

    /// Notes a call that goes out.
    pub(super) fn call(&mut self, call: Call) {
        if self.calls.len() >= MOST_CALLS {
            self.calls.pop_front();
        }
        self.calls.push_back(call);
    }

    /// The call with this id, if it went out not long ago.
    pub(super) fn call_of(&self, id: &str) -> Option<Call> {
        self.calls.iter().rev().find(|call| !id.is_empty() && call.id == id).cloned()
    }

    /// Notes what became of a user's text.
    pub(super) fn admit(&mut self, hash: u64, changed: Option<String>) {
        if self.admitted.len() >= MOST_SHOWN {
            self.admitted.clear();
        }
        self.admitted.insert(hash, changed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hookgate_llm::proxy::Place;

    fn asked(texts: &[&str]) -> Asked {
        let said = |(n, text): (usize, &&str)| Said {
            place: Place { message: n, part: None },
            what: if n % 2 == 0 {
                What::User((*text).to_owned())
            } else {
                What::Assistant { text: (*text).to_owned(), calls: Vec::new() }
            },
        };
        Asked { messages: texts.iter().enumerate().map(said).collect(), ..Asked::default() }
    }

    #[test]
    fn what_begins_alike_under_one_key_is_one_conversation() {
        let sessions = Sessions::new(100);
        let id = |header, key, texts: &[&str]| sessions.of(header, key, &asked(texts)).0.id.clone();
        let first = id(None, Some("k"), &["hi"]);
        assert_eq!(id(None, Some("k"), &["hi", "hello", "more"]), first);
        assert_ne!(id(None, Some("other"), &["hi"]), first);
        assert_ne!(id(None, Some("k"), &["ho"]), first);
        assert_eq!(id(Some("mine"), Some("k"), &["hi"]), "mine");
        assert_eq!(id(Some(""), Some("k"), &["hi"]), first);
    }

    #[test]
    fn a_request_may_name_the_answer_that_it_goes_on_from() {
        let sessions = Sessions::new(100);
        let begun = sessions.of(None, None, &asked(&["hi"])).0;
        let continues = Continues { client: "response:1".to_owned(), provider: "response:2".to_owned() };
        sessions.answered(&begun, continues);
        let mut later = asked(&["more"]);
        later.session = Some("response:1".to_owned());
        assert_eq!(sessions.of(None, None, &later).0.id, begun.id);
        assert_eq!(sessions.provider_name(&later).as_deref(), Some("response:2"));
        later.session = Some("response:9".to_owned());
        assert_eq!(sessions.of(None, None, &later).0.id, "response:9");
        assert_eq!(sessions.provider_name(&later), None);
    }

    #[test]
    fn the_table_is_bounded_and_the_silent_go_first() {
        let sessions = Sessions::new(20);
        let mut gone = Vec::new();
        for n in 0..50 {
            sessions.of(Some("always"), None, &Asked::default());
            gone.extend(sessions.of(Some(&format!("s{n}")), None, &Asked::default()).1);
        }
        assert!(sessions.len() <= 21);
        assert!(gone.len() >= 30 && gone.iter().all(|conversation| conversation.id != "always"));
    }

    #[test]
    fn a_message_is_new_once_in_its_place() {
        let sessions = Sessions::new(1);
        let chain = sessions.chain(&asked(&["a", "b", "a"]).messages);
        assert_ne!(chain[0], chain[2]);
        assert_eq!(sessions.chain(&asked(&["a", "b"]).messages), chain[..2]);
        let mut state = State::default();
        assert!(state.show(chain[0]) && state.show(chain[2]) && !state.show(chain[0]));
        (0..3 * MOST_SHOWN as u64).for_each(|n| {
            state.show(n);
        });
        assert!(state.shown.len() + state.shown_before.len() <= 2 * MOST_SHOWN);
    }
}
