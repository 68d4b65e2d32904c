//! What a path names: how much is lost when it goes.

use super::call::{UNKNOWN, base_name};

/// What a path names, as far as its text tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// `/dev/null` and its kind.
    Sink,
    /// A disk or another device.
    Device,
    /// Something in a temporary folder.
    Temp,
    /// What a build, a test or a cache makes again.
    Artefact,
    /// The whole tree one stands in, or above.
    Tree,
    /// Some files of the tree, by pattern.
    Several,
    /// The root, a system folder, or something in one.
    System,
    /// The home folder, or a folder right in it.
    Home,
    /// A file or folder deeper in the home folder.
    InHome,
    /// The configuration of a guard: hooks of an agent or of git, sudo's rules.
    Guard,
    /// Data that is not made again: databases, keys, settings, `.git`.
    Precious,
    /// One named file or folder of the tree.
    Named,
    /// Cannot be told.
    Unknown,
}

const ARTEFACT_NAMES: &[&str] = &[
    "build",
    "dist",
    "target",
    "out",
    "output",
    "node_modules",
    "__pycache__",
    ".cache",
    "cache",
    "coverage",
    ".coverage",
    "tmp",
    "temp",
    ".tmp",
    ".next",
    ".nuxt",
    ".turbo",
    ".parcel-cache",
    ".pytest_cache",
    ".mypy_cache",
    ".ruff_cache",
    ".tox",
    ".nox",
    ".venv",
    "venv",
    "htmlcov",
    ".gradle",
    ".eggs",
    "obj",
    "bin",
    "debug",
    "release",
    "_build",
    ".terraform",
    ".ds_store",
    "thumbs.db",
    "pods",
    "deriveddata",
    "vendor",
    ".sass-cache",
    "site",
    "public",
    "storybook-static",
    "bower_components",
    ".svelte-kit",
    ".angular",
    ".yarn",
    "logs",
    "log",
    "test-results",
    "playwright-report",
    ".nyc_output",
    "cmakefiles",
    "cmake-build-debug",
    "cmake-build-release",
    ".dart_tool",
    ".serverless",
    "elm-stuff",
    ".stack-work",
    "dist-newstyle",
    "scratch",
    "lcov.info",
    ".eslintcache",
    "core",
    "a.out",
    "nohup.out",
    "tempdir",
    "tmpdir",
    "caches",
    "artifacts",
    "artefacts",
];
const ARTEFACT_ENDINGS: &[&str] = &[
    ".pyc",
    ".pyo",
    ".o",
    ".obj",
    ".class",
    ".log",
    ".tmp",
    ".temp",
    ".swp",
    ".swo",
    ".bak",
    ".orig",
    ".rej",
    "~",
    ".cache",
    ".egg-info",
    ".gcda",
    ".gcno",
    ".d.tsbuildinfo",
    ".tsbuildinfo",
    ".pid",
    ".out",
    ".profraw",
    ".aux",
    ".toc",
    ".lock.tmp",
    ".part",
    ".old",
    ".ds_store",
];
const PRECIOUS_ENDINGS: &[&str] = &[
    ".db",
    ".sqlite",
    ".sqlite3",
    ".mdb",
    ".pem",
    ".key",
    ".p12",
    ".pfx",
    ".jks",
    ".kdbx",
    ".tfstate",
    ".tfstate.backup",
    ".dump",
    ".sql.gz",
    ".keystore",
    ".ibd",
    ".frm",
    ".vmdk",
    ".qcow2",
    ".pst",
    ".rdb",
    ".aof",
];
const PRECIOUS_NAMES: &[&str] = &[
    ".env",
    ".git",
    ".ssh",
    ".gnupg",
    ".aws",
    ".kube",
    ".hg",
    ".svn",
    "id_rsa",
    "id_ed25519",
    "id_ecdsa",
    "authorized_keys",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".bashrc",
    ".zshrc",
    ".profile",
    ".bash_profile",
    ".bash_history",
    ".zsh_history",
    "known_hosts",
    "credentials",
    ".gitconfig",
    ".password-store",
    ".vault-token",
    ".pgpass",
    ".my.cnf",
    ".docker",
    ".config",
    "backup",
    "backups",
    ".local",
];
const GUARDS: &[&str] = &[
    ".claude",
    ".cursor",
    ".codex",
    ".gemini",
    ".windsurf",
    ".hookgate",
    "hookgate.toml",
    ".git/hooks",
    ".husky",
    ".githooks",
    ".pre-commit-config.yaml",
    "lefthook.yml",
    "/etc/sudoers",
    "/etc/sudoers.d",
    "/etc/selinux",
    "/etc/apparmor",
    "/etc/apparmor.d",
    "/etc/audit",
    "/etc/pam.d",
    ".opencode",
    ".kiro",
    ".aider.conf.yml",
    "hooks.json",
    "/etc/claude-code",
];

