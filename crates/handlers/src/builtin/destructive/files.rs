//! Programs that delete, overwrite, move and open up files; and disks.

use super::call::{Call, Danger, UNKNOWN, base_name, danger};
use super::target::{Place, place};

pub(super) fn judge(call: &Call<'_>) -> Option<Danger> {
    if call.is_harmless_mode() && call.name != "rm" {
        return None;
    }
    match call.name {
        "rm" | "grm" | "srm" | "rimraf" | "del-cli" | "trash-rm" | "unlink" | "rip" => remove(call),
        "shred" | "wipe" | "scrub" => danger("delete", "overwrites files so that they cannot be restored")
            .filter(|_| call.operand(0).is_some()),
        "trash-empty" => danger("delete", "empties the bin"),
        "gio" => danger("delete", "empties the bin").filter(|_| call.exact("--empty")),
        "mv" | "gmv" => moved(call),
        "cp" | "gcp" | "install" | "ln" => copied(call),
        "tee" => call.operands().find_map(|path| {
            write(path, call.cwd, call.short("a") || call.long("--append"), false)
                .or_else(|| teed_nothing(call, path))
        }),
        "truncate" => call
            .operands()
            .find_map(|path| emptied(path, call.cwd))
            .filter(|_| call.value(&["-s", "--size"]).is_some_and(|size| !size.starts_with('+'))),
        "rsync" => rsync(call),
        "rclone" => danger("delete", "deletes on the remote").filter(|_| {
            !call.short("n")
                && matches!(
                    call.operand(0),
                    Some("delete" | "purge" | "sync" | "deletefile" | "cleanup" | "rmdirs" | "move")
                )
        }),
        "dd" | "dcfldd" => dd(call),
        "chmod" | "chown" | "chgrp" | "setfacl" | "chattr" | "chflags" | "icacls" => permissions(call),
        "sed" | "gsed" | "perl" => edit_in_place(call),
        "tar" | "bsdtar" | "unzip" | "7z" | "cpio" => unpack(call),
        "curl" | "wget" | "aria2c" => download(call),
        "zip" => danger("delete", "deletes the files after packing").filter(|_| call.short("m")),
        name => disk(name, call),
    }
}

fn lost(what: &str, path: &str) -> Option<Danger> {
    danger("delete", format!("{what} `{}`", shown(path)))
}

fn shown(path: &str) -> String {
    path.replace(UNKNOWN, "…").chars().filter(|c| !c.is_control()).take(80).collect()
}

fn remove(call: &Call<'_>) -> Option<Danger> {
    if call.any(&["--help", "--version"]) && call.operand(0).is_none() {
        return None;
    }
    let all =
        call.short("rR") || call.long("--recursive") || matches!(call.name, "rimraf" | "del-cli" | "rip");
    if call.exact("--no-preserve-root") {
        return lost("deletes", "/");
    }
    call.operands().find_map(|path| {
        let place = place(path, call.cwd);
        let last = base_name(path);
        let file_like = last.trim_start_matches('.').contains('.') && !last.contains('*');
        let bad = match place {
            Place::Sink | Place::Temp | Place::Artefact => false,
            Place::Device
            | Place::Tree
            | Place::System
            | Place::Home
            | Place::Guard
            | Place::Precious
            | Place::Several => true,
            Place::InHome => all && !file_like,
            Place::Named => all && !file_like,
            Place::Unknown => all || path.contains('*'),
        };
        lost(if all { "deletes with everything in it" } else { "deletes" }, path).filter(|_| bad)
    })
}

fn moved(call: &Call<'_>) -> Option<Danger> {
    let paths: Vec<&str> = call.operands().collect();
    let aim = call.value(&["-t", "--target-directory"]).or(paths.last().copied())?;
    if aim == "/dev/null" {
        return danger("delete", "moves files to nowhere");
    }
    let sources = paths.iter().take(paths.len().saturating_sub(1));
    for source in sources {
        let bad = match place(source, call.cwd) {
            Place::System => !source.contains("/tmp") && is_shallow(source),
            Place::Home | Place::Guard | Place::Device => true,
            Place::Precious => base_name(source) == ".git" || base_name(source) == ".ssh",
            Place::Tree => is_temp_or_gone(aim, call.cwd),
            _ => false,
        };
        if bad {
            return lost("moves away", source);
        }
    }
    write(aim, call.cwd, false, false)
}

fn is_temp_or_gone(aim: &str, cwd: &str) -> bool {
    matches!(place(aim, cwd), Place::Temp | Place::Sink)
}

fn is_shallow(path: &str) -> bool {
    path.trim_end_matches(['/', '*']).matches('/').count() <= 2
}

