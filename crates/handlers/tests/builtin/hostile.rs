//! Lines that are made to keep the judge busy or to use up its stack. Each has a verdict soon, whatever it is; those
//! that cannot be judged are refused.

use base64::Engine;
use hookgate_handlers::builtin::destructive::{Destructive, Finding, Shell};
use std::fmt::Write;
use std::time::{Duration, Instant};

/// No line may take longer, in a build without optimization and beside other tests.
const LIMIT: Duration = Duration::from_secs(2);

fn around(open: &str, times: usize, inner: &str, close: &str) -> String {
    format!("{}{inner}{}", open.repeat(times), close.repeat(times))
}

fn numbered(count: usize, piece: impl Fn(usize) -> String) -> String {
    (0..count).map(piece).collect()
}

/// A document whose body the shell expands.
fn document(program: &str, body: &str) -> String {
    format!("{program} <<E\n{body}\nE\n")
}

/// `eval "eval \"…\""`, escaped at each level.
fn nested_eval(depth: usize) -> String {
    (0..depth).fold("true".to_owned(), |line, _| {
        format!("eval \"{}\"", line.replace('\\', "\\\\").replace('"', "\\\""))
    })
}

/// A name and a line.
type Lines = Vec<(String, String)>;

const NINE: &str = "for i in 1 2 3 4 5 6 7 8 9; do ";

/// What opens and what closes.
const NESTED: &[(&str, &str, &str)] = &[
    ("substitutions", "$( ", " )"),
    ("substitutions in quotes", "\"$( ", " )\""),
    ("echoed substitutions", "echo $( ", " )"),
    ("groups", "{ ", "; }"),
    ("ifs", "if ", "; then x; fi"),
    ("subshells", "(", ")"),
    ("spaced subshells", "( ", " )"),
    ("cases", "case x in x) ", ";; esac"),
    ("untils", "until ", "; do x; done"),
    ("fors", "for i in a b c; do ", "; done"),
    ("tests", "[[ ( ", " ) ]]"),
    ("negations", "! ", ""),
    ("process substitutions", "cat <( ", " )"),
    ("defaults", "echo ${x:-", "}"),
    ("bare defaults", "${x:-", "}"),
    ("arithmetic", "$((", "))"),
    ("spaced arithmetic", "$(( 1 + ", " ))"),
    ("braces in braces", "{a,", "}"),
    ("backquotes", "`", "`"),
    ("coprocesses", "coproc { ", "; }"),
];

/// What is repeated, and what stands behind it.
const REPEATED: &[(&str, &str, &str)] = &[
    ("pipes", "cat | ", "cat"),
    ("pipes of text", "echo aaaaaaaa | tee x | ", "cat"),
    ("ands", "true && ", "true"),
    ("words", "echo a ", ""),
    ("words of rm", "rm a", ""),
    ("words of git", "git a ", ""),
    ("lines", "true\n", ""),
    ("python", "python -c 'os.system(\"ls\")';", ""),
    ("sudo", "sudo ", "true"),
    ("env", "env A=1 ", "true"),
    ("assignments", "a=b ", ""),
    ("growing text", "x=$x$x;x=${x}ab;", ""),
    ("redirects", "true > a; ", ""),
    ("redirects of one", "> a ", "true"),
    ("globs", "/*/*/*?", ""),
    ("brace ranges", "{1..9}", ""),
    ("brace lists", "{a,b}", ""),
    ("brace lists of rm", "rm {a,b}", ""),
    ("documents", "cat <<E\nx\nE\n", ""),
    ("documents without end", "cat <<E\n", ""),
    ("tildes", "~/", ""),
    ("quotes", "'a'\"b\"", ""),
    ("backslashes", "\\", ""),
    ("finds", "find . -exec ", ""),
    ("finds with an end", "find a b c d -name x -exec ", "true"),
    ("xargs", "echo a b c d e f g h | xargs -I{} sh -c '{}'; ", ""),
    ("nested xargs", "xargs -I{} ", "true"),
    ("parallels", "parallel ", "true"),
    ("texts of tr", "| tr a-z b-za ", ""),
    ("redefined functions", "f() { true; }; ", "f"),
    ("defaults assigned", "${a:=b}${b:=$a}", ""),
    ("sql", "mysql -e 'select 1; delete from x where a = 1';", ""),
    ("comments", "# a\n", ""),
    ("unicode", "é\u{1}\u{0}", ""),
];

