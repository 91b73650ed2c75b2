//! The reference model: a list of connections that is searched from its begin, without shards,
//! timers or hashes, written from `ovs-actions(7)`, `ovs-fields(7)` and RFC 9293.
//!
//! The model checks TCP by flags only; windows have their own properties. It does not choose
//! addresses and ports of translations: it checks that the tracker's choice is permitted, and adopts
//! it. Limits, helpers and SCTP are outside the model.

use base::Instant;
use std::time::Duration;

use crate::facts::{PacketFacts, TransportFacts};
use crate::key::{ConnectionKey, KeyProtocol};
use crate::metadata::CtState;
use crate::nat::{CtNat, NatRange, NatSide};
use crate::request::{CtCommit, CtOutcome, CtRequest};
use packet::wire::tcp::{ACK, FIN, RST, SYN};

/// State of one end of a TCP connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ModelEnd {
    Silent,
    Sent,
    Acknowledged,
    Finished,
    FinishAcknowledged,
    Reset,
}

/// State of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ModelState {
    /// UDP: whether there was a reply.
    Datagrams { has_reply: bool },
    /// ICMP: whether there was a reply.
    Queries { has_reply: bool },
    /// TCP: the end that began, and the other one.
    Segments([ModelEnd; 2]),
}

/// A connection of the model.
#[derive(Clone, Debug)]
pub(crate) struct ModelConnection {
    pub(crate) original: ConnectionKey,
    pub(crate) reply: ConnectionKey,
    pub(crate) mark: u32,
    state: ModelState,
    expires: Instant,
    nat: Option<NatSide>,
}

/// The model.
#[derive(Debug, Default)]
pub(crate) struct ModelTracker {
    pub(crate) connections: Vec<ModelConnection>,
}

/// Effect of a packet on a connection of the model.
enum ModelEffect {
    Invalid,
    Restart,
    New(u64),
    Established(u64),
}

impl ModelTracker {
    /// Checks the tracker's outcome for a packet that was not tracked before.
    pub(crate) fn check(
        &mut self,
        facts: &PacketFacts,
        request: &CtRequest,
        now: Instant,
        outcome: &CtOutcome,
    ) -> Result<(), String> {
        self.connections
            .retain(|connection| connection.expires > now);
        let key = facts.tuple.in_zone(request.zone);
        let expected = self.track(facts, &key, request, now, outcome)?;
        let state = outcome.metadata.state;
        if state == expected.with(CtState::TRACKED) {
            Ok(())
        } else {
            Err(format!("{facts:?}: {state:?} instead of {expected:?}"))
        }
    }

    fn track(
        &mut self,
        facts: &PacketFacts,
        key: &ConnectionKey,
        request: &CtRequest,
        now: Instant,
        outcome: &CtOutcome,
    ) -> Result<CtState, String> {
        let is_error = facts.transport == TransportFacts::IcmpError;
        let found = self
            .connections
            .iter()
            .position(|connection| connection.original == *key || connection.reply == *key);
        let Some(at) = found else {
            return if is_error {
                Ok(CtState::INVALID)
            } else {
                self.create(facts, key, request, now, outcome)
            };
        };
        let connection = &mut self.connections[at];
        let is_reply = connection.original != *key;
        let mut state = CtState::NONE;
        if is_reply && request.commit == CtCommit::Force {
            self.connections.remove(at);
            return if is_error {
                Ok(CtState::INVALID)
            } else {
                self.create(facts, key, request, now, outcome)
            };
        }
        if is_error {
            state = state.with(CtState::RELATED);
        } else {
            match connection.state.apply(facts, is_reply) {
                ModelEffect::Invalid => return Ok(CtState::INVALID),
                ModelEffect::Restart => {
                    self.connections.remove(at);
                    return self.create(facts, key, request, now, outcome);
                }
                ModelEffect::New(seconds) => {
                    state = state.with(CtState::NEW);
                    connection.expires = now + Duration::from_secs(seconds);
                }
                ModelEffect::Established(seconds) => {
                    state = state.with(CtState::ESTABLISHED);
                    connection.expires = now + Duration::from_secs(seconds);
                }
            }
        }
        if is_reply && !state.contains(CtState::NEW) {
            state = state.with(CtState::REPLY);
        }
        if let Some(write) = request.mark {
            connection.mark = write.apply(connection.mark);
        }
        let connection = connection.clone();
        check_fields(&connection, outcome)?;
        Ok(state.with(check_translation(&connection, is_reply, request, outcome)?))
    }

