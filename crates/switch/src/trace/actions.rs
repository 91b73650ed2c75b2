//! The events of a run that leave datapath actions.

use base::{Cookie, GroupId, MeterId, TableId};
use conntrack::{AddressFamily, CtRequest};
use flow::{
    Action, Extension, Field, FlowKey, Instructions, MaxLen, PacketInReason, PipelineFields,
};
use packet::Frame;
use pipeline::{
    Cause, Destination, DropReason, PacketInMeta, Rule, STACK_UNDERFLOW, Trace, TracePrinter,
    Verdict,
};

use super::TracedBridge;
use super::megaflow::MegaflowTrace;
use crate::megaflow::MegaflowBuilder;
use crate::odp::ExaminedBits;

/// The length of an excerpt for a controller without a limit.
const WHOLE: u16 = u16::MAX;

/// The maximum number of logged errors of a frame in a bridge: the log takes no more at once.
const LOGGED_ERRORS_MAX: usize = 5;

/// The errors by which Open vSwitch drops a packet, and their texts.
const ERRORS: [(&str, &str); 7] = [
    ("recursion_too_deep", "Recursion too deep"),
    ("too_many_resubmits", "Too many resubmits"),
    ("too_many_outputs", "Too many outputs"),
    ("too_many_actions", "Too many actions"),
    ("stack_too_deep", "Stack too deep"),
    ("too_many_mpls_labels", "Too many MPLS labels"),
    ("unsupported_packet_type", "Unsupported packet type"),
];

/// A datapath action.
pub(super) enum OdpAction {
    /// An action in text.
    Plain(String),
    /// Actions on a copy of the packet.
    Clone(Vec<Self>),
}

/// An event of a run, in order.
pub(super) enum ActionEvent {
    /// The verdict's output with this number. The action truncates it to this length.
    Output {
        index: usize,
        truncated: Option<u32>,
    },
    /// The packet is submitted to a meter.
    Meter(MeterId),
    /// Actions on a copy begin that cannot be undone.
    Copy,
    /// The innermost of these ends.
    CopyEnd,
    /// The packet is recirculated; the verdict's output with this number has the continuation.
    Recirculate { index: usize },
    /// The packet is tracked by this datapath action.
    Track(String),
}

/// A trace that records the events and the bits that actions write, besides the megaflow.
pub(super) struct ActionRecorder<'a> {
    megaflow: MegaflowTrace<'a>,
    events: Vec<ActionEvent>,
    outputs: usize,
    truncated: Option<u32>,
    /// For each copy in execution, true if it has an event.
    copies: Vec<bool>,
    examined: ExaminedBits,
    /// True if the actions of the first rule can be undone; none before the first lookup.
    undoable: Option<bool>,
    /// True if an action requires the slow path.
    is_slow: bool,
    /// The errors of the rules that Open vSwitch logs, at most [`LOGGED_ERRORS_MAX`].
    logged_errors: Vec<String>,
    /// True if recirculations end the run.
    recirculates: bool,
    /// True from a recirculation to its continuation.
    is_recirculating: bool,
    /// The states of the connection at the next `ct` actions, the last one first.
    connection_states: Vec<u8>,
}

impl<'a> ActionRecorder<'a> {
    /// Returns a recorder for a bridge, which continues the megaflow of the bridge before.
    pub(super) fn new(bridge: &'a TracedBridge, megaflow: Option<MegaflowBuilder>) -> Self {
        Self {
            megaflow: MegaflowTrace::new(bridge, megaflow),
            events: Vec::new(),
            outputs: 0,
            truncated: None,
            copies: Vec::new(),
            examined: ExaminedBits::new(),
            undoable: None,
            is_slow: false,
            logged_errors: Vec::new(),
            recirculates: false,
            is_recirculating: false,
            connection_states: Vec::new(),
        }
    }

    /// Sets the states of the connection at the next `ct` actions, the last one first.
    pub(super) fn with_connection_states(self, connection_states: Vec<u8>) -> Self {
        Self {
            connection_states,
            ..self
        }
    }

    /// Sets whether recirculations end the run.
    pub(super) fn with_recirculation(self, recirculates: bool) -> Self {
        Self {
            recirculates,
            ..self
        }
    }

