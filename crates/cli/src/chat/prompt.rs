//! Where the prompt comes from.

use crate::failure::Failure;
use std::io::{self, IsTerminal, Read};

/// A longer prompt is a mistake.
const LONGEST_PROMPT: u64 = 64 * 1024 * 1024;

/// What to ask.
pub(crate) enum Prompt {
    /// This, once.
    Text(String),
    /// What a person types.
    Terminal,
}

impl Prompt {
    /// The argument; without one, or for `-`, standard input; a person if that is a terminal.
    pub(crate) fn read(argument: Option<&str>, json: bool) -> Result<Prompt, Failure> {
        let text = match argument {
            Some(text) if text != "-" => text.to_owned(),
            None if io::stdin().is_terminal() => {
                if json {
                    return Err(Failure::new(
                        "--json needs a prompt: give it as an argument or on standard input",
                    ));
                }
                return Ok(Prompt::Terminal);
            }
            _ => from_stdin()?,
        };
        if text.trim().is_empty() {
            return Err(Failure::new("the prompt is empty: give it as an argument or on standard input"));
        }
        Ok(Prompt::Text(text))
    }
}

fn from_stdin() -> Result<String, Failure> {
    let mut bytes = Vec::new();
    io::stdin()
        .lock()
        .take(LONGEST_PROMPT.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(|error| Failure::new(format!("the prompt cannot be read: {error}")))?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > LONGEST_PROMPT {
        return Err(Failure::new("the prompt on standard input is longer than 64 MiB"));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Failure::new(format!("the prompt on standard input is not UTF-8 text (byte {at})"))
    })?;
    // the line break that `echo` adds
    let text = text.strip_suffix('\n').map(|text| text.strip_suffix('\r').unwrap_or(text)).unwrap_or(&text);
    Ok(text.to_owned())
}
