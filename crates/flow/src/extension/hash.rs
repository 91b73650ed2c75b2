//! Selection of a link or port by a hash of the frame: `multipath`, `bundle`.
//!
//! The specification leaves the hash function open; crate `pipeline` defines it.

use base::PortNo;

use super::subfield::Subfield;

/// Fields that are hashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HashFields {
    /// The Ethernet source.
    EthSrc,
    /// Addresses, VLAN, EtherType, IP addresses and protocol, and ports of TCP and SCTP; equal for
    /// both directions.
    SymmetricL4,
    /// IP addresses, protocol, and ports of TCP and SCTP; equal for both directions.
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
    /// All variants with their names, in the order of their numbers on the wire.
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

/// Algorithm that selects a link (`ovs-actions(7)`, multipath).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MultipathAlgorithm {
    /// The remainder.
    ModuloN,
    /// The region of the hash's range.
    HashThreshold,
    /// Highest random weight: the link whose own hash is highest (RFC 2992).
    HighestRandomWeight,
    /// Hash on until the result is a link.
    IterHash,
}

impl MultipathAlgorithm {
    /// All variants with their names, in the order of their numbers on the wire.
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
    /// Fields that are hashed.
    pub fields: HashFields,
    /// Initial value of the hash.
    pub basis: u16,
    /// Algorithm.
    pub algorithm: MultipathAlgorithm,
    /// The highest link; zero is the lowest.
    pub link_max: u16,
    /// An argument of the algorithm.
    pub argument: u32,
    /// Destination of the link number, which fits.
    pub to: Subfield,
}

/// Algorithm that selects a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BundleAlgorithm {
    /// The first that is up.
    ActiveBackup,
    /// Highest random weight among the ports that are up.
    HighestRandomWeight,
}

impl BundleAlgorithm {
    /// All variants with their names, in the order of their numbers on the wire.
    pub const ALL: [(Self, &'static str); 2] = [
        (Self::ActiveBackup, "active_backup"),
        (Self::HighestRandomWeight, "hrw"),
    ];
}

/// A choice among ports.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BundleAction {
    /// Fields that are hashed.
    pub fields: HashFields,
    /// Initial value of the hash.
    pub basis: u16,
    /// Algorithm.
    pub algorithm: BundleAlgorithm,
    /// Destination of the port number, or `None` to output to the port.
    pub to: Option<Subfield>,
    /// The ports.
    pub members: Vec<PortNo>,
}

impl BundleAction {
    /// Largest number of ports (`BUNDLE_MAX_MEMBERS` of Open vSwitch).
    pub const MEMBERS_MAX: usize = 2048;
}
