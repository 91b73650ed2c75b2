//! The entry of a connection, and the reverse keys of translated connections.
//!
//! ```text
//!   entry    key of IPv4 in two words | state | expiry | mark, policy, slot     64 bytes
//!    `--> extras    both keys | label | translation | helper, shift, parent     if it has one of them
//! ```
//!
//! Connections over IPv4 without translation, label and helper have no extras: their reply key is
//! the reversed original key.

use base::Instant;

use crate::alg::{AlgHelper, SequenceSkew};
use crate::key::{ConnectionKey, CtZone, TrafficDirection};
use crate::key_v4::KeyV4;
use crate::metadata::CtMetadata;
use crate::nat::NatSide;
use crate::protocol::{OtherState, ProtocolState};
use crate::steady::{KeyWords, SteadyKind, SteadyState, WIDE};
use crate::timeout::CtPolicyId;

/// A connection in the table.
#[derive(Clone, Debug)]
pub(crate) struct ConnectionEntry {
    /// The original key, unless the extras have it.
    plain: KeyV4,
    extras: Option<Box<EntryExtras>>,
    /// The end of the connection's life, unless a packet prolongs it.
    pub(crate) expires: Instant,
    pub(crate) state: ProtocolState,
    pub(crate) mark: u32,
    /// Slot of the entry for packets of a steady state in the lower bits, and above them the upper
    /// half of the policy's number, whose lower half is in the spare byte of the key: otherwise the
    /// entry would have eight bytes more.
    slot_and_policy: u32,
}

/// Bits of a slot.
const SLOT_BITS: u32 = 26;
/// Mask of a slot.
const SLOT_MASK: u32 = (1 << SLOT_BITS) - 1;
const _: () = assert!(WIDE <= SLOT_MASK, "slots have this many bits");
const _: () = assert!(
    CtPolicyId::COUNT - 1 < 1 << (8 + 32 - SLOT_BITS),
    "policies fit"
);

/// Fields that a connection over IPv4 has only if it is translated, has a label or a helper.
#[derive(Clone, Debug)]
struct EntryExtras {
    /// Packets of the original direction.
    original: ConnectionKey,
    /// Packets of the reply direction. Without NAT, the reversed original key.
    reply: ConnectionKey,
    nat: Option<NatSide>,
    helper: Option<AlgHelper>,
    /// Shift of sequence numbers by a helper that changed the length of a payload.
    skew: SequenceSkew,
    label: [u64; 2],
    /// Identifies the reverse key of a translated connection; zero without NAT.
    serial: u64,
    /// Original key of the control connection whose helper expected this one.
    parent: Option<Box<ConnectionKey>>,
}

impl EntryExtras {
    const fn new(original: ConnectionKey) -> Self {
        Self {
            original,
            reply: original.reversed(),
            nat: None,
            helper: None,
            skew: SequenceSkew::NONE,
            label: [0; 2],
            serial: 0,
            parent: None,
        }
    }
}

impl ConnectionEntry {
    /// Returns a connection without mark, label, translation and helper.
    pub(crate) fn new(original: &ConnectionKey, state: ProtocolState, expires: Instant) -> Self {
        let plain = KeyV4::of(original);
        Self {
            plain: plain.unwrap_or_default(),
            extras: match plain {
                Some(_) => None,
                None => Some(Box::new(EntryExtras::new(*original))),
            },
            expires,
            state,
            mark: 0,
            slot_and_policy: 0,
        }
    }

    /// Timeout policy.
    #[inline]
    pub(crate) fn policy(&self) -> CtPolicyId {
        let [.., upper] = (self.slot_and_policy >> SLOT_BITS).to_be_bytes();
        let number = u16::from_be_bytes([upper, self.plain.spare()]);
        CtPolicyId::new(number).unwrap_or(CtPolicyId::DEFAULT)
    }

    pub(crate) const fn set_policy(&mut self, policy: CtPolicyId) {
        let [upper, lower] = policy.number().to_be_bytes();
        self.plain.set_spare(lower);
        self.slot_and_policy = self.slot_and_policy & SLOT_MASK | (upper as u32) << SLOT_BITS;
    }

