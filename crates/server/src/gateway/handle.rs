//! One request, from its head to the head of its answer.

use super::asking::Asking;
use super::body::{self, Body, NotRead, full, passing};
use super::decode::{self, Decoder};
use super::door::Door;
use super::guard::Looks;
use super::relay::Relay;
use super::request_log::{Line, Tracked};
use super::taking::Taking;
use super::tenants::{Tenant, Unknown};
use super::turn::{self, Admitted};
use super::upstream::{NoAnswer, Outgoing, Upstream, key_of, strip_hop_by_hop};
use super::weave::Weave;
use super::whole::{self, Outcome};
use super::{Happened, Shared};
use bytes::Bytes;
use hookgate_core::hook::Listens;
use hookgate_core::point::Stage;
use hookgate_core::wish::Wish;
use hookgate_llm::proxy::{
    Asked, ErrorKind, Middle, RequestChange, Route, has_duplicate_keys, misspelt_key, read_json, route,
};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri, header};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Frame, Incoming};
use serde_json::Value;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

/// The header that names a conversation.
pub(super) const SESSION_HEADER: &str = "x-hookgate-session";

/// A failure in the client's wire.
struct Refusal {
    kind: ErrorKind,
    message: String,
    /// The same request would fail again.
    is_final: bool,
}

impl Refusal {
    fn new(kind: ErrorKind, message: impl Into<String>) -> Refusal {
        Refusal { kind, message: message.into(), is_final: kind == ErrorKind::Refused }
    }
}

impl From<NoAnswer> for Refusal {
    fn from(error: NoAnswer) -> Refusal {
        let kind = if matches!(error, NoAnswer::Late(_)) { ErrorKind::Late } else { ErrorKind::Upstream };
        Refusal::new(kind, error.to_string())
    }
}

/// Answers a request.
pub(super) async fn handle(
    shared: Arc<Shared>,
    request: Request<Incoming>,
    taking: Taking,
) -> Response<Body> {
    let (parts, incoming) = request.into_parts();
    let mut line = Line::new(&shared, parts.method.as_str(), parts.uri.path(), taking);
    let path = parts.uri.path().to_owned();
    let reached = shared.upstreams.iter().find_map(|upstream| upstream.takes(&path, None)).unwrap_or(&path);
    let route = route(parts.method.as_str(), reached);
    let middle = match route {
        Route::Judged(middle) | Route::Harmless(middle) | Route::Unknown(middle) => middle,
    };
    if let Route::Judged(middle) = route {
        line.story = shared.story(middle.name(), &parts.headers);
    }
    let answered = admit_client(&shared, parts, incoming, route, &mut line).await;
    let (response, permit) = match answered {
        Ok((response, permit)) => (response, Some(permit)),
        Err(refusal) => (refused(middle, &refusal, &mut line), None),
    };
    line.status = response.status().as_u16();
    response.map(|inner| Tracked::around(inner, line, permit))
}

type Permit = tokio::sync::OwnedSemaphorePermit;

/// Finds out whose request it is, and whether it may run now.
async fn admit_client(
    shared: &Arc<Shared>,
    parts: http::request::Parts,
    incoming: Incoming,
    route: Route,
    line: &mut Line,
) -> Result<(Response<Body>, Permit), Refusal> {
    let (tenant, agent) =
        shared.tenants.of(&parts.headers, parts.uri.query()).map_err(|unknown| match unknown {
            Unknown::Key => Refusal::new(ErrorKind::Unauthorized, "the gateway does not know this API key"),
            Unknown::Tenant => {
                Refusal::new(ErrorKind::Forbidden, "the request names no tenant of this gateway")
            }
        })?;
    line.tenant = tenant.id.clone();
    let permit = Arc::clone(&tenant.at_a_time)
        .try_acquire_owned()
        .map_err(|_| Refusal::new(ErrorKind::Busy, "too many requests at a time; try again later"))?;
    if parts.headers.contains_key(header::UPGRADE) && parts.method == Method::GET {
        let why =
            "this gateway passes no connection upgrades (WebSocket): what runs in them cannot be judged";
        return Err(Refusal::new(ErrorKind::BadRequest, why));
    }
    let response = match route {
        Route::Judged(middle) if must_read(shared, &tenant) => {
            judged(shared, &tenant, agent, middle, parts, incoming, line).await?
        }
        Route::Unknown(_) if guards(&tenant) => {
            let why = format!(
                "{} {} may produce text that no hook can judge; it is refused while blocking hooks are loaded",
                parts.method,
                parts.uri.path()
            );
            return Err(Refusal::new(ErrorKind::BadRequest, why));
        }
        Route::Judged(_) | Route::Harmless(_) | Route::Unknown(_) => {
            passed(shared, parts, incoming, line).await?
        }
    };
    Ok((response, permit))
}