    /// Takes the states of the connection that were not used.
    pub(super) fn take_connection_states(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.connection_states)
    }

    /// Sets the pipeline fields to print on arrival.
    pub(super) fn print_arrival(&mut self, registers: PipelineFields) {
        self.megaflow.print_arrival(registers);
    }

    /// Returns the errors of the rules that Open vSwitch logs.
    pub(super) fn logged_errors(&self) -> &[String] {
        &self.logged_errors
    }

    fn add_logged_error(&mut self, text: String) {
        if self.logged_errors.len() < LOGGED_ERRORS_MAX {
            self.logged_errors.push(text);
        }
    }

    /// True if an action requires the slow path.
    pub(super) const fn is_slow(&self) -> bool {
        self.is_slow
    }

    pub(super) fn text(&self) -> &str {
        self.megaflow.text()
    }

    /// Returns the bits that the bridges so far have examined.
    pub(super) fn examined(&mut self) -> Option<MegaflowBuilder> {
        self.megaflow.take_examined()
    }

    pub(super) fn events(&self) -> &[ActionEvent] {
        &self.events
    }

    /// True if the actions of the first rule can be undone by other actions.
    pub(super) fn is_undoable(&self) -> bool {
        self.undoable.unwrap_or(true)
    }

    /// Adds the examined bits of this run to those of earlier ones.
    pub(super) fn merge_examined(&self, all: &mut ExaminedBits) {
        for (field, bits) in &self.examined {
            *all.entry(*field).or_default() |= bits;
        }
    }

    fn examine(&mut self, field: Field, bits: u128) {
        *self.examined.entry(field).or_default() |= bits;
    }
}

/// Returns the text of a list of actions. A clone at the end is not needed: no action follows that
/// must see the packet as it was.
pub(super) fn text_of(actions: &[OdpAction]) -> String {
    let mut words = Vec::new();
    for (place, action) in actions.iter().enumerate() {
        words.push(match action {
            OdpAction::Plain(word) => word.clone(),
            OdpAction::Clone(inner) if place + 1 == actions.len() => text_of(inner),
            OdpAction::Clone(inner) => format!("clone({})", text_of(inner)),
        });
    }
    match words.is_empty() {
        true => "drop".to_owned(),
        false => words.join(","),
    }
}

/// Returns the error that dropped the packet with all of its outputs.
pub(super) fn error_of(verdict: &Verdict) -> Option<&'static str> {
    let drops = verdict.drops.iter().filter(|_| verdict.egress.is_empty());
    let mut errors = drops.filter_map(|reason| {
        let error = ERRORS.iter().find(|(name, _)| *name == reason.name());
        error.map(|(_, text)| *text)
    });
    errors.next()
}

/// Returns the datapath action of the packet-in with this number in the trace, which `is_sent` or
/// not.
pub(super) fn controller_text(meta: &PacketInMeta, number: u32, is_sent: bool) -> String {
    let reason = reason_number(meta.cause);
    let continuation = u8::from(meta.continuation.is_some());
    let max_len = meta.max_len.map_or(WHOLE, |MaxLen(bytes)| bytes);
    let cookie = match meta.cookie {
        Cookie(0) | Cookie::NONE => "0".to_owned(),
        Cookie(cookie) => format!("{cookie:#x}"),
    };
    format!(
        "userspace(pid=0,controller(reason={reason},dont_send={},continuation={continuation},\
         recirc_id={number},rule_cookie={cookie},controller_id={},max_len={max_len}))",
        u8::from(!is_sent),
        meta.controller
    )
}

/// Returns Open vSwitch's number of a cause: those of OpenFlow 1.4, and two more for misses.
const fn reason_number(cause: Cause) -> u8 {
    match cause {
        Cause::Miss => 7,
        Cause::MissRule => 6,
        _ => match cause.reason() {
            PacketInReason::NoMatch => 0,
            PacketInReason::Action => 1,
            PacketInReason::InvalidTtl => 2,
            PacketInReason::ActionSet => 3,
            PacketInReason::Group => 4,
            PacketInReason::PacketOut => 5,
        },
    }
}

/// True if actions that follow can restore the packet after these.
fn are_undoable(actions: &[Action]) -> bool {
    !actions.iter().any(|action| {
        matches!(
            action,
            Action::Meter(_)
                | Action::Extended(
                    Extension::OutputTruncated { .. }
                        | Extension::Encap(_)
                        | Extension::Decap { .. }
                        | Extension::DecNshTtl
                )
        )
    })
}

