//! The providers this crate speaks to. One line here and one file in [`wire`](crate::wire) add another.

use std::fmt;
use std::str::FromStr;

use crate::wire::{Wire, anthropic, openai_chat};

/// Whose format is spoken. Servers that imitate one of them count as it; give the client their base URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Provider {
    /// OpenAI's chat completions, and everything compatible.
    OpenAiChat,
    /// Anthropic's messages, and everything compatible.
    Anthropic,
}

impl Provider {
    /// All of them.
    pub const ALL: &[Provider] = &[Provider::OpenAiChat, Provider::Anthropic];

    /// How this provider's answers and requests are written.
    pub fn wire(self) -> &'static Wire {
        match self {
            Provider::OpenAiChat => &openai_chat::WIRE,
            Provider::Anthropic => &anthropic::WIRE,
        }
    }

    /// Its short name, as [`FromStr`] reads it.
    pub fn as_str(self) -> &'static str {
        self.wire().name
    }

    /// Where it is when nobody says otherwise.
    pub fn default_base_url(self) -> &'static str {
        self.wire().base_url
    }

    /// The environment variable that usually holds its API key. Only the name: this crate reads no environment.
    pub fn key_env(self) -> &'static str {
        self.wire().key_env
    }
}

impl fmt::Display for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// No provider has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown provider `{found}`; expected one of {}", names())]
pub struct UnknownProvider {
    /// The name that was given.
    pub found: String,
}

impl FromStr for Provider {
    type Err = UnknownProvider;

    /// Reads a short name (`openai-chat`) or one of its other spellings (`openai`), in any case.
    fn from_str(text: &str) -> Result<Self, UnknownProvider> {
        let fits = |name: &str| name.eq_ignore_ascii_case(text.trim());
        let found =
            Provider::ALL.iter().find(|p| fits(p.as_str()) || p.wire().aliases.iter().any(|a| fits(a)));
        found.copied().ok_or_else(|| UnknownProvider { found: text.to_owned() })
    }
}

fn names() -> String {
    Provider::ALL.iter().map(|p| p.as_str()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for provider in Provider::ALL {
            assert_eq!(provider.to_string().parse(), Ok(*provider));
        }
        assert_eq!("OpenAI".parse(), Ok(Provider::OpenAiChat));
        let error = "olama".parse::<Provider>().unwrap_err();
        assert_eq!(error.to_string(), "unknown provider `olama`; expected one of openai-chat, anthropic");
    }
}
