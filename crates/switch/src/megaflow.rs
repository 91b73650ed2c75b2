//! Megaflows: the wildcarded flows that Open vSwitch's data path would cache for the packets that
//! it forwards.
//!
//! B. Pfaff et al., "The design and implementation of Open vSwitch", NSDI 2015.
//!
//! ```text
//!   packet            tables                        megaflow
//!
//!   in_port=1    +----------------+   examined:     in_port(1),eth_type(0x0800),
//!   eth_type=IP -> in_port=1,ip   |   in_port,      ipv4(dst=10.0.0.0/255.255.255.128,frag=no)
//!   dst=10.0.0.5 |  -> dec_ttl    |   eth_type         |
//!   ttl=64       +----------------+   dst/25           +--> all packets that agree in these
//!      .         | dst=10.0.0.128 |   ttl                   bits have the same path, so they
//!      .         |   /25 -> drop  |                         have the same actions
//!                +----------------+
//! ```
//!
//! This data path compiles rules and caches no such flows, but Open vSwitch's users read them: in
//! the last lines of `ofproto/trace`, and in `dpctl/dump-flows`. A megaflow is computed on demand,
//! on cold code, from one packet's path:
//!
//! - [`MegaflowBuilder`] starts with the bits that are always examined, and collects those that lookups, actions, `NORMAL`, groups, mirrors and tunnels examine, over all bridges of the path.
//! - The staged classifier tells the bits of a lookup, as Open vSwitch's classifier does: it is the expensive part. [`TableClassifiers`] keeps one for each table, for as long as the tables stay.
//! - The result has no registers, and no headers that the packet did not have on arrival.
//!
//! A megaflow is sound: packets that agree with its packet in the examined bits take the same path.
//! It is not the largest one: bits are examined that a more patient search would not need. The cost
//! is O(rules) for each table of the path, once for each change of it, and O(masks + prefixes) for
//! each lookup.
//!
//! ```
//! use base::{Instant, PortNo};
//! use flow::PipelineFields;
//! use packet::build::Stack;
//! use packet::Pool;
//! use pipeline::{InputFrame, Interpreter, Limits, Pipeline, Verdict};
//! use switch::megaflow::{PathRecorder, TableClassifiers};
//!
//! let mut pipeline = Pipeline::new(Limits::default(), 1);
//! pipeline.set_port(&flow::PortDesc::new(PortNo(1)));
//! for rule in ["in_port=1,ip,nw_dst=10.0.0.128/25,actions=drop", "priority=1,actions=drop"] {
//!     let rule = flow::text::parse_flow_line(rule).unwrap();
//!     pipeline.flow_mod(&rule, Instant::START).unwrap();
//! }
//! let frame = "eth / ipv4(dst=10.0.0.5) / udp".parse::<Stack>().unwrap().build();
//! let input = InputFrame { frame, in_port: PortNo(1), now: Instant::START };
//! let classifiers = TableClassifiers::default();
//! let mut recorder = PathRecorder::new(&pipeline, &classifiers);
//! let (mut pool, mut verdict) = (Pool::new(8), Verdict::new());
//! Interpreter::observer().run(&pipeline, input, &mut pool, &mut recorder, &mut verdict);
//!
//! let megaflow = recorder.megaflow().unwrap();
//! assert_eq!(megaflow.to_string(), "recirc_id=0,eth,ip,in_port=1,nw_dst=10.0.0.0/25,nw_frag=no");
//! ```

mod examined;
mod flow_table;
mod key;
mod match_text;
mod odp_key;
mod prefix_trie;
mod staged_classifier;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use base::TableId;
use flow::{Action, Field, FlowKey, Match, PipelineFields, Wide};
use packet::Frame;
use pipeline::{Pipeline, Trace};

use crate::odp::{OdpGeneveOption, OdpTunnel, key_of};
pub use examined::MegaflowBuilder;
pub(crate) use examined::{NormalChecks, OuterHeader};
pub use flow_table::{ActiveFlow, ActiveFlowTable, FlowUfid, PacketSummary, Revalidation};
use key::{KeyBits, KeyField};
pub use odp_key::KeyDetail;
use staged_classifier::StagedClassifier;

/// The fields with prefix tries of a table without a configuration, as in Open vSwitch.
const DEFAULT_PREFIXES: [Field; 2] = [Field::Ipv4Dst, Field::Ipv4Src];

