//! Tracking of a packet by the action `ct`, for the interpreter and for the compiled path: the
//! arguments of the action, the facts of the packet, and the translation of its headers.
//!
//! ```text
//!   action, fields --> CtRequest --+
//!                                  +--> Conntrack --> CtOutcome --> fields of the connection
//!   frame --> facts ---------------+                        `-----> headers, payload
//! ```

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use base::Instant;
use conntrack::{
    AddressFamily, AlgHelper, ChecksumCheck, ConnectionKey, Conntrack, CtAddress, CtCommit,
    CtMetadata, CtNat, CtOutcome, CtPacket, CtRequest, CtState, CtZone, KeyProtocol, MaskedWrite,
    NatPersistence, NatPortChoice, NatRange, NatSide, NatTranslation, extract,
};
use flow::{
    Action, ConnectionFields, ConntrackAction, ConntrackFlags, ConntrackZone, Extension, Field,
    NatAction, NatAddresses, NatFlags, Subfield,
};
use packet::{Checksum, Frame, Network, Packet, PacketEnds};

use crate::interpreter::actions::{drop_reason_of, low_u16, low_u32};
use crate::verdict::DropReason;

/// Ports of the helpers.
const FTP: u16 = 21;
const TFTP: u16 = 69;

/// A value that `ct` reads from the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConntrackSource {
    /// Bits of a field.
    Subfield(Subfield),
    /// The value that was pushed last, which is removed.
    StackTop,
}

/// Returns the arguments of `action`. `read` returns a value of the packet, or `None` from an empty
/// stack.
pub fn conntrack_request(
    action: &ConntrackAction,
    mut read: impl FnMut(ConntrackSource) -> Option<u128>,
) -> CtRequest {
    let zone = match action.zone {
        ConntrackZone::Number(zone) => zone,
        ConntrackZone::Subfield(part) => {
            low_u16(read(ConntrackSource::Subfield(part)).unwrap_or(0))
        }
    };
    let commit = match action.flags {
        flags if flags.contains(ConntrackFlags::FORCE) => CtCommit::Force,
        flags if flags.contains(ConntrackFlags::COMMIT) => CtCommit::Commit,
        _ => CtCommit::No,
    };
    let helper = match action.alg {
        FTP => Some(AlgHelper::Ftp),
        TFTP => Some(AlgHelper::Tftp),
        _ => None,
    };
    let mut request = CtRequest {
        zone: CtZone(zone),
        commit,
        helper,
        ..CtRequest::default()
    };
    for action in &action.actions {
        match action {
            Action::Extended(Extension::Nat(nat)) => request.nat = Some(nat_of(nat)),
            write => add_write(write, &mut read, &mut request),
        }
    }
    request
}

/// Adds a write of `ct_mark` or `ct_label` to the request.
fn add_write(
    write: &Action,
    read: &mut impl FnMut(ConntrackSource) -> Option<u128>,
    request: &mut CtRequest,
) {
    let (field, value, mask) = match write {
        Action::SetField { field, value, mask } => (*field, *value, *mask),
        Action::Extended(Extension::Load { to, value }) => {
            (to.field(), to.place((*value).into()), to.mask())
        }
        Action::Extended(Extension::Move { from, to }) => {
            let bits = read(ConntrackSource::Subfield(*from)).unwrap_or(0);
            (to.field(), to.place(bits), to.mask())
        }
        Action::Extended(Extension::Pop(to)) => {
            let Some(bits) = read(ConntrackSource::StackTop) else {
                return;
            };
            (to.field(), to.place(bits), to.mask())
        }
        // The check permits no others.
        _ => return,
    };
    match field {
        Field::CtMark => {
            let before = request.mark.unwrap_or_default();
            let (value, mask) = (low_u32(value), low_u32(mask));
            request.mark = Some(MaskedWrite {
                value: before.value & !mask | value & mask,
                mask: before.mask | mask,
            });
        }
        Field::CtLabel => {
            let before = request.label.unwrap_or_default();
            request.label = Some(MaskedWrite {
                value: before.value & !mask | value & mask,
                mask: before.mask | mask,
            });
        }
        _ => {}
    }
}

