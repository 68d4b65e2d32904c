//! Which programs run their arguments, and where those begin.

/// Programs that run the rest of their arguments: their short options with a value, and how many words stand before.
pub(super) const PLAIN: &[(&str, &str, usize)] = &[
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
pub(super) const WITH_WORD: &[(&str, &[&str])] = &[
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

pub(super) const SHELLS: &[&str] = &["sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "fish", "rbash"];

/// The arguments behind a program's own options, and behind `operands` more words.
pub(in crate::builtin::destructive) fn behind_options<'a>(
    args: &'a [String],
    valued: &str,
    operands: usize,
) -> &'a [String] {
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
