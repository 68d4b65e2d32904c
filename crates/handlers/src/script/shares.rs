//! Who may run next: every tenant has a share of the workers and a queue of its own, and the queues take turns.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// Who asks. Empty: nobody in particular.
pub(super) type Tenant = Arc<str>;

/// The running and waiting calls. It knows no worker and no clock.
#[derive(Debug)]
pub(super) struct Shares<W> {
    share: usize,
    longest_queue: usize,
    tenants: HashMap<Tenant, Calls<W>>,
    /// Tenants with waiting calls, in the order of their turns.
    turns: VecDeque<Tenant>,
}

#[derive(Debug)]
struct Calls<W> {
    running: usize,
    waiting: VecDeque<W>,
}

impl<W> Default for Calls<W> {
    fn default() -> Self {
        Calls { running: 0, waiting: VecDeque::new() }
    }
}

impl<W> Shares<W> {
    /// Each tenant may run `share` calls at once, and `longest_queue` may wait.
    pub(super) fn new(share: usize, longest_queue: usize) -> Shares<W> {
        Shares { share: share.max(1), longest_queue, tenants: HashMap::new(), turns: VecDeque::new() }
    }

    /// May this tenant run one more call now? If so it counts from here on.
    pub(super) fn enter(&mut self, tenant: &Tenant) -> bool {
        let share = self.share;
        if let Some(calls) = self.tenants.get_mut(tenant) {
            let free = calls.running < share && calls.waiting.is_empty();
            calls.running = calls.running.saturating_add(usize::from(free));
            return free;
        }
        self.tenants.insert(tenant.clone(), Calls { running: 1, waiting: VecDeque::new() });
        true
    }

    /// Lets a call wait. It comes back if the queue is full.
    pub(super) fn wait(&mut self, tenant: &Tenant, waiter: W) -> Result<(), W> {
        let calls = self.tenants.entry(tenant.clone()).or_default();
        if calls.waiting.len() >= self.longest_queue {
            return Err(waiter);
        }
        if calls.waiting.is_empty() {
            self.turns.push_back(tenant.clone());
        }
        calls.waiting.push_back(waiter);
        Ok(())
    }

    /// A call is over.
    pub(super) fn leave(&mut self, tenant: &Tenant) {
        if let Some(calls) = self.tenants.get_mut(tenant) {
            calls.running = calls.running.saturating_sub(1);
            if calls.running == 0 && calls.waiting.is_empty() {
                self.tenants.remove(tenant);
            }
        }
    }

    /// The next waiting call that may run; it counts as running from here on. Whoever gave up is passed over.
    pub(super) fn next(&mut self, still_waits: impl Fn(&W) -> bool) -> Option<(Tenant, W)> {
        for _ in 0..self.turns.len() {
            let tenant = self.turns.pop_front()?;
            let Some(calls) = self.tenants.get_mut(&tenant) else { continue };
            while calls.waiting.front().is_some_and(|waiter| !still_waits(waiter)) {
                calls.waiting.pop_front();
            }
            let waiter = if calls.running < self.share { calls.waiting.pop_front() } else { None };
            if !calls.waiting.is_empty() {
                self.turns.push_back(tenant.clone());
            }
            if let Some(waiter) = waiter {
                calls.running = calls.running.saturating_add(1);
                return Some((tenant, waiter));
            }
            if calls.running == 0 && calls.waiting.is_empty() {
                self.tenants.remove(&tenant);
            }
        }
        None
    }

    /// Does anybody wait who would be let in if there were a worker?
    pub(super) fn hungry(&self, still_waits: impl Fn(&W) -> bool) -> bool {
        self.turns
            .iter()
            .filter_map(|tenant| self.tenants.get(tenant))
            .any(|calls| calls.running < self.share && calls.waiting.iter().any(&still_waits))
    }

    /// Everybody who waits, to be sent away.
    pub(super) fn send_away(&mut self) -> Vec<W> {
        self.turns.clear();
        let away = self.tenants.values_mut().flat_map(|calls| calls.waiting.drain(..)).collect();
        self.tenants.retain(|_, calls| calls.running > 0);
        away
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tenant(name: &str) -> Tenant {
        name.into()
    }

    #[test]
    fn queues_take_turns_and_shares_hold() {
        let mut shares = Shares::new(2, 3);
        let (evil, good) = (tenant("evil"), tenant("good"));
        assert!(shares.enter(&evil) && shares.enter(&evil) && !shares.enter(&evil));
        for n in 0..3 {
            shares.wait(&evil, ("evil", n)).unwrap();
        }
        assert_eq!(shares.wait(&evil, ("evil", 9)), Err(("evil", 9)));
        assert!(!shares.hungry(|_| true));
        shares.wait(&good, ("good", 0)).unwrap();
        shares.wait(&good, ("good", 1)).unwrap();
        assert!(shares.hungry(|_| true));
        let mut order = Vec::new();
        while let Some((_, waiter)) = shares.next(|_| true) {
            order.push(waiter);
        }
        assert_eq!(order, [("good", 0), ("good", 1)]);
        shares.leave(&evil);
        assert!(!shares.enter(&evil), "those who wait come first");
        assert_eq!(shares.next(|waiter| waiter.1 != 0).map(|next| next.1), Some(("evil", 1)));
        assert_eq!(shares.send_away(), [("evil", 2)]);
        for _ in 0..2 {
            shares.leave(&evil);
            shares.leave(&good);
        }
        assert!(shares.tenants.is_empty() && shares.turns.is_empty());
    }

    #[test]
    fn turns_alternate() {
        let mut shares = Shares::new(9, 9);
        for n in 0..2 {
            shares.wait(&tenant("a"), ("a", n)).unwrap();
        }
        for n in 0..2 {
            shares.wait(&tenant("b"), ("b", n)).unwrap();
        }
        let order: Vec<_> = std::iter::from_fn(|| shares.next(|_| true)).map(|(_, waiter)| waiter).collect();
        assert_eq!(order, [("a", 0), ("b", 0), ("a", 1), ("b", 1)]);
    }
}
