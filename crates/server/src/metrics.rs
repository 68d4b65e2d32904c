//! What a gateway counts, as Prometheus reads it.

use crate::gateway::Happened;
use hookgate_core::word::Word;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, PoisonError};

/// What the text is.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The counters. Feed it with everything that [happens](Happened).
#[derive(Debug)]
pub struct Metrics {
    registry: Mutex<Registry>,
    decisions: Family<DecisionLabels, Counter>,
    durations: Family<HookLabels, Histogram, fn() -> Histogram>,
    fired: Family<NameLabels, Counter>,
    blocked: Family<NameLabels, Counter>,
    interrupts: Family<NameLabels, Counter>,
    resends: Family<NameLabels, Counter>,
    requests: Family<StatusLabels, Counter>,
    request_seconds: Histogram,
    held_seconds: Histogram,
    spans_dropped: Counter,
    degraded: Gauge<u64, AtomicU64>,
    deliveries: Family<StateLabels, Gauge<u64, AtomicU64>>,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct DecisionLabels {
    tenant: String,
    hook: String,
    point: String,
    decision: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct HookLabels {
    hook: String,
    point: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct NameLabels {
    tenant: String,
    hook: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct StatusLabels {
    tenant: String,
    status: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct StateLabels {
    state: &'static str,
}

/// From fifty microseconds to half a minute.
fn seconds() -> Histogram {
    Histogram::new([
        0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0,
        2.5, 5.0, 10.0, 30.0,
    ])
}

impl Default for Metrics {
    fn default() -> Self {
        Metrics::new()
    }
}

impl Metrics {
    /// All at zero.
    pub fn new() -> Metrics {
        let metrics = Metrics {
            registry: Mutex::new(Registry::with_prefix("hookgate")),
            decisions: Family::default(),
            durations: Family::new_with_constructor(seconds as fn() -> Histogram),
            fired: Family::default(),
            blocked: Family::default(),
            interrupts: Family::default(),
            resends: Family::default(),
            requests: Family::default(),
            request_seconds: seconds(),
            held_seconds: seconds(),
            spans_dropped: Counter::default(),
            degraded: Gauge::default(),
            deliveries: Family::default(),
        };
        metrics.register();
        metrics
    }

    fn register(&self) {
        let mut registry = self.registry.lock().unwrap_or_else(PoisonError::into_inner);
        let registry = &mut *registry;
        registry.register("decisions", "Decisions of lifecycle hooks", self.decisions.clone());
        registry.register("hook_seconds", "How long lifecycle hooks took", self.durations.clone());
        registry.register("json_hooks_fired", "JSON hooks that fired", self.fired.clone());
        registry.register("blocks", "Prompts, calls and answers that hooks stopped", self.blocked.clone());
        registry.register("interrupts", "Answers that hooks interrupted", self.interrupts.clone());
        registry.register("resends", "Requests sent again for hooks", self.resends.clone());
        registry.register("requests", "Requests", self.requests.clone());
        registry.register(
            "request_seconds",
            "How long requests took, to the end of the answer",
            self.request_seconds.clone(),
        );
        registry.register(
            "held_seconds",
            "How long text waited until it was clear",
            self.held_seconds.clone(),
        );
        registry.register("spans_dropped", "Spans that no collector took", self.spans_dropped.clone());
        registry.register(
            "hooks_degraded",
            "1 while an edit of the hooks could not be loaded",
            self.degraded.clone(),
        );
        registry.register(
            "deliveries",
            "Runs of watching hooks in the outbox: waiting, or dead after their last attempt",
            self.deliveries.clone(),
        );
    }

    /// Counts what happened.
    pub fn note(&self, what: &Happened<'_>) {
        let name = |tenant: &Option<&str>, hook: &str| NameLabels {
            tenant: tenant.unwrap_or_default().to_owned(),
            hook: hook.to_owned(),
        };
        match what {
            Happened::Decided { tenant, ran } => {
                let (hook, point) = (ran.hook.to_string(), ran.point.as_str().to_owned());
                let labels = HookLabels { hook: hook.clone(), point: point.clone() };
                self.durations.get_or_create(&labels).observe(ran.took.as_secs_f64());
                let (tenant, decision) =
                    (tenant.unwrap_or_default().to_owned(), ran.decision.as_str().to_owned());
                self.decisions.get_or_create(&DecisionLabels { tenant, hook, point, decision }).inc();
            }
            Happened::Fired { tenant, hook } => drop(self.fired.get_or_create(&name(tenant, hook)).inc()),
            Happened::Blocked { tenant, block, .. } => {
                self.blocked.get_or_create(&name(tenant, &block.by)).inc();
            }
            Happened::Interrupted { tenant, hook, .. } => {
                self.interrupts.get_or_create(&name(tenant, hook)).inc();
            }
            Happened::Resent { tenant, hook } => drop(self.resends.get_or_create(&name(tenant, hook)).inc()),
            Happened::Held { took } => self.held_seconds.observe(took.as_secs_f64()),
            Happened::Request(line) => {
                let labels = StatusLabels {
                    tenant: line.tenant.clone().unwrap_or_default(),
                    status: line.status.to_string(),
                };
                self.requests.get_or_create(&labels).inc();
                self.request_seconds.observe(line.took.as_secs_f64());
            }
            Happened::Log { .. } | Happened::Warned { .. } => {}
        }
    }

    /// Counts spans that no collector took.
    pub fn spans_dropped(&self, n: u64) {
        self.spans_dropped.inc_by(n);
    }

    /// Whether an edit of the hooks could not be loaded.
    pub fn set_degraded(&self, degraded: bool) {
        self.degraded.set(u64::from(degraded));
    }

    /// How many runs of watching hooks stand in the outbox.
    pub fn set_deliveries(&self, waiting: u64, dead: u64) {
        self.deliveries.get_or_create(&StateLabels { state: "waiting" }).set(waiting);
        self.deliveries.get_or_create(&StateLabels { state: "dead" }).set(dead);
    }

    /// All of it, in the OpenMetrics text format.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let registry = self.registry.lock().unwrap_or_else(PoisonError::into_inner);
        // writing into a string does not fail
        let _ = encode(&mut text, &registry);
        text
    }
}

/// Serves the text at `/metrics`, and nothing else, for ever.
pub async fn serve(
    listener: tokio::net::TcpListener,
    text: std::sync::Arc<dyn Fn() -> String + Send + Sync>,
) {
    use crate::gateway::body::full;
    use hyper::service::service_fn;
    use hyper_util::rt::{TokioIo, TokioTimer};
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // too many files are open, most often: that passes
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            continue;
        };
        let text = std::sync::Arc::clone(&text);
        let service = service_fn(move |request: http::Request<hyper::body::Incoming>| {
            let (status, body) = match request.uri().path() {
                "/metrics" => (200, text()),
                _ => (404, "metrics are at /metrics\n".to_owned()),
            };
            let response = http::Response::builder()
                .status(status)
                .header("content-type", CONTENT_TYPE)
                .body(full(body));
            std::future::ready(response)
        });
        let mut server = hyper::server::conn::http1::Builder::new();
        server.timer(TokioTimer::new()).header_read_timeout(std::time::Duration::from_secs(10));
        let served = server.serve_connection(TokioIo::new(stream), service);
        // who is silent is cut off, and nobody waits for that
        tokio::spawn(tokio::time::timeout(std::time::Duration::from_secs(10), served));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn what_happened_is_counted_with_its_names() {
        let metrics = Metrics::new();
        let hook = "guard".into();
        metrics.note(&Happened::Fired { tenant: Some("acme"), hook: &hook });
        metrics.note(&Happened::Fired { tenant: Some("acme"), hook: &hook });
        metrics.note(&Happened::Held { took: Duration::from_millis(3) });
        let text = metrics.text();
        for line in [
            "hookgate_json_hooks_fired_total{tenant=\"acme\",hook=\"guard\"} 2",
            "hookgate_held_seconds_bucket{le=\"0.005\"} 1",
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
    }
}
