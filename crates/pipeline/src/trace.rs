//! Watching a frame on its way. `()` watches nothing; [`Story`](crate::Story)
//! tells it to a person.

use base::{GroupId, MeterId, TableId};
use flow::{Action, Instructions, Registers};
use packet::Frame;

use crate::rule::Rule;
use crate::verdict::{Destination, DropReason};

/// Hears each step of one frame, in order.
pub trait Trace {
    /// The frame was let in, and this is known of it besides.
    fn arrived(&mut self, _frame: &Frame, _registers: &Registers) {}

    /// A table was asked; it has this rule for the frame, or none.
    fn looked_up(&mut self, _table: TableId, _found: Option<&Rule>) {}

    /// An action is done now.
    fn acts(&mut self, _action: &Action) {}

    /// The frame is handed to a bucket of a group, by its place there.
    fn bucket(&mut self, _group: GroupId, _bucket: usize) {}

    /// The frame was submitted to a meter, and exceeds its rate or does not.
    fn metered(&mut self, _meter: MeterId, _exceeds: bool) {}

    /// The instructions after the actions: the action set, the metadata.
    fn instructed(&mut self, _instructions: &Instructions) {}

    /// The walk is over and the action set is executed.
    fn executes(&mut self, _actions: &[Action]) {}

    /// A copy goes there.
    fn sent(&mut self, _to: &Destination) {}

    /// The frame, or a copy of it, ends here.
    fn dropped(&mut self, _reason: DropReason) {}

    /// One of the ports that a frame goes to which is flooded is left out.
    fn skipped(&mut self, _reason: DropReason) {}

    /// The frame is done with; this is how it is in the end.
    fn finished(&mut self, _frame: &Frame, _registers: &Registers) {}
}

impl Trace for () {}
