//! A group: buckets, and the selection of the bucket that a packet passes through (OF 1.3.5, 5.6).
//!
//! A group is immutable: a modification replaces it by one with the same counters and with new
//! buckets (OF 1.3.5, 6.5).
//!
//! # Selection: weighted rendezvous hashing
//!
//! D. Thaler, C. Ravishankar, "Using name-based mappings to increase hit rates", IEEE/ACM ToN 1998;
//! the weights follow C. Schindelhauer, G. Schomaker, "Weighted distributed hash tables", SPAA 2005: bucket *i*
//! with weight *w* and the uniform hash *u* of packet and bucket scores *-ln(u) / w*, and the
//! lowest score is selected.
//!
//! ```text
//!   hash(packet) --+-- bucket A, weight 1   score 0.93
//!                  +-- bucket B, weight 2   score 0.21   <- selected
//!                  +-- bucket C, dead       excluded
//! ```
//!
//! So the shares of the buckets are their weights, packets of one flow stay together, and when a
//! bucket is added, removed, dies or changes its weight, only flows move that enter or leave that
//! bucket. Both directions of a connection select the same bucket. A selection costs one logarithm
//! per bucket: O(n), with n at most 1,024.
//!
//! A group with a selection method (`flow::Selection`) hashes only the fields and the parameter
//! that it names.

use std::hash::{Hash, Hasher};
use std::sync::OnceLock;

use base::{GroupId, Instant};
use flow::field::Depth;
use flow::{
    Action, BucketStats, Field, FlowKey, GroupDesc, GroupKind, GroupMod, GroupStats, Selection,
    SelectionFields, SelectionMethod,
};

use crate::counters::{CounterAllocator, Counters, Totals};
use crate::instructions::action_facts::{depth_of, groups_of};
use crate::instructions::action_set::ActionSet;
use crate::stable_hash::StableHasher;

/// A group.
#[derive(Debug)]
pub struct Group {
    pub(crate) id: GroupId,
    pub(crate) kind: GroupKind,
    /// Selection method, if one was specified.
    selection: Option<Selection>,
    pub(crate) buckets: Vec<GroupBucket>,
    pub(crate) created: Instant,
    pub(crate) counters: Counters,
    compiled_word: OnceLock<u64>,
}

/// A bucket.
#[derive(Debug)]
pub struct GroupBucket {
    /// The bucket as it was specified.
    pub(crate) given: flow::Bucket,
    /// The actions, in the order of an action set.
    set: ActionSet,
    /// True if the actions modify the packet.
    pub(crate) rewrites: bool,
    /// Hash of actions and watched things, without weight and index.
    seed: u64,
    pub(crate) counters: Counters,
}

impl Group {
    /// Creates the group that `command` describes. It inherits age and counters of the group that
    /// it replaces.
    pub(crate) fn new(
        command: &GroupMod,
        old: Option<&Self>,
        allocator: &mut CounterAllocator,
        now: Instant,
    ) -> Self {
        let mut buckets: Vec<GroupBucket> = Vec::with_capacity(command.buckets.len());
        for given in &command.buckets {
            let twins = buckets.iter().filter(|other| is_twin(&other.given, given));
            let seed = seed(given, twins.count());
            buckets.push(GroupBucket::new(given.clone(), seed, allocator));
        }
        Self {
            id: command.group,
            kind: command.kind,
            selection: command.selection.clone(),
            buckets,
            created: old.map_or(now, |old| old.created),
            counters: old.map_or_else(|| allocator.allocate(), |old| old.counters.clone()),
            compiled_word: OnceLock::new(),
        }
    }

    /// Returns the group's type.
    #[must_use]
    pub const fn kind(&self) -> GroupKind {
        self.kind
    }

    /// Returns the buckets.
    #[must_use]
    pub fn buckets(&self) -> &[GroupBucket] {
        &self.buckets
    }

    /// Returns a word that an engine computes once, by `say`.
    pub fn compiled_word(&self, say: impl FnOnce(&Self) -> u64) -> u64 {
        *self.compiled_word.get_or_init(|| say(self))
    }

    /// Counts a packet, as `writer`.
    pub fn count(&self, writer: usize, weight: Totals, now: Instant) {
        self.counters.add(writer, weight, now);
    }

