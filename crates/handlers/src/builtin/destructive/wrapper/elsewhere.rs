//! Lines that run on other machines, in containers, terminals and other shells, or that stand in options.

use super::super::call::{Call, Text, danger};
use super::super::walk::{Feed, Walk};
use super::super::windows;
use super::tables::behind_options;

impl Walk {
    pub(super) fn ssh(&mut self, name: &str, args: &[String], stdin: &Feed) -> Option<Feed> {
        if name == "sshpass" {
            return Some(self.invoke(behind_options(args, "pfde", 0).to_vec(), stdin));
        }
        let behind = behind_options(args, "bcDEeFIiJLlmOopQRSWw", 0);
        let inner = behind_options(behind.get(1..)?, "p", 0);
        Some(if inner.is_empty() { self.fed_remote(stdin) } else { self.text(&inner.join(" "), stdin) })
    }

    pub(super) fn fed_remote(&mut self, stdin: &Feed) -> Feed {
        if let Text::Known(text) = &stdin.text {
            self.line(&text.clone(), &Text::None);
        }
        Feed { text: Text::Unknown, from: Vec::new() }
    }

    /// `docker exec web …`, `docker run -v /:/x image …`, `kubectl exec pod -- …`.
    pub(super) fn container(&mut self, args: &[String], stdin: &Feed) -> Option<Feed> {
        let at = args.iter().position(|arg| matches!(arg.as_str(), "exec" | "run" | "debug" | "rsh"))?;
        let word = args.get(at)?;
        if args.iter().take(at).any(|arg| matches!(arg.as_str(), "delete" | "rm" | "apply")) {
            return None;
        }
        let rest = args.get(at + 1..)?;
        let inner = match rest.iter().position(|arg| arg == "--") {
            Some(dashes) => rest.get(dashes + 1..)?,
            None => behind_options(rest, "vewuplmhacnfe", 1),
        };
        let mounts = rest
            .iter()
            .any(|arg| arg.contains(":/") || arg.starts_with("type=bind") || arg == "--privileged");
        if inner.is_empty() || (word == "run" && !mounts) {
            return Some(Feed { text: Text::Unknown, from: Vec::new() });
        }
        Some(self.invoke(inner.to_vec(), stdin))
    }

    pub(super) fn terminal(&mut self, name: &str, args: &[String]) -> Option<Feed> {
        for arg in args.iter().filter(|arg| arg.contains(' ')) {
            self.line(arg, &Text::None);
        }
        let line: Vec<String> = args
            .iter()
            .filter(|arg| !arg.starts_with('-'))
            .skip(usize::from(name != "screen"))
            .cloned()
            .collect();
        (!line.is_empty()).then(|| self.invoke(line, &Feed { text: Text::None, from: Vec::new() }))
    }

    pub(super) fn windows(&mut self, name: &str, args: &[String]) -> Feed {
        let lower = |arg: &String| arg.to_ascii_lowercase();
        let at = args.iter().position(|arg| {
            let arg = lower(arg);
            if name == "cmd" {
                matches!(arg.as_str(), "/c" | "/k")
            } else {
                "-command".starts_with(&arg) && arg.len() > 1
            }
        });
        let hidden =
            |arg: &String| lower(arg).starts_with("-enc") || matches!(lower(arg).as_str(), "-e" | "-ec");
        if name != "cmd" && args.iter().any(hidden) {
            self.note(danger("unknown-code", "runs code that the line does not show"));
        }
        let line = args.get(at.map_or(0, |at| at + 1)..).unwrap_or_default().join(" ");
        let found = windows::judge(&line, &self.budget);
        self.note(found);
        Feed { text: Text::Unknown, from: Vec::new() }
    }

    /// Lines inside options.
    pub(super) fn hidden_line(&mut self, name: &str, args: &[String]) -> Option<Feed> {
        let call = Call { name, args, stdin: &Text::None, cwd: "." };
        let lines: Vec<String> = match name {
            "ansible" => call.value(&["-a", "--args"]).into_iter().map(str::to_owned).collect(),
            "git" => git_lines(args),
            "tar" => args
                .iter()
                .filter_map(|arg| arg.split_once("exec=").or_else(|| arg.split_once("--to-command=")))
                .map(|(_, line)| line.to_owned())
                .collect(),
            "gcloud" => call.value(&["--command"]).into_iter().map(str::to_owned).collect(),
            "pdsh" | "pssh" | "clush" => args.last().cloned().into_iter().collect(),
            "osascript" => args
                .iter()
                .filter_map(|arg| arg.split_once("do shell script"))
                .map(|(_, line)| line.trim().trim_matches('"').to_owned())
                .collect(),
            _ => Vec::new(),
        };
        for line in lines {
            self.line(&line, &Text::None);
        }
        None
    }
}

/// Lines that git runs: `alias.x=!…`, `submodule foreach …`, `bisect run …`, `rebase --exec …`.
fn git_lines(args: &[String]) -> Vec<String> {
    let alias = args
        .iter()
        .filter_map(|arg| arg.split_once('!').filter(|(key, _)| key.is_empty() || key.starts_with("alias.")))
        .map(|(_, line)| line.to_owned());
    let runs = args.windows(2).position(|pair| matches!(pair, [a, b] if (a == "submodule" && b == "foreach") || (a == "bisect" && b == "run")));
    let run = runs.map(|at| behind_options(args.get(at + 2..).unwrap_or_default(), "", 0).join(" "));
    let exec = args.windows(2).filter_map(|pair| match pair {
        [key, line] if key == "--exec" || key == "-x" || key.ends_with("-filter") => Some(line.clone()),
        _ => None,
    });
    alias.chain(run).chain(exec).collect()
}
