//! Continuation of a paused frame (`ovs-actions(7)`, controller: pause).
//!
//! The switch stores nothing about such a frame. The packet-in carries the complete state, and a
//! continuation that a controller sends back is validated like any other input.

use base::{Cookie, TableId};

use crate::action::{Action, Instructions};
use crate::wide::Wide;

/// State of a paused frame.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Continuation {
    /// The stack, the last pushed last.
    pub stack: Vec<Wide>,
    /// Remaining instructions of the rules in progress, the innermost first.
    pub steps: Vec<ContinuationStep>,
    /// Action set, if the end of the pipeline executes it; the action set of a clone never is.
    pub set: Option<Vec<Action>>,
    /// Mirrors that have copied the frame, one bit for each.
    pub mirrors: u32,
}

/// Remaining instructions of one rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContinuationStep {
    /// The table the rule is in.
    pub table: TableId,
    /// Cookie of the rule; [`Cookie::NONE`] for a packet-out.
    pub cookie: Cookie,
    /// Remaining instructions.
    pub rest: Instructions,
}

/// Largest length of a continuation: half of the longest message, which leaves space for an
/// ordinary frame.
pub const CONTINUATION_BYTES_MAX: usize = 1 << 15;

impl Continuation {
    /// All remaining actions, applied and written.
    pub fn actions(&self) -> impl Iterator<Item = &Action> + Clone {
        let left = self.steps.iter().flat_map(|step| step.rest.actions());
        left.chain(self.set.iter().flatten())
    }

    /// Remaining actions in the action set, now or later.
    pub fn written(&self) -> impl Iterator<Item = &Action> {
        let left = self.steps.iter().flat_map(|step| &step.rest.write);
        left.chain(self.set.iter().flatten())
    }

    /// Upper bound of the encoded length, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        /// Header of an entry, the table and cookie of a rule, and padding.
        const EACH: usize = 24;
        let text = |instructions: &Instructions| instructions.to_string().len();
        let steps: usize = self.steps.iter().map(|step| EACH + text(&step.rest)).sum();
        let set = self.set.clone().map(Instructions::apply);
        let set = set.map_or(0, |set| EACH + text(&set));
        let entries = self.stack.iter().map(|entry| EACH + entry.width());
        3 * EACH + entries.sum::<usize>() + steps + set
    }
}
