//! Multicast classification for snooping (RFC 4541): the kind of a frame, and the membership
//! reports of hosts by IGMP (RFC 1112, 2236, 3376) and MLD (RFC 2710, 3810).
//!
//! ```text
//!  0      1      2          4                 8
//! +------+------+----------+-----------------+---------------------
//! | type | code | checksum | IGMP 1, 2: group address
//! | type | code | checksum | MLD 1: delay, 0 | group address (16)
//! | type |  0   | checksum | 0      | count  | records
//! +------+------+----------+-----------------+---------------------
//! record: | kind(1) | auxiliary words(1) | sources(2) | group(4, 16) | sources | auxiliary |
//! ```
//!
//! Forwarding and the membership table belong to crate `l2`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::Link;
use crate::checksum::InternetSum;
use crate::wire::ethernet::EtherType;
use crate::wire::ipv4::Ipv4;
use crate::wire::ipv6::Ipv6;
use crate::wire::{Fragment, IpProto, u16_at};

/// IGMP message types.
const IGMP_QUERY: u8 = 0x11;
const IGMP_REPORT_V1: u8 = 0x12;
const IGMP_REPORT_V2: u8 = 0x16;
const IGMP_LEAVE: u8 = 0x17;
const IGMP_REPORT_V3: u8 = 0x22;

/// MLD's, among those of ICMPv6.
const MLD_QUERY: u8 = 130;
const MLD_REPORT: u8 = 131;
const MLD_DONE: u8 = 132;
const MLD_REPORT_V2: u8 = 143;

/// Record types `MODE_IS_INCLUDE` and `CHANGE_TO_INCLUDE_MODE` (RFC 3376, 4.2.12).
const INCLUDE: u8 = 1;
const TO_INCLUDE: u8 = 3;
/// Highest record type.
const BLOCK: u8 = 6;

/// Bytes before the records of a report.
const RECORDS: usize = 8;
/// Bytes of a record before its group.
const RECORD: usize = 4;

/// Kind of a multicast packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Multicast {
    /// Query by a router for the members of groups.
    Query,
    /// Report by a host of groups that it joins or leaves.
    Report,
    /// Packet to every host of the link, members or not.
    Local,
    /// Packet to the members of this group.
    To(IpAddr),
}

impl Multicast {
    /// Returns the kind of the frame `bytes`, or `None` if it is no complete IP packet.
    ///
    /// ```
    /// use packet::{Link, Multicast};
    ///
    /// let stack: packet::build::Stack = "eth / ipv4(dst=239.1.1.1) / udp".parse().unwrap();
    /// let frame = stack.build();
    /// let link = Link::parse(frame.bytes()).unwrap();
    /// let group = std::net::Ipv4Addr::new(239, 1, 1, 1).into();
    /// assert_eq!(Multicast::classify(frame.bytes(), &link), Some(Multicast::To(group)));
    /// ```
    #[must_use]
    pub fn classify(bytes: &[u8], link: &Link) -> Option<Self> {
        let packet = MulticastPacket::find(bytes, link)?;
        let kind = packet.message.first().copied();
        Some(match (packet.dst, packet.is_membership, kind) {
            (IpAddr::V4(_), true, Some(IGMP_QUERY)) | (IpAddr::V6(_), true, Some(MLD_QUERY)) => {
                Self::Query
            }
            (
                IpAddr::V4(_),
                true,
                Some(IGMP_REPORT_V1 | IGMP_REPORT_V2 | IGMP_REPORT_V3 | IGMP_LEAVE),
            )
            | (IpAddr::V6(_), true, Some(MLD_REPORT | MLD_DONE | MLD_REPORT_V2)) => Self::Report,
            // Other messages of IGMP are among routers.
            (IpAddr::V4(_), true, _) => Self::Local,
            (dst, ..) if is_local(dst) => Self::Local,
            (dst, ..) => Self::To(dst),
        })
    }
}

/// True for groups that reach every host of a link (RFC 4541, 2.1.2 and 3).
fn is_local(group: IpAddr) -> bool {
    match group {
        IpAddr::V4(group) => group.octets()[..3] == [224, 0, 0],
        IpAddr::V6(group) => group == Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1),
    }
}

/// Message about group membership.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MembershipMessage {
    /// Query by a router with an address.
    Query,
    /// Report by a host.
    Report(Vec<MembershipChange>),
}

/// Change of a host's membership of one group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MembershipChange {
    /// The group.
    pub group: IpAddr,
    /// True if the host is a member.
    pub is_joined: bool,
}

