//! A real gateway, a provider and a collector, all on loopback.

use super::*;
use crate::gateway::{
    Gateway, Identify, Limits, Listen, OnBlock, OnHoldLimit, Options, Tenant, Tenants, Upstream,
};
use hookgate_core::dispatch::Dispatcher;
use hookgate_core::gate::Surroundings;
use hookgate_core::record::Memory;
use hookgate_core::set::HookSet;
use hookgate_handlers::builtin;
use hookgate_handlers::clock::TokioTimer as Clock;
use hookgate_handlers::prompt::Turns;
use hookgate_handlers::watchers::{self, Watchers};
use http::Response;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Map, json};
use std::net::SocketAddr;
use tokio::net::TcpListener;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "b7ad6b7169203331";

/// Serves on loopback: answers each request with this, after telling what came.
async fn serve(
    answer: Response<Full<Bytes>>,
    told: UnboundedSender<(HeaderMap, String, Bytes)>,
) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let (answer, told) = (answer.clone(), told.clone());
            let service = service_fn(move |request: Request<Incoming>| {
                let (answer, told) = (answer.clone(), told.clone());
                async move {
                    let (parts, body) = request.into_parts();
                    let body = body.collect().await.unwrap().to_bytes();
                    let _ = told.send((parts.headers, parts.uri.to_string(), body));
                    Ok::<_, std::convert::Infallible>(answer)
                }
            });
            tokio::spawn(
                hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service),
            );
        }
    });
    at
}

fn json_answer(body: &serde_json::Value) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.to_string().into()));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// The model wants to delete everything.
fn provider_answer() -> Response<Full<Bytes>> {
    let function = json!({"name": "exec", "arguments": "{\"command\":\"rm -rf /srv\"}"});
    let call = json!({"id": "c1", "type": "function", "function": function});
    let message = json!({"role": "assistant", "content": "ok", "tool_calls": [call]});
    json_answer(&json!({
        "id": "1", "object": "chat.completion", "model": "m-1",
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}],
        "usage": {"prompt_tokens": 20, "completion_tokens": 7, "total_tokens": 27}
    }))
}

/// A gateway in front of that provider. Each request that is done is told after the traces know of it.
async fn gateway(traces: &Arc<Traces>, keeps_stories: bool) -> (SocketAddr, UnboundedReceiver<()>) {
    let upstream = serve(provider_answer(), unbounded_channel().0).await;
    let around = Surroundings {
        timer: Arc::new(Clock::new()),
        recorder: Arc::new(Memory::new(100)),
        budget: Duration::from_secs(10),
    };
    let hooks = vec![builtin::hook("destructive", &Map::new()).unwrap()];
    let dispatcher = Arc::new(Dispatcher::new(HookSet::new(hooks).unwrap()));
    let watchers = Watchers::new(around.clone(), watchers::Limits::default());
    let (done, when_done) = unbounded_channel();
    let traces = Arc::clone(traces);
    let options = Options {
        upstreams: vec![Upstream::new(&format!("http://{upstream}")).unwrap()],
        tenants: Tenants::new(
            vec![Tenant::new(Some("acme".to_owned()), dispatcher, watchers, 10, 10)],
            Identify::Fixed,
        ),
        around,
        turns: Turns::default(),
        on_block: OnBlock::Refuse,
        on_hold_limit: OnHoldLimit::Block,
        max_resends: 1,
        limits: Limits::default(),
        observer: Arc::new(move |what| {
            traces.note(what);
            if matches!(what, Happened::Request(_)) {
                let _ = done.send(());
            }
        }),
        metrics: None,
        degraded: Arc::new(|| None),
    };
    let gateway = Gateway::new(options, "run").unwrap();
    if keeps_stories {
        gateway.keep_stories();
    }
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    tokio::spawn(async move {
        gateway.serve(Listen::Tcp(listener, None), std::future::pending(), Duration::ZERO).await.unwrap();
    });
    (at, when_done)
}

