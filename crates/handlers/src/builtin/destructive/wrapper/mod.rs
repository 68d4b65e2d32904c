//! Programs that run other programs, or text.

mod each;
mod elsewhere;
mod glob;
mod shell;
mod tables;

pub(super) use each::listed;
pub(super) use glob::globbed;
pub(super) use tables::behind_options;

use super::call::{Call, Text, base_name};
use super::walk::{Feed, Walk};
use tables::{PLAIN, SHELLS, WITH_WORD};

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
}
