//! Lexer: splits a line into tokens and key-value pairs that keep their position.
//!
//! It recognises separators, quotes and parentheses, but no key.

use super::MAX_LINE;
use super::error::ParseError;
use super::name_map::NameMap;

/// A part of the line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token<'a> {
    pub(super) text: &'a str,
    /// Bytes from the start of the line.
    pub(super) at: usize,
    /// Names of ports and tables.
    pub(super) names: &'a NameMap,
}

/// All of `text`.
pub(super) fn line(text: &str) -> Result<Token<'_>, ParseError> {
    let whole = Token {
        text,
        at: 0,
        names: NameMap::empty(),
    };
    if text.len() > MAX_LINE {
        return Err(whole.error(format!("the line exceeds {MAX_LINE} bytes")));
    }
    Ok(whole)
}

impl<'a> Token<'a> {
    /// Returns an error about this token.
    pub(super) fn error(self, problem: impl Into<String>) -> ParseError {
        ParseError::new(self.at, self.text, problem)
    }

    /// Returns the token with names of ports and tables.
    pub(super) fn with_names(self, names: &'a NameMap) -> Self {
        Self { names, ..self }
    }

    /// Splits the token after `len` bytes.
    pub(super) fn split_at(self, len: usize) -> (Self, Self) {
        let (left, right) = self.text.split_at(len);
        let at = self.at + len;
        let right = Token {
            text: right,
            at,
            ..self
        };
        (Token { text: left, ..self }, right)
    }

    /// Splits the token at the first `separator`.
    pub(super) fn split_once(self, separator: &str) -> Option<(Self, Self)> {
        let (left, rest) = self.split_at(self.text.find(separator)?);
        Some((left, rest.split_at(separator.len()).1))
    }

    /// Splits a keyword from the front and returns its meaning. Returns the whole token if it
    /// begins with none of `words`.
    pub(super) fn strip_keyword<T: Copy>(self, words: &[(T, &str)]) -> (Option<T>, Self) {
        let start = self.trim();
        let len = start.text.find([',', ' ', '\t']);
        let (word, rest) = start.split_at(len.unwrap_or(start.text.len()));
        match words.iter().find(|(_, name)| *name == word.text) {
            Some((meaning, _)) => (Some(*meaning), rest),
            None => (None, start),
        }
    }

    /// Without white space at either end.
    pub(super) fn trim(self) -> Self {
        let start = self.text.trim_start();
        Token {
            text: start.trim_end(),
            at: self.at + self.text.len() - start.len(),
            ..self
        }
    }
}

/// Key with an optional value: `key`, `key=value`, `key:value` or `key(value)`.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeyValue<'a> {
    pub(super) key: Token<'a>,
    pub(super) value: Option<Token<'a>>,
    /// Target of an arrow after the parentheses: `key(value)->target`.
    pub(super) target: Option<Token<'a>>,
}

impl<'a> KeyValue<'a> {
    /// Returns the value, which must not be empty.
    pub(super) fn required_value(self) -> Result<Token<'a>, ParseError> {
        match self.value {
            Some(value) if !value.text.is_empty() => Ok(value),
            _ => Err(self.key.error("missing value")),
        }
    }

    /// Checks that there is no arrow.
    pub(super) fn reject_target(self) -> Result<Self, ParseError> {
        match self.target {
            Some(target) => Err(target.error("unexpected `->`")),
            None => Ok(self),
        }
    }

    /// Checks that there is no value.
    pub(super) fn reject_value(self) -> Result<(), ParseError> {
        match self.value {
            Some(value) if !value.text.is_empty() => {
                let key = self.key.text;
                Err(value.error(format!("`{key}` takes no argument")))
            }
            _ => Ok(()),
        }
    }
}

/// True for separators of key-value pairs.
fn separates(c: char) -> bool {
    matches!(c, ',' | ' ' | '\t' | '\r' | '\n')
}

/// State inside and outside of quotes, which protect separators.
#[derive(Default)]
struct Quotes {
    open: bool,
    escaped: bool,
}

impl Quotes {
    /// Consumes a character. Returns true if it is inside quotes or the closing one.
    const fn take(&mut self, letter: char) -> bool {
        let inside = self.open;
        let ends = letter == '"' && !self.escaped;
        self.escaped = inside && letter == '\\' && !self.escaped;
        self.open ^= ends;
        inside
    }
}

/// Iterator over the key-value pairs of a text.
#[derive(Clone, Debug)]
pub(super) struct KeyValues<'a> {
    rest: Token<'a>,
}