/// The maximum number of prefix tries of a table, as in Open vSwitch.
pub const PREFIXES_MAX: usize = 3;

/// A packet and the bits of it that decide its path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Megaflow {
    packet: KeyBits,
    mask: KeyBits,
    /// All bits count.
    is_exact: bool,
}

impl Megaflow {
    /// Returns the flow of this packet alone.
    #[must_use]
    pub fn exact(key: &FlowKey, frame: &Frame) -> Self {
        let mut packet = KeyBits::of_key(key);
        packet.add_inner_headers(frame);
        let mut mask = KeyBits::ZERO;
        for at in KeyField::all() {
            mask.set(at, examined::width_mask(at));
        }
        for (field, _) in key.options().iter() {
            mask.add_option(field, Wide::ONES);
        }
        Self {
            packet,
            mask,
            is_exact: true,
        }
    }

    /// Returns the flow as a data path holds it, with the data path's number of the ingress port.
    /// It distinguishes packets by the presence of tags; the id of the outer tag counts if no other
    /// bit of the tag is examined.
    #[must_use]
    pub fn for_datapath(mut self, port: u32) -> Self {
        /// The presence bit and the id of a tag.
        const VID: u128 = 0x1fff;
        self.packet.set(KeyField::IN_PORT, u128::from(port));
        self.mask.set(KeyField::VLAN_TPID, 0xffff);
        self.mask.set(KeyField::VLAN_TPID_2, 0xffff);
        if self.mask.get(KeyField::VLAN_TCI) == 0 {
            self.mask.set(KeyField::VLAN_TCI, VID);
        }
        self
    }

    /// Returns the flow with the fields of the packet's tunnel that only a data path has.
    /// `field_of` returns the match field of a Geneve option.
    #[must_use]
    pub fn with_tunnel(
        mut self,
        tunnel: &OdpTunnel,
        field_of: impl Fn(&OdpGeneveOption) -> Option<Field>,
    ) -> Self {
        self.packet
            .set(KeyField::TUNNEL_TOS, tunnel.tos.value & 0xff);
        self.packet
            .set(KeyField::TUNNEL_FLAGS, tunnel.flags.value & 0xff);
        let masks = tunnel.options.iter().map(|option| {
            let bits = match self.is_exact {
                true => Some(Wide::ONES),
                false => field_of(option).and_then(|field| self.mask.options().value(field)),
            };
            let bytes = bits.unwrap_or_default().to_be_bytes();
            let at = bytes.len().saturating_sub(option.value.len());
            OdpGeneveOption {
                class: option.class,
                kind: option.kind,
                value: bytes[at..].to_vec(),
            }
        });
        let masks = masks.collect();
        self.mask.set_geneve(masks);
        self.packet.set_geneve(tunnel.options.clone());
        self
    }

    /// Returns the headers of the packet as a match.
    #[must_use]
    pub fn describe_packet(&self) -> String {
        let mut mask = KeyBits::ZERO;
        let headers = KeyField::all().filter(|at| at.segment() > 0);
        for at in headers.filter(|at| self.packet.get(*at) != 0) {
            mask.set(at, examined::width_mask(at));
        }
        mask.set(KeyField::VLAN_TCI, 0xffff);
        let described = Self {
            packet: self.packet.clone(),
            mask,
            is_exact: false,
        };
        described.to_string()
    }

    /// Returns true if a packet agrees with the flow in all bits that count.
    #[must_use]
    pub fn accepts(&self, packet: &Self) -> bool {
        self.packet.equals_under(&packet.packet, &self.mask)
    }

    /// Returns true if a bit counts that does not count in the other.
    #[must_use]
    pub fn is_narrower_than(&self, other: &Self) -> bool {
        self.mask.has_more_than(&other.mask)
    }

    /// Returns the text of a datapath flow that the port of this number or name receives.
    #[must_use]
    pub fn to_odp(&self, port: &str, detail: KeyDetail) -> String {
        odp_key::write(self, port, detail)
    }
}

/// A filter of listed flows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowFilter {
    value: KeyBits,
    mask: KeyBits,
}

impl FlowFilter {
    /// Returns a filter by the fields of a match; the port is that of the datapath.
    #[must_use]
    pub fn new(matching: &Match) -> Self {
        let (mut value, mut mask) = (KeyBits::ZERO, KeyBits::ZERO);
        for (at, bits, ones) in matching.terms().filter_map(|term| key::of_term(&term)) {
            value.add(at, bits);
            mask.add(at, ones);
        }
        Self { value, mask }
    }

