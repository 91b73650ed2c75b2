//! The phrases of a language, and how a text is made of them.
//!
//! A phrase is a sentence or a title. In it `{1}`, `{2}` stand for what differs from report to
//! report, and are translated by themselves; `<1>` and `</1>` for a link or a piece of code.

use std::collections::{BTreeMap, HashMap};

use super::{Language, numbers};

/// What a text came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// In the language.
    Translated(String),
    /// There was nothing to translate: numbers, names.
    Plain(String),
    /// English, since the language has no phrase for it.
    Missing(String),
}

impl Told {
    pub(super) fn text(&self) -> &str {
        match self {
            Self::Translated(text) | Self::Plain(text) | Self::Missing(text) => text,
        }
    }
}

/// What stands between parts that have phrases of their own.
const SEPARATORS: [&str; 5] = [" · ", "; ", ": ", ", ", " "];

/// The phrases of a language.
pub(super) struct Phrases {
    language: Language,
    exact: HashMap<String, String>,
    /// Those with something in them that differs, those with the most text first.
    patterns: Vec<(Pattern, String)>,
    known: HashMap<String, Told>,
}

impl Phrases {
    /// Those of `language`.
    ///
    /// # Panics
    /// Never: the phrases are part of the program and read by a test.
    pub(super) fn of(language: Language) -> Self {
        let files = language.phrases().into_iter();
        let all = files.flat_map(|file| -> BTreeMap<String, String> {
            toml::from_str(file).expect("the phrases are part of the program")
        });
        let (patterns, exact) = all.partition::<Vec<_>, _>(|(key, _)| key.contains('{'));
        let patterns = patterns.into_iter();
        let mut patterns: Vec<(Pattern, String)> = patterns
            .map(|(key, value)| (Pattern::new(&key), value))
            .collect();
        patterns.sort_by_key(|(pattern, _)| std::cmp::Reverse(pattern.weight()));
        Self {
            language,
            exact: exact.into_iter().collect(),
            patterns,
            known: HashMap::new(),
        }
    }

    /// `text` in the language, as far as there are phrases.
    pub(super) fn tell(&mut self, text: &str) -> Told {
        // Whoever translates need not know which spaces a line may not be broken at.
        if text.contains('\u{a0}') {
            return self.tell(&text.replace('\u{a0}', " "));
        }
        if let Some(known) = self.known.get(text) {
            return known.clone();
        }
        let told = self.find(text);
        self.known.insert(text.to_owned(), told.clone());
        told
    }

    fn find(&mut self, text: &str) -> Told {
        if let Some(phrase) = self.exact.get(text) {
            return Told::Translated(phrase.clone());
        }
        if !text.contains(char::is_alphabetic) {
            return Told::Plain(numbers::localized(text, self.language));
        }
        // A title ends with a full stop where a sentence follows.
        let title = text
            .strip_suffix('.')
            .and_then(|title| self.exact.get(title));
        if let Some(phrase) = title {
            let stop = if self.language == Language::Japanese {
                "。"
            } else {
                "."
            };
            return Told::Translated(format!("{phrase}{stop}"));
        }
        if let Some(told) = self.with_value(text) {
            return told;
        }
        if let Some(inner) = wrapped(text) {
            return self.wrap(text, inner);
        }
        if let Some((first, rest)) = first_sentence(text) {
            let (first, rest) = (self.tell(first), self.tell(rest));
            let between = if self.language == Language::Japanese {
                ""
            } else {
                " "
            };
            return match (first, rest) {
                // A text is of one language.
                (Told::Missing(_), _) | (_, Told::Missing(_)) => Told::Missing(text.to_owned()),
                (first, rest) => {
                    Told::Translated(format!("{}{between}{}", first.text(), rest.text()))
                }
            };
        }
        if text.contains(SEPARATORS[0]) {
            return self.in_parts(text);
        }
        let found = self.patterns.iter().find_map(|(pattern, phrase)| {
            let parts = pattern.parts(text)?;
            let parts: Vec<String> = parts.into_iter().map(ToOwned::to_owned).collect();
            Some((parts, phrase.clone()))
        });
        if let Some((parts, phrase)) = found {
            let parts: Vec<Told> = parts.iter().map(|part| self.tell(part)).collect();
            if parts.iter().any(|part| matches!(part, Told::Missing(_))) {
                return Told::Missing(text.to_owned());
            }
            let fill = |phrase: String, (index, part): (usize, &Told)| {
                phrase.replace(&format!("{{{}}}", index + 1), part.text())
            };
            return Told::Translated(parts.iter().enumerate().fold(phrase, fill));
        }
        self.in_parts(text)
    }

