//! A group: buckets, and which of them a frame goes through (OF 1.3.5, 5.6).
//!
//! A group never changes: a modification puts another in its place, which goes on
//! with the same counters, its buckets with new ones (OF 1.3.5, 6.5).
//!
//! A select group is read as a lottery with the same outcome each time (weighted
//! rendezvous hashing): each bucket draws a number from the frame's addresses and
//! from what the bucket is, and the lowest for its weight wins. So the buckets'
//! shares are their weights, a flow stays together, and when a bucket comes, goes,
//! dies or gets another weight, only frames move that come to it or leave it.
//! Both directions of a connection draw the same.
//!
//! A group that is told how to choose (`flow::Selection`) draws from the fields that it
//! is told alone, and from the number beside them; so nothing else of a frame moves it.

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
    /// How it chooses, if it was told.
    selection: Option<Selection>,
    pub(crate) buckets: Vec<GroupBucket>,
    pub(crate) created: Instant,
    pub(crate) counters: Counters,
    compiled_word: OnceLock<u64>,
}

/// A bucket.
#[derive(Debug)]
pub struct GroupBucket {
    /// As it was given.
    pub(crate) given: flow::Bucket,
    /// What is done, in the order of an action set.
    set: ActionSet,
    /// Whether the frame is another afterwards.
    pub(crate) rewrites: bool,
    /// What the bucket is, as a number: not its weight, nor its place.
    seed: u64,
    pub(crate) counters: Counters,
}

impl Group {
    /// The group that `command` describes. One whose place it takes hands on its
    /// age and its counters.
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

    /// Which of its buckets a frame goes through.
    #[must_use]
    pub const fn kind(&self) -> GroupKind {
        self.kind
    }

    /// Its buckets.
    #[must_use]
    pub fn buckets(&self) -> &[GroupBucket] {
        &self.buckets
    }

    /// What a compiler has to say of it in a word. It is asked once.
    pub fn compiled_word(&self, say: impl FnOnce(&Self) -> u64) -> u64 {
        *self.compiled_word.get_or_init(|| say(self))
    }

    /// Counts a frame, as `writer`.
    pub fn count(&self, writer: usize, weight: Totals, now: Instant) {
        self.counters.add(writer, weight, now);
    }

    /// The bucket that a frame with this hash goes through, of those that are `alive`; of a
    /// group of all, which is not asked, it is the first. Only a select group asks for the
    /// hash ([`Group::hash`]).
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

    /// The bucket that a frame with this hash draws, of those that are `alive`.
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

    /// How deep a frame must be read for it.
    pub(crate) fn depth(&self) -> Depth {
        let actions = self.buckets.iter().flat_map(|bucket| &bucket.given.actions);
        let deepest = actions.map(depth_of).max().unwrap_or_default();
        match self.kind {
            GroupKind::Select => deepest.max(self.hashed_depth()),
            GroupKind::All | GroupKind::Indirect | GroupKind::FastFailover => deepest,
        }
    }

    /// How deep a frame must be read for what is hashed of it.
    fn hashed_depth(&self) -> Depth {
        match self.hashed() {
            Some(fields) => fields.depth(),
            None => Depth::Transport,
        }
    }

    /// The fields that alone are hashed; none if it is what is hashed by default.
    fn hashed(&self) -> Option<&SelectionFields> {
        match &self.selection.as_ref()?.method {
            SelectionMethod::Hash(fields) => Some(fields).filter(|fields| !fields.is_empty()),
            SelectionMethod::Datapath => None,
        }
    }

    /// The number by which a frame with these fields draws a bucket.
    #[must_use]
    pub fn hash(&self, key: &FlowKey) -> u64 {
        let param = self
            .selection
            .as_ref()
            .map_or(0, |selection| selection.param);
        match (self.hashed(), param) {
            // A number that nobody gave changes nothing.
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

    /// The groups that it sends frames to.
    pub(crate) fn successors(&self) -> impl Iterator<Item = GroupId> {
        let buckets = self.buckets.iter();
        buckets.flat_map(|bucket| groups_of(&bucket.given.actions))
    }

    /// The groups whose state is a bucket's state.
    pub(crate) fn watched(&self) -> impl Iterator<Item = GroupId> {
        let watched = self.buckets.iter().map(|bucket| bucket.given.watch_group);
        watched.filter(|group| *group != GroupId::ANY)
    }

    /// The group as it is described.
    pub(crate) fn description(&self) -> GroupDesc {
        let buckets = self.buckets.iter().map(|bucket| bucket.given.clone());
        GroupDesc {
            kind: self.kind,
            group: self.id,
            selection: self.selection.clone(),
            buckets: buckets.collect(),
        }
    }

    /// The group as statistics tell it.
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

    /// Whether the frame is another afterwards: what is done is done to a copy then.
    #[must_use]
    pub const fn rewrites(&self) -> bool {
        self.rewrites
    }

    /// Counts a frame, as `writer`.
    pub fn count(&self, writer: usize, weight: Totals, now: Instant) {
        self.counters.add(writer, weight, now);
    }

    /// What is done, in order.
    #[must_use]
    pub fn actions(&self) -> &[Action] {
        self.set.actions()
    }

    /// How far the bucket is from winning a frame with this hash; infinitely, if it
    /// has no weight. The numbers drawn are exponentially distributed, at the rate
    /// of the weight, which is what makes the chance to draw the lowest the share.
    fn score(&self, hash: u64) -> f64 {
        /// 2 to the 53rd: as many different numbers as a fraction can be.
        const STEPS: f64 = 9_007_199_254_740_992.0;
        let step = StableHasher::new().of((hash, self.seed)) >> 11;
        let chance = (step as f64 + 0.5) / STEPS;
        -chance.ln() / f64::from(self.given.weight)
    }
}

/// The hash of a frame's addresses: the same in both directions, and for all frames of a
/// connection.
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
    // The addresses that ARP speaks of are those of IPv4.
    let address = |field| match field {
        Field::Ipv4Src => key.get(field).or_else(|| key.get(Field::ArpSpa)),
        Field::Ipv4Dst => key.get(field).or_else(|| key.get(Field::ArpTpa)),
        other => key.get(other),
    };
    // As all pairs and then all others would be hashed, each behind how many they are: where a
    // flow goes stays as it is, and nothing is put together for it.
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

/// A number for what the bucket does and watches, and for being the so manieth
/// that does and watches the same. Of the actions' text, which means the same in
/// every build: an upgrade of the switch moves nobody either.
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
