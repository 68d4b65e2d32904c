//! Traces of requests for a collector: OTLP over HTTP, in protobuf, with the semantic conventions for generative AI.
//!
//! A request that asks a model is a span, each lifecycle hook that was asked a span below it, what hooks did is an event of
//! it. Spans wait in a bounded queue and go out in the background. What does not fit, or what the collector does not take,
//! is dropped and told; no request ever waits.

use crate::gateway::upstream::{connector, whole_text};
use crate::gateway::{Happened, Line, Moment, Story};
use bytes::Bytes;
use hookgate_core::verdict::{Decision, Ran};
use hookgate_core::word::Word;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use http::{Method, Request, Uri, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::common::v1::{AnyValue, ArrayValue, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::span::{Event, SpanKind};
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span, Status};
use prost::Message;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout, timeout_at};

/// Requests whose spans may wait.
const QUEUE: usize = 2048;
/// Requests whose spans go out together.
const TOGETHER: usize = 512;
/// How long the first of them waits for more.
const GATHER: Duration = Duration::from_secs(1);
/// How long a collector may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Where collectors take traces, below the address that is configured.
const PATH: &str = "/v1/traces";
/// Most bytes of a collector's answer that are read.
const MOST_ANSWER: usize = 64 << 10;
/// Spans have flags: this is the one that says "wanted".
const SAMPLED: u32 = 1;

/// Where traces go.
#[derive(Debug, Clone)]
pub struct Collector {
    uri: Uri,
    service: String,
    headers: HeaderMap,
}

/// A collector that cannot be asked.
#[derive(Debug, thiserror::Error)]
pub enum NoCollector {
    /// Its address is none.
    #[error("the collector of traces `{0}` is no address: expected http://HOST[:PORT][/PATH] or https://…")]
    Address(String),
    /// A header cannot be sent.
    #[error("the header `{0}` for the collector of traces cannot be sent")]
    Header(String),
    /// The system's certificates cannot be used.
    #[error("the system's certificates for TLS cannot be used")]
    Tls(#[from] rustls::Error),
}

impl Collector {
    /// The collector that takes traces at this very address, for a service of this name.
    ///
    /// # Errors
    /// [`NoCollector`] for anything but an http or https URL with a host.
    pub fn at(address: &str, service: &str) -> Result<Collector, NoCollector> {
        let wrong = || NoCollector::Address(address.to_owned());
        let uri: Uri = address.parse().map_err(|_| wrong())?;
        if !matches!(uri.scheme_str(), Some("http" | "https")) || uri.authority().is_none() {
            return Err(wrong());
        }
        Ok(Collector { uri, service: service.to_owned(), headers: HeaderMap::new() })
    }

    /// The collector with this base address: traces go to `/v1/traces` below it.
    ///
    /// # Errors
    /// As [`Collector::at`].
    pub fn below(address: &str, service: &str) -> Result<Collector, NoCollector> {
        let base = address.trim_end_matches('/');
        match base.ends_with(PATH) {
            true => Collector::at(base, service),
            false => Collector::at(&format!("{base}{PATH}"), service),
        }
    }

    /// The same, which wants this header with each request, such as a key.
    ///
    /// # Errors
    /// [`NoCollector::Header`] for what is no header.
    pub fn with_header(mut self, name: &str, value: &str) -> Result<Collector, NoCollector> {
        let wrong = || NoCollector::Header(name.to_owned());
        let known: HeaderName = name.parse().map_err(|_| wrong())?;
        let mut value = HeaderValue::from_str(value).map_err(|_| wrong())?;
        value.set_sensitive(true);
        self.headers.insert(known, value);
        Ok(self)
    }
}

/// Spans that no collector took.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lost {
    /// How many.
    pub spans: u64,
    /// Why; only with the first of several losses in a row.
    pub why: Option<String>,
}

/// Told of losses.
pub type OnLost = dyn Fn(Lost) + Send + Sync;

/// Sends traces. Feed it with everything that [happens](Happened), in a gateway that
/// [keeps stories](crate::gateway::Gateway::keep_stories).
pub struct Traces {
    queue: Mutex<Option<Sender<Vec<Span>>>>,
    on_lost: Arc<OnLost>,
    worker: Mutex<Option<JoinHandle<()>>>,
}

impl std::fmt::Debug for Traces {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Traces")
    }
}

impl Traces {
    /// Begins to send, on the runtime that this is called in.
    ///
    /// # Errors
    /// When the system's certificates cannot be used.
    pub fn start(collector: Collector, on_lost: Arc<OnLost>) -> Result<Traces, NoCollector> {
        let (sender, receiver) = mpsc::channel(QUEUE);
        let post = Post::new(collector)?;
        let worker = tokio::spawn(work(receiver, post, Arc::clone(&on_lost)));
        Ok(Traces { queue: Mutex::new(Some(sender)), on_lost, worker: Mutex::new(Some(worker)) })
    }