fn lines() -> Lines {
    [turns(), nested(), repeated(), long(), replacements(), code(), hidden()].concat()
}

fn add(lines: &mut Lines, name: &str, line: String) {
    lines.push((name.to_owned(), line));
}

/// Loops, functions and aliases whose work multiplies.
fn turns() -> Lines {
    let mut lines = Lines::new();
    for depth in [3, 5, 8, 12, 20] {
        add(&mut lines, &format!("loops {depth} deep"), around(NINE, depth, "true;", "done;"));
        add(
            &mut lines,
            &format!("loops {depth} deep, with a substitution"),
            around(NINE, depth, "x=$(echo $i$x);", "done;"),
        );
    }
    add(
        &mut lines,
        "loops in functions",
        format!(
            "{}f9",
            numbered(10, |n| {
                let inner = if n == 0 { "true".to_owned() } else { format!("f{}", n - 1) };
                format!("f{n}() {{ {NINE}{inner}; done; }}; ")
            })
        ),
    );
    add(
        &mut lines,
        "functions that double",
        format!(
            "{}f20",
            numbered(21, |n| {
                let inner = if n == 0 { "true; true".to_owned() } else { format!("f{0}; f{0}", n - 1) };
                format!("f{n}() {{ {inner}; }}; ")
            })
        ),
    );
    add(
        &mut lines,
        "aliases that double",
        format!(
            "{}a20",
            numbered(21, |n| {
                let inner = if n == 0 { "true; true".to_owned() } else { format!("a{0}; a{0}", n - 1) };
                format!("alias a{n}='{inner}'; ")
            })
        ),
    );
    add(&mut lines, "whiles in conditions", around("while while ", 20, "true", "; do x; done; do x; done"));
    add(
        &mut lines,
        "functions in functions",
        numbered(30, |n| format!("f{n}() {{ ")) + "true; " + &"}; ".repeat(30),
    );
    add(
        &mut lines,
        "functions that call themselves in each other",
        "f() { g; g; }; g() { f; f; }; f".to_owned(),
    );
    add(
        &mut lines,
        "a function that calls itself in many groups",
        format!("f() {{ {}f; {}}}; f", "{ ".repeat(20), "}; ".repeat(20)),
    );
    add(
        &mut lines,
        "documents in many turns",
        around(NINE, 4, &document("sh", &"true\n".repeat(500)), "\ndone\n"),
    );
    lines
}

fn nested() -> Lines {
    let mut lines = Lines::new();
    for (times, (name, open, close)) in
        [10, 90, 5_000, 25_000].iter().flat_map(|times| NESTED.iter().map(move |nested| (*times, nested)))
    {
        let body = around(open, times, "true", close);
        add(&mut lines, &format!("{times} {name}, open"), open.repeat(times));
        add(&mut lines, &format!("{times} {name} in a document"), document("cat", &body));
        add(&mut lines, &format!("{times} {name} in a document for sh"), document("sh", &body));
        let quoted = format!("cat <<< \"{}\"", body.replace('"', ""));
        add(&mut lines, &format!("{times} {name} in a here-string"), quoted);
        add(&mut lines, &format!("{times} {name}"), body);
    }
    lines
}

fn repeated() -> Lines {
    let mut lines = Lines::new();
    for (times, (name, piece, end)) in
        [100, 3_000, 30_000].iter().flat_map(|times| REPEATED.iter().map(move |repeated| (*times, repeated)))
    {
        let line = format!("{}{end}", piece.repeat(times));
        add(&mut lines, &format!("{times} {name} in sh -c"), format!("sh -c '{}'", line.replace('\'', "\"")));
        add(&mut lines, &format!("{times} {name}"), line);
    }
    lines
}

