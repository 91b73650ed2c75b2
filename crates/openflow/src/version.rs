//! Protocol versions and sets of them.
//!
//! What a version changes in a message is said where that message is read and
//! written, not here.

use std::fmt;
use std::str::FromStr;

/// A version of the protocol that this crate speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// OpenFlow 1.0.
    V10,
    /// OpenFlow 1.1.
    V11,
    /// OpenFlow 1.2.
    V12,
    /// OpenFlow 1.3.
    V13,
    /// OpenFlow 1.4.
    V14,
    /// OpenFlow 1.5.
    V15,
}

impl Version {
    /// All of them, oldest first.
    pub const ALL: [Self; 6] = [
        Self::V10,
        Self::V11,
        Self::V12,
        Self::V13,
        Self::V14,
        Self::V15,
    ];

    /// The version's number in a message header.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::V10 => 0x01,
            Self::V11 => 0x02,
            Self::V12 => 0x03,
            Self::V13 => 0x04,
            Self::V14 => 0x05,
            Self::V15 => 0x06,
        }
    }

    /// The version with this number in a message header, if we speak it.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|version| version.number() == number)
    }

    /// The name that `ovs-vsctl` and `ovs-ofctl` give it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::V10 => "OpenFlow10",
            Self::V11 => "OpenFlow11",
            Self::V12 => "OpenFlow12",
            Self::V13 => "OpenFlow13",
            Self::V14 => "OpenFlow14",
            Self::V15 => "OpenFlow15",
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The text names no version that this crate speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a version: OpenFlow10, OpenFlow11 and so on up to OpenFlow15 are wanted")]
pub struct ParseVersionError;

impl FromStr for Version {
    type Err = ParseVersionError;

    fn from_str(text: &str) -> Result<Self, ParseVersionError> {
        Self::ALL
            .into_iter()
            .find(|version| version.name().eq_ignore_ascii_case(text))
            .ok_or(ParseVersionError)
    }
}

/// A set of versions, as a hello's bitmap writes it: bit `n` stands for the
/// version with the number `n` (OF 1.3.5, 7.5.1). Bits of versions that we do
/// not speak survive, so that a peer's set can be shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct VersionSet(pub u32);

impl VersionSet {
    /// Every version that this crate speaks.
    pub const ALL: Self = Self::only(Version::V10)
        .with(Version::V11)
        .with(Version::V12)
        .with(Version::V13)
        .with(Version::V14)
        .with(Version::V15);

    /// The set with this one version in it.
    #[must_use]
    pub const fn only(version: Version) -> Self {
        Self(1 << version.number())
    }

    /// This set and `version`.
    #[must_use]
    pub const fn with(self, version: Version) -> Self {
        Self(self.0 | 1 << version.number())
    }

    /// What both sets hold.
    #[must_use]
    pub const fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Whether `version` is in the set.
    #[must_use]
    pub const fn contains(self, version: Version) -> bool {
        self.0 >> version.number() & 1 == 1
    }

    /// The newest version in the set that we speak.
    #[must_use]
    pub fn newest(self) -> Option<Version> {
        Version::ALL
            .into_iter()
            .rev()
            .find(|version| self.contains(*version))
    }
}

impl FromIterator<Version> for VersionSet {
    fn from_iter<T: IntoIterator<Item = Version>>(versions: T) -> Self {
        versions.into_iter().fold(Self::default(), Self::with)
    }
}

impl FromStr for VersionSet {
    type Err = ParseVersionError;

    /// Reads names between commas, as `ovs-ofctl -O` takes them.
    fn from_str(text: &str) -> Result<Self, ParseVersionError> {
        text.split(',')
            .map(|name| name.trim().parse::<Version>())
            .collect()
    }
}

impl fmt::Display for VersionSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for number in (0..32).filter(|number| self.0 >> number & 1 == 1) {
            write!(f, "{separator}0x{number:02x}")?;
            separator = ", ";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newest_common_version_is_supported() {
        // Bit 7 is a version that nobody has thought of.
        let peer = VersionSet(1 << 1 | 1 << 5 | 1 << 7);
        assert_eq!(peer.newest(), Some(Version::V14));
        assert_eq!(VersionSet(1 << 7).newest(), None);
        assert_eq!(VersionSet::ALL.newest(), Some(Version::V15));
        assert_eq!(peer.to_string(), "0x01, 0x05, 0x07");
    }

    #[test]
    fn version_names_match_ovs_vsctl() {
        assert_eq!("openflow13".parse(), Ok(Version::V13));
        assert_eq!("OpenFlow16".parse::<Version>(), Err(ParseVersionError));
        for version in Version::ALL {
            assert_eq!(version.name().parse(), Ok(version));
            assert!(VersionSet::ALL.contains(version));
        }
    }

    #[test]
    fn version_set_parses_member_names() {
        let set = VersionSet::only(Version::V10).with(Version::V14);
        assert_eq!("OpenFlow10, OpenFlow14".parse(), Ok(set));
        assert_eq!("OpenFlow10,".parse::<VersionSet>(), Err(ParseVersionError));
        assert_eq!("".parse::<VersionSet>(), Err(ParseVersionError));
    }
}
