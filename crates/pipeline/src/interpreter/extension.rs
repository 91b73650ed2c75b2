//! The effect of each Nicira action on a packet (`ovs-actions(7)`).

use base::{MeterId, PortNo, Priority, TableId};
use flow::field::widen;
use flow::{
    BundleAction, ControllerAction, Extension, Field, MaxLen, Multipath, SampleAction, SampleId,
    Subfield, Wide,
};
use packet::{Checksum, Offload, Packet};

use super::actions::{low_u16, low_u64};
use super::hash_select;
use super::{Execution, reject_malformed};
use crate::limits::{NESTING_MAX, RECURSION_MAX, RESUBMITS_MAX, STACK_MAX};
use crate::rules::Rule;
use crate::verdict::{Cause, Destination, DropReason};

/// Addresses, ports and protocol of the lookup of a resubmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LookupTuple {
    /// Those of the packet.
    Packet,
    /// Those of the original direction of its connection.
    OriginalDirection,
}

impl<'a> Execution<'a> {
    /// Executes a Nicira action.
    pub(crate) fn extend(
        &mut self,
        packet: &mut Packet<'_>,
        extension: &Extension,
    ) -> Result<(), DropReason> {
        match extension {
            Extension::Resubmit { port, table } => {
                return self.resubmit(packet, (*port, *table), LookupTuple::Packet);
            }
            Extension::ResubmitConnection { port, table } => {
                return self.resubmit(packet, (*port, *table), LookupTuple::OriginalDirection);
            }
            Extension::Load { to, value } => {
                return self.set_part(packet, *to, u128::from(*value));
            }
            Extension::Move { from, to } => return self.move_part(packet, *from, *to),
            Extension::Push(from) => return self.push(packet, *from),
            Extension::Pop(to) => return self.pop(packet, *to),
            Extension::OutputReg { from, max_len } => {
                let port = low_u64(self.part(packet, *from));
                return self.output_number(packet, port, *max_len);
            }
            Extension::OutputTruncated { port, max_len } => {
                return self.output_truncated(packet, *port, *max_len);
            }
            Extension::Controller(told) => self.execute_controller(told),
            Extension::DecTtl(ids) => return self.dec_ttl_telling(packet, ids),
            Extension::Exit => self.exited = true,
            Extension::Clone(actions) => return self.on_copy(packet, actions),
            Extension::Multipath(multipath) => return self.multipath(packet, multipath),
            Extension::Bundle(bundle) => return self.bundle(packet, bundle),
            Extension::CheckPacketLarger { bytes, to } => {
                let larger = longest_segment(packet) > usize::from(*bytes);
                return self.set_part(packet, *to, u128::from(larger));
            }
            Extension::Learn(learn) => return self.learn(packet, learn),
            Extension::FinTimeout { idle_s, hard_s } => {
                self.request_shorter_timeouts(packet, *idle_s, *hard_s)
            }
            Extension::Encap(encap) => return self.encap(packet, encap),
            Extension::Decap { left } => return self.decap(packet, *left),
            Extension::SetOption(term) => self.set_option(term.field, term.value, term.mask),
            Extension::DeleteField(field) => self.delete_option(*field),
            Extension::DecNshTtl => {
                self.preserve_state(packet)?;
                self.mark_modified();
                return self.handle_ttl_result(packet.dec_nsh_ttl());
            }
            Extension::Sample(sample) => self.sample(packet, *sample),
            Extension::PopQueue => self.priority = Priority::NONE,
            Extension::Conntrack(action) => return self.track(packet, action),
            Extension::ConntrackClear => self.untrack(),
            // Conjunctions are evaluated by the lookup; notes have no effect; `nat` is an argument
            // of `ct`; the packet is already in the slow path.
            Extension::Conjunction { .. }
            | Extension::Note(_)
            | Extension::Nat(_)
            | Extension::DebugSlow => {}
            Extension::DebugRecirc => self.recirculate(),
        }
        Ok(())
    }

    /// Copies a subfield to another; a missing source header reads as zero.
    fn move_part(
        &mut self,
        packet: &mut Packet<'_>,
        from: Subfield,
        to: Subfield,
    ) -> Result<(), DropReason> {
        if from.is_tunnel_option() {
            let bits = self.wide_part(packet, from);
            return self.set_wide_part(packet, to, bits);
        }
        let bits = self.part(packet, from);
        self.set_part(packet, to, bits)
    }

    /// Sends a sample to the collectors, with the values of the fields that it names.
    fn sample(&mut self, packet: &Packet<'_>, sample: SampleAction) {
        let sample = sample.with_sources(|part| {
            let bits = self.part(packet, part);
            SampleId::Number(u32::try_from(bits).unwrap_or_default())
        });
        self.record_output(Destination::Collectors(Box::new(sample)));
    }

