//! The recorder of a trace: the printer, and the bits of the frame that decided its path.

use base::{GroupId, MeterId, PortNo, TableId};
use flow::{Action, FlowKey, Instructions, PipelineFields};
use packet::{Frame, Link};
use pipeline::{Destination, DropReason, Rule, Trace, TracePrinter, Verdict};

use super::TracedBridge;
use crate::megaflow::{MegaflowBuilder, NormalChecks, PathRecorder};
use crate::odp::key_of;
use dataplane::normal::NormalTarget;

/// A trace that also records the examined bits.
pub(super) struct MegaflowTrace<'a> {
    printer: TracePrinter,
    path: PathRecorder<'a>,
    /// The port that the current action names.
    named: Option<PortNo>,
    /// The pipeline fields to print on arrival, if they are not those of the run.
    printed_arrival: Option<PipelineFields>,
}

impl<'a> MegaflowTrace<'a> {
    /// Returns a recorder for a bridge, which continues the record of the bridge before.
    pub(super) fn new(bridge: &'a TracedBridge, examined: Option<MegaflowBuilder>) -> Self {
        let printer = TracePrinter::for_bridge(&bridge.name);
        Self {
            printer: match bridge.tree {
                Some(tree) => printer.with_spanning_tree(tree),
                None => printer,
            },
            path: PathRecorder::new(&bridge.pipeline, &bridge.classifiers).after(examined),
            named: None,
            printed_arrival: None,
        }
    }

    /// Sets the pipeline fields to print on arrival.
    pub(super) fn print_arrival(&mut self, registers: PipelineFields) {
        self.printed_arrival = Some(registers);
    }

    /// Returns the text of the trace.
    pub(super) fn text(&self) -> &str {
        self.printer.text()
    }

    /// Takes the record of the examined bits.
    pub(super) fn take_examined(&mut self) -> Option<MegaflowBuilder> {
        self.path.examined().cloned()
    }
}

impl TracedBridge {
    /// Adds the bits that the bridge examines beside its tables: of each frame, and of those that
    /// reach `NORMAL`.
    pub(super) fn examine(
        &self,
        arrived: &Frame,
        verdict: &Verdict,
        registers: &PipelineFields,
        examined: Option<MegaflowBuilder>,
    ) -> Option<MegaflowBuilder> {
        let from = registers.in_port;
        let new = || Some(MegaflowBuilder::new(&key_of(arrived, registers)?, arrived));
        let mut examined = examined.or_else(new)?;
        if self.tree.is_some() {
            examined.check_for_bpdu();
        }
        let punts = self.punts.as_ref().and_then(|punts| punts.of(from));
        if let Some(protocols) = punts
            && let Some(key) = key_of(arrived, registers)
        {
            examined.enter(&key, arrived);
            examined.check_for_monitors(protocols);
        }
        if self
            .mirrors
            .as_ref()
            .is_some_and(|mirrors| mirrors.select_vlans())
        {
            examined.select_by_vlan();
        }
        let normals = verdict.egress.iter();
        for egress in normals.filter(|egress| egress.to == Destination::Normal) {
            let Some(frame) = verdict.frames.get(egress.frame) else {
                continue;
            };
            let Ok(link) = Link::parse(frame.bytes()) else {
                continue;
            };
            let (target, _) = self.normal_context().forward((&link, frame.bytes()), from);
            let is_accepted = !matches!(
                target,
                NormalTarget::Refused | NormalTarget::Surplus | NormalTarget::Looped
            );
            if let Some(key) = key_of(frame, registers) {
                examined.enter(&key, frame);
            }
            let checks = NormalChecks {
                snoops: self.multicast.is_some(),
            };
            examined.forward_normally(checks, is_accepted);
        }
        Some(examined)
    }
}

impl Trace for MegaflowTrace<'_> {
    fn on_arrival(&mut self, frame: &Frame, registers: &PipelineFields) {
        self.path.on_arrival(frame, registers);
        let printed = self.printed_arrival.as_ref().unwrap_or(registers);
        self.printer.on_arrival(frame, printed);
    }

    fn on_search(&mut self, table: TableId, key: &FlowKey) {
        self.path.on_search(table, key);
    }

    fn on_lookup(&mut self, table: TableId, matched: Option<&Rule>) {
        self.printer.on_lookup(table, matched);
    }

    fn on_action(&mut self, action: &Action) {
        self.path.on_action(action);
        self.named = match action {
            Action::Output { port, .. } | Action::Enqueue { port, .. } => Some(*port),
            _ => None,
        };
        self.printer.on_action(action);
    }

    fn on_fork(&mut self, table: TableId) {
        self.printer.on_fork(table);
    }

    fn on_tracked(&mut self, state: u8) {
        self.printer.on_tracked(state);
    }

    fn on_untracked(&mut self) {
        self.printer.on_untracked();
    }

    fn on_copy(&mut self, actions: &[Action]) {
        self.printer.on_copy(actions);
    }

    fn on_copy_end(&mut self) {
        self.printer.on_copy_end();
    }

    fn on_bucket(&mut self, group: GroupId, bucket: usize) {
        self.printer.on_bucket(group, bucket);
    }

    fn on_meter(&mut self, meter: MeterId, exceeds: bool) {
        self.printer.on_meter(meter, exceeds);
    }

    fn on_instructions(&mut self, instructions: &Instructions) {
        self.printer.on_instructions(instructions);
    }

    fn on_action_set(&mut self, actions: &[Action]) {
        self.printer.on_action_set(actions);
    }

    fn on_output(&mut self, to: &Destination) {
        // The line of the action already names the port or the collectors.
        if !to.is_sample() && self.named.is_none_or(|port| *to != Destination::Port(port)) {
            self.printer.on_output(to);
        }
    }

    fn on_drop(&mut self, reason: DropReason) {
        self.printer.on_drop(reason);
    }

    fn on_stack_underflow(&mut self) {
        self.printer.on_stack_underflow();
    }

    fn on_skip(&mut self, reason: DropReason) {
        self.printer.on_skip(reason);
    }

    fn on_end(&mut self, frame: &Frame, registers: &PipelineFields) {
        self.printer.on_end(frame, registers);
    }
}
