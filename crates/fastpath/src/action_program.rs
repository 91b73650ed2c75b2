//! Action programs: the instructions of a rule, compiled to a list of operations (Open vSwitch:
//! datapath actions). A program is plain data and is executed by [`exec`](crate::exec).
//!
//! Operations correspond one to one to the actions of `apply_actions`, so that the interpreter can
//! resume at an action number. An action that is not compiled becomes [`Op::SlowPath`]: the packet
//! continues in the interpreter from there.
//!
//! Most rules do one thing. An [`InlineProgram`] encodes such a program in 32 bits, which are
//! stored with the counters where a lookup ends, so that neither the rule nor its program is read:
//!
//! ```text
//!   31  28 27                                  0
//!  | kind |  port, or table                     |
//!
//!  kind 0   none: the program is executed           3   write pipeline fields, resubmit to a table
//!       1   goto_table                              4   output to a port
//!       2   write pipeline fields, goto_table             5   write pipeline fields, ct to a table
//! ```

use base::{GroupId, MeterId, PortNo, Priority, QueueId, TableId};
use flow::field::{FieldView, widen};
use flow::{Action, Extension, Field, Instructions, MaxLen, Subfield};

use crate::header_rewrite::HeaderRewrite;
use crate::packed_key::FieldWrite;

/// Reason why a packet continues in the interpreter (Open vSwitch `slow_path_reason`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum SlowPathReason {
    /// The packet satisfies more clauses than are recorded.
    Conjunction,
    /// A table has rules that are not compiled: one on tunnel options, or too many that differ
    /// only in their priority.
    Uncompiled,
    /// More rules are pending after a resubmission than are recorded.
    Resubmit,
    /// An action left a packet that compiled tables do not match, or requests the slow path.
    Action,
    /// A capture records the packet.
    Capture,
    /// A table is configured to continue in the next one after a miss (OpenFlow 1.1 and 1.2).
    MissContinues,
}

impl SlowPathReason {
    /// All reasons, with the names of their counters.
    #[rustfmt::skip]
    pub const ALL: [(Self, &'static str); 6] = [
        (Self::Conjunction,  "slow_path_conjunction"),
        (Self::Uncompiled,   "slow_path_uncompiled_rules"),
        (Self::Resubmit,     "slow_path_resubmit"),
        (Self::Action,       "slow_path_action"),
        (Self::Capture,      "slow_path_capture"),
        (Self::MissContinues, "slow_path_miss_continues"),
    ];
}

/// An operation of an action program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    /// Output to a port, except the ingress port.
    Output(PortNo),
    /// Output to the ingress port.
    InPort,
    /// Output to a port, the ingress port included, by this class of its queueing discipline.
    Enqueue(PortNo, Priority),
    /// Selects the class for later outputs.
    SetQueue(Priority),
    /// Forwarding as a learning switch.
    Normal,
    /// Output to all ports that flood.
    Flood,
    /// Output to all ports.
    All,
    Rewrite(HeaderRewrite),
    /// Writes bits of a general register or of the metadata.
    Write(FieldWrite),
    /// Copies bits between general registers and the metadata.
    Copy {
        from: Subfield,
        to: Subfield,
    },
    /// Puts bits of the ingress port, a general register or the metadata on the stack.
    Push(Subfield),
    /// Takes bits of one of these fields off the stack.
    Pop(Subfield),
    /// Writes the ingress port.
    SetInPort(PortNo),
    /// The interpreter executes the action with the same number, on the frame as it is.
    Turn,
    /// Executes the actions of the action with the same number on a copy of the frame.
    Clone,
    /// Packet-in that pauses the packet: the end of its processing.
    Pause,
    /// The end of processing.
    Exit,
    /// Packet-in.
    Controller(MaxLen),
    /// Sample for the collectors of the action with the same number.
    Sample,
    Group(GroupId),
    Meter(MeterId),
    /// Lookup in a table, and execution of the rule that it finds.
    Resubmit(TableId),
    /// The same in this table, or that of the rule, as if the packet had arrived by this port.
    ResubmitFrom(PortNo, Option<TableId>),
    /// Tracking of the packet by the action with the same number. The packet, or a copy of it,
    /// continues in this table, if there is one, with the fields of its connection.
    Track(Option<TableId>),
    /// Makes the packet one that is not tracked.
    Untrack,
    Nop,
    /// The interpreter executes this action and all after it.
    SlowPath(SlowPathReason),
}

