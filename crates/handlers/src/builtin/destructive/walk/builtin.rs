//! What changes the state of the shell.

use super::super::call::{Call, Text, UNKNOWN, base_name};
use super::super::{output, system, target};
use super::Walk;

impl Walk {
    /// What changes the state of the shell.
    pub(super) fn builtin(&mut self, call: &Call<'_>) {
        match call.name {
            "cd" | "pushd" => {
                let to = call.operand(0).unwrap_or("~").to_owned();
                let path = target::join(&to, self.cwd());
                self.cwd = Some(path);
            }
            "popd" => self.cwd = Some(UNKNOWN.to_string()),
            "alias" => {
                for (name, value) in call.args.iter().filter_map(|arg| arg.split_once('=')) {
                    self.aliases.insert(name.to_owned(), value.to_owned());
                }
            }
            "export" | "declare" | "local" | "readonly" | "typeset" => {
                for (name, value) in call.args.iter().filter_map(|arg| arg.split_once('=')) {
                    self.note(system::variable(name, value, None));
                    self.set(name, value, false);
                }
            }
            "unset" => {
                for name in call.operands() {
                    self.vars.remove(name);
                    self.functions.remove(name);
                }
            }
            "read" | "mapfile" | "readarray" => {
                let value = call.stdin.known().map(|text| text.trim_end().to_owned());
                for name in call.operands() {
                    self.set(name, value.as_deref().unwrap_or("\0"), false);
                }
            }
            "set" => {
                let mut args = call.args.iter();
                if args.any(|arg| arg == "--") {
                    self.args = Some(args.cloned().collect());
                }
            }
            _ => self.keeps(call),
        }
    }

    /// What a program leaves in files or variables for later.
    fn keeps(&mut self, call: &Call<'_>) {
        match call.name {
            "tee" => {
                for path in call.operands() {
                    self.keep(path, call.stdin.clone());
                }
            }
            "curl" | "wget" => {
                let path = call.value(&["-o", "--output", "-O", "--output-document"]);
                let path = path
                    .filter(|path| !path.starts_with("http"))
                    .or_else(|| call.operands().last().map(base_name));
                if let Some(path) = path {
                    self.keep(path, Text::Remote);
                }
            }
            "printf" if call.args.first().is_some_and(|arg| arg == "-v") => {
                if let [_, name, format, rest @ ..] = call.args
                    && let Text::Known(text) = output::printf(format, rest)
                {
                    self.set(name, &text, false);
                }
            }
            _ => {}
        }
    }
}
