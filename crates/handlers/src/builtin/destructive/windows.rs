//! PowerShell and cmd lines: cut into commands of words, and judged by tables. No tree: what both shells share is that a
//! command begins a line, or follows `;`, `|`, `&` or an opening bracket.

use super::call::{Danger, Text, UNKNOWN, danger};
use super::target::{Place, is_artefact, place};
use super::walk::{Feed, Walk};

/// How deep lines inside lines are opened.
const DEEPEST: u32 = 6;

/// Judges a line.
pub(super) fn judge(text: &str) -> Option<Danger> {
    judge_at(text, 0)
}

fn judge_at(text: &str, depth: u32) -> Option<Danger> {
    if depth > DEEPEST {
        return danger("unknown-code", "lines inside lines, too deep to be judged");
    }
    let lower = text.to_ascii_lowercase();
    let deletes = [
        ("]::delete", "deletes files"),
        ("]::formatvolume", "formats a volume"),
        (".delete()", "deletes what flows in"),
    ];
    let mut feed: Option<Command> = None;
    let mut folder = ".".to_owned();
    for command in cut(text, depth) {
        let Some(name) = command.words.first().cloned() else { continue };
        let from = feed.take().filter(|_| command.piped);
        let seen = Seen {
            name: &name,
            words: command.words.get(1..).unwrap_or_default(),
            from: from.as_ref(),
            folder: &folder,
            depth,
        };
        if let Some(found) = seen.judge() {
            return Some(found);
        }
        if matches!(name.as_str(), "cd" | "set-location" | "sl" | "chdir" | "pushd" | "push-location")
            && let Some(to) = seen.targets().first()
        {
            folder = super::target::join(to, &folder);
        }
        feed = Some(Command {
            words: if from.is_some() && !is_lister(&name) {
                from.map(|from| from.words).unwrap_or_default()
            } else {
                command.words
            },
            piped: false,
        });
    }
    let outside: String = unquoted(&lower);
    let hidden = ["irm ", "iwr ", "invoke-webrequest", "invoke-restmethod", "downloadstring", "frombase64"];
    if outside.contains("[scriptblock]::create") && hidden.iter().any(|word| outside.contains(word)) {
        return danger("unknown-code", "runs text that is not known");
    }
    deletes.iter().find(|(call, _)| outside.contains(call)).and_then(|(_, what)| danger("delete", *what))
}

struct Command {
    /// The first word is in lower case.
    words: Vec<String>,
    /// Something flows in.
    piped: bool,
}

/// A command in its place.
struct Seen<'a> {
    name: &'a str,
    words: &'a [String],
    from: Option<&'a Command>,
    folder: &'a str,
    depth: u32,
}

fn is_lister(name: &str) -> bool {
    matches!(
        name,
        "get-childitem"
            | "gci"
            | "dir"
            | "ls"
            | "get-item"
            | "gi"
            | "get-content"
            | "gc"
            | "type"
            | "cat"
            | "invoke-webrequest"
            | "iwr"
            | "irm"
            | "invoke-restmethod"
            | "curl"
            | "wget"
            | "echo"
            | "write-output"
            | "get-process"
            | "gps"
            | "get-service"
            | "get-vm"
            | "get-disk"
            | "get-volume"
            | "get-partition"
    )
}

