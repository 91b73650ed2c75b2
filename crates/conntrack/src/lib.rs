//! Connection tracking and address translation for IPv4 and IPv6.
//!
//! A [`Conntrack`] is shared by all workers. Its input is the facts of a packet ([`PacketFacts`],
//! read from bytes by [`extract()`]), the arguments of `ct` ([`CtRequest`]) and the time; its output
//! is the packet's tracking fields ([`CtMetadata`]), a translation ([`NatTranslation`]) and a
//! verdict on the commit ([`CtOutcome`]). It has no sockets, no threads and no clock, and does not
//! change packets: the caller writes the headers.
//!
//! ```
//! use base::Instant;
//! use conntrack::{
//!     Conntrack, CtCommit, CtMetadata, CtPacket, CtRequest, CtState, HashSeed, PacketFacts,
//!     PacketTuple, TransportFacts,
//! };
//!
//! let tracker = Conntrack::new(HashSeed([1, 2]), 1000);
//! let facts = PacketFacts {
//!     tuple: PacketTuple::default(),
//!     transport: TransportFacts::Other,
//! };
//! let packet = CtPacket { facts: Some(facts), payload: &[], metadata: CtMetadata::default() };
//! let commit = CtRequest { commit: CtCommit::Commit, ..CtRequest::default() };
//!
//! let outcome = tracker.track(&packet, &commit, Instant::from_secs(1));
//! assert!(outcome.metadata.state.contains(CtState::NEW));
//! assert_eq!(tracker.len(), 1);
//! ```
//!
//! # Structure
//!
//! ```text
//!  ipf                       complete packets of fragments
//!   |
//!  extract ---> facts
//!                 |
//!   plain_packet |
//!     |-> steady, new_connection, changing_connection
//!              tracker ----> protocol  (tcp, sctp, icmp, other)      state machines
//!                 |   `----> nat, alg                                reply keys, helpers
//!                 v
//!               table ------ limits, counters
//!                 |
//!               shard ------ chains (entries, reverse keys), timer_wheel
//! ```
//!
//! The module of each algorithm begins with its name, its paper, a drawing and its cost:
//! [`siphash`](HashSeed) (Aumasson and Bernstein), separate chaining (Knuth), hierarchical timing
//! wheels (Varghese and Lauck), window tracking (van Rooij), port selection (RFC 6056).
//!
//! # Judges
//!
//! Open vSwitch's userspace data path and the kernel's `nf_conntrack` define the meaning. Where they
//! differ:
//!
//! | subject | Open vSwitch | kernel | here |
//! |---|---|---|---|
//! | mark and label of an invalid packet | those of its connection | zero | zero |
//! | translation of an invalid packet | translated | not | not |
//! | second SYN of a simultaneous open | new | established | new |
//! | reset or FIN without a connection | new | invalid | new |
//! | SCTP | by addresses | by chunks | by chunks, without tags |
//! | NAT of SCTP ports and ICMP identifiers | not | if they are in use | if they are in use |
//! | default limit of zones | one count for all of them | each zone | each zone |
//! | EPRT and EPSV of FTP | over IPv6 | over both | over both |
//! | full table | new connections are refused | unassured ones are dropped | embryonic ones are given up |
//!
//! # Limits
//!
//! Fragments are reassembled before they are tracked, by a [`FragmentTable`] of the caller: the facts
//! are those of the reassembled packet, and its fragments are sent with the fields of the outcome.
//!
//! Connections have a budget ([`Conntrack::set_connections_max`]) and limits by zone; chains, port
//! searches, expectations and policies are bounded. Each refusal has a counter ([`CtCounter`]).
//!
//! **Not** supported: helpers other than FTP and TFTP. A fragment that is tracked alone has no facts,
//! and is invalid.

mod alg;
mod chains;
mod changing_connection;
mod counters;
mod entry;
mod extract;
mod facts;
mod ipf;
mod key;
mod key_v4;
mod limits;
mod metadata;
#[cfg(test)]
mod model;
mod nat;
mod new_connection;
mod plain_packet;
mod protocol;
mod request;
mod sequence_shift;
mod shard;
mod siphash;
mod snapshot;
mod steady;
mod steady_lookup;
mod table;
#[cfg(test)]
mod test_packets;
#[cfg(test)]
mod tests;
mod timeout;
mod timer_wheel;
mod tracker;

pub use alg::{AlgHelper, PayloadRewrite, SequenceAdjust};
pub use counters::CtCounter;
pub use extract::{ChecksumCheck, ExtractError, ExtractedPacket, extract};
pub use facts::{PacketFacts, PacketTuple, SctpChunks, TcpFacts, TransportFacts};
pub use ipf::{
    FragmentOutcome, FragmentPacket, FragmentRefusal, FragmentScope, FragmentTable,
    IpfFamilySettings, IpfSettingError, IpfSettings, IpfStatistics, ReassembledPacket,
};
pub use key::{
    AddressFamily, ConnectionKey, CtAddress, CtZone, Endpoint, KeyProtocol, TrafficDirection,
};
pub use metadata::{CtMetadata, CtState, MaskedWrite};
pub use nat::{CtNat, NatPersistence, NatPortChoice, NatRange, NatSide};
pub use protocol::{SctpPhase, SequenceCheck, TcpEnd, TcpEndState};
pub use request::{ConnectionWrites, CtCommit, CtOutcome, CtPacket, CtRequest, NatTranslation};
pub use siphash::HashSeed;
pub use snapshot::{ConnectionInfo, DumpCursor, ProtocolInfo};
pub use steady_lookup::{SteadyLookup, SteadyNat, SteadyPacket};
pub use timeout::{CtPolicyId, CtTimeout, CtTimeoutPolicy};
pub use tracker::Conntrack;
