//! Is a shell line destructive? Judged by what the line would run, not by the words in it.
//!
//! The line is parsed (`brush-parser`), and the tree is walked as a shell would: variables and functions that the line
//! itself sets are followed, substitutions, wrappers (`sudo`, `xargs`, `sh -c`, `ssh`…), here-documents and pipes into a
//! shell are opened. What is then left, programs with arguments, goes through tables: what a program does with which
//! options, and what is lost with which path.
//!
//! Nothing is run and nothing is read: the answer follows from the text alone. Long, deeply nested or unparsable
//! lines are cut into words and judged by the same tables, without what only a tree can tell.

mod call;
mod code;
mod files;
mod git;
mod heredoc;
mod infra;
mod line;
mod output;
mod sql;
mod system;
mod target;
mod walk;
mod windows;
mod word;
mod wrapper;

pub use call::Danger;

/// Longer lines are not judged: they are refused.
const LONGEST: usize = 256 << 10;

/// Which shell a line is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shell {
    /// A POSIX shell or bash.
    Bash,
    /// PowerShell or cmd.
    Windows,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding {
    /// Nothing destructive that the text shows.
    Harmless,
    /// The line can delete or overwrite what is not made again, stop the machine, rewrite shared history, switch a
    /// guard off, or give unknown text to a shell.
    Destructive(Danger),
}

impl Finding {
    /// Is there a danger?
    pub fn is_destructive(&self) -> bool {
        matches!(self, Finding::Destructive(_))
    }
}

/// The judge of shell lines.
#[derive(Debug, Clone, Copy, Default)]
pub struct Destructive;

impl Destructive {
    /// Judges one line, or several.
    pub fn judge(command: &str, shell: Shell) -> Finding {
        let found = if command.len() > LONGEST {
            call::danger("unknown-code", "the line is too long to be judged")
        } else {
            match shell {
                Shell::Bash => walk::judge(&clean(command)),
                Shell::Windows => windows::judge(&clean(command)),
            }
        };
        found.map_or(Finding::Harmless, Finding::Destructive)
    }

    /// Judges a program with its arguments, as it is started without a shell.
    pub fn judge_words(words: Vec<String>, shell: Shell) -> Finding {
        if shell == Shell::Windows || words.iter().map(String::len).sum::<usize>() > LONGEST {
            return Destructive::judge(&words.join(" "), shell);
        }
        let words = words.iter().map(|word| clean(word)).collect();
        walk::judge_words(words).map_or(Finding::Harmless, Finding::Destructive)
    }

    /// The files that a line writes to, changes or deletes, as far as its text tells.
    pub fn written(command: &str, shell: Shell) -> Vec<String> {
        match shell {
            Shell::Bash if command.len() <= LONGEST => walk::written(&clean(command)),
            Shell::Bash | Shell::Windows => Vec::new(),
        }
    }

    /// The same for a program with its arguments.
    pub fn written_by_words(words: Vec<String>) -> Vec<String> {
        walk::written_by_words(words.iter().map(|word| clean(word)).collect())
    }

    /// A path with `.`, `..` and doubled slashes worked out.
    pub fn plain_path(path: &str) -> String {
        target::join(path, ".")
    }
}

/// Without the signs that stand for something in here.
fn clean(text: &str) -> String {
    text.replace([call::UNKNOWN, walk::REMOTE, heredoc::MARK], "")
}