/// Whether a request must be read: for hooks, or to know which provider takes its model.
fn must_read(shared: &Shared, tenant: &Tenant) -> bool {
    let by_model = || shared.upstreams.iter().any(|upstream| upstream.chooses_by_model());
    !tenant.dispatcher.current().hooks().is_empty() || by_model()
}

/// Whether some hook could stop or change something: then a way round is no way.
fn guards(tenant: &Tenant) -> bool {
    let set = tenant.dispatcher.current();
    set.hooks().iter().any(|hook| match &hook.listens {
        Listens::Point { point, .. } => point.stage() != Stage::Watch,
        Listens::Scan { .. } => true,
        Listens::Message { .. } | Listens::Chunk { .. } | Listens::Tool { .. } => {
            Wish::of(hook).iter().any(|(_, wish)| match wish {
                Wish::Interrupt | Wish::Retry | Wish::Redact | Wish::Block => true,
                Wish::Queue | Wish::Resend | Wish::Append | Wish::Send => false,
            })
        }
    })
}

/// Passes a request and its answer as they come.
async fn passed(
    shared: &Arc<Shared>,
    parts: http::request::Parts,
    incoming: Incoming,
    line: &mut Line,
) -> Result<Response<Body>, Refusal> {
    let (upstream, path) = shared.upstream(parts.uri.path(), None)?;
    let outgoing = outgoing(shared, parts.method, &parts.uri, path, parts.headers);
    let response = shared.courier.send(&upstream, outgoing, passing(incoming, shared.limits.idle)).await?;
    line.answered();
    let (mut parts, body) = response.into_parts();
    strip_hop_by_hop(&mut parts.headers);
    Ok(Response::from_parts(parts, passing(body, shared.limits.idle)))
}

impl Shared {
    /// The provider for a path and model, and the path without the mount.
    fn upstream<'p>(&self, path: &'p str, model: Option<&str>) -> Result<(Arc<Upstream>, &'p str), Refusal> {
        let found = self
            .upstreams
            .iter()
            .find_map(|upstream| upstream.takes(path, model).map(|path| (Arc::clone(upstream), path)));
        found.ok_or_else(|| match model {
            Some(model) => {
                Refusal::new(ErrorKind::NotFound, format!("no upstream takes the model `{model}` here"))
            }
            None => Refusal::new(ErrorKind::NotFound, "no upstream takes this path"),
        })
    }
}

/// What goes on of a request, beside its body.
fn outgoing(shared: &Shared, method: Method, uri: &Uri, path: &str, mut headers: HeaderMap) -> Outgoing {
    strip_hop_by_hop(&mut headers);
    headers.remove(header::HOST);
    headers.remove(SESSION_HEADER);
    for name in shared.tenants.own_headers() {
        headers.remove(name);
    }
    Outgoing { method, path: path.to_owned(), query: uri.query().map(str::to_owned), headers }
}