/// Compiled instructions of a rule, in the order of execution (OF 1.3.5, 5.9).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ActionProgram {
    /// Meter of the `meter` instruction.
    pub(crate) meter: Option<MeterId>,
    /// An operation for each action of `apply_actions`, up to the first that is not compiled.
    pub(crate) ops: Box<[Op]>,
    /// Update of the action set.
    pub(crate) action_set: ActionSetUpdate,
    /// Write of `write_metadata`.
    pub(crate) metadata: Option<FieldWrite>,
    /// Table of `goto_table`.
    pub(crate) goto: Option<TableId>,
}

/// A complete action program in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InlineProgram {
    /// The program does not fit in a word.
    None,
    /// `goto_table`.
    Goto(TableId),
    /// Writes of pipeline fields, then `goto_table`.
    WriteGoto(TableId),
    /// Writes of pipeline fields, if any, then a resubmission as the last action.
    WriteResubmit(TableId),
    /// Output to a port, except the ingress port.
    Output(PortNo),
    /// Constant writes of pipeline fields, if any, then `ct` with a table as the last action.
    Track(TableId),
}

impl InlineProgram {
    const GOTO: u32 = 1;
    const WRITE_GOTO: u32 = 2;
    const WRITE_RESUBMIT: u32 = 3;
    const OUTPUT: u32 = 4;
    const TRACK: u32 = 5;

    /// Bits of the table or port.
    const VALUE_BITS: u32 = 28;

    /// Encodes the program. Zero stands for none, also for a port number with more bits.
    pub(crate) const fn encode(self) -> u32 {
        let (kind, value) = match self {
            Self::None => (0, 0),
            Self::Goto(table) => (Self::GOTO, table.0 as u32),
            Self::WriteGoto(table) => (Self::WRITE_GOTO, table.0 as u32),
            Self::WriteResubmit(table) => (Self::WRITE_RESUBMIT, table.0 as u32),
            Self::Output(port) => (Self::OUTPUT, port.0),
            Self::Track(table) => (Self::TRACK, table.0 as u32),
        };
        match value >> Self::VALUE_BITS {
            0 => kind << Self::VALUE_BITS | value,
            _ => 0,
        }
    }

    /// Decodes a word.
    #[inline]
    pub(crate) const fn decode(word: u32) -> Self {
        let value = word & ((1 << Self::VALUE_BITS) - 1);
        let [table, ..] = value.to_le_bytes();
        match word >> Self::VALUE_BITS {
            Self::OUTPUT => Self::Output(PortNo(value)),
            Self::GOTO => Self::Goto(TableId(table)),
            Self::WRITE_GOTO => Self::WriteGoto(TableId(table)),
            Self::WRITE_RESUBMIT => Self::WriteResubmit(TableId(table)),
            Self::TRACK => Self::Track(TableId(table)),
            _ => Self::None,
        }
    }
}

/// Effect of a rule on the action set. As long as it has only outputs, the executor holds it;
/// afterwards the interpreter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ActionSetUpdate {
    Keep,
    Clear,
    /// Writes an output: the last of the written actions, all of which are outputs.
    Output,
    /// Clears the set, then writes an output.
    ClearAndOutput,
    /// Writes actions that are not all outputs.
    Write,
    /// Clears the set, then writes such actions.
    ClearAndWrite,
}

impl ActionSetUpdate {
    /// True if the executor can hold the set afterwards.
    pub(crate) const fn is_plain(self) -> bool {
        !matches!(self, Self::Write | Self::ClearAndWrite)
    }

    /// Updates `set` with the written actions. Returns the new `actset_output`, or `None` if the
    /// set is kept.
    pub(crate) fn apply<'a>(
        self,
        set: &mut Option<&'a Action>,
        write: &'a [Action],
    ) -> Option<PortNo> {
        match self {
            Self::Keep | Self::Write | Self::ClearAndWrite => return None,
            Self::Clear => *set = None,
            Self::Output | Self::ClearAndOutput => *set = write.last(),
        }
        Some(set.and_then(output_port).unwrap_or(PortNo::UNSET))
    }
}

