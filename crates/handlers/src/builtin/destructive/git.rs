//! git, and the programs of the places where git lives.

use super::call::{Call, Danger, danger};

pub(super) fn judge(call: &Call<'_>) -> Option<Danger> {
    match call.name {
        "git" => git(call),
        "gh" | "glab" | "hub" | "tea" => forge(call),
        "git-filter-repo" | "bfg" => danger("git", "rewrites the whole history"),
        "hg" => danger("git", "drops changes").filter(|_| {
            matches!(call.operand(0), Some("strip" | "purge" | "rollback"))
                || (call.operand(0) == Some("update") && call.short("C"))
        }),
        "svn" => danger("git", "drops changes")
            .filter(|_| matches!(call.operand(0), Some("revert" | "delete" | "rm"))),
        "jj" => danger("git", "drops changes").filter(|_| matches!(call.operand(0), Some("abandon"))),
        _ => None,
    }
}

fn git(call: &Call<'_>) -> Option<Danger> {
    let mut args = call.args;
    let mut off = None;
    while let [first, rest @ ..] = args {
        match first.as_str() {
            "-c" | "--config-env" => {
                if let [setting, after @ ..] = rest {
                    off = off.or_else(|| setting_off(setting.split('=').next().unwrap_or_default()));
                    args = after;
                } else {
                    args = rest;
                }
            }
            "-C" | "--git-dir" | "--work-tree" | "--namespace" | "--exec-path" => {
                args = rest.get(1..).unwrap_or_default()
            }
            option if option.starts_with('-') => args = rest,
            _ => break,
        }
    }
    let [name, rest @ ..] = args else { return None };
    let inner = Call { name, args: rest, ..*call };
    let asks = inner.any(&["--help", "-h"]);
    off.or_else(|| subcommand(&inner)).filter(|_| !asks)
}

fn setting_off(key: &str) -> Option<Danger> {
    danger("guard", "switches git's hooks off").filter(|_| key.eq_ignore_ascii_case("core.hooksPath"))
}

fn subcommand(call: &Call<'_>) -> Option<Danger> {
    let lost = |what: &str| danger("git", format!("`git {}` {what}", call.name));
    let (first, second) = (call.operand(0).unwrap_or_default(), call.operand(1).unwrap_or_default());
    if call.exact("--no-verify")
        || (call.name == "commit"
            && call.options().any(|arg| {
                arg.starts_with('-') && !arg.starts_with("--") && arg.contains('n') && !arg.contains('m')
            }))
    {
        return danger("guard", "goes past git's hooks")
            .filter(|_| matches!(call.name, "commit" | "push" | "merge" | "rebase" | "am" | "cherry-pick"));
    }
    let dry =
        (call.short("n") && matches!(call.name, "clean" | "push" | "rm" | "prune")) || call.long("--dry-run");
    if dry {
        return None;
    }
    let whole = |path: &str| matches!(path, "." | "*" | ":/" | "./" | "-A" | ":(top)");
    match call.name {
        "reset" => lost("drops work that is not committed").filter(|_| call.any(&["--hard", "--merge"])),
        "clean" => {
            lost("deletes files that git does not know").filter(|_| call.short("f") || call.long("--force"))
        }
        "checkout" => checkout(call).then(|| lost("drops work that is not committed")).flatten(),
        "restore" => lost("drops work that is not committed").filter(|_| {
            !(call.long("--staged") || call.short("S")) || call.long("--worktree") || call.short("W")
        }),
        "switch" => lost("drops work that is not committed")
            .filter(|_| call.any(&["-f", "--force", "--discard-changes", "-C", "--force-create"])),
        "push" => push(call),
        "branch" => lost("removes or moves a branch, merged or not")
            .filter(|_| call.short("DM") || ((call.short("f") || call.long("--force")) && !first.is_empty())),
        "tag" => lost("removes or moves a tag")
            .filter(|_| call.short("d") || call.exact("--delete") || (call.short("f") && !first.is_empty())),
        "stash" => lost("drops saved work").filter(|_| matches!(first, "drop" | "clear")),
        "reflog" => lost("removes the way back").filter(|_| matches!(first, "expire" | "delete")),
        "gc" => lost("removes the way back")
            .filter(|_| call.options().any(|arg| arg.starts_with("--prune=") && !arg.contains("week"))),
        "prune" => lost("removes the way back"),
        "filter-branch" | "filter-repo" => lost("rewrites history"),
        "update-ref" => lost("removes a reference").filter(|_| call.short("d") || call.exact("--stdin")),
        "symbolic-ref" => lost("removes a reference").filter(|_| call.short("d")),
        "worktree" => lost("deletes a work tree")
            .filter(|_| first == "remove" && (call.short("f") || call.long("--force"))),
        "submodule" => lost("deletes a submodule's work")
            .filter(|_| first == "deinit" && (call.short("f") || call.long("--force"))),
        "read-tree" => lost("drops work that is not committed").filter(|_| call.any(&["--reset"])),
        "checkout-index" => lost("overwrites files").filter(|_| call.short("f")),
        "rm" => lost("deletes files")
            .filter(|_| !call.long("--cached") && (call.short("f") || call.operands().any(whole))),
        "config" => config(call, first, second),
        "rebase" => lost("rewrites all history").filter(|_| call.exact("--root")),
        "lfs" => lost("deletes stored files").filter(|_| first == "prune" && call.exact("--force")),
        "svn" => lost("rewrites history").filter(|_| first == "reset"),
        "annex" => lost("drops content").filter(|_| first == "drop" && call.exact("--force")),
        _ => None,
    }
}

