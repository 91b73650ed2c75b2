//! Use of the walk cache by the batch lookup: packets whose walk is cached, and packets whose walk is
//! recorded, leave the batch for the executor.

use base::PortNo;
use conntrack::{Conntrack, SteadyNat};
use packet::{Frame, set_plain_hop};
use sys::cache::prefetch;

use super::track::begin_lookup_in;
use super::{BatchLookup, PacketGroup};
use crate::batch_mask::{BatchMask, LOOKUP_BATCH};
use crate::egress_cache::EgressCache;
use crate::walk_cache::{FROM_PORT, ShortWalk, WalkKey, WalkSearch};

/// Packets of a lookup batch that leave it before the first table.
#[derive(Debug)]
pub(crate) struct PacketWalks {
    /// Packets with a walk, and the numbers of their walks.
    cached: BatchMask,
    numbers: [u16; LOOKUP_BATCH],
    /// Packets whose walk is recorded.
    recorded: BatchMask,
}

/// How a packet is executed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PacketWalk {
    /// From the result of the batch lookup.
    None,
    /// By the walk with this number.
    Cached(u16),
    /// From the first table, and recorded.
    Recorded,
}

impl PacketWalks {
    pub(crate) const NONE: Self = Self {
        cached: BatchMask::EMPTY,
        numbers: [0; LOOKUP_BATCH],
        recorded: BatchMask::EMPTY,
    };

    /// True if no packet has left the batch.
    #[inline]
    pub(super) const fn is_empty(&self) -> bool {
        self.cached.union(self.recorded).is_empty()
    }

    /// Returns how a packet is executed.
    #[inline]
    pub(crate) fn of(&self, index: usize) -> PacketWalk {
        match self.cached.union(self.recorded).contains(index) {
            false => PacketWalk::None,
            true if self.recorded.contains(index) => PacketWalk::Recorded,
            true => PacketWalk::Cached(self.numbers[index % LOOKUP_BATCH]),
        }
    }
}

impl BatchLookup<'_> {
    /// Looks up a group in the walk cache, if the batch uses it. Returns the packets that stay in the
    /// batch.
    #[inline]
    pub(super) fn look_up_walks(&mut self, group: PacketGroup) -> PacketGroup {
        let cache = &mut self.state.memory.walk_cache;
        cache.begin_lookups(group.packets);
        match cache.is_active() {
            false => group,
            true => self.find_walks(group),
        }
    }

    #[inline(never)]
    fn find_walks(&mut self, group: PacketGroup) -> PacketGroup {
        let memory = &mut *self.state.memory;
        let cache = &mut memory.walk_cache;
        let (mut candidates, mut cached) = (BatchMask::EMPTY, BatchMask::EMPTY);
        let (mut recorded, mut first) = (BatchMask::EMPTY, None);
        let mut forwarded = BatchMask::EMPTY;
        let frames = &mut self.state.frames[self.first..];
        for index in group.packets {
            let key = &memory.keys[index % LOOKUP_BATCH];
            match cache.find(key, FROM_PORT) {
                WalkSearch::NoKey => continue,
                WalkSearch::Found(number)
                    if let Some(port) = cache.short_walk(number).and_then(|short| {
                        forward(&mut frames[index], short, &mut self.state.egress)
                    }) =>
                {
                    let progress = &mut self.progress[index % LOOKUP_BATCH];
                    progress.egress = Some(port);
                    cache.count(number, progress.weight, self.state.context.now);
                    forwarded.insert(BatchMask::single(index));
                }
                WalkSearch::Found(number) => {
                    cached.insert(BatchMask::single(index));
                    self.walks.numbers[index % LOOKUP_BATCH] = number;
                    cache.prefetch_walk(number);
                }
                WalkSearch::Absent if cache.recorder.may_record(recorded.len()) => {
                    let key = cache.first_key_of(key, FROM_PORT);
                    // Mostly the packets of a flow follow each other.
                    if let Some(key) = key
                        && first.as_ref().is_none_or(|one: &WalkKey| !one.is(&key))
                    {
                        first = Some(key);
                        recorded.insert(BatchMask::single(index));
                    }
                }
                WalkSearch::Absent => {}
            }
            candidates.insert(BatchMask::single(index));
        }
        let tracker = self.state.context.pipeline.tracker();
        if let Some(tracker) = tracker.filter(|all| cache.is_far(all.len())) {
            self.prefetch_connections(cached, tracker);
        }
        let memory = &mut *self.state.memory;
        let counts = [candidates, cached.union(forwarded)].map(|packets| packets.len() as u64);
        memory.walk_cache.count_candidates(counts[0], counts[1]);
        (self.walks.cached, self.walks.recorded) = (cached, recorded);
        let left = cached.union(recorded).union(forwarded);
        let packets = group.packets.difference(left);
        PacketGroup {
            packets,
            totals: self.weigh_in(packets, &group),
            ..group
        }
    }

    /// Prefetches the connections of packets with walks, those of their first `ct` and of the next.
    #[inline(never)]
    fn prefetch_connections(&self, packets: BatchMask, tracker: &Conntrack) {
        let memory = &self.state.memory;
        let mut lookups = [const { [None; 2] }; LOOKUP_BATCH];
        for index in packets {
            let (key, frame) = (&memory.keys[index], &self.state.frames[self.first + index]);
            let zones = memory.walk_cache.zones(self.walks.numbers[index]);
            for (lookup, zone) in lookups[index].iter_mut().zip(zones) {
                *lookup = zone.and_then(|zone| {
                    begin_lookup_in(tracker, key, frame, (zone, SteadyNat::Ignore))
                });
                let bucket = lookup.as_ref().and_then(|one| tracker.steady_bucket(one));
                bucket.into_iter().for_each(prefetch);
            }
        }
        for lookup in lookups.as_flattened_mut().iter_mut().flatten() {
            tracker.find_steady(lookup).into_iter().for_each(prefetch);
        }
    }
}

/// Does the effects of a walk to a frame. Returns the port by which it leaves; `None`, without a
/// change, if the executor must decide.
#[inline]
fn forward(frame: &mut Frame, short: &ShortWalk, egress: &mut EgressCache<'_>) -> Option<PortNo> {
    if !egress.may_egress(short.port) {
        return None;
    }
    match &short.hop {
        Some(hop) if !set_plain_hop(frame.bytes_mut(), hop) => None,
        _ => Some(short.port),
    }
}