impl Seen<'_> {
    fn has(&self, names: &[&str]) -> bool {
        self.words.iter().any(|word| names.iter().any(|name| word.eq_ignore_ascii_case(name)))
    }

    /// A PowerShell option, whole or cut short (`-Rec`).
    fn flag(&self, name: &str, least: usize) -> bool {
        self.words.iter().any(|word| {
            let word = word.to_ascii_lowercase();
            let word = word.split(':').next().unwrap_or_default();
            word.len() >= least && name.starts_with(word)
        })
    }

    /// The words that name things, as paths with `/`.
    fn targets(&self) -> Vec<String> {
        let valued = [
            "-filter",
            "-include",
            "-exclude",
            "-value",
            "-encoding",
            "-erroraction",
            "-ea",
            "-depth",
            "-credential",
            "-stream",
            "-newername",
            "-destination",
        ];
        let mut found = Vec::new();
        let mut words = self.words.iter();
        while let Some(word) = words.next() {
            let lower = word.to_ascii_lowercase();
            if valued.contains(&lower.as_str()) {
                words.next();
            } else if !is_option(word)
                && !matches!(lower.as_str(), ">" | ">>" | "2>" | "nul" | "2>nul" | ">nul" | "$null")
            {
                found.extend(word.split(',').filter(|part| !part.is_empty()).map(path));
            }
        }
        found
    }

    fn judge(&self) -> Option<Danger> {
        if self.flag("-whatif", 3)
            && !self.words.iter().any(|word| word.eq_ignore_ascii_case("-whatif:$false"))
            || self.has(&["/?", "-?", "--help"])
        {
            return None;
        }
        self.inner()
            .or_else(|| self.files())
            .or_else(|| self.redirects())
            .or_else(|| self.disks())
            .or_else(|| self.power())
            .or_else(|| self.guards())
            .or_else(|| self.cmdlets())
            .or_else(|| self.shared())
    }

    /// Programs that run a text.
    fn inner(&self) -> Option<Danger> {
        let rest = |at: usize| self.words.get(at..).unwrap_or_default().join(" ");
        let after = |names: &[&str]| {
            self.words
                .iter()
                .position(|word| names.iter().any(|name| word.eq_ignore_ascii_case(name)))
                .map(|at| rest(at + 1))
        };
        let line = match self.name {
            "powershell" | "pwsh" => {
                // what is hidden on purpose is not looked into
                let hides = |word: &String| {
                    word.len() > 1 && "-encodedcommand".starts_with(&word.to_ascii_lowercase())
                        || word.eq_ignore_ascii_case("-enc")
                        || word.eq_ignore_ascii_case("-ec")
                };
                if self.words.iter().any(hides) {
                    return danger("unknown-code", "runs code that the line does not show");
                }
                if self.from.is_some() && self.words.iter().all(|word| word.starts_with('-')) {
                    return self.expression("");
                }
                after(&["-command", "-c"])
                    .or_else(|| self.words.iter().position(|word| !word.starts_with('-')).map(rest))?
            }
            "cmd" => after(&["/c", "/k", "/r"])?,
            "forfiles" => after(&["/c"])?,
            "start" | "start-process" | "saps" | "call" | "runas" | "gsudo" | "psexec" | "wmic"
                if !self.words.is_empty() =>
            {
                let words: Vec<&str> = self
                    .words
                    .iter()
                    .map(String::as_str)
                    .filter(|word| {
                        !matches!(
                            word.to_ascii_lowercase().as_str(),
                            "-argumentlist"
                                | "-args"
                                | "-filepath"
                                | "-wait"
                                | "-verb"
                                | "runas"
                                | "/b"
                                | "/wait"
                                | "process"
                                | "create"
                                | "-nonewwindow"
                        ) && !word.is_empty()
                    })
                    .collect();
                words.join(" ").replace(',', " ")
            }
            "invoke-expression" | "iex" => {
                let text = rest(0);
                let remote = self.from.is_some() || text.trim().is_empty() || text.contains('$');
                if remote {
                    return self.expression(&text);
                }
                text
            }
            "invoke-command" | "icm" | "foreach-object" | "%" | "foreach" | "schtasks" | "bash" | "wsl"
            | "sh" => {
                let text = if self.name == "schtasks" { after(&["/tr"])? } else { rest(0) };
                if matches!(self.name, "bash" | "wsl" | "sh") {
                    return self.shared();
                }
                text
            }
            _ => return None,
        };
        (!line.trim().is_empty()).then(|| judge_at(&line, self.depth + 1)).flatten()
    }

    fn expression(&self, text: &str) -> Option<Danger> {
        if let Some(from) = self.from
            && matches!(from.words.first().map(String::as_str), Some("echo" | "write-output"))
        {
            return judge_at(&from.words.get(1..).unwrap_or_default().join(" "), self.depth + 1);
        }
        judge_at(text, self.depth + 1).or_else(|| danger("unknown-code", "runs text that is not known"))
    }

    fn files(&self) -> Option<Danger> {
        match self.name {
            "remove-item" | "ri" | "rm" | "rmdir" | "rd" | "del" | "erase" => self.remove(),
            "clear-content" | "clc" | "clear-item" | "cli" => self
                .targets()
                .iter()
                .find_map(|path| super::files::emptied(path, self.folder))
                .or_else(|| danger("overwrite", "empties files").filter(|_| self.from.is_some())),
            "set-content" | "sc" | "out-file" | "new-item" | "ni" => {
                let empty = self.words.windows(2).any(|pair| matches!(pair, [key, value] if key.eq_ignore_ascii_case("-value") && (value.is_empty() || value == "$null")));
                let forced =
                    matches!(self.name, "new-item" | "ni") && self.flag("-force", 3) && self.has(&["file"]);
                self.targets().iter().find_map(|path| {
                    if empty || forced {
                        super::files::emptied(path, self.folder)
                    } else {
                        written(path, self.folder)
                    }
                })
            }
            "move-item" | "mi" | "move" | "ren" | "rename-item" => {
                self.targets().iter().take(1).find_map(|path| {
                    danger("delete", format!("moves `{path}` away")).filter(|_| {
                        matches!(place(path, self.folder), Place::System | Place::Home | Place::Guard)
                            && path.matches('/').count() <= 2
                    })
                })
            }
            "copy" | "copy-item" | "cp" | "cpi" | "xcopy" => {
                let nothing = self.words.first().is_some_and(|word| {
                    matches!(word.to_ascii_lowercase().as_str(), "nul" | "$null" | "/dev/null")
                });
                self.targets().last().and_then(|path| {
                    if nothing {
                        super::files::emptied(path, self.folder)
                    } else {
                        written(path, self.folder)
                    }
                })
            }
            "robocopy" => danger("delete", "deletes in the aim what the source lacks")
                .filter(|_| self.has(&["/mir", "/purge", "/move", "/mov"]) && !self.has(&["/l"])),
            "takeown" | "icacls" | "cacls" | "set-acl" => {
                let wide =
                    self.targets().iter().any(|path| matches!(place(path, "."), Place::System | Place::Home));
                danger("permissions", "changes who may use system files").filter(|_| {
                    wide && (self.has(&["/r", "/t", "/reset", "/grant", "/deny", "/remove", "/setowner"])
                        || self.name == "set-acl")
                })
            }
            "attrib" => None,
            _ => None,
        }
    }

    fn remove(&self) -> Option<Danger> {
        let slashes = matches!(self.name, "rd" | "rmdir" | "del" | "erase");
        let all = self.flag("-recurse", 2)
            || self.words.iter().any(|word| slashes && word.to_ascii_lowercase().contains("/s"))
            || self.has(&["-rf", "-fr"]);
        let targets = self.targets();
        let fed = targets.is_empty() && self.from.is_some();
        let bad = |path: &str| {
            let sort = if path.to_ascii_lowercase().starts_with("hk") && path.contains(':') {
                Place::System
            } else {
                place(path, self.folder)
            };
            match sort {
                Place::Sink | Place::Temp | Place::Artefact => false,
                Place::Named | Place::InHome => all && !path.rsplit('/').next().unwrap_or(path).contains('.'),
                Place::Unknown => all || path.contains('*'),
                _ => true,
            }
        };
        if fed {
            let narrow = self
                .from
                .is_some_and(|from| from.words.iter().any(|word| is_artefact(word.trim_start_matches('*'))));
            return danger("delete", "deletes all that flows in").filter(|_| !narrow);
        }
        let path = targets.iter().find(|path| bad(path))?;
        danger("delete", format!("deletes `{}`", path.replace(UNKNOWN, "…")))
    }

    /// `> file`, `type nul > file`.
    fn redirects(&self) -> Option<Danger> {
        let at = self.words.iter().position(|word| word == ">" || word == "1>");
        let bare = self.name == ">";
        let path = if bare { self.words.first() } else { at.and_then(|at| self.words.get(at + 1)) }
            .map(|word| path(word))?;
        let nothing = bare
            || (matches!(self.name, "type" | "copy" | "cat" | "$null" | "break" | "cd." | "rem")
                && (self.has(&["nul"])
                    || self.name == "$null"
                    || self.name == "break"
                    || self.name == "cd."));
        if nothing { super::files::emptied(&path, self.folder) } else { written(&path, self.folder) }
    }

    fn disks(&self) -> Option<Danger> {
        let bad = match self.name {
            "format" | "format.com" => self.words.iter().any(|word| word.ends_with(':')),
            "format-volume" | "clear-disk" | "initialize-disk" | "remove-partition" | "resize-partition"
            | "remove-virtualdisk" | "reset-physicaldisk" | "set-partition" | "remove-storagepool" => true,
            "diskpart" => true,
            "cipher" => self.words.iter().any(|word| word.to_ascii_lowercase().starts_with("/w")),
            "vssadmin" => self.has(&["delete", "resize"]),
            "wbadmin" => self.has(&["delete", "disable"]),
            "wmic" => self.has(&["delete"]),
            "fsutil" => self
                .words
                .iter()
                .any(|word| matches!(word.to_ascii_lowercase().as_str(), "deletejournal" | "setzerodata")),
            "bcdedit" => self.has(&["/set", "/delete", "/deletevalue", "/import", "/default"]),
            "schtasks" => self.has(&["/delete"]),
            "bootrec" | "bootsect" | "sdelete" | "sdelete64" => true,
            "manage-bde" => self.has(&["-off", "-forcerecovery", "-wipefreespace", "-delete"]),
            "reg" => self.has(&["delete", "restore", "load", "unload"]) || self.guard_key(),
            "dism" => self.words.iter().any(|word| word.to_ascii_lowercase().starts_with("/remove")),
            "ntdsutil" | "mountvol" => self.has(&["/d"]),
            _ => false,
        };
        danger("disk", format!("`{}` erases or changes disks, backups or the registry", self.name))
            .filter(|_| bad)
    }

    /// `reg add …\Windows Defender /v DisableAntiSpyware`.
    fn guard_key(&self) -> bool {
        let text = self.words.join(" ").to_ascii_lowercase();
        text.contains("add")
            && ["defender", "enablelua", "disableantispyware", "disablerealtime"]
                .iter()
                .any(|word| text.contains(word))
    }

    fn power(&self) -> Option<Danger> {
        let words: Vec<String> = self.words.iter().map(|word| word.to_ascii_lowercase()).collect();
        let any = |names: &[&str]| words.iter().any(|word| names.contains(&word.trim_end_matches(".exe")));
        let vital = || {
            any(&[
                "*",
                "explorer",
                "lsass",
                "winlogon",
                "csrss",
                "svchost",
                "wininit",
                "services",
                "windefend",
                "sense",
                "mpssvc",
                "eventlog",
                "sshd",
                "termservice",
                "lanmanserver",
                "dnscache",
                "bits",
                "wuauserv",
                "winrm",
                "docker",
                "vss",
                "securityhealthservice",
                "sysmon",
                "netlogon",
                "w32time",
                "rpcss",
                "dhcp",
                "nsi",
                "wscsvc",
            ])
        };
        let fed = || self.from.is_some_and(|from| from.words.len() <= 1);
        let bad = match self.name {
            "stop-computer" | "restart-computer" | "logoff" => true,
            "shutdown" => any(&[
                "/s", "/r", "/p", "/h", "/f", "/l", "/g", "/o", "-s", "-r", "-p", "-h", "-f", "/sg", "now",
            ]),
            "stop-process" | "spps" | "kill" => vital() || fed(),
            "taskkill" => vital(),
            "stop-service" | "spsv" | "set-service" | "suspend-service" => {
                (vital() || fed()) && (self.name != "set-service" || any(&["disabled", "stopped"]))
            }
            "sc" | "net" | "net1" => {
                let account =
                    any(&["user", "localgroup", "share", "group"]) && any(&["/delete", "/active:no"]);
                account
                    || (any(&["stop", "delete", "config"])
                        && (vital() || any(&["delete"]))
                        && !any(&["start", "auto"]))
            }
            "rundll32" => {
                words.iter().any(|word| word.contains("setsuspendstate") || word.contains("lockworkstation"))
            }
            "remove-localuser"
            | "disable-localuser"
            | "disable-netadapter"
            | "remove-netipaddress"
            | "remove-netroute"
            | "disable-aduser" => true,
            "netsh" => {
                any(&["delete", "reset"])
                    || (any(&["interface"]) && words.iter().any(|word| word.contains("disable")))
            }
            _ => false,
        };
        danger("power", format!("`{}` stops the machine, vital parts of it, or takes access away", self.name))
            .filter(|_| bad)
    }

    fn guards(&self) -> Option<Danger> {
        let words: Vec<String> = self.words.iter().map(|word| word.to_ascii_lowercase()).collect();
        let any = |part: &str| words.iter().any(|word| word.contains(part));
        let bad = match self.name {
            "set-mppreference" => any("-disable") || any("-exclusion") || any("never"),
            "add-mppreference" => any("-exclusion"),
            "set-netfirewallprofile" => any("false"),
            "netsh" => any("firewall") && any("off"),
            "disable-computerrestore"
            | "clear-eventlog"
            | "limit-eventlog"
            | "remove-eventlog"
            | "clear-history"
            | "disable-windowsoptionalfeature"
            | "uninstall-windowsfeature"
            | "disable-netfirewallrule"
            | "disable-bitlocker"
            | "disable-psremoting" => true,
            "wevtutil" => {
                words.first().is_some_and(|word| matches!(word.as_str(), "cl" | "clear-log"))
                    || any("/e:false")
            }
            "auditpol" => any("/clear") || any("/remove") || any("disable"),
            "set-psreadlineoption" => any("savenothing"),
            "set-executionpolicy" => any("bypass") || any("unrestricted"),
            "set-itemproperty" | "sp" | "new-itemproperty" => {
                any("defender") || any("enablelua") || any("disableanti")
            }
            "set-smbserverconfiguration" => any("false"),
            _ => false,
        };
        danger("guard", format!("`{}` switches a guard or a record off", self.name)).filter(|_| bad)
    }

    /// `Remove-…` and `Clear-…` of what is not made again.
    fn cmdlets(&self) -> Option<Danger> {
        let (verb, noun) = self.name.split_once('-')?;
        let small = [
            "variable",
            "module",
            "psdrive",
            "job",
            "pssession",
            "typedata",
            "alias",
            "event",
            "psbreakpoint",
            "host",
            "psreadlinekeyhandler",
            "wmiobject_",
            "comobject",
        ];
        let bad = match verb {
            "remove" => noun != "item" && !small.contains(&noun),
            "clear" => matches!(
                noun,
                "recyclebin" | "disk" | "eventlog" | "itemproperty" | "dnsserverzone" | "azstorage"
            ),
            "stop" => noun.starts_with("vm") || noun.starts_with("azvm") || noun.starts_with("ec2"),
            "uninstall" => matches!(noun, "windowsfeature" | "addsdomaincontroller"),
            "unregister" => true,
            "reset" => noun.contains("disk") || noun == "computermachinepassword",
            _ => false,
        };
        danger("system", format!("`{}` removes what is not made again", self.name))
            .filter(|_| bad && (!self.words.is_empty() || self.from.is_some() || noun == "recyclebin"))
    }

    /// Programs that are the same everywhere.
    fn shared(&self) -> Option<Danger> {
        if matches!(
            self.name,
            "rm" | "cp"
                | "mv"
                | "kill"
                | "sc"
                | "shutdown"
                | "format"
                | "cat"
                | "echo"
                | "type"
                | "ls"
                | "curl"
                | "wget"
                | "sort"
                | "set"
                | "find"
                | "where"
                | "select"
                | "tee"
                | "history"
                | "ps"
                | "cd"
                | "rmdir"
                | "icacls"
                | "start"
                | "move"
                | "rename"
        ) {
            return None;
        }
        let argv: Vec<String> =
            [self.name.to_owned()].into_iter().chain(self.words.iter().cloned()).collect();
        let mut walk = Walk::default();
        walk.invoke(argv, &Feed { text: Text::None, from: Vec::new() });
        walk.found
    }
}

