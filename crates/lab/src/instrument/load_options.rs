//! Parsers for rates, sizes and patterns of frames.

use std::fmt;
use std::str::FromStr;

use record::nearest;
use trafficgen::template::{BadTemplate, FRAME_BYTES, Reflection};
use trafficgen::{Mix, Pace, Rate, Template};

/// Invalid word; the text names the valid ones.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadWord(pub(super) String);

/// Intended load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speed {
    /// Constant rate.
    Rate(Rate),
    /// The highest rate of the tester.
    FlatOut,
}

/// Units of rates: the word, its multiple of the base unit, and true for bits.
#[rustfmt::skip]
const UNITS: [(&str, u64, bool); 11] = [
    ("pps",  1,             false),
    ("kpps", 1_000,         false),
    ("mpps", 1_000_000,     false),
    ("bit",  1,             true),
    ("kbit", 1_000,         true),
    ("mbit", 1_000_000,     true),
    ("gbit", 1_000_000_000, true),
    ("bps",  1,             true),
    ("kbps", 1_000,         true),
    ("mbps", 1_000_000,     true),
    ("gbps", 1_000_000_000, true),
];

/// The highest rate of the tester.
const FLAT_OUT: &str = "flat-out";
/// Greatest rate in frames or bits per second.
const RATE_MAX: u64 = 1_000_000_000_000;

impl FromStr for Speed {
    type Err = BadWord;

    /// Parses `10kpps`, `1.5Mpps`, `100Mbit`, `1gbit/s`, `2500` (frames per second) or `flat-out`.
    fn from_str(text: &str) -> Result<Self, BadWord> {
        if text == FLAT_OUT {
            return Ok(Self::FlatOut);
        }
        let lower = text.to_ascii_lowercase();
        let digits = lower.find(|one: char| !one.is_ascii_digit() && one != '.');
        let (number, unit) = lower.split_at(digits.unwrap_or(lower.len()));
        let unit = unit.trim().trim_end_matches("/s");
        let found = UNITS.iter().find(|(name, ..)| *name == unit);
        let (_, scale, is_bits) = match found {
            Some(found) => *found,
            None if unit.is_empty() => ("pps", 1, false),
            None => {
                let names = UNITS.iter().map(|(name, ..)| *name).chain([FLAT_OUT]);
                let meant = if number.is_empty() { &lower } else { unit };
                return Err(BadWord(format!(
                    "invalid rate '{text}'{}: expected 10kpps, 1.5Mpps, 100Mbit, 1Gbit or {FLAT_OUT}",
                    nearest(meant, names)
                )));
            }
        };
        let value = scaled(number, scale).filter(|value| (1..=RATE_MAX).contains(value));
        let value = value.ok_or_else(|| {
            BadWord(format!(
                "invalid rate '{text}': expected an integer number of frames or bits per second, from 1 to {RATE_MAX}"
            ))
        })?;
        Ok(Self::Rate(match is_bits {
            true => Rate::Line(value),
            false => Rate::Frames(value),
        }))
    }
}

/// Returns a decimal number times `scale`, if the product is an integer.
fn scaled(number: &str, scale: u64) -> Option<u64> {
    let (whole, rest) = number.split_once('.').unwrap_or((number, ""));
    let whole: u64 = whole.parse().ok()?;
    let rest = rest.trim_end_matches('0');
    let divisor = 10_u64.checked_pow(u32::try_from(rest.len()).ok()?)?;
    let parts: u64 = match rest {
        "" => 0,
        rest => rest.parse().ok()?,
    };
    let parts = parts.checked_mul(scale)?;
    let whole = whole.checked_mul(scale)?;
    (parts % divisor == 0).then(|| whole + parts / divisor)
}

impl fmt::Display for Speed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (value, is_bits) = match self {
            Self::FlatOut => return f.write_str(FLAT_OUT),
            Self::Rate(Rate::Frames(value)) => (*value, false),
            Self::Rate(Rate::Line(value)) => (*value, true),
        };
        let of_kind = UNITS[..7].iter().filter(|(_, _, bits)| *bits == is_bits);
        let fits = of_kind.rev().find(|(_, scale, _)| value % scale == 0);
        let (unit, scale, _) = fits.expect("the least unit fits");
        write!(f, "{}{unit}", value / scale)
    }
}

/// Frame size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// Bytes of every frame, with the checksum (FCS).
    Bytes(u16),
    /// The simple Internet mix: 7 frames of 64 bytes, 4 of 570, 1 of 1518.
    Imix,
}

impl Size {
    /// Returns frames of `template` with this size.
    ///
    /// # Errors
    /// Such frames are impossible.
    pub fn of(self, template: &Template) -> Result<Mix, BadTemplate> {
        match self {
            Self::Imix => Mix::imix(template),
            Self::Bytes(frame_bytes) => {
                let template = Template {
                    frame_bytes,
                    ..template.clone()
                };
                Mix::new(vec![(template, 1)])
            }
        }
    }

    /// Returns the bytes of the longest frame.
    #[must_use]
    pub const fn longest(self) -> u16 {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Imix => 1_518,
        }
    }
}

impl FromStr for Size {
    type Err = BadWord;

