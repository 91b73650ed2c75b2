//! The report in other languages: a page of English text goes in, the same page comes out.
//!
//! The sections are written in English alone. Here each text of the finished page is looked up
//! in a file of phrases, one file for each language; what is not there stays English and says
//! so by its `lang`. Numbers and dates are rewritten as the language has them.

mod document;
mod numbers;
mod phrases;

use std::fmt;
use std::str::FromStr;

use phrases::Phrases;

/// A language of reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Language {
    /// English.
    #[default]
    English,
    /// Portuguese, as in Brazil.
    Portuguese,
    /// Japanese.
    Japanese,
}

impl Language {
    /// Every language.
    pub const ALL: [Self; 3] = [Self::English, Self::Portuguese, Self::Japanese];

    /// The name by which it is asked for.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::English => "en",
            Self::Portuguese => "pt",
            Self::Japanese => "ja",
        }
    }

    /// Its tag in a page (BCP 47).
    const fn tag(self) -> &'static str {
        match self {
            Self::English => "en",
            Self::Portuguese => "pt-BR",
            Self::Japanese => "ja",
        }
    }

    /// Its phrases: those of the report itself, and those of experiments.
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
    /// True if the report's phrases translate the whole of `text`, or if it needs no translation.
    #[must_use]
    pub fn translates(self, text: &str) -> bool {
        let told = Phrases::of(self).tell(text);
        !text.contains(char::is_alphabetic) || matches!(told, phrases::Told::Translated(_))
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
        found.ok_or_else(|| {
            format!(
                "there is no language '{text}': one of {} is wanted",
                known()
            )
        })
    }
}

/// The page `html` in `language`.
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