fn written(path: &str, folder: &str) -> Option<Danger> {
    let lower = path.to_ascii_lowercase();
    if lower.starts_with("//./physicaldrive") || lower.starts_with("//./c:") {
        return danger("disk", "writes over a disk");
    }
    let system = lower.starts_with("/windows/") || lower.ends_with("/drivers/etc/hosts");
    super::files::write(path, folder, false, false)
        .or_else(|| danger("overwrite", format!("overwrites the system file `{path}`")).filter(|_| system))
}

fn is_option(word: &str) -> bool {
    let slash =
        word.starts_with('/') && word.len() <= 3 && word.chars().skip(1).all(|c| c.is_ascii_alphabetic());
    (word.starts_with('-') && word.len() > 1)
        || slash
        || (word.starts_with('/') && word.contains(':') && word.len() < 12)
}

/// A Windows path in the shape that the other tables know.
fn path(word: &str) -> String {
    let lower = word.to_ascii_lowercase().replace('\\', "/");
    let known = [
        ("$env:temp", "/tmp/own"),
        ("$env:tmp", "/tmp/own"),
        ("%temp%", "/tmp/own"),
        ("%tmp%", "/tmp/own"),
        ("$env:userprofile", "~"),
        ("%userprofile%", "~"),
        ("$home", "~"),
        ("$env:homepath", "~"),
        ("%homepath%", "~"),
        ("$env:home", "~"),
        ("$env:systemroot", "/windows"),
        ("%systemroot%", "/windows"),
        ("$env:windir", "/windows"),
        ("%windir%", "/windows"),
        ("$env:systemdrive", "/"),
        ("%systemdrive%", "/"),
        ("$env:programfiles", "/program files"),
        ("%programfiles%", "/program files"),
        ("$env:appdata", "~/appdata"),
        ("%appdata%", "~/appdata"),
        ("$env:localappdata", "~/appdata"),
        ("%localappdata%", "~/appdata"),
        ("$pwd", "."),
        ("$_", "*"),
        ("$psitem", "*"),
        ("%cd%", "."),
        ("$psscriptroot", "."),
        ("%~dp0", "./"),
        ("@path", "*"),
        ("@file", "*"),
    ];
    let word = word.replace('\\', "/");
    for (name, value) in known {
        if let Some(rest) = lower.strip_prefix(name) {
            let tail = word.get(word.len() - rest.len()..).unwrap_or_default();
            return if tail.starts_with('.') && value == "*" {
                value.to_owned()
            } else {
                format!("{value}{tail}")
            };
        }
    }
    if word.starts_with(['$', '%', '@']) {
        let tail = word.find('/').and_then(|at| word.get(at..)).unwrap_or_default();
        return format!("{UNKNOWN}{tail}");
    }
    let mut chars = word.chars();
    if let (Some(drive), Some(':')) = (chars.next(), chars.next())
        && drive.is_ascii_alphabetic()
    {
        let rest = chars.as_str();
        let lower = rest.to_ascii_lowercase();
        if lower.starts_with("/users") {
            return format!("/Users{}", rest.get(6..).unwrap_or_default());
        }
        if lower.starts_with("/temp/") || lower.starts_with("/windows/temp/") {
            return format!("/tmp{}", rest.rfind('/').and_then(|at| rest.get(at..)).unwrap_or_default());
        }
        return if rest.starts_with('/') { rest.to_owned() } else { format!("/{rest}") };
    }
    word
}