fn copied(call: &Call<'_>) -> Option<Danger> {
    let paths: Vec<&str> = call.operands().collect();
    let [.., source, aim] = paths.as_slice() else { return None };
    if *source == "/dev/null" {
        let link = if call.name == "ln" {
            danger("guard", format!("points `{}` to nowhere", shown(aim)))
        } else {
            emptied(aim, call.cwd)
        };
        return link;
    }
    if matches!(*source, "/dev/zero" | "/dev/urandom" | "/dev/random") {
        return emptied(aim, call.cwd).or_else(|| lost("overwrites", aim));
    }
    match place(aim, call.cwd) {
        Place::Device => danger("disk", format!("writes over the device `{}`", shown(aim))),
        Place::Guard if call.name != "ln" => {
            danger("guard", format!("replaces the guard's configuration `{}`", shown(aim)))
        }
        Place::System | Place::Home | Place::Precious if is_key_file(aim) => {
            danger("overwrite", format!("replaces `{}`", shown(aim)))
        }
        _ => None,
    }
}

const KEY_FILES: &[&str] = &[
    "passwd",
    "shadow",
    "group",
    "gshadow",
    "sudoers",
    "hosts",
    "fstab",
    "crontab",
    "resolv.conf",
    "sshd_config",
    "authorized_keys",
    "hostname",
    "nsswitch.conf",
    "profile",
    "bashrc",
    ".bashrc",
    ".zshrc",
    ".profile",
    ".bash_profile",
    "id_rsa",
    "id_ed25519",
    "known_hosts",
    "environment",
    "ld.so.preload",
    "grub.cfg",
    "inittab",
    "config",
    "credentials",
    ".gitconfig",
    ".netrc",
    ".pgpass",
    ".vimrc",
    ".npmrc",
    "exports",
    "iptables",
    "interfaces",
    "vmlinuz",
    "sources.list",
    "pg_hba.conf",
    "my.cnf",
    "nginx.conf",
    "sshd",
    "modules",
    "sysctl.conf",
    "machine-id",
];

fn is_key_file(path: &str) -> bool {
    let name = base_name(path);
    KEY_FILES.contains(&name) && (path.starts_with(['/', '~']))
}

/// Output that goes into a file.
pub(super) fn write(path: &str, cwd: &str, append: bool, filler: bool) -> Option<Danger> {
    let lower = path.to_ascii_lowercase();
    if lower == "/proc/sysrq-trigger" {
        return danger("power", "asks the kernel to stop or crash");
    }
    let sort = place(path, cwd);
    match sort {
        Place::Device => danger("disk", format!("writes over the device `{}`", shown(path))),
        Place::Guard if !append => {
            danger("guard", format!("overwrites the guard's configuration `{}`", shown(path)))
        }
        _ if append => None,
        Place::System if is_system_file(path) => {
            danger("overwrite", format!("overwrites the system file `{}`", shown(path)))
        }
        Place::System | Place::Home | Place::Precious if is_key_file(path) => {
            danger("overwrite", format!("overwrites `{}`", shown(path)))
        }
        Place::Precious if has_data_ending(path) => {
            danger("overwrite", format!("overwrites `{}`", shown(path)))
        }
        _ if filler && sort != Place::Sink => danger("disk", "fills the disk"),
        _ => None,
    }
}

fn has_data_ending(path: &str) -> bool {
    [".db", ".sqlite", ".sqlite3", ".mdb", ".pem", ".key", ".tfstate", ".kdbx", ".pfx", ".p12"]
        .iter()
        .any(|end| path.ends_with(end))
}

fn is_system_file(path: &str) -> bool {
    let in_system = [
        "/etc/",
        "/bin/",
        "/sbin/",
        "/usr/bin/",
        "/usr/sbin/",
        "/usr/lib/",
        "/boot/",
        "/lib/",
        "/lib64/",
        "/var/lib/",
        "/var/log/",
        "/root/",
        "/System/",
    ]
    .iter()
    .any(|root| path.starts_with(root));
    in_system
        && !path.contains(".d/")
        && !path.starts_with("/etc/nginx/sites")
        && !path.starts_with("/etc/systemd/system/")
}

/// A file that loses all it had.
pub(super) fn emptied(path: &str, cwd: &str) -> Option<Danger> {
    match place(path, cwd) {
        Place::Sink | Place::Temp | Place::Artefact | Place::Unknown => None,
        Place::Named if base_name(path).starts_with('.') && base_name(path).ends_with("keep") => None,
        Place::Device => danger("disk", format!("writes over the device `{}`", shown(path))),
        _ => danger("overwrite", format!("empties `{}`", shown(path))),
    }
}

