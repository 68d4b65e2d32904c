//! Verdicts that were given already: bounded, and not for ever.

use hookgate_core::handler::Answer;
use hookgate_core::record::InputHash;
use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Verdicts kept for one hook.
const MOST: usize = 512;
/// How long one is kept. A judge errs now and then; an error must not stay.
const KEPT_FOR: Duration = Duration::from_secs(600);

/// The verdicts of one hook, by the hash of the input.
#[derive(Debug, Default)]
pub(super) struct Cache {
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    answers: HashMap<InputHash, (Answer, Instant)>,
    order: VecDeque<InputHash>,
}

impl Cache {
    pub(super) fn get(&self, hash: &InputHash) -> Option<Answer> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let (answer, since) = kept.answers.get(hash)?;
        (since.elapsed() < KEPT_FOR).then(|| answer.clone())
    }

    pub(super) fn put(&self, hash: InputHash, answer: Answer) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.answers.insert(hash, (answer, Instant::now())).is_none() {
            kept.order.push_back(hash);
            if kept.order.len() > MOST
                && let Some(oldest) = kept.order.pop_front()
            {
                kept.answers.remove(&oldest);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn it_is_bounded_in_number_and_time() {
        let cache = Cache::default();
        let hash = |n: usize| {
            let mut bytes = [0; 32];
            bytes[..8].copy_from_slice(&n.to_le_bytes());
            InputHash(bytes)
        };
        for n in 0..=MOST {
            cache.put(hash(n), Answer::with_decision("allow"));
        }
        assert!(cache.get(&hash(0)).is_none() && cache.get(&hash(1)).is_some());
        tokio::time::advance(KEPT_FOR).await;
        assert!(cache.get(&hash(1)).is_none());
        cache.put(hash(1), Answer::default());
        assert!(cache.get(&hash(1)).is_some());
        assert_eq!(cache.kept.lock().unwrap().order.len(), MOST);
    }
}
