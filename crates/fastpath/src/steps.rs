//! What a rule does, as a list of simple steps: made once of the instructions that
//! rules share, and data only, so that it could be written out for another machine.
//!
//! The steps stand in the places of the actions they are made of. What is not compiled
//! is a step too, [`Step::Hand`]: from there on the interpreter goes on.

use base::{GroupId, MeterId, PortNo, Priority, QueueId, TableId};
use flow::{Action, Extension, Field, Instructions, MaxLen, Subfield};

use crate::change::Change;
use crate::lanes::Write;

/// Why a frame is handed to the interpreter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum SlowPathReason {
    /// It fulfils a conjunction, or more clauses than are noted.
    Conjunction,
    /// A table has rules that are not compiled: too many that differ by nothing but their
    /// priority, or one on tunnel options.
    Uncompiled,
    /// A group whose buckets do more than change the frame and send it out of ports.
    Group,
    /// A copy for the controllers, with more than usual.
    Controller,
    /// It is looked up again in the same table or one before, or by another port; or it
    /// has been so often that the interpreter must count.
    Resubmit,
    /// A field is written that is not among those that are compiled, or a part of one.
    Field,
    /// The action set is to do more than to send it out of a port.
    ActionSet,
    /// Another action.
    Action,
    /// Somebody watches it, and is told each step.
    Traced,
}

impl SlowPathReason {
    /// All reasons, with the names that counters bear.
    #[rustfmt::skip]
    pub const ALL: [(Self, &'static str); 9] = [
        (Self::Conjunction,  "interpreted_conjunction"),
        (Self::Uncompiled,   "interpreted_uncompiled_rules"),
        (Self::Group,        "interpreted_group"),
        (Self::Controller,   "interpreted_controller"),
        (Self::Resubmit,     "interpreted_resubmit"),
        (Self::Field,        "interpreted_field"),
        (Self::ActionSet,    "interpreted_action_set"),
        (Self::Action,       "interpreted_action"),
        (Self::Traced,      "interpreted_watched"),
    ];
}

/// One step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Out of a port, but not out of the one it came in by.
    Output(PortNo),
    /// Out of the one it came in by.
    InPort,
    /// Out of a port, that of arrival among them, by this class of its queueing discipline.
    Enqueue(PortNo, Priority),
    /// From now on it is for this class.
    Queue(Priority),
    /// Wherever an ordinary learning switch would send it.
    Normal,
    /// Out of all ports that take a flooded frame.
    Flood,
    /// Out of all ports.
    All,
    /// The frame becomes another.
    Change(Change),
    /// Bits of a general register, or of the metadata.
    Write(Write),
    /// Bits of a register, or of the metadata, from one or the other.
    Copy { from: Subfield, to: Subfield },
    /// To the controllers.
    Report(MaxLen),
    /// To a set of collectors, as the action in this place says.
    Sample,
    /// It goes to a group.
    Group(GroupId),
    /// It is submitted to a meter.
    Meter(MeterId),
    /// It is looked up in this table, if that is a later one, and what is found is done.
    Resubmit(TableId),
    /// Nothing.
    Nothing,
    /// Somebody else does it, and all that is behind it.
    Hand(SlowPathReason),
}

/// What a rule does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Steps {
    /// A step for each action that is applied, up to the first that is not compiled.
    pub(crate) steps: Box<[Step]>,
    /// To which it is submitted first of all.
    pub(crate) meter: Option<MeterId>,
    /// What becomes of the action set.
    pub(crate) set: Set,
    /// What is written into the metadata behind that.
    pub(crate) metadata: Option<Write>,
    /// Where it goes on.
    pub(crate) goto: Option<TableId>,
}

/// All that a rule does, where that is little; most do little.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Brief {
    /// More than can be said in a word.
    Not,
    /// The frame goes on in this table.
    Leads(TableId),
    /// The same, behind what is written that goes with the frame.
    Writes(TableId),
    /// The same as [`Brief::Writes`], or nothing is written, by a resubmission behind which
    /// there is nothing.
    Resubmits(TableId),
    /// The frame leaves by this port, unless it came in there.
    Leaves(PortNo),
}