fn unquoted(text: &str) -> String {
    let mut quote = None;
    text.chars()
        .filter(|c| {
            match quote {
                Some(open) if open == *c => quote = None,
                None if matches!(c, '"' | '\'') => quote = Some(*c),
                _ => {}
            }
            quote.is_none()
        })
        .collect()
}

/// Cuts a line into commands.
fn cut(text: &str, depth: u32) -> Vec<Command> {
    let mut done: Vec<Command> = Vec::new();
    let mut now = Command { words: Vec::new(), piped: false };
    let mut word: Option<String> = None;
    let mut quote = None;
    // most substitutions that are opened
    let mut inner_left = 32_u32;
    let mut chars = text.chars().peekable();
    let end = |now: &mut Command, word: &mut Option<String>| now.words.extend(word.take());
    while let Some(c) = chars.next() {
        match (c, quote) {
            (c, Some(open)) if c == open => quote = None,
            ('$', Some('"')) if chars.peek() == Some(&'(') && depth < DEEPEST && inner_left > 0 => {
                inner_left -= 1;
                let inner: String = chars.clone().skip(1).take_while(|c| *c != ')').take(4096).collect();
                done.extend(cut(&inner.replace('"', ""), depth + 1));
                word.get_or_insert_default().push(c);
            }
            (c, Some(_)) => word.get_or_insert_default().push(c),
            ('"' | '\'', None) => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            ('`' | '^', None) => {
                if let Some(next) = chars.next().filter(|c| *c != '\n' && *c != '\r') {
                    word.get_or_insert_default().push(next);
                }
            }
            ('#', None) if word.is_none() => while chars.next_if(|c| *c != '\n').is_some() {},
            ('>', None) => {
                let fd = word.take_if(|word| matches!(word.as_str(), "1" | "2" | "*"));
                end(&mut now, &mut word);
                let twice = chars.next_if_eq(&'>').is_some();
                now.words.push(match (fd.as_deref(), twice) {
                    (Some("2"), _) => "2>".to_owned(),
                    (_, true) => ">>".to_owned(),
                    (_, false) => ">".to_owned(),
                });
            }
            (';' | '\n' | '\r' | '&' | '|' | '(' | ')' | '{' | '}', None) => {
                end(&mut now, &mut word);
                let pipe = c == '|' && chars.peek() != Some(&'|');
                let before = now.piped && now.words.is_empty();
                let opens = matches!(c, '{' | '(')
                    && (now
                        .words
                        .first()
                        .is_some_and(|word| word == "%" || word.eq_ignore_ascii_case("foreach-object"))
                        || before);
                done.push(std::mem::replace(
                    &mut now,
                    Command { words: Vec::new(), piped: pipe || before || opens },
                ));
            }
            (c, None) if c.is_whitespace() => end(&mut now, &mut word),
            (c, None) => word.get_or_insert_default().push(c),
        }
    }
    end(&mut now, &mut word);
    done.push(now);
    done.into_iter().filter_map(trimmed).collect()
}

