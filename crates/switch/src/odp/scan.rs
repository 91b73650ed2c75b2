//! A scanner for the numbers, addresses and flag lists of datapath flows, each with an optional
//! mask after a slash, as Open vSwitch's `odp-util.c` reads them.

use std::net::{Ipv4Addr, Ipv6Addr};

use packet::MacAddr;

/// The rest of a text.
#[derive(Clone, Copy, Debug)]
pub(super) struct OdpScanner<'a> {
    rest: &'a str,
}

/// A value and its mask.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MaskedNumber {
    /// The value, with bits outside the mask as they were written.
    pub value: u128,
    /// The mask.
    pub mask: u128,
}

impl<'a> OdpScanner<'a> {
    pub(super) const fn new(text: &'a str) -> Self {
        Self { rest: text }
    }

    /// Returns the text that was not read.
    pub(super) const fn rest(&self) -> &'a str {
        self.rest
    }

    pub(super) fn skip_delimiters(&mut self) {
        self.rest = self.rest.trim_start_matches([',', ' ', '\t', '\r', '\n']);
    }

    /// Skips blanks and line ends, which may precede a number.
    fn skip_blanks(&mut self) {
        self.rest = self.rest.trim_start();
    }

    /// Skips `word`; false if it does not follow.
    pub(super) fn skip(&mut self, word: &str) -> bool {
        match self.rest.strip_prefix(word) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// Returns the longest prefix of bytes that satisfy `fits`.
    pub(super) fn word(&mut self, fits: impl Fn(char) -> bool) -> &'a str {
        let end = self.rest.find(|letter| !fits(letter));
        let (word, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        word
    }

    /// Reads the name of a group with its opening parenthesis.
    pub(super) fn group(&mut self) -> Option<&'a str> {
        let name = self.word(|letter| letter.is_ascii_alphanumeric() || letter == '_');
        (!name.is_empty() && self.skip("(")).then_some(name)
    }

    /// Reads the name of an attribute with its equals sign; nothing is read if none follows.
    pub(super) fn attribute(&mut self) -> Option<&'a str> {
        let mut ahead = *self;
        let name = ahead.word(|letter| letter.is_ascii_alphanumeric() || letter == '_');
        if name.is_empty() || !ahead.skip("=") {
            return None;
        }
        *self = ahead;
        Some(name)
    }

    /// Reads a number of at most `bits` bits: decimal, hexadecimal after `0x`, octal after `0`.
    pub(super) fn number(&mut self, bits: u32) -> Option<u128> {
        let mut ahead = *self;
        ahead.skip_blanks();
        let digits = ahead.word(|letter| letter.is_ascii_alphanumeric());
        let lower = digits.strip_prefix("0x");
        let value = match lower.or_else(|| digits.strip_prefix("0X")) {
            Some(hex) => u128::from_str_radix(hex, 16).ok()?,
            None if digits.len() > 1 && digits.starts_with('0') => {
                u128::from_str_radix(&digits[1..], 8).ok()?
            }
            None => digits.parse().ok()?,
        };
        if bits < u128::BITS && value >> bits != 0 {
            return None;
        }
        *self = ahead;
        Some(value)
    }

    /// Reads a number, and a mask after a slash.
    pub(super) fn masked_number(&mut self, bits: u32) -> Option<MaskedNumber> {
        let ones = u128::MAX >> (u128::BITS - bits);
        self.masked(ones, |scanner| scanner.number(bits))
    }

    /// Reads a value with `read`, and a mask after a slash; all `ones` without one.
    pub(super) fn masked(
        &mut self,
        ones: u128,
        mut read: impl FnMut(&mut Self) -> Option<u128>,
    ) -> Option<MaskedNumber> {
        let value = read(self)?;
        let mask = match self.skip("/") {
            true => read(self)?,
            false => ones,
        };
        Some(MaskedNumber { value, mask })
    }

    pub(super) fn mac(&mut self) -> Option<u128> {
        self.skip_blanks();
        let word = self.word(|letter| letter.is_ascii_hexdigit() || letter == ':');
        let MacAddr(bytes) = word.parse().ok()?;
        let join = |sum, byte: &u8| sum << 8 | u128::from(*byte);
        Some(bytes.iter().fold(0, join))
    }

    pub(super) fn ipv4(&mut self) -> Option<u128> {
        self.skip_blanks();
        let word = self.word(|letter| letter.is_ascii_digit() || letter == '.');
        Some(word.parse::<Ipv4Addr>().ok()?.to_bits().into())
    }

    pub(super) fn ipv6(&mut self) -> Option<u128> {
        let fits = |letter: char| letter.is_ascii_hexdigit() || matches!(letter, ':' | '.');
        Some(self.word(fits).parse::<Ipv6Addr>().ok()?.to_bits())
    }

    /// Reads flags in one of the notations of Open vSwitch: a number, names joined by `|`, or names
    /// with `+` and `-`, which are masked. `known` has the names with their bits.
    pub(super) fn flags(&mut self, known: &[(&str, u32)], bits: u32) -> Option<MaskedNumber> {
        if self
            .rest
            .starts_with(|letter: char| letter.is_ascii_digit())
        {
            return self.masked_number(bits);
        }
        let ones = u128::from(u32::MAX >> (u32::BITS - bits));
        let mut found = MaskedNumber::default();
        let is_masked = self.rest.starts_with(['+', '-']);
        loop {
            let mut is_set = true;
            if is_masked {
                is_set = self.skip("+");
                if !is_set && !self.skip("-") {
                    break;
                }
            }
            let name = self.word(|letter| letter.is_ascii_alphanumeric() || letter == '_');
            if name.is_empty() && !is_masked && found.value == 0 {
                break;
            }
            let (_, bit) = known.iter().find(|(known, _)| *known == name)?;
            let bit = u128::from(*bit);
            found.mask |= bit;
            found.value |= if is_set { bit } else { 0 };
            if !is_masked && !self.skip("|") {
                break;
            }
        }
        if !is_masked {
            found.mask = ones;
        }
        Some(found)
    }
}