    /// Returns true if the flow has packets with these fields, as far as their bits count.
    #[must_use]
    pub fn accepts(&self, flow: &Megaflow) -> bool {
        let mask = self.mask.masked(&flow.mask);
        self.value.equals_under(&flow.packet, &mask)
    }
}

impl fmt::Display for Megaflow {
    /// Formats the flow as `ofproto/trace` does.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&match_text::write(self))
    }
}

/// The staged classifiers of a bridge's tables. They are valid as long as the tables stay.
#[derive(Debug, Default)]
pub struct TableClassifiers {
    /// The configured prefix fields.
    prefixes: BTreeMap<TableId, Vec<Field>>,
    built: RefCell<BTreeMap<TableId, Arc<StagedClassifier>>>,
}

impl TableClassifiers {
    /// Returns classifiers for tables with these prefix fields.
    #[must_use]
    pub fn new(prefixes: BTreeMap<TableId, Vec<Field>>) -> Self {
        Self {
            prefixes,
            built: RefCell::default(),
        }
    }

    fn of(&self, table: TableId, pipeline: &Pipeline) -> Arc<StagedClassifier> {
        let mut built = self.built.borrow_mut();
        let classifier = built.entry(table).or_insert_with(|| {
            let fields = self.prefixes.get(&table);
            let fields = fields.map_or(&DEFAULT_PREFIXES[..], Vec::as_slice);
            let places = fields.iter().filter_map(|field| KeyField::of(*field));
            let places = places.map(|(at, _)| at).filter(|at| at.address_bits() > 0);
            let places: Vec<_> = places.take(PREFIXES_MAX).collect();
            Arc::new(StagedClassifier::new(pipeline.rules(table), &places))
        });
        Arc::clone(classifier)
    }
}

/// A trace that records the bits that one bridge examines of a packet.
pub struct PathRecorder<'a> {
    pipeline: &'a Pipeline,
    classifiers: &'a TableClassifiers,
    examined: Option<MegaflowBuilder>,
}

impl<'a> PathRecorder<'a> {
    /// Returns a recorder for a bridge with these tables.
    #[must_use]
    pub const fn new(pipeline: &'a Pipeline, classifiers: &'a TableClassifiers) -> Self {
        Self {
            pipeline,
            classifiers,
            examined: None,
        }
    }

    /// Continues the record of another bridge, from which the packet arrives.
    #[must_use]
    pub fn after(self, examined: Option<MegaflowBuilder>) -> Self {
        Self { examined, ..self }
    }

    /// Returns the record, which is empty if the packet cannot be parsed.
    #[must_use]
    pub fn into_examined(self) -> Option<MegaflowBuilder> {
        self.examined
    }

    /// Returns the megaflow, if the packet could be parsed.
    #[must_use]
    pub fn megaflow(&self) -> Option<Megaflow> {
        self.examined.as_ref().map(MegaflowBuilder::megaflow)
    }

    pub(crate) const fn examined(&mut self) -> Option<&mut MegaflowBuilder> {
        self.examined.as_mut()
    }
}

impl MegaflowBuilder {
    /// Returns the megaflow of the path so far.
    #[must_use]
    pub fn megaflow(&self) -> Megaflow {
        let (packet, mask) = self.finish();
        Megaflow {
            packet,
            mask,
            is_exact: false,
        }
    }
}

impl Trace for PathRecorder<'_> {
    fn on_arrival(&mut self, frame: &Frame, registers: &PipelineFields) {
        let Some(key) = key_of(frame, registers) else {
            return;
        };
        match &mut self.examined {
            Some(examined) => examined.enter(&key, frame),
            None => self.examined = Some(MegaflowBuilder::new(&key, frame)),
        }
    }

    fn on_search(&mut self, table: TableId, key: &FlowKey) {
        let classifier = self.classifiers.of(table, self.pipeline);
        if let Some(examined) = &mut self.examined {
            examined.look_up(key, &classifier);
        }
    }

    fn on_action(&mut self, action: &Action) {
        let Some(examined) = &mut self.examined else {
            return;
        };
        examined.execute(action);
        if let Action::Group(group) = action
            && let Some(fields) = self.pipeline.hashed_fields(*group)
        {
            examined.select_bucket(&fields);
        }
    }
}

#[cfg(test)]
mod tests;
