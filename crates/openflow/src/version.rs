//! Protocol versions and sets of versions.
//!
//! The differences between versions are in the codec of each message.

use std::fmt;
use std::str::FromStr;

/// A protocol version that this crate supports.
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
    /// All versions, oldest first.
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

    /// The version with this number in a message header, if it is supported.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|version| version.number() == number)
    }

    /// The version's name in `ovs-vsctl` and `ovs-ofctl`.
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

/// The text is not the name of a supported version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a version: expected one of OpenFlow10 to OpenFlow15")]
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

/// A set of versions in the format of a hello's bitmap: bit `n` is the version with the number `n`
/// (OF 1.3.5, 7.5.1). Bits of unsupported versions are kept, so that a peer's set can be printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct VersionSet(pub u32);

impl VersionSet {
    /// Every version that this crate supports.
    pub const ALL: Self = Self::only(Version::V10)
        .with(Version::V11)
        .with(Version::V12)
        .with(Version::V13)
        .with(Version::V14)
        .with(Version::V15);

    /// The set of this one version.
    #[must_use]
    pub const fn only(version: Version) -> Self {
        Self(1 << version.number())
    }

    /// This set with `version` added.
    #[must_use]
    pub const fn with(self, version: Version) -> Self {
        Self(self.0 | 1 << version.number())
    }

    /// The intersection of both sets.
    #[must_use]
    pub const fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Returns true if `version` is in the set.
    #[must_use]
    pub const fn contains(self, version: Version) -> bool {
        self.0 >> version.number() & 1 == 1
    }

    /// The newest supported version in the set.
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

    /// Parses names separated by commas, as for `ovs-ofctl -O`.
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
        // Bit 7 is a version that does not exist.
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
