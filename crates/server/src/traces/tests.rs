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
    gateway_with(traces, keeps_stories, provider_answer(), "destructive").await
}

/// The same with this answer, and this built-in hook.
async fn gateway_with(
    traces: &Arc<Traces>,
    keeps_stories: bool,
    answer: Response<Full<Bytes>>,
    hook: &str,
) -> (SocketAddr, UnboundedReceiver<()>) {
    let upstream = serve(answer, unbounded_channel().0).await;
    let around = Surroundings {
        timer: Arc::new(Clock::new()),
        recorder: Arc::new(Memory::new(100)),
        budget: Duration::from_secs(10),
    };
    let hooks = vec![builtin::hook(hook, &Map::new()).unwrap()];
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
    ask_at(at, "/v1/chat/completions", done, traceparent).await;
}

/// Asks with a body that is a request on every wire.
async fn ask_at(at: SocketAddr, path: &str, done: &mut UnboundedReceiver<()>, traceparent: Option<&str>) {
    let said = json!([{"role": "user", "content": "tidy up"}]);
    let contents = json!([{"role": "user", "parts": [{"text": "tidy up"}]}]);
    let body = json!({"model": "m-1", "messages": said, "input": said, "contents": contents}).to_string();
    let mut request = Request::post(format!("http://{at}{path}"));
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
        Some(Any::ArrayValue(list)) => {
            let texts: Vec<String> = list
                .values
                .iter()
                .map(|value| match &value.value {
                    Some(Any::StringValue(text)) => text.clone(),
                    other => format!("{other:?}"),
                })
                .collect();
            format!("[{}]", texts.join(","))
        }
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
         gen_ai.conversation.id=s-1 hookgate.tenant=acme gen_ai.response.id=1 \
         gen_ai.response.model=m-1 gen_ai.response.finish_reasons=[tool_calls] \
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

/// One answer on each wire, as a stream and in one piece.
fn answers() -> Vec<(&'static str, String)> {
    let streamed = |events: &[serde_json::Value]| {
        events.iter().map(|event| format!("data: {event}\n\n")).collect::<String>()
    };
    let usage = json!({"prompt_tokens": 3, "completion_tokens": 2});
    let chunk = |choices: serde_json::Value| json!({"id": "a-1", "model": "m-1-x", "choices": choices});
    let chat = [
        // as one of the providers begins: without names
        json!({"id": "", "model": "", "choices": []}),
        chunk(json!([{"index": 0, "delta": {"content": "ok"}, "finish_reason": null}])),
        chunk(json!([{"index": 0, "delta": {}, "finish_reason": "stop"}])),
        json!({"id": "a-1", "model": "m-1-x", "choices": [], "usage": usage}),
    ];
    let message = json!({"index": 0, "message": {"content": "ok"}, "finish_reason": "stop"});
    let whole_chat = json!({"id": "a-1", "model": "m-1-x", "choices": [message], "usage": usage});

    let usage = json!({"input_tokens": 3, "output_tokens": 2});
    let response = |status: &str, usage: &serde_json::Value| json!({"id": "a-1", "model": "m-1-x", "status": status, "output": [], "usage": usage});
    let responses = [
        json!({"type": "response.created", "response": response("in_progress", &serde_json::Value::Null)}),
        json!({"type": "response.completed", "response": response("completed", &usage)}),
    ];

    let message = |content: serde_json::Value, stop: Option<&str>, written: u64| {
        json!({"id": "a-1", "type": "message", "role": "assistant", "model": "m-1-x", "content": content,
            "stop_reason": stop, "usage": {"input_tokens": 3, "output_tokens": written}})
    };
    let messages = [
        json!({"type": "message_start", "message": message(json!([]), None, 1)}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}}),
        json!({"type": "message_stop"}),
    ];
    let whole_message = message(json!([{"type": "text", "text": "ok"}]), Some("end_turn"), 2);

    let candidate = json!({"content": {"parts": [{"text": "ok"}]}, "finishReason": "STOP"});
    let usage = json!({"promptTokenCount": 3, "candidatesTokenCount": 2});
    let gemini = json!({"responseId": "a-1", "modelVersion": "m-1-x", "candidates": [candidate], "usageMetadata": usage});
    vec![
        ("/v1/chat/completions", streamed(&chat)),
        ("/v1/chat/completions", whole_chat.to_string()),
        ("/v1/responses", streamed(&responses)),
        ("/v1/responses", response("completed", &json!({"input_tokens": 3, "output_tokens": 2})).to_string()),
        ("/v1/messages", streamed(&messages)),
        ("/v1/messages", whole_message.to_string()),
        ("/v1beta/models/m-1:streamGenerateContent?alt=sse", streamed(std::slice::from_ref(&gemini))),
        ("/v1beta/models/m-1:generateContent", gemini.to_string()),
    ]
}

/// What the span of a request says of its answer, where this hook is loaded.
async fn said_of(path: &str, answer: &str, hook: &str) -> String {
    let (told, mut came) = unbounded_channel();
    let at = serve(Response::new(Full::default()), told).await;
    let collector = Collector::below(&format!("http://{at}"), "svc").unwrap();
    let traces = Arc::new(Traces::start(collector, losses().0).unwrap());
    let mut response = Response::new(Full::new(Bytes::from(answer.to_owned())));
    let kind = if answer.starts_with("data:") { "text/event-stream" } else { "application/json" };
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    let (gateway, mut done) = gateway_with(&traces, true, response, hook).await;
    ask_at(gateway, path, &mut done, None).await;
    assert!(traces.close(Duration::from_secs(10)).await);
    let request = ExportTraceServiceRequest::decode(came.recv().await.unwrap().2).unwrap();
    let span = &request.resource_spans[0].scope_spans[0].spans[0];
    let of_answer =
        |pair: &&KeyValue| pair.key.starts_with("gen_ai.response.") || pair.key.starts_with("gen_ai.usage.");
    words(&span.attributes.iter().filter(of_answer).cloned().collect::<Vec<_>>())
}

#[tokio::test]
async fn an_answer_that_is_read_says_what_it_is_on_every_wire() {
    for (path, answer) in answers() {
        assert_eq!(
            said_of(path, &answer, "destructive").await,
            " gen_ai.response.id=a-1 gen_ai.response.model=m-1-x gen_ai.response.finish_reasons=[stop] \
             gen_ai.usage.input_tokens=3 gen_ai.usage.output_tokens=2",
            "{path} {answer}"
        );
        // this one looks at prompts only: the answer is not read
        assert_eq!(said_of(path, &answer, "pii_prompt").await, "", "{path} {answer}");
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