    /// Returns the bits of a subfield; zero if the header is missing.
    pub(crate) fn part(&mut self, packet: &Packet<'_>, part: Subfield) -> u128 {
        match part.is_tunnel_option() {
            true => part.wide_of(self.option(part.field())).low(),
            false => part.of(self.field(packet, part.field()).unwrap_or(0)),
        }
    }

    /// Returns the bits of a subfield of any width.
    pub(crate) fn wide_part(&mut self, packet: &Packet<'_>, part: Subfield) -> Wide {
        match part.is_tunnel_option() {
            true => part.wide_of(self.option(part.field())),
            false => self.part(packet, part).into(),
        }
    }

    /// Writes the lower bits of `bits` to a subfield.
    fn set_wide_part(
        &mut self,
        packet: &mut Packet<'_>,
        to: Subfield,
        bits: Wide,
    ) -> Result<(), DropReason> {
        if to.is_tunnel_option() {
            self.set_option(to.field(), to.wide_place(bits), to.wide_mask());
            return Ok(());
        }
        self.set_part(packet, to, bits.low() & to.ones())
    }

    pub(crate) fn set_part(
        &mut self,
        packet: &mut Packet<'_>,
        to: Subfield,
        bits: u128,
    ) -> Result<(), DropReason> {
        if to.is_tunnel_option() {
            return self.set_wide_part(packet, to, bits.into());
        }
        self.set_field(packet, to.field(), to.place(bits), to.mask())
    }

    fn push(&mut self, packet: &Packet<'_>, from: Subfield) -> Result<(), DropReason> {
        if self.stack.len() >= STACK_MAX {
            return Err(DropReason::StackTooDeep);
        }
        let bits = self.wide_part(packet, from);
        self.stack.push(bits);
        Ok(())
    }

    /// Moves the top of the stack to a subfield. From an empty stack, the field keeps its value.
    fn pop(&mut self, packet: &mut Packet<'_>, to: Subfield) -> Result<(), DropReason> {
        match self.stack.pop() {
            Some(bits) => self.set_wide_part(packet, to, bits),
            None => {
                self.trace.on_stack_underflow();
                Ok(())
            }
        }
    }

    /// Looks the packet up again and executes the rule. Only the lookup sees the other port;
    /// outputs and `IN_PORT` refer to the real one.
    fn resubmit(
        &mut self,
        packet: &mut Packet<'_>,
        (port, table): (PortNo, Option<TableId>),
        tuple: LookupTuple,
    ) -> Result<(), DropReason> {
        let to = table.unwrap_or(self.table);
        let backward = usize::from(to <= self.table);
        if self.recursion + backward > RECURSION_MAX || self.nesting >= NESTING_MAX {
            return Err(DropReason::RecursionTooDeep);
        }
        let place = (self.table, self.rule, self.cookie, self.cause);
        self.table = to;
        self.recursion += backward;
        self.nesting += 1;
        let result = self.enter(packet, port, tuple);
        (self.table, self.rule, self.cookie, self.cause) = place;
        self.recursion -= backward;
        self.nesting -= 1;
        match result {
            // Ends the resubmission, and no more (`ovs-actions(7)`, dec_ttl).
            Err(DropReason::InvalidTtl) => self.drop(DropReason::InvalidTtl),
            Err(reason) => return Err(reason),
            // A miss in a resubmission is not reported.
            Ok(_) => {}
        }
        Ok(())
    }

    fn enter(
        &mut self,
        packet: &mut Packet<'_>,
        port: PortNo,
        tuple: LookupTuple,
    ) -> Result<bool, DropReason> {
        self.count_lookup()?;
        reject_malformed(packet)?;
        let found = self.look_up_as_from(packet, (port, tuple));
        self.run_rules(packet, found)
    }

