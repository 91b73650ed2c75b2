//! What a controller asks of the meter table, and is told of it (OF 1.3.5, 5.7,
//! 7.3.4.4 and 7.3.5.12 to 7.3.5.14).

use std::time::Duration;

use base::MeterId;

/// What a meter-mod does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeterModCommand {
    /// Add a meter; there must be none of this number.
    Add,
    /// Replace a meter; there must be one.
    Modify,
    /// Delete a meter and the rules that use it; it need not be there.
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
    /// Statistics are kept.
    pub const STATS: Self = Self(1 << 3);
    /// Every flag that there is.
    pub const ALL: Self = Self(0xf);

    /// Whether all flags of `other` are set.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The flags of both.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// What happens to frames beyond a band's rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BandKind {
    /// They are dropped.
    Drop,
    /// Their drop precedence is raised by so many levels.
    DscpRemark(u8),
}

/// One band of a meter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Band {
    /// What it does.
    pub kind: BandKind,
    /// The rate above which it acts, in the unit of the meter's flags.
    pub rate: u32,
    /// The burst it lets through, in kbit or packets.
    pub burst: u32,
}

/// A change to the meter table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeterMod {
    /// What to do.
    pub command: MeterModCommand,
    /// Units and options.
    pub flags: MeterFlags,
    /// The meter; [`MeterId::ALL`] in a deletion means every meter.
    pub meter: MeterId,
    /// Its bands.
    pub bands: Vec<Band>,
}

/// A meter as it stands in the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeterConfig {
    /// Units and options.
    pub flags: MeterFlags,
    /// The meter.
    pub meter: MeterId,
    /// Its bands.
    pub bands: Vec<Band>,
}

/// The counts of a band.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BandStats {
    /// Frames it acted on.
    pub packets: u64,
    /// Bytes of those frames.
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
    /// Bytes of those frames.
    pub bytes: u64,
    /// How long it has existed.
    pub duration: Duration,
    /// The counts of its bands, in their order.
    pub bands: Vec<BandStats>,
}

/// `OFPMBT_*`: kinds of bands, as bits that stand at their numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BandKinds(pub u32);

impl BandKinds {
    /// [`BandKind::Drop`].
    pub const DROP: Self = Self(1 << 1);
    /// [`BandKind::DscpRemark`].
    pub const DSCP_REMARK: Self = Self(1 << 2);

    /// The bits of both.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// What the meter table can hold.
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
    /// The most colours that frames can be told apart by; zero without colours.
    pub colours_max: u8,
}
