//! Translation of a finished page.
//!
//! The sections are in English. Each text of the page is looked up in the phrases of a language; a
//! text without a phrase stays English and has the attribute `lang`. Numbers and dates follow the
//! conventions of the language.

mod document;
mod numbers;
mod phrases;

use std::fmt;
use std::str::FromStr;

use phrases::Phrases;

/// Language of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Language {
    /// English.
    #[default]
    English,
    /// Brazilian Portuguese.
    Portuguese,
    /// Japanese.
    Japanese,
}

impl Language {
    /// All languages.
    pub const ALL: [Self; 3] = [Self::English, Self::Portuguese, Self::Japanese];

    /// Returns the name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::English => "en",
            Self::Portuguese => "pt",
            Self::Japanese => "ja",
        }
    }

    /// Returns the tag in a page (BCP 47).
    const fn tag(self) -> &'static str {
        match self {
            Self::English => "en",
            Self::Portuguese => "pt-BR",
            Self::Japanese => "ja",
        }
    }

    /// Returns the phrases of the report, and those of experiments.
    const fn phrases(self) -> [&'static str; 2] {
        match self {
            Self::English => ["", ""],
            Self::Portuguese => [
                include_str!("language/pt.toml"),
                include_str!("language/pt-experiments.toml"),
            ],
            Self::Japanese => [
                include_str!("language/ja.toml"),
                include_str!("language/ja-experiments.toml"),
            ],
        }
    }
}

impl Language {
    /// Returns true if the phrases translate the whole of `text`, or if it needs no translation.
    #[must_use]
    pub fn translates(self, text: &str) -> bool {
        let translation = Phrases::of(self).translate(text);
        !text.contains(char::is_alphabetic)
            || matches!(translation, phrases::Translation::Translated(_))
    }
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Language {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|one| one.name() == text);
        let known = || Self::ALL.map(Self::name).join(", ");
        found.ok_or_else(|| format!("unknown language '{text}': expected one of {}", known()))
    }
}

/// Translates a page.
pub(super) fn translate(html: &str, language: Language) -> String {
    match language {
        Language::English => html.to_owned(),
        Language::Portuguese | Language::Japanese => {
            let mut phrases = Phrases::of(language);
            document::translate(html, language, &mut phrases)
        }
    }
}

#[cfg(test)]
mod tests;
