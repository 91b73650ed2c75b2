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
    /// Hexadecimal; zero without a prefix.
    Hex,
    /// Hexadecimal with a prefix always.
    PlainHex,
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
            Self::Hex | Self::PlainHex | Self::Frag => format!("{value:#x}"),
            Self::Mac => MacAddr::from_u64(low(value)).to_string(),
            Self::Ipv4 => Ipv4Addr::from(u32::try_from(value).unwrap_or(u32::MAX)).to_string(),
            Self::Ipv6 => Ipv6Addr::from(value).to_string(),
        }
    }

    /// Returns the value of a fragment's word.
    pub(super) fn fragment(word: &str) -> Option<u8> {
        let mut known = FRAGMENTS.iter();
        let found = known.find(|(known, _)| *known == word);
        found.map(|(_, value)| *value)
    }
}
