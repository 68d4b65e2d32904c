//! The machine itself: power, processes, services, users, network, packages, logs, and guards.

use super::call::{Call, Danger, UNKNOWN, base_name, danger};

pub(super) fn judge(call: &Call<'_>) -> Option<Danger> {
    if call.is_harmless_mode() {
        return None;
    }
    power(call)
        .or_else(|| processes(call))
        .or_else(|| service(call))
        .or_else(|| network(call))
        .or_else(|| users(call))
        .or_else(|| packages(call))
        .or_else(|| guards(call))
}

fn power(call: &Call<'_>) -> Option<Danger> {
    let stops = match call.name {
        "shutdown" => !call.any(&["-c", "-k"]),
        "reboot" | "halt" | "poweroff" => !call.any(&["-w", "--wtmp-only"]),
        "init" | "telinit" => matches!(call.operand(0), Some("0" | "6" | "1" | "s" | "S")),
        "kexec" => call.any(&["-e", "--exec"]),
        "pmset" => matches!(call.operand(0), Some("sleepnow")),
        "busctl" | "dbus-send" => {
            call.args.iter().any(|arg| arg.contains("PowerOff") || arg.contains("Reboot"))
        }
        "osascript" => call.args.iter().any(|arg| {
            arg.contains("shut down")
                || arg.contains("restart")
                || arg.contains("empty trash")
                || arg.contains("empty the trash")
                || arg.contains("delete every")
        }),
        "systemctl" | "loginctl" => matches!(
            call.operand(0),
            Some(
                "poweroff"
                    | "reboot"
                    | "halt"
                    | "kexec"
                    | "suspend"
                    | "hibernate"
                    | "rescue"
                    | "emergency"
                    | "isolate"
                    | "soft-reboot"
                    | "exit"
                    | "terminate-user"
                    | "kill-user"
            )
        ),
        "ipmitool" => call.operands().any(|word| matches!(word, "off" | "cycle" | "reset")),
        _ => false,
    };
    danger("power", "stops or restarts the machine").filter(|_| stops)
}

fn processes(call: &Call<'_>) -> Option<Danger> {
    // signals that ask for something else than the end
    let asks = ["-HUP", "-1", "-SIGHUP", "-USR1", "-USR2", "-CONT", "-WINCH", "-0", "-l", "-L"];
    let signal = call.args.first().filter(|_| call.args.len() > 1);
    if call.name != "killall5"
        && signal.is_some_and(|signal| asks.contains(&signal.as_str()))
        && !call.args.iter().skip(1).any(|target| target == "-1")
    {
        return None;
    }
    let all = match call.name {
        "kill" => {
            let mut targets = call
                .args
                .iter()
                .map(String::as_str)
                .enumerate()
                .filter(|(n, arg)| !(*n == 0 && arg.starts_with('-') && call.args.len() > 1));
            !call.any(&["-l", "-L", "-0"]) && targets.any(|(_, arg)| matches!(arg, "-1" | "1"))
        }
        "killall5" => true,
        "killall" => {
            call.any(&["-u", "--user"]) || call.operands().any(|name| is_vital(name) || is_server(name))
        }
        "pkill" => {
            call.any(&["-u", "-U", "--euid", "-v", "--inverse"])
                || call
                    .operands()
                    .any(|word| is_vital(word) || is_server(word) || matches!(word, "." | ".*" | "" | "^"))
        }
        "skill" | "snice" => true,
        "taskkill" => call.args.iter().any(|arg| arg == "*"),
        "fuser" => call.short("k") && call.operands().any(|path| matches!(path, "/" | "/home" | "/usr")),
        "xkill" => call.exact("-all"),
        _ => false,
    };
    danger("power", "ends vital processes or all of them").filter(|_| all)
}