    /// Takes note of what happened.
    pub fn note(&self, what: &Happened<'_>) {
        let Happened::Request(line) = what else { return };
        let Some(story) = &line.story else { return };
        let spans = spans_of(line, story);
        let n = spans.len() as u64;
        let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let queued = queue.as_ref().is_some_and(|queue| queue.try_send(spans).is_ok());
        drop(queue);
        if !queued {
            (self.on_lost)(Lost { spans: n, why: None });
        }
    }

    /// Sends what waits, and ends. False: not all was out in time.
    pub async fn close(&self, within: Duration) -> bool {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner).take();
        let worker = self.worker.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(mut worker) = worker else { return true };
        let done = timeout(within, &mut worker).await.is_ok();
        worker.abort();
        done
    }
}

/// Sends batch after batch, until nobody can queue any more and nothing waits.
async fn work(mut queue: Receiver<Vec<Span>>, post: Post, on_lost: Arc<OnLost>) {
    let mut failing = false;
    while let Some(mut spans) = queue.recv().await {
        let until = Instant::now() + GATHER;
        for _ in 1..TOGETHER {
            match timeout_at(until, queue.recv()).await {
                Ok(Some(more)) => spans.extend(more),
                Ok(None) | Err(_) => break,
            }
        }
        let n = spans.len() as u64;
        let lost = match timeout(PATIENCE, post.send(spans)).await {
            Ok(Ok(0)) => None,
            Ok(Ok(refused)) => Some((refused.min(n), format!("it refused {refused} spans"))),
            Ok(Err(why)) => Some((n, why)),
            Err(_) => Some((n, format!("it took longer than {} s", PATIENCE.as_secs()))),
        };
        let was_failing = std::mem::replace(&mut failing, lost.is_some());
        if let Some((spans, why)) = lost {
            on_lost(Lost { spans, why: (!was_failing).then_some(why) });
        }
    }
}

/// Posts spans.
struct Post {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    collector: Collector,
}

impl Post {
    fn new(collector: Collector) -> Result<Post, NoCollector> {
        let client = Client::builder(TokioExecutor::new()).pool_timer(TokioTimer::new()).build(connector()?);
        Ok(Post { client, collector })
    }

    /// Gives how many spans the collector refused of those that it took.
    async fn send(&self, spans: Vec<Span>) -> Result<u64, String> {
        let body = ExportTraceServiceRequest { resource_spans: vec![self.together(spans)] }.encode_to_vec();
        let mut request = Request::new(Full::new(Bytes::from(body)));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.collector.uri.clone();
        request.headers_mut().clone_from(&self.collector.headers);
        let protobuf = HeaderValue::from_static("application/x-protobuf");
        request.headers_mut().insert(header::CONTENT_TYPE, protobuf);
        let response = self.client.request(request).await.map_err(|error| whole_text(&error))?;
        let status = response.status();
        // read to its end, so that the connection can be used again
        let answer = Limited::new(response.into_body(), MOST_ANSWER).collect().await;
        if !status.is_success() {
            return Err(format!("it answered with status {}", status.as_u16()));
        }
        let answer = answer.map(http_body_util::Collected::to_bytes).unwrap_or_default();
        let refused = ExportTraceServiceResponse::decode(answer).ok().and_then(|said| said.partial_success);
        Ok(refused.map_or(0, |partial| u64::try_from(partial.rejected_spans).unwrap_or(0)))
    }

    fn together(&self, spans: Vec<Span>) -> ResourceSpans {
        let scope = InstrumentationScope {
            name: "hookgate".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            ..InstrumentationScope::default()
        };
        let attributes = vec![text("service.name", self.collector.service.as_str())];
        ResourceSpans {
            resource: Some(Resource { attributes, ..Resource::default() }),
            scope_spans: vec![ScopeSpans { scope: Some(scope), spans, ..ScopeSpans::default() }],
            ..ResourceSpans::default()
        }
    }
}

