//! What fields ask of a match: which others it must have, and which masks it may.

/// What another field must hold before this one has a meaning (OF 1.3.5, table 13).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prerequisite {
    /// Nothing.
    None,
    /// `in_port` is given.
    InPort,
    /// There is a VLAN tag.
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

/// Which masks a field takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Maskable {
    /// None but all ones.
    No,
    /// Any.
    Any,
}