/// Sorts a path. `cwd` is the folder it is meant from.
pub(super) fn place(path: &str, cwd: &str) -> Place {
    let full = join(path, cwd);
    if full.contains(UNKNOWN) {
        return unknown(&full);
    }
    if let Some(rest) = full.strip_prefix("/dev/") {
        return device(rest);
    }
    if is_guard(&full) {
        return Place::Guard;
    }
    if is_temp(&full) {
        return Place::Temp;
    }
    match full.chars().next() {
        Some('/') => absolute(&full),
        Some('~') => home(&full),
        _ => relative(&full),
    }
}

/// A path from `cwd`, with `.` and `..` worked out as far as the text allows.
pub(super) fn join(path: &str, cwd: &str) -> String {
    let path = path.replace('\\', "/");
    let absolute = path.starts_with(['/', '~', UNKNOWN]);
    let whole = if absolute || cwd == "." { path.clone() } else { format!("{cwd}/{path}") };
    let mut parts: Vec<&str> = Vec::new();
    let rooted = whole.starts_with('/');
    for part in whole.split('/') {
        match part {
            "" | "." => {}
            ".." if rooted && parts.is_empty() => {}
            ".." if parts.last().is_some_and(|last| *last != ".." && !last.starts_with('~')) => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    let text = parts.join("/");
    match (rooted, text.is_empty()) {
        (true, _) => format!("/{text}"),
        (false, true) => ".".to_owned(),
        (false, false) => text,
    }
}

fn unknown(full: &str) -> Place {
    let (before, after) = full.split_once(UNKNOWN).unwrap_or((full, ""));
    let tail: String = after.chars().filter(|c| *c != UNKNOWN).collect();
    if is_temp(before) || before == "/tmp/" {
        return Place::Temp;
    }
    let parts_before: Vec<&str> = before.split('/').filter(|part| !part.is_empty()).collect();
    if parts_before.iter().any(|part| is_artefact(part))
        || tail.split('/').next_back().is_some_and(is_artefact)
    {
        return Place::Artefact;
    }
    if before.is_empty() {
        return if tail.trim_matches(['/', '*', '.']).is_empty() {
            Place::Unknown
        } else {
            tail_of_unknown(&tail)
        };
    }
    if before.starts_with(['/', '~']) {
        return if parts_before.len() > 3 { Place::InHome } else { Place::System };
    }
    if is_guard(before) { Place::Guard } else { Place::Named }
}

/// `$DIR/src`: with nothing in the variable it is `/src`.
fn tail_of_unknown(tail: &str) -> Place {
    if tail.contains('/') && !base_name(tail).contains('.') { Place::Unknown } else { Place::Named }
}

fn device(rest: &str) -> Place {
    let name = rest.split('/').next().unwrap_or(rest);
    match name {
        "null" | "stdout" | "stderr" | "stdin" | "tty" | "fd" | "zero" | "full" | "random" | "urandom"
        | "tcp" | "udp" | "pts" => Place::Sink,
        "shm" => Place::Temp,
        _ => Place::Device,
    }
}

fn is_temp(full: &str) -> bool {
    ["/tmp/", "/var/tmp/", "/private/tmp/", "/var/folders/", "/run/user/"]
        .iter()
        .any(|root| full.len() > root.len() && full.starts_with(root))
}

fn is_guard(full: &str) -> bool {
    GUARDS.iter().any(|guard| {
        let at = if guard.starts_with('/') { full.strip_prefix(guard) } else { inside(full, guard) };
        at.is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '.']))
    })
}

