//! Parser of thresholds in one line.
//!
//! ```text
//! threshold  = experiment [ "[" name "=" value { "," name "=" value } "]" ] "." figure side limit
//! experiment = NAME | "*"         figure = NAME | "*"         side = "<" | "<=" | ">" | ">="
//! limit      = NUMBER [ "%" ] | [ NUMBER "*" ] DEVICE
//! ```

use record::Catalogue;

use super::{Limit, Side, Threshold};

/// Syntax error in a threshold, with its position.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}\n  {text}\n  {:>place$}", "^", place = at + 1)]
pub struct BadThreshold {
    text: String,
    /// Number of characters before the error.
    pub(super) at: usize,
    reason: String,
}

impl Threshold {
    /// Parses a threshold of an experiment of `catalogue`.
    ///
    /// # Errors
    /// The syntax is wrong, or a name is unknown.
    pub fn parse(text: &str, catalogue: Catalogue) -> Result<Self, BadThreshold> {
        let mut reader = ConditionReader {
            text,
            at: 0,
            catalogue,
        };
        reader.threshold().map_err(|(at, reason)| BadThreshold {
            text: text.to_owned(),
            at: text[..at].chars().count(),
            reason,
        })
    }
}

/// Position of an error in bytes, and its reason.
type SyntaxError = (usize, String);

struct ConditionReader<'a> {
    text: &'a str,
    at: usize,
    catalogue: Catalogue,
}

impl<'a> ConditionReader<'a> {
    fn threshold(&mut self) -> Result<Threshold, SyntaxError> {
        let start = self.here();
        let experiment = match self.word("an experiment, as echo, or *")? {
            "*" => None,
            name => {
                let found = self.catalogue.parse(name);
                Some(found.map_err(|error| (start, error.to_string()))?)
            }
        };
        let mut threshold = Threshold {
            experiment,
            device: None,
            point: Vec::new(),
            figure: None,
            limit: Limit::Number {
                side: Side::Less,
                number: 0.0,
            },
        };
        if self.take("[") {
            self.filters(&mut threshold)?;
        }
        self.expect(".", "'.' and a figure, as .p99_us")?;
        let start = self.here();
        let figure = self.word("a figure, as p99_us, or *")?;
        threshold.figure = (figure != "*").then(|| figure.to_owned());
        threshold
            .check_names(self.catalogue)
            .map_err(|reason| (start, reason))?;
        threshold.limit = self.limit()?;
        match self.rest().is_empty() {
            true => Ok(threshold),
            false => Err((self.at, "expected the end of the threshold".to_owned())),
        }
    }

    fn filters(&mut self, threshold: &mut Threshold) -> Result<(), SyntaxError> {
        loop {
            let start = self.here();
            let name = self.word("device or a parameter's name")?;
            self.expect("=", "'=' and a value")?;
            let value = self.word("a value")?.to_owned();
            let is_repeated = match name {
                "device" => threshold.device.replace(value).is_some(),
                name => {
                    let known = threshold.point.iter().any(|(known, _)| known == name);
                    threshold.point.push((name.to_owned(), value));
                    threshold
                        .check_names(self.catalogue)
                        .map_err(|reason| (start, reason))?;
                    known
                }
            };
            if is_repeated {
                return Err((start, format!("{name} is set twice")));
            }
            if !self.take(",") {
                return self.expect("]", "',' or ']'");
            }
        }
    }

    fn limit(&mut self) -> Result<Limit, SyntaxError> {
        self.here();
        let side = Side::ALL.into_iter().find(|side| self.take(side.sign()));
        let side = side.ok_or_else(|| (self.at, "expected one of <, <=, >, >=".to_owned()))?;
        let start = self.here();
        let word = self.word("a number, or a device, as 2.5 * ovs")?;
        let Some(number) = number(word) else {
            return Ok(Limit::Device {
                side,
                factor: 1.0,
                device: word.to_owned(),
            });
        };
        if self.take("%") {
            let number = number / 100.0;
            return Ok(Limit::Number { side, number });
        }
        if !self.take("*") {
            return Ok(Limit::Number { side, number });
        }
        if number <= 0.0 {
            return Err((start, "the factor of a device must be above 0".to_owned()));
        }
        let device = self.word("a device, as ovs")?.to_owned();
        Ok(Limit::Device {
            side,
            factor: number,
            device,
        })
    }

    /// Skips spaces and returns the position.
    fn here(&mut self) -> usize {
        self.at += self.rest().len() - self.rest().trim_start().len();
        self.at
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn take(&mut self, sign: &str) -> bool {
        self.here();
        let found = self.rest().starts_with(sign);
        if found {
            self.at += sign.len();
        }
        found
    }

    fn expect(&mut self, sign: &str, expected: &str) -> Result<(), SyntaxError> {
        match self.take(sign) {
            true => Ok(()),
            false => Err((self.at, format!("expected {expected}"))),
        }
    }

    /// Reads a name, a number or `*`. Only a number can contain a point.
    fn word(&mut self, expected: &str) -> Result<&'a str, SyntaxError> {
        let start = self.here();
        let rest = self.rest();
        let is_numeric = rest.starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '.');
        let belongs = |(at, c): (usize, char)| match c {
            '.' => is_numeric,
            '+' | '-' => !is_numeric || at == 0 || rest[..at].ends_with(['e', 'E']),
            c => c.is_alphanumeric() || c == '_' || c == '/' || c == ':',
        };
        let length = rest.char_indices().find(|&one| !belongs(one));
        let length = length.map_or(rest.len(), |(at, _)| at);
        let length = if rest.starts_with('*') { 1 } else { length };
        if length == 0 {
            return Err((start, format!("expected {expected}")));
        }
        self.at += length;
        Ok(&rest[..length])
    }
}

/// Parses a number, which may have `_` between digits.
fn number(word: &str) -> Option<f64> {
    let begins = word.starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '.');
    let number: f64 = word.replace('_', "").parse().ok()?;
    (begins && number.is_finite()).then_some(number)
}