/// A request that hooks look at.
async fn judged(
    shared: &Arc<Shared>,
    tenant: &Arc<Tenant>,
    agent: Option<String>,
    middle: &'static dyn Middle,
    parts: http::request::Parts,
    incoming: Incoming,
    line: &mut Line,
) -> Result<Response<Body>, Refusal> {
    let (bytes, plain) = read_request(shared, &parts, incoming).await?;
    let (body, asked) = understood(middle, &parts, &plain)?;
    line.model.clone_from(&asked.model);
    let header = parts.headers.get(SESSION_HEADER).and_then(|value| value.to_str().ok());
    let key = key_of(&parts.headers, parts.uri.query());
    let (conversation, forgotten) = tenant.sessions.of(header, key, &asked);
    line.session.clone_from(&conversation.id);
    shared.sessions_end(tenant, forgotten);
    let door = Door {
        shared: Arc::clone(shared),
        tenant: Arc::clone(tenant),
        hooks: tenant.dispatcher.pinned(),
        agent,
        several: asked.n_answers > 1,
        conversation,
        request_id: line.id.clone(),
        trace_id: trace_of(&parts.headers).or_else(|| line.story.as_ref().map(|story| story.trace_id_text())),
        n_events: AtomicU64::new(0),
        untold: Mutex::default(),
        story: line.story.clone(),
        trouble: Arc::clone(&line.trouble),
    };
    let admitted = turn::admit(&door, &asked).await;
    door.tell_observers();
    let changes = match admitted {
        Admitted::Forward(changes) => changes,
        Admitted::Blocked(block) => {
            door.happened(&Happened::Blocked { tenant: tenant.id.as_deref(), what: "prompt", block: &block });
            return Err(Refusal::new(ErrorKind::Refused, block.reason));
        }
        Admitted::Interrupted(hook) => {
            return Err(Refusal::new(ErrorKind::Refused, format!("interrupted by hook {hook}")));
        }
    };
    let (upstream, path) = shared.upstream(parts.uri.path(), Some(&asked.model))?;
    let outgoing = outgoing(shared, parts.method, &parts.uri, path, parts.headers);
    let asking = Asking { shared: Arc::clone(shared), middle, upstream, outgoing, bytes, plain, body };
    let conversation = Arc::clone(&door.conversation);
    let answered = send(door, asking, &changes, line).await;
    conversation.state().answered(answered.as_ref().is_ok_and(|answer| answer.status().is_success()));
    answered
}

/// Sends an admitted request on, and shows the answer to the hooks where some look at it.
async fn send(
    mut door: Door,
    mut asking: Asking,
    changes: &[RequestChange],
    line: &mut Line,
) -> Result<Response<Body>, Refusal> {
    asking.change(changes).map_err(|odd| {
        Refusal::new(ErrorKind::Internal, format!("what hooks want cannot be put into the request: {odd}"))
    })?;
    let idle = door.shared.limits.idle;
    if Looks::of(&door).anything() {
        // what hooks must read need not be compressed first
        asking.outgoing.headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    }
    let response = asking.send().await?;
    line.answered();
    door.begin_answer();
    let looks = Looks::of(&door);
    let (mut parts, body) = response.into_parts();
    strip_hop_by_hop(&mut parts.headers);
    if !looks.anything() || !parts.status.is_success() {
        return Ok(Response::from_parts(parts, passing(body, idle)));
    }
    let text = |name| parts.headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    let kind = text(&header::CONTENT_TYPE).unwrap_or_default().to_ascii_lowercase();
    let decoder = Decoder::of(text(&header::CONTENT_ENCODING)).ok_or_else(|| {
        Refusal::new(ErrorKind::Upstream, "the upstream's answer has a compression that is not known here")
    })?;
    if kind.contains("event-stream") {
        if !decoder.is_plain() {
            parts.headers.remove(header::CONTENT_ENCODING);
        }
        parts.headers.remove(header::CONTENT_LENGTH);
        let exchange = asking.middle.exchange(false);
        let relay = Relay::new(Weave::new(door, exchange, looks), asking, body, decoder);
        return Ok(Response::from_parts(parts, streamed(relay)));
    }
    if !kind.contains("json") {
        let why = format!("the upstream answered with content-type `{kind}`, which hooks cannot look at");
        return Err(Refusal::new(ErrorKind::Upstream, why));
    }
    let exchange = asking.middle.exchange(true);
    let bytes = match whole::answer(Weave::new(door, exchange, looks), asking, &parts.headers, body).await {
        Outcome::Failed(why) => return Err(Refusal::new(ErrorKind::Upstream, why)),
        Outcome::GivenUp(why) => {
            return Err(Refusal { is_final: true, ..Refusal::new(ErrorKind::Upstream, why) });
        }
        Outcome::Refused(why) => return Err(Refusal::new(ErrorKind::Refused, why)),
        Outcome::Same(bytes) if decoder.is_plain() => bytes,
        Outcome::Same(bytes) | Outcome::Changed(bytes) => {
            parts.headers.remove(header::CONTENT_ENCODING);
            parts.headers.remove(header::CONTENT_LENGTH);
            bytes
        }
    };
    Ok(Response::from_parts(parts, full(bytes)))
}

