//! UDP, and protocols that are tracked by their addresses alone.
//!
//! ```text
//!  First ----original----> SeveralPackets ----reply----> BothDirections
//!    +------------------------reply---------------------------^
//! ```

use super::PacketEffect;
use crate::key::TrafficDirection;
use crate::timeout::CtTimeout;

/// Packets of a connection so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OtherState {
    /// One packet.
    First,
    /// Packets of the original direction.
    SeveralPackets,
    /// Packets of both directions.
    BothDirections,
}

impl OtherState {
    pub(super) const fn apply(&mut self, direction: TrafficDirection) -> PacketEffect {
        *self = match (*self, direction) {
            (_, TrafficDirection::Reply) | (Self::BothDirections, _) => Self::BothDirections,
            (Self::First | Self::SeveralPackets, TrafficDirection::Original) => {
                Self::SeveralPackets
            }
        };
        match *self {
            Self::BothDirections => PacketEffect::Established(CtTimeout::UdpMultiple),
            Self::First | Self::SeveralPackets => PacketEffect::StillNew(CtTimeout::UdpSingle),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn udp_connection_is_established_by_a_reply() {
        let mut state = OtherState::First;
        let single = PacketEffect::StillNew(CtTimeout::UdpSingle);
        let multiple = PacketEffect::Established(CtTimeout::UdpMultiple);
        assert_eq!(state.apply(TrafficDirection::Original), single);
        assert_eq!(state.apply(TrafficDirection::Reply), multiple);
        assert_eq!(state.apply(TrafficDirection::Original), multiple);
    }
}
