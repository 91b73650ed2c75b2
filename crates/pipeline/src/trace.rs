//! Observation of one packet's processing. `()` observes nothing;
//! [`TracePrinter`](crate::TracePrinter) prints it.

use base::{GroupId, MeterId, TableId};
use conntrack::{AddressFamily, CtRequest};
use flow::{Action, FlowKey, Instructions, PipelineFields};
use packet::Frame;

use crate::rules::Rule;
use crate::verdict::{Destination, DropReason};

mod printer;

pub use printer::{STACK_UNDERFLOW, TracePrinter};

/// Receives each step of one packet, in order.
pub trait Trace {
    /// The packet was received, with these pipeline fields.
    fn on_arrival(&mut self, _frame: &Frame, _registers: &PipelineFields) {}

    /// The interpreter searches a table for a packet with these fields. Engines that find rules
    /// faster do not report it.
    fn on_search(&mut self, _table: TableId, _key: &FlowKey) {}

    /// A table was looked up, with this result.
    fn on_lookup(&mut self, _table: TableId, _found: Option<&Rule>) {}

    /// An action is executed.
    fn on_action(&mut self, _action: &Action) {}

    /// Returns the `ct_state` that the next `ct` of a trace results in; `None` for its default.
    fn next_connection_state(&mut self) -> Option<u8> {
        None
    }

    /// A tracked packet becomes one that is not tracked.
    fn on_untrack(&mut self) {}

    /// The packet is tracked with these arguments.
    fn on_track(&mut self, _request: &CtRequest, _family: AddressFamily) {}

    /// A tracked copy of the packet is to enter this table.
    fn on_fork(&mut self, _table: TableId) {}

    /// The tracked copy continues with this `ct_state`.
    fn on_tracked(&mut self, _state: u8) {}

    /// The packet that continues after `ct` is not tracked.
    fn on_untracked(&mut self) {}

    /// Actions are executed on a copy of the packet, up to the next [`Self::on_copy_end`].
    fn on_copy(&mut self, _actions: &[Action]) {}

    /// The actions on a copy end.
    fn on_copy_end(&mut self) {}

    /// A bucket of a group is executed, by its index.
    fn on_bucket(&mut self, _group: GroupId, _bucket: usize) {}

    /// The packet was submitted to a meter, and exceeds its rate or not.
    fn on_meter(&mut self, _meter: MeterId, _exceeds: bool) {}

    /// The instructions after `apply_actions` are executed: action set and metadata.
    fn on_instructions(&mut self, _instructions: &Instructions) {}

    /// The tables end and the action set is executed.
    fn on_action_set(&mut self, _actions: &[Action]) {}

    /// A copy is output.
    fn on_output(&mut self, _to: &Destination) {}

    /// The packet, or a copy of it, is dropped.
    fn on_drop(&mut self, _reason: DropReason) {}

    /// An action takes a value from the empty stack.
    fn on_stack_underflow(&mut self) {}

    /// A port is excluded from a flood.
    fn on_skip(&mut self, _reason: DropReason) {}

    /// True if `debug_recirc` ends the run, as a recirculation of Open vSwitch does. The rest of the
    /// processing is then the continuation of a last packet-in, which no controller receives.
    fn recirculates(&self) -> bool {
        false
    }

    /// Processing ends; the packet is in this state.
    fn on_end(&mut self, _frame: &Frame, _registers: &PipelineFields) {}
}

impl Trace for () {}