impl MembershipMessage {
    /// Parses the membership message in the frame `bytes`. Returns `None` if there is none, it is
    /// malformed, or a bridge ignores it.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let link = Link::parse(bytes).ok()?;
        let packet = MulticastPacket::find(bytes, &link)?;
        let message = packet.message;
        if !packet.is_membership || packet.sum().checksum() != 0 {
            return None;
        }
        let one = |group: Option<IpAddr>, is_joined| {
            Some(Self::Report(vec![MembershipChange {
                group: group?,
                is_joined,
            }]))
        };
        match (packet.dst, *message.first()?) {
            (IpAddr::V4(_), IGMP_QUERY) | (IpAddr::V6(_), MLD_QUERY) => {
                (!packet.src.is_unspecified()).then_some(Self::Query)
            }
            (IpAddr::V4(_), IGMP_REPORT_V1 | IGMP_REPORT_V2) => one(v4(message, 4), true),
            (IpAddr::V4(_), IGMP_LEAVE) => one(v4(message, 4), false),
            (IpAddr::V4(_), IGMP_REPORT_V3) => Some(Self::Report(records(message, 4, v4))),
            (IpAddr::V6(_), MLD_REPORT) => one(v6(message, 8), true),
            (IpAddr::V6(_), MLD_DONE) => one(v6(message, 8), false),
            (IpAddr::V6(_), MLD_REPORT_V2) => Some(Self::Report(records(message, 16, v6))),
            _ => None,
        }
    }
}

fn v4(message: &[u8], at: usize) -> Option<IpAddr> {
    let octets: &[u8; 4] = message.get(at..)?.first_chunk()?;
    Some(Ipv4Addr::from(*octets).into())
}

fn v6(message: &[u8], at: usize) -> Option<IpAddr> {
    let octets: &[u8; 16] = message.get(at..)?.first_chunk()?;
    Some(Ipv6Addr::from(*octets).into())
}

/// Returns the complete records of a report with addresses of `width` bytes. A host that includes
/// no source of a group has left the group.
fn records(
    message: &[u8],
    width: usize,
    address: impl Fn(&[u8], usize) -> Option<IpAddr>,
) -> Vec<MembershipChange> {
    let mut changes = Vec::new();
    let Some(header) = message.first_chunk::<RECORDS>() else {
        return changes;
    };
    let mut at = RECORDS;
    for _ in 0..u16_at(header, 6) {
        let Some([kind, auxiliary, high, low]) = message.get(at..).and_then(<[u8]>::first_chunk)
        else {
            break;
        };
        let Some(group) = address(message, at + RECORD) else {
            break;
        };
        let sources = usize::from(u16::from_be_bytes([*high, *low]));
        if (INCLUDE..=BLOCK).contains(kind) {
            let is_joined = sources != 0 || !matches!(*kind, INCLUDE | TO_INCLUDE);
            changes.push(MembershipChange { group, is_joined });
        }
        at += RECORD + width * (1 + sources) + 4 * usize::from(*auxiliary);
    }
    changes
}

/// A multicast packet.
struct MulticastPacket<'a> {
    src: IpAddr,
    dst: IpAddr,
    /// True if the packet carries a message of IGMP or ICMPv6.
    is_membership: bool,
    /// Payload; empty for a fragment.
    message: &'a [u8],
}

impl<'a> MulticastPacket<'a> {
    fn find(bytes: &'a [u8], link: &Link) -> Option<Self> {
        let packet = bytes.get(link.payload_at()..)?;
        let (src, dst, protocol, fragment, message): (IpAddr, IpAddr, _, _, _) = match link.eth_type
        {
            EtherType::IPV4 => {
                let ip = Ipv4::parse(packet).ok()?;
                let range = usize::from(ip.header_len)..usize::from(ip.total_len);
                let message = packet.get(range)?;
                (
                    ip.src.into(),
                    ip.dst.into(),
                    ip.protocol,
                    ip.fragment,
                    message,
                )
            }
            EtherType::IPV6 => {
                let ip = Ipv6::parse(packet).ok()?;
                let message = packet.get(usize::from(ip.header_len)..ip.total_len)?;
                (
                    ip.src.into(),
                    ip.dst.into(),
                    ip.protocol,
                    ip.fragment,
                    message,
                )
            }
            _ => return None,
        };
        let membership_protocol = match dst {
            IpAddr::V4(_) => IpProto::IGMP,
            IpAddr::V6(_) => IpProto::ICMPV6,
        };
        let is_whole = fragment == Fragment::No;
        Some(Self {
            src,
            dst,
            is_membership: is_whole && protocol == membership_protocol,
            message: if is_whole { message } else { &[] },
        })
    }