    /// Returns the index of the bucket that a packet with this hash passes through, of those that
    /// are `alive`; for an `all` group, the first. Only a select group uses the hash
    /// ([`Group::hash`]).
    pub fn select_bucket(
        &self,
        hash: u64,
        alive: impl FnMut(&GroupBucket) -> bool,
    ) -> Option<usize> {
        match self.kind {
            GroupKind::All | GroupKind::Indirect => Some(0).filter(|_| !self.buckets.is_empty()),
            GroupKind::Select => self.draw(hash, alive),
            GroupKind::FastFailover => self.buckets.iter().position(alive),
        }
    }

    /// Returns the bucket with the lowest score for this hash, of those that are `alive`.
    pub(crate) fn draw(
        &self,
        hash: u64,
        mut alive: impl FnMut(&GroupBucket) -> bool,
    ) -> Option<usize> {
        let mut best: Option<(usize, f64)> = None;
        for (index, bucket) in self.buckets.iter().enumerate() {
            let score = bucket.score(hash);
            if best.is_none_or(|(_, least)| score < least) && score.is_finite() && alive(bucket) {
                best = Some((index, score));
            }
        }
        best.map(|(index, _)| index)
    }

    /// Returns the parse depth that the group needs.
    pub(crate) fn depth(&self) -> Depth {
        let actions = self.buckets.iter().flat_map(|bucket| &bucket.given.actions);
        let deepest = actions.map(depth_of).max().unwrap_or_default();
        match self.kind {
            GroupKind::Select => deepest.max(self.hashed_depth()),
            GroupKind::All | GroupKind::Indirect | GroupKind::FastFailover => deepest,
        }
    }

    /// Returns the parse depth that the hash needs.
    fn hashed_depth(&self) -> Depth {
        match self.hashed() {
            Some(fields) => fields.depth(),
            None => Depth::Transport,
        }
    }

    /// Returns the fields to hash, or `None` for the default.
    pub(crate) fn hashed(&self) -> Option<&SelectionFields> {
        match &self.selection.as_ref()?.method {
            SelectionMethod::Hash(fields) => Some(fields).filter(|fields| !fields.is_empty()),
            SelectionMethod::Datapath => None,
        }
    }

    /// Returns the selection hash of a packet with these fields.
    #[must_use]
    pub fn hash(&self, key: &FlowKey) -> u64 {
        let param = self
            .selection
            .as_ref()
            .map_or(0, |selection| selection.param);
        match (self.hashed(), param) {
            // The default parameter changes nothing.
            (None, 0) => symmetric_hash(key),
            (None, param) => StableHasher::new().of((param, symmetric_hash(key))),
            (Some(fields), param) => {
                let mut mixer = StableHasher::new();
                param.hash(&mut mixer);
                for (field, mask) in fields.iter() {
                    key.get(field).map(|value| value & mask).hash(&mut mixer);
                }
                mixer.finish()
            }
        }
    }

    /// Returns the groups that it sends packets to.
    pub(crate) fn successors(&self) -> impl Iterator<Item = GroupId> {
        let buckets = self.buckets.iter();
        buckets.flat_map(|bucket| groups_of(&bucket.given.actions))
    }

    /// Returns the groups that its buckets watch.
    pub(crate) fn watched(&self) -> impl Iterator<Item = GroupId> {
        let watched = self.buckets.iter().map(|bucket| bucket.given.watch_group);
        watched.filter(|group| *group != GroupId::ANY)
    }

    /// Returns the description.
    pub(crate) fn description(&self) -> GroupDesc {
        let buckets = self.buckets.iter().map(|bucket| bucket.given.clone());
        GroupDesc {
            kind: self.kind,
            group: self.id,
            selection: self.selection.clone(),
            buckets: buckets.collect(),
        }
    }

    /// Returns the statistics.
    pub(crate) fn statistics(&self, references: u32, now: Instant) -> GroupStats {
        let totals = self.counters.totals();
        let buckets = self.buckets.iter().map(|bucket| {
            let totals = bucket.counters.totals();
            BucketStats {
                packets: totals.packets,
                bytes: totals.bytes,
            }
        });
        GroupStats {
            group: self.id,
            references,
            packets: totals.packets,
            bytes: totals.bytes,
            duration: now - self.created,
            buckets: buckets.collect(),
        }
    }
}

