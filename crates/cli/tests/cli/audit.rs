//! The audit trail from the command line: what `chat` leaves behind, and the questions to it.

use crate::support::{Place, Ran};

const HOOKS: &str = r#"[{
    "id": "guard", "event": "pre_tool_use", "matcher": "exec",
    "handler": { "type": "script", "source": "function handle(e) { var c = e.toolInput.command; if (c === 'boom') throw new Error('no token=hunter2hunter2 here'); return c === 'true' ? { decision: 'allow' } : { decision: 'block', reason: 'only true is true' }; }" }
}]"#;
const SCRIPT: &str = r#"{"turns": [{"tool_calls": [
    {"tool": "exec", "args": {"command": "true"}},
    {"tool": "exec", "args": {"command": "echo my-private-input"}},
    {"tool": "exec", "args": {"command": "boom"}}
]}, {"text": "done"}]}"#;

/// A place in which a chat has left three rows.
fn place() -> Place {
    let place = Place::new().with("hooks/guard.json", HOOKS).with("script.json", SCRIPT);
    let ran =
        place.chat(&["--hooks", "hooks", "--tools", "exec", "--data-dir", "data", "--tenant", "acme", "go"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("audit: made the key file data/keys"), "{}", ran.stderr);
    place
}

fn audit(place: &Place, args: &[&str]) -> Ran {
    place.run(&[&["audit", "--data-dir", "data"], args].concat())
}

fn rows(place: &Place, args: &[&str]) -> Vec<serde_json::Value> {
    let ran = audit(place, &[&["list", "--json"], args].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    serde_json::from_str(&ran.stdout).unwrap()
}

#[test]
fn what_a_chat_decided_is_there() {
    let place = place();
    let all = rows(&place, &[]);
    let decisions: Vec<&str> = all.iter().map(|row| row["decision"].as_str().unwrap()).collect();
    assert_eq!(decisions, ["error", "block", "allow"], "the newest first");
    assert_eq!(all[1]["error"], "only true is true");
    assert!(all.iter().all(|row| row["tenant_id"] == "acme" && row["hook_id"] == "guard"));
    assert_eq!(rows(&place, &["--decision", "block", "--tool", "exec", "--since", "1h"]).len(), 1);
    assert_eq!(rows(&place, &["--until", "1h"]).len(), 0);
    assert_eq!(rows(&place, &["--tenant", "other"]).len(), 0);
    let hash = all[0]["input_hash"].as_str().unwrap();
    assert_eq!(rows(&place, &["--input-hash", hash]).len(), 1);
    audit(&place, &["list", "--decision", "blocked"])
        .fails(2, "expected one of allow, block, error, timeout");
    let table = audit(&place, &["list"]);
    assert!(table.stdout.starts_with("ROW  TIME"), "{}", table.stdout);
    assert!(table.stdout.contains("only true is true"), "{}", table.stdout);
}

#[test]
fn a_session_is_told_in_words() {
    let place = place();
    let session = rows(&place, &["--limit", "1"])[0]["session_id"].as_str().unwrap().to_owned();
    let told = audit(&place, &["why", &session]).stdout;
    for part in [
        "pre_tool_use of exec",
        "hook guard let it through",
        "hook guard said no after",
        ": only true is true",
    ] {
        assert!(told.contains(part), "{told}");
    }
    audit(&place, &["why", "nobody"]).fails(2, "the trail has no session and no event `nobody`");
}

#[test]
fn details_open_with_the_key_only() {
    let place = place();
    let with_key = audit(&place, &["show", "3"]).stdout;
    assert!(with_key.contains("token=[redacted]") && with_key.contains("token=hunter2hunter2"), "{with_key}");
    std::fs::rename(place.path("data/keys"), place.path("data/elsewhere")).unwrap();
    let without = audit(&place, &["show", "3"]);
    assert_eq!(without.code, Some(0));
    assert!(without.stderr.contains("the detail cannot be opened"), "{}", without.stderr);
    assert!(!without.stdout.contains("hunter2"), "{}", without.stdout);
    let elsewhere = place.env("HOOKGATE_KEY_FILE", "data/elsewhere");
    assert!(audit(&elsewhere, &["show", "3"]).stdout.contains("token=hunter2hunter2"));
    let rekeyed = audit(&elsewhere, &["rekey"]);
    assert!(rekeyed.stdout.starts_with("2 details are sealed with the new key"), "{}", rekeyed.stdout);
    assert!(audit(&elsewhere, &["show", "3"]).stdout.contains("token=hunter2hunter2"));
    for name in ["audit.db", "audit.db-wal"] {
        let bytes = std::fs::read(elsewhere.path("data").join(name)).unwrap_or_default();
        for secret in [&b"hunter2"[..], b"my-private-input"] {
            assert!(!bytes.windows(secret.len()).any(|part| part == secret), "{name}");
        }
    }
}

#[test]
fn a_trail_can_be_checked_and_pruned() {
    let place = place();
    audit(&place, &["verify"]).is(0, "3 rows, none changed, missing, added or moved\n", "");
    let checkpoint = audit(&place, &["checkpoint"]).stdout;
    let place = place.with("checkpoint", &checkpoint);
    assert_eq!(audit(&place, &["verify", "--against", "checkpoint"]).code, Some(0));
    assert_eq!(audit(&place, &["prune", "--keep", "0s"]).stdout, "3 rows older than 0s were deleted\n");
    let pruned = audit(&place, &["verify"]);
    assert_eq!(
        (pruned.code, pruned.stdout.as_str()),
        (Some(0), "0 rows, none changed, missing, added or moved\n")
    );
    audit(&place, &["prune"]).fails(2, "for how long are rows kept?");
    let place = place.with("not-one", "x");
    audit(&place, &["verify", "--against", "not-one"]).fails(2, "not a checkpoint");
}

#[test]
fn rows_go_out_in_three_forms() {
    let place = place();
    let lines = audit(&place, &["export"]).lines();
    assert_eq!(
        lines.iter().map(|row| row["decision"].as_str().unwrap()).collect::<Vec<_>>(),
        ["allow", "block", "error"]
    );
    let csv = audit(&place, &["export", "--format", "csv", "--decision", "block"]).stdout;
    assert!(csv.starts_with("id,hook_id,hook_label,"), "{csv}");
    assert_eq!(csv.lines().count(), 2);
    let events = audit(&place, &["export", "--format", "cloudevents"]).lines();
    assert!(
        events.iter().all(|event| event["specversion"] == "1.0" && event["data"]["hook_label"] == "guard")
    );
    let stats = audit(&place, &["stats", "--json"]);
    let stats: serde_json::Value = serde_json::from_str(&stats.stdout).unwrap();
    assert_eq!(stats["rows"], 3);
}

#[test]
fn where_nothing_is_kept_that_is_said() {
    let place = Place::new();
    place.run(&["audit", "list"]).fails(2, "which trail?");
    place.run(&["audit", "--data-dir", "nowhere", "list"]).fails(2, "there is no trail in nowhere");
    let off = Place::new()
        .with("hooks/guard.json", HOOKS)
        .with("script.json", SCRIPT)
        .with("hookgate.toml", "[audit]\ndir = 'data'\nenabled = false\n");
    off.chat(&["--hooks", "hooks", "--tools", "exec", "go"]);
    assert!(!off.path("data").exists());
}

#[test]
fn a_gate_does_not_go_on_without_its_record() {
    let place =
        Place::new().with("hooks/guard.json", HOOKS).with("script.json", SCRIPT).with("data", "a file");
    let ran = place.chat(&["--hooks", "hooks", "--tools", "exec", "--data-dir", "data", "go"]);
    assert!(ran.stderr.contains("its record could not be written"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("tool exec"), "nothing ran: {}", ran.stderr);
}