    /// What a parameter is, with its value behind: `frames a second 1000`.
    fn with_value(&self, text: &str) -> Option<Told> {
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
        Some(Told::Translated(format!("{about}{between}{value}")))
    }

    /// A text that is a link, or a piece of code, as a whole.
    fn wrap(&mut self, text: &str, inner: &str) -> Told {
        let (open, close) = (
            text.find('>').map_or(0, |at| at + 1),
            text.rfind('<').unwrap_or(0),
        );
        let put = |inner: &str| format!("{}{inner}{}", &text[..open], &text[close..]);
        // What is typed is typed so in every language.
        let is_typed =
            |c: char| c.is_ascii_lowercase() || "-_./=".contains(c) || c.is_ascii_digit();
        if inner.chars().all(is_typed) {
            return Told::Plain(text.to_owned());
        }
        match self.tell(inner) {
            Told::Translated(inner) => Told::Translated(put(&inner)),
            Told::Plain(inner) => Told::Plain(put(&inner)),
            Told::Missing(inner) => Told::Missing(put(&inner)),
        }
    }

    /// What stands between parts in this language.
    fn between(&self, separator: &'static str) -> &'static str {
        match (self.language, separator) {
            (Language::Japanese, "; ") => "；",
            (Language::Japanese, ": ") => "：",
            (Language::Japanese, ", ") => "、",
            (_, separator) => separator,
        }
    }

    /// A text of which some part may have a phrase.
    fn in_parts(&mut self, text: &str) -> Told {
        for separator in SEPARATORS {
            let Some((first, rest)) = text.split_once(separator) else {
                continue;
            };
            if separator == " " && text.split(' ').count() > 3 {
                break;
            }
            let (first, rest) = (self.tell(first), self.tell(rest));
            let parts = [&first, &rest];
            let missing = parts.iter().any(|told| matches!(told, Told::Missing(_)));
            let any = parts.iter().any(|told| matches!(told, Told::Translated(_)));
            if any && !missing {
                let between = self.between(separator);
                return Told::Translated(format!("{}{between}{}", first.text(), rest.text()));
            }
        }
        let plain = numbers::localized(text, self.language);
        // Names are no language; a sentence is.
        let words = text.split(' ').filter(|word| {
            word.chars().count() > 1
                && word
                    .chars()
                    .all(|c| c.is_lowercase() || ",;:.’'".contains(c))
        });
        match words.count() {
            0..=2 => Told::Plain(plain),
            _ => Told::Missing(text.to_owned()),
        }
    }
}

/// What stands in a tag that holds all of `text`.
fn wrapped(text: &str) -> Option<&str> {
    let inner = text.strip_prefix('<')?.strip_suffix('>')?;
    let (number, inner) = inner.split_once('>')?;
    let inner = inner.strip_suffix(&format!("</{number}"))?;
    (!inner.contains('<')).then_some(inner)
}

/// The first sentence, where another follows: a full stop, a space, and a capital.
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

/// A phrase with places for what differs.
pub(super) struct Pattern {
    literals: Vec<String>,
}

impl Pattern {
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

    /// How much of it is fixed.
    fn weight(&self) -> usize {
        self.literals.iter().map(String::len).sum()
    }

    /// What stands in its places, if `text` is of this pattern.
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
