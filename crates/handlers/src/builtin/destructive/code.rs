//! Code in other languages, given in the line or as a document: looked through for calls that delete, and for lines
//! that it gives to a shell. By pattern; the languages are not parsed.

use super::budget::{Budget, PARSED, STEP};
use super::call::{Call, Danger, Text, UNKNOWN, danger};
use super::target::{Place, place};
use super::walk;

pub(super) fn judge(call: &Call<'_>, budget: &Budget) -> Option<Danger> {
    let name = call.name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let (flags, all): (&[&str], bool) = match name {
        "python" | "pypy" | "ipython" | "uv" => (&["-c"], false),
        "perl" => (&["-e", "-E"], false),
        "ruby" => (&["-e"], false),
        "node" | "nodejs" | "bun" | "deno" | "tsx" | "ts-node" => {
            (&["-e", "--eval", "-p", "--print", "-pe"], false)
        }
        "php" => (&["-r"], false),
        "lua" | "luajit" | "Rscript" | "julia" | "elixir" | "swift" | "scala" | "groovy" | "osascript"
        | "expect" | "tclsh" | "ghc" | "raku" => (&["-e", "-c", "--eval"], false),
        "awk" | "gawk" | "mawk" | "nawk" => (&[], true),
        _ => return None,
    };
    let mut code: Vec<&str> = Vec::new();
    if all {
        code.extend(call.operand(0));
    }
    let mut args = call.args.iter();
    let mut file = false;
    while let Some(arg) = args.next() {
        let clustered = arg.len() > 2
            && arg.starts_with('-')
            && !arg.starts_with("--")
            && flags.iter().any(|flag| flag.len() == 2 && arg.ends_with(flag.trim_start_matches('-')));
        if flags.contains(&arg.as_str()) || clustered || (name == "deno" && arg == "eval") {
            code.extend(args.next().map(String::as_str));
        } else if !arg.starts_with('-') {
            file = true;
        }
    }
    if code.is_empty() && *call.stdin == Text::Remote && !file {
        return danger("unknown-code", "code from the network is run");
    }
    if code.is_empty() {
        code.extend(call.stdin.known());
    }
    if code.iter().any(|code| code.trim_start().starts_with(UNKNOWN)) {
        return danger("unknown-code", "code that is not known is run");
    }
    code.into_iter().find_map(|code| look(code, budget))
}

/// Does a program of this name run code?
pub(super) fn is_interpreter(name: &str) -> bool {
    let name = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    matches!(
        name,
        "python"
            | "perl"
            | "ruby"
            | "node"
            | "nodejs"
            | "php"
            | "bun"
            | "deno"
            | "lua"
            | "pypy"
            | "osascript"
    )
}

/// Deletes a tree, whatever stands in the brackets.
const TREE: &[&str] = &[
    "rmtree",
    "rm_rf",
    "rm_r(",
    "rmSync",
    "rmdirSync",
    "remove_tree",
    "rimraf",
    "fs.rm(",
    "promises.rm(",
    "remove_dir_all",
    "removeAll",
    "RemoveAll",
    "deleteDirectory",
    "Deno.remove",
    "fs.remove",
    "removeSync",
    "rmdir(",
    "rm_f(",
    "remove_entry",
    "File.rm_rf",
    "send2trash",
    "emptyDirSync",
    "recursive: true, force: true",
    "unlinkdir",
    "fs::remove",
];
/// Deletes one file.
const FILE: &[&str] = &[
    "os.remove",
    "os.unlink",
    "unlinkSync",
    "unlink(",
    "unlink ",
    ".unlink()",
    "File.delete",
    "FileUtils.rm",
    "remove(",
    "fs.unlink",
    "File::delete",
    "truncate(",
    "truncateSync",
];
/// Gives text to a shell or starts a program.
const STARTS: &[&str] = &[
    "system(",
    "system \"",
    "system '",
    "popen",
    "exec(",
    "execSync",
    "execFile",
    "spawn",
    "subprocess",
    "check_call",
    "check_output",
    "shell_exec",
    "passthru",
    "qx",
    "`",
    "%x",
    "os.system",
    "Popen",
    "run(",
    "Open3",
    "IO.popen",
    "exec \"",
    "exec '",
    "proc_open",
    "Runtime",
    "Command",
    "sh(",
    "$`",
    "os.execute",
    "io.popen",
    "do shell script",
];
/// Runs code that is not in the text.
const HIDDEN: &[&str] = &[
    "b64decode",
    "fromhex",
    "base64_decode",
    "decode_base64",
    "Buffer.from",
    "urlopen",
    "requests.get",
    "atob(",
    "codecs.decode",
    "zlib.decompress",
    "marshal.loads",
    "urllib",
];