    /// Looks the packet up in the current table as if it had arrived by `port`.
    pub(crate) fn look_up_as_from(
        &mut self,
        packet: &Packet<'_>,
        (port, tuple): (PortNo, LookupTuple),
    ) -> Option<&'a Rule> {
        let from = self.in_port;
        if port != PortNo::IN_PORT {
            self.set_register(Field::InPort, port.0.into());
        }
        let found = match tuple {
            LookupTuple::Packet => self.look_up(packet),
            LookupTuple::OriginalDirection => self.look_up_connection(packet),
        };
        if port != PortNo::IN_PORT {
            self.set_register(Field::InPort, from.0.into());
        }
        found
    }

    /// Counts a lookup beyond the first, up to the limit.
    pub(crate) fn count_lookup(&mut self) -> Result<(), DropReason> {
        self.resubmits += 1;
        if self.resubmits > RESUBMITS_MAX {
            return Err(DropReason::TooManyResubmits);
        }
        Ok(())
    }

    /// Outputs the packet to the port with this number of 16 or 32 bits.
    fn output_number(
        &mut self,
        packet: &Packet<'_>,
        number: u64,
        max_len: MaxLen,
    ) -> Result<(), DropReason> {
        let port = match (u16::try_from(number), u32::try_from(number)) {
            (Ok(narrow), _) => PortNo(widen(narrow)),
            (_, Ok(wide)) => PortNo(wide),
            _ => PortNo::ANY,
        };
        match port {
            // No rule may name these ports, and so no register may.
            PortNo::TABLE | PortNo::ANY | PortNo::UNSET => {
                self.drop(DropReason::OutputNoPort);
                Ok(())
            }
            port => self.output(packet, port, max_len),
        }
    }

    /// Outputs the beginning of the packet. Pending offloads are completed first, since a part of a
    /// segment has no valid checksum.
    fn output_truncated(
        &mut self,
        packet: &Packet<'_>,
        port: PortNo,
        max_len: u32,
    ) -> Result<(), DropReason> {
        let max_len = usize::try_from(max_len).unwrap_or(usize::MAX);
        if packet.frame().len() <= max_len {
            return self.output(packet, port, MaxLen::WHOLE);
        }
        self.preserve_state(packet)?;
        let copy = self.pool.duplicate(packet.frame());
        let mut copy = copy.ok_or(DropReason::NoBuffer)?;
        if matches!(copy.offload.checksum, Checksum::Partial { .. }) {
            copy.complete_checksum();
        }
        copy.offload = Offload::default();
        copy.truncate(max_len);
        let result = self.output(packet, port, MaxLen::WHOLE);
        self.finish_frame(copy);
        result
    }

    /// Sends the packet to the controllers with one id, and pauses it there if the action says so.
    fn execute_controller(&mut self, told: &ControllerAction) {
        let meter = told.meter.unwrap_or(MeterId::CONTROLLER);
        let mut meta = self.packet_in(Some(told.max_len));
        meta.cause = Cause::Explicit(told.reason);
        meta.controller = told.controller;
        meta.userdata.clone_from(&told.userdata);
        match self.check_meter(meter) {
            Ok(()) if told.pause => self.begin_pause(meta),
            Ok(()) => self.record_output(Destination::Controller(meta)),
            // A dropped packet-in also ends the pause.
            Err(reason) => {
                self.exited |= told.pause;
                self.drop(reason);
            }
        }
    }

    fn dec_ttl_telling(&mut self, packet: &mut Packet<'_>, ids: &[u16]) -> Result<(), DropReason> {
        self.preserve_state(packet)?;
        self.mark_modified();
        match packet.dec_ip_ttl() {
            Ok(()) => Ok(()),
            Err(_) => Err(self.handle_expired_ttl_for(ids)),
        }
    }

    fn multipath(
        &mut self,
        packet: &mut Packet<'_>,
        multipath: &Multipath,
    ) -> Result<(), DropReason> {
        let hash = self.hash(packet, multipath.fields, multipath.basis);
        let link = hash_select::select_link(hash, multipath);
        self.set_part(packet, multipath.to, u128::from(link))
    }

    fn bundle(&mut self, packet: &mut Packet<'_>, bundle: &BundleAction) -> Result<(), DropReason> {
        let hash = self.hash(packet, bundle.fields, bundle.basis);
        let pipeline = self.pipeline;
        let is_up = |port: PortNo| {
            pipeline
                .port(port)
                .is_some_and(|view| view.forwards() && view.is_live())
        };
        let chosen = hash_select::select_member(hash, bundle, is_up);
        match (bundle.to, chosen) {
            (Some(to), chosen) => {
                let port = chosen.unwrap_or(PortNo::ANY);
                self.set_part(packet, to, u128::from(low_u16(port.0.into())))
            }
            (None, Some(port)) => self.output(packet, port, MaxLen::WHOLE),
            (None, None) => {
                self.drop(DropReason::OutputClosed);
                Ok(())
            }
        }
    }

    fn hash(&mut self, packet: &Packet<'_>, fields: flow::HashFields, basis: u16) -> u64 {
        hash_select::hash_fields(fields, basis, |field| {
            self.field(packet, field).unwrap_or(0)
        })
    }
}

/// Returns the length of the longest frame that this packet becomes on the wire.
fn longest_segment(packet: &Packet<'_>) -> usize {
    let frame = packet.frame();
    let segments = frame.wire_frames();
    match frame.offload.segmentation {
        Some(cut) if segments > 1 => {
            let payload = usize::from(cut.size);
            let all = usize::try_from(frame.wire_bytes()).unwrap_or(usize::MAX);
            // All headers, once for each segment, and the payload.
            let headers = frame
                .len()
                .abs_diff(all)
                .checked_div(usize::try_from(segments - 1).unwrap_or(usize::MAX));
            headers.unwrap_or(0) + payload
        }
        _ => frame.len(),
    }
}
