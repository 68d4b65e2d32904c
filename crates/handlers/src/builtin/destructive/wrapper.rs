//! Programs that run other programs, or text.

use super::call::{Call, Text, UNKNOWN, base_name, danger};
use super::walk::{Feed, Walk};
use super::{target, windows};

/// Programs that run the rest of their arguments: their short options with a value, and how many words stand before.
const PLAIN: &[(&str, &str, usize)] = &[
    ("sudo", "ugpCDhRrTtU", 0),
    ("doas", "uC", 0),
    ("nice", "n", 0),
    ("ionice", "cnp", 0),
    ("nohup", "", 0),
    ("setsid", "", 0),
    ("timeout", "ks", 1),
    ("gtimeout", "ks", 1),
    ("stdbuf", "ioe", 0),
    ("env", "uCS", 0),
    ("time", "fo", 0),
    ("command", "", 0),
    ("exec", "a", 0),
    ("builtin", "", 0),
    ("chroot", "", 1),
    ("nsenter", "tSG", 0),
    ("unshare", "", 0),
    ("strace", "eopsu", 0),
    ("ltrace", "eopsu", 0),
    ("taskset", "", 1),
    ("chrt", "", 1),
    ("caffeinate", "tw", 0),
    ("proxychains", "f", 0),
    ("proxychains4", "f", 0),
    ("torsocks", "", 0),
    ("unbuffer", "", 0),
    ("winpty", "", 0),
    ("systemd-run", "pu", 0),
    ("systemd-inhibit", "", 0),
    ("firejail", "", 0),
    ("busybox", "", 0),
    ("toybox", "", 0),
    ("npx", "p", 0),
    ("bunx", "", 0),
    ("pnpx", "", 0),
    ("uvx", "", 0),
    ("pipx", "", 1),
    ("dotenv", "ef", 0),
    ("cross-env", "", 0),
    ("dbus-run-session", "", 0),
    ("xvfb-run", "nse", 0),
    ("fakeroot", "", 0),
    ("pkexec", "", 0),
    ("gosu", "", 1),
    ("su-exec", "", 1),
    ("setpriv", "", 0),
    ("prlimit", "", 0),
    ("faketime", "", 1),
    ("eatmydata", "", 0),
    ("catchsegv", "", 0),
    ("valgrind", "", 0),
    ("wsl", "du", 0),
    ("coproc", "", 0),
    ("runcon", "", 1),
    ("cgexec", "g", 0),
    ("numactl", "", 0),
    ("aws-vault", "", 2),
    ("direnv", "", 2),
    ("ssh-agent", "at", 0),
    ("rlwrap", "", 0),
    ("entr", "", 0),
    ("ts", "", 0),
    ("retry", "", 0),
    ("chpst", "u", 0),
    ("hyperfine", "wrm", 0),
    ("noglob", "", 0),
    ("nocorrect", "", 0),
];
/// The same for programs with a word in between: `bundle exec`, `poetry run`.
const WITH_WORD: &[(&str, &[&str])] = &[
    ("bundle", &["exec"]),
    ("poetry", &["run"]),
    ("pipenv", &["run"]),
    ("uv", &["run"]),
    ("pdm", &["run"]),
    ("rye", &["run"]),
    ("hatch", &["run"]),
    ("conda", &["run"]),
    ("npm", &["exec", "x"]),
    ("pnpm", &["exec", "dlx"]),
    ("yarn", &["exec", "dlx"]),
    ("op", &["run"]),
    ("doppler", &["run"]),
    ("mise", &["exec", "x"]),
    ("asdf", &["exec"]),
    ("rbenv", &["exec"]),
    ("pyenv", &["exec"]),
    ("infisical", &["run"]),
    ("chamber", &["exec"]),
    ("docker-machine", &["ssh"]),
    ("bun", &["x"]),
    ("deno", &[]),
];
const LONG_WITH_VALUE: &[&str] = &[
    "--user",
    "--group",
    "--signal",
    "--kill-after",
    "--chdir",
    "--adjustment",
    "--class",
    "--classdata",
    "--output",
    "--error",
    "--input",
    "--unset",
    "--interval",
    "--package",
    "--env-file",
    "--name",
    "--workdir",
    "--namespace",
    "--container",
    "--network",
    "--mount",
    "--volume",
    "--env",
    "--entrypoint",
    "--platform",
    "--publish",
    "--memory",
    "--cpus",
    "--label",
    "--hostname",
    "--gpus",
    "--pid",
    "--ipc",
    "--add-host",
    "--distribution",
    "--context",
    "--unit",
    "--property",
    "--project-directory",
    "--file",
    "--index",
    "--profile",
    "--region",
    "--endpoint-url",
    "--query",
    "--ca-bundle",
];
const SHELLS: &[&str] = &["sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "fish", "rbash"];

impl Walk {
    /// Opens a program that runs another program or a text. None: it is no such program.
    pub(super) fn unwrap(&mut self, argv: &[String], stdin: &Feed) -> Option<Feed> {
        let name = base_name(argv.first()?).trim_end_matches(".exe");
        let args = argv.get(1..).unwrap_or_default();
        if SHELLS.contains(&name) {
            return Some(self.shell(args, stdin));
        }
        if let Some((_, valued, before)) = PLAIN.iter().find(|(plain, ..)| *plain == name) {
            return self.plain(name, args, valued, *before, stdin);
        }
        if let Some((_, words)) = WITH_WORD.iter().find(|(plain, _)| *plain == name)
            && let Some(at) = args
                .iter()
                .position(|arg| !arg.starts_with('-'))
                .filter(|at| args.get(*at).is_some_and(|arg| words.contains(&arg.as_str())))
        {
            let inner = behind_options(args.get(at + 1..).unwrap_or_default(), "pne", 0);
            return Some(self.invoke(inner.to_vec(), stdin));
        }
        match name {
            "eval" => Some(self.text(&args.join(" "), stdin)),
            "source" | "." if args.first()? == "/dev/stdin" => Some(self.fed(stdin)),
            "source" | "." => Some(self.script(args.first()?)),
            "su" | "runuser" | "sg" | "script" | "flock" | "nix-shell" | "vagrant" | "scl" => {
                let call = Call { name, args, stdin: &Text::None, cwd: "." };
                let line = call.value(&["-c", "--command", "--run"])?;
                Some(self.text(line, stdin))
            }
            "trap" => Some(self.text(args.iter().find(|arg| !arg.starts_with('-'))?, stdin)),
            "watch" => Some(self.text(&behind_options(args, "n", 0).join(" "), stdin)),
            "ssh" | "mosh" | "sshpass" | "autossh" | "slogin" => self.ssh(name, args, stdin),
            "xargs" | "parallel" => Some(self.xargs(name, args, stdin)),
            "find" | "gfind" => Some(self.find(args)),
            "fd" | "fdfind" => self.fd(args),
            "docker" | "podman" | "nerdctl" | "docker-compose" | "kubectl" | "oc" | "k" => {
                self.container(args, stdin)
            }
            "tmux" | "screen" | "wezterm" | "byobu" => self.terminal(name, args),
            "powershell" | "pwsh" | "cmd" => Some(self.windows(name, args)),
            "at" | "batch" => {
                Some(Feed { text: self.line(stdin.text.known()?, &Text::None), from: Vec::new() })
            }
            "vim" | "vi" | "nvim" | "ex" | "ed" | "gdb" | "emacs" => {
                for arg in args {
                    if let Some((_, line)) = arg.split_once('!').or_else(|| arg.split_once("shell ")) {
                        self.line(line, &Text::None);
                    }
                }
                None
            }
            "ansible" | "git" | "tar" | "gcloud" | "make" | "rsync" | "scp" | "sed" | "gsed" | "pdsh"
            | "pssh" | "clush" | "osascript" => self.hidden_line(name, args),
            _ => None,
        }
    }

    fn plain(
        &mut self,
        name: &str,
        args: &[String],
        valued: &str,
        before: usize,
        stdin: &Feed,
    ) -> Option<Feed> {
        if name == "command" && args.first().is_some_and(|arg| arg == "-v" || arg == "-V") {
            return Some(Feed { text: Text::Unknown, from: Vec::new() });
        }
        if name == "env"
            && let Some(at) = args.iter().position(|arg| {
                arg.starts_with("-S") || arg.starts_with("--split-string") || arg.starts_with("-vS")
            })
        {
            let own = args.get(at).map_or("", |arg| {
                arg.trim_start_matches("--split-string")
                    .trim_start_matches("-vS")
                    .trim_start_matches("-S")
                    .trim_start_matches('=')
            });
            let line = [own]
                .into_iter()
                .chain(args.iter().skip(at + 1).map(String::as_str))
                .collect::<Vec<_>>()
                .join(" ");
            return Some(self.text(&line, stdin));
        }
        let mut inner = behind_options(args, valued, before);
        while let [first, rest @ ..] = inner
            && first.contains('=')
            && !first.starts_with(['-', '/'])
        {
            inner = rest;
        }
        if inner.is_empty() {
            return None;
        }
        if name == "hyperfine" || name == "entr" {
            return Some(self.text(&inner.join(" "), stdin));
        }
        Some(self.invoke(inner.to_vec(), stdin))
    }

    /// A shell: with a text, a file, or what comes in.
    fn shell(&mut self, args: &[String], stdin: &Feed) -> Feed {
        let mut rest = args.iter();
        let mut text = false;
        while let Some(arg) = rest.next() {
            let is_option = arg.starts_with('-') || arg.starts_with('+');
            if matches!(arg.as_str(), "-n" | "--version" | "--help") {
                return Feed { text: Text::Unknown, from: Vec::new() };
            } else if is_option && !arg.starts_with("--") && arg.contains('c') {
                text = true;
            } else if is_option && arg.contains('s') && !arg.starts_with("--") {
                break;
            } else if matches!(arg.as_str(), "-o" | "-O" | "--rcfile" | "--init-file" | "+o" | "+O") {
                rest.next();
            } else if !is_option {
                return match (text, arg.as_str()) {
                    (true, line) => self.text(line, stdin),
                    (false, "/dev/stdin") => self.fed(stdin),
                    (false, path) => self.script(path),
                };
            }
        }
        self.fed(stdin)
    }

    /// A shell that reads what comes in.
    fn fed(&mut self, stdin: &Feed) -> Feed {
        match &stdin.text {
            Text::Known(text) => {
                let text = text.clone();
                self.text(&text, &Feed { text: Text::None, from: Vec::new() })
            }
            Text::Remote => {
                self.note(danger("unknown-code", "text from the network or from a decoder goes to a shell"));
                Feed { text: Text::Unknown, from: Vec::new() }
            }
            Text::Unknown => {
                self.note(danger("unknown-code", "text that is not known goes to a shell"));
                Feed { text: Text::Unknown, from: Vec::new() }
            }
            _ => Feed { text: Text::Unknown, from: Vec::new() },
        }
    }

    /// A text that a shell runs.
    fn text(&mut self, text: &str, stdin: &Feed) -> Feed {
        let head = text.trim_start();
        if head.starts_with(UNKNOWN)
            && !head.trim_matches(|c: char| c == UNKNOWN || c == '\u{1}').contains(char::is_whitespace)
        {
            self.note(danger("unknown-code", "text that is not known is run by a shell"));
        }
        Feed { text: self.line(text, &stdin.text), from: Vec::new() }
    }

    /// A file that a shell runs.
    pub(super) fn script(&mut self, path: &str) -> Feed {
        match self.content(path) {
            Text::Known(text) => self.text(&text, &Feed { text: Text::None, from: Vec::new() }),
            Text::Remote => {
                self.note(danger("unknown-code", "a file from the network is run by a shell"));
                Feed { text: Text::Unknown, from: Vec::new() }
            }
            Text::Unknown if path.starts_with("/dev/fd/") => {
                self.note(danger("unknown-code", "text that is not known is run by a shell"));
                Feed { text: Text::Unknown, from: Vec::new() }
            }
            _ if path == "/dev/stdin" || path == "-" => Feed { text: Text::Unknown, from: Vec::new() },
            _ => Feed { text: Text::Unknown, from: Vec::new() },
        }
    }

    fn ssh(&mut self, name: &str, args: &[String], stdin: &Feed) -> Option<Feed> {
        if name == "sshpass" {
            return Some(self.invoke(behind_options(args, "pfde", 0).to_vec(), stdin));
        }
        let behind = behind_options(args, "bcDEeFIiJLlmOopQRSWw", 0);
        let inner = behind_options(behind.get(1..)?, "p", 0);
        Some(if inner.is_empty() { self.fed_remote(stdin) } else { self.text(&inner.join(" "), stdin) })
    }

    fn fed_remote(&mut self, stdin: &Feed) -> Feed {
        if let Text::Known(text) = &stdin.text {
            self.line(&text.clone(), &Text::None);
        }
        Feed { text: Text::Unknown, from: Vec::new() }
    }

    fn xargs(&mut self, name: &str, args: &[String], stdin: &Feed) -> Feed {
        let call = Call { name, args, stdin: &Text::None, cwd: "." };
        let mark = call
            .value(&["-I", "--replace", "-J"])
            .map(str::to_owned)
            .or((name == "parallel").then(|| "{}".to_owned()));
        let mut inner = behind_options(args, "aIJEeLnPsdj", 0).to_vec();
        let mut targets =
            if call.any(&["-a", "--arg-file"]) { vec!["*".to_owned()] } else { listed(stdin, self.cwd()) };
        if let Some(at) = inner.iter().position(|arg| arg.starts_with(":::")) {
            targets = inner.split_off(at).into_iter().skip(1).collect();
        }
        if name == "parallel" && inner.len() <= 1 {
            let line = inner.first().cloned().unwrap_or_default();
            for target in targets.iter().take(8) {
                self.line(
                    &if line.contains("{}") {
                        line.replace("{}", target)
                    } else {
                        format!("{line} {target}")
                    },
                    &Text::None,
                );
            }
            return Feed { text: Text::Unknown, from: Vec::new() };
        }
        let mark =
            mark.filter(|mark| !mark.is_empty() && inner.iter().any(|arg| arg.contains(mark.as_str())));
        match mark {
            Some(mark) => {
                for target in targets.iter().take(8) {
                    let argv: Vec<String> = inner.iter().map(|arg| arg.replace(&mark, target)).collect();
                    self.invoke(argv, &Feed { text: Text::None, from: Vec::new() });
                }
            }
            None => {
                let inner_shell = inner.first().is_some_and(|name| SHELLS.contains(&base_name(name)));
                if inner_shell && !inner.iter().any(|arg| arg == "-c") {
                    return Feed { text: Text::Unknown, from: Vec::new() };
                }
                inner.append(&mut targets);
                if inner_shell && inner.last().is_some_and(|last| last == "*") && inner.len() == 3 {
                    self.note(danger("unknown-code", "text that is not known is run by a shell"));
                }
                self.invoke(inner, &Feed { text: Text::None, from: Vec::new() });
            }
        }
        Feed { text: Text::Unknown, from: Vec::new() }
    }

    fn find(&mut self, args: &[String]) -> Feed {
        let targets = found(args);
        let cwd = self.cwd().to_owned();
        let mut rest = args.iter();
        while let Some(arg) = rest.next() {
            match arg.as_str() {
                "-delete" => {
                    let own: Vec<String> = ["-r".to_owned()].into_iter().chain(targets.clone()).collect();
                    let call = Call { name: "rm", args: &own, stdin: &Text::None, cwd: &cwd };
                    let only_empty = args.iter().any(|arg| arg == "-empty")
                        && targets.iter().all(|target| !target.starts_with(['/', '~']));
                    self.note(super::files::judge(&call).filter(|_| !only_empty));
                }
                "-exec" | "-execdir" | "-ok" | "-okdir" => {
                    let inner: Vec<&String> =
                        rest.by_ref().take_while(|arg| !matches!(arg.as_str(), ";" | "+")).collect();
                    for target in &targets {
                        let argv = inner.iter().map(|arg| arg.replace("{}", target)).collect();
                        self.invoke(argv, &Feed { text: Text::None, from: Vec::new() });
                    }
                }
                "-fprint" | "-fprintf" | "-fls" | "-fprint0" => {
                    if let Some(path) = rest.next() {
                        self.note(super::files::write(path, &cwd, false, false));
                    }
                }
                _ => {}
            }
        }
        let from = ["find".to_owned()].into_iter().chain(args.iter().cloned()).collect();
        Feed { text: Text::Unknown, from }
    }

    fn fd(&mut self, args: &[String]) -> Option<Feed> {
        let at =
            args.iter().position(|arg| matches!(arg.as_str(), "-x" | "-X" | "--exec" | "--exec-batch"))?;
        let (own, inner) = args.split_at_checked(at)?;
        let target = fd_target(own);
        let inner = inner.get(1..)?;
        let has_mark = inner.iter().any(|arg| arg.contains('{'));
        let mut argv: Vec<String> = inner.iter().map(|arg| arg.replace("{}", &target)).collect();
        if !has_mark {
            argv.push(target);
        }
        Some(self.invoke(argv, &Feed { text: Text::None, from: Vec::new() }))
    }

    /// `docker exec web …`, `docker run -v /:/x image …`, `kubectl exec pod -- …`.
    fn container(&mut self, args: &[String], stdin: &Feed) -> Option<Feed> {
        let at = args.iter().position(|arg| matches!(arg.as_str(), "exec" | "run" | "debug" | "rsh"))?;
        let word = args.get(at)?;
        if args.iter().take(at).any(|arg| matches!(arg.as_str(), "delete" | "rm" | "apply")) {
            return None;
        }
        let rest = args.get(at + 1..)?;
        let inner = match rest.iter().position(|arg| arg == "--") {
            Some(dashes) => rest.get(dashes + 1..)?,
            None => behind_options(rest, "vewuplmhacnfe", 1),
        };
        let mounts = rest
            .iter()
            .any(|arg| arg.contains(":/") || arg.starts_with("type=bind") || arg == "--privileged");
        if inner.is_empty() || (word == "run" && !mounts) {
            return Some(Feed { text: Text::Unknown, from: Vec::new() });
        }
        Some(self.invoke(inner.to_vec(), stdin))
    }

    fn terminal(&mut self, name: &str, args: &[String]) -> Option<Feed> {
        for arg in args.iter().filter(|arg| arg.contains(' ')) {
            self.line(arg, &Text::None);
        }
        let line: Vec<String> = args
            .iter()
            .filter(|arg| !arg.starts_with('-'))
            .skip(usize::from(name != "screen"))
            .cloned()
            .collect();
        (!line.is_empty()).then(|| self.invoke(line, &Feed { text: Text::None, from: Vec::new() }))
    }

    fn windows(&mut self, name: &str, args: &[String]) -> Feed {
        let lower = |arg: &String| arg.to_ascii_lowercase();
        let at = args.iter().position(|arg| {
            let arg = lower(arg);
            if name == "cmd" {
                matches!(arg.as_str(), "/c" | "/k")
            } else {
                "-command".starts_with(&arg) && arg.len() > 1
            }
        });
        let hidden =
            |arg: &String| lower(arg).starts_with("-enc") || matches!(lower(arg).as_str(), "-e" | "-ec");
        if name != "cmd" && args.iter().any(hidden) {
            self.note(danger("unknown-code", "runs code that the line does not show"));
        }
        let line = args.get(at.map_or(0, |at| at + 1)..).unwrap_or_default().join(" ");
        self.note(windows::judge(&line));
        Feed { text: Text::Unknown, from: Vec::new() }
    }

    /// Lines inside options.
    fn hidden_line(&mut self, name: &str, args: &[String]) -> Option<Feed> {
        let call = Call { name, args, stdin: &Text::None, cwd: "." };
        let lines: Vec<String> = match name {
            "ansible" => call.value(&["-a", "--args"]).into_iter().map(str::to_owned).collect(),
            "git" => git_lines(args),
            "tar" => args
                .iter()
                .filter_map(|arg| arg.split_once("exec=").or_else(|| arg.split_once("--to-command=")))
                .map(|(_, line)| line.to_owned())
                .collect(),
            "gcloud" => call.value(&["--command"]).into_iter().map(str::to_owned).collect(),
            "pdsh" | "pssh" | "clush" => args.last().cloned().into_iter().collect(),
            "osascript" => args
                .iter()
                .filter_map(|arg| arg.split_once("do shell script"))
                .map(|(_, line)| line.trim().trim_matches('"').to_owned())
                .collect(),
            _ => Vec::new(),
        };
        for line in lines {
            self.line(&line, &Text::None);
        }
        None
    }
}

/// Lines that git runs: `alias.x=!…`, `submodule foreach …`, `bisect run …`, `rebase --exec …`.
fn git_lines(args: &[String]) -> Vec<String> {
    let alias = args
        .iter()
        .filter_map(|arg| arg.split_once('!').filter(|(key, _)| key.is_empty() || key.starts_with("alias.")))
        .map(|(_, line)| line.to_owned());
    let runs = args.windows(2).position(|pair| matches!(pair, [a, b] if (a == "submodule" && b == "foreach") || (a == "bisect" && b == "run")));
    let run = runs.map(|at| behind_options(args.get(at + 2..).unwrap_or_default(), "", 0).join(" "));
    let exec = args.windows(2).filter_map(|pair| match pair {
        [key, line] if key == "--exec" || key == "-x" || key.ends_with("-filter") => Some(line.clone()),
        _ => None,
    });
    alias.chain(run).chain(exec).collect()
}

/// The arguments behind a program's own options, and behind `operands` more words.
pub(super) fn behind_options<'a>(args: &'a [String], valued: &str, operands: usize) -> &'a [String] {
    let mut rest = args;
    let mut left = operands;
    while let [first, after @ ..] = rest {
        let takes_value = LONG_WITH_VALUE.contains(&first.as_str())
            || (first.len() == 2
                && first.starts_with('-')
                && first.chars().nth(1).is_some_and(|c| valued.contains(c)));
        if first == "--" {
            return after.get(left..).unwrap_or_default();
        }
        if takes_value {
            rest = after.get(1..).unwrap_or_default();
        } else if first.starts_with('-') && first.len() > 1 {
            rest = after;
        } else if left > 0 {
            left -= 1;
            rest = after;
        } else {
            break;
        }
    }
    rest
}

