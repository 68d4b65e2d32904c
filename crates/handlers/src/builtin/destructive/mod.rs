//! Is a shell line destructive? Judged by what the line would run, not by the words in it.
//!
//! The line is parsed (`brush-parser`), and the tree is walked as a shell would: variables and functions that the line
//! itself sets are followed, substitutions, wrappers (`sudo`, `xargs`, `sh -c`, `ssh`…), here-documents and pipes into a
//! shell are opened. What is then left, programs with arguments, goes through tables: what a program does with which
//! options, and what is lost with which path.
//!
//! Nothing is run and nothing is read: the answer follows from the text alone, within a budget of work (the `budget` module) that
//! covers all that a line opens; a line that uses it up is refused. Long, deeply nested or unparsable
//! lines are cut into words and judged by the same tables, without what only a tree can tell.

mod budget;
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

use budget::Budget;
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
        let budget = Budget::default();
        let found = if command.len() > LONGEST {
            too_long()
        } else {
            match shell {
                Shell::Bash => walk::judge(&clean(command), &budget),
                Shell::Windows => windows::judge(&clean(command), &budget),
            }
        };
        found.or_else(|| budget.danger()).map_or(Finding::Harmless, Finding::Destructive)
    }

    /// Judges a program with its arguments, as it is started without a shell.
    pub fn judge_words(words: Vec<String>, shell: Shell) -> Finding {
        if shell == Shell::Windows || is_long(&words) {
            return Destructive::judge(&words.join(" "), shell);
        }
        let budget = Budget::default();
        let words = words.iter().map(|word| clean(word)).collect();
        let found = walk::judge_words(words, &budget).or_else(|| budget.danger());
        found.map_or(Finding::Harmless, Finding::Destructive)
    }

    /// The files that a line writes to, changes or deletes, as far as its text tells.
    ///
    /// # Errors
    ///
    /// When the line is too long or too complex to tell.
    pub fn written(command: &str, shell: Shell) -> Result<Vec<String>, Danger> {
        let budget = Budget::default();
        let refused = if command.len() > LONGEST { too_long() } else { None };
        match (refused, shell) {
            (Some(refused), _) => Err(refused),
            (None, Shell::Bash) => {
                let written = walk::written(&clean(command), &budget);
                budget.danger().map_or(Ok(written), Err)
            }
            (None, Shell::Windows) => Ok(Vec::new()),
        }
    }

    /// The same for a program with its arguments.
    ///
    /// # Errors
    ///
    /// As [`Destructive::written`].
    pub fn written_by_words(words: Vec<String>) -> Result<Vec<String>, Danger> {
        if is_long(&words) {
            return Destructive::written(&words.join(" "), Shell::Bash);
        }
        let budget = Budget::default();
        let written = walk::written_by_words(words.iter().map(|word| clean(word)).collect(), &budget);
        budget.danger().map_or(Ok(written), Err)
    }

    /// A path with `.`, `..` and doubled slashes worked out.
    pub fn plain_path(path: &str) -> String {
        target::join(path, ".")
    }
}

fn too_long() -> Option<Danger> {
    call::danger("unknown-code", "the line is too long to be judged")
}

/// Are the words too long, or so many that a blank between them makes them so?
fn is_long(words: &[String]) -> bool {
    words.iter().map(|word| word.len().saturating_add(1)).sum::<usize>() > LONGEST
}

/// Without the signs that stand for something in here.
fn clean(text: &str) -> String {
    text.replace([call::UNKNOWN, walk::REMOTE, heredoc::MARK], "")
}