/// Without the words that may stand before a command; its name in lower case, without folder and `.exe`.
fn trimmed(command: Command) -> Option<Command> {
    let mut words = command.words;
    loop {
        let first = words.first()?.to_ascii_lowercase();
        let skip = match first.as_str() {
            "do" | "else" | "@echo" | "&" | "." | "try" | "finally" | "then" | "return" | "not" | "@"
            | "-" | "sudo" => 1,
            "if" => match words.get(1).map(|word| word.to_ascii_lowercase()).as_deref() {
                Some("exist" | "defined" | "errorlevel") => 3,
                Some("not") => 4,
                _ => 1,
            },
            first if first.starts_with('$') && words.get(1).is_some_and(|word| word == "=") => 2,
            _ => break,
        };
        if words.len() <= skip {
            return None;
        }
        words.drain(..skip);
    }
    let first = words.first_mut()?;
    let lower = first.trim_start_matches('@').to_ascii_lowercase();
    let name = if lower.contains(":/") || lower.contains(":\\") || lower.starts_with('.') {
        lower.rsplit(['/', '\\']).next().unwrap_or(&lower)
    } else {
        lower.rsplit('\\').next().unwrap_or(&lower)
    };
    *first = name.trim_end_matches(".exe").to_owned();
    Some(Command { words, piped: command.piped })
}
