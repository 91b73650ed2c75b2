//! Arguments and result of `ct` for one packet.

use crate::alg::{AlgHelper, PayloadRewrite, SequenceAdjust};
use crate::counters::CtCounter;
use crate::facts::PacketFacts;
use crate::key::{ConnectionKey, CtZone};
use crate::metadata::{CtMetadata, MaskedWrite};
use crate::nat::{CtNat, NatSide};
use crate::timeout::CtPolicyId;

/// Creation of connections by `ct`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CtCommit {
    /// Only looks connections up.
    #[default]
    No,
    /// `commit`.
    Commit,
    /// `commit,force`: a connection that the other end began is replaced.
    Force,
}

/// Arguments of `ct`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CtRequest {
    /// The zone.
    pub zone: CtZone,
    /// `commit` and `force`.
    pub commit: CtCommit,
    /// `nat`.
    pub nat: Option<CtNat>,
    /// Writes of `ct_mark` in `exec`.
    pub mark: Option<MaskedWrite<u32>>,
    /// Writes of `ct_label` in `exec`.
    pub label: Option<MaskedWrite<u128>>,
    /// `alg`.
    pub helper: Option<AlgHelper>,
    /// Timeout policy of a new connection; the default policy means that of the zone.
    pub policy: CtPolicyId,
}

/// Writes of `exec` to a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionWrites {
    /// Writes of `ct_mark`.
    pub mark: Option<MaskedWrite<u32>>,
    /// Writes of `ct_label`.
    pub label: Option<MaskedWrite<u128>>,
}

impl ConnectionWrites {
    /// Those of a `ct` without `exec`.
    pub const NONE: Self = Self {
        mark: None,
        label: None,
    };
}

impl CtRequest {
    /// Writes of `exec`.
    #[must_use]
    pub const fn writes(&self) -> ConnectionWrites {
        ConnectionWrites {
            mark: self.mark,
            label: self.label,
        }
    }
}

/// A packet that `ct` tracks.
#[derive(Clone, Copy, Debug)]
pub struct CtPacket<'a> {
    /// Facts of the headers; none if they are malformed, or a checksum is wrong.
    pub facts: Option<PacketFacts>,
    /// Payload of TCP or UDP, for helpers.
    pub payload: &'a [u8],
    /// Fields from an earlier `ct`.
    pub metadata: CtMetadata,
}

/// Header of a translated packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NatTranslation {
    /// The side that the translation changed.
    pub side: NatSide,
    /// Addresses and ports of the packet; for queries of ICMP, both ports are the identifier. If it
    /// is an ICMP error, only the address of `side` is written to the outer header, and the quoted
    /// header gets the reversed key.
    pub header: ConnectionKey,
    /// True for an ICMP error about a packet of the connection.
    pub is_error: bool,
}

/// Result of `ct`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CtOutcome {
    /// Fields of the packet.
    pub metadata: CtMetadata,
    /// New addresses and ports.
    pub translation: Option<NatTranslation>,
    /// Reason for which a connection was not committed.
    pub refusal: Option<CtCounter>,
    /// Replacement in the payload.
    pub rewrite: Option<Box<PayloadRewrite>>,
    /// Shift of sequence numbers.
    pub adjust: Option<SequenceAdjust>,
}
