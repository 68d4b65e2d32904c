//! What harmless little programs print: a shell that is fed by `echo … | base64 -d` runs what can be read here.

use super::budget::replaced;
use super::call::{Call, Text, UNKNOWN, base_name};
use super::walk::Feed;
use super::word;
use super::wrapper::listed;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// Programs whose output is settings for the shell that asked: `eval "$(ssh-agent -s)"`.
const PRINTS_SETTINGS: &[&str] = &[
    "ssh-agent",
    "direnv",
    "brew",
    "dircolors",
    "starship",
    "pyenv",
    "rbenv",
    "nodenv",
    "opam",
    "minikube",
    "docker-machine",
    "keychain",
    "fnm",
    "zoxide",
    "mise",
    "conda",
    "thefuck",
    "kubectl",
    "gh",
    "rustup",
    "luarocks",
    "resize",
    "tset",
    "lesspipe",
    "register-python-argcomplete",
    "nvm",
    "asdf",
    "atuin",
    "fzf",
    "helm",
    "volta",
    "gpg-agent",
    "getopt",
    "stack",
    "podman",
    "rtx",
    "argc",
    "perl",
    "npm",
    "pip",
    "pipx",
    "poetry",
    "just",
    "task",
];
const SETTINGS_WORDS: &[&str] = &[
    "completion",
    "completions",
    "hook",
    "init",
    "env",
    "shellenv",
    "activate",
    "docker-env",
    "-s",
    "-b",
    "shell.bash",
    "shell",
    "--bash",
    "complete",
    "show",
    "-c",
    "-o",
    "virtualenv-init",
    "--",
];

/// Most signs that `tr` compares.
const MOST_COMPARED: usize = 1 << 20;

/// What a program prints, where that can be told.
pub(super) fn output(call: &Call<'_>, stdin: &Feed) -> Feed {
    let known = |text: &str| Feed { text: Text::Known(text.to_owned()), from: Vec::new() };
    let of = |text: Text| Feed { text, from: Vec::new() };
    let input = call.stdin;
    match call.name {
        "echo" => of(echo(call.args)),
        "printf" => match call.args {
            [format, rest @ ..] => of(printf(format, rest)),
            [] => of(Text::None),
        },
        "true" | ":" | "false" | "cd" | "export" | "set" | "unset" | "sleep" | "test" | "[" | "mkdir"
        | "touch" | "rm" | "cp" | "mv" | "pushd" | "popd" | "alias" | "local" | "declare" | "shopt"
        | "umask" | "chmod" => of(Text::None),
        "cat" | "head" | "tail" | "tee" | "sort" | "uniq" | "nl" | "tac" | "less" | "pv" | "gunzip"
        | "zcat" | "bzcat" | "xzcat" | "gzip" | "dos2unix" => match call.operand(0) {
            Some(_) if call.name == "tee" => Feed { text: input.clone(), from: Vec::new() },
            Some(_) => of(Text::Local),
            None => Feed { text: input.clone(), from: stdin.from.clone() },
        },
        "rev" => of(input.known().map_or(input.clone(), |text| {
            Text::Known(
                text.lines()
                    .map(|line| line.chars().rev().collect::<String>())
                    .collect::<Vec<_>>()
                    .join("\n"),
            )
        })),
        "base64" | "openssl" | "base32" | "xxd" | "uudecode" | "gpg" => of(decoded(call)),
        "tr" | "sed" | "awk" | "cut" | "python" | "python3" | "perl" | "ruby" | "jq" => {
            Feed { text: edited(call), from: Vec::new() }
        }
        "curl" | "wget" | "fetch" | "http" | "nc" | "ncat" | "aria2c" | "lynx" | "xh" | "socat" | "dig"
        | "nslookup" => of(Text::Remote),
        "mktemp" => known("/tmp/own/made"),
        "pwd" => known(call.cwd),
        "whoami" | "id" | "logname" => known("user"),
        "date" | "uname" | "hostname" | "nproc" | "arch" | "tput" | "wc" => known("1"),
        "basename" => {
            of(call.operand(0).map_or(Text::Unknown, |path| Text::Known(base_name(path).to_owned())))
        }
        "ls" | "git" | "fd" | "fdfind" | "docker" | "kubectl" | "ps" | "dpkg" | "pip" | "pacman" | "brew" => {
            of_list(call)
        }
        "grep" | "rg" | "egrep" | "fgrep" | "zgrep" => {
            let filter = listed(
                &Feed {
                    text: Text::Unknown,
                    from: ["grep".to_owned()].into_iter().chain(call.args.iter().cloned()).collect(),
                },
                ".",
            );
            let keeps = filter.first().is_some_and(|name| name == "*") && !stdin.from.is_empty();
            let own = ["grep".to_owned()].into_iter().chain(call.args.iter().cloned()).collect();
            Feed {
                text: if *input == Text::Remote { Text::Remote } else { Text::Unknown },
                from: if keeps { stdin.from.clone() } else { own },
            }
        }
        name if PRINTS_SETTINGS.contains(&name)
            && call.args.iter().any(|arg| SETTINGS_WORDS.contains(&arg.as_str()))
            || name == "ssh-agent"
            || name == "dircolors" =>
        {
            known("")
        }
        name if name.contains("complet") => known(""),
        _ => of(if *input == Text::Remote { Text::Remote } else { Text::Unknown }),
    }
}

