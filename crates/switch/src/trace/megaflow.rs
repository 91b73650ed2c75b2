//! The megaflow of a trace, in Open vSwitch's sense: the bits of the frame that decided its path. A
//! table examines all fields of its rules down to the one that matches; actions examine the fields
//! that they read.

use std::collections::{BTreeMap, BTreeSet};

use base::{GroupId, MeterId, PortNo, TableId};
use flow::{Action, Extension, Field, FlowKey, Instructions, MatchBuilder, PipelineFields};
use packet::Frame;
use pipeline::{Destination, DropReason, Pipeline, Rule, Trace, TracePrinter};

use crate::odp::key_of;

/// A table lookup and the priority of the rule that matched.
type Visit = (TableId, Option<u16>);

/// A trace that also records the examined bits.
pub(super) struct MegaflowTrace {
    printer: TracePrinter,
    first: Option<FlowKey>,
    visits: BTreeSet<Visit>,
    /// Bits that actions read.
    read: BTreeMap<Field, u128>,
    /// Fields that actions have overwritten.
    written: BTreeSet<Field>,
    /// The port that the current action names.
    named: Option<PortNo>,
}

impl MegaflowTrace {
    /// Returns a recorder for the bridge of this name and its spanning tree protocol.
    pub(super) fn new(bridge: &str, tree: Option<&'static str>) -> Self {
        let printer = TracePrinter::for_bridge(bridge);
        Self {
            printer: match tree {
                Some(tree) => printer.with_spanning_tree(tree),
                None => printer,
            },
            first: None,
            visits: BTreeSet::new(),
            read: BTreeMap::new(),
            written: BTreeSet::new(),
            named: None,
        }
    }

    /// Returns the text of the trace.
    pub(super) fn text(&self) -> &str {
        self.printer.text()
    }

    /// Returns the examined bits with their original values.
    pub(super) fn megaflow(&self, pipeline: &Pipeline) -> String {
        let Some(key) = &self.first else {
            return "recirc_id=0".to_owned();
        };
        let mut masks = self.read.clone();
        // The parser and the ingress check always read these.
        for field in [Field::InPort, Field::EthType, Field::IpFrag] {
            masks.insert(field, u128::MAX);
        }
        for (table, matched) in &self.visits {
            let rules = pipeline.rules(*table);
            let tried =
                rules.take_while(|rule| matched.is_none_or(|matched| rule.priority() >= matched));
            for term in tried.flat_map(|rule| rule.matching().terms()) {
                if !self.written.contains(&term.field) {
                    *masks.entry(term.field).or_default() |= term.mask;
                }
            }
        }
        let mut builder = MatchBuilder::default();
        for (field, mask) in masks {
            let mask = mask & (u128::MAX >> (128 - u32::from(field.info().bits)));
            if let Some(value) = key.get(field) {
                // A field without its prerequisite is omitted: it has no meaning alone.
                let _ = builder.add(field, value & mask, mask);
            }
        }
        let text = builder.build().to_string();
        let comma = if text.is_empty() { "" } else { "," };
        format!("recirc_id=0,eth{comma}{text}")
    }

    fn reads(&mut self, field: Field, mask: u128) {
        if !self.written.contains(&field) {
            *self.read.entry(field).or_default() |= mask;
        }
    }
}

impl Trace for MegaflowTrace {
    fn on_arrival(&mut self, frame: &Frame, registers: &PipelineFields) {
        self.first = key_of(frame, registers);
        self.printer.on_arrival(frame, registers);
    }

    fn on_lookup(&mut self, table: TableId, matched: Option<&Rule>) {
        self.visits.insert((table, matched.map(Rule::priority)));
        self.printer.on_lookup(table, matched);
    }

    fn on_action(&mut self, action: &Action) {
        match action {
            Action::DecIpTtl | Action::Extended(Extension::DecTtl(_)) => {
                self.reads(Field::IpTtl, u128::MAX);
                self.written.insert(Field::IpTtl);
            }
            Action::DecMplsTtl => {
                self.reads(Field::MplsTtl, u128::MAX);
                self.written.insert(Field::MplsTtl);
            }
            Action::SetField { field, .. } => {
                self.written.insert(*field);
            }
            Action::Extended(Extension::Load { to, .. }) => {
                self.written.insert(to.field());
            }
            Action::Extended(Extension::Move { from, to }) => {
                self.reads(from.field(), u128::MAX);
                self.written.insert(to.field());
            }
            Action::Extended(Extension::OutputReg { from, .. }) => {
                self.reads(from.field(), u128::MAX);
            }
            _ => {}
        }
        self.named = match action {
            Action::Output { port, .. } | Action::Enqueue { port, .. } => Some(*port),
            _ => None,
        };
        self.printer.on_action(action);
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
        if *to == Destination::Normal {
            for field in [Field::EthSrc, Field::EthDst, Field::VlanVid] {
                self.reads(field, u128::MAX);
            }
        }
        // The line of the action already names the port or the collectors.
        if !to.is_sample() && self.named.is_none_or(|port| *to != Destination::Port(port)) {
            self.printer.on_output(to);
        }
    }

    fn on_drop(&mut self, reason: DropReason) {
        self.printer.on_drop(reason);
    }

    fn on_skip(&mut self, reason: DropReason) {
        self.printer.on_skip(reason);
    }

    fn on_end(&mut self, frame: &Frame, registers: &PipelineFields) {
        self.printer.on_end(frame, registers);
    }
}
