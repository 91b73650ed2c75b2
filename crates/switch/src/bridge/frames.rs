//! Frames between a bridge and its controllers: packet-outs and packet-ins.

use base::{Instant, PortNo};
use fastpath::{LookupScratch, ViewLookup};
use flow::{MaxLen, PacketIn, PacketOut, Refusal, Resume};
use openflow::continuation;
use packet::wire::ethernet;
use packet::{Frame, Link, Pool};
use pipeline::{
    Destination, DropReason, Egress, Interpreter, LookupTables, PacketInMeta, PausedPacket,
    Pipeline, Verdict,
};

use super::bridge_tables::BridgeTables;
use super::{Bridge, Effect};
use dataplane::bonds::EgressFrame;
use dataplane::mirrors::{MirrorDirection, MirrorSet};
use dataplane::normal::NormalContext;
use dataplane::vlans::TagRewrite;

/// Buffers for frames that the control thread sends: a packet-out makes at most one copy of its
/// frame for each port.
const PACKET_OUT_BUFFERS: usize = 1024;

/// Free buffers that remain allocated after a packet-out: those of most packet-outs.
const SPARE_BUFFERS: usize = 64;

/// Maximum number of bytes of all copies that one packet-out makes, the memory of the copies
/// themselves included: a flood of the longest frame to 125 ports, or of a jumbo frame to 800. Other
/// bridges wait while the control thread makes the copies.
const COPIES_MAX: usize = 8 << 20;

/// Bytes of memory that a copy takes beside those of its frame: headroom, pipeline fields, and its
/// entry in the list of effects.
const COPY_OVERHEAD: usize = 512;

/// The bytes of copies that a packet-out may still make.
struct CopyBudget(usize);

impl CopyBudget {
    /// Charges a copy of the frame. Returns false if the budget is exhausted, for good.
    fn admits(&mut self, frame: &Frame) -> bool {
        let left = self.0.checked_sub(frame.len() + COPY_OVERHEAD);
        self.0 = left.unwrap_or(0);
        left.is_some()
    }
}

/// The interpreter of the control thread, and its memory.
pub(super) struct PacketOutExecutor {
    interpreter: Interpreter,
    scratch: LookupScratch,
    pool: Pool,
    verdict: Verdict,
    /// Packet-outs that exceeded a budget.
    limited: u64,
}

impl PacketOutExecutor {
    /// Returns an executor; `writer` is the index of the control thread among the threads that
    /// count in the tables.
    pub(super) fn new(writer: usize) -> Self {
        Self {
            interpreter: Interpreter::new(writer),
            scratch: LookupScratch::new(),
            pool: Pool::new(PACKET_OUT_BUFFERS),
            verdict: Verdict::default(),
            limited: 0,
        }
    }

    /// Runs a packet-out through the tables, or through earlier ones.
    fn packet_out(
        &mut self,
        (tables, earlier): (&BridgeTables, Option<&Pipeline>),
        message: &PacketOut,
        now: Instant,
    ) -> Verdict {
        let mut verdict = std::mem::take(&mut self.verdict);
        let compiled = tables.compiled.current();
        let lookup = compiled.as_ref();
        let lookup = lookup.map(|view| ViewLookup::new(view, &self.scratch));
        let tables = match earlier {
            Some(earlier) => LookupTables::from(earlier),
            None => lookup_tables(&tables.pipeline, lookup.as_ref()),
        };
        let (pool, quiet) = (&mut self.pool, &mut ());
        self.interpreter
            .packet_out(tables, message, now, pool, quiet, &mut verdict);
        verdict
    }

    /// Runs the remaining actions of a paused packet.
    fn resume(&mut self, tables: &BridgeTables, waiting: PausedPacket<'_>) -> Verdict {
        let mut verdict = std::mem::take(&mut self.verdict);
        let compiled = tables.compiled.current();
        let lookup = compiled.as_ref();
        let lookup = lookup.map(|view| ViewLookup::new(view, &self.scratch));
        let tables = lookup_tables(&tables.pipeline, lookup.as_ref());
        let (pool, quiet) = (&mut self.pool, &mut ());
        self.interpreter
            .resume_paused(tables, waiting, pool, quiet, &mut verdict);
        verdict
    }

