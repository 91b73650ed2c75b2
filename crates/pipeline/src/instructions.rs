//! Instructions of rules, in the form that rules share.
//!
//! A controller with a million rules has them do a few hundred different things. Rules with equal
//! instructions share one [`SharedInstructions`], together with the facts that every flow-mod needs
//! and that take a walk over all actions to compute.

use std::any::Any;
use std::fmt;
use std::ops::Deref;

use base::{GroupId, MeterId};
use flow::field::Depth;
use flow::{Field, Instructions, Refusal};

use action_facts::{
    all_fields, depth_of, groups_of, is_clause, meters_of, repeats_conjunction, restricted_learns,
};
use check::verdict_on;
use program_slot::ProgramSlot;

pub(crate) mod action_facts;
pub(crate) mod action_set;
pub(crate) mod check;
pub(crate) mod field_facts;
pub(crate) mod interner;
pub(crate) mod match_facts;
pub(crate) mod program_slot;

/// Immutable instructions, their facts, and a slot for the compiled form.
pub struct SharedInstructions {
    instructions: Instructions,
    facts: InstructionFacts,
    program_slot: ProgramSlot,
}

impl SharedInstructions {
    pub(crate) fn new(instructions: Instructions) -> Self {
        Self {
            facts: InstructionFacts::of(&instructions),
            instructions,
            program_slot: ProgramSlot::default(),
        }
    }

    /// Returns the facts of the instructions.
    pub(crate) const fn facts(&self) -> &InstructionFacts {
        &self.facts
    }

    /// Returns the slot for an engine's compiled form.
    #[inline]
    #[must_use]
    pub const fn program_slot(&self) -> &ProgramSlot {
        &self.program_slot
    }

    /// Stores the compiled form that `compile` returns, unless one is stored already.
    pub fn compile<T: Any + Send + Sync>(&self, compile: impl FnOnce(&Instructions) -> (T, u32)) {
        self.program_slot.fill(&self.instructions, compile);
    }
}

/// Facts of instructions. Actions within `clone` count as their own.
#[derive(Debug)]
pub(crate) struct InstructionFacts {
    /// The groups that they name.
    pub(crate) groups: Box<[GroupId]>,
    /// The meters that they name.
    pub(crate) meters: Box<[MeterId]>,
    /// The result of the checks, if it does not depend on the match.
    pub(crate) verdict: Option<Result<(), Refusal>>,
    /// The parse depth that they need.
    pub(crate) depth: Depth,
    /// True if an action is a clause of a conjunction.
    pub(crate) is_clause: bool,
    /// True if several actions are clauses of one conjunction.
    pub(crate) repeats_conjunction: bool,
    /// True if a `learn` action limits or owns the rules that it adds.
    pub(crate) has_restricted_learn: bool,
    /// True if an action reads or writes a tunnel option.
    pub(crate) has_options: bool,
}

impl InstructionFacts {
    fn of(instructions: &Instructions) -> Self {
        let actions = || instructions.actions();
        let mut is_no_option = |field: Field| field.option().is_none();
        let mut meters: Vec<_> = instructions.meter.into_iter().collect();
        meters.extend(meters_of(actions()));
        Self {
            groups: groups_of(actions()).collect(),
            meters: meters.into(),
            verdict: verdict_on(instructions),
            depth: actions().map(depth_of).max().unwrap_or_default(),
            is_clause: instructions.apply.iter().any(is_clause),
            repeats_conjunction: repeats_conjunction(&instructions.apply),
            has_restricted_learn: !restricted_learns(actions()).is_empty(),
            has_options: !actions().all(|action| all_fields(action, &mut is_no_option)),
        }
    }
}

impl Deref for SharedInstructions {
    type Target = Instructions;

    #[inline]
    fn deref(&self) -> &Instructions {
        &self.instructions
    }
}

/// Facts and compiled form follow from the instructions.
impl PartialEq for SharedInstructions {
    fn eq(&self, other: &Self) -> bool {
        self.instructions == other.instructions
    }
}

impl Eq for SharedInstructions {}

impl fmt::Debug for SharedInstructions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.instructions.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn program_slot_keeps_the_first_program() {
        let instructions = SharedInstructions::new(Instructions::default());
        let slot = instructions.program_slot();
        assert_eq!((slot.program::<u32>(), slot.inline_program()), (None, 0));
        instructions.compile(|_| (7_u32, 70));
        instructions.compile(|_| (8_u32, 80));
        assert_eq!(
            (slot.program::<u32>(), slot.inline_program()),
            (Some(&7), 70)
        );
        assert_eq!(slot.program::<u64>(), None);
        assert_eq!(
            instructions,
            SharedInstructions::new(Instructions::default())
        );
    }
}
