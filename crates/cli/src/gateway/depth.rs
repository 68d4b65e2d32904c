//! How much stands in the outbox, for the page of metrics: asked every few seconds, so that no scrape waits for a database.

use crate::deliveries::Deliveries;
use crate::trail::Trail;
use hookgate_handlers::outbox::Outbox as _;
use hookgate_server::metrics::Metrics;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::MissedTickBehavior;

const EACH: Duration = Duration::from_secs(2);

/// Tells it for ever. While the database cannot be read, the last numbers stand.
pub(super) async fn follow(trail: Trail, metrics: Arc<Metrics>) {
    let deliveries = Arc::new(Deliveries::new(trail));
    let mut ticks = tokio::time::interval(EACH);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        if !deliveries.may_hold_jobs() {
            // a trail that nobody needed yet is not made for this
            metrics.set_deliveries(0, 0);
            continue;
        }
        let asked = Arc::clone(&deliveries);
        if let Ok(Ok(counts)) = tokio::task::spawn_blocking(move || asked.counts()).await {
            metrics.set_deliveries(counts.waiting, counts.dead);
        }
    }
}