    /// Returns the sum that a correct checksum makes zero.
    fn sum(&self) -> InternetSum {
        let sum = InternetSum::of(self.message);
        match (self.src, self.dst) {
            (IpAddr::V6(src), IpAddr::V6(dst)) => sum.plus(InternetSum::pseudo_v6(
                src,
                dst,
                IpProto::ICMPV6,
                self.message.len(),
            )),
            _ => sum,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a frame with an IPv4 packet to `dst` whose message has a correct checksum.
    fn igmp(dst: [u8; 4], message: &[u8]) -> Vec<u8> {
        let mut message = message.to_vec();
        let sum = InternetSum::of(&message).checksum();
        message[2..4].copy_from_slice(&sum.to_be_bytes());
        let len = u8::try_from(24 + message.len()).expect("the message is short");
        let mut frame = vec![1, 0, 0x5e, 0, 0, 22, 2, 0, 0, 0, 0, 1, 8, 0];
        frame.extend([0x46, 0, 0, len, 0, 0, 0, 0, 1, 2, 0, 0, 10, 1, 0, 1]);
        frame.extend(dst);
        frame.extend([0x94, 4, 0, 0]);
        frame.extend(message);
        frame.extend([0xee; 9]);
        frame
    }

    /// Returns the same over IPv6, with a hop-by-hop header.
    fn mld(message: &[u8]) -> Vec<u8> {
        let (src, dst) = (Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1), [0xff; 16]);
        let mut message = message.to_vec();
        let pseudo = InternetSum::pseudo_v6(src, dst.into(), IpProto::ICMPV6, message.len());
        let sum = InternetSum::of(&message).plus(pseudo).checksum();
        message[2..4].copy_from_slice(&sum.to_be_bytes());
        let len = u8::try_from(8 + message.len()).expect("the message is short");
        let mut frame = vec![0x33, 0x33, 0, 0, 0, 22, 2, 0, 0, 0, 0, 1, 0x86, 0xdd];
        frame.extend([0x60, 0, 0, 0, 0, len, 0, 1]);
        frame.extend(src.octets());
        frame.extend(dst);
        frame.extend([58, 0, 5, 2, 0, 0, 1, 0]);
        frame.extend(message);
        frame
    }

    fn kind(frame: &[u8]) -> Option<Multicast> {
        Multicast::classify(frame, &Link::parse(frame).expect("well formed"))
    }

    fn report(changes: &[(&str, bool)]) -> Option<MembershipMessage> {
        let change = |(group, is_joined): &(&str, bool)| MembershipChange {
            group: group.parse().expect("an address"),
            is_joined: *is_joined,
        };
        Some(MembershipMessage::Report(
            changes.iter().map(change).collect(),
        ))
    }

    #[test]
    fn igmp_reports_and_leaves_are_parsed() {
        let two = igmp([239, 1, 1, 1], &[0x16, 0, 0, 0, 239, 1, 1, 1]);
        assert_eq!(kind(&two), Some(Multicast::Report));
        assert_eq!(
            MembershipMessage::parse(&two),
            report(&[("239.1.1.1", true)])
        );
        let leave = igmp([224, 0, 0, 2], &[0x17, 0, 0, 0, 239, 1, 1, 1]);
        assert_eq!(
            MembershipMessage::parse(&leave),
            report(&[("239.1.1.1", false)])
        );
        let mut three = vec![0x22, 0, 0, 0, 0, 0, 0, 5];
        three.extend([4, 0, 0, 0, 239, 2, 2, 2]);
        three.extend([3, 1, 0, 1, 239, 3, 3, 3, 1, 2, 3, 4, 0, 0, 0, 0]);
        three.extend([3, 0, 0, 0, 239, 4, 4, 4]);
        three.extend([9, 0, 0, 0, 239, 5, 5, 5]);
        three.extend([1, 0, 0, 0, 239, 6, 6]);
        let expected = [
            ("239.2.2.2", true),
            ("239.3.3.3", true),
            ("239.4.4.4", false),
        ];
        let three = igmp([224, 0, 0, 22], &three);
        assert_eq!(MembershipMessage::parse(&three), report(&expected));
    }

    #[test]
    fn mld_reports_and_queries_are_parsed() {
        let group = [0xff, 0x15, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7];
        let one = |kind| mld(&[&[kind, 0, 0, 0, 0, 0, 0, 0], &group[..]].concat());
        assert_eq!(
            MembershipMessage::parse(&one(131)),
            report(&[("ff15::7", true)])
        );
        assert_eq!(
            MembershipMessage::parse(&one(132)),
            report(&[("ff15::7", false)])
        );
        assert_eq!(
            MembershipMessage::parse(&one(130)),
            Some(MembershipMessage::Query)
        );
        assert_eq!(kind(&one(130)), Some(Multicast::Query));
        let two = [&[143, 0, 0, 0, 0, 0, 0, 1, 4, 0, 0, 0], &group[..]].concat();
        assert_eq!(
            MembershipMessage::parse(&mld(&two)),
            report(&[("ff15::7", true)])
        );
        let neighbour = one(135);
        assert_eq!(kind(&neighbour), Some(Multicast::To([0xff; 16].into())));
        assert_eq!(MembershipMessage::parse(&neighbour), None);
    }

    #[test]
    fn malformed_or_irrelevant_messages_are_ignored() {
        let mut damaged = igmp([239, 1, 1, 1], &[0x16, 0, 0, 0, 239, 1, 1, 1]);
        damaged[40] ^= 1;
        assert_eq!(kind(&damaged), Some(Multicast::Report));
        assert_eq!(MembershipMessage::parse(&damaged), None);
        let routers = igmp([224, 0, 0, 13], &[0x13, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(kind(&routers), Some(Multicast::Local));
        assert_eq!(MembershipMessage::parse(&routers), None);
        let arp = [&[0xff; 6], &[2; 6], &[8, 6][..], &[0; 46]].concat();
        assert_eq!((kind(&arp), MembershipMessage::parse(&arp)), (None, None));
    }
}