    /// Keeps the memory of a verdict whose effects are done.
    fn recycle(&mut self, mut verdict: Verdict) {
        for frame in verdict.frames.drain(..) {
            self.pool.put(frame);
        }
        self.pool.shrink(SPARE_BUFFERS);
        self.verdict = verdict;
    }
}

/// Returns true if a packet was dropped because it exceeds a budget of its actions.
fn exceeds_budget(verdict: &Verdict) -> bool {
    let is_budget = |drop: &DropReason| {
        matches!(
            drop,
            DropReason::TooManyOutputs | DropReason::TooManyActions
        )
    };
    verdict.drops.iter().any(is_budget)
}

impl Bridge {
    /// Runs a packet-out through the interpreter and turns the verdict into effects.
    pub(super) fn send_out(
        &mut self,
        message: &PacketOut,
        now: Instant,
        effects: &mut Vec<Effect>,
    ) {
        self.send_out_through(message, None, now, effects);
    }

    /// Does the same, but through earlier tables if there are some.
    pub(super) fn send_out_through(
        &mut self,
        message: &PacketOut,
        earlier: Option<&Pipeline>,
        now: Instant,
        effects: &mut Vec<Effect>,
    ) {
        let from = message.registers.in_port;
        if self.is_mirror_output(from) {
            return;
        }
        let mut copied = MirrorSet::default();
        if self.normal.mirrors.is_some() && message.registers.packet_type.is_ethernet() {
            let frame = Frame::from_bytes(&message.data);
            self.mirror(
                &frame,
                (from, (from, MirrorDirection::In)),
                &mut copied,
                effects,
            );
        }
        let mut verdict = self
            .executor
            .packet_out((&self.tables, earlier), message, now);
        self.apply_verdict(&mut verdict, (from, copied), now, effects);
        self.executor.recycle(verdict);
    }

    /// Resumes a paused packet, if the continuation is valid.
    pub(super) fn resume(
        &mut self,
        message: &Resume,
        now: Instant,
        effects: &mut Vec<Effect>,
    ) -> Result<(), Refusal> {
        let of = self.identity.datapath_id;
        let continuation = continuation::decode(&message.continuation, of)?;
        self.tables.pipeline.check_resume(message, &continuation)?;
        let waiting = PausedPacket {
            data: &message.data,
            registers: message.registers.clone(),
            continuation: &continuation,
            now,
        };
        let mut verdict = self.executor.resume(&self.tables, waiting);
        let from = message.registers.in_port;
        let copied = MirrorSet::from_bits(continuation.mirrors);
        self.apply_verdict(&mut verdict, (from, copied), now, effects);
        self.executor.recycle(verdict);
        Ok(())
    }

    fn apply_verdict(
        &mut self,
        verdict: &mut Verdict,
        (from, mut copied): (PortNo, MirrorSet),
        now: Instant,
        effects: &mut Vec<Effect>,
    ) {
        for learned in verdict.learn_requests.drain(..) {
            self.handle_learned(&learned, now);
        }
        let mut budget = CopyBudget(COPIES_MAX);
        let mut is_limited = exceeds_budget(verdict);
        for egress in verdict.egress.drain(..) {
            let frame = &verdict.frames[egress.frame];
            if !budget.admits(frame) {
                is_limited = true;
                break;
            }
            match egress.to {
                Destination::Port(port) => {
                    self.mirror(
                        frame,
                        (from, (port, MirrorDirection::Out)),
                        &mut copied,
                        effects,
                    );
                    let mut leaving = frame.clone();
                    leaving.priority = egress.priority;
                    effects.push(Effect::Transmit(port, leaving, egress.registers));
                }
                Destination::Normal => {
                    let leaving = (frame, &egress);
                    self.send_normal(leaving, (from, &mut copied), &mut budget, now, effects);
                }
                Destination::Collectors(sample) => {
                    self.sample_by_rule(*sample, from, frame, now, effects);
                }
                Destination::Controller(mut meta) => {
                    if let Some(continuation) = &mut meta.continuation {
                        continuation.mirrors = copied.bits();
                    }
                    self.handle_packet_in(*meta, frame.bytes().to_vec(), now, effects);
                }
            }
        }
        if is_limited {
            self.record_limited_packet_out();
        }
    }

