//! What a controller asks of the meter table (OF 1.3.5, 5.7 and 7.3.4.4).

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
