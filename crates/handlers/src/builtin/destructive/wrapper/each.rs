//! Programs that run another one for each of many things.

use super::super::budget::replaced;
use super::super::call::{Call, Text, base_name, danger};
use super::super::target;
use super::super::walk::{Feed, Walk};
use super::tables::{SHELLS, behind_options};

impl Walk {
    pub(super) fn xargs(&mut self, name: &str, args: &[String], stdin: &Feed) -> Feed {
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
                let line = if line.contains("{}") {
                    self.fill(&line, "{}", target)
                } else {
                    format!("{line} {target}")
                };
                self.line(&line, &Text::None);
            }
            return Feed { text: Text::Unknown, from: Vec::new() };
        }
        let mark =
            mark.filter(|mark| !mark.is_empty() && inner.iter().any(|arg| arg.contains(mark.as_str())));
        match mark {
            Some(mark) => {
                for target in targets.iter().take(8) {
                    let argv: Vec<String> = inner.iter().map(|arg| self.fill(arg, &mark, target)).collect();
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

    /// A word with the target in it. What gets too long is not made.
    fn fill(&self, word: &str, mark: &str, target: &str) -> String {
        if self.is_over() {
            return String::new();
        }
        let Some(filled) = replaced(word, mark, target) else {
            self.budget.give_up();
            return String::new();
        };
        self.budget.spend(filled.len());
        filled
    }

    pub(super) fn find(&mut self, args: &[String]) -> Feed {
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
                    self.note(super::super::files::judge(&call).filter(|_| !only_empty));
                }
                "-exec" | "-execdir" | "-ok" | "-okdir" => {
                    let inner: Vec<&String> =
                        rest.by_ref().take_while(|arg| !matches!(arg.as_str(), ";" | "+")).collect();
                    for target in &targets {
                        let argv = inner.iter().map(|arg| self.fill(arg, "{}", target)).collect();
                        self.invoke(argv, &Feed { text: Text::None, from: Vec::new() });
                    }
                }
                "-fprint" | "-fprintf" | "-fls" | "-fprint0" => {
                    if let Some(path) = rest.next() {
                        self.note(super::super::files::write(path, &cwd, false, false));
                    }
                }
                _ => {}
            }
        }
        let from = ["find".to_owned()].into_iter().chain(args.iter().cloned()).collect();
        Feed { text: Text::Unknown, from }
    }

    pub(super) fn fd(&mut self, args: &[String]) -> Option<Feed> {
        let at =
            args.iter().position(|arg| matches!(arg.as_str(), "-x" | "-X" | "--exec" | "--exec-batch"))?;
        let (own, inner) = args.split_at_checked(at)?;
        let target = fd_target(own);
        let inner = inner.get(1..)?;
        let has_mark = inner.iter().any(|arg| arg.contains('{'));
        let mut argv: Vec<String> = inner.iter().map(|arg| self.fill(arg, "{}", &target)).collect();
        if !has_mark {
            argv.push(target);
        }
        Some(self.invoke(argv, &Feed { text: Text::None, from: Vec::new() }))
    }
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
pub(in crate::builtin::destructive) fn listed(feed: &Feed, _cwd: &str) -> Vec<String> {
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
