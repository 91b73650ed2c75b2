//! What rules do: instructions, which rules that do the same share, with what is asked of
//! every rule that comes or goes and takes a walk along all actions to tell, and room for
//! what a compiler has made of them. So both are made once and found without a search.

use std::any::Any;
use std::fmt;
use std::ops::Deref;
use std::sync::OnceLock;

use base::{GroupId, MeterId};
use flow::field::Depth;
use flow::{Field, Instructions, Refusal};

use action_facts::{all_fields, depth_of, groups_of, is_clause, meters_of, restricted_learns};
use check::verdict_on;

pub(crate) mod action_facts;
pub(crate) mod action_set;
pub(crate) mod check;
pub(crate) mod field_facts;
pub(crate) mod interner;
pub(crate) mod match_facts;

/// Instructions, and what was made of them.
pub struct SharedInstructions {
    instructions: Instructions,
    said: InstructionFacts,
    compiled: OnceLock<CompiledSlot>,
}

/// What a compiler has made of instructions.
struct CompiledSlot {
    inline_program: u32,
    program: Box<dyn Any + Send + Sync>,
}

impl SharedInstructions {
    pub(crate) fn new(instructions: Instructions) -> Self {
        Self {
            said: InstructionFacts::by(&instructions),
            instructions,
            compiled: OnceLock::new(),
        }
    }

    /// What the instructions say.
    pub(crate) const fn facts(&self) -> &InstructionFacts {
        &self.said
    }

    /// What was made of the instructions, if a `T` was.
    #[inline]
    #[must_use]
    pub fn compiled<T: Any + Send + Sync>(&self) -> Option<&T> {
        self.compiled.get()?.program.downcast_ref()
    }

    /// Where [`SharedInstructions::inline_program`] is, for those who want that memory near beforehand.
    #[inline]
    #[must_use]
    pub fn prefetch_target(&self) -> &impl Sized {
        &self.compiled
    }

    /// What was made of the instructions in a word, which only their compiler
    /// understands; zero if nothing was.
    #[inline]
    #[must_use]
    pub fn inline_program(&self) -> u32 {
        self.compiled
            .get()
            .map_or(0, |compiled| compiled.inline_program)
    }

    /// Has `make` make something of the instructions, and its inline_program, if nothing was made
    /// yet. It stays as long as they do.
    pub fn compile<T: Any + Send + Sync>(&self, make: impl FnOnce(&Instructions) -> (T, u32)) {
        self.compiled.get_or_init(|| {
            let (program, inline_program) = make(&self.instructions);
            let program = Box::new(program);
            CompiledSlot {
                inline_program,
                program,
            }
        });
    }
}

/// What instructions say, those within others among them.
#[derive(Debug)]
pub(crate) struct InstructionFacts {
    /// The groups that they name.
    pub(crate) groups: Box<[GroupId]>,
    /// The meters that they name.
    pub(crate) meters: Box<[MeterId]>,
    /// Whether the actions can be what the controller means, if that does not depend on
    /// the match.
    pub(crate) verdict: Option<Result<(), Refusal>>,
    /// How deep a frame must be read for them.
    pub(crate) depth: Depth,
    /// Whether one is a clause of a conjunction.
    pub(crate) is_clause: bool,
    /// True if a `learn` action limits or owns the rules that it adds.
    pub(crate) has_restricted_learn: bool,
    /// Whether one is about the field of a tunnel option.
    pub(crate) has_options: bool,
}

impl InstructionFacts {
    fn by(instructions: &Instructions) -> Self {
        let actions = || instructions.actions();
        let mut of_no_option = |field: Field| field.option().is_none();
        let mut meters: Vec<_> = instructions.meter.into_iter().collect();
        meters.extend(meters_of(actions()));
        Self {
            groups: groups_of(actions()).collect(),
            meters: meters.into(),
            verdict: verdict_on(instructions),
            depth: actions().map(depth_of).max().unwrap_or_default(),
            is_clause: instructions.apply.iter().any(is_clause),
            has_restricted_learn: !restricted_learns(actions()).is_empty(),
            has_options: !actions().all(|action| all_fields(action, &mut of_no_option)),
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

/// What was made of instructions says nothing that they do not say.
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
    fn what_was_made_first_stays() {
        let deed = SharedInstructions::new(Instructions::default());
        assert_eq!((deed.compiled::<u32>(), deed.inline_program()), (None, 0));
        deed.compile(|_| (7_u32, 70));
        deed.compile(|_| (8_u32, 80));
        assert_eq!(
            (deed.compiled::<u32>(), deed.inline_program()),
            (Some(&7), 70)
        );
        assert_eq!(deed.compiled::<u64>(), None);
        assert_eq!(deed, SharedInstructions::new(Instructions::default()));
    }
}
