//! What the tables need to know of a port: what may pass it.

use flow::{PortConfig, PortState};
use packet::MacAddr;

/// The group address of the spanning tree (IEEE 802.1D-2004, table 7-10).
const SPANNING_TREE: MacAddr = MacAddr([0x01, 0x80, 0xc2, 0, 0, 0]);

/// A port, as the controller wants it and as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortView {
    /// What the controller wants of it.
    pub config: PortConfig,
    /// How it is.
    pub state: PortState,
    /// Whether a spanning tree keeps frames from leaving by it. That OpenFlow calls a port
    /// blocked keeps flooded frames only (OF 1.3.5, 7.2.1).
    pub is_stp_blocked: bool,
    /// Whether frames do not go from it to another that is protected, too
    /// (ovs-vswitchd.conf.db(5), `Port`, `protected`).
    pub is_protected: bool,
}

impl PortView {
    /// Whether a frame to `dst` may come in. Frames of the spanning tree have a
    /// bit of their own (OF 1.0.1, 5.2.1); where OpenFlow 1.3 bars a port from
    /// receiving, it bars both.
    #[must_use]
    pub fn receives(&self, dst: MacAddr) -> bool {
        let barred = if dst == SPANNING_TREE {
            PortConfig::NO_RECV_STP
        } else {
            PortConfig::NO_RECV
        };
        !self.has(PortConfig::DOWN) && !self.has(barred)
    }

    /// Whether every frame may come in.
    #[must_use]
    pub const fn receives_all(&self) -> bool {
        !self.has(PortConfig::DOWN)
            && !self.has(PortConfig::NO_RECV)
            && !self.has(PortConfig::NO_RECV_STP)
    }

    /// Whether a frame may go out.
    #[must_use]
    pub const fn forwards(&self) -> bool {
        !self.has(PortConfig::DOWN)
            && !self.has(PortConfig::NO_FWD)
            && !self.is_stp_blocked
            && !self.state.contains(PortState::LINK_DOWN)
    }

    /// Whether a bucket that watches it is alive (OF 1.3.5, 6.5 and 7.2.1). That its
    /// link is up is all that is known of what `OFPPS_LIVE` says.
    #[must_use]
    pub const fn is_live(&self) -> bool {
        !self.has(PortConfig::DOWN) && !self.state.contains(PortState::LINK_DOWN)
    }

    /// Whether a flooded frame may go out.
    #[must_use]
    pub const fn floods(&self) -> bool {
        self.forwards()
            && !self.has(PortConfig::NO_FLOOD)
            && !self.state.contains(PortState::BLOCKED)
    }

    /// Whether a frame that came in here and matched nothing may go to the controller.
    #[must_use]
    pub const fn reports_misses(&self) -> bool {
        !self.has(PortConfig::NO_PACKET_IN)
    }

    /// The same, if no spanning tree shut it.
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
