//! What a script decision costs from ask to verdict, clean state each call, through the process border; beside it a
//! bare round trip of the same bytes to a process that only echoes, interleaved in one run.

use hookgate_core::action::ActionKinds;
use hookgate_core::define;
use hookgate_core::dispatch::Dispatcher;
use hookgate_core::facts::{Facts, GateEvent, Head};
use hookgate_core::gate::Surroundings;
use hookgate_core::handler::{Call, HandlerType};
use hookgate_core::hook::{Hook, Source, Work};
use hookgate_core::record::Memory;
use hookgate_core::set::HookSet;
use hookgate_handlers::clock::TokioTimer;
use hookgate_handlers::folder::Loaded;
use hookgate_handlers::script::{self, Engine, Keeps, Outcome, Pool, PoolSettings, Question, WorkerProgram};
use hookgate_handlers::workshop::Workshop;
use serde_json::{Value, json};
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

const ROUNDS: usize = 30_000;

const SCRIPT: &str = r#"
function handle(event) {
  if (event.toolName === "exec") {
    var cmd = (event.toolInput.command || "");
    if (/rm\s+-rf|mkfs|dd\s+if=/.test(cmd)) {
      return { decision: "block", reason: "destructive command blocked" };
    }
  }
  return { decision: "allow" };
}
"#;

fn main() -> ExitCode {
    if script::is_worker() {
        return script::worker_main();
    }
    if std::env::args().nth(1).as_deref() == Some("__echo") {
        return echo().map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS);
    }
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            let _ = writeln!(io::stderr(), "{why}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let pool = Pool::new(PoolSettings::new(WorkerProgram::this()?));
    let hook = hook(&pool)?;
    let Work::Handler { run: Some(handler), .. } = &hook.work else { return Err("no handler".into()) };
    let handler = handler.clone();
    let dispatcher =
        Arc::new(Dispatcher::new(HookSet::new(vec![hook]).map_err(|problem| problem.to_string())?));
    let around = Arc::new(Surroundings {
        timer: Arc::new(TokioTimer::new()),
        recorder: Arc::new(Memory::new(1000)),
        budget: Duration::from_secs(10),
    });
    let facts = Facts::of_gate(&head(), event());
    let json = facts.to_json();
    let key: Arc<str> = Arc::from("guard");

    let one = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut bare = Bare::new(json.len() + 60)?;
    let (mut chains, mut handlers, mut bares) = (Vec::new(), Vec::new(), Vec::new());
    one.block_on(async {
        for round in 0..ROUNDS + 1000 {
            let began = Instant::now();
            let ruling = dispatcher.ask(&around, &head(), event()).await;
            let chain = began.elapsed();
            assert!(ruling.block().is_none(), "{ruling:?}");
            let began = Instant::now();
            let call = Call { facts: &facts, json: &json, within: Duration::from_secs(2), hook: &key };
            let answer = handler.ask(call).await;
            let ask = began.elapsed();
            assert!(answer.is_ok());
            let began = Instant::now();
            assert!(bare.trip().is_ok());
            let trip = began.elapsed();
            if round >= 1000 {
                chains.push(chain);
                handlers.push(ask);
                bares.push(trip);
            }
        }
    });
    let (in_engine, restore) = engine(&json)?;
    line("chain: ask to verdict", &mut chains)?;
    line("handler alone", &mut handlers)?;
    line("bare round trip, blocking", &mut bares)?;
    let mut out = io::stdout();
    writeln!(
        out,
        "engine alone, in this process    {in_engine:>8.1} us, of which the next clean state {restore:.1} us"
    )?;

    throughput(&dispatcher, &around)
}

/// How many decisions a second several callers get.
fn throughput(
    dispatcher: &Arc<Dispatcher>,
    around: &Arc<Surroundings>,
) -> Result<(), Box<dyn std::error::Error>> {
    let mut out = io::stdout();
    for callers in [1, 2, 4, 16] {
        let threads = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let began = Instant::now();
        let each = 40_000 / callers;
        threads.block_on(async {
            let mut tasks = Vec::new();
            for _ in 0..callers {
                let (dispatcher, around) = (dispatcher.clone(), around.clone());
                tasks.push(tokio::spawn(async move {
                    for _ in 0..each {
                        let ruling = dispatcher.ask(&around, &head(), event()).await;
                        assert!(ruling.block().is_none());
                    }
                }));
            }
            for task in tasks {
                assert!(task.await.is_ok());
            }
        });
        let rate = (each * callers) as f64 / began.elapsed().as_secs_f64();
        writeln!(out, "{callers:>2} callers at once               {rate:>8.0} decisions/s")?;
    }
    Ok(())
}

