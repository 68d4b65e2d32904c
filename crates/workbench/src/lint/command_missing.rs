//! A program that is not there, or that may not be run, where the check runs.

use super::rule::{Notes, Rule};
use hookgate_core::handler::{CommandStart, HandlerKind};
use hookgate_core::hook::{Hook, Work};
use std::ffi::OsStr;
use std::path::Path;

pub(super) const RULE: Rule =
    Rule { id: "command-missing", about: "a program that is not there or may not be run", look: Some(look) };

fn look(hooks: &[&Hook], notes: &mut Notes<'_>) {
    let path = std::env::var_os("PATH").unwrap_or_default();
    for hook in hooks {
        let Work::Handler { spec, .. } = &hook.work else { continue };
        let HandlerKind::Command { start, cwd, .. } = &spec.kind else { continue };
        let folder = Path::new(&hook.file).parent().unwrap_or(Path::new("."));
        if let CommandStart::Argv(words) = start
            && let Some(name) = words.first()
            && let Some((message, help)) = fault(name, folder, &path)
        {
            notes.add(hook, "handler.argv[0]", message, help);
        }
        if let Some(cwd) = cwd.as_ref().filter(|cwd| !folder.join(cwd).is_dir()) {
            let message = format!("there is no folder `{cwd}` to run the program in");
            notes.add(hook, "handler.cwd", message, "`cwd` is meant from the hook file's folder");
        }
    }
}

/// What is wrong with a program, as far as it can be seen from here.
fn fault(name: &str, folder: &Path, path: &OsStr) -> Option<(String, &'static str)> {
    if name.contains('/') {
        let file = folder.join(name);
        if !file.is_file() {
            let help = "a name with a slash is meant from the hook file's folder";
            let place = folder.join(name.strip_prefix("./").unwrap_or(name));
            return Some((format!("there is no program `{name}`, that is {}", place.display()), help));
        }
        let not_run = (format!("`{name}` may not be run"), "give it the right: `chmod +x`");
        return (!may_run(&file)).then_some(not_run);
    }
    // only absolute places count when the hook runs
    let mut places = std::env::split_paths(path).filter(|place| place.is_absolute());
    let is_somewhere = places.any(|place| may_run(&place.join(name)));
    let help = if folder.join(name).is_file() {
        "a program beside the hook file is named with a slash, such as `./name`"
    } else {
        "install it, or name its file with a slash"
    };
    (!is_somewhere).then(|| (format!("the program `{name}` is nowhere on the PATH"), help))
}

#[cfg(unix)]
fn may_run(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    file.metadata().is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn may_run(file: &Path) -> bool {
    file.is_file()
}

#[cfg(test)]
mod tests {
    use super::super::rule::tests::check;
    use super::{RULE, fault};
    use std::ffi::OsStr;
    use std::fs;
    use std::path::Path;

    #[test]
    fn programs_that_are_not_there() {
        let hook = |fields: &str, want: &[&str]| {
            let text = format!(r#"{{"event":"stop","handler":{{"type":"command",{fields}}}}}"#);
            check(RULE.id, &text, want);
        };
        hook(
            r#""argv":["./no-such-program"]"#,
            &["handler.argv[0]: there is no program `./no-such-program`"],
        );
        hook(r#""argv":["no-such-program-anywhere"]"#, &["nowhere on the PATH"]);
        hook(r#""argv":["/bin/sh"],"cwd":"no/such/folder""#, &["handler.cwd: there is no folder"]);
        hook(r#""argv":["/bin/sh","-c","true"]"#, &[]);
        hook(r#""argv":["sh"]"#, &[]);
        hook(r#""shell":"no-such-program""#, &[]);
    }

    #[cfg(unix)]
    #[test]
    fn programs_that_may_not_be_run() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("gate.sh"), "#!/bin/sh\n").unwrap();
        let said = |name: &str| {
            fault(name, dir.path(), OsStr::new("/bin")).map(|(message, help)| format!("{message}; {help}"))
        };
        assert_eq!(said("./gate.sh").unwrap(), "`./gate.sh` may not be run; give it the right: `chmod +x`");
        assert!(said("gate.sh").unwrap().ends_with("such as `./name`"));
        assert_eq!(fault("/bin/sh", Path::new("."), OsStr::new("")), None);
    }
}
