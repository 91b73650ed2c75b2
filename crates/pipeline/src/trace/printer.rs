//! Prints the processing of one packet in the format of `ovs-appctl ofproto/trace`.
//!
//! ```text
//! Flow: tcp,in_port=1,dl_src=02:00:00:00:00:01,...
//!
//! bridge("br0")
//! -------------
//!  0. tcp,in_port=1, priority 10, cookie 0x5
//!     dec_ttl
//!     output:2
//!
//! Final flow: tcp,in_port=1,dl_src=02:00:00:00:00:01,...,nw_ttl=63,...
//! ```

use std::fmt::Write;

use base::{GroupId, MeterId, TableId};
use flow::field::Depth;
use flow::{
    Action, ConnectionFields, Field, FlowKey, Instructions, Match, MatchBuilder, PacketInReason,
    PipelineFields, Wide,
};
use packet::{Frame, Headers, Link};

use crate::rules::Rule;
use crate::trace::Trace;
use crate::verdict::{Destination, DropReason};

/// Open vSwitch's text for an action that takes a value from the empty stack.
pub const STACK_UNDERFLOW: &str = "stack underflow";

/// The EtherType of ARP.
const TYPE_ARP: u128 = 0x0806;

/// The fields of an ARP message.
const ARP_FIELDS: [Field; 5] = [
    Field::ArpOp,
    Field::ArpSpa,
    Field::ArpTpa,
    Field::ArpSha,
    Field::ArpTha,
];

/// The text of the IP fields of a frame with a network service header.
const WITHOUT_IP: &str = ",nw_proto=0,nw_tos=0,nw_ecn=0,nw_ttl=0,nw_frag=no";

/// A printer and its text.
#[derive(Debug, Default)]
pub struct TracePrinter {
    text: String,
    /// Heading of the bridge.
    title: String,
    /// The packet as it was received.
    first: String,
    /// Name of the spanning tree protocol, if it runs.
    tree: Option<&'static str>,
}

impl TracePrinter {
    /// Creates a printer.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a printer for the bridge with this name.
    #[must_use]
    pub fn for_bridge(name: &str) -> Self {
        let title = format!("bridge(\"{name}\")");
        let line = "-".repeat(title.len());
        Self {
            title: format!("{title}\n{line}\n"),
            ..Self::default()
        }
    }

    /// Sets the name of the bridge's spanning tree protocol.
    #[must_use]
    pub fn with_spanning_tree(self, tree: &'static str) -> Self {
        Self {
            tree: Some(tree),
            ..self
        }
    }

    /// Returns Open vSwitch's text for a port that is excluded for this reason.
    #[must_use]
    pub fn skip_text(reason: DropReason, tree: Option<&str>) -> Option<String> {
        match reason {
            DropReason::OutputProtected => {
                Some("Flow is between protected ports, skipping output.".to_owned())
            }
            DropReason::OutputShut => {
                tree.map(|tree| format!("{tree} not in forwarding state, skipping output"))
            }
            _ => None,
        }
    }

    /// Returns Open vSwitch's text for a limit that ends the whole packet.
    #[must_use]
    pub fn error_text(reason: DropReason) -> Option<String> {
        Some(match reason {
            DropReason::RecursionTooDeep => {
                format!(
                    "over max translation depth {}",
                    crate::limits::RECURSION_MAX
                )
            }
            DropReason::TooManyResubmits => {
                format!("over {} resubmit actions", crate::limits::RESUBMITS_MAX)
            }
            DropReason::TooManyOutputs => {
                format!("over {} outputs", crate::limits::OUTPUTS_PER_FRAME_MAX)
            }
            DropReason::TooManyActions => {
                format!("over {} actions", crate::limits::ACTIONS_PER_FRAME_MAX)
            }
            DropReason::StackTooDeep => "resubmits yielded over 64 kB of stack".to_owned(),
            _ => return None,
        })
    }

    /// Returns the text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "{line}");
    }
}