/// Services and programs without which the machine, its access or its guards are gone.
fn is_vital(name: &str) -> bool {
    let name = name
        .trim_start_matches('^')
        .trim_end_matches('$')
        .trim_end_matches(".service")
        .trim_end_matches(".socket");
    matches!(
        name,
        "sshd"
            | "ssh"
            | "init"
            | "systemd"
            | "launchd"
            | "dbus"
            | "dbus-daemon"
            | "networking"
            | "network"
            | "NetworkManager"
            | "systemd-networkd"
            | "systemd-resolved"
            | "systemd-logind"
            | "systemd-journald"
            | "firewalld"
            | "ufw"
            | "apparmor"
            | "auditd"
            | "fail2ban"
            | "falco"
            | "crowdsec"
            | "nftables"
            | "iptables"
            | "selinux"
            | "clamav-daemon"
            | "clamd"
            | "falcon-sensor"
            | "osqueryd"
            | "wazuh-agent"
            | "rsyslog"
            | "kubelet"
            | "containerd"
            | "docker"
            | "hookgate"
            | "Xorg"
            | "loginwindow"
            | "WindowServer"
            | "Finder"
            | "explorer.exe"
            | "bash"
            | "zsh"
            | "etcd"
            | "cron"
            | "crond"
            | "snapd"
            | "mdatp"
            | "cbagentd"
            | "tailscaled"
            | "-1"
    )
}

/// Programs that hold data, or serve everybody on the machine.
fn is_server(name: &str) -> bool {
    let name = name.trim_start_matches('^').trim_end_matches('$');
    [
        "postgres",
        "postmaster",
        "mysqld",
        "mysql",
        "mariadbd",
        "mariadb",
        "mongod",
        "redis-server",
        "redis",
        "elasticsearch",
        "java",
        "nginx",
        "apache2",
        "httpd",
        "dockerd",
        "rabbitmq-server",
        "kafka",
        "etcd",
        "memcached",
        "clickhouse-server",
        "cassandra",
        "influxd",
        "consul",
        "vault",
        "haproxy",
        "named",
        "slapd",
        "kube-apiserver",
    ]
    .contains(&name)
}

fn service(call: &Call<'_>) -> Option<Danger> {
    let words: Vec<&str> = call.operands().collect();
    let verb =
        |word: &&str| matches!(*word, "stop" | "disable" | "mask" | "kill" | "unload" | "bootout" | "remove");
    let off = match call.name {
        "systemctl" | "rc-service" | "rc-update" | "sv" | "initctl" | "supervisorctl" => {
            words.iter().any(verb)
                && words.iter().any(|word| is_vital(word) || *word == "*" || *word == "all")
        }
        "service" | "invoke-rc.d" => {
            words.get(1).is_some_and(verb) && words.first().is_some_and(|name| is_vital(name))
        }
        "launchctl" => {
            words.iter().any(verb)
                && words.iter().any(|word| {
                    word.starts_with("/System") || word.contains("com.apple") || word.contains("com.openssh")
                })
        }
        "journalctl" => call.options().any(|arg| arg.starts_with("--vacuum")),
        "swapoff" => false,
        "rmmod" => false,
        "crontab" => {
            call.short("r")
                || (call.operand(0) == Some("-")
                    && call.stdin.known().is_some_and(|text| text.trim().is_empty()))
                || call.operand(0) == Some("/dev/null")
        }
        "atrm" => false,
        "sysctl" => call.args.iter().any(|arg| {
            arg.contains("kernel.sysrq")
                || arg.contains("randomize_va_space=0")
                || arg.contains("kernel.panic=")
        }),
        "wevtutil" => words.first().is_some_and(|word| matches!(*word, "cl" | "clear-log")),
        "dmesg" => call.short("cC"),
        "mount" => {
            call.args.iter().any(|arg| arg.contains("remount,ro") || arg == "-o remount,ro")
                && words.contains(&"/")
        }
        "umount" => call.short("a") || words.contains(&"/"),
        _ => false,
    };
    danger("system", format!("`{}` stops vital services or removes logs or schedules", call.name))
        .filter(|_| off)
}