fn look(code: &str, budget: &Budget) -> Option<Danger> {
    if !budget.spend(STEP + code.len() * PARSED) {
        return None;
    }
    let _level = budget.enter()?;
    let texts = literals(code);
    let bare = without_literals(code);
    let has = |words: &[&str]| words.iter().any(|word| bare.contains(word));
    if bare.contains("exec(") || bare.contains("eval(") || bare.contains("eval ") {
        if has(HIDDEN) {
            return danger("unknown-code", "runs code that the line does not show");
        }
        // each text is shorter than the code it stands in
        if let Some(found) = texts.iter().find_map(|text| look(text, budget)) {
            return Some(found);
        }
    }
    if has(STARTS) {
        let shell = texts.iter().find_map(|text| walk::judge(text, budget));
        let argv = shell.or_else(|| walk::judge(&argv_of(&texts), budget));
        let hidden =
            || has(HIDDEN).then(|| danger("unknown-code", "runs text that the line does not show")).flatten();
        if let Some(found) = argv.or_else(hidden) {
            return Some(found);
        }
    }
    if let Some(found) = disk(&bare, &texts) {
        return Some(found);
    }
    let many = has(&["glob", "listdir", "readdir", "walk(", "iterdir", "<*", "Dir[", "scandir"]);
    let named = texts.iter().any(|text| matches!(text.as_str(), "unlink" | "rmdir"));
    if has(TREE) || ((has(FILE) || named) && many) {
        return trees(&bare, &texts);
    }
    if has(FILE) {
        let bad = texts.iter().find(|text| {
            matches!(
                place(text, "."),
                Place::System | Place::Home | Place::Precious | Place::Guard | Place::Device
            ) && text.len() > 1
                && !text.contains(' ')
        });
        return bad.and_then(|text| danger("delete", format!("code deletes `{text}`")));
    }
    let sql = || {
        bare.contains("execute").then(|| texts.iter().find_map(|text| super::sql::statements(text))).flatten()
    };
    let kills = [
        "os.kill(1",
        "os.kill(-1",
        "process.kill(1",
        "process.kill(-1",
        "kill 9, -1",
        "kill 9,-1",
        "kill(9, -1",
    ];
    let forks = bare.contains("fork") && (bare.contains("while") || bare.contains("loop"));
    sql().or_else(|| {
        danger("power", "code ends all processes, or starts itself without end")
            .filter(|_| forks || kills.iter().any(|call| bare.contains(call)))
    })
}

/// What a delete of trees names: fine only where all of it is made again.
fn trees(code: &str, texts: &[String]) -> Option<Danger> {
    let paths: Vec<&String> =
        texts.iter().filter(|text| !text.is_empty() && !is_module(text) && !text.contains(' ')).collect();
    let harmless = |path: &str| matches!(place(path, "."), Place::Temp | Place::Artefact | Place::Sink);
    let own = code.contains("mkdtemp") || code.contains("tempfile") || code.contains("tmpdir");
    if !paths.is_empty() && paths.iter().all(|path| harmless(path)) || (own && paths.is_empty()) {
        return None;
    }
    danger("delete", "code deletes files or a tree")
}

fn is_module(text: &str) -> bool {
    matches!(
        text,
        "fs" | "fs/promises"
            | "node:fs"
            | "node:fs/promises"
            | "path"
            | "os"
            | "fileutils"
            | "child_process"
            | "node:child_process"
            | "rimraf"
            | "fs-extra"
            | "shelljs"
            | "utf-8"
            | "utf8"
            | "w"
            | "r"
            | "wb"
            | "glob"
            | "node:path"
            | "node:os"
            | "__main__"
            | "del"
    )
}

/// Writes to a device or a system file, or empties one.
fn disk(code: &str, texts: &[String]) -> Option<Danger> {
    let opens = [
        "open(",
        "writeFile",
        "File.write",
        "file_put_contents",
        "createWriteStream",
        "write_text",
        "write_bytes",
        "File.open",
        "truncate",
    ]
    .iter()
    .any(|call| code.contains(call));
    let writes = code.contains("write")
        || texts.iter().any(|text| matches!(text.as_str(), "w" | "wb" | ">" | "w+" | "r+b" | "wb+" | "r+"))
        || code.contains("truncate");
    if !opens || !writes {
        return None;
    }
    texts.iter().find_map(|text| super::files::write(text.trim_start_matches('>').trim(), ".", false, false))
}

/// The texts as a program with its arguments; names of modules are none.
fn argv_of(texts: &[String]) -> String {
    texts.iter().filter(|text| !is_module(text)).map(|text| quoted(text)).collect::<Vec<_>>().join(" ")
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', ""))
}

/// The code with empty quotes.
fn without_literals(code: &str) -> String {
    let mut out = String::with_capacity(code.len());
    let mut chars = code.chars();
    while let Some(c) = chars.next() {
        out.push(c);
        if matches!(c, '"' | '\'') {
            while let Some(inner) = chars.next() {
                match inner {
                    '\\' => {
                        chars.next();
                    }
                    inner if inner == c => break,
                    _ => {}
                }
            }
            out.push(c);
        }
    }
    out
}

/// The texts in quotes.
fn literals(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut chars = code.chars();
    while let Some(open) = chars.next() {
        if !matches!(open, '"' | '\'' | '`') {
            continue;
        }
        let mut text = String::new();
        while let Some(c) = chars.next() {
            match c {
                '\\' => text.extend(chars.next()),
                c if c == open => break,
                c => text.push(c),
            }
        }
        if found.len() < 64 {
            found.push(text.replace(UNKNOWN, ""));
        }
    }
    found
}
