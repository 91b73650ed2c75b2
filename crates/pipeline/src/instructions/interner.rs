//! Interning of instructions: a rule shares the instructions of an earlier one with equal
//! instructions, if that is in a direct-mapped table of recent ones.
//!
//! ```text
//!   hash(instructions) mod 1024 --> | weak | weak | weak | ...     equal: share it
//!                                                                else: replace the entry
//! ```
//!
//! A controller that adds a million rules has them do a few hundred different things. A collision
//! only costs memory: nothing else depends on the table. A lookup costs one hash and one
//! comparison.

use std::hash::BuildHasher;
use std::sync::{Arc, Weak};

use flow::Instructions;
use foldhash::fast::FixedState;

use super::SharedInstructions;

/// Number of table entries: an output to each port of a large bridge, with a few rewrites before
/// it. The table takes 8 kB; instructions are freed with their last rule.
const ENTRIES: usize = 1024;

/// The table of recent instructions.
#[derive(Debug, Default)]
pub(crate) struct Interner {
    /// Entries by hash; empty until the first rule is added.
    entries: Vec<Weak<SharedInstructions>>,
}

/// A clone starts empty: a snapshot is not written to, and a restored one fills its own table.
impl Clone for Interner {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl Interner {
    /// Returns the shared form of `instructions`.
    pub(crate) fn intern(&mut self, instructions: &Instructions) -> Arc<SharedInstructions> {
        if self.entries.is_empty() {
            self.entries.resize(ENTRIES, Weak::new());
        }
        let slot = FixedState::default().hash_one(instructions) % ENTRIES as u64;
        let index = usize::try_from(slot).expect("there are not so many entries");
        let known = self.entries[index].upgrade();
        if let Some(known) = known.filter(|known| ***known == *instructions) {
            return known;
        }
        let new = Arc::new(SharedInstructions::new(instructions.clone()));
        self.entries[index] = Arc::downgrade(&new);
        new
    }
}

#[cfg(test)]
mod tests {
    use base::PortNo;
    use flow::Action;

    use super::*;

    fn output(port: u32) -> Instructions {
        Instructions::apply(vec![Action::output(PortNo(port))])
    }

    #[test]
    fn equal_instructions_are_shared_while_a_rule_has_them() {
        let mut recent = Interner::default();
        let first = recent.intern(&output(1));
        assert!(Arc::ptr_eq(&first, &recent.intern(&output(1))));
        assert_eq!(**recent.intern(&output(2)), output(2));
        let weak = Arc::downgrade(&first);
        drop(first);
        assert!(weak.upgrade().is_none());
        assert_eq!(**recent.intern(&output(1)), output(1));
    }

    #[test]
    fn interner_collisions_keep_instructions_correct() {
        let mut recent = Interner::default();
        let ports = 0..5 * u32::try_from(ENTRIES).expect("small");
        let kept: Vec<_> = ports.map(|port| recent.intern(&output(port))).collect();
        for (port, instructions) in (0..).zip(&kept) {
            assert_eq!(***instructions, output(port));
        }
    }
}
