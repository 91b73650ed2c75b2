//! Ports: configuration, state and description.

use base::PortNo;
use packet::MacAddr;

/// `OFPPC_*`: configuration of a port by the controller. 1.3 uses a part of 1.0's bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortConfig(pub u32);

impl PortConfig {
    /// The port is administratively down.
    pub const DOWN: Self = Self(1 << 0);
    /// No spanning tree on this port (OpenFlow 1.0).
    pub const NO_STP: Self = Self(1 << 1);
    /// Received frames are dropped.
    pub const NO_RECV: Self = Self(1 << 2);
    /// Received spanning tree frames are dropped (OpenFlow 1.0).
    pub const NO_RECV_STP: Self = Self(1 << 3);
    /// The port is excluded from `FLOOD` (OpenFlow 1.0).
    pub const NO_FLOOD: Self = Self(1 << 4);
    /// Frames sent to the port are dropped.
    pub const NO_FWD: Self = Self(1 << 5);
    /// Frames from this port without a matching rule cause no packet-in.
    pub const NO_PACKET_IN: Self = Self(1 << 6);

    /// True if all bits of `other` are set.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns these bits with those of `mask` replaced by `wanted`.
    #[must_use]
    pub const fn changed(self, wanted: Self, mask: Self) -> Self {
        Self((self.0 & !mask.0) | (wanted.0 & mask.0))
    }
}

/// `OFPPS_*`: state of a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortState(pub u32);

impl PortState {
    /// The link has no carrier.
    pub const LINK_DOWN: Self = Self(1 << 0);
    /// Blocked by a protocol outside OpenFlow (1.1 and later).
    pub const BLOCKED: Self = Self(1 << 1);
    /// A fast-failover group may use the port (1.1 and later).
    pub const LIVE: Self = Self(1 << 2);
    /// A spanning tree has set the port to learning (OpenFlow 1.0).
    pub const STP_LEARN: Self = Self(1 << 8);
    /// A spanning tree has set the port to forwarding (OpenFlow 1.0).
    pub const STP_FORWARD: Self = Self(2 << 8);
    /// A spanning tree has blocked the port (OpenFlow 1.0).
    pub const STP_BLOCK: Self = Self(3 << 8);
    /// Bits of the spanning tree state in 1.0; none of them is set while listening, or without a
    /// tree.
    pub const STP_MASK: Self = Self(3 << 8);

    /// True if all bits of `other` are set.
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
    /// Number.
    pub number: PortNo,
    /// Its Ethernet address.
    pub hw_addr: MacAddr,
    /// Name, at most fifteen bytes on the wire.
    pub name: String,
    /// Configuration by the controller.
    pub config: PortConfig,
    /// State.
    pub state: PortState,
    /// Features in use.
    pub current: PortFeatures,
    /// Features advertised to the other end.
    pub advertised: PortFeatures,
    /// Features it could have.
    pub supported: PortFeatures,
    /// Features the other end advertises.
    pub peer: PortFeatures,
    /// Current bit rate in kbit/s; zero if unknown.
    pub speed_kbps: u32,
    /// Highest bit rate in kbit/s; zero if unknown.
    pub speed_kbps_max: u32,
}

impl PortDesc {
    /// Returns a port with nothing but its number.
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

/// Change of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortReason {
    /// The port was added.
    Add,
    /// The port was removed.
    Delete,
    /// The port changed.
    Modify,
}

/// Notification of a change of a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortStatus {
    /// Change.
    pub reason: PortReason,
    /// The port, as it is now (or was last).
    pub port: PortDesc,
}
