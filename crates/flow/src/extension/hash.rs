//! Choosing one of several ways by a hash of the frame: `multipath`, `bundle`.
//!
//! What the hash is, the specification leaves open; see the pipeline.

use base::PortNo;

use super::subfield::Subfield;

/// What of the frame is hashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HashFields {
    /// The Ethernet source.
    EthSrc,
    /// Addresses, VLAN, type, IP addresses and protocol, and ports of TCP and
    /// SCTP; both directions alike.
    SymmetricL4,
    /// IP addresses, protocol, and ports of TCP and SCTP; both directions alike.
    SymmetricL3L4,
    /// The same with ports of UDP.
    SymmetricL3L4Udp,
    /// The IP source.
    NwSrc,
    /// The IP destination.
    NwDst,
    /// The IP addresses; both directions alike.
    SymmetricL3,
}

impl HashFields {
    /// All of them by name, in the order of their numbers on the wire.
    pub const ALL: [(Self, &'static str); 7] = [
        (Self::EthSrc, "eth_src"),
        (Self::SymmetricL4, "symmetric_l4"),
        (Self::SymmetricL3L4, "symmetric_l3l4"),
        (Self::SymmetricL3L4Udp, "symmetric_l3l4+udp"),
        (Self::NwSrc, "nw_src"),
        (Self::NwDst, "nw_dst"),
        (Self::SymmetricL3, "symmetric_l3"),
    ];
}

/// How a hash chooses a link (`ovs-actions(7)`, multipath).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MultipathAlgorithm {
    /// The remainder.
    ModuloN,
    /// The region of the hash's range.
    HashThreshold,
    /// The highest of one hash for each link (RFC 2992's highest random weight).
    HighestRandomWeight,
    /// Hash on until the result is a link.
    IterHash,
}

impl MultipathAlgorithm {
    /// All of them by name, in the order of their numbers on the wire.
    pub const ALL: [(Self, &'static str); 4] = [
        (Self::ModuloN, "modulo_n"),
        (Self::HashThreshold, "hash_threshold"),
        (Self::HighestRandomWeight, "hrw"),
        (Self::IterHash, "iter_hash"),
    ];
}

/// A choice among numbered links.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Multipath {
    /// What is hashed.
    pub fields: HashFields,
    /// What the hash begins with.
    pub basis: u16,
    /// How the hash chooses.
    pub algorithm: MultipathAlgorithm,
    /// The highest link; zero is the lowest.
    pub link_max: u16,
    /// An argument of the algorithm.
    pub argument: u32,
    /// Where the link's number is written; it fits.
    pub to: Subfield,
}

/// How one of several ports is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BundleAlgorithm {
    /// The first that is up.
    ActiveBackup,
    /// Of those that are up, by the highest of one hash for each.
    HighestRandomWeight,
}

impl BundleAlgorithm {
    /// All of them by name, in the order of their numbers on the wire.
    pub const ALL: [(Self, &'static str); 2] = [
        (Self::ActiveBackup, "active_backup"),
        (Self::HighestRandomWeight, "hrw"),
    ];
}

/// A choice among ports.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BundleAction {
    /// What is hashed.
    pub fields: HashFields,
    /// What the hash begins with.
    pub basis: u16,
    /// How a port is chosen.
    pub algorithm: BundleAlgorithm,
    /// Where its number is written; none to send the frame there.
    pub to: Option<Subfield>,
    /// The ports.
    pub members: Vec<PortNo>,
}

impl BundleAction {
    /// The most ports that a bundle has (`BUNDLE_MAX_MEMBERS` of Open vSwitch).
    pub const MEMBERS_MAX: usize = 2048;
}
