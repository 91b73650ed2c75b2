//! Facts of a packet that tracking reads.

use crate::key::{AddressFamily, ConnectionKey, CtZone, Endpoint, KeyProtocol};

/// A packet as the tracker sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketFacts {
    /// Endpoints and protocol. For an ICMP error, those of the reversed inner header, so that the
    /// key has the direction of the error itself.
    pub tuple: PacketTuple,
    /// The transport header.
    pub transport: TransportFacts,
}

/// A connection key without its zone, which `ct` names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketTuple {
    /// The sender.
    pub src: Endpoint,
    /// The receiver.
    pub dst: Endpoint,
    /// The protocol above IP.
    pub protocol: KeyProtocol,
    /// The version of IP.
    pub family: AddressFamily,
}

impl PacketTuple {
    /// Returns the key of this packet in a zone.
    #[must_use]
    pub const fn in_zone(&self, zone: CtZone) -> ConnectionKey {
        ConnectionKey {
            src: self.src,
            dst: self.dst,
            zone,
            protocol: self.protocol,
            family: self.family,
        }
    }
}

/// Facts of the transport header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransportFacts {
    /// A TCP segment.
    Tcp(TcpFacts),
    /// An SCTP packet.
    Sctp(SctpChunks),
    /// An ICMP or ICMPv6 query or reply.
    Icmp,
    /// An ICMP or ICMPv6 error about a packet of another connection.
    IcmpError,
    /// UDP, and protocols that are tracked by addresses.
    Other,
}

/// Facts of a TCP segment (RFC 9293).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpFacts {
    /// Flags, as `packet::wire::tcp` numbers them.
    pub flags: u16,
    /// SEG.SEQ.
    pub sequence: u32,
    /// SEG.ACK.
    pub acknowledgment: u32,
    /// SEG.WND, not scaled.
    pub window: u16,
    /// Shift of the window scale option (RFC 7323), at most 14, if it is present.
    pub window_scale: Option<u8>,
    /// Bytes of payload.
    pub payload_len: u32,
}

impl TcpFacts {
    /// True if a flag of `flags` is set.
    #[must_use]
    pub const fn has(&self, flags: u16) -> bool {
        self.flags & flags != 0
    }
}

/// Chunk types of an SCTP packet that change the state of an association: a bit for each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SctpChunks(pub u16);

impl SctpChunks {
    /// INIT.
    pub const INIT: Self = Self(1 << 1);
    /// INIT ACK.
    pub const INIT_ACK: Self = Self(1 << 2);
    /// ABORT.
    pub const ABORT: Self = Self(1 << 6);
    /// SHUTDOWN.
    pub const SHUTDOWN: Self = Self(1 << 7);
    /// SHUTDOWN ACK.
    pub const SHUTDOWN_ACK: Self = Self(1 << 8);
    /// COOKIE ECHO.
    pub const COOKIE_ECHO: Self = Self(1 << 10);
    /// COOKIE ACK.
    pub const COOKIE_ACK: Self = Self(1 << 11);
    /// SHUTDOWN COMPLETE.
    pub const SHUTDOWN_COMPLETE: Self = Self(1 << 14);

    /// True if the packet has a chunk of `other`.
    #[must_use]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}
