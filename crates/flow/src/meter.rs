//! Meters: commands of the meter table, descriptions and counters (OF 1.3.5, 5.7, 7.3.4.4 and
//! 7.3.5.12 to 7.3.5.14).

use std::time::Duration;

use base::MeterId;

/// Command of a meter-mod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeterModCommand {
    /// Add a meter, which must not exist.
    Add,
    /// Replace a meter, which must exist.
    Modify,
    /// Delete a meter and the rules that use it, if it exists.
    Delete,
}

/// `OFPMF_*` flags of a meter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MeterFlags(pub u16);

impl MeterFlags {
    /// Rates are in kbit/s.
    pub const KBPS: Self = Self(1 << 0);
    /// Rates are in packets a second.
    pub const PKTPS: Self = Self(1 << 1);
    /// Bursts are given.
    pub const BURST: Self = Self(1 << 2);
    /// Statistics are collected.
    pub const STATS: Self = Self(1 << 3);
    /// All defined flags.
    pub const ALL: Self = Self(0xf);

    /// True if all flags of `other` are set.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns the union of both.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Effect of a band on frames above its rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BandKind {
    /// They are dropped.
    Drop,
    /// Their drop precedence is raised by so many levels.
    DscpRemark(u8),
}

/// Band of a meter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Band {
    /// Effect.
    pub kind: BandKind,
    /// Rate above which the band applies, in the unit of the meter's flags.
    pub rate: u32,
    /// The burst it lets through, in kbit or packets.
    pub burst: u32,
}

/// A change to the meter table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeterMod {
    /// Command.
    pub command: MeterModCommand,
    /// Units and options.
    pub flags: MeterFlags,
    /// The meter; [`MeterId::ALL`] in a deletion means every meter.
    pub meter: MeterId,
    /// Bands.
    pub bands: Vec<Band>,
}

/// Description of a meter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeterConfig {
    /// Units and options.
    pub flags: MeterFlags,
    /// The meter.
    pub meter: MeterId,
    /// Bands.
    pub bands: Vec<Band>,
}

/// The counts of a band.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BandStats {
    /// Frames it acted on.
    pub packets: u64,
    /// Number of bytes in these frames.
    pub bytes: u64,
}

/// The counts of a meter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeterStats {
    /// The meter.
    pub meter: MeterId,
    /// Rules that submit frames to it.
    pub flows: u32,
    /// Frames submitted to it.
    pub packets: u64,
    /// Number of bytes in these frames.
    pub bytes: u64,
    /// Lifetime of the meter.
    pub duration: Duration,
    /// The counts of its bands, in their order.
    pub bands: Vec<BandStats>,
}

/// `OFPMBT_*`: kinds of bands, a bit for each number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BandKinds(pub u32);

impl BandKinds {
    /// [`BandKind::Drop`].
    pub const DROP: Self = Self(1 << 1);
    /// [`BandKind::DscpRemark`].
    pub const DSCP_REMARK: Self = Self(1 << 2);

    /// Returns the union of both.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Capacity of the meter table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeterFeatures {
    /// The most meters.
    pub meters_max: u32,
    /// Kinds of bands.
    pub kinds: BandKinds,
    /// Flags that a meter may have.
    pub flags: MeterFlags,
    /// The most bands of a meter.
    pub bands_max: u8,
    /// Number of colours that meters distinguish; zero without colours.
    pub colours_max: u8,
}