    fn create(
        &mut self,
        facts: &PacketFacts,
        key: &ConnectionKey,
        request: &CtRequest,
        now: Instant,
        outcome: &CtOutcome,
    ) -> Result<CtState, String> {
        let Some((state, seconds)) = ModelState::begin(facts) else {
            return Ok(CtState::INVALID);
        };
        if request.commit == CtCommit::No || outcome.refusal.is_some() {
            return Ok(CtState::NEW);
        }
        let mut connection = ModelConnection {
            original: *key,
            reply: key.reversed(),
            mark: request.mark.map_or(0, |write| write.apply(0)),
            state,
            expires: now + Duration::from_secs(seconds),
            nat: None,
        };
        if let Some(CtNat::New(range)) = request.nat {
            let translation = outcome.translation.ok_or("no translation")?;
            connection.nat = Some(range.side);
            connection.reply = translation.header.reversed();
            check_range(&connection, &range)?;
        }
        let is_used = |reply: &ConnectionKey| {
            self.connections
                .iter()
                .any(|other| other.original == *reply || other.reply == *reply)
        };
        if is_used(&connection.reply) {
            return Err(format!("reply key in use: {}", connection.reply));
        }
        check_fields(&connection, outcome)?;
        let flags = check_translation(&connection, false, request, outcome)?;
        self.connections.push(connection);
        Ok(CtState::NEW.with(flags))
    }
}

/// Checks mark and original tuple.
fn check_fields(connection: &ModelConnection, outcome: &CtOutcome) -> Result<(), String> {
    let metadata = &outcome.metadata;
    if metadata.mark != connection.mark || metadata.original != Some(connection.original) {
        return Err(format!("{metadata:?} of {connection:?}"));
    }
    Ok(())
}

/// Checks that a reply key is in the range of its translation.
fn check_range(connection: &ModelConnection, range: &NatRange) -> Result<(), String> {
    let ModelConnection {
        original, reply, ..
    } = connection;
    let (end, own, other_end) = match range.side {
        NatSide::Source => (reply.dst, original.src, (reply.src, original.dst)),
        NatSide::Destination => (reply.src, original.dst, (reply.dst, original.src)),
    };
    let is_address = range
        .addresses
        .map_or(end.address == own.address, |(min, max)| {
            (min..=max).contains(&end.address)
        });
    let has_ports = matches!(original.protocol, KeyProtocol::TCP | KeyProtocol::UDP);
    let is_port = match range.ports {
        // Both ends of ICMP have the identifier, which may change.
        _ if original.protocol == KeyProtocol::ICMPV4 => reply.src.port == reply.dst.port,
        Some((min, max)) if has_ports => (min..=max).contains(&end.port),
        _ => has_ports || end.port == own.port,
    };
    // Destination NAT may change the source port too, but never the source address.
    let is_other = other_end.0.address == other_end.1.address;
    if is_address && is_port && is_other {
        Ok(())
    } else {
        Err(format!("{reply} is outside {range:?}"))
    }
}

