//! Constraints of fields on a match: prerequisites and masks.

/// Prerequisite: condition on other fields of the match (OF 1.3.5, table 13).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prerequisite {
    /// No condition.
    None,
    /// `in_port` is given.
    InPort,
    /// A VLAN tag is present.
    VlanTag,
    /// The type is MPLS, unicast or multicast.
    Mpls,
    /// The type is that of provider backbone bridging.
    Pbb,
    /// The type is ARP or RARP.
    Arp,
    /// The type is IPv4 or IPv6.
    Ip,
    /// The type is IPv4.
    Ipv4,
    /// The type is IPv6.
    Ipv6,
    /// IPv4 or IPv6 and TCP.
    Tcp,
    /// IPv4 or IPv6 and UDP.
    Udp,
    /// IPv4 or IPv6 and SCTP.
    Sctp,
    /// IPv4 and ICMP.
    Icmpv4,
    /// IPv6 and ICMPv6.
    Icmpv6,
    /// ICMPv6 neighbour solicitation or advertisement.
    Nd,
    /// ICMPv6 neighbour solicitation.
    NdSolicitation,
    /// ICMPv6 neighbour advertisement.
    NdAdvertisement,
    /// The type is that of the network service header.
    Nsh,
}

/// Permitted masks of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Maskable {
    /// Exact values only.
    No,
    /// Any.
    Any,
}
