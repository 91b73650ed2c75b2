//! Recording of the rules that packets match, until they leave by a port and become cache entries.

use base::PortNo;
use pipeline::Rule;

use super::cache_key::{CACHE_WORDS, CacheKey};
use super::entries::CACHED_RULES_MAX;
use super::{CacheEntries, CacheKeyMask};
use crate::batch_mask::{BatchMask, LOOKUP_BATCH};
use crate::packed_key::PackedKey;

/// Packets of a lookup batch that are recorded: few, so that the cost is low if no flow repeats.
const RECORDED_MAX: usize = 4;

const _: () = assert!(
    RECORDED_MAX <= LOOKUP_BATCH,
    "the recorded packets are of one lookup batch"
);

/// The rules that one packet has matched.
#[derive(Clone, Copy, Debug)]
struct RecordedFlow<'a> {
    /// Index of the packet in the lookup batch.
    index: usize,
    key: CacheKey<CACHE_WORDS>,
    rules: [Option<&'a Rule>; CACHED_RULES_MAX],
    /// Number of rules, which may exceed the limit.
    len: usize,
}

/// Recorded packets of a lookup batch.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FlowRecorder<'a>([Option<RecordedFlow<'a>>; RECORDED_MAX]);

impl<'a> FlowRecorder<'a> {
    /// Starts to record the first of these packets.
    pub(crate) fn of(
        packets: BatchMask,
        mask: &CacheKeyMask,
        keys: &[PackedKey; LOOKUP_BATCH],
    ) -> Self {
        let mut recorder = Self::default();
        for (slot, index) in recorder.0.iter_mut().zip(packets) {
            *slot = Some(RecordedFlow {
                index,
                key: mask.full_key(&keys[index % LOOKUP_BATCH]),
                rules: [None; CACHED_RULES_MAX],
                len: 0,
            });
        }
        recorder
    }

    /// Records the rule that these packets match. With an egress port, the recorded packets among
    /// them become cache entries.
    pub(crate) fn record(
        &mut self,
        packets: BatchMask,
        rule: &'a Rule,
        egress: Option<PortNo>,
        entries: &mut CacheEntries,
    ) {
        let flows = self.0.iter_mut().flatten();
        for flow in flows.filter(|flow| packets.contains(flow.index)) {
            if let Some(slot) = flow.rules.get_mut(flow.len) {
                *slot = Some(rule);
            }
            flow.len += 1;
            if let (Some(port), Some(rules)) = (egress, flow.rules.get(..flow.len)) {
                entries.insert(&flow.key, rules.iter().copied().flatten(), port);
            }
        }
    }
}