/// Returns the flags of `ct_state` in the order of Open vSwitch: `trk` first.
fn state_text(state: u8) -> String {
    let is_set = |bit: &usize| state >> bit & 1 == 1;
    let bits = [5, 0, 1, 2, 3, 4, 6, 7].into_iter().filter(is_set);
    let names: Vec<&str> = bits.map(|bit| ConnectionFields::STATES[bit]).collect();
    names.join("|")
}

/// Returns the fields of a packet as a match in the format of `ovs-ofctl`. Registers that are zero
/// and flags that are not set are omitted.
fn describe(frame: &Frame, registers: &PipelineFields) -> String {
    let quiet = |field: Field| {
        use Field as F;
        field > F::Ipv6NdTll
            || matches!(
                field,
                F::Metadata | F::TunnelId | F::PacketType | F::Ipv6Exthdr
            )
    };
    let Some(mut key) = key(frame, registers) else {
        return "a frame that cannot be read".to_owned();
    };
    let eth_type = key.get(Field::EthType);
    // As in Open vSwitch, an ARP message that cannot be read has zeros.
    if eth_type == Some(TYPE_ARP) {
        for field in ARP_FIELDS {
            if key.get(field).is_none() {
                key.set(field, 0);
            }
        }
    }
    let has_nsh = key.get(Field::NshMdtype).is_some();
    let fields =
        Field::all().filter(|row| !(row.field.view().is_some() || row.field.option().is_some()));
    let known = fields.filter_map(|row| Some((row.field, key.get(row.field)?)));
    let known = known.filter(|(field, _)| !matches!(field, Field::InPhyPort | Field::ActsetOutput));
    let is_nsh = |field: Field| has_nsh && field >= Field::NshFlags && field <= Field::NshC4;
    let told = known.filter(|(field, value)| !(quiet(*field) && *value == 0 && !is_nsh(*field)));
    let told = told.fold(Match::any(), |matching, (field, value)| {
        matching.clone().with(field, value).unwrap_or(matching)
    });
    let mut told = MatchBuilder::from(&told);
    for (field, value) in key.options().iter() {
        told.add_option(field, value, Wide::ONES)
            .expect("each is there once");
    }
    // An absent tag is printed whole, though a match would need less.
    let told = told.build().to_string();
    let told = told.replace("vlan_tci=0x0000/0x1fff", "vlan_tci=0x0000");
    if has_nsh {
        // Open vSwitch examines the IP fields of such a frame, which it does not have.
        return told + WITHOUT_IP;
    }
    match has_no_type(frame) {
        true => told.replace("dl_type=0x05ff", "dl_type=0x0000"),
        false => told,
    }
}

/// True for the frame of a flow that names no EtherType: nothing follows its header.
fn has_no_type(frame: &Frame) -> bool {
    let link = Link::parse(frame.bytes());
    link.is_ok_and(|link| link.payload_at() == frame.len() && frame.bytes().ends_with(&[0, 0]))
}

/// Returns the fields, as deep as the packet can be parsed.
fn key(frame: &Frame, registers: &PipelineFields) -> Option<FlowKey> {
    let depths = Depth::ALL.into_iter().rev();
    let headers = depths
        .flat_map(|depth| Headers::parse(frame, depth))
        .next()?;
    let mut key = FlowKey::new();
    key.fill(&headers, registers);
    Some(key)
}

impl Trace for TracePrinter {
    fn on_arrival(&mut self, frame: &Frame, registers: &PipelineFields) {
        let first = describe(frame, registers);
        self.line(format_args!("Flow: {first}\n"));
        self.text += &self.title;
        self.first = first;
    }

    fn on_lookup(&mut self, table: TableId, found: Option<&Rule>) {
        let number = table.0;
        let Some(rule) = found else {
            self.line(format_args!("{number:2}. No match."));
            return;
        };
        let matching = rule.matching().to_string();
        let comma = if matching.is_empty() { "" } else { ", " };
        let priority = rule.priority();
        let cookie = match rule.cookie.0 {
            0 => String::new(),
            cookie => format!(", cookie {cookie:#x}"),
        };
        self.line(format_args!(
            "{number:2}. {matching}{comma}priority {priority}{cookie}"
        ));
        if **rule.instructions == Instructions::default() {
            self.line(format_args!("    drop"));
        }
    }