impl GroupBucket {
    fn new(given: flow::Bucket, seed: u64, allocator: &mut CounterAllocator) -> Self {
        let mut set = ActionSet::default();
        set.write(&given.actions);
        Self {
            rewrites: set.actions().iter().any(rewrites),
            set,
            seed,
            counters: allocator.allocate(),
            given,
        }
    }

    /// True if the actions modify the packet: then they are executed on a copy.
    #[must_use]
    pub const fn rewrites(&self) -> bool {
        self.rewrites
    }

    /// Counts a packet, as `writer`.
    pub fn count(&self, writer: usize, weight: Totals, now: Instant) {
        self.counters.add(writer, weight, now);
    }

    /// Returns the actions, in order of execution.
    #[must_use]
    pub fn actions(&self) -> &[Action] {
        self.set.actions()
    }

    /// Returns the bucket's score for a hash; infinite without a weight. Scores are exponentially
    /// distributed with the weight as rate, so the probability of the lowest score is the share.
    fn score(&self, hash: u64) -> f64 {
        /// 2 to the 53rd: the number of distinct fractions of an `f64`.
        const STEPS: f64 = 9_007_199_254_740_992.0;
        let step = StableHasher::new().of((hash, self.seed)) >> 11;
        let chance = (step as f64 + 0.5) / STEPS;
        -chance.ln() / f64::from(self.given.weight)
    }
}

/// Returns a hash of a packet's addresses and ports: equal in both directions, and for all packets
/// of a connection.
#[must_use]
pub fn symmetric_hash(key: &FlowKey) -> u64 {
    /// Source and destination of each layer.
    const PAIRS: [(Field, Field); 6] = [
        (Field::EthSrc, Field::EthDst),
        (Field::Ipv4Src, Field::Ipv4Dst),
        (Field::Ipv6Src, Field::Ipv6Dst),
        (Field::TcpSrc, Field::TcpDst),
        (Field::UdpSrc, Field::UdpDst),
        (Field::SctpSrc, Field::SctpDst),
    ];
    const SINGLE: [Field; 3] = [Field::VlanVid, Field::EthType, Field::IpProto];
    // The addresses in ARP are IPv4 addresses.
    let address = |field| match field {
        Field::Ipv4Src => key.get(field).or_else(|| key.get(Field::ArpSpa)),
        Field::Ipv4Dst => key.get(field).or_else(|| key.get(Field::ArpTpa)),
        other => key.get(other),
    };
    // The hash equals that of two lists with their lengths, so that flows keep their buckets; no
    // list is allocated for it.
    let mut mixer = StableHasher::new();
    mixer.write_usize(PAIRS.len());
    for (source, destination) in PAIRS {
        let (a, b) = (address(source), address(destination));
        let (less, more) = if b < a { (b, a) } else { (a, b) };
        less.hash(&mut mixer);
        more.hash(&mut mixer);
    }
    mixer.write_usize(SINGLE.len());
    for field in SINGLE {
        key.get(field).hash(&mut mixer);
    }
    mixer.finish()
}

/// Returns the hash of a bucket's actions and watched things, and of the number of equal buckets
/// before it. It hashes the text of the actions, which is the same in every build, so that an
/// upgrade of the switch moves no flow.
fn seed(given: &flow::Bucket, twins: usize) -> u64 {
    let flow::Bucket {
        id: _,
        weight: _,
        watch_port,
        watch_group,
        actions,
    } = given;
    let actions: Vec<_> = actions.iter().map(ToString::to_string).collect();
    StableHasher::new().of((watch_port, watch_group, actions, twins))
}

fn is_twin(one: &flow::Bucket, other: &flow::Bucket) -> bool {
    one.watch_port == other.watch_port
        && one.watch_group == other.watch_group
        && one.actions == other.actions
}

const fn rewrites(action: &Action) -> bool {
    !matches!(
        action,
        Action::Output { .. } | Action::Enqueue { .. } | Action::SetQueue(_) | Action::Group(_)
    )
}

#[cfg(test)]
mod tests;
