//! Lookup of a packet of a [steady](crate::steady) connection, in steps that batches interleave.

use std::time::Duration;

use base::Instant;
use packet::PlainEnds;

use crate::extract::ChecksumCheck;
use crate::key::{AddressFamily, CtZone, KeyProtocol, TrafficDirection};
use crate::metadata::CtState;
use crate::nat::NatSide;
use crate::plain_packet::{PlainBody, PlainPacket};
use crate::protocol::PacketEffect;
use crate::steady::{KeyWords, SteadyKind, SteadySnapshot, SteadyWriter};
use crate::table::KeyPosition;
use crate::timeout::CtTimeout;
use crate::tracker::Conntrack;

/// An expiry is written only if it moves by this much, so a connection may end this much early.
/// Timeouts are whole seconds.
const EXPIRY_GRAIN: Duration = Duration::from_millis(64);

/// A packet whose connection is being looked up.
#[derive(Clone, Copy, Debug)]
pub struct SteadyLookup<'a> {
    pub(crate) packet: PlainBody<'a>,
    pub(crate) key: KeyWords,
    hash: u64,
    /// Slot of the entry; zero means none.
    slot: u32,
    /// Flags of the translation that an earlier `ct` in this zone has made. The key is reversed
    /// then.
    pub(crate) translated: CtState,
    /// Position in the shards, if the packet has no entry.
    pub(crate) position: KeyPosition,
}

impl SteadyLookup<'_> {
    /// True if the packet has no entry: [`Conntrack::track`] looks it up in the shards.
    #[inline]
    #[must_use]
    pub const fn is_absent(&self) -> bool {
        self.slot == 0
    }

    /// A number that packets of one connection have in common, and others hardly ever.
    #[inline]
    #[must_use]
    pub const fn connection(&self) -> u64 {
        match self.slot {
            // Slots have no upper half.
            0 => self.hash | 1 << 63,
            slot => slot as u64,
        }
    }
}

/// Fields of a packet of a connection in a steady state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SteadyPacket {
    /// `ct_state`.
    pub state: CtState,
    /// `ct_zone`.
    pub zone: CtZone,
    /// `ct_mark`.
    pub mark: u32,
    /// `ct_label`, the upper word first.
    pub label: [u64; 2],
    /// Addresses of the original direction. Of IPv4 the first word holds both, the source in its
    /// upper half; of IPv6 each address has two words.
    pub addresses: [u64; 4],
    /// Ports of the original direction, the source in the upper half.
    pub ports: u32,
    /// Protocol above IP.
    pub protocol: KeyProtocol,
    /// Version of IP.
    pub family: AddressFamily,
    /// New addresses and ports of the packet, which is one over IPv4.
    pub translation: Option<PlainEnds>,
}

/// Whether `ct` has the argument `nat`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SteadyNat {
    /// The packet keeps its headers.
    Ignore,
    /// The packet is translated as its connection is.
    Apply,
}

