//! The action `ct` (`ovs-actions(7)`, "The ct action"): facts of the packet and arguments of the
//! action go to the tracker of the bridge, and fields and translation return.
//!
//! ```text
//!   rule: ct(commit,table=5,zone=3,nat(src=..)), output:2
//!           |
//!           +-- tracker: state, mark, label, original direction; translation of the headers
//!           +-- copy with the fields of the connection --> table 5 --> action set of the copy
//!           `-- original, without fields of a connection --> output:2
//! ```
//!
//! A trace does not change connections: its packet has the states that its user gives, or is new.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use base::TableId;
use conntrack::{
    AddressFamily, AlgHelper, ChecksumCheck, ConnectionKey, Conntrack, CtAddress, CtCommit,
    CtMetadata, CtNat, CtOutcome, CtPacket, CtRequest, CtState, CtZone, KeyProtocol, MaskedWrite,
    NatPersistence, NatPortChoice, NatRange, NatSide, NatTranslation, extract,
};
use flow::field::Depth;
use flow::{
    Action, ConnectionFields, ConntrackAction, ConntrackFlags, ConntrackZone, Extension, Field,
    NatAction, NatAddresses, NatFlags,
};
use packet::{Checksum, Frame, Network, Packet, PacketEnds};

use super::actions::{drop_reason_of, low_u16, low_u32};
use super::pause::FinalActionSet;
use super::{Execution, reject_malformed};
use crate::counters::OBSERVER;
use crate::limits::{NESTING_MAX, RECURSION_MAX};
use crate::verdict::DropReason;

/// Ports of the helpers.
const FTP: u16 = 21;
const TFTP: u16 = 69;