    fn from_str(text: &str) -> Result<Self, BadWord> {
        if text == "imix" {
            return Ok(Self::Imix);
        }
        let (least, most) = (FRAME_BYTES.start(), FRAME_BYTES.end());
        let bytes = text
            .parse()
            .ok()
            .filter(|bytes| FRAME_BYTES.contains(bytes));
        bytes.map(Self::Bytes).ok_or_else(|| {
            BadWord(format!(
                "invalid size '{text}': expected {least} to {most} bytes with the checksum (FCS), or imix"
            ))
        })
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => write!(f, "{bytes} bytes"),
            Self::Imix => f.write_str("imix"),
        }
    }
}

/// Spacing of frames at a rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pattern {
    /// Equal gaps.
    #[default]
    Constant,
    /// Random gaps with an exponential distribution (Poisson process).
    Poisson,
    /// Bursts of this number of frames, with pauses between them.
    Bursts(u32),
}

/// Default number of frames in a burst: the least of RFC 2544, 21.
const BURST: u32 = 16;

impl Pattern {
    /// Returns the pace at an intended load; `seed` determines random gaps.
    #[must_use]
    pub const fn at(self, speed: Speed, seed: u64) -> Pace {
        match (self, speed) {
            (_, Speed::FlatOut) => Pace::FlatOut,
            (Self::Constant, Speed::Rate(rate)) => Pace::Constant(rate),
            (Self::Poisson, Speed::Rate(rate)) => Pace::Poisson { rate, seed },
            (Self::Bursts(frames), Speed::Rate(rate)) => Pace::Bursts {
                frames,
                within: None,
                rate,
            },
        }
    }
}

impl FromStr for Pattern {
    type Err = BadWord;

    /// Parses `constant`, `poisson`, `burst`, or `burst:64` with the frames in a burst.
    fn from_str(text: &str) -> Result<Self, BadWord> {
        let bad = || {
            let hint = nearest(text, ["constant", "poisson", "burst"]);
            BadWord(format!(
                "unknown pattern '{text}'{hint}: expected constant, poisson, burst or burst:FRAMES"
            ))
        };
        match (text, text.split_once(':')) {
            ("constant", _) => Ok(Self::Constant),
            ("poisson", _) => Ok(Self::Poisson),
            ("burst", _) => Ok(Self::Bursts(BURST)),
            (_, Some(("burst", frames))) => {
                let frames = frames.parse().ok().filter(|&frames| frames > 0);
                frames.map(Self::Bursts).ok_or_else(bad)
            }
            _ => Err(bad()),
        }
    }
}

/// Parses the addresses that a reflector swaps: `macs` or `addresses`.
///
/// # Errors
/// The text is neither.
pub fn parse_reflection(text: &str) -> Result<Reflection, BadWord> {
    match text {
        "macs" => Ok(Reflection::Macs),
        "addresses" => Ok(Reflection::Addresses),
        _ => Err(BadWord(format!(
            "invalid swap '{text}'{}: expected macs or addresses",
            nearest(text, ["macs", "addresses"])
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_parsed_without_rounding() {
        let read = |text: &str| text.parse::<Speed>();
        let frames = |count| Ok(Speed::Rate(Rate::Frames(count)));
        let line = |bits| Ok(Speed::Rate(Rate::Line(bits)));
        assert_eq!(read("10kpps"), frames(10_000));
        assert_eq!(read("2500"), frames(2_500));
        assert_eq!(read("1.488095Mpps"), frames(1_488_095));
        assert_eq!(read("100Mbit"), line(100_000_000));
        assert_eq!(read("2.5gbps"), line(2_500_000_000));
        assert_eq!(read("10 Mbit/s"), line(10_000_000));
        assert_eq!(read("flat-out"), Ok(Speed::FlatOut));
        for bad in [
            "",
            "0",
            "fast",
            "1.5",
            "0pps",
            "-3kpps",
            "1..2kpps",
            "10furlongs",
            "9e9",
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
        for text in ["10kpps", "1488095pps", "100mbit", "1gbit", "flat-out"] {
            assert_eq!(read(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn misspelled_word_suggests_the_nearest() {
        let message = |text: &str| text.parse::<Speed>().unwrap_err().to_string();
        assert!(
            message("10kpp").contains("did you mean 'kpps'?"),
            "{}",
            message("10kpp")
        );
        assert!(message("flatout").contains("did you mean 'flat-out'?"));
        let message = "poison".parse::<Pattern>().unwrap_err().to_string();
        assert!(message.contains("did you mean 'poisson'?"), "{message}");
    }

    #[test]
    fn sizes_and_patterns_are_parsed() {
        assert_eq!("1518".parse(), Ok(Size::Bytes(1_518)));
        assert_eq!("imix".parse(), Ok(Size::Imix));
        assert!("63".parse::<Size>().is_err() && "9001".parse::<Size>().is_err());
        let mix = Size::Imix.of(&Template::udp(64)).unwrap();
        assert_eq!(mix.parts().len(), 3);
        assert_eq!("burst".parse(), Ok(Pattern::Bursts(16)));
        assert_eq!("burst:64".parse(), Ok(Pattern::Bursts(64)));
        assert!("burst:0".parse::<Pattern>().is_err());
        let rate = Rate::Frames(9);
        let bursts = Pattern::Bursts(4).at(Speed::Rate(rate), 1);
        assert!(matches!(
            bursts,
            Pace::Bursts {
                frames: 4,
                within: None,
                ..
            }
        ));
        assert_eq!(Pattern::Poisson.at(Speed::FlatOut, 1), Pace::FlatOut);
    }
}
