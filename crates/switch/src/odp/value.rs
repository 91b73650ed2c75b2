//! The text formats of field values.

use std::net::{Ipv4Addr, Ipv6Addr};

use flow::field::{VID_PRESENT, frag};
use flow::{Field, Term};
use packet::MacAddr;

/// The text format of a key's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OdpFormat {
    /// Decimal.
    Decimal,
    /// Hexadecimal.
    Hex,
    /// An Ethernet address.
    Mac,
    /// An IPv4 address.
    Ipv4,
    /// An IPv6 address.
    Ipv6,
    /// `no`, `first` or `later`.
    Frag,
    /// A VLAN id; the attribute itself implies the presence bit.
    Vid,
}

/// The fragment words and their values.
const FRAGMENTS: [(&str, u8); 3] = [
    ("no", 0),
    ("first", frag::ANY),
    ("later", frag::ANY | frag::LATER),
];

impl OdpFormat {
    /// Writes the value and the mask of a term.
    pub(super) fn write_term(self, term: &Term) -> String {
        match (self, term.field) {
            (Self::Hex, Field::EthType) => format!("{:#06x}", term.value),
            _ => self.write(term.value, (!term.is_exact()).then_some(term.mask)),
        }
    }

    /// Writes a value, and the mask if there is one.
    pub(super) fn write(self, value: u128, mask: Option<u128>) -> String {
        if self == Self::Frag {
            let word = FRAGMENTS
                .iter()
                .find(|(_, known)| u128::from(*known) == value);
            let plain = || format!("{value:#x}");
            return word.map_or_else(plain, |(word, _)| (*word).to_owned());
        }
        let present = u128::from(VID_PRESENT);
        let (value, mask) = match (self, mask) {
            // The presence bit of the tag is not written.
            (Self::Vid, None) => (value & !present, None),
            (Self::Vid, Some(mask)) => (value & !present, Some(mask & !present)),
            _ => (value, mask),
        };
        match mask {
            None => self.figures(value),
            Some(mask) => format!("{}/{}", self.figures(value), self.mask_form().figures(mask)),
        }
    }

    /// Returns the format of masks: hexadecimal for numbers.
    const fn mask_form(self) -> Self {
        match self {
            Self::Decimal | Self::Vid => Self::Hex,
            other => other,
        }
    }

    fn figures(self, value: u128) -> String {
        let low = |value: u128| u64::try_from(value).unwrap_or(u64::MAX);
        match self {
            Self::Decimal | Self::Vid => value.to_string(),
            Self::Hex | Self::Frag if value == 0 => "0".to_owned(),
            Self::Hex | Self::Frag => format!("{value:#x}"),
            Self::Mac => MacAddr::from_u64(low(value)).to_string(),
            Self::Ipv4 => Ipv4Addr::from(u32::try_from(value).unwrap_or(u32::MAX)).to_string(),
            Self::Ipv6 => Ipv6Addr::from(value).to_string(),
        }
    }

    /// Parses a value and its mask; none if the text is invalid.
    pub(super) fn read(self, text: &str, field: Field) -> Option<(u128, u128)> {
        let full = full_mask(field);
        let (value, mask) = match text.split_once('/') {
            None => (self.number(text)?, full),
            Some((value, mask)) => (self.number(value)?, self.read_mask(mask, full)?),
        };
        if value & !full != 0 || mask & !full != 0 {
            return None;
        }
        match self {
            Self::Vid => {
                let present = u128::from(VID_PRESENT);
                (value & present == 0).then_some((value | present, mask | present))
            }
            _ => Some((value & mask, mask)),
        }
    }

    fn read_mask(self, text: &str, full: u128) -> Option<u128> {
        match (self, text.parse::<u32>()) {
            (Self::Ipv4, Ok(length @ 0..=32)) => Some(full & !(full >> length)),
            (Self::Ipv6, Ok(length @ 0..=128)) => Some(!full.checked_shr(length).unwrap_or(0)),
            _ => self.mask_form().number(text),
        }
    }

    fn number(self, text: &str) -> Option<u128> {
        match self {
            Self::Decimal | Self::Hex | Self::Vid => match text.strip_prefix("0x") {
                Some(figures) => u128::from_str_radix(figures, 16).ok(),
                None => text.parse().ok(),
            },
            Self::Mac => {
                let MacAddr(bytes) = text.parse().ok()?;
                Some(
                    bytes
                        .iter()
                        .fold(0, |sum, byte| sum << 8 | u128::from(*byte)),
                )
            }
            Self::Ipv4 => Some(u32::from(text.parse::<Ipv4Addr>().ok()?).into()),
            Self::Ipv6 => Some(text.parse::<Ipv6Addr>().ok()?.into()),
            Self::Frag => {
                let word = FRAGMENTS.iter().find(|(word, _)| *word == text);
                word.map(|(_, value)| (*value).into())
            }
        }
    }
}

/// Returns all bits of a field.
fn full_mask(field: Field) -> u128 {
    u128::MAX >> (128 - u32::from(field.info().bits))
}