    /// Slot of the entry for packets of a steady state; zero means none. That entry holds the expiry
    /// and the windows of TCP then.
    #[inline]
    pub(crate) const fn steady_slot(&self) -> u32 {
        self.slot_and_policy & SLOT_MASK
    }

    pub(crate) const fn set_steady_slot(&mut self, slot: u32) {
        self.slot_and_policy = self.slot_and_policy & !SLOT_MASK | slot & SLOT_MASK;
    }

    fn extras_mut(&mut self) -> &mut EntryExtras {
        let plain = self.plain;
        self.extras
            .get_or_insert_with(|| Box::new(EntryExtras::new(plain.to_key())))
    }

    /// Packets of the original direction.
    #[inline]
    pub(crate) fn original(&self) -> ConnectionKey {
        match &self.extras {
            None => self.plain.to_key(),
            Some(extras) => extras.original,
        }
    }

    /// Packets of the reply direction.
    #[inline]
    pub(crate) fn reply(&self) -> ConnectionKey {
        match &self.extras {
            None => self.plain.to_key().reversed(),
            Some(extras) => extras.reply,
        }
    }

    /// True if the reply key is the reversed original key.
    #[inline]
    pub(crate) fn is_reply_plain(&self) -> bool {
        let extras = self.extras.as_ref();
        extras.is_none_or(|extras| extras.reply == extras.original.reversed())
    }

    pub(crate) fn zone(&self) -> CtZone {
        match &self.extras {
            None => self.plain.zone(),
            Some(extras) => extras.original.zone,
        }
    }

    /// Returns the direction of packets with this key, if they belong to the connection.
    #[inline]
    pub(crate) fn direction_of(&self, key: &ConnectionKey) -> Option<TrafficDirection> {
        let (is_original, is_reply) = match &self.extras {
            None => (
                self.plain.is(key),
                // The same addresses and ports on both sides are the original direction.
                self.plain.is(&key.reversed()),
            ),
            Some(extras) => (extras.original == *key, extras.reply == *key),
        };
        match (is_original, is_reply) {
            (true, _) => Some(TrafficDirection::Original),
            (false, true) => Some(TrafficDirection::Reply),
            (false, false) => None,
        }
    }

    /// True if packets of the original direction have this key.
    #[inline]
    pub(crate) fn is_original(&self, key: &ConnectionKey) -> bool {
        match &self.extras {
            None => self.plain.is(key),
            Some(extras) => extras.original == *key,
        }
    }

    /// Returns the key of a direction.
    pub(crate) fn key(&self, direction: TrafficDirection) -> ConnectionKey {
        match direction {
            TrafficDirection::Original => self.original(),
            TrafficDirection::Reply => self.reply(),
        }
    }

    /// Side of packets of the original direction that is translated.
    pub(crate) fn nat(&self) -> Option<NatSide> {
        self.extras.as_ref()?.nat
    }

    /// Number of the reverse key; zero means none.
    pub(crate) fn serial(&self) -> u64 {
        self.extras.as_ref().map_or(0, |extras| extras.serial)
    }

    /// Translates the connection. `serial` is the number of its reverse key, or zero.
    pub(crate) fn set_nat(&mut self, side: NatSide, reply: ConnectionKey, serial: u64) {
        let extras = self.extras_mut();
        extras.nat = Some(side);
        extras.reply = reply;
        extras.serial = serial;
    }

    pub(crate) fn helper(&self) -> Option<AlgHelper> {
        self.extras.as_ref()?.helper
    }

    pub(crate) fn set_helper(&mut self, helper: AlgHelper) {
        self.extras_mut().helper = Some(helper);
    }

    pub(crate) fn skew(&self) -> SequenceSkew {
        let extras = self.extras.as_ref();
        extras.map_or(SequenceSkew::NONE, |extras| extras.skew)
    }

    pub(crate) fn skew_mut(&mut self) -> &mut SequenceSkew {
        &mut self.extras_mut().skew
    }