impl Trace for ActionRecorder<'_> {
    fn on_arrival(&mut self, frame: &Frame, registers: &PipelineFields) {
        self.megaflow.on_arrival(frame, registers);
    }

    fn on_search(&mut self, table: TableId, key: &FlowKey) {
        self.megaflow.on_search(table, key);
    }

    fn on_lookup(&mut self, table: TableId, matched: Option<&Rule>) {
        let instructions = matched.map(|rule| &rule.instructions);
        let undoable = instructions.is_none_or(|instructions| {
            instructions.meter.is_none() && are_undoable(&instructions.apply)
        });
        self.undoable.get_or_insert(undoable);
        for term in matched.iter().flat_map(|rule| rule.matching().terms()) {
            self.examine(term.field, term.mask);
        }
        self.megaflow.on_lookup(table, matched);
    }

    fn on_action(&mut self, action: &Action) {
        self.truncated = None;
        match action {
            Action::SetField { field, mask, .. } => self.examine(*field, *mask),
            Action::SetNwTos(_) => self.examine(Field::IpDscp, u128::MAX),
            Action::Extended(Extension::OutputTruncated { max_len, .. }) => {
                self.truncated = Some(*max_len);
            }
            Action::Extended(Extension::DebugSlow) => self.is_slow = true,
            Action::Extended(Extension::Conntrack(ct)) if ct.table.is_some() => {
                self.is_recirculating = self.recirculates;
            }
            Action::Extended(Extension::DebugRecirc) => self.is_recirculating = self.recirculates,
            Action::Extended(
                Extension::Load { to, .. } | Extension::Move { to, .. } | Extension::Pop(to),
            ) if !to.is_tunnel_option() => {
                self.examine(to.field(), to.ones() << to.offset());
            }
            _ => {}
        }
        self.megaflow.on_action(action);
    }

    fn next_connection_state(&mut self) -> Option<u8> {
        self.connection_states.pop()
    }

    fn on_untrack(&mut self) {
        self.events.push(ActionEvent::Track("ct_clear".to_owned()));
    }

    fn on_track(&mut self, request: &CtRequest, family: AddressFamily) {
        let text = super::conntrack::action_text(request, family);
        self.events.push(ActionEvent::Track(text));
    }

    fn on_fork(&mut self, table: TableId) {
        self.megaflow.on_fork(table);
    }

    fn on_tracked(&mut self, state: u8) {
        self.megaflow.on_tracked(state);
    }

    fn on_untracked(&mut self) {
        self.megaflow.on_untracked();
    }

    fn on_copy(&mut self, actions: &[Action]) {
        let has_event = !are_undoable(actions);
        self.copies.push(has_event);
        if has_event {
            self.events.push(ActionEvent::Copy);
        }
        self.megaflow.on_copy(actions);
    }

    fn on_copy_end(&mut self) {
        if self.copies.pop() == Some(true) {
            self.events.push(ActionEvent::CopyEnd);
        }
        self.megaflow.on_copy_end();
    }

    fn on_bucket(&mut self, group: GroupId, bucket: usize) {
        self.megaflow.on_bucket(group, bucket);
    }

    fn on_meter(&mut self, meter: MeterId, exceeds: bool) {
        self.events.push(ActionEvent::Meter(meter));
        self.megaflow.on_meter(meter, exceeds);
    }

    fn on_instructions(&mut self, instructions: &Instructions) {
        self.megaflow.on_instructions(instructions);
    }

    fn on_action_set(&mut self, actions: &[Action]) {
        self.megaflow.on_action_set(actions);
    }

    fn recirculates(&self) -> bool {
        self.recirculates
    }

    fn on_output(&mut self, to: &Destination) {
        let waits = matches!(to, Destination::Controller(meta) if meta.continuation.is_some());
        if waits && std::mem::take(&mut self.is_recirculating) {
            let index = self.outputs;
            self.events.push(ActionEvent::Recirculate { index });
            self.outputs += 1;
            return;
        }
        self.events.push(ActionEvent::Output {
            index: self.outputs,
            truncated: self.truncated,
        });
        self.outputs += 1;
        self.megaflow.on_output(to);
    }

    fn on_drop(&mut self, reason: DropReason) {
        if let Some(text) = TracePrinter::error_text(reason) {
            self.add_logged_error(text);
        }
        self.megaflow.on_drop(reason);
    }

    fn on_stack_underflow(&mut self) {
        self.add_logged_error(STACK_UNDERFLOW.to_owned());
        self.megaflow.on_stack_underflow();
    }

    fn on_skip(&mut self, reason: DropReason) {
        self.megaflow.on_skip(reason);
    }

    fn on_end(&mut self, frame: &Frame, registers: &PipelineFields) {
        self.megaflow.on_end(frame, registers);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str) -> OdpAction {
        OdpAction::Plain(text.to_owned())
    }

    #[test]
    fn clone_is_written_unless_it_is_last() {
        assert_eq!(text_of(&[]), "drop");
        let clone = || OdpAction::Clone(vec![plain("meter(0)"), plain("3")]);
        assert_eq!(text_of(&[clone(), plain("1")]), "clone(meter(0),3),1");
        assert_eq!(text_of(&[plain("1"), clone()]), "1,meter(0),3");
        let nested = OdpAction::Clone(vec![plain("2"), clone()]);
        assert_eq!(text_of(&[nested, plain("1")]), "clone(2,meter(0),3),1");
    }
}