/// Tracks a packet, which has the fields of an `earlier` `ct`, if any.
#[must_use]
pub fn track_packet(
    tracker: &Conntrack,
    packet: &Packet<'_>,
    earlier: Option<&ConnectionFields>,
    request: &CtRequest,
    now: Instant,
) -> CtOutcome {
    let frame = packet.frame();
    let check = checksum_check(frame);
    let bytes = frame.bytes();
    let bytes = bytes.get(packet.headers().network_at()..).unwrap_or(&[]);
    let family = family_of(packet);
    let extracted = family.and_then(|family| extract(bytes, family, check).ok());
    let packet = CtPacket {
        facts: extracted.map(|extracted| extracted.facts),
        payload: extracted.map_or(&[], |extracted| extracted.payload),
        metadata: earlier.map_or_else(CtMetadata::default, |fields| {
            metadata_of(fields, family.unwrap_or_default())
        }),
    };
    tracker.track(&packet, request, now)
}

/// Returns the check of a frame's checksums: none, if they are not complete.
pub(crate) const fn checksum_check(frame: &Frame) -> ChecksumCheck {
    match frame.offload.checksum {
        Checksum::Complete if frame.offload.segmentation.is_none() => ChecksumCheck::Verify,
        _ => ChecksumCheck::Skip,
    }
}

/// Tracks a packet that was reassembled: its bytes from the IP header. Helpers do not read it, since
/// a payload cannot be replaced in fragments.
pub(crate) fn track_reassembled(
    tracker: &Conntrack,
    bytes: &[u8],
    (family, check): (AddressFamily, ChecksumCheck),
    earlier: Option<&ConnectionFields>,
    request: &CtRequest,
    now: Instant,
) -> CtOutcome {
    let extracted = extract(bytes, family, check).ok();
    let packet = CtPacket {
        facts: extracted.map(|extracted| extracted.facts),
        payload: &[],
        metadata: earlier.map_or_else(CtMetadata::default, |fields| metadata_of(fields, family)),
    };
    tracker.track(&packet, request, now)
}

/// Returns the translation to the first address and port of the range, which a trace shows.
pub(crate) fn first_translation(
    packet: &Packet<'_>,
    request: &CtRequest,
) -> Option<NatTranslation> {
    let Some(CtNat::New(range)) = request.nat else {
        return None;
    };
    let bytes = packet.frame().bytes();
    let bytes = bytes.get(packet.headers().network_at()..)?;
    let extracted = extract(bytes, family_of(packet)?, ChecksumCheck::Skip).ok()?;
    let mut header = extracted.facts.tuple.in_zone(request.zone);
    let end = match range.side {
        NatSide::Source => &mut header.src,
        NatSide::Destination => &mut header.dst,
    };
    end.address = range.addresses.map_or(end.address, |(first, _)| first);
    end.port = range.ports.map_or(end.port, |(first, _)| first);
    Some(NatTranslation {
        side: range.side,
        header,
        is_error: false,
    })
}

/// True if the packet's headers or its payload change.
#[must_use]
pub const fn is_translated(outcome: &CtOutcome) -> bool {
    outcome.translation.is_some() || outcome.rewrite.is_some() || outcome.adjust.is_some()
}

/// Writes the translation of a connection to the packet.
///
/// # Errors
/// The buffer has no space for a longer payload.
pub fn write_outcome(packet: &mut Packet<'_>, outcome: &CtOutcome) -> Result<(), DropReason> {
    if let Some(translation) = &outcome.translation {
        write_translation(packet, translation);
    }
    if let Some(adjust) = &outcome.adjust {
        packet.adjust_tcp_numbers(adjust.sequence, adjust.acknowledgment);
    }
    if let Some(rewrite) = &outcome.rewrite {
        let text = rewrite.text.as_bytes();
        let done = packet.replace_payload(rewrite.range.clone(), text);
        done.map_err(drop_reason_of)?;
    }
    Ok(())
}

/// Returns the metadata that an earlier `ct` gave the packet.
fn metadata_of(fields: &ConnectionFields, family: AddressFamily) -> CtMetadata {
    let address = |end: usize| match family {
        AddressFamily::V4 => CtAddress::from(Ipv4Addr::from_bits(fields.v4[end])),
        AddressFamily::V6 => CtAddress::from(Ipv6Addr::from_bits(fields.v6[end])),
    };
    let mut original = ConnectionKey {
        zone: CtZone(fields.zone),
        protocol: KeyProtocol(fields.protocol),
        family,
        ..ConnectionKey::default()
    };
    original.src.address = address(0);
    original.dst.address = address(1);
    if original.protocol.is_icmp() {
        let [_, kind] = fields.ports[0].to_be_bytes();
        original.src.message_type = kind;
    } else {
        [original.src.port, original.dst.port] = fields.ports;
    }
    CtMetadata {
        state: CtState(fields.state),
        zone: CtZone(fields.zone),
        mark: fields.mark,
        label: fields.label,
        original: (fields.protocol != 0).then_some(original),
    }
}