/// The spans of one request: its own, and one for each hook that was asked.
fn spans_of(line: &Line, story: &Story) -> Vec<Span> {
    let told = story.told();
    let id = span_id();
    let operation = if story.wire.starts_with("gemini") { "generate_content" } else { "chat" };
    let mut attributes = vec![
        text("gen_ai.operation.name", operation),
        text("gen_ai.provider.name", provider(story.wire)),
        text("http.request.method", line.method.as_str()),
        int("http.response.status_code", u64::from(line.status)),
        text("hookgate.request.id", line.id.as_str()),
    ];
    let named = [
        ("gen_ai.request.model", Some(line.model.as_str())),
        ("gen_ai.conversation.id", Some(line.session.as_str())),
        ("hookgate.tenant", line.tenant.as_deref()),
    ];
    attributes.extend(named.into_iter().filter_map(|(key, name)| {
        let name = name.filter(|name| !name.is_empty())?;
        Some(text(key, name))
    }));
    let named = [("gen_ai.response.id", &told.response_id), ("gen_ai.response.model", &told.response_model)];
    attributes.extend(named.into_iter().filter_map(|(key, name)| Some(text(key, name.as_deref()?))));
    if !told.finish_reasons.is_empty() {
        attributes.push(list("gen_ai.response.finish_reasons", &told.finish_reasons));
    }
    let (input, output) = told.usage();
    attributes.extend(input.map(|n| int("gen_ai.usage.input_tokens", n)));
    attributes.extend(output.map(|n| int("gen_ai.usage.output_tokens", n)));
    let fault = fault_of(line);
    attributes.extend(fault.as_ref().map(|kind| text("error.type", kind.as_str())));
    let own = Span {
        span_id: id.to_vec(),
        parent_span_id: story.parent.map(|parent| parent.to_vec()).unwrap_or_default(),
        name: if line.model.is_empty() {
            operation.to_owned()
        } else {
            format!("{operation} {}", line.model)
        },
        kind: SpanKind::Client as i32,
        attributes,
        events: told.moments.iter().map(|(after, moment)| event(story, *after, moment)).collect(),
        dropped_events_count: told.n_lost,
        status: fault.map(|_| failed(line.error.clone().unwrap_or_default())),
        ..span(story, Duration::ZERO, line.took)
    };
    let hooks = told.hooks.iter().map(|(end, ran)| hook_span(story, &id, *end, ran));
    std::iter::once(own).chain(hooks).collect()
}

/// What both kinds of span have.
fn span(story: &Story, from: Duration, to: Duration) -> Span {
    Span {
        trace_id: story.trace_id.to_vec(),
        trace_state: story.trace_state.clone(),
        flags: SAMPLED,
        start_time_unix_nano: nanos(story.at, from),
        end_time_unix_nano: nanos(story.at, to),
        ..Span::default()
    }
}

fn hook_span(story: &Story, parent: &[u8], end: Duration, ran: &Ran) -> Span {
    let wrong = matches!(ran.decision, Decision::Error | Decision::Timeout);
    let mut attributes = vec![
        text("hookgate.hook", &ran.hook),
        text("hookgate.point", ran.point.as_str()),
        text("hookgate.decision", ran.decision.as_str()),
    ];
    attributes.extend(wrong.then(|| text("error.type", ran.decision.as_str())));
    Span {
        span_id: span_id().to_vec(),
        parent_span_id: parent.to_vec(),
        name: format!("hook {}", ran.hook),
        kind: SpanKind::Internal as i32,
        attributes,
        status: wrong.then(|| failed(String::new())),
        ..span(story, end.saturating_sub(ran.took), end)
    }
}

fn event(story: &Story, after: Duration, moment: &Moment) -> Event {
    let (name, attributes) = match moment {
        Moment::Blocked { what, hook, reason } => (
            "hookgate.blocked",
            vec![
                text("hookgate.what", what.as_str()),
                text("hookgate.hook", hook.as_str()),
                text("hookgate.reason", reason.as_str()),
            ],
        ),
        Moment::Interrupted { hook, resend } => (
            "hookgate.interrupted",
            vec![text("hookgate.hook", hook.as_str()), value("hookgate.resend", Any::BoolValue(*resend))],
        ),
        Moment::Resent { hook } => ("hookgate.resent", vec![text("hookgate.hook", hook.as_str())]),
    };
    Event { time_unix_nano: nanos(story.at, after), name: name.to_owned(), attributes, ..Event::default() }
}

/// What went wrong, in a word of few; none where nothing did.
fn fault_of(line: &Line) -> Option<String> {
    match line {
        Line { status: 400.., .. } => Some(line.status.to_string()),
        Line { error: Some(_), .. } => Some("_OTHER".to_owned()),
        Line { complete: false, .. } => Some("cancelled".to_owned()),
        _ => None,
    }
}

fn failed(message: String) -> Status {
    Status { message, code: StatusCode::Error as i32 }
}

/// Who stands behind a wire, in the conventions' words.
fn provider(wire: &str) -> &'static str {
    match wire {
        "anthropic-messages" => "anthropic",
        "gemini-generate" => "gcp.gen_ai",
        _ => "openai",
    }
}

fn span_id() -> [u8; 8] {
    fastrand::u64(1..).to_be_bytes()
}

fn nanos(at: SystemTime, after: Duration) -> u64 {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default().saturating_add(after);
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

fn value(key: &str, value: Any) -> KeyValue {
    KeyValue { key: key.to_owned(), value: Some(AnyValue { value: Some(value) }), ..KeyValue::default() }
}

fn text(key: &str, text: &str) -> KeyValue {
    value(key, Any::StringValue(text.to_owned()))
}

fn int(key: &str, n: u64) -> KeyValue {
    value(key, Any::IntValue(i64::try_from(n).unwrap_or(i64::MAX)))
}

fn list(key: &str, texts: &[String]) -> KeyValue {
    let item = |text: &String| AnyValue { value: Some(Any::StringValue(text.clone())) };
    value(key, Any::ArrayValue(ArrayValue { values: texts.iter().map(item).collect() }))
}

#[cfg(test)]
mod tests;