impl Conntrack {
    /// Begins the lookup of a packet in a zone. `translated` has the flags of the translation that an
    /// earlier `ct` in this zone has made.
    #[inline]
    #[must_use]
    pub fn begin_steady<'a>(
        &self,
        packet: PlainPacket<'a>,
        zone: CtZone,
        translated: CtState,
    ) -> SteadyLookup<'a> {
        let key = match translated {
            CtState::NONE => packet.key(zone),
            _ => packet.key(zone).reversed(),
        };
        SteadyLookup {
            packet: packet.body,
            key,
            hash: key.hash(&self.table.steady.secrets),
            slot: 0,
            translated,
            position: KeyPosition::default(),
        }
    }

    /// Returns the memory that [`Conntrack::find_steady`] reads, for a prefetch.
    #[inline]
    #[must_use]
    pub fn steady_bucket(&self, lookup: &SteadyLookup<'_>) -> Option<&impl Sized> {
        self.table.steady.bucket(lookup.hash)
    }

    /// Finds the entry of a packet, and returns the memory that [`Conntrack::track_steady`] reads.
    #[inline]
    pub fn find_steady(&self, lookup: &mut SteadyLookup<'_>) -> Option<&impl Sized> {
        lookup.slot = self.table.steady.find(lookup.hash);
        match lookup.slot {
            0 => None,
            slot => self.table.steady.line(slot),
        }
    }

    /// Tracks a packet by a `ct` that writes neither mark nor label and does not force a commit.
    /// Returns none if [`Conntrack::track`] must do it; nothing has changed then.
    #[inline]
    pub fn track_steady(
        &self,
        lookup: &SteadyLookup<'_>,
        (check, nat): (ChecksumCheck, SteadyNat),
        now: Instant,
    ) -> Option<SteadyPacket> {
        let SteadyLookup { packet, key, .. } = lookup;
        if lookup.slot == 0 || !packet.is_ordinary() {
            return None;
        }
        let entry = self.table.steady.entry(lookup.slot)?;
        let snapshot = entry.read(key)?;
        let direction = match lookup.translated {
            CtState::NONE => snapshot.direction,
            _ => snapshot.direction.reversed(),
        };
        let is_reply = direction == TrafficDirection::Reply;
        if snapshot.expires <= now || (is_reply && snapshot.kind == SteadyKind::OneWay) {
            return None;
        }
        if !packet.has_valid_checksums(check) {
            return None;
        }
        let expires = self.later_expiry(&snapshot, now)?;
        if snapshot.kind == SteadyKind::Tcp {
            let writer = entry.try_write(snapshot.sequence)?;
            self.slide_windows(&writer, packet, direction)?;
            if let Some(expires) = expires {
                writer.set_expires(expires);
            }
        } else if let Some(expires) = expires {
            entry.try_write(snapshot.sequence)?.set_expires(expires);
        }
        let mut fields = fields_of(&snapshot, direction, packet);
        fields.state = fields.state.with(lookup.translated);
        if let (SteadyNat::Apply, Some(nat), CtState::NONE) = (nat, snapshot.nat, lookup.translated)
        {
            translate(&snapshot, nat, &mut fields);
        }
        Some(fields)
    }

    /// Returns the new expiry of a connection if it is to be written. Returns none if it would be
    /// earlier: the timeout has changed.
    #[inline]
    fn later_expiry(&self, snapshot: &SteadySnapshot, now: Instant) -> Option<Option<Instant>> {
        let timeout = snapshot.kind.timeout();
        let expires = now + self.policies.duration(snapshot.policy, timeout);
        if expires >= snapshot.expires + EXPIRY_GRAIN {
            return Some(Some(expires));
        }
        // Another worker may have read a later time.
        (expires + EXPIRY_GRAIN >= snapshot.expires).then_some(None)
    }

    /// Applies a segment to the windows. Returns none, without a change, if it is out of window or
    /// the connection does not stay established.
    #[inline]
    fn slide_windows(
        &self,
        writer: &SteadyWriter<'_>,
        packet: &PlainBody<'_>,
        direction: TrafficDirection,
    ) -> Option<()> {
        let mut connection = writer.tcp();
        let effect = connection.apply(&packet.segment()?, direction, self.sequence_check());
        let stays = effect == PacketEffect::Established(CtTimeout::TcpEstablished);
        if !stays || !connection.is_established() {
            return None;
        }
        writer.set_tcp(&connection.to_words());
        Some(())
    }
}

#[inline]
fn fields_of(
    snapshot: &SteadySnapshot,
    direction: TrafficDirection,
    packet: &PlainBody<'_>,
) -> SteadyPacket {
    let is_reply = direction == TrafficDirection::Reply;
    let state = match (snapshot.kind, is_reply) {
        (SteadyKind::OneWay, _) => CtState::NEW,
        (_, false) => CtState::ESTABLISHED,
        (_, true) => CtState::ESTABLISHED.with(CtState::REPLY),
    };
    let original = &snapshot.original;
    SteadyPacket {
        state: state.with(CtState::TRACKED),
        zone: original.zone(),
        mark: snapshot.mark,
        label: snapshot.label,
        addresses: original.addresses,
        ports: original.ports(),
        protocol: packet.protocol,
        family: packet.family,
        translation: None,
    }
}

/// Adds the translation of a connection.
fn translate(snapshot: &SteadySnapshot, nat: (NatSide, KeyWords), fields: &mut SteadyPacket) {
    let (side, reply) = nat;
    let (side, header) = match snapshot.direction {
        TrafficDirection::Original => (side, reply.reversed()),
        TrafficDirection::Reply => (side.reversed(), snapshot.original.reversed()),
    };
    fields.state = fields.state.with(side.flag());
    fields.translation = Some(PlainEnds {
        addresses: header.addresses[0],
        ports: header.ports(),
    });
}