/// Returns the family of an IP packet.
pub(crate) fn family_of(packet: &Packet<'_>) -> Option<AddressFamily> {
    match packet.headers().network {
        Network::Ipv4(_) => Some(AddressFamily::V4),
        Network::Ipv6(_) => Some(AddressFamily::V6),
        _ => None,
    }
}

/// Returns the fields of a packet with this metadata.
#[must_use]
pub fn connection_fields(metadata: &CtMetadata, packet: &Packet<'_>) -> ConnectionFields {
    let mut fields = ConnectionFields {
        eth_type: packet.headers().link.eth_type.0,
        state: metadata.state.0,
        zone: metadata.zone.0,
        mark: metadata.mark,
        label: metadata.label,
        ..ConnectionFields::default()
    };
    let Some(original) = &metadata.original else {
        return fields;
    };
    let addresses = [original.src.address, original.dst.address].map(CtAddress::to_bits);
    fields.protocol = original.protocol.0;
    match original.family {
        AddressFamily::V4 => fields.v4 = addresses.map(low_u32),
        AddressFamily::V6 => fields.v6 = addresses,
    }
    fields.ports = if original.protocol.is_icmp() {
        [original.src.message_type.into(), 0]
    } else {
        [original.src.port, original.dst.port]
    };
    fields
}

/// Returns the translation that `nat` requests.
fn nat_of(nat: &NatAction) -> CtNat {
    let side = if nat.flags.contains(NatFlags::SOURCE) {
        NatSide::Source
    } else if nat.flags.contains(NatFlags::DESTINATION) {
        NatSide::Destination
    } else {
        return CtNat::Existing;
    };
    let addresses = match nat.addresses {
        NatAddresses::Unspecified => None,
        NatAddresses::V4(first, last) => {
            Some((CtAddress::from(first), last.unwrap_or(first).into()))
        }
        NatAddresses::V6(first, last) => {
            Some((CtAddress::from(first), last.unwrap_or(first).into()))
        }
    };
    CtNat::New(NatRange {
        side,
        addresses,
        ports: nat
            .ports
            .map(|(first, last)| (first, last.unwrap_or(first))),
        choice: match nat.flags.contains(NatFlags::RANDOM) {
            true => NatPortChoice::Random,
            false => NatPortChoice::Hash,
        },
        persistence: match nat.flags.contains(NatFlags::PERSISTENT) {
            true => NatPersistence::PerClient,
            false => NatPersistence::PerConnection,
        },
    })
}

/// Writes the addresses and ports of a translated packet.
fn write_translation(packet: &mut Packet<'_>, translation: &NatTranslation) {
    let header = &translation.header;
    let [src, dst] = [header.src, header.dst].map(|end| end.address.to_ip(header.family));
    if translation.is_error {
        // The quoted packet has the other direction.
        packet.set_quoted_ends(&PacketEnds {
            src: dst,
            dst: src,
            ports: [header.dst.port, header.src.port],
        });
        match translation.side {
            NatSide::Source => write_src(packet, src),
            NatSide::Destination => write_dst(packet, dst),
        }
        return;
    }
    write_src(packet, src);
    write_dst(packet, dst);
    if header.protocol.has_nat_ports() {
        packet.set_port_src(header.src.port);
        packet.set_port_dst(header.dst.port);
    } else if header.protocol.is_icmp() {
        // Both ports are the identifier.
        packet.set_icmp_identifier(header.src.port);
    }
}

fn write_src(packet: &mut Packet<'_>, address: IpAddr) {
    match address {
        IpAddr::V4(address) => packet.set_ipv4_src(address),
        IpAddr::V6(address) => packet.set_ipv6_src(address),
    }
}

fn write_dst(packet: &mut Packet<'_>, address: IpAddr) {
    match address {
        IpAddr::V4(address) => packet.set_ipv4_dst(address),
        IpAddr::V6(address) => packet.set_ipv6_dst(address),
    }
}