/// What `find` would name: where it starts, joined to the name it looks for.
fn found(args: &[String]) -> Vec<String> {
    let mut starts: Vec<&str> = args
        .iter()
        .map(String::as_str)
        .skip_while(|arg| matches!(*arg, "-L" | "-P" | "-H"))
        .take_while(|arg| !arg.starts_with('-') && *arg != "(" && *arg != "!")
        .collect();
    if starts.is_empty() {
        starts.push(".");
    }
    let mut names = Vec::new();
    let mut before = "";
    for pair in args.windows(2) {
        let [key, value] = pair else { continue };
        let is_name =
            matches!(key.as_str(), "-name" | "-iname" | "-path" | "-ipath" | "-wholename" | "-regex");
        if is_name && !matches!(before, "!" | "-not") {
            names.push(
                value.trim_start_matches("*/").trim_end_matches("/*").trim_start_matches(".*/").to_owned(),
            );
        }
        before = key;
    }
    if names.is_empty()
        || args.iter().any(|arg| matches!(arg.as_str(), "-o" | "-or"))
            && names.iter().any(|name| !target::is_artefact(name))
    {
        names = vec!["*".to_owned()];
    }
    starts
        .iter()
        .take(4)
        .flat_map(|start| {
            names.iter().take(4).map(move |name| format!("{}/{name}", start.trim_end_matches('/')))
        })
        .collect()
}