/// Long texts, words and variables, looked at many times.
fn long() -> Lines {
    let mut lines = Lines::new();
    for depth in [3, 8, 14] {
        add(&mut lines, &format!("eval {depth} deep"), nested_eval(depth));
    }
    add(
        &mut lines,
        "evals beside each other",
        "eval \"eval 'eval true; eval true'; eval true\";".repeat(400),
    );
    let value = "abcdefgh".repeat(400);
    let mut many = String::new();
    for n in 0..9 {
        let _ = write!(many, "v{n}={value};");
    }
    add(&mut lines, "substitutions beside many variables", format!("{many}{}", "x=$(true);".repeat(500)));
    add(
        &mut lines,
        "assigned defaults and substitutions",
        format!("x={value};{}", numbered(600, |n| format!(": ${{v{n}:=$x$x$x$x}}$(:);"))),
    );
    add(
        &mut lines,
        "a long text through many pipes",
        format!("echo '{}' {}", "a".repeat(20_000), "| cat".repeat(2_000)),
    );
    add(
        &mut lines,
        "a long text in many turns",
        format!("x='{}';{}", "a b ".repeat(3_000), around(NINE, 4, "echo $x | cat;", "done;")),
    );
    add(
        &mut lines,
        "a long word in many turns",
        around(NINE, 4, &format!("echo {};", "a".repeat(20_000)), "done;"),
    );
    add(
        &mut lines,
        "many words in many turns",
        around(NINE, 4, &format!("rm {};", "a ".repeat(10_000)), "done;"),
    );
    lines
}

/// Texts that grow by each other.
fn replacements() -> Lines {
    let mut lines = Lines::new();
    let a = "a".repeat(15_000);
    add(&mut lines, "a replacement of each sign", format!("x={a}; echo ${{x//a/{a}}} ${{x//a/{a}}}"));
    add(&mut lines, "a replacement of each sign by sed", format!("echo {a} | sed s/a/{a}/g | sed s/a/{a}/g"));
    add(&mut lines, "a long set for tr", format!("echo {a} | tr {a} {}", "b".repeat(15_000)));
    add(
        &mut lines,
        "a long name for many marks",
        format!("echo {a} | xargs -I{{}} echo {}", "{}".repeat(5_000)),
    );
    add(
        &mut lines,
        "a long name for many commands",
        format!("find {a} -exec echo {} \\;", "{} ".repeat(5_000)),
    );
    add(
        &mut lines,
        "a deep folder",
        format!(
            "{}{}",
            "cd aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa;".repeat(300),
            "rm b; ".repeat(2_000)
        ),
    );
    add(
        &mut lines,
        "a folder in many turns",
        around(NINE, 5, "cd aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa; rm b > c;", "done;"),
    );
    lines
}

fn code() -> Lines {
    let mut lines = Lines::new();
    add(
        &mut lines,
        "python in many turns",
        around(NINE, 4, "python -c \"os.system('rm x'); os.system('ls')\";", "done;"),
    );
    add(
        &mut lines,
        "shells in python",
        format!(
            "python -c \"{}\"",
            "os.system('for i in 1 2 3 4 5 6 7 8; do for j in 1 2 3 4 5 6 7 8; do true; done; done');"
                .repeat(60)
        ),
    );
    add(
        &mut lines,
        "code of many kinds",
        format!("python -c \"{}\"", "exec(system(remove(open(glob(".repeat(5_000)),
    );
    add(
        &mut lines,
        "documents of code",
        numbered(60, |_| document("python", &"import os\nos.system('ls')\n".repeat(100))),
    );
    add(&mut lines, "powershell in many turns", around(NINE, 4, "powershell -c 'dir; dir; dir';", "done;"));
    lines
}