/// Checks the packet's new header, and returns the flags of the translation.
fn check_translation(
    connection: &ModelConnection,
    is_reply: bool,
    request: &CtRequest,
    outcome: &CtOutcome,
) -> Result<CtState, String> {
    let nat = connection.nat.filter(|_| request.nat.is_some());
    let (Some(side), Some(translation)) = (nat, outcome.translation) else {
        return if nat.is_none() && outcome.translation.is_none() {
            Ok(CtState::NONE)
        } else {
            Err(format!("{:?} of {connection:?}", outcome.translation))
        };
    };
    let header = if is_reply {
        connection.original.reversed()
    } else {
        connection.reply.reversed()
    };
    if translation.header != header {
        return Err(format!("{} instead of {header}", translation.header));
    }
    Ok(match (side, is_reply) {
        (NatSide::Source, false) | (NatSide::Destination, true) => CtState::SOURCE_NAT,
        (NatSide::Destination, false) | (NatSide::Source, true) => CtState::DESTINATION_NAT,
    })
}

impl ModelState {
    /// Returns the state after a first packet, and the seconds that it lasts.
    fn begin(facts: &PacketFacts) -> Option<(Self, u64)> {
        match &facts.transport {
            TransportFacts::Tcp(segment) => {
                let is_answer = segment.has(SYN) && segment.has(ACK);
                if is_answer || has_impossible_flags(segment.flags) {
                    return None;
                }
                Some((Self::Segments([ModelEnd::Sent, ModelEnd::Silent]), 30))
            }
            TransportFacts::Icmp if facts.tuple.src.message_type == 8 => {
                Some((Self::Queries { has_reply: false }, 60))
            }
            TransportFacts::Other => Some((Self::Datagrams { has_reply: false }, 60)),
            _ => None,
        }
    }

    fn apply(&mut self, facts: &PacketFacts, is_reply: bool) -> ModelEffect {
        match (self, &facts.transport) {
            (Self::Datagrams { has_reply } | Self::Queries { has_reply }, _) => {
                *has_reply |= is_reply;
                if *has_reply {
                    ModelEffect::Established(30)
                } else {
                    ModelEffect::New(60)
                }
            }
            (Self::Segments(ends), TransportFacts::Tcp(segment)) => {
                apply_segment(ends, segment.flags, usize::from(is_reply))
            }
            (Self::Segments(_), _) => ModelEffect::Invalid,
        }
    }
}

/// Applies the flags of a segment that the end `src` sent.
fn apply_segment(ends: &mut [ModelEnd; 2], flags: u16, src: usize) -> ModelEffect {
    use ModelEnd::{Acknowledged, FinishAcknowledged, Finished, Reset, Sent, Silent};
    if has_impossible_flags(flags) {
        return ModelEffect::Invalid;
    }
    let dst = 1 - src;
    if flags & SYN != 0 && flags & ACK == 0 {
        if ends.iter().all(|end| *end >= FinishAcknowledged) {
            return ModelEffect::Restart;
        }
        if ends[src] <= Sent {
            ends[src] = Sent;
            return ModelEffect::New(30);
        }
    }
    if ends[src] == Silent {
        ends[src] = Sent;
    }
    if flags & FIN != 0 && ends[src] < Finished {
        ends[src] = Finished;
    }
    if flags & ACK != 0 && ends[dst] == Sent {
        ends[dst] = Acknowledged;
    } else if flags & ACK != 0 && ends[dst] == Finished {
        ends[dst] = FinishAcknowledged;
    }
    if flags & RST != 0 {
        *ends = [Reset, Reset];
    }
    let both = |least: ModelEnd| ends.iter().all(|end| *end >= least);
    ModelEffect::Established(if both(FinishAcknowledged) {
        30
    } else if both(Finished) {
        45
    } else if !both(Acknowledged) {
        30
    } else if ends.iter().any(|end| *end >= Finished) {
        15 * 60
    } else {
        24 * 60 * 60
    })
}

/// True if a segment cannot have these flags: SYN excludes RST and FIN; FIN, PSH and URG need ACK;
/// one of SYN, ACK and RST is set.
fn has_impossible_flags(flags: u16) -> bool {
    let has = |flag: u16| flags & flag != 0;
    let needs_ack = has(FIN | packet::wire::tcp::PSH | packet::wire::tcp::URG);
    (has(SYN) && has(RST | FIN)) || (needs_ack && !has(ACK)) || !has(SYN | ACK | RST)
}
