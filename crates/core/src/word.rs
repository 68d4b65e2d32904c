//! Closed lists of words: an enum, its written names, and the way back, in one place.

/// An enum whose values have one written name each.
pub trait Word: Copy + Sized + 'static {
    /// What such a word is called in an error text, such as `role`.
    const KIND: &'static str;
    /// Every value with its written name, in the order in which they are shown.
    const ALL: &'static [(&'static str, Self)];

    /// The written name.
    fn as_str(self) -> &'static str;

    /// The value with this exact name; names are case-sensitive.
    fn from_word(word: &str) -> Option<Self> {
        Self::ALL.iter().find(|(name, _)| *name == word).map(|(_, value)| *value)
    }

    /// All names, joined by `, `, for error texts.
    fn allowed() -> String {
        let names: Vec<&str> = Self::ALL.iter().map(|(name, _)| *name).collect();
        names.join(", ")
    }
}

/// Declares an enum and implements [`Word`], `Display` and JSON Schema for it.
macro_rules! words {
    (
        $(#[$meta:meta])*
        pub enum $name:ident($kind:literal) {
            $( $(#[$vmeta:meta])* $variant:ident = $word:literal, )+
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, schemars::JsonSchema)]
        pub enum $name {
            $( $(#[$vmeta])* #[serde(rename = $word)] $variant, )+
        }

        impl $crate::word::Word for $name {
            const KIND: &'static str = $kind;
            const ALL: &'static [(&'static str, Self)] = &[ $( ($word, $name::$variant), )+ ];

            fn as_str(self) -> &'static str {
                match self { $( $name::$variant => $word, )+ }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str($crate::word::Word::as_str(*self))
            }
        }
    };
}
pub(crate) use words;

/// A small set of words, one bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WordSet<W> {
    bits: u32,
    word: std::marker::PhantomData<W>,
}

impl<W: Word + PartialEq> WordSet<W> {
    /// No word.
    pub fn none() -> Self {
        WordSet { bits: 0, word: std::marker::PhantomData }
    }

    /// Every word.
    pub fn all() -> Self {
        let mut set = Self::none();
        W::ALL.iter().for_each(|(_, word)| set.insert(*word));
        set
    }

    /// Adds one word.
    pub fn insert(&mut self, word: W) {
        self.bits |= Self::bit(word);
    }

    /// True if the word is in the set.
    pub fn contains(self, word: W) -> bool {
        self.bits & Self::bit(word) != 0
    }

    /// The words in the set, in their order.
    pub fn words(self) -> impl Iterator<Item = &'static str> {
        W::ALL.iter().filter(move |(_, word)| self.contains(*word)).map(|(text, _)| *text)
    }

    fn bit(word: W) -> u32 {
        let place = W::ALL.iter().position(|(_, w)| *w == word).unwrap_or(31);
        1u32.checked_shl(u32::try_from(place).unwrap_or(31)).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Role;

    #[test]
    fn a_set_knows_its_words() {
        let mut set = WordSet::none();
        set.insert(Role::Tool);
        assert!(set.contains(Role::Tool));
        assert!(!set.contains(Role::User));
        assert!(WordSet::<Role>::all().contains(Role::Reasoning));
    }

    #[test]
    fn names_are_case_sensitive() {
        assert_eq!(Role::from_word("user"), Some(Role::User));
        assert_eq!(Role::from_word("User"), None);
    }
}