impl<'a> KeyValues<'a> {
    /// The items of `text`.
    pub(super) fn new(text: Token<'a>) -> Self {
        Self { rest: text }
    }

    /// Text that has not been read.
    pub(super) fn rest(&self) -> Token<'a> {
        self.rest
    }

    /// Returns the next pair, or `None` at the end.
    pub(super) fn next_pair(&mut self) -> Result<Option<KeyValue<'a>>, ParseError> {
        let Some(key) = self.next_key()? else {
            return Ok(None);
        };
        let mut target = None;
        let value = match self.rest.text.chars().next() {
            Some('=' | ':') => {
                self.rest = self.rest.split_at(1).1;
                Some(self.take_value(separates)?)
            }
            Some('(') => {
                let open = self.rest;
                self.rest = open.split_at(1).1;
                let value = self.take_value(|c| c == ')')?;
                if self.rest.text.is_empty() {
                    return Err(open.error("missing closing parenthesis"));
                }
                self.rest = self.rest.split_at(1).1;
                target = self.take_target()?;
                Some(value)
            }
            _ => None,
        };
        Ok(Some(KeyValue { key, value, target }))
    }

    /// Returns the target of an arrow, if one follows.
    fn take_target(&mut self) -> Result<Option<Token<'a>>, ParseError> {
        if !self.rest.text.starts_with("->") {
            return Ok(None);
        }
        self.rest = self.rest.split_at(2).1;
        self.take_value(separates).map(Some)
    }

    /// Returns the next key.
    fn next_key(&mut self) -> Result<Option<Token<'a>>, ParseError> {
        let text = self.rest.text;
        let start = self
            .rest
            .split_at(text.len() - text.trim_start_matches(separates).len())
            .1;
        let mut quoted = Quotes::default();
        let len = start
            .text
            .find(|c| !quoted.take(c) && (separates(c) || matches!(c, '=' | ':' | '(' | ')')))
            .unwrap_or(start.text.len());
        if len == 0 && !start.text.is_empty() {
            return Err(start.error("missing name"));
        }
        let (key, rest) = start.split_at(len);
        self.rest = rest;
        Ok((len > 0).then_some(key))
    }

    /// Returns the text up to the first character outside of parentheses for which `ends` holds.
    fn take_value(&mut self, ends: impl Fn(char) -> bool) -> Result<Token<'a>, ParseError> {
        let mut open = Vec::new();
        let mut quoted = Quotes::default();
        let text = self.rest.text;
        let end = text.char_indices().find(|&(index, c)| {
            if quoted.take(c) {
                return false;
            }
            if open.is_empty() && ends(c) {
                return true;
            }
            match c {
                '(' => open.push(index),
                ')' => drop(open.pop()),
                _ => {}
            }
            false
        });
        if let (None, Some(index)) = (end, open.last()) {
            let unclosed = self.rest.split_at(*index).1;
            return Err(unclosed.error("missing closing parenthesis"));
        }
        let (value, rest) = self
            .rest
            .split_at(end.map_or(text.len(), |(index, _)| index));
        self.rest = rest;
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(text: &str) -> Result<Vec<(String, Option<String>)>, ParseError> {
        let mut items = KeyValues::new(line(text)?);
        let mut found = Vec::new();
        while let Some(item) = items.next_pair()? {
            let value = item.value.map(|token| token.text.to_owned());
            found.push((item.key.text.to_owned(), value));
        }
        Ok(found)
    }

    #[test]
    fn lexer_accepts_all_forms_of_values() {
        let found = items(" a, b=1\tc:2,d(3,e(4)),f=g(h, i)/j ").expect("well formed");
        let expected = [
            ("a", None),
            ("b", Some("1")),
            ("c", Some("2")),
            ("d", Some("3,e(4)")),
            ("f", Some("g(h, i)/j")),
        ];
        let expected: Vec<_> = expected
            .map(|(key, value)| (key.to_owned(), value.map(str::to_owned)))
            .into();
        assert_eq!(found, expected);
        assert_eq!(items(" , ,"), Ok(Vec::new()));
    }

    #[test]
    fn unclosed_parenthesis_and_missing_name_are_refused_with_position() {
        for (text, at) in [
            ("a(b", 1),
            ("ab=c(d,e", 4),
            ("a,=1", 2),
            ("a)", 1),
            ("a(b))", 4),
        ] {
            assert_eq!(items(text).expect_err(text).at, at, "{text}");
        }
    }

    #[test]
    fn line_above_maximum_is_refused() {
        let long = "a,".repeat(MAX_LINE);
        assert!(line(&long).expect_err("too long").found.len() < 50);
    }
}
