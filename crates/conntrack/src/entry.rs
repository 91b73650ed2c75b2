//! The entry of a connection, and the reverse keys of translated connections.

use base::Instant;

use crate::alg::{AlgHelper, SequenceSkew};
use crate::key::{ConnectionKey, TrafficDirection};
use crate::metadata::CtMetadata;
use crate::nat::NatSide;
use crate::protocol::{OtherState, ProtocolState};
use crate::steady::{KeyWords, SteadyKind, SteadyState};
use crate::timeout::CtPolicyId;

/// A connection in the table.
#[derive(Clone, Debug)]
pub(crate) struct ConnectionEntry {
    /// Packets of the original direction.
    pub(crate) original: ConnectionKey,
    /// Packets of the reply direction. Without NAT, the reversed original key.
    pub(crate) reply: ConnectionKey,
    pub(crate) state: ProtocolState,
    /// The end of the connection's life, unless a packet prolongs it.
    pub(crate) expires: Instant,
    pub(crate) mark: u32,
    pub(crate) label: [u64; 2],
    pub(crate) policy: CtPolicyId,
    pub(crate) nat: Option<NatSide>,
    pub(crate) helper: Option<AlgHelper>,
    /// Shift of sequence numbers by a helper that changed the length of a payload.
    pub(crate) skew: SequenceSkew,
    /// Identifies the reverse key of a translated connection; zero without NAT.
    pub(crate) serial: u64,
    /// Slot of the entry for packets of a steady state; zero means none. That entry holds the
    /// expiry and the windows of TCP then.
    pub(crate) steady_slot: u32,
    /// Original key of the control connection whose helper expected this one.
    pub(crate) parent: Option<Box<ConnectionKey>>,
}

impl ConnectionEntry {
    /// Returns the direction of packets with this key, if they belong to the connection.
    #[inline]
    pub(crate) fn direction_of(&self, key: &ConnectionKey) -> Option<TrafficDirection> {
        if self.original == *key {
            Some(TrafficDirection::Original)
        } else if self.reply == *key {
            Some(TrafficDirection::Reply)
        } else {
            None
        }
    }

    /// Returns the key of a direction.
    pub(crate) const fn key(&self, direction: TrafficDirection) -> &ConnectionKey {
        match direction {
            TrafficDirection::Original => &self.original,
            TrafficDirection::Reply => &self.reply,
        }
    }

    /// `ct_label`.
    pub(crate) fn label(&self) -> u128 {
        let [high, low] = self.label;
        u128::from(high) << 64 | u128::from(low)
    }

    /// Writes `ct_label`.
    pub(crate) fn set_label(&mut self, label: u128) {
        self.label = label_words(label);
    }

    /// Copies the fields that packets of the connection get.
    pub(crate) fn fill(&self, metadata: &mut CtMetadata) {
        metadata.mark = self.mark;
        metadata.label = self.label();
        metadata.original = Some(self.parent.as_deref().copied().unwrap_or(self.original));
    }

    /// Returns the fields for packets of a steady state, if the connection is in one.
    pub(crate) fn steady_state(&self) -> Option<SteadyState> {
        let has_extras = self.helper.is_some() || self.parent.is_some();
        let is_reply_plain = self.reply == self.original.reversed();
        let (kind, tcp) = match &self.state {
            ProtocolState::Tcp(tcp) if tcp.is_established() => (SteadyKind::Tcp, Some(*tcp)),
            ProtocolState::Other(OtherState::BothDirections) => (SteadyKind::Datagrams, None),
            ProtocolState::Other(OtherState::SeveralPackets) => (SteadyKind::OneWay, None),
            _ => return None,
        };
        let key = KeyWords::of(&self.original).filter(|_| !has_extras)?;
        let nat = match self.nat {
            None if is_reply_plain => None,
            Some(side) if !key.is_v6() => Some((side, KeyWords::of(&self.reply)?)),
            _ => return None,
        };
        Some(SteadyState {
            key,
            kind,
            expires: self.expires,
            mark: self.mark,
            label: self.label,
            policy: self.policy,
            tcp,
            nat,
        })
    }

    /// True if the connection's life has ended, unless its steady state prolongs it.
    #[inline]
    pub(crate) fn is_expired(&self, now: Instant) -> bool {
        self.expires <= now
    }
}

/// Returns a label as two words, which need no alignment to 16 bytes.
pub(crate) const fn label_words(label: u128) -> [u64; 2] {
    let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = label.to_be_bytes();
    [
        u64::from_be_bytes([a, b, c, d, e, f, g, h]),
        u64::from_be_bytes([i, j, k, l, m, n, o, p]),
    ]
}

/// The reply key of a translated connection, in the shard of that key. The entry itself is in the
/// shard of its original key.
#[derive(Clone, Debug)]
pub(crate) struct ReverseKey {
    pub(crate) reply: ConnectionKey,
    pub(crate) original: ConnectionKey,
    /// Number of the connection: an older connection with the same keys has another one.
    pub(crate) serial: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entry_takes_little_memory() {
        // The goal is 160 bytes for a connection, with its node, timer and head: 32 bytes.
        assert!(size_of::<ConnectionEntry>() <= 224);
    }

    #[test]
    fn label_is_two_words() {
        let label = 0x0123_4567_89ab_cdef_0011_2233_4455_6677;
        let words = [0x0123_4567_89ab_cdef, 0x0011_2233_4455_6677];
        assert_eq!(label_words(label), words);
    }
}