/// `tee file < /dev/null`.
fn teed_nothing(call: &Call<'_>, path: &str) -> Option<Danger> {
    let nothing = call.stdin.known().is_some_and(|text| text.trim().is_empty());
    emptied(path, call.cwd).filter(|_| nothing && !call.short("a"))
}

fn rsync(call: &Call<'_>) -> Option<Danger> {
    if call.short("n") {
        return None;
    }
    let deletes = call.options().any(|arg| arg.starts_with("--del") || arg == "--remove-source-files");
    let aim = call.operands().last()?;
    let own = matches!(place(aim, call.cwd), Place::Temp | Place::Artefact) && !aim.contains(':');
    danger("delete", format!("deletes in `{}` what the source lacks", shown(aim))).filter(|_| deletes && !own)
}

fn dd(call: &Call<'_>) -> Option<Danger> {
    let of = call.args.iter().find_map(|arg| arg.strip_prefix("of="))?;
    let zero = call.args.iter().any(|arg| {
        matches!(arg.as_str(), "if=/dev/zero" | "if=/dev/urandom" | "if=/dev/random" | "if=/dev/null")
    });
    match place(of, call.cwd) {
        Place::Device | Place::System | Place::Guard => {
            danger("disk", format!("writes over `{}`", shown(of)))
        }
        Place::Home | Place::InHome | Place::Precious => {
            danger("overwrite", format!("writes over `{}`", shown(of)))
        }
        Place::Unknown if zero => danger("disk", "writes over a device or file that is not known"),
        Place::Named if zero && !call.args.iter().any(|arg| arg.starts_with("count=")) => {
            danger("disk", "fills the disk")
        }
        _ => None,
    }
}

fn permissions(call: &Call<'_>) -> Option<Danger> {
    let all = call.short("R") || call.long("--recursive");
    let mode = if call.name == "chmod" {
        call.args
            .iter()
            .find(|arg| !arg.starts_with("--") && *arg != "-R" && *arg != "-v")
            .map_or("", String::as_str)
    } else {
        ""
    };
    if call.name == "chattr" || call.name == "chflags" {
        let off = call
            .args
            .iter()
            .any(|arg| arg.starts_with('-') && arg.contains(['i', 'a']) || arg.starts_with("no"));
        return danger("guard", "takes the write protection away").filter(|_| off);
    }
    let open = mode.contains("777")
        || mode.contains("666")
        || mode.contains("o+w")
        || mode.contains("a+w")
        || mode.contains("a+rwx")
        || mode.contains("o+rw");
    let shut = matches!(
        mode,
        "000" | "0" | "0000" | "a-rwx" | "-rwx" | "ugo-rwx" | "a-r" | "a-x" | "-x" | "-r" | "u-rwx" | "a="
    );
    let setuid = mode.contains("u+s") || (mode.len() == 4 && mode.starts_with(['4', '6']));
    call.operands()
        .skip(usize::from(call.name != "setfacl"))
        .chain(call.operands().filter(|_| mode.starts_with('-')))
        .find_map(|path| {
            let sort = place(path, call.cwd);
            let own = call.name == "chown"
                && call.operand(0).is_some_and(|owner| owner.starts_with("user"))
                && path.starts_with('~');
            if own {
                return None;
            }
            let wide = matches!(sort, Place::System | Place::Home | Place::Device)
                || (sort == Place::Tree && (open || shut));
            let key = matches!(sort, Place::Guard | Place::Precious)
                || is_system_file(path)
                || path.starts_with("/etc");
            let bad = (all
                && (wide
                    || key
                    || sort == Place::Unknown
                    || (open && sort != Place::Temp && sort != Place::Artefact)))
                || (key && (open || shut))
                || (wide && (open || shut) && sort != Place::Tree)
                || (setuid && sort == Place::System);
            let bad = bad
                || (sort == Place::Guard && shut)
                || (sort == Place::System && matches!(path, "/" | "/etc" | "/usr" | "/bin"));
            danger("permissions", format!("changes who may use `{}`", shown(path))).filter(|_| bad)
        })
}

fn edit_in_place(call: &Call<'_>) -> Option<Danger> {
    let in_place = call.options().any(|arg| {
        arg.starts_with("--in-place")
            || (arg.starts_with('-') && !arg.starts_with("--") && arg.contains('i') && !arg.contains("e "))
    });
    if !in_place {
        return None;
    }
    let script = call.value(&["-e", "--expression"]).or(call.operand(0)).unwrap_or_default();
    let deletes_all = matches!(script, "d" | "1,$d" | "1,$ d" | "/.*/d" | "/^/d");
    call.operands().find_map(|path| match place(path, call.cwd) {
        Place::Guard => danger("guard", format!("edits the guard's configuration `{}`", shown(path))),
        _ if is_key_file(path) && path.starts_with("/etc/") => {
            danger("system", format!("edits `{}`", shown(path)))
        }
        _ if deletes_all && path != script => emptied(path, call.cwd),
        _ => None,
    })
}

