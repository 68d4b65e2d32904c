//! Disks, power, guards, and cmdlets that remove what is not made again.

use super::super::call::{Danger, danger};
use super::Seen;

/// Processes and services that a machine, its guards or its owner cannot do without.
const VITAL: &[&str] = &[
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
];

impl Seen<'_> {
    pub(super) fn disks(&self) -> Option<Danger> {
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
    pub(super) fn guard_key(&self) -> bool {
        let text = self.words.join(" ").to_ascii_lowercase();
        text.contains("add")
            && ["defender", "enablelua", "disableantispyware", "disablerealtime"]
                .iter()
                .any(|word| text.contains(word))
    }

    pub(super) fn power(&self) -> Option<Danger> {
        let words: Vec<String> = self.words.iter().map(|word| word.to_ascii_lowercase()).collect();
        let any = |names: &[&str]| words.iter().any(|word| names.contains(&word.trim_end_matches(".exe")));
        let vital = || any(VITAL);
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

    pub(super) fn guards(&self) -> Option<Danger> {
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
    pub(super) fn cmdlets(&self) -> Option<Danger> {
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
}
