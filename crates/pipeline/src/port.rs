//! A port as the tables see it: which packets it receives and forwards.

use flow::{PortConfig, PortState};
use packet::MacAddr;

/// The group address of the spanning tree (IEEE 802.1D-2004, table 7-10).
const SPANNING_TREE: MacAddr = MacAddr([0x01, 0x80, 0xc2, 0, 0, 0]);

/// The configuration and state of a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortView {
    /// The configuration by the controller.
    pub config: PortConfig,
    /// The state.
    pub state: PortState,
    /// True if the spanning tree blocks output. OpenFlow's `OFPPS_BLOCKED` only excludes the port
    /// from flooding (OF 1.3.5, 7.2.1).
    pub is_stp_blocked: bool,
    /// True if the port is not live although its link is up: a protocol that watches the path
    /// behind it reports a failure.
    pub is_unusable: bool,
    /// True if packets from it are not forwarded to other protected ports (ovs-vswitchd.conf.db(5),
    /// `Port`, `protected`).
    pub is_protected: bool,
}

impl PortView {
    /// True if the port receives packets to `dst`. BPDUs have a bit of their own (OF 1.0.1, 5.2.1);
    /// OpenFlow 1.3 has one bit for both.
    #[must_use]
    pub fn receives(&self, dst: MacAddr) -> bool {
        let barred = if dst == SPANNING_TREE {
            PortConfig::NO_RECV_STP
        } else {
            PortConfig::NO_RECV
        };
        !self.has(PortConfig::DOWN) && !self.has(barred)
    }

    /// True if the port receives all packets.
    #[must_use]
    pub const fn receives_all(&self) -> bool {
        !self.has(PortConfig::DOWN)
            && !self.has(PortConfig::NO_RECV)
            && !self.has(PortConfig::NO_RECV_STP)
    }

    /// True if the port forwards packets.
    #[must_use]
    pub const fn forwards(&self) -> bool {
        !self.has(PortConfig::DOWN)
            && !self.has(PortConfig::NO_FWD)
            && !self.is_stp_blocked
            && !self.state.contains(PortState::LINK_DOWN)
    }

    /// True if a bucket that watches the port is live (OF 1.3.5, 6.5 and 7.2.1). The link state
    /// decides what `OFPPS_LIVE` reports.
    #[must_use]
    pub const fn is_live(&self) -> bool {
        !self.has(PortConfig::DOWN)
            && !self.is_unusable
            && !self.state.contains(PortState::LINK_DOWN)
    }

    /// True if the port forwards flooded packets.
    #[must_use]
    pub const fn floods(&self) -> bool {
        self.forwards()
            && !self.has(PortConfig::NO_FLOOD)
            && !self.state.contains(PortState::BLOCKED)
    }

    /// True if packets of this port without a matching rule may be sent to the controller.
    #[must_use]
    pub const fn reports_misses(&self) -> bool {
        !self.has(PortConfig::NO_PACKET_IN)
    }

    /// Returns the port as it is without the spanning tree's block.
    #[must_use]
    pub const fn without_stp_block(self) -> Self {
        match self.is_stp_blocked {
            false => self,
            true => Self {
                state: PortState(self.state.0 & !PortState::BLOCKED.0),
                is_stp_blocked: false,
                ..self
            },
        }
    }

    const fn has(&self, bits: PortConfig) -> bool {
        self.config.contains(bits)
    }
}