/// The relay as a body: it is polled by the client's connection, so that no task and no channel stands between.
fn streamed(relay: Relay) -> Body {
    let pieces = futures_util::stream::unfold(relay, |mut relay| async {
        let next = relay.next().await?;
        Some((next.map(Frame::data), relay))
    });
    StreamBody::new(pieces).boxed_unsync()
}

/// The body as it came, and without its compression.
async fn read_request(
    shared: &Shared,
    parts: &http::request::Parts,
    incoming: Incoming,
) -> Result<(Bytes, Bytes), Refusal> {
    let bytes =
        body::read(incoming, shared.limits.max_body_bytes, shared.limits.idle).await.map_err(|error| {
            match error {
                NotRead::TooLarge(_) => Refusal::new(ErrorKind::TooLarge, error.to_string()),
                NotRead::Cut(_) | NotRead::Late(_) => Refusal::new(ErrorKind::BadRequest, error.to_string()),
            }
        })?;
    let encoding = parts.headers.get(header::CONTENT_ENCODING).and_then(|value| value.to_str().ok());
    match encoding {
        None => Ok((bytes.clone(), bytes)),
        some => match decode::whole(some, &bytes) {
            Ok(plain) => Ok((bytes, plain.into())),
            Err(error) => {
                Err(Refusal::new(ErrorKind::BadRequest, format!("the body cannot be read: {error}")))
            }
        },
    }
}

fn understood(
    middle: &dyn Middle,
    parts: &http::request::Parts,
    plain: &[u8],
) -> Result<(Value, Asked), Refusal> {
    let bad = |why: String| Refusal::new(ErrorKind::BadRequest, why);
    let body = read_json(plain).ok_or_else(|| bad("the body is no JSON".to_owned()))?;
    if let Some(key) = has_duplicate_keys(plain) {
        return Err(bad(format!(
            "the body has the key `{key}` twice in one object: readers may differ about which counts"
        )));
    }
    if let Some((key, known)) = misspelt_key(&body) {
        return Err(bad(format!("the body has the key `{key}`, which some servers read as `{known}`")));
    }
    let path = match parts.uri.query() {
        Some(query) => format!("{}?{query}", parts.uri.path()),
        None => parts.uri.path().to_owned(),
    };
    let asked = middle.asked(&path, &body).map_err(|odd| bad(format!("the body cannot be judged: {odd}")))?;
    Ok((body, asked))
}

/// The trace that the request is part of (W3C trace context).
fn trace_of(headers: &HeaderMap) -> Option<String> {
    let parent = headers.get("traceparent")?.to_str().ok()?;
    let id = parent.split('-').nth(1)?;
    (id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit())).then(|| id.to_ascii_lowercase())
}

fn refused(middle: &dyn Middle, refusal: &Refusal, line: &mut Line) -> Response<Body> {
    line.error = Some(refusal.message.clone());
    let body = middle.error(refusal.kind, &refusal.message).to_string();
    let mut response = Response::new(full(body));
    *response.status_mut() = StatusCode::from_u16(refusal.kind.status()).unwrap_or(StatusCode::BAD_GATEWAY);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if refusal.is_final {
        // not worth repeating: SDKs that read this header do not
        response.headers_mut().insert("x-should-retry", HeaderValue::from_static("false"));
    }
    response
}
