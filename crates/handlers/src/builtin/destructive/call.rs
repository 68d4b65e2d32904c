//! One program with its arguments, as the tables judge it.

/// Stands in a word for text that is not known from the line alone.
pub(super) const UNKNOWN: char = '\0';

/// Why a line is destructive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Danger {
    /// The kind, one word: `delete`, `disk`, `git`, `cloud`, `database`, `overwrite`, `permissions`, `power`,
    /// `system`, `guard`, `unknown-code`.
    pub kind: &'static str,
    /// What happens, for people and models.
    pub what: String,
}

/// A danger, for `Some`.
pub(super) fn danger(kind: &'static str, what: impl Into<String>) -> Option<Danger> {
    Some(Danger { kind, what: what.into() })
}

/// What is known of a text that goes into a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Text {
    /// Nothing is connected.
    None,
    /// This text.
    Known(String),
    /// A file of this machine.
    Local,
    /// From the network.
    Remote,
    /// Something else.
    Unknown,
}

impl Text {
    pub(super) fn known(&self) -> Option<&str> {
        match self {
            Text::Known(text) => Some(text),
            Text::None | Text::Local | Text::Remote | Text::Unknown => None,
        }
    }
}

/// A program, its arguments, and what surrounds it.
#[derive(Debug)]
pub(super) struct Call<'a> {
    /// The program's name without folder and `.exe`.
    pub(super) name: &'a str,
    pub(super) args: &'a [String],
    pub(super) stdin: &'a Text,
    /// The folder it runs in: `.` is where the line started.
    pub(super) cwd: &'a str,
}

impl<'a> Call<'a> {
    /// Is one of these short options set, alone or in a cluster (`-rvf`)?
    pub(super) fn short(&self, letters: &str) -> bool {
        self.options().any(|arg| is_cluster(arg) && arg.chars().skip(1).any(|c| letters.contains(c)))
    }

    /// Is this long option set, whole, with a value, or cut short as GNU programs allow?
    pub(super) fn long(&self, name: &str) -> bool {
        self.options().any(|arg| {
            let head = arg.split('=').next().unwrap_or(arg);
            head == name || (head.starts_with("--") && head.len() > 4 && name.starts_with(head))
        })
    }

    /// Is this argument there, exactly or as `arg=…`?
    pub(super) fn exact(&self, name: &str) -> bool {
        self.args
            .iter()
            .any(|arg| arg == name || arg.strip_prefix(name).is_some_and(|rest| rest.starts_with('=')))
    }

    /// Is any of these there?
    pub(super) fn any(&self, names: &[&str]) -> bool {
        names.iter().any(|name| self.exact(name))
    }

    /// The value of an option, as the next word or behind `=`.
    pub(super) fn value(&self, names: &[&str]) -> Option<&'a str> {
        let mut args = self.args.iter();
        while let Some(arg) = args.next() {
            for name in names {
                if arg == name {
                    return args.next().map(String::as_str);
                }
                if let Some(rest) = arg.strip_prefix(name)
                    && let Some(value) = rest.strip_prefix('=').or((name.len() == 2).then_some(rest))
                {
                    return Some(value);
                }
            }
        }
        None
    }

    /// Everything before `--` that begins with `-`.
    pub(super) fn options(&self) -> impl Iterator<Item = &'a str> {
        self.args
            .iter()
            .map(String::as_str)
            .take_while(|arg| *arg != "--")
            .filter(|arg| arg.starts_with('-') && arg.len() > 1)
    }

    /// Everything that is no option; behind `--` all.
    pub(super) fn operands(&self) -> impl Iterator<Item = &'a str> {
        let mut behind = false;
        self.args.iter().map(String::as_str).filter(move |arg| {
            if behind {
                return true;
            }
            behind = *arg == "--";
            !behind && (!arg.starts_with('-') || *arg == "-")
        })
    }

    /// The n-th word that is no option.
    pub(super) fn operand(&self, n: usize) -> Option<&'a str> {
        self.operands().nth(n)
    }

    /// Does it only talk about itself, or only pretend?
    pub(super) fn is_harmless_mode(&self) -> bool {
        self.any(&["--help", "--version", "--dry-run", "--dryrun", "--what-if", "--just-print", "--no-act"])
            && !self.any(&["--dry-run=none", "--dry-run=false", "--dryrun=false"])
    }
}

/// `-rf`, not `--force`, not `-`.
pub(super) fn is_cluster(arg: &str) -> bool {
    arg.starts_with('-') && !arg.starts_with("--") && arg.len() > 1
}

/// The last part of a path.
pub(super) fn base_name(path: &str) -> &str {
    path.trim_end_matches('/').rsplit('/').next().unwrap_or(path)
}