    /// Sends a frame by `NORMAL`, as far as the budget of copies permits.
    fn send_normal(
        &mut self,
        (frame, egress): (&Frame, &Egress),
        (from, copied): (PortNo, &mut MirrorSet),
        budget: &mut CopyBudget,
        now: Instant,
        effects: &mut Vec<Effect>,
    ) {
        for (port, retag) in self.normal_exits(frame, from, now) {
            // The next output finds the budget exhausted and is counted.
            if !budget.admits(frame) {
                return;
            }
            let mut leaving = frame.clone();
            leaving.priority = egress.priority;
            if retag.change(&mut leaving) {
                self.mirror(
                    &leaving,
                    (from, (port, MirrorDirection::Out)),
                    copied,
                    effects,
                );
                let words = egress.registers.clone();
                effects.push(Effect::Transmit(port, leaving, words));
            }
        }
    }

    /// Counts a packet-out that exceeds a budget, and logs each doubling of their number.
    fn record_limited_packet_out(&mut self) {
        self.executor.limited += 1;
        let (bridge, limited) = (self.name(), self.executor.limited);
        if limited.is_power_of_two() {
            tracing::warn!(
                bridge,
                limited,
                "packet-out exceeds the budget of outputs, actions or bytes"
            );
        }
    }

    /// Returns the number of packet-outs that were sent in part or not at all, because they exceed
    /// a budget.
    #[must_use]
    pub const fn packet_outs_limited(&self) -> u64 {
        self.executor.limited
    }

    fn normal_exits(
        &mut self,
        frame: &Frame,
        from: PortNo,
        now: Instant,
    ) -> Vec<(PortNo, TagRewrite)> {
        let Ok(link) = Link::parse(frame.bytes()) else {
            return Vec::new();
        };
        let fdb = self.normal.fdb.view();
        let multicast = self.multicast_view();
        let context = NormalContext {
            fdb: &fdb,
            multicast: multicast.as_ref(),
            switching: self.normal.switching.as_deref(),
            mirrors: self.normal.mirrors.as_deref(),
        };
        let decision = context.decide((&link, frame.bytes()), from, now);
        let leaving = EgressFrame {
            frame,
            link: &link,
            within: decision.within,
            writer: Some(self.protocols.bonds.writer()),
        };
        let exits = context.exits(&self.tables.pipeline, leaving, from, decision.forward);
        if let Some(address) = decision.learn {
            self.handle_address(address, from, now);
        }
        if decision.is_membership {
            self.handle_membership((from, decision.within.vid), frame.bytes(), now);
        }
        exits
    }

    /// Sends a packet-in to the controllers. The switch buffers no frames, so the message carries
    /// the whole frame (OF 1.3.5, 6.1.2), unless zero bytes were requested.
    pub fn handle_packet_in(
        &mut self,
        meta: PacketInMeta,
        mut data: Vec<u8>,
        now: Instant,
        effects: &mut Vec<Effect>,
    ) {
        if !meta.registers.packet_type.is_ethernet() {
            // A bare packet is stored behind an Ethernet header that is not part of it.
            data.drain(..ethernet::LEN.min(data.len()));
        }
        let total_len = u16::try_from(data.len()).unwrap_or(u16::MAX);
        // A paused packet has to return whole.
        if meta.max_len == Some(MaxLen(0)) && meta.continuation.is_none() {
            data.clear();
        }
        let continuation = meta.continuation.as_ref();
        let continuation =
            continuation.and_then(|left| continuation::encode(left, self.identity.datapath_id));
        let message = PacketIn {
            reason: meta.cause.reason(),
            table: meta.table,
            cookie: meta.cookie,
            registers: meta.registers,
            total_len,
            data,
            userdata: meta.userdata,
            continuation: continuation.unwrap_or_default(),
        };
        self.send_packet_in(message, (meta.cause, meta.controller), now, effects);
    }
}

/// Returns the tables with the compiled lookup, if a view is readable.
fn lookup_tables<'a>(
    pipeline: &'a Pipeline,
    lookup: Option<&'a ViewLookup<'a>>,
) -> LookupTables<'a> {
    match lookup {
        Some(lookup) => LookupTables { pipeline, lookup },
        None => pipeline.into(),
    }
}