    /// Original key of the control connection whose helper expected this one.
    pub(crate) fn parent(&self) -> Option<&ConnectionKey> {
        self.extras.as_ref()?.parent.as_deref()
    }

    pub(crate) fn set_parent(&mut self, parent: ConnectionKey) {
        self.extras_mut().parent = Some(Box::new(parent));
    }

    /// True if a helper reads its packets, or has expected it.
    fn has_helper(&self) -> bool {
        self.helper().is_some() || self.parent().is_some()
    }

    /// True without a translation and a helper.
    pub(crate) fn is_simple(&self) -> bool {
        let is_translated = self.nat().is_some() || !self.is_reply_plain();
        !is_translated && !self.has_helper()
    }

    pub(crate) fn label_words(&self) -> [u64; 2] {
        self.extras.as_ref().map_or([0; 2], |extras| extras.label)
    }

    /// `ct_label`.
    pub(crate) fn label(&self) -> u128 {
        let [high, low] = self.label_words();
        u128::from(high) << 64 | u128::from(low)
    }

    /// Writes `ct_label`.
    pub(crate) fn set_label(&mut self, label: u128) {
        if label != 0 || self.extras.is_some() {
            self.extras_mut().label = label_words(label);
        }
    }

    /// Copies the fields that packets of the connection get.
    pub(crate) fn fill(&self, metadata: &mut CtMetadata) {
        metadata.mark = self.mark;
        metadata.label = self.label();
        let parent = self.parent().copied();
        metadata.original = Some(parent.unwrap_or_else(|| self.original()));
    }

    /// Returns the fields for packets of a steady state, if the connection is in one.
    pub(crate) fn steady_state(&self) -> Option<SteadyState> {
        let (kind, tcp) = match &self.state {
            ProtocolState::Tcp(tcp) if tcp.is_established() => (SteadyKind::Tcp, Some(*tcp)),
            ProtocolState::Other(OtherState::BothDirections) => (SteadyKind::Datagrams, None),
            ProtocolState::Other(OtherState::SeveralPackets) => (SteadyKind::OneWay, None),
            _ => return None,
        };
        let key = KeyWords::of(&self.original()).filter(|_| !self.has_helper())?;
        let nat = match self.nat() {
            None if self.is_reply_plain() => None,
            Some(side) if !key.is_v6() => Some((side, KeyWords::of(&self.reply())?)),
            _ => return None,
        };
        Some(SteadyState {
            key,
            kind,
            expires: self.expires,
            mark: self.mark,
            label: self.label_words(),
            policy: self.policy(),
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
    use crate::test_packets::udp_key;

    #[test]
    fn entry_takes_little_memory() {
        // The goal is 160 bytes for a connection, with its link, timer and head, and its entry for
        // packets of a steady state.
        assert_eq!(size_of::<Option<ConnectionEntry>>(), 64);
    }

    #[test]
    fn entry_has_slot_and_policy_in_one_word() {
        let (state, expires) = (ProtocolState::Other(OtherState::First), Instant::START);
        let mut entry = ConnectionEntry::new(&udp_key(1, 2), state, expires);
        for number in [0, 1, 255, 256, CtPolicyId::COUNT - 1] {
            let policy = CtPolicyId::new(number).expect("below the count");
            for slot in [0, 1, WIDE | 7, SLOT_MASK] {
                entry.set_policy(policy);
                entry.set_steady_slot(slot);
                assert_eq!((entry.policy(), entry.steady_slot()), (policy, slot));
                entry.set_policy(policy);
                assert_eq!(entry.steady_slot(), slot);
                assert_eq!(entry.original(), udp_key(1, 2));
                assert!(entry.is_original(&udp_key(1, 2)));
            }
        }
    }

    #[test]
    fn label_is_two_words() {
        let label = 0x0123_4567_89ab_cdef_0011_2233_4455_6677;
        let words = [0x0123_4567_89ab_cdef, 0x0011_2233_4455_6677];
        assert_eq!(label_words(label), words);
    }
}
