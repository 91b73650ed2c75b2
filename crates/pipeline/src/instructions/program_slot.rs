//! A slot in which an engine stores its compiled form of instructions.
//!
//! The reference model never reads it: a pipeline behaves the same whether slots are filled or not.
//! The slot is here because instructions are shared by many rules and reached from every rule: a
//! table in the engine would cost a lookup per packet, and a pointer per rule 8 MB for a million
//! rules.

use std::any::Any;
use std::fmt;
use std::sync::OnceLock;

use flow::Instructions;

/// A slot that is written once and lives as long as the instructions.
#[derive(Default)]
pub struct ProgramSlot(OnceLock<CompiledProgram>);

/// The contents of a slot.
struct CompiledProgram {
    /// A word whose meaning only the engine knows.
    inline_program: u32,
    program: Box<dyn Any + Send + Sync>,
}

impl ProgramSlot {
    /// Returns the program, if it was stored and is a `T`.
    #[inline]
    #[must_use]
    pub fn program<T: Any + Send + Sync>(&self) -> Option<&T> {
        self.0.get()?.program.downcast_ref()
    }

    /// Returns the word that was stored with the program, or zero.
    #[inline]
    #[must_use]
    pub fn inline_program(&self) -> u32 {
        self.0.get().map_or(0, |program| program.inline_program)
    }

    /// Stores the program and word that `compile` returns, unless the slot is filled.
    pub(crate) fn fill<T: Any + Send + Sync>(
        &self,
        instructions: &Instructions,
        compile: impl FnOnce(&Instructions) -> (T, u32),
    ) {
        self.0.get_or_init(|| {
            let (program, inline_program) = compile(instructions);
            CompiledProgram {
                inline_program,
                program: Box::new(program),
            }
        });
    }
}

impl fmt::Debug for ProgramSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProgramSlot")
            .field("inline_program", &self.inline_program())
            .finish_non_exhaustive()
    }
}