fn of_list(call: &Call<'_>) -> Feed {
    if PRINTS_SETTINGS.contains(&call.name)
        && call.args.iter().any(|arg| matches!(arg.as_str(), "completion" | "shellenv" | "completions"))
    {
        return Feed { text: Text::Known(String::new()), from: Vec::new() };
    }
    let from = [call.name.to_owned()].into_iter().chain(call.args.iter().cloned()).collect();
    Feed { text: Text::Unknown, from }
}

fn echo(args: &[String]) -> Text {
    let flags = args
        .iter()
        .take_while(|arg| matches!(arg.as_str(), "-n" | "-e" | "-E" | "-ne" | "-en" | "-nE"))
        .count();
    let escapes = args.iter().take(flags).any(|arg| arg.contains('e'));
    let text = args.get(flags..).unwrap_or_default().join(" ");
    told(if escapes { word::unescape(&text) } else { text } + "\n")
}

/// Text with unknown parts is only told where the known part says more than nothing.
fn told(text: String) -> Text {
    if text.trim().chars().all(|c| c == UNKNOWN || c == '\u{1}') && text.contains(UNKNOWN) {
        Text::Unknown
    } else {
        Text::Known(text)
    }
}

pub(super) fn printf(format: &str, args: &[String]) -> Text {
    let format = word::unescape(format);
    if args.is_empty() {
        return told(format);
    }
    let mut out = String::new();
    let mut args = args.iter();
    let mut chars = format.chars();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        match chars.find(|c| c.is_ascii_alphabetic() || *c == '%') {
            Some('%') => out.push('%'),
            Some('b') => out.push_str(&word::unescape(args.next().map_or("", String::as_str))),
            _ => out.push_str(args.next().map_or("", String::as_str)),
        }
    }
    for more in args {
        out.push('\n');
        out.push_str(more);
    }
    told(out)
}

fn decoded(call: &Call<'_>) -> Text {
    let input = call
        .operands()
        .find_map(|path| path.starts_with("/dev/fd").then_some(Text::Unknown))
        .unwrap_or(call.stdin.clone());
    let Text::Known(text) = &input else {
        return if input == Text::None { Text::Unknown } else { Text::Remote };
    };
    let text: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    let decodes = call.short("dDr") || call.any(&["--decode", "--decrypt"]);
    let bytes = match call.name {
        "base64" | "openssl"
            if decodes && (call.name == "base64" || call.any(&["base64", "-base64", "-a"])) =>
        {
            STANDARD.decode(&text).ok()
        }
        "xxd" if decodes => hex(&text),
        _ => None,
    };
    match bytes.and_then(|bytes| String::from_utf8(bytes).ok()) {
        Some(text) => Text::Known(text),
        None if decodes => Text::Remote,
        None => Text::Unknown,
    }
}

fn hex(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u32> = text.chars().map(|c| c.to_digit(16)).collect::<Option<_>>()?;
    Some(
        digits
            .chunks(2)
            .filter_map(|pair| {
                pair.iter().try_fold(0_u8, |byte, digit| u8::try_from(u32::from(byte) * 16 + digit).ok())
            })
            .collect(),
    )
}

/// `tr a b`, `tr -d x`, `sed s/a/b/`, `cut -c`: the two commonest tricks are worked out.
fn edited(call: &Call<'_>) -> Text {
    let Text::Known(text) = call.stdin else {
        return if *call.stdin == Text::Remote { Text::Remote } else { Text::Unknown };
    };
    match (call.name, call.operand(0), call.operand(1)) {
        ("tr", Some(set), _) if set.len().saturating_mul(text.len()) > MOST_COMPARED => Text::Unknown,
        ("tr", Some(set), None) if call.short("d") => {
            Text::Known(text.chars().filter(|c| !set.contains(*c)).collect())
        }
        ("tr", Some(from), Some(to)) => {
            let (from, to) = (ranges(from), ranges(to));
            Text::Known(
                text.chars()
                    .map(|c| {
                        from.iter()
                            .position(|known| *known == c)
                            .and_then(|at| to.get(at).or(to.last()))
                            .copied()
                            .unwrap_or(c)
                    })
                    .collect(),
            )
        }
        ("sed", Some(script), None) => sed(script, text),
        _ => Text::Unknown,
    }
}

fn sed(script: &str, text: &str) -> Text {
    let mut chars = script.chars();
    let (Some('s'), Some(mark)) = (chars.next(), chars.next()) else { return Text::Unknown };
    let parts: Vec<&str> = chars.as_str().split(mark).collect();
    match parts.as_slice() {
        [from, to, flags] if !from.is_empty() && !from.contains(['\\', '*', '.', '[', '^', '$']) => {
            if flags.contains('g') {
                replaced(text, from, to).map_or(Text::Unknown, Text::Known)
            } else {
                Text::Known(text.replacen(from, to, 1))
            }
        }
        _ => Text::Unknown,
    }
}

fn ranges(set: &str) -> Vec<char> {
    let mut out: Vec<char> = Vec::new();
    let mut chars = word::unescape(set).chars().collect::<Vec<_>>().into_iter().peekable();
    while let Some(c) = chars.next() {
        if c == '-'
            && let (Some(&from), Some(&to)) = (out.last(), chars.peek())
        {
            out.extend((from..=to).skip(1).take(128));
            chars.next();
        } else {
            out.push(c);
        }
    }
    out
}