    fn on_action(&mut self, action: &Action) {
        self.line(format_args!("    {action}"));
    }

    fn on_fork(&mut self, table: TableId) {
        let table = table.0;
        self.line(format_args!(
            "     -> A clone of the packet is forked to recirculate. The forked pipeline will be \
             resumed at table {table}."
        ));
    }

    fn on_tracked(&mut self, state: u8) {
        let state = state_text(state);
        self.line(format_args!(
            "     -> resume conntrack with ct_state={state}"
        ));
    }

    fn on_untracked(&mut self) {
        self.line(format_args!(
            "     -> Sets the packet to an untracked state, and clears all the conntrack fields."
        ));
    }

    fn on_bucket(&mut self, group: GroupId, bucket: usize) {
        let group = group.0;
        self.line(format_args!("     -> bucket {bucket} of group {group}"));
    }

    fn on_meter(&mut self, meter: MeterId, exceeds: bool) {
        let within = if exceeds {
            "exceeded"
        } else {
            "within its rate"
        };
        match meter {
            MeterId::CONTROLLER => self.line(format_args!("    meter:controller, {within}")),
            meter => self.line(format_args!("    meter:{}, {within}", meter.0)),
        }
    }

    fn on_instructions(&mut self, instructions: &Instructions) {
        let rest = Instructions {
            meter: None,
            apply: Vec::new(),
            ..instructions.clone()
        };
        if rest != Instructions::default() {
            self.line(format_args!("    {rest}"));
        }
    }

    fn on_action_set(&mut self, _: &[Action]) {
        self.line(format_args!("    -> the action set is executed"));
    }

    fn on_output(&mut self, to: &Destination) {
        match to {
            Destination::Port(port) => self.line(format_args!("     >> port {port}")),
            Destination::Normal => self.line(format_args!("     >> normal forwarding")),
            Destination::Collectors(sample) => {
                self.line(format_args!(
                    "     >> collectors of set {}",
                    sample.collectors
                ));
            }
            Destination::Controller(meta) => {
                let cause = match meta.cause.reason() {
                    PacketInReason::NoMatch => "no match",
                    PacketInReason::Action => "action",
                    PacketInReason::ActionSet => "action set",
                    PacketInReason::PacketOut => "packet-out",
                    PacketInReason::Group => "group",
                    PacketInReason::InvalidTtl => "invalid TTL",
                };
                let waits = match meta.continuation {
                    Some(_) => ", and waits for it",
                    None => "",
                };
                self.line(format_args!("     >> controller, reason: {cause}{waits}"));
            }
        }
    }

    fn on_drop(&mut self, reason: DropReason) {
        if let Some(words) = Self::skip_text(reason, self.tree) {
            return self.line(format_args!("     >> {words}"));
        }
        match reason {
            DropReason::NoMatch => return self.line(format_args!("    drop")),
            DropReason::Fragment => {
                let why = r#"Packets are IP fragments and the fragment handling mode is "drop"."#;
                return self.line(format_args!(" 0. {why}"));
            }
            // The rule's own line tells it.
            DropReason::NoOutput => return,
            _ => {}
        }
        if let Some(words) = Self::error_text(reason) {
            return self.line(format_args!("     >>>> {words} <<<<"));
        }
        let what = if reason.is_side_effect() {
            "not done"
        } else {
            "dropped"
        };
        self.line(format_args!("     >> {what}: {}", reason.name()));
    }

    fn on_stack_underflow(&mut self) {
        self.line(format_args!("     >>>> {STACK_UNDERFLOW} <<<<"));
    }

    fn on_skip(&mut self, reason: DropReason) {
        self.on_drop(reason);
    }

    fn on_end(&mut self, frame: &Frame, registers: &PipelineFields) {
        let last = describe(frame, registers);
        if last == self.first {
            self.line(format_args!("\nFinal flow: unchanged"));
        } else {
            self.line(format_args!("\nFinal flow: {last}"));
        }
    }
}

#[cfg(test)]
mod tests;