/// Returns the port of an output action, or `None` for other actions.
pub(crate) const fn output_port(action: &Action) -> Option<PortNo> {
    match action {
        Action::Output { port, .. } => Some(*port),
        _ => None,
    }
}

impl ActionProgram {
    /// Compiles instructions.
    pub(crate) fn of(instructions: &Instructions) -> Self {
        let mut ops = Vec::with_capacity(instructions.apply.len());
        for action in &instructions.apply {
            let op = Op::of(action);
            ops.push(op);
            if matches!(op, Op::SlowPath(_)) {
                break;
            }
        }
        let is_plain = instructions.write.iter().all(is_plain_output);
        let action_set = match (instructions.clear, instructions.write.is_empty()) {
            (false, true) => ActionSetUpdate::Keep,
            (true, true) => ActionSetUpdate::Clear,
            (false, false) if is_plain => ActionSetUpdate::Output,
            (true, false) if is_plain => ActionSetUpdate::ClearAndOutput,
            (false, false) => ActionSetUpdate::Write,
            (true, false) => ActionSetUpdate::ClearAndWrite,
        };
        Self {
            ops: ops.into(),
            meter: instructions.meter,
            action_set,
            metadata: instructions.metadata.map(FieldWrite::from),
            goto: instructions.goto,
        }
    }

    /// True if nothing is executed after the operation with this number.
    #[inline]
    pub(crate) fn ends_with(&self, number: usize) -> bool {
        let is_last = number + 1 == self.ops.len();
        is_last
            && self.action_set == ActionSetUpdate::Keep
            && self.metadata.is_none()
            && self.goto.is_none()
    }

    /// Compiles instructions, and encodes the inline program.
    pub(crate) fn with_inline_program(instructions: &Instructions) -> (Self, u32) {
        let program = Self::of(instructions);
        let inline = program.inline().encode();
        (program, inline)
    }

    /// The same program in one word, if it fits.
    pub(crate) fn inline(&self) -> InlineProgram {
        let is_plain = self.action_set == ActionSetUpdate::Keep && self.metadata.is_none();
        match (&*self.ops, self.goto) {
            _ if self.meter.is_some() => InlineProgram::None,
            ([], Some(table)) if is_plain => InlineProgram::Goto(table),
            ([Op::Output(port)], None) if is_plain => InlineProgram::Output(*port),
            (writes, Some(table))
                if self.action_set.is_plain() && writes.iter().all(Op::is_field_write) =>
            {
                InlineProgram::WriteGoto(table)
            }
            ([writes @ .., Op::Resubmit(table)], None)
                if is_plain && writes.iter().all(Op::is_field_write) =>
            {
                InlineProgram::WriteResubmit(*table)
            }
            ([writes @ .., Op::Track(Some(table))], None)
                if is_plain && writes.iter().all(Op::is_constant_write) =>
            {
                InlineProgram::Track(*table)
            }
            _ => InlineProgram::None,
        }
    }
}

impl Op {
    pub(crate) fn of(action: &Action) -> Self {
        match action {
            Action::Output { port, max_len } => Self::of_output(*port, *max_len),
            Action::Enqueue { port, queue } => Self::of_enqueue(*port, *queue),
            Action::SetQueue(queue) => {
                Priority::for_queue(*queue).map_or(Self::Nop, Self::SetQueue)
            }
            Action::Group(group) => Self::Group(*group),
            Action::Meter(meter) => Self::Meter(*meter),
            Action::SetField { field, value, mask } => Self::of_field(*field, *value, *mask),
            Action::Extended(extension) => Self::of_extension(extension),
            other => HeaderRewrite::of(other).map_or(Self::Turn, Self::Rewrite),
        }
    }

    /// True if it writes pipeline fields, or does nothing.
    const fn is_field_write(&self) -> bool {
        matches!(self, Self::Write(_) | Self::Copy { .. } | Self::Nop)
    }

    /// True if it writes constants to pipeline fields, or does nothing, so that it may be executed
    /// twice.
    const fn is_constant_write(&self) -> bool {
        matches!(self, Self::Write(_) | Self::Nop)
    }