/// What is nested in a document, in base64 or in another shell's line does not show in the line.
fn hidden() -> Lines {
    let mut lines = Lines::new();
    for depth in [4, 12, 24, 60] {
        let groups = |n: usize, inner: &str| {
            format!("{}sh <<E{n}\n{inner}\nE{n}\n{}", "{ ".repeat(80), "; }".repeat(80))
        };
        add(
            &mut lines,
            &format!("groups in {depth} documents"),
            (0..depth).fold("true".to_owned(), |inner, n| groups(n, &inner)),
        );
        let coded = |inner: String| {
            let code = base64::engine::general_purpose::STANDARD.encode(inner);
            format!("{}echo {code} | base64 -d | sh{}", "{ ".repeat(80), "; }".repeat(80))
        };
        add(
            &mut lines,
            &format!("groups in base64 {depth} deep"),
            (0..depth.min(15)).fold("true".to_owned(), |inner, _| coded(inner)),
        );
        let ifs = |n: usize, inner: &str| {
            format!("{}sh <<E{n}\n{inner}\nE{n}\n{}", "if true; then ".repeat(40), "; fi".repeat(40))
        };
        add(
            &mut lines,
            &format!("ifs in {depth} documents"),
            (0..depth).fold("true".to_owned(), |inner, n| ifs(n, &inner)),
        );
        add(
            &mut lines,
            &format!("defaults in {depth} substitutions"),
            around("echo ${x:-$(", depth, "true", ")}"),
        );
    }
    for times in [20, 60, 150, 400, 4_000] {
        add(
            &mut lines,
            &format!("{times} shells of two kinds"),
            format!("{}dir", "wsl powershell -c ".repeat(times)),
        );
        add(&mut lines, &format!("{times} cmds"), format!("{}dir", "cmd /c bash -c ".repeat(times)));
        add(
            &mut lines,
            &format!("{times} pythons"),
            format!("{}dir", "python -c system('sh -c ".repeat(times)),
        );
    }
    lines
}

/// Judges all lines on a thread with the stack that worker threads have.
fn check(judge: fn(&str)) {
    let all = move || {
        let mut slow = Vec::new();
        for (name, line) in lines() {
            let began = Instant::now();
            judge(&line);
            let took = began.elapsed();
            if took > LIMIT {
                slow.push(format!("{name} took {took:?}"));
            }
        }
        slow
    };
    let slow = std::thread::Builder::new().stack_size(2 << 20).spawn(all).unwrap().join().unwrap();
    assert!(slow.is_empty(), "{slow:#?}");
}

#[test]
fn every_line_of_bash_has_its_verdict_soon() {
    check(|line| drop(Destructive::judge(line, Shell::Bash)));
}

#[test]
fn every_line_of_windows_has_its_verdict_soon() {
    check(|line| drop(Destructive::judge(line, Shell::Windows)));
}

#[test]
fn what_every_line_writes_to_is_told_soon() {
    check(|line| drop(Destructive::written(line, Shell::Bash)));
}

#[test]
fn what_cannot_be_judged_is_refused() {
    for (name, line) in lines() {
        let deep = name.starts_with("loops 12")
            || name.starts_with("loops 20")
            || name == "5000 defaults in a document";
        if deep {
            let Finding::Destructive(danger) = Destructive::judge(&line, Shell::Bash) else {
                panic!("{name} passes")
            };
            assert_eq!(
                (danger.kind, &*danger.what),
                ("unknown-code", "the line is too complex to be judged"),
                "{name}"
            );
            assert_eq!(Destructive::written(&line, Shell::Bash), Err(danger), "{name}");
        }
    }
}

#[test]
fn honest_lines_are_not_too_complex() {
    for (name, line) in [
        ("a long file", document("cat > src/main.rs", &"    let x = f(&a, \"b\"); // c\n".repeat(6_000))),
        ("a long script", "cargo test -p crate --all-targets 2>&1 | tail -20\n".repeat(400)),
        ("many files", format!("git add {}", "crates/handlers/src/builtin/mod.rs ".repeat(2_000))),
        ("loops in loops", "for a in 1 2 3 4 5 6 7 8; do for b in 1 2 3 4 5 6 7 8; do for c in x y z; do echo \"$a $b $c\" >> out.txt; done; done; done".to_owned()),
        ("a function that calls itself", "retry() { if ! \"$@\"; then sleep 1; retry \"$@\"; fi; }; retry make".to_owned()),
        ("many documents", numbered(40, |n| format!("cat > f{n} <<E\n{}\nE\n", "some text\n".repeat(100)))),
    ] {
        assert_eq!(Destructive::judge(&line, Shell::Bash), Finding::Harmless, "{name}");
        assert!(Destructive::written(&line, Shell::Bash).is_ok(), "{name}");
    }
}