fn network(call: &Call<'_>) -> Option<Danger> {
    let words: Vec<&str> = call.args.iter().map(String::as_str).collect();
    let has = |word: &str| words.contains(&word);
    let policy = || {
        words.windows(3).any(|rule| matches!(rule, ["-P" | "--policy", "INPUT" | "OUTPUT" | "FORWARD", _]))
    };
    let cut = match call.name {
        "iptables" | "ip6tables" | "ebtables" => {
            has("-F")
                || has("--flush")
                || has("-X")
                || policy()
                || (words.iter().any(|word| matches!(*word, "-A" | "-I"))
                    && words.windows(2).any(|rule| rule == ["-j", "DROP"])
                    && !has("-s")
                    && !has("--dport")
                    && !has("-d")
                    && !has("-i"))
        }
        "nft" => has("flush") || (has("delete") && has("table")),
        "ufw" => {
            has("disable")
                || has("reset")
                || (has("default") && has("allow"))
                || (has("deny") && (has("22") || has("ssh") || has("22/tcp")))
        }
        "firewall-cmd" => has("--panic-on") || has("--complete-reload-off"),
        "ip" => {
            (has("link") && has("down"))
                || (has("route")
                    && (has("flush")
                        || (words.iter().any(|word| matches!(*word, "del" | "delete")) && has("default"))))
                || (has("addr") && has("flush"))
        }
        "ifconfig" => has("down"),
        "ifdown" => true,
        "route" => words.iter().any(|word| matches!(*word, "del" | "delete" | "flush")),
        "nmcli" => words.iter().any(|word| matches!(*word, "off" | "delete")),
        "rfkill" => has("block"),
        "pfctl" => call.short("dF"),
        "networksetup" => words.iter().any(|word| matches!(*word, "off")),
        _ => false,
    };
    danger("system", "cuts the machine off, or opens it").filter(|_| cut)
}

fn users(call: &Call<'_>) -> Option<Danger> {
    let gone = match call.name {
        "userdel" | "deluser" | "groupdel" | "delgroup" => call.operand(0).is_some(),
        "passwd" => call.short("dl") || call.any(&["--delete", "--lock"]),
        "usermod" => {
            call.short("Le")
                || call.exact("--lock")
                || (call.short("s")
                    && call.args.iter().any(|arg| arg.contains("nologin") || arg.contains("/false")))
        }
        "chage" => call.short("E"),
        "dscl" => call.args.iter().any(|arg| arg.trim_start_matches('-') == "delete"),
        "sysadminctl" => call.exact("-deleteUser"),
        "gpg" | "gpg2" => call
            .options()
            .any(|arg| arg.starts_with("--delete-secret") || arg == "--delete-keys" || arg == "--delete-key"),
        "security" => matches!(
            call.operand(0),
            Some(
                "delete-keychain"
                    | "delete-generic-password"
                    | "delete-internet-password"
                    | "delete-certificate"
            )
        ),
        "ssh-add" => call.short("D"),
        "defaults" => call.operand(0) == Some("delete"),
        "dconf" => call.operand(0) == Some("reset") && call.short("f"),
        "nvram" => call.short("cd"),
        "tailscale" => matches!(call.operand(0), Some("down" | "logout")),
        _ => false,
    };
    danger("system", format!("`{}` takes access or keys away", call.name)).filter(|_| gone)
}

/// Packages without which the machine does not start, let in, or watch itself.
const VITAL: &[&str] = &[
    "*",
    "coreutils",
    "bash",
    "libc6",
    "glibc",
    "systemd",
    "openssh-server",
    "sudo",
    "apt",
    "dpkg",
    "python3",
    "kernel",
    "base",
    "util-linux",
    "grub-pc",
    "grub2",
    "init",
    "login",
    "network-manager",
    "linux-base",
    "rpm",
    "pacman",
    "perl-base",
    "openssl",
    "base-files",
    "linux",
    "auditd",
    "apparmor",
    "selinux-policy",
    "falco",
    "ufw",
    "yum",
    "dnf",
    "e2fsprogs",
    "libsystemd0",
];

