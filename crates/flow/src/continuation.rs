//! What is left to be done with a frame that waits for a controller
//! (`ovs-actions(7)`, controller: pause).
//!
//! The switch keeps nothing of such a frame. All of it goes with the message, and
//! what comes back is judged as what a controller might have made up.

use base::{Cookie, TableId};

use crate::action::{Action, Instructions};
use crate::wide::Wide;

/// What is left to be done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Continuation {
    /// The stack, the last pushed last.
    pub stack: Vec<Wide>,
    /// What is left of the rules that were being done, the innermost first.
    pub steps: Vec<ContinuationStep>,
    /// The action set, if it is executed in the end; a copy's never is.
    pub set: Option<Vec<Action>>,
}

/// What is left of one rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContinuationStep {
    /// The table the rule is in.
    pub table: TableId,
    /// Its cookie; [`Cookie::NONE`] of a packet-out.
    pub cookie: Cookie,
    /// What is left to be done, in its order.
    pub rest: Instructions,
}

/// The most bytes of a continuation: half of the longest message, so that a frame of
/// any ordinary length has room beside it.
pub const CONTINUATION_BYTES_MAX: usize = 1 << 15;

impl Continuation {
    /// All actions that are left, applied and written.
    pub fn actions(&self) -> impl Iterator<Item = &Action> + Clone {
        let left = self.steps.iter().flat_map(|step| step.rest.actions());
        left.chain(self.set.iter().flatten())
    }

    /// Those that are in an action set, or will be.
    pub fn written(&self) -> impl Iterator<Item = &Action> {
        let left = self.steps.iter().flat_map(|step| &step.rest.write);
        left.chain(self.set.iter().flatten())
    }

    /// About how many bytes it takes to tell it: at least as many as it does take.
    #[must_use]
    pub fn bytes(&self) -> usize {
        /// A head of its own, the place of the rule, and padding.
        const EACH: usize = 24;
        let text = |instructions: &Instructions| instructions.to_string().len();
        let steps: usize = self.steps.iter().map(|step| EACH + text(&step.rest)).sum();
        let set = self.set.clone().map(Instructions::apply);
        let set = set.map_or(0, |set| EACH + text(&set));
        let entries = self.stack.iter().map(|entry| EACH + entry.width());
        2 * EACH + entries.sum::<usize>() + steps + set
    }
}
