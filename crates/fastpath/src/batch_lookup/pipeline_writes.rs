//! Writes of rules whose packets continue in the batch: pipeline fields, the action set, and the
//! resubmissions after them.

use super::{BatchLookup, RuleHits};
use crate::action_program::{ActionProgram, ActionSetUpdate, Op};
use crate::batch_mask::{BatchMask, LOOKUP_BATCH};
use crate::frame_progress::BATCH_RESUBMITS_MAX;

impl<'a> BatchLookup<'a> {
    /// Records a resubmission, after the writes before it. Returns `None` if a packet has too
    /// many.
    #[inline(never)]
    pub(super) fn resubmit(&mut self, hits: RuleHits<'a>) -> Option<()> {
        let progress = &self.progress;
        let has_room = |index: usize| {
            usize::from(progress[index % LOOKUP_BATCH].resubmits) < BATCH_RESUBMITS_MAX
        };
        if !hits.packets.into_iter().all(has_room) {
            return None;
        }
        self.write_fields(hits)?;
        let none = || [[None; BATCH_RESUBMITS_MAX]; LOOKUP_BATCH];
        let resubmitted = self.resubmitted.get_or_insert_with(none);
        for index in hits.packets {
            let progress = &mut self.progress[index % LOOKUP_BATCH];
            let slot = &mut resubmitted[index % LOOKUP_BATCH][usize::from(progress.resubmits)];
            *slot = Some(hits.rule);
            progress.resubmits += 1;
        }
        Some(())
    }

    /// Executes the writes of a rule to pipeline fields and to the action set.
    #[inline(never)]
    pub(super) fn write_fields(&mut self, hits: RuleHits<'a>) -> Option<()> {
        let RuleHits { rule, packets } = hits;
        let program = rule
            .instructions
            .program_slot()
            .program::<ActionProgram>()?;
        self.state.memory.written.insert(packets);
        let keys = &mut *self.state.memory.keys;
        for op in &*program.ops {
            match *op {
                Op::Write(write) => {
                    packets.for_each(|index| keys[index % LOOKUP_BATCH].write(write));
                }
                Op::Copy { from, to } => {
                    packets.for_each(|index| keys[index % LOOKUP_BATCH].copy(from, to));
                }
                _ => {}
            }
        }
        for index in packets.filter(|_| program.action_set != ActionSetUpdate::Keep) {
            let set = &mut self.progress[index % LOOKUP_BATCH].action_set;
            if let Some(port) = program.action_set.apply(set, &rule.instructions.write) {
                keys[index % LOOKUP_BATCH].set_action_set_output(port);
            }
            self.with_action_set = self.with_action_set.difference(BatchMask::single(index));
            self.with_action_set
                .insert(BatchMask::single_if(index, set.is_some()));
        }
        if let Some(write) = program.metadata {
            packets.for_each(|index| keys[index % LOOKUP_BATCH].write(write));
        }
        Some(())
    }
}