fn unpack(call: &Call<'_>) -> Option<Danger> {
    if call.args.iter().any(|arg| arg == "--remove-files") {
        return danger("delete", "deletes the files after packing");
    }
    let packs = call
        .args
        .first()
        .is_some_and(|arg| arg.trim_start_matches('-').contains('c') && call.name != "unzip");
    let aim = call.value(&["-C", "--directory", "-d"])?;
    danger("overwrite", format!("unpacks over `{}`", shown(aim))).filter(|_| {
        !packs
            && place(aim, call.cwd) == Place::System
            && is_shallow(aim)
            && !aim.starts_with("/opt")
            && !aim.starts_with("/usr/local")
            && !aim.starts_with("/srv")
    })
}

fn download(call: &Call<'_>) -> Option<Danger> {
    let method = call.value(&["-X", "--request", "--method"]).unwrap_or_default();
    let loopback = call.args.iter().any(|arg| {
        ["localhost", "127.0.0.1", "[::1]", "0.0.0.0"]
            .iter()
            .any(|host| arg.trim_start_matches("http://").trim_start_matches("https://").starts_with(host))
    });
    if method.eq_ignore_ascii_case("delete") && !loopback {
        return danger("cloud", "asks a server to delete something");
    }
    let names: &[&str] =
        if call.name == "curl" { &["-o", "--output"] } else { &["-O", "--output-document", "-o"] };
    call.value(names).and_then(|path| write(path, call.cwd, false, false))
}

fn disk(name: &str, call: &Call<'_>) -> Option<Danger> {
    let first = call.operand(0).unwrap_or_default();
    let second = call.operand(1).unwrap_or_default();
    let bad = match name {
        "mkfs" | "mke2fs" | "newfs" | "mkswap" | "mkdosfs" => call.operand(0).is_some() && !call.short("nN"),
        _ if name.starts_with("mkfs.") => {
            call.operand(0).is_some() && !call.args.iter().any(|arg| arg == "-n" || arg == "-N")
        }
        "wipefs" => (call.short("ao") || call.long("--all")) && !call.short("n"),
        "blkdiscard" | "cfdisk" | "sgdisk" | "gdisk" | "sfdisk" | "fdisk" => {
            let dumps = name == "sfdisk" && call.short("d");
            let shows = dumps || call.short("lpivJPn");
            call.operand(0).is_some()
                && !shows
                && !call.any(&[
                    "--list",
                    "--print",
                    "--info",
                    "--verify",
                    "--dump",
                    "--json",
                    "--pretend",
                    "--backup",
                ])
        }
        "parted" => {
            call.operands().any(|word| matches!(word, "mklabel" | "mktable" | "rm" | "mkpart" | "resizepart"))
        }
        "hdparm" => call.options().any(|arg| arg.starts_with("--security") || arg.starts_with("--trim")),
        "nvme" => matches!(first, "format" | "sanitize" | "write-zeroes"),
        "lvremove" | "vgremove" | "pvremove" | "lvreduce" | "vgreduce" => {
            !call.short("t") && !call.exact("--test")
        }
        "mdadm" => call.any(&["--zero-superblock", "--stop", "--remove", "--fail", "-S"]),
        "zpool" => matches!(first, "destroy" | "labelclear"),
        "zfs" => matches!(first, "destroy" | "rollback") && !call.short("n"),
        "btrfs" => second == "delete",
        "cryptsetup" => matches!(
            first,
            "luksFormat" | "erase" | "luksErase" | "luksKillSlot" | "luksRemoveKey" | "format"
        ),
        "badblocks" => call.short("w"),
        "diskutil" => {
            first.starts_with("erase")
                || first.starts_with("partition")
                || first.starts_with("reformat")
                || first == "secureErase"
                || second.starts_with("delete")
        }
        "ceph" => call.operands().any(|word| matches!(word, "purge" | "destroy" | "rm" | "delete")),
        "dmsetup" => matches!(first, "remove_all" | "wipe_table"),
        "losetup" | "umount" => false,
        "efibootmgr" => call.short("B"),
        "tmutil" => matches!(first, "delete" | "deletelocalsnapshots" | "disable"),
        "flashrom" => call.short("wE"),
        "qemu-img" => false,
        "restic" | "borg" => matches!(first, "forget" | "prune" | "delete"),
        "snapper" | "timeshift" => {
            call.operands().any(|word| word == "delete")
                || call.exact("--delete")
                || call.exact("--delete-all")
        }
        _ => false,
    };
    danger("disk", format!("`{name}` erases or changes disks, volumes or backups")).filter(|_| bad)
}
