//! Groups of packets that are looked up in a table together, and the results.

use base::TableId;
use pipeline::{Rule, Totals};

use crate::batch_mask::{BatchMask, LOOKUP_BATCH};
use crate::frame_progress::FrameProgress;

/// Packets that are looked up in a table together.
#[derive(Clone, Copy, Debug)]
pub(super) struct PacketGroup {
    pub(super) packets: BatchMask,
    /// Sum of their weights.
    pub(super) totals: Totals,
    pub(super) table: TableId,
    /// Lookups of each packet that are not yet added to its progress.
    pub(super) lookups: u16,
}

/// Packets that continue in other tables. The table of each packet is in its progress only if
/// they continue in different tables.
#[derive(Clone, Copy, Debug)]
pub(super) struct NextTables {
    pub(super) packets: BatchMask,
    /// Sum of their weights, set when the set is complete.
    pub(super) totals: Totals,
    /// The first and the last of the tables.
    pub(super) first: TableId,
    pub(super) last: TableId,
}

impl NextTables {
    pub(super) const NONE: Self = Self {
        packets: BatchMask::EMPTY,
        totals: Totals {
            packets: 0,
            bytes: 0,
        },
        first: TableId(u8::MAX),
        last: TableId::FIRST,
    };

    /// True if all packets continue in the same table, or there are none.
    #[inline]
    pub(super) fn is_one(&self) -> bool {
        self.first >= self.last
    }

    /// Adds packets that continue in `table`, without their weights.
    #[inline]
    pub(super) fn add(
        &mut self,
        packets: BatchMask,
        table: TableId,
        progress: &mut [FrameProgress<'_>; LOOKUP_BATCH],
    ) {
        if (self.first, self.last) != (table, table) {
            self.add_table(packets, table, progress);
        }
        self.packets.insert(packets);
    }

    /// Adds a table in which these packets continue.
    #[inline(never)]
    fn add_table(
        &mut self,
        packets: BatchMask,
        table: TableId,
        progress: &mut [FrameProgress<'_>; LOOKUP_BATCH],
    ) {
        let (before, was_one) = (*self, self.is_one());
        self.first = before.first.min(table);
        self.last = before.last.max(table);
        if !self.is_one() {
            if was_one {
                before
                    .packets
                    .for_each(|index| progress[index].table = before.first);
            }
            packets.for_each(|index| progress[index].table = table);
        }
    }
}

/// Packets of a group that match the same rule.
#[derive(Clone, Copy, Debug)]
pub(super) struct RuleHits<'a> {
    pub(super) rule: &'a Rule,
    pub(super) packets: BatchMask,
}

/// Result of a group in its table.
#[derive(Clone, Copy, Debug)]
pub(super) struct TableResult {
    pub(super) group: PacketGroup,
    pub(super) next: NextTables,
    /// Packets that leave by a port, with nothing else to do.
    pub(super) forwarded: BatchMask,
    /// Packets to track, whose rule is in their progress.
    pub(super) tracked: BatchMask,
    /// True if no packet of the batch is recorded for the flow cache or has an action set.
    pub(super) is_plain: bool,
}
