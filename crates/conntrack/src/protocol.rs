//! State machines of protocols: the state of one connection, and the effect of a packet on it.
//!
//! | protocol | states | a packet is invalid if |
//! |---|---|---|
//! | TCP | RFC 9293 as a router sees it, with window tracking | flags contradict, or it is out of window |
//! | ICMP, ICMPv6 | query, reply | the first packet is no query |
//! | SCTP | handshake, established, shutdown | a chunk cannot begin an association |
//! | UDP and others | first, several, both directions | never |

mod icmp;
mod other;
mod sctp;
pub(crate) mod tcp;

use crate::facts::{PacketFacts, TransportFacts};
use crate::key::{AddressFamily, TrafficDirection};
use crate::timeout::CtTimeout;

pub use sctp::SctpPhase;
pub use tcp::{TcpEnd, TcpEndState};

use icmp::IcmpState;
pub(crate) use other::OtherState;
use sctp::SctpAssociation;
use tcp::TcpConnection;

/// Check of TCP sequence numbers (`ct-enable-tcp-seq-chk`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SequenceCheck {
    /// Segments out of window are invalid.
    #[default]
    Strict,
    /// Only flags are checked: for paths of which the switch sees one direction, or offloads that
    /// hide sequence numbers.
    Off,
}

/// The state of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProtocolState {
    Tcp(TcpConnection),
    Icmp(IcmpState),
    Sctp(SctpAssociation),
    Other(OtherState),
}

/// The effect of a packet on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PacketEffect {
    /// The packet is invalid; the connection is unchanged.
    Invalid,
    /// The packet is legal, but does not prolong the connection.
    Tolerated,
    /// The connection has packets in both directions, or is a TCP connection in progress.
    Established(CtTimeout),
    /// The connection is still new.
    StillNew(CtTimeout),
    /// The connection is over, and the packet begins another one with the same key.
    Restart,
}

impl ProtocolState {
    /// Returns the state after the first packet of a connection, with its timeout. Returns none if
    /// the packet cannot be the first one.
    pub(crate) fn begin(packet: &PacketFacts) -> Option<(Self, CtTimeout)> {
        match &packet.transport {
            TransportFacts::Tcp(segment) => {
                let connection = TcpConnection::begin(segment)?;
                Some((Self::Tcp(connection), CtTimeout::TcpSynSent))
            }
            TransportFacts::Sctp(chunks) => {
                let association = SctpAssociation::begin(*chunks)?;
                Some((Self::Sctp(association), CtTimeout::SctpOpening))
            }
            TransportFacts::Icmp => {
                let is_query = icmp::is_query(packet.tuple.family, packet.tuple.src.message_type);
                is_query.then_some((Self::Icmp(IcmpState::Query), CtTimeout::IcmpFirst))
            }
            TransportFacts::IcmpError => None,
            TransportFacts::Other => Some((Self::Other(OtherState::First), CtTimeout::UdpFirst)),
        }
    }

    /// Applies a packet of the connection. A packet of another protocol has no effect; the key
    /// excludes it.
    pub(crate) fn apply(
        &mut self,
        packet: &PacketFacts,
        direction: TrafficDirection,
        check: SequenceCheck,
    ) -> PacketEffect {
        match (self, &packet.transport) {
            (Self::Tcp(connection), TransportFacts::Tcp(segment)) => {
                connection.apply(segment, direction, check)
            }
            (Self::Sctp(association), TransportFacts::Sctp(chunks)) => {
                association.apply(*chunks, direction)
            }
            (Self::Icmp(state), TransportFacts::Icmp) => state.apply(direction),
            (Self::Other(state), TransportFacts::Other) => state.apply(direction),
            _ => PacketEffect::Invalid,
        }
    }

    /// True if the connection may be given up for another one when the table is full: it has seen
    /// one direction only, or its handshake is not complete.
    pub(crate) const fn is_embryonic(&self) -> bool {
        match self {
            Self::Tcp(connection) => connection.is_embryonic(),
            Self::Icmp(state) => matches!(state, IcmpState::Query),
            Self::Sctp(association) => association.is_embryonic(),
            Self::Other(state) => !matches!(state, OtherState::BothDirections),
        }
    }
}

/// Returns the message type of the reply to an ICMP query, and of the query to a reply; none for
/// other messages.
#[must_use]
pub(crate) const fn opposite_message(family: AddressFamily, message_type: u8) -> Option<u8> {
    icmp::opposite(family, message_type)
}
