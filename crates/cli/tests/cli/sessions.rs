//! Every `console` block of the README files is what the program really prints.
//!
//! Lines that begin with `$ ` are commands; the lines below are their output, both streams together. A block
//! `json file=NAME` is written to that file before the next command. With
//! `HOOKGATE_UPDATE=1` the blocks are written anew instead; look at the difference before you keep it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Runs one block in one shell, so that `$?` and files carry over, and gives it with its real output.
fn run(block: &str, folder: &Path) -> String {
    let program = Path::new(env!("CARGO_BIN_EXE_hookgate")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let commands: Vec<&str> = block.lines().filter_map(|line| line.strip_prefix("$ ")).collect();
    let mark = "-- next command --\n";
    let then = "__code=$?; echo '-- next command --'; (exit $__code)";
    let script: String = commands.iter().map(|command| format!("{command}\n{then}\n")).collect();
    let output = Command::new("sh")
        .args(["-c", &format!("exec 2>&1\n{script}")])
        .current_dir(folder)
        .env_clear()
        .env("PATH", path)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    let outputs = printed.split(mark);
    commands.iter().zip(outputs).map(|(command, printed)| format!("$ {command}\n{printed}")).collect()
}

/// A copy of the repository's examples, so that a session may write files.
fn workshop(root: &Path) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let copied = Command::new("cp").arg("-r").arg(root.join("examples")).arg(dir.path()).status().unwrap();
    assert!(copied.success());
    dir
}

/// Writes the files that a text shows, each in a block that begins with ` ```json file=NAME `.
fn lay_out(text: &str, folder: &Path) {
    for from in text.split("```json file=").skip(1) {
        let (name, rest) = from.split_once('\n').unwrap();
        let (content, _) = rest.split_once("```").unwrap();
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
}

fn check(file: &Path, folder: &Path) {
    let text = std::fs::read_to_string(file).unwrap();
    let mut real = String::new();
    let mut rest = text.as_str();
    while let Some((before, from)) = rest.split_once("```console\n") {
        let (block, after) = from.split_once("```").unwrap();
        lay_out(before, folder);
        real.push_str(&format!("{before}```console\n{}```", run(block, folder)));
        rest = after;
    }
    real.push_str(rest);
    if std::env::var_os("HOOKGATE_UPDATE").is_some() {
        std::fs::write(file, real).unwrap();
    } else {
        assert!(real == text, "{}: the program prints something else now:\n{real}", file.display());
    }
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

#[test]
fn of_the_readme() {
    let dir = workshop(&root());
    check(&root().join("README.md"), dir.path());
}

#[test]
fn of_the_examples() {
    let dir = workshop(&root());
    let mut examples: Vec<PathBuf> =
        std::fs::read_dir(root().join("examples")).unwrap().map(|entry| entry.unwrap().path()).collect();
    // rules of the cookbook stand one folder deeper
    examples.retain(|example| !example.ends_with("cookbook"));
    examples.sort();
    assert!(examples.len() >= 11);
    for example in examples {
        check(&example.join("README.md"), &dir.path().join("examples").join(example.file_name().unwrap()));
    }
}

/// Each rule of the cookbook: its session, in which its tests run, and its page, which the site's contents name.
#[test]
fn of_the_cookbook() {
    let dir = workshop(&root());
    let mut rules: Vec<PathBuf> = std::fs::read_dir(root().join("examples/cookbook"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    rules.sort();
    assert!(rules.len() >= 20);
    let contents = std::fs::read_to_string(root().join("docs/SUMMARY.md")).unwrap();
    let index = std::fs::read_to_string(root().join("docs/cookbook/index.md")).unwrap();
    for rule in rules {
        let name = rule.file_name().unwrap().to_str().unwrap();
        check(&rule.join("README.md"), &dir.path().join("examples/cookbook").join(name));
        let session = std::fs::read_to_string(rule.join("README.md")).unwrap();
        assert!(
            session.contains("\n$ hookgate test ") && session.contains(", all passed\n"),
            "{name}: no tests"
        );
        let page = std::fs::read_to_string(root().join(format!("docs/cookbook/{name}.md"))).unwrap();
        assert!(page.contains(&format!("examples/cookbook/{name}/README.md")), "{name}: another rule's page");
        assert!(contents.contains(&format!("(cookbook/{name}.md)")), "{name}: not among the contents");
        assert!(index.contains(&format!("({name}.md)")), "{name}: not in the cookbook's index");
    }
}

/// The tutorial, from an empty folder.
#[test]
fn of_the_tutorial() {
    let dir = tempfile::tempdir().unwrap();
    check(&root().join("docs/tutorial.md"), dir.path());
}
