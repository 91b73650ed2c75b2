//! Which messages a controller is told unasked (OF 1.3.5, 7.3.10; Nicira's
//! `nx_async_config` in OpenFlow 1.0, laid out alike).

use flow::{FlowRemovedReason, PacketInReason, PortReason};

use super::{Body, flow_removed, packet_in, port_status};
use crate::codec::{Inexpressible, Malformed, Reader, Writer};

/// Three masks: bit `n` stands for the reason with the number `n`. Bits of
/// reasons that we do not know survive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AsyncMasks {
    /// Reasons of packet-in messages.
    pub packet_in: u32,
    /// Reasons of port-status messages.
    pub port_status: u32,
    /// Reasons of flow-removed messages.
    pub flow_removed: u32,
}

impl AsyncMasks {
    /// Whether a packet-in for this reason is wanted.
    #[must_use]
    pub const fn wants_packet_in(self, reason: PacketInReason) -> bool {
        self.packet_in >> packet_in::reason_number(reason) & 1 == 1
    }

    /// Whether a port-status for this reason is wanted.
    #[must_use]
    pub const fn wants_port_status(self, reason: PortReason) -> bool {
        self.port_status >> port_status::reason_number(reason) & 1 == 1
    }

    /// Whether a flow-removed for this reason is wanted.
    #[must_use]
    pub const fn wants_flow_removed(self, reason: FlowRemovedReason) -> bool {
        self.flow_removed >> flow_removed::reason_number(reason) & 1 == 1
    }
}

/// What a controller is told unasked, by its role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AsyncConfig {
    /// As master or equal.
    pub active: AsyncMasks,
    /// As slave.
    pub slave: AsyncMasks,
}

impl Default for AsyncConfig {
    /// What holds until a controller says otherwise (OF 1.3.5, 7.3.10): all but
    /// frames whose TTL ran out; a slave hears of ports only.
    fn default() -> Self {
        Self {
            active: AsyncMasks {
                packet_in: 0b011,
                port_status: 0b111,
                flow_removed: 0b1111,
            },
            slave: AsyncMasks {
                packet_in: 0,
                port_status: 0b111,
                flow_removed: 0,
            },
        }
    }
}

impl Body for AsyncConfig {
    fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let mut masks = [0; 6];
        for mask in &mut masks {
            *mask = r.u32()?;
        }
        let [a, b, c, d, e, f] = masks;
        let masks = |packet_in, port_status, flow_removed| AsyncMasks {
            packet_in,
            port_status,
            flow_removed,
        };
        Ok(Self {
            active: masks(a, c, e),
            slave: masks(b, d, f),
        })
    }

    fn encode(&self, w: &mut Writer<'_>) -> Result<(), Inexpressible> {
        let Self { active, slave } = self;
        for mask in [
            active.packet_in,
            slave.packet_in,
            active.port_status,
            slave.port_status,
            active.flow_removed,
            slave.flow_removed,
        ] {
            w.u32(mask);
        }
        Ok(())
    }
}
