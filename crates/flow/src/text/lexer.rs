//! Cutting a line into keys and values, each remembering where it stood.
//!
//! This knows commas, colons and parentheses, and no key by name.

use super::MAX_LINE;
use super::error::ParseError;
use super::name_map::NameMap;

/// A part of the line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token<'a> {
    pub(super) text: &'a str,
    /// Bytes from the start of the line.
    pub(super) at: usize,
    /// What names mean in it.
    pub(super) names: &'a NameMap,
}

/// All of `text`.
pub(super) fn line(text: &str) -> Result<Token<'_>, ParseError> {
    let whole = Token {
        text,
        at: 0,
        names: NameMap::nameless(),
    };
    if text.len() > MAX_LINE {
        return Err(whole.error(format!("a line has {MAX_LINE} bytes at most")));
    }
    Ok(whole)
}

impl<'a> Token<'a> {
    /// The error that there is `problem` with this token.
    pub(super) fn error(self, problem: impl Into<String>) -> ParseError {
        ParseError::new(self.at, self.text, problem)
    }

    /// The same, where ports and tables may be called by these names.
    pub(super) fn with_names(self, names: &'a NameMap) -> Self {
        Self { names, ..self }
    }

    /// The first `len` bytes, and the rest.
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

    /// What stands before and behind the first `separator`.
    pub(super) fn split_once(self, separator: &str) -> Option<(Self, Self)> {
        let (left, rest) = self.split_at(self.text.find(separator)?);
        Some((left, rest.split_at(separator.len()).1))
    }

    /// The one that the first word of the line stands for, if any does, and what is behind the
    /// word; of a line that begins with none of these words, all.
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

/// A key and what was given with it: `key`, `key=value`, `key:value` or `key(value)`.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeyValue<'a> {
    pub(super) key: Token<'a>,
    pub(super) value: Option<Token<'a>>,
    /// What an arrow behind the parentheses points to: `key(value)->target`.
    pub(super) target: Option<Token<'a>>,
}

impl<'a> KeyValue<'a> {
    /// The value.
    pub(super) fn required_value(self) -> Result<Token<'a>, ParseError> {
        match self.value {
            Some(value) if !value.text.is_empty() => Ok(value),
            _ => Err(self.key.error("a value is missing")),
        }
    }

    /// No arrow, as it should be.
    pub(super) fn reject_target(self) -> Result<Self, ParseError> {
        match self.target {
            Some(target) => Err(target.error("an arrow has no meaning here")),
            None => Ok(self),
        }
    }

    /// Nothing, as it should be.
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

/// What separates items.
fn separates(c: char) -> bool {
    matches!(c, ',' | ' ' | '\t' | '\r' | '\n')
}

/// Whether letters stand between quotes, where nothing separates.
#[derive(Default)]
struct Quotes {
    open: bool,
    escaped: bool,
}

impl Quotes {
    /// Takes the next letter: whether it is one between quotes, or the latter of them.
    const fn take(&mut self, letter: char) -> bool {
        let inside = self.open;
        let ends = letter == '"' && !self.escaped;
        self.escaped = inside && letter == '\\' && !self.escaped;
        self.open ^= ends;
        inside
    }
}

/// KeyValues yet to come.
#[derive(Clone, Debug)]
pub(super) struct KeyValues<'a> {
    rest: Token<'a>,
}

impl<'a> KeyValues<'a> {
    /// The items of `text`.
    pub(super) fn new(text: Token<'a>) -> Self {
        Self { rest: text }
    }

    /// What has not been read.
    pub(super) fn rest(&self) -> Token<'a> {
        self.rest
    }

    /// The next item; none at the end.
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
                    return Err(open.error("the closing parenthesis is missing"));
                }
                self.rest = self.rest.split_at(1).1;
                target = self.take_target()?;
                Some(value)
            }
            _ => None,
        };
        Ok(Some(KeyValue { key, value, target }))
    }

    /// What an arrow points to, if one stands here.
    fn take_target(&mut self) -> Result<Option<Token<'a>>, ParseError> {
        if !self.rest.text.starts_with("->") {
            return Ok(None);
        }
        self.rest = self.rest.split_at(2).1;
        self.take_value(separates).map(Some)
    }

    /// The next key; what belongs to it comes next.
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
            return Err(start.error("a name is missing here"));
        }
        let (key, rest) = start.split_at(len);
        self.rest = rest;
        Ok((len > 0).then_some(key))
    }

    /// Up to the first character, outside parentheses, that `ends` the value.
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
            return Err(unclosed.error("the closing parenthesis is missing"));
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
    fn every_way_to_give_a_value_is_read() {
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
    fn what_is_not_closed_or_has_no_name_is_refused_where_it_stands() {
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
    fn a_line_has_an_end() {
        let long = "a,".repeat(MAX_LINE);
        assert!(line(&long).expect_err("too long").found.len() < 50);
    }
}
