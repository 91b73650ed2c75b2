//! What the latest rules do. A controller that adds a million rules has them do a
//! few hundred different things, so a rule shares its instructions with one before
//! it that does the same, if that was not too long ago.
//!
//! Nothing depends on it but the memory that rules take.

use std::hash::BuildHasher;
use std::sync::{Arc, Weak};

use flow::Instructions;
use foldhash::fast::FixedState;

use super::SharedInstructions;

/// How many instructions are remembered: an output to each port of a large bridge,
/// with a few rewrites before it. They take 8 kB, and what they point to goes with the
/// last rule that has it.
const REMEMBERED: usize = 1024;

/// Instructions, each in the place that its hash names.
#[derive(Debug, Default)]
pub(crate) struct Interner {
    /// Empty until the first rule comes.
    places: Vec<Weak<SharedInstructions>>,
}

/// A clone remembers nothing: a snapshot is not written to, and one that is taken back
/// learns anew.
impl Clone for Interner {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl Interner {
    /// `instructions`, or those equal to them that a rule has.
    pub(crate) fn intern(&mut self, instructions: &Instructions) -> Arc<SharedInstructions> {
        if self.places.is_empty() {
            self.places.resize(REMEMBERED, Weak::new());
        }
        let number = FixedState::default().hash_one(instructions) % REMEMBERED as u64;
        let place = usize::try_from(number).expect("there are not so many places");
        let known = self.places[place].upgrade();
        if let Some(known) = known.filter(|known| ***known == *instructions) {
            return known;
        }
        let new = Arc::new(SharedInstructions::new(instructions.clone()));
        self.places[place] = Arc::downgrade(&new);
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
    fn what_is_equal_is_shared_while_a_rule_has_it() {
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
    fn more_than_can_be_remembered_is_right_all_the_same() {
        let mut recent = Interner::default();
        let ports = 0..5 * u32::try_from(REMEMBERED).expect("small");
        let kept: Vec<_> = ports.map(|port| recent.intern(&output(port))).collect();
        for (port, instructions) in (0..).zip(&kept) {
            assert_eq!(***instructions, output(port));
        }
    }
}