    const fn of_output(port: PortNo, max_len: MaxLen) -> Self {
        match port {
            PortNo::IN_PORT => Self::InPort,
            PortNo::NORMAL => Self::Normal,
            PortNo::FLOOD => Self::Flood,
            PortNo::ALL => Self::All,
            PortNo::CONTROLLER => Self::Controller(max_len),
            PortNo::TABLE => Self::SlowPath(SlowPathReason::Resubmit),
            port => Self::Output(port),
        }
    }

    /// A queue number that no port can have selects no queue.
    const fn of_enqueue(port: PortNo, queue: QueueId) -> Self {
        match Priority::for_queue(queue) {
            Some(priority) => Self::Enqueue(port, priority),
            None => Self::of_output(port, MaxLen::WHOLE),
        }
    }

    /// Writes bits of a field.
    pub(crate) fn of_field(field: Field, value: u128, mask: u128) -> Self {
        if let Some(write) = FieldWrite::of_field(field, value, mask) {
            return Self::Write(write);
        }
        if mask != field.full_mask() {
            return Self::Turn;
        }
        if let Some(port) = written_port(field, value) {
            return Self::SetInPort(port);
        }
        HeaderRewrite::of_field(field, value).map_or(Self::Turn, Self::Rewrite)
    }

    fn of_extension(extension: &Extension) -> Self {
        match extension {
            Extension::Load { to, value } => {
                Self::of_field(to.field(), to.place(u128::from(*value)), to.mask())
            }
            Extension::Move { from, to } if is_readable(*from) && is_writable(*to) => Self::Copy {
                from: *from,
                to: *to,
            },
            Extension::Push(from) if is_readable(*from) || is_in_port(*from) => Self::Push(*from),
            Extension::Pop(to) if is_writable(*to) || is_in_port(*to) => Self::Pop(*to),
            Extension::Controller(action) if action.pause => Self::Pause,
            Extension::Exit => Self::Exit,
            Extension::Clone(_) => Self::Clone,
            Extension::Resubmit {
                port: PortNo::IN_PORT,
                table: Some(table),
            } => Self::Resubmit(*table),
            Extension::Resubmit { port, table } => Self::ResubmitFrom(*port, *table),
            Extension::ResubmitConnection { .. } => Self::SlowPath(SlowPathReason::Resubmit),
            Extension::Sample(sample) if sample.sources().next().is_none() => Self::Sample,
            Extension::PopQueue => Self::SetQueue(Priority::NONE),
            Extension::Conntrack(action) => Self::Track(action.table),
            Extension::ConntrackClear => Self::Untrack,
            // Clauses are evaluated by the lookup; `nat` is an argument of `ct`.
            Extension::Note(_) | Extension::Conjunction { .. } | Extension::Nat(_) => Self::Nop,
            Extension::DebugSlow | Extension::DebugRecirc => Self::SlowPath(SlowPathReason::Action),
            _ => Self::Turn,
        }
    }
}

/// True if these are bits of general registers or of the metadata.
pub(crate) fn is_readable(part: Subfield) -> bool {
    let field = part.field();
    field.register().is_some()
        || field == Field::Metadata
        || matches!(field.view(), Some(FieldView::Registers { .. }))
}

/// True if these are such bits, and in one word of the key.
fn is_writable(part: Subfield) -> bool {
    is_readable(part) && FieldWrite::of_field(part.field(), 0, part.mask()).is_some()
}

/// True if this is the whole ingress port.
fn is_in_port(part: Subfield) -> bool {
    part.is_whole() && matches!(part.field(), Field::InPort | Field::NxInPort)
}

/// Returns the port that a write of this value makes the ingress port, if the field is one.
pub(crate) fn written_port(field: Field, value: u128) -> Option<PortNo> {
    let [.., a, b, c, d] = value.to_be_bytes();
    match field {
        Field::InPort => Some(PortNo(u32::from_be_bytes([a, b, c, d]))),
        Field::NxInPort => Some(PortNo(widen(u16::from_be_bytes([c, d])))),
        _ => None,
    }
}

/// True if the action is an output that needs nothing but the port number.
fn is_plain_output(action: &Action) -> bool {
    match action {
        Action::Output { port, max_len } => {
            let op = Op::of_output(*port, *max_len);
            matches!(op, Op::Output(_) | Op::InPort)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests;