/// What follows a relative piece of a path, where the piece begins at a slash or at the beginning.
fn inside<'a>(full: &'a str, piece: &str) -> Option<&'a str> {
    full.match_indices(piece).find_map(|(at, found)| {
        let before = full.get(..at)?;
        let rest = full.get(at + found.len()..)?;
        let whole =
            (before.is_empty() || before.ends_with('/')) && (rest.is_empty() || rest.starts_with('/'));
        whole.then_some(rest)
    })
}

/// A name that a build, a test run or a cache makes again.
pub(super) fn is_artefact(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let bare = name.trim_end_matches(['*', '/']).trim_start_matches('*');
    ARTEFACT_NAMES.contains(&bare)
        || ARTEFACT_ENDINGS.iter().any(|end| bare.ends_with(end) && (bare.len() > 1 || name.len() > 1))
        || (bare.starts_with("cmake-build") || bare.starts_with("bazel-"))
        || ["tmp", "temp", "cache", "build"].iter().any(|word| {
            bare.starts_with(&format!("{word}-"))
                || bare.ends_with(&format!("-{word}"))
                || bare.starts_with(&format!("{word}_"))
                || bare.ends_with(&format!("_{word}"))
        })
}

fn is_precious(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    PRECIOUS_NAMES.contains(&name.as_str())
        || PRECIOUS_ENDINGS.iter().any(|end| name.ends_with(end))
        || (name.starts_with(".env.")
            && !["example", "sample", "template"].iter().any(|end| name.ends_with(end)))
        || name.ends_with("_history")
}

fn is_glob(name: &str) -> bool {
    name.contains(['*', '?', '['])
}

/// `*`, `.*`, `*.*`: everything.
fn is_whole_glob(name: &str) -> bool {
    is_glob(name) && name.chars().all(|c| matches!(c, '*' | '?' | '.' | '[' | ']' | '!' | '^'))
}

fn absolute(full: &str) -> Place {
    let parts: Vec<&str> = full.split('/').filter(|part| !part.is_empty()).collect();
    let last = parts.last().copied().unwrap_or_default();
    let first = parts.first().copied().unwrap_or_default();
    if matches!(first, "home" | "Users" | "workspace" | "workspaces" | "repo" | "code" | "app" | "work") {
        let inner = if matches!(first, "home" | "Users") { 2 } else { 1 };
        if parts.len() <= inner || is_whole_glob(last) {
            return Place::System;
        }
        let rest = parts.get(inner..).unwrap_or_default();
        return match inner {
            2 => home(&format!("~/{}", rest.join("/"))),
            _ => relative(&rest.join("/")),
        };
    }
    if parts.len() >= 3
        && is_artefact(last)
        && !matches!(first, "etc" | "usr" | "var" | "boot" | "lib" | "bin" | "sbin")
    {
        return Place::Artefact;
    }
    Place::System
}

fn home(full: &str) -> Place {
    let parts: Vec<&str> = full.split('/').skip(1).filter(|part| !part.is_empty()).collect();
    let last = parts.last().copied().unwrap_or_default();
    if parts.is_empty() || (is_whole_glob(last) && parts.len() == 1) {
        return Place::Home;
    }
    if parts.iter().any(|part| is_precious(part) && *part != ".config" && *part != ".local") {
        return Place::Precious;
    }
    if parts.iter().skip(1).any(|part| is_artefact(part))
        || (parts.len() >= 2 && parts.first() == Some(&".cache"))
    {
        return Place::Artefact;
    }
    if parts.len() == 1 && !last.contains('.') || last.starts_with('.') {
        return Place::Home;
    }
    if is_glob(last) { Place::Home } else { Place::InHome }
}

fn relative(full: &str) -> Place {
    let parts: Vec<&str> = full.split('/').collect();
    let last = parts.last().copied().unwrap_or_default();
    let only = parts.len() == 1;
    if parts.first() == Some(&"..") && (parts.iter().all(|part| *part == "..") || is_whole_glob(last)) {
        return Place::Tree;
    }
    if only && (full == "." || is_whole_glob(full)) {
        return Place::Tree;
    }
    if parts.iter().any(|part| is_precious(part)) {
        return Place::Precious;
    }
    if parts.iter().any(|part| is_artefact(part)) {
        return Place::Artefact;
    }
    if is_glob(last) {
        return if is_whole_glob(last) && only { Place::Tree } else { Place::Several };
    }
    Place::Named
}