fn fd_target(args: &[String]) -> String {
    let call = Call { name: "fd", args, stdin: &Text::None, cwd: "." };
    match call.value(&["-e", "--extension"]) {
        Some(ending) => format!("./*.{ending}"),
        None => {
            call.operand(0).filter(|name| target::is_artefact(name)).map_or("*".to_owned(), str::to_owned)
        }
    }
}

/// The names that a feed lists.
pub(super) fn listed(feed: &Feed, _cwd: &str) -> Vec<String> {
    if let Text::Known(text) = &feed.text {
        return text.split_whitespace().take(16).map(str::to_owned).collect();
    }
    let args = feed.from.get(1..).unwrap_or_default();
    match feed.from.first().map(String::as_str) {
        Some("find") => found(args),
        Some("fd" | "fdfind") => vec![fd_target(args)],
        Some("grep" | "rg") => {
            let pattern =
                args.iter().find(|arg| !arg.starts_with('-')).map(|arg| arg.replace(['\\', '$', '^'], ""));
            vec![
                pattern
                    .filter(|name| target::is_artefact(name))
                    .map_or("*".to_owned(), |name| format!("*{name}")),
            ]
        }
        _ => vec!["*".to_owned()],
    }
}

/// A program's name that a pattern means, if it means a dangerous one.
pub(super) fn globbed(word: &str) -> Option<&'static str> {
    let pattern = base_name(word);
    if !word.contains('/') || pattern.chars().all(|c| c == '*') {
        return None;
    }
    ["rm", "dd", "mkfs", "shred", "bash", "sh", "wipefs", "chmod", "chown"]
        .into_iter()
        .find(|name| glob_matches(pattern, name))
}

fn glob_matches(pattern: &str, name: &str) -> bool {
    let mut chars = pattern.chars();
    match chars.next() {
        None => name.is_empty(),
        Some('*') => {
            (0..=name.len()).any(|at| name.get(at..).is_some_and(|rest| glob_matches(chars.as_str(), rest)))
        }
        Some('[') => {
            let Some((set, rest)) = chars.as_str().split_once(']') else { return false };
            name.chars().next().is_some_and(|c| {
                set.contains(c) && glob_matches(rest, name.get(c.len_utf8()..).unwrap_or_default())
            })
        }
        Some(c) => name.chars().next().is_some_and(|first| {
            (c == '?' || c == first)
                && glob_matches(chars.as_str(), name.get(first.len_utf8()..).unwrap_or_default())
        }),
    }
}