fn head() -> Head {
    Head {
        event_id: "01J9ZQ3V7M5T8K2X4R6W1N0B3C".into(),
        session_id: "s-7f3a91c2".into(),
        tenant_id: Some("acme".into()),
        agent_id: Some("builder".into()),
        ..Head::default()
    }
}

fn event() -> GateEvent {
    let tool_input =
        json!({"command": "ls -la /tmp && cargo test --workspace", "cwd": "/srv/app", "timeout": 120_000});
    GateEvent::PreToolUse { tool_name: "exec".into(), tool_input }
}

fn hook(pool: &Arc<Pool>) -> Result<Hook, String> {
    let hook: Value =
        json!({"id": "guard", "event": "pre_tool_use", "handler": {"type": "script", "source": SCRIPT}});
    let read = define::read("bench.json", &hook.to_string(), Source::User, &ActionKinds::standard());
    let workshop = Workshop::empty().with(HandlerType::Script, script::maker(pool.clone()));
    let loaded = Loaded { hooks: read.hooks, problems: read.problems, warnings: read.warnings };
    let mut loaded = workshop.equip(loaded);
    loaded.hooks.pop().ok_or_else(|| format!("{:?}", loaded.problems))
}

/// The engine without any border: a call with its clean state, and the clean state alone.
fn engine(json: &str) -> io::Result<(f64, f64)> {
    let mut engine = Engine::new(Keeps::Images)?;
    engine.load(1, SCRIPT).map_err(io::Error::other)?;
    let (mut whole, mut restores) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let began = Instant::now();
        let deadline = began + Duration::from_secs(2);
        let question = Question { event: json.as_bytes(), deadline, memory: 16 << 20, now: 0, seed: 0 };
        let (outcome, _) = engine.ask(1, &question);
        let asked = Instant::now();
        engine.ready(1);
        restores.push(asked.elapsed());
        whole.push(began.elapsed());
        assert!(matches!(outcome, Outcome::Value(_)));
    }
    Ok((at(&mut whole, 50), at(&mut restores, 50)))
}

/// A child that reads so many bytes and sends some back.
struct Bare {
    to: PipeWriter,
    from: PipeReader,
    question: Vec<u8>,
}

const ANSWER: usize = 42;

impl Bare {
    fn new(size: usize) -> io::Result<Bare> {
        let (stdin, to) = io::pipe()?;
        let (from, stdout) = io::pipe()?;
        Command::new(std::env::current_exe()?)
            .args(["__echo", &size.to_string()])
            .stdin(Stdio::from(stdin))
            .stdout(Stdio::from(stdout))
            .spawn()?;
        Ok(Bare { to, from, question: vec![1; size] })
    }

    fn trip(&mut self) -> io::Result<()> {
        self.to.write_all(&self.question)?;
        self.from.read_exact(&mut [0; ANSWER])
    }
}

fn echo() -> io::Result<()> {
    let size = std::env::args().nth(2).and_then(|size| size.parse().ok()).unwrap_or(0);
    let mut question = vec![0; size];
    let mut stdin = io::stdin().lock();
    let mut stdout = io::stdout().lock();
    while stdin.read_exact(&mut question).is_ok() {
        stdout.write_all(&[1; ANSWER])?;
        stdout.flush()?;
    }
    Ok(())
}

/// A percentile, in microseconds.
fn at(times: &mut [Duration], percent: usize) -> f64 {
    times.sort_unstable();
    times.get(times.len() * percent / 100).map_or(0.0, |time| time.as_secs_f64() * 1e6)
}

fn line(name: &str, times: &mut [Duration]) -> io::Result<()> {
    let (median, p90, p99) = (at(times, 50), at(times, 90), at(times, 99));
    writeln!(io::stdout(), "{name:<30} {median:>8.1} us median {p90:>8.1} p90 {p99:>8.1} p99")
}