impl Brief {
    const LEADS: u32 = 1;
    const WRITES: u32 = 2;
    const RESUBMITS: u32 = 3;
    const LEAVES: u32 = 4;

    /// Bits of a word that say which table or port.
    const VALUE_BITS: u32 = 28;

    /// It in one word; zero for none. Of a port of a higher number than fits in nothing is
    /// said.
    pub(crate) const fn word(self) -> u32 {
        let (kind, value) = match self {
            Self::Not => (0, 0),
            Self::Leads(table) => (Self::LEADS, table.0 as u32),
            Self::Writes(table) => (Self::WRITES, table.0 as u32),
            Self::Resubmits(table) => (Self::RESUBMITS, table.0 as u32),
            Self::Leaves(port) => (Self::LEAVES, port.0),
        };
        match value >> Self::VALUE_BITS {
            0 => kind << Self::VALUE_BITS | value,
            _ => 0,
        }
    }

    /// What such a word says.
    #[inline]
    pub(crate) const fn of(word: u32) -> Self {
        let value = word & ((1 << Self::VALUE_BITS) - 1);
        let [table, ..] = value.to_le_bytes();
        match word >> Self::VALUE_BITS {
            Self::LEAVES => Self::Leaves(PortNo(value)),
            Self::LEADS => Self::Leads(TableId(table)),
            Self::WRITES => Self::Writes(TableId(table)),
            Self::RESUBMITS => Self::Resubmits(TableId(table)),
            _ => Self::Not,
        }
    }
}

/// What becomes of the action set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Set {
    /// Nothing.
    Kept,
    /// It is emptied.
    Emptied,
    /// The last of the actions that are written is an output, and so are all of them.
    Output,
    /// It is emptied, and then the same.
    OnlyOutput,
}

impl Set {
    /// Does that to a set, of what is written. Answers the port that it sends the frame to
    /// then, if anything was done.
    pub(crate) fn put<'a>(
        self,
        set: &mut Option<&'a Action>,
        write: &'a [Action],
    ) -> Option<PortNo> {
        match self {
            Self::Kept => return None,
            Self::Emptied => *set = None,
            Self::Output | Self::OnlyOutput => *set = write.last(),
        }
        Some(set.and_then(port_of).unwrap_or(PortNo::UNSET))
    }
}

/// Where an action of an action set sends the frame.
pub(crate) const fn port_of(action: &Action) -> Option<PortNo> {
    match action {
        Action::Output { port, .. } => Some(*port),
        _ => None,
    }
}

impl Steps {
    /// What `instructions` come to.
    pub(crate) fn of(instructions: &Instructions) -> Self {
        let mut steps = Vec::with_capacity(instructions.apply.len() + 1);
        for action in &instructions.apply {
            let step = Step::of(action);
            steps.push(step);
            if matches!(step, Step::Hand(_)) {
                break;
            }
        }
        let set = match (instructions.clear, instructions.write.is_empty()) {
            (false, true) => Set::Kept,
            (true, true) => Set::Emptied,
            (false, false) => Set::Output,
            (true, false) => Set::OnlyOutput,
        };
        let is_handed = matches!(steps.last(), Some(Step::Hand(_)));
        if !is_handed && !instructions.write.iter().all(is_plain_output) {
            steps.push(Step::Hand(SlowPathReason::ActionSet));
        }
        Self {
            steps: steps.into(),
            meter: instructions.meter,
            set,
            metadata: instructions.metadata.map(Write::from),
            goto: instructions.goto,
        }
    }

    /// Whether there is nothing behind the step in this place.
    #[inline]
    pub(crate) fn ends_with(&self, place: usize) -> bool {
        let is_last = place + 1 == self.steps.len();
        is_last && self.set == Set::Kept && self.metadata.is_none() && self.goto.is_none()
    }

    /// The same, and in a word, if that can be.
    pub(crate) fn with_brief(instructions: &Instructions) -> (Self, u32) {
        let steps = Self::of(instructions);
        let brief = steps.brief().word();
        (steps, brief)
    }

