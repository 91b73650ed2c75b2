//! Phrases of a language, and the translation of texts with them.
//!
//! A phrase is a sentence or a title. Its placeholders `{1}`, `{2}` are variable parts, which are
//! translated separately; `<1>` and `</1>` are the tags of a link or a piece of code.

use std::collections::{BTreeMap, HashMap};

use super::{Language, numbers};

/// Translation of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Translation {
    /// Translated.
    Translated(String),
    /// Numbers and names, which need no translation.
    Plain(String),
    /// English, without a phrase.
    Missing(String),
}

impl Translation {
    pub(super) fn text(&self) -> &str {
        match self {
            Self::Translated(text) | Self::Plain(text) | Self::Missing(text) => text,
        }
    }
}

/// Separators between parts with separate phrases.
const SEPARATORS: [&str; 5] = [" · ", "; ", ": ", ", ", " "];

/// Phrases of a language.
pub(super) struct Phrases {
    language: Language,
    exact: HashMap<String, String>,
    /// Phrases with placeholders, those with the most fixed text first.
    patterns: Vec<(PhrasePattern, String)>,
    known: HashMap<String, Translation>,
}

impl Phrases {
    /// Returns the phrases of `language`.
    ///
    /// # Panics
    /// Never: a test parses the phrases.
    pub(super) fn of(language: Language) -> Self {
        let files = language.phrases().into_iter();
        let all = files.flat_map(|file| -> BTreeMap<String, String> {
            toml::from_str(file).expect("a test parses the phrases")
        });
        let (patterns, exact) = all.partition::<Vec<_>, _>(|(key, _)| key.contains('{'));
        let patterns = patterns.into_iter();
        let mut patterns: Vec<(PhrasePattern, String)> = patterns
            .map(|(key, value)| (PhrasePattern::new(&key), value))
            .collect();
        patterns.sort_by_key(|(pattern, _)| std::cmp::Reverse(pattern.weight()));
        Self {
            language,
            exact: exact.into_iter().collect(),
            patterns,
            known: HashMap::new(),
        }
    }

    /// Translates `text`.
    pub(super) fn translate(&mut self, text: &str) -> Translation {
        // Phrases have no non-breaking spaces.
        if text.contains('\u{a0}') {
            return self.translate(&text.replace('\u{a0}', " "));
        }
        if let Some(known) = self.known.get(text) {
            return known.clone();
        }
        let translation = self.find(text);
        self.known.insert(text.to_owned(), translation.clone());
        translation
    }

    fn find(&mut self, text: &str) -> Translation {
        if let Some(phrase) = self.exact.get(text) {
            return Translation::Translated(phrase.clone());
        }
        if !text.contains(char::is_alphabetic) {
            return Translation::Plain(numbers::localized(text, self.language));
        }
        // A title before a sentence ends with a full stop.
        let title = text
            .strip_suffix('.')
            .and_then(|title| self.exact.get(title));
        if let Some(phrase) = title {
            let stop = if self.language == Language::Japanese {
                "。"
            } else {
                "."
            };
            return Translation::Translated(format!("{phrase}{stop}"));
        }
        if let Some(translation) = self.with_value(text) {
            return translation;
        }
        if let Some(inner) = wrapped(text) {
            return self.wrap(text, inner);
        }
        if let Some((first, rest)) = first_sentence(text) {
            return self.sentences(text, first, rest);
        }
        if text.contains(SEPARATORS[0]) {
            return self.in_parts(text);
        }
        self.by_pattern(text).unwrap_or_else(|| self.in_parts(text))
    }

    /// Translates a first sentence and the rest.
    fn sentences(&mut self, text: &str, first: &str, rest: &str) -> Translation {
        let (first, rest) = (self.translate(first), self.translate(rest));
        let between = match self.language {
            Language::Japanese => "",
            Language::English | Language::Portuguese => " ",
        };
        match (first, rest) {
            // A text has one language.
            (Translation::Missing(_), _) | (_, Translation::Missing(_)) => {
                Translation::Missing(text.to_owned())
            }
            (first, rest) => {
                Translation::Translated(format!("{}{between}{}", first.text(), rest.text()))
            }
        }
    }

    /// Translates a text by a phrase with placeholders; `None` if no phrase matches.
    fn by_pattern(&mut self, text: &str) -> Option<Translation> {
        let (parts, phrase) = self.patterns.iter().find_map(|(pattern, phrase)| {
            let parts = pattern.parts(text)?;
            let parts: Vec<String> = parts.into_iter().map(ToOwned::to_owned).collect();
            Some((parts, phrase.clone()))
        })?;
        let parts: Vec<Translation> = parts.iter().map(|part| self.translate(part)).collect();
        let is_missing = |part: &Translation| matches!(part, Translation::Missing(_));
        if parts.iter().any(is_missing) {
            return Some(Translation::Missing(text.to_owned()));
        }
        let fill = |phrase: String, (index, part): (usize, &Translation)| {
            phrase.replace(&format!("{{{}}}", index + 1), part.text())
        };
        let filled = parts.iter().enumerate().fold(phrase, fill);
        Some(Translation::Translated(filled))
    }

