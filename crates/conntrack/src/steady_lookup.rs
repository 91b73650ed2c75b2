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
use crate::steady::{KeyWords, KeyWordsV4, SteadyKind, SteadySnapshot, SteadyWriter};
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
    /// `ct_label`.
    pub label: u128,
    /// Addresses of the original direction. Of IPv4 the first word holds both, the source in its
    /// upper half; of IPv6 each address has two words.
    pub addresses: [u64; 4],
    /// Ports of the original direction, the source in the upper half.
    pub ports: u32,
    /// Protocol above IP.
    pub protocol: KeyProtocol,
    /// Version of IP.
    pub family: AddressFamily,
    /// New addresses and ports of the packet, which is one over IPv4, if they are others.
    pub translation: Option<PlainEnds>,
}

impl SteadyPacket {
    /// A packet without a connection, for the functions that write the fields.
    pub const NONE: Self = Self {
        state: CtState::NONE,
        zone: CtZone(0),
        mark: 0,
        label: 0,
        addresses: [0; 4],
        ports: 0,
        protocol: KeyProtocol(0),
        family: AddressFamily::V4,
        translation: None,
    };
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
    /// Begins the lookup of a packet in a zone. `bytes` begin with its IP header and may end with
    /// padding; `translated` has the flags of the translation that an earlier `ct` in this zone has
    /// made. Returns none if its facts are not at fixed offsets, as those of TCP and UDP without
    /// options of IP are.
    #[inline]
    #[must_use]
    pub fn begin_steady<'a>(
        &self,
        (bytes, family): (&'a [u8], AddressFamily),
        zone: CtZone,
        translated: CtState,
    ) -> Option<SteadyLookup<'a>> {
        // Each family apart, so that the key of IPv4 stays in registers.
        match family {
            AddressFamily::V4 => {
                let packet = PlainPacket::read_v4(bytes)?;
                Some(self.begin_plain(&packet, zone, translated))
            }
            AddressFamily::V6 => {
                let packet = PlainPacket::read_v6(bytes)?;
                Some(self.begin_plain(&packet, zone, translated))
            }
        }
    }

    #[inline]
    fn begin_plain<'a>(
        &self,
        packet: &PlainPacket<'a>,
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

    /// Tracks a packet by a `ct` that writes neither mark nor label and does not force a commit, and
    /// writes its fields. Returns false if [`Conntrack::track`] must do it; nothing has changed then.
    #[inline]
    pub fn track_steady(
        &self,
        lookup: &SteadyLookup<'_>,
        settings: (ChecksumCheck, SteadyNat),
        now: Instant,
        fields: &mut SteadyPacket,
    ) -> bool {
        self.try_track(lookup, settings, now, fields).is_some()
    }

    #[inline]
    fn try_track(
        &self,
        lookup: &SteadyLookup<'_>,
        (check, nat): (ChecksumCheck, SteadyNat),
        now: Instant,
        fields: &mut SteadyPacket,
    ) -> Option<()> {
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
        fields.state = state_of(snapshot.kind, direction).with(lookup.translated);
        fields.zone = key.zone();
        fields.mark = snapshot.mark;
        fields.label = snapshot.label;
        (fields.protocol, fields.family) = (packet.protocol, packet.family);
        fields.set_original(key, &snapshot);
        fields.translation = None;
        if let (SteadyNat::Apply, Some(nat), CtState::NONE) = (nat, snapshot.nat, lookup.translated)
        {
            fields.translate(key, snapshot.direction, nat);
        }
        Some(())
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
fn state_of(kind: SteadyKind, direction: TrafficDirection) -> CtState {
    let state = match (kind, direction) {
        (SteadyKind::OneWay, _) => CtState::NEW,
        (_, TrafficDirection::Original) => CtState::ESTABLISHED,
        (_, TrafficDirection::Reply) => CtState::ESTABLISHED.with(CtState::REPLY),
    };
    state.with(CtState::TRACKED)
}

impl SteadyPacket {
    /// Sets the addresses and ports of the original direction, for a packet with this key.
    #[inline]
    fn set_original(&mut self, key: &KeyWords, snapshot: &SteadySnapshot) {
        if key.is_v6() {
            return self.set_original_v6(key, snapshot.direction);
        }
        let original = match (snapshot.direction, snapshot.nat) {
            (TrafficDirection::Original, _) => key.v4(),
            (TrafficDirection::Reply, Some((_, original))) => original,
            (TrafficDirection::Reply, None) => key.v4().reversed(),
        };
        self.addresses = [original.addresses, 0, 0, 0];
        self.ports = original.ports();
    }

    fn set_original_v6(&mut self, key: &KeyWords, direction: TrafficDirection) {
        let original = match direction {
            TrafficDirection::Original => *key,
            TrafficDirection::Reply => key.reversed(),
        };
        (self.addresses, self.ports) = (original.addresses, original.ports());
    }

    /// Adds the translation of a connection to a packet with this key. `other` is the key of packets
    /// in the other direction.
    #[inline]
    fn translate(
        &mut self,
        key: &KeyWords,
        direction: TrafficDirection,
        (side, other): (NatSide, KeyWordsV4),
    ) {
        let side = match direction {
            TrafficDirection::Original => side,
            TrafficDirection::Reply => side.reversed(),
        };
        self.state = self.state.with(side.flag());
        let header = other.reversed();
        // A translation without a range mostly finds the packet's own ends free.
        if !header.are(key) {
            self.translation = Some(PlainEnds {
                addresses: header.addresses,
                ports: header.ports(),
            });
        }
    }
}
