//! `hookgate demo`: a gateway between a client and a provider that plays a script, all on this machine. Shows what the
//! provider says, what the hooks do and what the client reads.

mod provider;

use super::hooks_of_demo;
use crate::exit::Exit;
use crate::failure::{Failure, with_causes};
use crate::workshop::workshop;
use futures_util::StreamExt;
use hookgate_core::dispatch::Dispatcher;
use hookgate_core::gate::Surroundings;
use hookgate_core::record::Memory;
use hookgate_handlers::clock::TokioTimer;
use hookgate_handlers::command::Commands;
use hookgate_handlers::prompt::{Spending, Turns};
use hookgate_handlers::watchers::{self, Watchers};
use hookgate_llm::{Client, Delta, Message, Model, Provider, Request, Role, ToolSpec};
use hookgate_server::gateway::{
    Gateway, Happened, Identify, Limits, Listen, OnBlock, OnHoldLimit, Options, Tenant, Tenants, Upstream,
};
use serde_json::json;
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::net::TcpListener;

/// The hooks, as a folder would hold them.
pub(super) const HOOKS: &str = include_str!("hooks.json");

/// What the client asks, and what the provider does then.
const SCENES: [(&str, &str, &str); 4] = [
    (
        "A key in the answer, cut over four events",
        "Which key do I use?",
        "streams `Use AK` `IAEXAM` `PLEEXAMPLE` `22 for now.`",
    ),
    (
        "A tool call that deletes",
        "Make some space on the disk",
        "calls exec with `rm -rf /srv/data`; when told no, explains",
    ),
    (
        "An answer that is none",
        "What is the capital of Ecuador?",
        "shrugs first, and knows it when asked again",
    ),
    (
        "The same once more: the hook fires once in a conversation",
        "What is the capital of Ecuador?",
        "shrugs",
    ),
];

/// What hooks did since the last look.
type Notes = Arc<Mutex<Vec<String>>>;

/// Shows it.
pub(crate) fn run() -> Result<Exit, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(format!("the demonstration cannot start its threads: {error}")))?;
    runtime.block_on(show())
}

async fn show() -> Result<Exit, Failure> {
    let cannot =
        |error: std::io::Error| Failure::new(format!("the demonstration cannot listen on loopback: {error}"));
    let upstream = TcpListener::bind("127.0.0.1:0").await.map_err(cannot)?;
    let upstream_at = upstream.local_addr().map_err(cannot)?;
    tokio::spawn(provider::serve(upstream));
    let notes = Notes::default();
    let commands = Commands::default();
    let gateway = gateway(&format!("http://{upstream_at}"), commands.clone(), &notes)?;
    let listener = TcpListener::bind("127.0.0.1:0").await.map_err(cannot)?;
    let at = listener.local_addr().map_err(cannot)?;
    tokio::spawn({
        let gateway = gateway.clone();
        async move { gateway.serve(Listen::Tcp(listener, None), std::future::pending(), Duration::ZERO).await }
    });
    let client = Client::builder(Provider::OpenAiChat)
        .base_url(format!("http://{at}/v1"))
        .build()
        .map_err(|error| Failure::new(with_causes(&error)))?;
    let mut out = std::io::stdout().lock();
    let say = |out: &mut dyn Write, text: String| {
        writeln!(out, "{text}").map_err(|error| Failure::new(format!("the output is closed: {error}")))
    };
    say(&mut out, "An agent asks a provider through the gateway; both are played here.\n".to_owned())?;
    for (title, prompt, provider) in SCENES {
        say(&mut out, format!("{title}\n  the user asks      {prompt}\n  the provider       {provider}"))?;
        let read = ask(&client, prompt).await?;
        for note in std::mem::take(&mut *notes.lock().unwrap_or_else(PoisonError::into_inner)) {
            say(&mut out, format!("  the gateway        {note}"))?;
        }
        say(&mut out, format!("  the client reads   {read}\n"))?;
    }
    say(&mut out, "Your own: hookgate gateway --upstream https://api.example.com --hooks DIR".to_owned())?;
    commands.settle(Duration::from_secs(1));
    Ok(Exit::Done)
}

/// Asks through the gateway, as any agent does; gives what it reads.
async fn ask(client: &Client, prompt: &str) -> Result<String, Failure> {
    let request = Request {
        model: "demo".to_owned(),
        messages: vec![Message::new(Role::User, prompt)],
        tools: vec![ToolSpec {
            name: "exec".to_owned(),
            description: "Run a shell command".to_owned(),
            parameters: json!({"type": "object", "properties": {"command": {"type": "string"}}}),
        }],
        ..Request::default()
    };
    let failed = |error: hookgate_llm::Error| Failure::new(with_causes(&error));
    let mut stream = client.stream(request).await.map_err(failed)?;
    let mut text = String::new();
    while let Some(delta) = stream.next().await {
        match delta.map_err(failed)? {
            Delta::Content(piece) => text.push_str(&piece),
            Delta::ToolCall { name: Some(name), .. } => text.push_str(&format!("(a call of {name})")),
            _ => {}
        }
    }
    Ok(text)
}

fn gateway(upstream: &str, commands: Commands, notes: &Notes) -> Result<Gateway, Failure> {
    let judges = Arc::new(|_: Option<&str>| Err("the demonstration has no judge".to_owned()));
    let set = hooks_of_demo(workshop(commands, judges, Spending::default()))?;
    let dispatcher = Arc::new(Dispatcher::new(set));
    let around = Surroundings {
        timer: Arc::new(TokioTimer::new()),
        recorder: Arc::new(Memory::new(1000)),
        budget: Duration::from_secs(10),
    };
    let watchers = Watchers::new(around.clone(), watchers::Limits::default());
    let notes = Arc::clone(notes);
    let options = Options {
        upstreams: vec![Upstream::new(upstream).map_err(|error| Failure::new(error.to_string()))?],
        tenants: Tenants::new(vec![Tenant::new(None, dispatcher, watchers, 100, 100)], Identify::Fixed),
        around,
        turns: Turns::default(),
        on_block: OnBlock::TellModel { most: 3 },
        on_hold_limit: OnHoldLimit::Block,
        max_resends: 10,
        limits: Limits::default(),
        observer: Arc::new(move |what| {
            if let Some(note) = words(what) {
                notes.lock().unwrap_or_else(PoisonError::into_inner).push(note);
            }
        }),
        metrics: None,
        degraded: Arc::new(|| None),
    };
    Gateway::new(options, "demo").map_err(|error| Failure::new(with_causes(&error)))
}

fn words(what: &Happened<'_>) -> Option<String> {
    Some(match what {
        Happened::Fired { hook, .. } => format!("hook {hook} fired"),
        Happened::Blocked { what, block, .. } => format!("{what} stopped: {}", block.reason),
        Happened::Resent { hook, .. } => format!("asked the provider again for hook {hook}"),
        _ => return None,
    })
}
