//! Programs that fail.

use super::matrix::{DECIDING, Ends, GATES, Rig, Row, SOME, check, only, row};
use hookgate_core::handler::HandlerType;
use hookgate_handlers::command::{self, Commands};
use hookgate_handlers::workshop::Workshop;
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

fn rig() -> Rig {
    Rig {
        workshop: Workshop::empty().with(HandlerType::Command, command::maker(Commands::default())),
        healthy: sh("echo '{\"decision\":\"allow\"}'"),
        lay_out,
    }
}

fn lay_out(dir: &Path) {
    for (name, text, mode) in [("no-interpreter", "#!/no/such/one\n", 0o755), ("not-executable", "", 0o644)] {
        let path = dir.join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    }
}

fn sh(line: &str) -> Value {
    json!({"type": "command", "shell": line})
}

fn program(path: &str) -> Value {
    json!({"type": "command", "argv": [path]})
}

/// A shell line that never ends.
fn late(fault: &'static str, line: &str) -> Row {
    row(fault, sh(line), Ends::Late)
}

/// A shell line that ends, but not well.
fn fails(fault: &'static str, line: &str, why: &'static str, detail: &'static str) -> Row {
    row(fault, sh(line), Ends::Fails(why, detail))
}

#[tokio::test]
async fn programs_that_do_not_end() {
    let rows = vec![
        late("slow", "sleep 600"),
        late("a byte a second", "while :; do printf '{'; sleep 1; done"),
        late("closes its pipes and stays", "exec <&- >&- 2>&-; sleep 600"),
        late("deaf to signals", "trap '' TERM INT HUP; sleep 600 & sleep 600; wait"),
        late("stopped", "kill -STOP $$"),
        late("busy", "while :; do :; done"),
        late("flooding stderr", "yes >&2"),
        late("reads nothing and waits for its children", "sleep 600 & sleep 600 & wait"),
        late("children in sessions of their own", "setsid sleep 600 & setsid setsid sleep 600 & wait"),
        late("a crowd", "i=0; while [ $i -lt 50 ]; do setsid sleep 600 & i=$((i+1)); done; sleep 600"),
    ];
    let rows = rows.into_iter().map(|row| if row.fault == "slow" { row } else { only(SOME, row) }).collect();
    check(&rig(), rows).await;
}

#[tokio::test]
async fn programs_that_cannot_be_started() {
    let fails = |fault, path, why, detail| row(fault, program(path), Ends::Fails(why, detail));
    let missing = "its program does not exist";
    let mut nowhere = program("true");
    nowhere["cwd"] = "gone".into();
    let rows = vec![
        fails("no such file", "./nothing.sh", missing, "no such file"),
        fails("nowhere on the PATH", "nothing-of-this-name", missing, "nowhere on the PATH"),
        fails("not executable", "./not-executable", "its program may not be run", "chmod +x"),
        fails("no interpreter", "./no-interpreter", "interpreter does not exist", "first line"),
        fails("a folder", "/", "it could not be started", "permission denied"),
        row(
            "no working directory",
            nowhere,
            Ends::Fails("its working directory does not exist", "gone` does not exist"),
        ),
        // the shell itself says 2, which is a block
        only(GATES, row("a syntax error", sh("if"), Ends::Blocks("Syntax error"))),
    ];
    check(&rig(), rows).await;
}

#[tokio::test]
async fn programs_that_end_badly() {
    let code_1 = "its program ended with exit code 1";
    let allow = "'{\"decision\":\"allow\"}'";
    let rows = vec![
        fails("an exit code", "echo no >&2; exit 3", "its program ended with exit code 3", "exit code 3: no"),
        fails("a lie beside an exit code", &format!("echo {allow}; exit 4"), "exit code 4", "wrote nothing"),
        fails("killed", "kill -9 $$", "its program was ended by signal 9", "signal 9"),
        fails("killed after its verdict", &format!("echo {allow}; kill -9 $$"), "by signal 9", "signal 9"),
        fails("a bad pointer", "kill -SEGV $$", "its program was ended by signal 11", "signal 11"),
        fails("out of memory", "ulimit -v 65536; exec tail /dev/zero", code_1, "memory exhausted"),
        fails("out of descriptors", "ulimit -n 3; exec cat /etc/hostname", "exit code 127", "Error 24"),
        fails("disk full", "exec cat /etc/passwd > /dev/full", code_1, "No space left"),
        fails("its verdict finds the disk full", &format!("echo {allow} > /dev/full"), code_1, "I/O error"),
        fails(
            "too large a file",
            "ulimit -f 0; echo x > f",
            "its program was ended by signal 25",
            "signal 25",
        ),
        fails("children stay behind", "setsid sleep 600 & sleep 600 & exit 5", "exit code 5", "exit code 5"),
    ];
    check(&rig(), rows).await;
}

#[tokio::test]
async fn programs_that_lie() {
    let no_verdict = "its output is no verdict";
    let gate = |fault, line: &str, detail| only(GATES, fails(fault, line, no_verdict, detail));
    let rows = vec![
        gate("prose", "echo 'this looks fine to me, allow'", "found \"this looks"),
        gate("a web page", "echo '<html><body>allow</body></html>'", "found \"<html"),
        gate("no decision in it", "echo '{}'", "expected JSON with a `decision`"),
        gate("a list", "echo '[\"allow\"]'", "expected JSON with a `decision`"),
        gate("a decision that is no text", "echo '{\"decision\":true}'", "`decision` is no text"),
        gate("two decisions", "echo '{\"decision\":\"block\",\"decision\":\"allow\"}'", "written twice"),
        gate("half a verdict", "printf '{\"decision\":\"allow\"'", "breaks off"),
        gate("no UTF-8", "printf '\\377\\376\\000allow'", "found"),
        gate("lists in each other", "head -c 60000 /dev/zero | tr '\\0' '['", "found \"[[["),
        gate("objects in each other", "yes '{\"a\":' | head -c 60000 | tr -d '\\n'", "recursion limit"),
        only(
            GATES,
            fails(
                "an unknown word",
                "echo '{\"decision\":\"perhaps\"}'",
                "its answer is no decision",
                "`perhaps` is no decision",
            ),
        ),
        only(
            DECIDING,
            fails("half an addition", "printf '{\"append\":\"x'", "its output", "stdout of `printf"),
        ),
    ];
    check(&rig(), rows).await;
}

#[tokio::test]
async fn programs_that_flood() {
    let flood = |fault, line: &str| fails(fault, line, "it wrote too much", "more than 64 KiB on stdout");
    let rows = vec![
        flood("flooding", "yes '{\"decision\":\"allow\"}'"),
        flood("zeros", "cat /dev/zero"),
        flood("a million lists in each other", "head -c 1000000 /dev/zero | tr '\\0' '['"),
        flood("flooding from a child", "setsid yes & sleep 600"),
    ];
    check(&rig(), rows).await;
}
