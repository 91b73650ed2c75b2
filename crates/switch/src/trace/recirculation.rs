//! Recirculations: a data path of Open vSwitch ends its actions with `recirc(ID)` where a packet must
//! be matched again, and a flow with `recirc_id(ID)` continues it. This switch executes all actions
//! in one pass; a trace shows `debug_recirc` as such a data path would execute it.

use base::{Instant, PortNo};
use flow::{Continuation, PipelineFields};
use packet::Frame;
use pipeline::{Destination, PausedPacket, Verdict};

use super::actions::ActionRecorder;
use super::{TraceOutput, TraceSideEffect, TraceVisit, Tracer};
use dataplane::mirrors::MirrorSet;
use dataplane::program::BridgeId;

/// A packet whose trace has ended with a recirculation.
pub struct FrozenPacket {
    id: u32,
    bridge: BridgeId,
    from: PortNo,
    registers: PipelineFields,
    continuation: Continuation,
    copied: MirrorSet,
    /// The frame, if the packet was tracked; its trace continues at once.
    frame: Option<Frame>,
}

impl FrozenPacket {
    /// The frame of a packet that was tracked.
    pub(super) const fn tracked_frame(&self) -> Option<&Frame> {
        self.frame.as_ref()
    }

    /// Returns the heading of the part of a trace that continues a tracked packet.
    pub(super) fn heading(&self) -> String {
        let state = self
            .registers
            .connection
            .as_deref()
            .map(|fields| fields.state);
        match (&self.frame, state) {
            (Some(_), Some(state)) => super::conntrack::heading(self.id, state),
            _ => String::new(),
        }
    }

    /// The id of the recirculation.
    #[must_use]
    pub const fn id(&self) -> u32 {
        self.id
    }

    /// The bridge, and the ingress port there.
    #[must_use]
    pub const fn ingress(&self) -> (BridgeId, PortNo) {
        (self.bridge, self.from)
    }

    /// Returns the pipeline fields of the packet. Those of the received frame are printed.
    pub(super) fn registers_of(
        frozen: Option<&Self>,
        received: PipelineFields,
        recorder: &mut ActionRecorder<'_>,
    ) -> PipelineFields {
        let Some(frozen) = frozen else {
            return received;
        };
        recorder.print_arrival(received);
        frozen.registers.clone()
    }

    /// Returns the text of a run, with the id of the packet in its flows.
    pub(super) fn text_of(frozen: Option<&Self>, text: &str) -> String {
        frozen.map_or_else(|| text.to_owned(), |frozen| frozen.with_id(text))
    }

    /// The mirrors that have a copy.
    pub(super) const fn copied(&self) -> MirrorSet {
        self.copied
    }

    /// Returns the rest of the processing for this frame.
    pub(super) fn packet<'a>(&'a self, frame: &'a Frame, now: Instant) -> PausedPacket<'a> {
        PausedPacket {
            data: frame.bytes(),
            registers: self.registers.clone(),
            continuation: &self.continuation,
            now,
        }
    }

    fn with_id(&self, text: &str) -> String {
        let mut all = String::new();
        for line in text.split_inclusive('\n') {
            let flow = ["Flow: ", "Final flow: "]
                .into_iter()
                .find_map(|head| Some((head, line.strip_prefix(head)?)));
            match flow {
                Some((head, flow)) if !flow.starts_with("unchanged") => {
                    let is_of_connection = |item: &&str| item.starts_with("ct_");
                    let items = flow.split_inclusive(',').take_while(is_of_connection);
                    let (connection, rest) = flow.split_at(items.map(str::len).sum());
                    all += &format!("{head}recirc_id={:#x},{connection}eth,{rest}", self.id);
                }
                _ => all += line,
            }
        }
        all
    }
}

impl Tracer {
    /// Adds the recirculation of a packet. The verdict's output with this number has the
    /// continuation.
    pub(super) fn freeze(
        &self,
        verdict: &Verdict,
        index: usize,
        visit: &TraceVisit,
        output: &mut TraceOutput,
    ) {
        let Some(egress) = verdict.egress.get(index) else {
            return;
        };
        let (Destination::Controller(meta), Some(frame)) =
            (&egress.to, verdict.frames.get(egress.frame))
        else {
            return;
        };
        output.commit(frame, Some(&meta.registers));
        let id = self
            .next_recirculation
            .saturating_add(output.recirculations);
        output.recirculations += 1;
        output.add(format!("recirc({id:#x})"));
        let frozen = FrozenPacket {
            id,
            bridge: visit.bridge,
            from: visit.from,
            registers: meta.registers.clone(),
            continuation: meta.continuation.clone().unwrap_or_default(),
            copied: visit.copied,
            frame: meta.registers.connection.is_some().then(|| frame.clone()),
        };
        let effect = TraceSideEffect::Frozen(frozen.into());
        output.side_effects.push((visit.bridge, effect));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_of_frozen_packet_have_its_id() {
        let frozen = FrozenPacket {
            id: 1,
            bridge: BridgeId(0),
            from: PortNo(1),
            registers: PipelineFields::new(PortNo(1)),
            continuation: Continuation::default(),
            copied: MirrorSet::default(),
            frame: None,
        };
        let text = "Flow: arp,in_port=1\n\n 0. arp\n    output:2\n\nFinal flow: unchanged\n";
        let expected = text.replace("Flow: arp", "Flow: recirc_id=0x1,eth,arp");
        assert_eq!(frozen.with_id(text), expected);
        let text = "Final flow: arp,reg0=0x1\n";
        let expected = "Final flow: recirc_id=0x1,eth,arp,reg0=0x1\n";
        assert_eq!(frozen.with_id(text), expected);
    }
}
