//! A port as OpenFlow describes it.

use base::PortNo;
use packet::MacAddr;

/// `OFPPC_*` bits: what the controller wants of a port. 1.3 uses a part of 1.0's bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortConfig(pub u32);

impl PortConfig {
    /// The port is administratively down.
    pub const DOWN: Self = Self(1 << 0);
    /// No spanning tree on this port (OpenFlow 1.0).
    pub const NO_STP: Self = Self(1 << 1);
    /// Frames that come in are dropped.
    pub const NO_RECV: Self = Self(1 << 2);
    /// Spanning-tree frames that come in are dropped (OpenFlow 1.0).
    pub const NO_RECV_STP: Self = Self(1 << 3);
    /// Not a part of `FLOOD` (OpenFlow 1.0).
    pub const NO_FLOOD: Self = Self(1 << 4);
    /// Frames to go out are dropped.
    pub const NO_FWD: Self = Self(1 << 5);
    /// No packet-in for frames from this port that match nothing.
    pub const NO_PACKET_IN: Self = Self(1 << 6);

    /// Whether all bits of `other` are set.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// These bits with those of `mask` taken from `wanted`.
    #[must_use]
    pub const fn changed(self, wanted: Self, mask: Self) -> Self {
        Self((self.0 & !mask.0) | (wanted.0 & mask.0))
    }
}

/// `OFPPS_*` bits: how a port is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortState(pub u32);

impl PortState {
    /// There is no carrier.
    pub const LINK_DOWN: Self = Self(1 << 0);
    /// Blocked by a protocol outside OpenFlow (1.1 and later).
    pub const BLOCKED: Self = Self(1 << 1);
    /// May be used by a fast-failover group (1.1 and later).
    pub const LIVE: Self = Self(1 << 2);
    /// A spanning tree has it learn stations, and nothing else yet (OpenFlow 1.0).
    pub const STP_LEARN: Self = Self(1 << 8);
    /// A spanning tree has it forward (OpenFlow 1.0).
    pub const STP_FORWARD: Self = Self(2 << 8);
    /// A spanning tree keeps it out (OpenFlow 1.0).
    pub const STP_BLOCK: Self = Self(3 << 8);
    /// The bits by which 1.0 tells what a spanning tree makes of a port; with none of them it
    /// listens, or there is no tree.
    pub const STP_MASK: Self = Self(3 << 8);

    /// Whether all bits of `other` are set.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// `OFPPF_*` bits in OpenFlow 1.3's places: speeds, medium, negotiation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortFeatures(pub u32);

impl PortFeatures {
    /// 10 Mbit/s full duplex.
    pub const FD_10M: Self = Self(1 << 1);
    /// 100 Mbit/s full duplex.
    pub const FD_100M: Self = Self(1 << 3);
    /// 1 Gbit/s full duplex.
    pub const FD_1G: Self = Self(1 << 5);
    /// 10 Gbit/s full duplex.
    pub const FD_10G: Self = Self(1 << 6);
    /// 40 Gbit/s full duplex (1.1 and later).
    pub const FD_40G: Self = Self(1 << 7);
    /// 100 Gbit/s full duplex (1.1 and later).
    pub const FD_100G: Self = Self(1 << 8);
    /// Copper.
    pub const COPPER: Self = Self(1 << 11);
    /// Fibre.
    pub const FIBER: Self = Self(1 << 12);
    /// The speed is negotiated.
    pub const AUTONEG: Self = Self(1 << 13);
}

/// A port's description (`ofp_phy_port`, `ofp_port`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortDesc {
    /// Its number.
    pub number: PortNo,
    /// Its Ethernet address.
    pub hw_addr: MacAddr,
    /// Its name, at most fifteen bytes on the wire.
    pub name: String,
    /// What the controller wants of it.
    pub config: PortConfig,
    /// How it is.
    pub state: PortState,
    /// SwitchFeatures in use.
    pub current: PortFeatures,
    /// SwitchFeatures advertised to the other end.
    pub advertised: PortFeatures,
    /// SwitchFeatures it could have.
    pub supported: PortFeatures,
    /// SwitchFeatures the other end advertises.
    pub peer: PortFeatures,
    /// Present bit rate in kbit/s; zero if unknown.
    pub speed_kbps: u32,
    /// Highest bit rate in kbit/s; zero if unknown.
    pub speed_kbps_max: u32,
}

impl PortDesc {
    /// A port of which nothing is known but its number.
    #[must_use]
    pub fn new(number: PortNo) -> Self {
        Self {
            number,
            hw_addr: MacAddr::default(),
            name: String::new(),
            config: PortConfig::default(),
            state: PortState::default(),
            current: PortFeatures::default(),
            advertised: PortFeatures::default(),
            supported: PortFeatures::default(),
            peer: PortFeatures::default(),
            speed_kbps: 0,
            speed_kbps_max: 0,
        }
    }
}

/// What happened to a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortReason {
    /// It is new.
    Add,
    /// It is gone.
    Delete,
    /// Something about it changed.
    Modify,
}

/// The message that something happened to a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortStatus {
    /// What happened.
    pub reason: PortReason,
    /// The port, as it is now (or was last).
    pub port: PortDesc,
}
