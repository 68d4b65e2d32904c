//! Real SDKs through the gateway, with the scripted model (`corpus/lab`) behind it. They are installed by `.ci/run` into
//! `target/sdk`; a machine without them skips, unless `HOOKGATE_TEST_SDKS=require`.

use crate::kit::bench::{Hooks, lifecycle};
use crate::kit::{Bench, Reply, Setup, Upstream, run};
use hookgate_server::gateway::{Identify, OnBlock, Who, hash_of};
use serde_json::{Map, Value, json};
use std::collections::{BTreeSet, HashMap};
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Set to `require` where a missing SDK is a failure.
const REQUIRE: &str = "HOOKGATE_TEST_SDKS";

fn installed(what: &str) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("sdk");
    let found = folder.join(what);
    if found.exists() {
        return Some(found);
    }
    assert!(std::env::var_os(REQUIRE).is_none(), "{REQUIRE} is set and {what} is not in target/sdk");
    println!("skipped: {what} is not in target/sdk (.ci/run installs the SDKs)");
    None
}

/// A scripted model that runs.
struct Model {
    child: Child,
    address: SocketAddr,
}

impl Drop for Model {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn model(python: &str) -> Model {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let call = |command: &str| json!({"tool": "@shell", "args": {"command": command}});
    let scripts = json!({"scripts": {
        "mixed": [{"tool_calls": [call("echo one"), call("rm -rf /srv"), call("echo three")]}, {"text": "Done."}],
        "endless": [{"text": "word ".repeat(2000), "delay_ms": 20}],
    }});
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("scripts.json");
    std::fs::write(&file, scripts.to_string()).unwrap();
    let mut child = Command::new(python)
        .arg(root.join("corpus/lab/scripted_model.py"))
        .args(["--port", "0", "--quiet", "--script"])
        .arg(&file)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.trim().rsplit_once("//").unwrap().1.parse().unwrap();
    Model { child, address }
}

/// The gateways, by name.
async fn gateways(model: SocketAddr) -> Vec<(&'static str, Bench)> {
    let guard = || {
        json!([lifecycle("guard", "pre_tool_use", json!({"block_if": "rm -rf", "reason": "too dangerous"}))])
    };
    let on_text = |regex: &str, actions: Value| json!([{"target": "stream", "chunks": ["content"], "regex": regex, "actions": actions}]);
    let again = || {
        on_text(
            "I don't know",
            json!([{"type": "queue-message", "role": "user", "message": "Then say @@text"}, {"type": "interrupt", "resend": true}]),
        )
    };
    let by_key = |key: &str| Identify::ByKey(HashMap::from([(hash_of(key), Who { tenant: 0, agent: None })]));
    let tenants = |key: &str| {
        Setup::default().with(|setup| {
            setup.tenants = vec![("a", Hooks { user: guard(), ..Hooks::default() }, 100)];
            setup.identify = by_key(key);
        })
    };
    let open = json!([
        {"target": "stream", "regex": "NEVER", "actions": [{"type": "interrupt"}]},
        {"target": "chat", "regex": "NEVER", "actions": [{"type": "interrupt"}]},
        lifecycle("t", "pre_tool_use", json!({})), lifecycle("p", "user_prompt_submit", json!({})), lifecycle("r", "pre_response", json!({})),
        lifecycle("m", "message", json!({})), lifecycle("s", "stop", json!({}))
    ]);
    let setups = vec![
        ("open", Setup::user(open)),
        ("tell", Setup::user(guard())),
        ("refuse", Setup::user(guard()).with(|setup| setup.on_block = OnBlock::Refuse)),
        ("redact", Setup::trusted(on_text("sk-[a-z]+-[0-9]+", json!([{"type": "redact", "with": "<key>"}])))),
        ("append", Setup::user(json!([lifecycle("n", "pre_response", json!({"append": "\n[notice]"}))]))),
        ("interrupt", Setup::user(on_text("scripted model", json!([{"type": "interrupt"}])))),
        ("resend", Setup::user(again())),
        ("cap", Setup::user(on_text("I don't know", json!([{"type": "interrupt", "resend": true}])))),
        (
            "prompt",
            Setup::user(json!([lifecycle(
                "prompt",
                "user_prompt_submit",
                json!({"block_if": "secret plan"})
            )])),
        ),
        ("tenants", tenants("sk-test-0000")),
        ("strangers", tenants("another")),
    ];
    let mut upstream = Upstream::playing(vec![Reply::stream(&[])]).await;
    upstream.address = model;
    let mut running = Vec::new();
    for (name, setup) in setups {
        running.push((name, setup.start(&upstream).await));
    }
    let closed = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    upstream.address = closed.local_addr().unwrap();
    drop(closed);
    running.push(("nowhere", Setup::user(guard()).start(&upstream).await));
    running
}

/// Runs a matrix and says which cases failed.
async fn matrix(mut command: Command, model: &Model, at_least: usize) {
    let running = gateways(model.address).await;
    let mut bases: Map<String, Value> = running
        .iter()
        .map(|(name, bench)| ((*name).to_owned(), format!("http://{}", bench.address).into()))
        .collect();
    bases.insert("direct".into(), format!("http://{}", model.address).into());
    command.arg(Value::Object(bases).to_string()).env("NO_PROXY", "127.0.0.1").env("no_proxy", "127.0.0.1");
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let cases: Vec<Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let failed: Vec<String> = cases.iter().filter(|case| case["ok"] != true).map(Value::to_string).collect();
    assert!(failed.is_empty(), "{} of {} failed:\n{}", failed.len(), cases.len(), failed.join("\n"));
    let names: BTreeSet<&str> = cases.iter().filter_map(|case| case["case"].as_str()).collect();
    assert!(
        text.contains(" end\""),
        "it did not come to its end: {text}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(names.len() >= at_least, "only {} cases", names.len());
    println!("{} cases", names.len());
    let of = |name: &str| &running.iter().find(|(known, _)| *known == name).unwrap().1;
    // an interrupt and a blocked prompt are not worth a repeat: SDKs with retries on asked once
    for (gateway, case) in [("interrupt", " interrupt"), ("prompt", " blocked prompt")] {
        let is_one = |name: &str| name.ends_with(case) || name.ends_with(&format!("{case} whole"));
        let asked = names.iter().filter(|name| is_one(name)).count();
        let lines = of(gateway).told("request");
        assert!(asked >= 8 && asked == lines.len(), "{asked} {lines:?}");
    }
    let hung_up = names.iter().filter(|case| case.contains("hang-up")).count();
    of("open")
        .until("hang-ups", |bench| {
            bench
                .told("request")
                .iter()
                .filter(|line| line.contains("given up") && !line.contains(": "))
                .count()
                >= hung_up
        })
        .await;
    // a key in a log is a leak
    for (name, bench) in &running {
        assert!(bench.happened.lock().unwrap().iter().all(|line| !line.contains("sk-test-0000")), "{name}");
    }
}

#[test]
fn python_sdks() {
    let Some(python) = installed("venv/bin/python") else { return };
    run(async {
        let model = model(python.to_str().unwrap());
        let mut command = Command::new(&python);
        command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sdk/matrix.py"));
        matrix(command, &model, 180).await;
    });
}

#[test]
fn javascript_sdks() {
    let Some(modules) = installed("node_modules") else { return };
    run(async {
        let model = model("python3");
        let script = modules.parent().unwrap().join("matrix.mjs");
        std::fs::copy(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sdk/matrix.mjs"), &script).unwrap();
        let mut command = Command::new("node");
        command.arg(script);
        matrix(command, &model, 120).await;
    });
}