fn packages(call: &Call<'_>) -> Option<Danger> {
    if call.any(&["-s", "--simulate", "--assumeno", "--just-print"]) {
        return None;
    }
    let words: Vec<&str> = call.operands().collect();
    let vital = |name: &&str| {
        let name = name.split(['=', ':']).next().unwrap_or(name);
        VITAL.contains(&name)
            || name.starts_with("linux-image")
            || name.contains('*')
            || name.contains(UNKNOWN)
            || name == "kernel-core"
    };
    let removes =
        |word: &&str| matches!(*word, "remove" | "purge" | "erase" | "uninstall" | "autoremove" | "rm");
    let bad = match call.name {
        "apt" | "apt-get" | "aptitude" | "yum" | "dnf" | "zypper" | "apk" | "snap" | "brew" | "pkg"
        | "port" | "flatpak" => {
            let purge = words.first() == Some(&"purge") || call.exact("--purge");
            words.first().is_some_and(removes)
                && words.iter().skip(1).any(|name| {
                    vital(name) || (purge && words.first() != Some(&"autoremove") && is_store(name))
                })
        }
        "dpkg" => {
            call.short("rP")
                && (call.args.iter().any(|arg| arg.starts_with("--force")) || words.iter().any(vital))
                || call.any(&["--purge", "--remove"]) && words.iter().any(vital)
        }
        "rpm" => call.short("e") && (call.exact("--nodeps") || words.iter().any(vital)),
        "pacman" => {
            call.options().any(|arg| arg.starts_with("-R") && (arg.contains("dd") || words.iter().any(vital)))
        }
        "pip" | "pip3" => {
            words.first() == Some(&"uninstall") && words.iter().any(|name| name.contains(UNKNOWN))
        }
        _ => false,
    };
    danger("system", "removes packages that the machine or its data need").filter(|_| bad)
}

fn is_store(name: &str) -> bool {
    ["postgres", "mysql", "mariadb", "mongo", "redis", "elasticsearch", "openssh", "docker"]
        .iter()
        .any(|store| name.starts_with(store))
}

fn guards(call: &Call<'_>) -> Option<Danger> {
    let words: Vec<&str> = call.args.iter().map(String::as_str).collect();
    let has = |word: &str| words.contains(&word);
    let off = match call.name {
        "setenforce" => matches!(call.operand(0), Some("0" | "Permissive" | "permissive")),
        "history" => call.short("cwd") && !has("-w") || has("-c"),
        "set" => words.windows(2).any(|pair| pair == ["+o", "history"]),
        "unset" => has("HISTFILE"),
        "fc" => has("-p"),
        "auditctl" => has("-D") || words.windows(2).any(|pair| pair == ["-e", "0"]),
        "csrutil" => has("disable"),
        "spctl" => has("--master-disable") || has("--global-disable"),
        "aa-disable" | "aa-teardown" | "aa-complain" => true,
        "claude" | "codex" | "gemini" | "cursor-agent" | "opencode" | "amp" => words.iter().any(|word| {
            word.starts_with("--dangerously") || matches!(*word, "--yolo" | "-y" | "--dangerously-allow-all")
        }),
        "hookgate" => words.iter().any(|word| matches!(*word, "uninstall" | "disable" | "off")),
        "husky" | "lefthook" | "pre-commit" | "overcommit" => {
            words.first().is_some_and(|word| word.contains("uninstall"))
        }
        "setsebool" => false,
        "semanage" => has("permissive"),
        "ssh-keygen" => false,
        "visudo" => false,
        "mokutil" => has("--disable-validation"),
        "shopt" => words.windows(2).any(|pair| matches!(pair, ["-u", "histappend" | "cmdhist"])),
        "enable" => has("-n"),
        _ => false,
    };
    danger("guard", format!("`{}` switches a guard or the record of commands off", call.name)).filter(|_| off)
}

/// A variable that switches a guard or the record of commands off. `before` is the program it is set for.
pub(super) fn variable(name: &str, value: &str, before: Option<&str>) -> Option<Danger> {
    let off = match name {
        "HISTFILE" => value.is_empty() || value == "/dev/null",
        "HISTSIZE" | "HISTFILESIZE" | "SAVEHIST" => value == "0",
        "HISTIGNORE" => value == "*",
        "HUSKY" | "LEFTHOOK" | "PRE_COMMIT" | "OVERCOMMIT_DISABLE" => {
            (value == "0" || name == "OVERCOMMIT_DISABLE") || value == "false"
        }
        "HUSKY_SKIP_HOOKS" | "SKIP_HOOKS" | "PRE_COMMIT_ALLOW_NO_CONFIG" => value == "1",
        "SKIP" => !value.is_empty() && before.is_some_and(|program| base_name(program) == "git"),
        _ => return None,
    };
    danger("guard", format!("`{name}` switches a guard or the record of commands off")).filter(|_| off)
}