    /// The same in a word, if that can be.
    pub(crate) fn brief(&self) -> Brief {
        let is_plain = self.set == Set::Kept && self.metadata.is_none();
        match (&*self.steps, self.goto) {
            _ if self.meter.is_some() => Brief::Not,
            ([], Some(table)) if is_plain => Brief::Leads(table),
            ([Step::Output(port)], None) if is_plain => Brief::Leaves(*port),
            (beside, Some(table)) if beside.iter().all(Step::is_beside) => Brief::Writes(table),
            ([beside @ .., Step::Resubmit(table)], None)
                if is_plain && beside.iter().all(Step::is_beside) =>
            {
                Brief::Resubmits(*table)
            }
            _ => Brief::Not,
        }
    }
}

impl Step {
    pub(crate) fn of(action: &Action) -> Self {
        match action {
            Action::Output { port, max_len } => Self::of_output(*port, *max_len),
            Action::Enqueue { port, queue } => Self::of_enqueue(*port, *queue),
            Action::SetQueue(queue) => {
                Priority::for_queue(*queue).map_or(Self::Nothing, Self::Queue)
            }
            Action::Group(group) => Self::Group(*group),
            Action::Meter(meter) => Self::Meter(*meter),
            Action::SetField { field, value, mask } => Self::of_field(*field, *value, *mask),
            Action::Extended(extension) => Self::of_extension(extension),
            other => Change::of(other).map_or(Self::Hand(SlowPathReason::Action), Self::Change),
        }
    }

    /// Whether it writes what goes with a frame, or nothing.
    const fn is_beside(&self) -> bool {
        matches!(self, Self::Write(_) | Self::Copy { .. } | Self::Nothing)
    }

    const fn of_output(port: PortNo, max_len: MaxLen) -> Self {
        match port {
            PortNo::IN_PORT => Self::InPort,
            PortNo::NORMAL => Self::Normal,
            PortNo::FLOOD => Self::Flood,
            PortNo::ALL => Self::All,
            PortNo::CONTROLLER => Self::Report(max_len),
            PortNo::TABLE => Self::Hand(SlowPathReason::Resubmit),
            port => Self::Output(port),
        }
    }

    /// A queue that no port can have is none.
    const fn of_enqueue(port: PortNo, queue: QueueId) -> Self {
        match Priority::for_queue(queue) {
            Some(priority) => Self::Enqueue(port, priority),
            None => Self::of_output(port, MaxLen::WHOLE),
        }
    }

    /// Writes bits of a field: of one that is in the frame, all of them.
    pub(crate) fn of_field(field: Field, value: u128, mask: u128) -> Self {
        if let Some(write) = Write::of_field(field, value, mask) {
            return Self::Write(write);
        }
        let change = Change::of_field(field, value);
        let change = change.filter(|_| mask == field.full_mask());
        change.map_or(Self::Hand(SlowPathReason::Field), Self::Change)
    }

    fn of_extension(extension: &Extension) -> Self {
        match extension {
            Extension::Load { to, value } => {
                Self::of_field(to.field(), to.place(u128::from(*value)), to.mask())
            }
            Extension::Move { from, to } if is_beside(*from) && is_beside(*to) => Self::Copy {
                from: *from,
                to: *to,
            },
            Extension::Controller(_) => Self::Hand(SlowPathReason::Controller),
            Extension::Resubmit {
                port: PortNo::IN_PORT,
                table: Some(table),
            } => Self::Resubmit(*table),
            Extension::Resubmit { .. } => Self::Hand(SlowPathReason::Resubmit),
            Extension::Sample(_) => Self::Sample,
            Extension::PopQueue => Self::Queue(Priority::NONE),
            Extension::Note(_) => Self::Nothing,
            _ => Self::Hand(SlowPathReason::Action),
        }
    }
}

/// Whether these are bits of a general register or of the metadata.
fn is_beside(part: Subfield) -> bool {
    part.field().register().is_some() || part.field() == Field::Metadata
}

/// Whether the action sends the frame out of a port, and nothing needs to be known for
/// that but which.
fn is_plain_output(action: &Action) -> bool {
    match action {
        Action::Output { port, max_len } => {
            let step = Step::of_output(*port, *max_len);
            matches!(step, Step::Output(_) | Step::InPort)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests;