impl Execution<'_> {
    /// Executes `ct`.
    pub(crate) fn track(
        &mut self,
        packet: &mut Packet<'_>,
        action: &ConntrackAction,
    ) -> Result<(), DropReason> {
        let pipeline = self.pipeline;
        // Rules that rely on the state of connections must not let a packet pass without it.
        let tracker = pipeline.tracker().ok_or(DropReason::NoConntrack)?;
        let request = self.request(packet, action);
        let outcome = match self.writer {
            OBSERVER => self.observed(packet, &request),
            _ => self.tracked(packet, tracker, &request),
        };
        self.translate(packet, &outcome)?;
        if let Some(table) = action.table {
            self.enter_tracked(packet, table, &outcome.metadata)?;
        }
        // Only the copy that continues in the table has the fields of the connection.
        self.clear_connection();
        Ok(())
    }

    /// Makes the packet one that is not tracked (`ct_clear`).
    pub(crate) fn clear_connection(&mut self) {
        if self.registers.connection.take().is_some() {
            self.key_is_stale = true;
        }
    }

    /// Returns the arguments of the action for this packet.
    fn request(&mut self, packet: &Packet<'_>, action: &ConntrackAction) -> CtRequest {
        let zone = match action.zone {
            ConntrackZone::Number(zone) => zone,
            ConntrackZone::Subfield(part) => low_u16(self.part(packet, part)),
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
                write => self.add_write(packet, write, &mut request),
            }
        }
        request
    }

    /// Adds a write of `ct_mark` or `ct_label`.
    fn add_write(&mut self, packet: &Packet<'_>, write: &Action, request: &mut CtRequest) {
        let (field, value, mask) = match write {
            Action::SetField { field, value, mask } => (*field, *value, *mask),
            Action::Extended(Extension::Load { to, value }) => {
                (to.field(), to.place((*value).into()), to.mask())
            }
            Action::Extended(Extension::Move { from, to }) => {
                let bits = self.part(packet, *from);
                (to.field(), to.place(bits), to.mask())
            }
            Action::Extended(Extension::Pop(to)) => {
                let Some(bits) = self.stack.pop() else {
                    self.trace.on_stack_underflow();
                    return;
                };
                (to.field(), to.place(bits.low()), to.mask())
            }
            // The check permits no others.
            _ => return,
        };
        match field {
            Field::CtMark => {
                let before = request.mark.unwrap_or_default();
                let mask = low_u32(mask);
                request.mark = Some(MaskedWrite {
                    value: before.value & !mask | low_u32(value) & mask,
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

    /// Tracks the packet.
    fn tracked(
        &mut self,
        packet: &Packet<'_>,
        tracker: &Arc<Conntrack>,
        request: &CtRequest,
    ) -> CtOutcome {
        let frame = packet.frame();
        let check = match frame.offload.checksum {
            Checksum::Complete if frame.offload.segmentation.is_none() => ChecksumCheck::Verify,
            _ => ChecksumCheck::Skip,
        };
        let bytes = frame.bytes();
        let bytes = bytes.get(packet.headers().network_at()..).unwrap_or(&[]);
        let extracted = family_of(packet).and_then(|family| extract(bytes, family, check).ok());
        let metadata = self.metadata(packet);
        let packet = CtPacket {
            facts: extracted.map(|extracted| extracted.facts),
            payload: extracted.map_or(&[], |extracted| extracted.payload),
            metadata,
        };
        tracker.track(&packet, request, self.now)
    }

    /// Returns the fields of a trace's packet: the states that the trace has, and the zone.
    fn observed(&mut self, packet: &Packet<'_>, request: &CtRequest) -> CtOutcome {
        let state = self.trace.next_connection_state();
        let is_ip = family_of(packet).is_some();
        let state = match state {
            Some(state) => CtState(state),
            None if is_ip => CtState::TRACKED.with(CtState::NEW),
            None => CtState::TRACKED.with(CtState::INVALID),
        };
        CtOutcome {
            metadata: CtMetadata {
                state,
                zone: request.zone,
                ..CtMetadata::default()
            },
            ..CtOutcome::default()
        }
    }

    /// Returns the fields that an earlier `ct` gave the packet.
    fn metadata(&self, packet: &Packet<'_>) -> CtMetadata {
        let Some(fields) = self.registers.connection.as_deref() else {
            return CtMetadata::default();
        };
        let family = family_of(packet).unwrap_or_default();
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
            let [.., kind] = fields.ports[0].to_be_bytes();
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

    /// Writes the translation of a connection to the packet.
    fn translate(
        &mut self,
        packet: &mut Packet<'_>,
        outcome: &CtOutcome,
    ) -> Result<(), DropReason> {
        let CtOutcome {
            translation,
            rewrite,
            adjust,
            ..
        } = outcome;
        if translation.is_none() && rewrite.is_none() && adjust.is_none() {
            return Ok(());
        }
        self.preserve_state(packet)?;
        self.mark_modified();
        if let Some(translation) = translation {
            write_translation(packet, translation);
        }
        if let Some(adjust) = adjust {
            packet.adjust_tcp_numbers(adjust.sequence, adjust.acknowledgment);
        }
        if let Some(rewrite) = rewrite {
            let text = rewrite.text.as_bytes();
            let done = packet.replace_payload(rewrite.range.clone(), text);
            done.map_err(drop_reason_of)?;
        }
        Ok(())
    }

    /// Runs a copy of the packet with the fields of its connection through the tables from `table`.
    fn enter_tracked(
        &mut self,
        packet: &Packet<'_>,
        table: TableId,
        metadata: &CtMetadata,
    ) -> Result<(), DropReason> {
        let backward = usize::from(table <= self.table);
        if self.recursion + backward > RECURSION_MAX || self.nesting >= NESTING_MAX {
            return Err(DropReason::RecursionTooDeep);
        }
        self.count_lookup()?;
        self.preserve_state(packet)?;
        let copy = self.pool.duplicate(packet.frame());
        let mut copy = copy.ok_or(DropReason::NoBuffer)?;
        let (set, stack) = (self.set.clone(), self.stack.clone());
        let (from, registers, priority) = (self.in_port, self.registers.clone(), self.priority);
        let (rule, depth) = ((self.table, self.rule, self.cookie, self.cause), self.depth);
        self.table = table;
        self.recursion += backward;
        self.nesting += 1;
        self.registers.connection = Some(Box::new(fields_of(metadata)));
        self.mark_modified();
        self.trace.on_copy(&[]);
        self.trace.on_tracked(table, metadata.state.0);
        let done = self.run_tracked(packet, &mut copy);
        self.finish_pause(FinalActionSet::Executed);
        self.trace.on_copy_end();
        self.finish_frame(copy);
        self.recursion -= backward;
        self.nesting -= 1;
        ((self.table, self.rule, self.cookie, self.cause), self.depth) = (rule, depth);
        (*self.set, *self.stack) = (set, stack);
        (self.in_port, self.registers, self.priority) = (from, registers, priority);
        self.exited = false;
        self.mark_modified();
        self.contain_drop(done, DropReason::drops_all)
    }

    fn run_tracked(&mut self, packet: &Packet<'_>, copy: &mut Frame) -> Result<(), DropReason> {
        reject_malformed(packet)?;
        self.depth = self.pipeline.depth().max(Depth::Transport);
        let mut copied = Packet::parse(copy, self.depth).map_err(DropReason::Malformed)?;
        let found = self.look_up_onward(&copied);
        if self.run_rules(&mut copied, found)? {
            self.execute_set(&mut copied)
        } else {
            self.handle_miss()
        }
    }
}

/// Returns the family of an IP packet.
fn family_of(packet: &Packet<'_>) -> Option<AddressFamily> {
    match packet.headers().network {
        Network::Ipv4(_) => Some(AddressFamily::V4),
        Network::Ipv6(_) => Some(AddressFamily::V6),
        _ => None,
    }
}

/// Returns the fields of a packet with this metadata.
fn fields_of(metadata: &CtMetadata) -> ConnectionFields {
    let mut fields = ConnectionFields {
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
