//! Queries and replies of ICMP (RFC 792) and ICMPv6 (RFC 4443). Errors belong to the connection of
//! the packet that they quote, and have no state of their own.

use super::PacketEffect;
use crate::key::{AddressFamily, TrafficDirection};
use crate::timeout::CtTimeout;

/// Queries of ICMP and their replies: echo, timestamp, information.
const QUERIES_V4: [(u8, u8); 3] = [(8, 0), (13, 14), (15, 16)];
/// Queries of ICMPv6 and their replies: echo.
const QUERIES_V6: [(u8, u8); 1] = [(128, 129)];

/// Messages of a connection so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IcmpState {
    /// Queries.
    Query,
    /// Replies too.
    Reply,
}

impl IcmpState {
    pub(super) const fn apply(&mut self, direction: TrafficDirection) -> PacketEffect {
        if let TrafficDirection::Reply = direction {
            *self = Self::Reply;
        }
        match *self {
            Self::Query => PacketEffect::StillNew(CtTimeout::IcmpFirst),
            Self::Reply => PacketEffect::Established(CtTimeout::IcmpReply),
        }
    }
}

const fn queries(family: AddressFamily) -> &'static [(u8, u8)] {
    match family {
        AddressFamily::V4 => &QUERIES_V4,
        AddressFamily::V6 => &QUERIES_V6,
    }
}

/// True if messages of this type may begin a connection.
pub(super) const fn is_query(family: AddressFamily, message_type: u8) -> bool {
    let mut rest = queries(family);
    while let [(query, _), tail @ ..] = rest {
        if *query == message_type {
            return true;
        }
        rest = tail;
    }
    false
}

pub(super) const fn opposite(family: AddressFamily, message_type: u8) -> Option<u8> {
    let mut rest = queries(family);
    while let [(query, reply), tail @ ..] = rest {
        if *query == message_type {
            return Some(*reply);
        }
        if *reply == message_type {
            return Some(*query);
        }
        rest = tail;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn icmp_connection_is_established_by_a_reply() {
        let mut state = IcmpState::Query;
        let first = PacketEffect::StillNew(CtTimeout::IcmpFirst);
        let reply = PacketEffect::Established(CtTimeout::IcmpReply);
        assert_eq!(state.apply(TrafficDirection::Original), first);
        assert_eq!(state.apply(TrafficDirection::Reply), reply);
        assert_eq!(state.apply(TrafficDirection::Original), reply);
    }

    #[test]
    fn icmp_types_have_their_opposites() {
        use AddressFamily::{V4, V6};
        assert!(is_query(V4, 8) && !is_query(V4, 0) && !is_query(V6, 8));
        assert_eq!(opposite(V4, 0), Some(8));
        assert_eq!(opposite(V4, 13), Some(14));
        assert_eq!(opposite(V6, 128), Some(129));
        assert_eq!(opposite(V6, 1), None);
    }
}
