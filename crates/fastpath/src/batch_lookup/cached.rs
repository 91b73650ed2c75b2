//! Use of the flow cache by the batch lookup: packets that hit it, and packets that are recorded
//! for it.

use base::PortNo;
use pipeline::Totals;

use super::{BatchLookup, PacketGroup, RuleHits};
use crate::batch_mask::{BatchMask, LOOKUP_BATCH};
use crate::flow_cache::FlowRecorder;

impl<'a> BatchLookup<'a> {
    /// Looks up a group in the flow cache, if it is enabled. Returns the packets that missed; some
    /// of them are recorded.
    #[inline]
    pub(super) fn look_up_cached(&mut self, group: PacketGroup) -> PacketGroup {
        // Cached flows are those of packets without tunnel fields.
        let enabled = self.state.memory.flow_cache.enabled();
        let Some((mask, _)) = enabled.filter(|_| self.state.ingress_fields.is_none()) else {
            return group;
        };
        // One branch here replaces one for each packet.
        let missed = match mask.word_pairs {
            0 | 1 => self.look_up_cached_words::<2>(group.packets),
            2 => self.look_up_cached_words::<4>(group.packets),
            3 => self.look_up_cached_words::<6>(group.packets),
            _ => self.look_up_cached_words::<8>(group.packets),
        };
        let flow_cache = &mut self.state.memory.flow_cache;
        flow_cache.count_lookups(group.packets, missed);
        match missed.is_empty() {
            true => PacketGroup {
                packets: missed,
                totals: Totals::default(),
                ..group
            },
            false => self.start_recording(group, missed),
        }
    }

    /// Looks up packets by keys of `N` words. Returns those that missed.
    #[inline(never)]
    fn look_up_cached_words<const N: usize>(&mut self, packets: BatchMask) -> BatchMask {
        let (memory, egress) = (&mut *self.state.memory, &mut self.state.egress);
        let Some((mask, entries)) = memory.flow_cache.enabled() else {
            return packets;
        };
        let now = self.state.context.now;
        let mut missed = BatchMask::EMPTY;
        for index in packets {
            let progress = &mut self.progress[index % LOOKUP_BATCH];
            let key = mask.key::<N>(&memory.keys[index % LOOKUP_BATCH]);
            progress.egress =
                entries.look_up(&key, (progress.weight, now), |port| egress.may_egress(port));
            missed.insert(BatchMask::single_if(index, progress.egress.is_none()));
        }
        missed
    }

    #[inline(never)]
    fn start_recording(&mut self, group: PacketGroup, missed: BatchMask) -> PacketGroup {
        let memory = &mut *self.state.memory;
        if let Some((mask, _)) = memory.flow_cache.enabled() {
            self.recorder = Some(FlowRecorder::of(missed, mask, &memory.keys));
        }
        PacketGroup {
            packets: missed,
            totals: self.weigh_in(missed, &group),
            ..group
        }
    }

    /// Records the rule of those packets that are recorded, and their egress port if they leave.
    #[inline]
    pub(super) fn record_hits(&mut self, hits: RuleHits<'a>, egress: Option<PortNo>) {
        if self.recorder.is_some() {
            self.record_recorded_hits(hits, egress);
        }
    }

    #[inline(never)]
    fn record_recorded_hits(&mut self, hits: RuleHits<'a>, egress: Option<PortNo>) {
        let RuleHits { rule, packets } = hits;
        let enabled = self.state.memory.flow_cache.enabled();
        if let (Some(recorder), Some((_, entries))) = (&mut self.recorder, enabled) {
            recorder.record(packets, rule, egress, entries);
        }
    }
}
