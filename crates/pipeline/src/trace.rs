//! Watching a frame on its way. `()` watches nothing; [`TracePrinter`](crate::TracePrinter)
//! tells it to a person.

use base::{GroupId, MeterId, TableId};
use flow::{Action, Instructions, PipelineFields};
use packet::Frame;

use crate::rules::Rule;
use crate::verdict::{Destination, DropReason};

mod printer;

pub use printer::TracePrinter;

/// Hears each step of one frame, in order.
pub trait Trace {
    /// The frame was let in, and this is known of it besides.
    fn on_arrival(&mut self, _frame: &Frame, _registers: &PipelineFields) {}

    /// A table was asked; it has this rule for the frame, or none.
    fn on_lookup(&mut self, _table: TableId, _found: Option<&Rule>) {}

    /// An action is done now.
    fn on_action(&mut self, _action: &Action) {}

    /// The frame is handed to a bucket of a group, by its place there.
    fn on_bucket(&mut self, _group: GroupId, _bucket: usize) {}

    /// The frame was submitted to a meter, and exceeds its rate or does not.
    fn on_meter(&mut self, _meter: MeterId, _exceeds: bool) {}

    /// The instructions after the actions: the action set, the metadata.
    fn on_instructions(&mut self, _instructions: &Instructions) {}

    /// The walk is over and the action set is executed.
    fn on_action_set(&mut self, _actions: &[Action]) {}

    /// A copy goes there.
    fn on_output(&mut self, _to: &Destination) {}

    /// The frame, or a copy of it, ends here.
    fn on_drop(&mut self, _reason: DropReason) {}

    /// One of the ports that a frame goes to which is flooded is left out.
    fn on_skip(&mut self, _reason: DropReason) {}

    /// The frame is done with; this is how it is in the end.
    fn on_end(&mut self, _frame: &Frame, _registers: &PipelineFields) {}
}

impl Trace for () {}
