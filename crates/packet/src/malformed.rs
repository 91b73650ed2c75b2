//! Reasons why a frame is malformed: a closed list, so that each has a counter.
//!
//! Rare but legal frames (padding after the IP datagram, an LLC frame, an unknown type) are not
//! malformed; they are parsed as far as their headers are known.

use std::fmt;

/// Reason why a frame is malformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Malformed {
    /// Shorter than an Ethernet header.
    Runt,
    /// The frame ends within a VLAN tag.
    VlanTruncated,
    /// The frame ends within the outermost MPLS entry.
    MplsTruncated,
    /// The frame ends within a service instance tag or the customer addresses after it.
    PbbTruncated,
    /// The frame ends within a network service header.
    NshTruncated,
    /// A network service header has another version, or a length that its type does not allow.
    NshHeader,
    /// The frame ends within an ARP packet.
    ArpTruncated,
    /// The frame ends within the fixed IPv4 header.
    Ipv4Truncated,
    /// The EtherType is IPv4, the version field is not.
    Ipv4Version,
    /// The IPv4 header length is below 20 bytes or exceeds the frame.
    Ipv4HeaderLength,
    /// The IPv4 total length is below the header length or exceeds the frame.
    Ipv4TotalLength,
    /// The frame ends within the fixed IPv6 header.
    Ipv6Truncated,
    /// The EtherType is IPv6, the version field is not.
    Ipv6Version,
    /// The IPv6 payload length exceeds the frame.
    Ipv6PayloadLength,
    /// An IPv6 extension header reaches beyond the packet.
    Ipv6Extension,
    /// More IPv6 extension headers than [`crate::wire::ipv6::EXTENSIONS_MAX`].
    Ipv6ExtensionCount,
    /// The packet ends within the TCP header.
    TcpTruncated,
    /// The TCP data offset is below 20 bytes or exceeds the packet.
    TcpDataOffset,
    /// The packet ends within the UDP header.
    UdpTruncated,
    /// The packet ends within the SCTP header.
    SctpTruncated,
    /// The packet ends within the ICMP header.
    Icmpv4Truncated,
    /// The packet ends within the ICMPv6 header.
    Icmpv6Truncated,
    /// The packet ends within a neighbour solicitation or advertisement.
    NdTruncated,
    /// A neighbour discovery option has length zero or exceeds the packet.
    NdOption,
    /// The partial checksum of the metadata is outside the frame's payload.
    ChecksumPlace,
    /// The metadata request segments without payload.
    SegmentSize,
}

impl Malformed {
    /// All reasons, in the order of their numbers.
    pub const ALL: [Self; 26] = [
        Self::Runt,
        Self::VlanTruncated,
        Self::MplsTruncated,
        Self::PbbTruncated,
        Self::NshTruncated,
        Self::NshHeader,
        Self::ArpTruncated,
        Self::Ipv4Truncated,
        Self::Ipv4Version,
        Self::Ipv4HeaderLength,
        Self::Ipv4TotalLength,
        Self::Ipv6Truncated,
        Self::Ipv6Version,
        Self::Ipv6PayloadLength,
        Self::Ipv6Extension,
        Self::Ipv6ExtensionCount,
        Self::TcpTruncated,
        Self::TcpDataOffset,
        Self::UdpTruncated,
        Self::SctpTruncated,
        Self::Icmpv4Truncated,
        Self::Icmpv6Truncated,
        Self::NdTruncated,
        Self::NdOption,
        Self::ChecksumPlace,
        Self::SegmentSize,
    ];

    /// The reason's number: its place in [`Malformed::ALL`].
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Name of the reason's counter.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Runt => "runt",
            Self::VlanTruncated => "vlan_truncated",
            Self::MplsTruncated => "mpls_truncated",
            Self::PbbTruncated => "pbb_truncated",
            Self::NshTruncated => "nsh_truncated",
            Self::NshHeader => "nsh_header",
            Self::ArpTruncated => "arp_truncated",
            Self::Ipv4Truncated => "ipv4_truncated",
            Self::Ipv4Version => "ipv4_version",
            Self::Ipv4HeaderLength => "ipv4_header_length",
            Self::Ipv4TotalLength => "ipv4_total_length",
            Self::Ipv6Truncated => "ipv6_truncated",
            Self::Ipv6Version => "ipv6_version",
            Self::Ipv6PayloadLength => "ipv6_payload_length",
            Self::Ipv6Extension => "ipv6_extension",
            Self::Ipv6ExtensionCount => "ipv6_extension_count",
            Self::TcpTruncated => "tcp_truncated",
            Self::TcpDataOffset => "tcp_data_offset",
            Self::UdpTruncated => "udp_truncated",
            Self::SctpTruncated => "sctp_truncated",
            Self::Icmpv4Truncated => "icmpv4_truncated",
            Self::Icmpv6Truncated => "icmpv6_truncated",
            Self::NdTruncated => "nd_truncated",
            Self::NdOption => "nd_option",
            Self::ChecksumPlace => "checksum_place",
            Self::SegmentSize => "segment_size",
        }
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl std::error::Error for Malformed {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names_are_unique() {
        for (index, reason) in Malformed::ALL.into_iter().enumerate() {
            assert_eq!(reason.index(), index);
            assert!(
                Malformed::ALL[..index]
                    .iter()
                    .all(|other| other.name() != reason.name())
            );
        }
    }
}