    /// Translates a parameter with its value: `frames per second 1000`.
    fn with_value(&self, text: &str) -> Option<Translation> {
        let (about, value) = text.rsplit_once(' ')?;
        let about = self.exact.get(about)?;
        let between = match (self.language, value.starts_with('(')) {
            (Language::Portuguese, false) => ": ",
            (Language::Portuguese | Language::English | Language::Japanese, _) => " ",
        };
        let value = match self.exact.get(value) {
            Some(word) => word.clone(),
            None => numbers::localized(value, self.language),
        };
        Some(Translation::Translated(format!("{about}{between}{value}")))
    }

    /// Translates a text that is a link or a piece of code as a whole.
    fn wrap(&mut self, text: &str, inner: &str) -> Translation {
        let (open, close) = (
            text.find('>').map_or(0, |at| at + 1),
            text.rfind('<').unwrap_or(0),
        );
        let put = |inner: &str| format!("{}{inner}{}", &text[..open], &text[close..]);
        // Commands and names are the same in all languages.
        let is_code = |c: char| c.is_ascii_lowercase() || "-_./=".contains(c) || c.is_ascii_digit();
        if inner.chars().all(is_code) {
            return Translation::Plain(text.to_owned());
        }
        match self.translate(inner) {
            Translation::Translated(inner) => Translation::Translated(put(&inner)),
            Translation::Plain(inner) => Translation::Plain(put(&inner)),
            Translation::Missing(inner) => Translation::Missing(put(&inner)),
        }
    }

    /// Returns a separator in this language.
    fn separator(&self, separator: &'static str) -> &'static str {
        match (self.language, separator) {
            (Language::Japanese, "; ") => "；",
            (Language::Japanese, ": ") => "：",
            (Language::Japanese, ", ") => "、",
            (_, separator) => separator,
        }
    }

    /// Translates the parts of a text.
    fn in_parts(&mut self, text: &str) -> Translation {
        for separator in SEPARATORS {
            let Some((first, rest)) = text.split_once(separator) else {
                continue;
            };
            if separator == " " && text.split(' ').count() > 3 {
                break;
            }
            let (first, rest) = (self.translate(first), self.translate(rest));
            let parts = [&first, &rest];
            let is_missing = parts
                .iter()
                .any(|part| matches!(part, Translation::Missing(_)));
            let is_any = parts
                .iter()
                .any(|part| matches!(part, Translation::Translated(_)));
            if is_any && !is_missing {
                let between = self.separator(separator);
                return Translation::Translated(format!(
                    "{}{between}{}",
                    first.text(),
                    rest.text()
                ));
            }
        }
        let plain = numbers::localized(text, self.language);
        // Names need no translation; sentences do.
        let words = text.split(' ').filter(|word| {
            word.chars().count() > 1
                && word
                    .chars()
                    .all(|c| c.is_lowercase() || ",;:.’'".contains(c))
        });
        match words.count() {
            0..=2 => Translation::Plain(plain),
            _ => Translation::Missing(text.to_owned()),
        }
    }
}

/// Returns the content of a tag that contains all of `text`.
fn wrapped(text: &str) -> Option<&str> {
    let inner = text.strip_prefix('<')?.strip_suffix('>')?;
    let (number, inner) = inner.split_once('>')?;
    let inner = inner.strip_suffix(&format!("</{number}"))?;
    (!inner.contains('<')).then_some(inner)
}

/// Splits the first sentence from the next: a full stop, a space, and a capital letter.
fn first_sentence(text: &str) -> Option<(&str, &str)> {
    let ends = text.match_indices(['.', '?']).map(|(at, _)| at + 1);
    for end in ends {
        let Some(rest) = text[end..].strip_prefix(' ') else {
            continue;
        };
        if rest.starts_with(|c: char| c.is_uppercase() || c == '○') {
            return Some((&text[..end], rest));
        }
    }
    None
}

/// Phrase with placeholders.
pub(super) struct PhrasePattern {
    literals: Vec<String>,
}

impl PhrasePattern {
    pub(super) fn new(key: &str) -> Self {
        let mut literals = Vec::new();
        let mut rest = key;
        for number in 1.. {
            let Some((before, after)) = rest.split_once(&format!("{{{number}}}")) else {
                break;
            };
            literals.push(before.to_owned());
            rest = after;
        }
        literals.push(rest.to_owned());
        Self { literals }
    }

    /// Returns the length of the fixed text.
    fn weight(&self) -> usize {
        self.literals.iter().map(String::len).sum()
    }

    /// Returns the parts in the placeholders, if `text` matches the pattern.
    pub(super) fn parts<'t>(&self, text: &'t str) -> Option<Vec<&'t str>> {
        let (first, others) = self.literals.split_first()?;
        let (last, between) = others.split_last()?;
        let mut rest = text
            .strip_prefix(first.as_str())?
            .strip_suffix(last.as_str())?;
        let mut parts = Vec::new();
        for literal in between {
            let (part, after) = rest.split_once(literal.as_str())?;
            parts.push(part);
            rest = after;
        }
        parts.push(rest);
        parts.iter().all(|part| !part.is_empty()).then_some(parts)
    }
}
