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

const WATCHED: &str = r#"[
    { "id": "writes", "event": "pre_tool_use", "matcher": "write_file", "handler": { "type": "script", "source": "function handle(e) { return { decision: 'allow' }; }" } },
    { "id": "acme", "event": "pre_tool_use", "scope": "tenant", "tenant": "acme", "handler": { "type": "script", "source": "function handle(e) { return { decision: 'allow' }; }" } },
    { "id": "pushes", "event": "pre_tool_use", "if_expr": "has(toolInput.command) && toolInput.command.contains('git push')", "handler": { "type": "script", "source": "function handle(e) { return { decision: 'allow' }; }" } },
    { "id": "says-no", "event": "pre_tool_use", "priority": 9, "handler": { "type": "script", "source": "function handle(e) { return { decision: 'block', reason: 'not now' }; }" } },
    { "id": "too-late", "event": "pre_tool_use", "handler": { "type": "script", "source": "function handle(e) { return { decision: 'allow' }; }" } }
]"#;

#[test]
fn what_filters_ruled_out_is_told_where_it_is_kept() {
    let place = Place::new()
        .with("hooks/guard.json", WATCHED)
        .with("script.json", SCRIPT)
        .with("hookgate.toml", "[audit]\ndir = 'data'\nfilter_trace = true\n");
    let ran = place.chat(&["--hooks", "hooks", "--tools", "exec", "go"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let event = rows(&place, &["--limit", "1"])[0]["event_id"].as_str().unwrap().to_owned();
    let told = audit(&place, &["why", &event]).stdout;
    for part in [
        "hook says-no said no after",
        "hook writes was ruled out by matcher `write_file`: tool `exec`",
        "hook acme was ruled out by scope `tenant `acme``: no tenant, no agent",
        "hook pushes was ruled out by if_expr `has(toolInput.command)",
        r#": toolInput.command = "boom""#,
        "hook too-late was concerned and left no row: another had stopped it by then",
    ] {
        assert!(told.contains(part), "`{part}` in\n{told}");
    }
    // what is kept of it is sealed
    for name in ["audit.db", "audit.db-wal"] {
        let bytes = std::fs::read(place.path("data").join(name)).unwrap_or_default();
        assert!(!bytes.windows(16).any(|part| part == b"my-private-input"), "{name}");
    }
    std::fs::remove_file(place.path("data/keys")).unwrap();
    let told = audit(&place, &["why", &event]).stdout;
    assert!(told.contains("1 filter traces are sealed with a key that is not at hand"), "{told}");
    let told = audit(&self::place(), &["why", &event]);
    assert_eq!(told.code, Some(2), "{}", told.stdout);
}

#[test]
fn json_hooks_leave_one_row_an_answer_or_event() {
    let hooks = r#"[
        { "target": "stream", "label": "log-all", "chunks": ["content"], "actions": [{ "type": "debug", "message": "x" }] },
        { "target": "stream", "label": "leak", "regex": "secret", "maxTriggers": 1, "actions": [{ "type": "interrupt", "resend": true }] },
        { "target": "tool", "label": "no-exec", "tools": ["exec"], "event": "before", "actions": [{ "type": "block", "message": "not here" }] },
        { "target": "chat", "label": "users", "roles": ["user"], "actions": [{ "type": "debug", "message": "x" }] }
    ]"#;
    let script = r#"{"turns": [
        {"text": "a b c", "tool_calls": [{"tool": "exec", "args": {"command": "true"}}]},
        {"text": "the secret is"}
    ]}"#;
    let place = Place::new().with("hooks/a.json", hooks).with("script.json", script);
    let ran = place.chat(&["--hooks", "hooks", "--tools", "exec", "--data-dir", "data", "go"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let mut all = rows(&place, &[]);
    all.reverse();
    let seen: Vec<String> = all
        .iter()
        .map(|row| {
            format!("{} {} {} {}", row["hook_label"], row["event"], row["decision"], row["times"])
                .replace('"', "")
        })
        .collect();
    assert_eq!(
        seen,
        [
            "users message allow 1",
            "log-all chunk allow 3",
            "no-exec pre_tool_use block 1",
            "log-all chunk allow 2",
            "leak chunk block 1",
            "log-all chunk allow 3",
        ]
    );
    assert_eq!(all[2]["error"], "not here");
    audit(&place, &["verify"]).is(0, "6 rows, none changed, missing, added or moved\n", "");
    let told = audit(&place, &["why", all[0]["session_id"].as_str().unwrap()]).stdout;
    assert!(told.contains("hook log-all fired, 2 times in this answer"), "{told}");
    assert!(told.contains("hook no-exec fired and stopped it: not here"), "{told}");
    assert!(told.contains("filter_trace = true under [audit] keeps it"), "{told}");
}

#[test]
fn a_hook_that_is_gone_keeps_its_label_only() {
    let place = place();
    let ids = |place: &Place| -> Vec<String> {
        rows(place, &[]).iter().map(|row| format!("{} {}", row["hook_id"], row["hook_label"])).collect()
    };
    let guard = r#""guard" "guard""#;
    assert_eq!(ids(&place), [guard; 3]);
    // another folder with the same trail has no such hook, and never had
    let hook = HOOKS.replace("guard", "other");
    let place = place.with("elsewhere/other.json", &hook);
    let args = ["--hooks", "elsewhere", "--tools", "exec", "--data-dir", "data", "go"];
    assert_eq!(place.chat(&args).code, Some(0));
    assert_eq!(ids(&place)[3..], [guard; 3]);
    // a file that is broken for a moment is not gone
    let place = place.with("hooks/guard.json", "[");
    place.chat(&["--hooks", "hooks", "--data-dir", "data", "--on-invalid", "skip", "go"]);
    assert_eq!(ids(&place)[3..], [guard; 3]);
    let place = place.with("hooks/guard.json", "[]");
    assert_eq!(place.chat(&["--hooks", "hooks", "--data-dir", "data", "go"]).code, Some(0));
    assert_eq!(ids(&place)[3..], [r#"null "guard""#; 3]);
    assert_eq!(audit(&place, &["forget", "other"]).code, Some(0));
    assert_eq!(ids(&place)[..3], [r#"null "other""#; 3]);
    audit(&place, &["forget", "other"]).fails(2, "the trail knows no hook with the id `other`");
    assert!(audit(&place, &["verify"]).stdout.contains("none changed"));
}

#[test]
fn a_trail_can_be_read_without_touching_it() {
    let place = place();
    let listed = audit(&place, &["--read-only", "list"]);
    assert_eq!(listed.code, Some(0), "{}", listed.stderr);
    assert!(listed.stderr.contains("the trail is only read"), "{}", listed.stderr);
    assert!(listed.stdout.contains("only true is true"), "{}", listed.stdout);
    assert!(audit(&place, &["--read-only", "verify"]).stdout.starts_with("3 rows, none changed"));
    assert_eq!(audit(&place, &["--read-only", "export"]).lines().len(), 3);
    audit(&place, &["--read-only", "prune", "--keep", "0s"])
        .fails(2, "was opened to be read only; nothing was changed");
    assert_eq!(rows(&place, &[]).len(), 3);
    // a file that says itself that it is not to be written to
    let file = place.path("data/audit.db");
    std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o444)).unwrap();
    let listed = audit(&place, &["list"]);
    assert_eq!(
        (listed.code, listed.stderr.contains("the trail is only read")),
        (Some(0), true),
        "{}",
        listed.stderr
    );
    audit(&place, &["forget", "guard"]).fails(2, "was opened to be read only");
}

#[test]
fn old_rows_go_by_themselves() {
    let place = place();
    let toml = |keep: &str| format!("[audit]\nkeep = '{keep}'\n");
    let place = place.with("hookgate.toml", &toml("0s"));
    let again = |place: &Place| {
        let ran = place.chat(&["--hooks", "hooks", "--tools", "exec", "--data-dir", "data", "go"]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        rows(place, &[]).len()
    };
    assert!(again(&place) <= 3, "the old rows are gone");
    let place = place.with("hookgate.toml", &toml("soon"));
    place
        .chat(&["--data-dir", "data", "go"])
        .fails(2, "`soon` is no time; expected an age such as 12h or 90d");
}