async fn ask(at: SocketAddr, done: &mut UnboundedReceiver<()>, traceparent: Option<&str>) {
    let body = json!({"model": "m-1", "messages": [{"role": "user", "content": "tidy up"}]}).to_string();
    let mut request = Request::post(format!("http://{at}/v1/chat/completions"));
    if let Some(parent) = traceparent {
        request = request.header("traceparent", parent).header("tracestate", "vendor=1");
    }
    let request = request.header("x-hookgate-session", "s-1").body(Full::new(Bytes::from(body))).unwrap();
    let client = Client::builder(TokioExecutor::new()).build(connector().unwrap());
    let response = client.request(request).await.unwrap();
    assert_eq!(response.status(), 200);
    response.into_body().collect().await.unwrap();
    done.recv().await.unwrap();
}

fn losses() -> (Arc<OnLost>, UnboundedReceiver<Lost>) {
    let (told, lost) = unbounded_channel();
    (Arc::new(move |what| told.send(what).unwrap()), lost)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn words(attributes: &[KeyValue]) -> String {
    let word = |value: &Option<AnyValue>| match value.as_ref().and_then(|value| value.value.as_ref()) {
        Some(Any::StringValue(text)) => text.clone(),
        Some(Any::IntValue(n)) => n.to_string(),
        Some(Any::BoolValue(is)) => is.to_string(),
        Some(Any::ArrayValue(list)) => format!("{} values", list.values.len()),
        other => format!("{other:?}"),
    };
    attributes.iter().map(|pair| format!(" {}={}", pair.key, word(&pair.value))).collect()
}

#[tokio::test]
async fn a_request_is_a_span_with_its_hooks_below() {
    let (told, mut came) = unbounded_channel();
    let at = serve(Response::new(Full::default()), told).await;
    let collector = Collector::below(&format!("http://{at}/base/"), "svc").unwrap();
    let collector = collector.with_header("x-key", "k").unwrap();
    let (on_lost, mut lost) = losses();
    let traces = Arc::new(Traces::start(collector, on_lost).unwrap());
    let (gateway, mut done) = gateway(&traces, true).await;
    ask(gateway, &mut done, Some(&format!("00-{TRACE}-{PARENT}-01"))).await;
    assert!(traces.close(Duration::from_secs(10)).await);
    assert!(lost.try_recv().is_err());

    let (headers, uri, body) = came.recv().await.unwrap();
    assert_eq!((uri.as_str(), &headers["x-key"]), ("/base/v1/traces", &HeaderValue::from_static("k")));
    assert_eq!(headers["content-type"], "application/x-protobuf");
    let request = ExportTraceServiceRequest::decode(body).unwrap();
    let all = &request.resource_spans[0];
    assert_eq!(words(&all.resource.as_ref().unwrap().attributes), " service.name=svc");
    let [own, hook] = all.scope_spans[0].spans.as_slice() else { panic!("{all:?}") };
    assert_eq!((own.name.as_str(), own.kind()), ("chat m-1", SpanKind::Client));
    assert_eq!((hex(&own.trace_id), hex(&own.parent_span_id)), (TRACE.to_owned(), PARENT.to_owned()));
    assert_eq!(own.trace_state, "vendor=1");
    assert_eq!(
        words(&own.attributes),
        " gen_ai.operation.name=chat gen_ai.provider.name=openai http.request.method=POST \
         http.response.status_code=200 hookgate.request.id=run-0 gen_ai.request.model=m-1 \
         gen_ai.conversation.id=s-1 hookgate.tenant=acme gen_ai.response.finish_reasons=1 values \
         gen_ai.usage.input_tokens=20 gen_ai.usage.output_tokens=7"
    );
    assert_eq!(own.status, None);
    let event = &own.events[0];
    assert_eq!((own.events.len(), event.name.as_str()), (1, "hookgate.blocked"));
    let said = words(&event.attributes);
    assert!(
        said.starts_with(" hookgate.what=exec hookgate.hook=builtin/destructive hookgate.reason="),
        "{said}"
    );
    assert_eq!((hook.name.as_str(), hook.kind()), ("hook builtin/destructive", SpanKind::Internal));
    assert_eq!((&hook.parent_span_id, &hook.trace_id), (&own.span_id, &own.trace_id));
    assert_eq!(
        words(&hook.attributes),
        " hookgate.hook=builtin/destructive hookgate.point=pre_tool_use hookgate.decision=block"
    );
    let within = own.start_time_unix_nano..=own.end_time_unix_nano;
    for at in [hook.start_time_unix_nano, hook.end_time_unix_nano, event.time_unix_nano] {
        assert!(within.contains(&at), "{at} {within:?}");
    }
}

#[tokio::test]
async fn what_nobody_wants_is_not_sent() {
    let (told, mut came) = unbounded_channel();
    let at = serve(Response::new(Full::default()), told).await;
    for (keeps_stories, parent) in [(false, None), (true, Some(format!("00-{TRACE}-{PARENT}-00")))] {
        let (on_lost, _lost) = losses();
        let collector = Collector::below(&format!("http://{at}"), "svc").unwrap();
        let traces = Arc::new(Traces::start(collector, on_lost).unwrap());
        let (gateway, mut done) = gateway(&traces, keeps_stories).await;
        ask(gateway, &mut done, parent.as_deref()).await;
        assert!(traces.close(Duration::from_secs(10)).await);
        assert!(came.try_recv().is_err(), "{parent:?}");
    }
}

/// What a collector that answers so is told to have lost.
async fn lost_with(address: &str) -> Vec<Lost> {
    let (on_lost, mut lost) = losses();
    let traces = Arc::new(Traces::start(Collector::below(address, "svc").unwrap(), on_lost).unwrap());
    let (gateway, mut done) = gateway(&traces, true).await;
    ask(gateway, &mut done, None).await;
    assert!(traces.close(Duration::from_secs(20)).await);
    // after the end nothing is taken any more
    ask(gateway, &mut done, None).await;
    let mut all = Vec::new();
    while let Ok(one) = lost.try_recv() {
        all.push(one);
    }
    all
}

#[tokio::test]
async fn a_collector_that_fails_harms_nothing_and_is_told() {
    let mut unavailable = Response::new(Full::default());
    *unavailable.status_mut() = http::StatusCode::SERVICE_UNAVAILABLE;
    let at = serve(unavailable, unbounded_channel().0).await;
    let why = Some("it answered with status 503".to_owned());
    let late = Lost { spans: 2, why: None };
    assert_eq!(lost_with(&format!("http://{at}")).await, [Lost { spans: 2, why }, late.clone()]);

    let free = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let unreachable = lost_with(&format!("http://{free}")).await;
    assert_eq!((unreachable.len(), unreachable[0].spans, &unreachable[1]), (2, 2, &late));
    assert!(unreachable[0].why.as_ref().unwrap().contains("refused"), "{unreachable:?}");
}

#[tokio::test]
async fn a_full_queue_drops_and_a_silent_collector_does_not_delay_the_end() {
    let (on_lost, mut lost) = losses();
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let collector = Collector::below(&format!("http://{}", silent.local_addr().unwrap()), "svc").unwrap();
    let mut traces = Traces::start(collector, on_lost).unwrap();
    // a queue of one, which nobody empties
    let (sender, receiver) = mpsc::channel(1);
    *traces.queue.get_mut().unwrap() = Some(sender);
    let traces = Arc::new(traces);
    let (gateway, mut done) = gateway(&traces, true).await;
    ask(gateway, &mut done, None).await;
    assert!(lost.try_recv().is_err());
    ask(gateway, &mut done, None).await;
    assert_eq!(lost.try_recv().unwrap(), Lost { spans: 2, why: None });
    // now the worker has them, and waits for an answer that does not come
    let post =
        Post::new(Collector::below(&format!("http://{}", silent.local_addr().unwrap()), "svc").unwrap());
    let worker = tokio::spawn(work(receiver, post.unwrap(), losses().0));
    *traces.worker.lock().unwrap() = Some(worker);
    assert!(!traces.close(Duration::from_millis(50)).await);
}

#[test]
fn only_web_addresses_are_collectors() {
    let check = |address: &str, want: &str| {
        let got = Collector::below(address, "svc").map(|collector| collector.uri.to_string());
        assert_eq!(got.unwrap_or_else(|error| error.to_string()), want);
    };
    check("http://h:4318", "http://h:4318/v1/traces");
    check("https://h/otlp/", "https://h/otlp/v1/traces");
    check("http://h/v1/traces", "http://h/v1/traces");
    let wrong = "is no address: expected http://HOST[:PORT][/PATH] or https://…";
    check("ftp://h", &format!("the collector of traces `ftp://h/v1/traces` {wrong}"));
    check("h:1", &format!("the collector of traces `h:1/v1/traces` {wrong}"));
}