fn checkout(call: &Call<'_>) -> bool {
    let behind = call.args.iter().skip_while(|arg| *arg != "--").nth(1).is_some();
    let makes = call.short("b") || call.exact("--orphan");
    let whole = call.operands().any(|path| matches!(path, "." | "*" | ":/" | "./"));
    behind || whole || ((call.short("f") || call.long("--force")) && !makes)
}

fn push(call: &Call<'_>) -> Option<Danger> {
    let lost = |what: &str| danger("git", format!("`git push` {what}"));
    let forced = call.short("f") || call.options().any(|arg| arg == "--force");
    let plus = call.operands().skip(1).any(|refs| refs.starts_with('+'));
    if forced || plus || call.exact("--mirror") {
        return lost("rewrites history that others have");
    }
    if call.short("d")
        || call.exact("--delete")
        || call.exact("--prune")
        || call.operands().skip(1).any(|refs| refs.starts_with(':') && refs.len() > 1)
    {
        return lost("deletes a branch or tag that others have");
    }
    let leased =
        call.options().any(|arg| arg.starts_with("--force-with-lease") || arg.starts_with("--force-if"));
    let main = call.operands().skip(1).any(|refs| {
        matches!(refs.rsplit(':').next(), Some("main" | "master" | "trunk" | "release" | "production"))
    });
    lost("rewrites history that others have").filter(|_| leased && main)
}

fn config(call: &Call<'_>, first: &str, second: &str) -> Option<Danger> {
    let reads =
        call.any(&["--get", "--get-all", "--list", "-l", "--get-regexp", "--show-origin"]) || first == "get";
    let sets = !reads && call.operands().count() >= 2;
    let key = if first == "set" || first == "unset" { second } else { first };
    setting_off(key).filter(|_| sets || call.any(&["--unset", "--unset-all"])).or_else(|| {
        danger("guard", "switches signature or fsck checks off").filter(|_| {
            sets && second == "false"
                && matches!(
                    key,
                    "receive.denyNonFastForwards" | "receive.denyDeletes" | "transfer.fsckObjects"
                )
        })
    })
}

fn forge(call: &Call<'_>) -> Option<Danger> {
    let (first, second) = (call.operand(0).unwrap_or_default(), call.operand(1).unwrap_or_default());
    if first == "api" {
        let method = call.value(&["-X", "--method"]).unwrap_or_default();
        return danger("cloud", "asks the forge to delete something")
            .filter(|_| method.eq_ignore_ascii_case("delete"));
    }
    if matches!(second, "delete" | "remove" | "archive" | "rename" | "transfer" | "delete-asset" | "disable")
        && first != "label"
    {
        return danger("cloud", format!("`{} {first} {second}`", call.name));
    }
    danger("guard", "merges past the checks")
        .filter(|_| first == "pr" && second == "merge" && call.exact("--admin"))
}
