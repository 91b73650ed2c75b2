//! Entries of the flow cache. A hit touches two cache lines of its entry and the tags of its set;
//! the rules are stored separately.

use base::{Instant, PortNo, TableId};
use pipeline::{Counters, Rule, Totals};

use super::cache_key::{CACHE_WORDS, CacheKey};
use super::pending_stats::PendingStats;

/// Most rules of an entry, after the ingress tables.
pub(crate) const CACHED_RULES_MAX: usize = 10;

/// Entries of a set: hardly a flow finds its set full before half of all entries are used.
pub(crate) const WAYS: usize = 8;

/// Number of sets.
pub(super) const SETS: u16 = 512;

/// Number of entries. They take one megabyte, about a second-level cache.
pub(super) const ENTRIES: usize = SETS as usize * WAYS;

/// Key words of an entry: one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct EntryWords([u64; CACHE_WORDS]);

/// Egress port of an entry, and its pending statistics.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
pub(super) struct CachedEgress {
    /// Packets that the rules have not counted yet.
    pub(super) totals: Totals,
    /// Time of the last of them.
    pub(super) used: Instant,
    port: PortNo,
    /// True if the entry is listed as having pending statistics.
    pub(super) is_listed: bool,
}

const _: () = assert!(size_of::<CachedEgress>() == 32, "half a cache line");

impl CachedEgress {
    fn to(port: PortNo) -> Self {
        Self {
            totals: Totals::default(),
            used: Instant::START,
            port,
            is_listed: false,
        }
    }
}

/// Rules that the packets of an entry match.
#[derive(Debug)]
pub(super) struct CachedRules {
    /// Counters of each rule, which is in the table with the same index.
    counters: [Option<Counters>; CACHED_RULES_MAX],
    tables: [TableId; CACHED_RULES_MAX],
}

impl CachedRules {
    const NONE: Self = Self {
        counters: [const { None }; CACHED_RULES_MAX],
        tables: [TableId::FIRST; CACHED_RULES_MAX],
    };

    fn of<'a>(rules: impl Iterator<Item = &'a Rule>) -> Self {
        let mut cached = Self::NONE;
        let slots = cached.counters.iter_mut().zip(&mut cached.tables);
        for ((counters, table), rule) in slots.zip(rules) {
            (*counters, *table) = (Some(rule.counters.clone()), rule.table());
        }
        cached
    }

    /// Counters of the rules, with their tables.
    #[inline]
    pub(super) fn counters(&self) -> impl Iterator<Item = (&Counters, TableId)> {
        let counters = self.counters.iter().map_while(Option::as_ref);
        counters.zip(self.tables.iter().copied())
    }
}

/// All entries of a flow cache.
#[derive(Debug)]
pub(crate) struct CacheEntries {
    /// Eight bits of the hash of each entry, by set and way, so that mostly only the right entry
    /// is compared; zero if there is no entry.
    tags: Box<[[u8; WAYS]; SETS as usize]>,
    words: Box<[EntryWords; ENTRIES]>,
    pub(super) egress: Box<[CachedEgress; ENTRIES]>,
    pub(super) rules: Box<[CachedRules; ENTRIES]>,
    pub(super) pending: PendingStats,
    /// The entry whose rules are released next if it was removed.
    next_release: usize,
}

impl CacheEntries {
    /// Empty entries.
    pub(super) fn new(writer: usize) -> Self {
        let egress = CachedEgress::to(PortNo::ANY);
        Self {
            tags: boxed_array(|| [0; WAYS]),
            words: boxed_array(|| EntryWords([0; CACHE_WORDS])),
            egress: boxed_array(|| egress),
            rules: boxed_array(|| CachedRules::NONE),
            pending: PendingStats::new(writer),
            next_release: 0,
        }
    }

    /// Returns the index of the entry with this key.
    #[inline(always)]
    fn find<const N: usize>(&self, key: &CacheKey<N>) -> Option<usize> {
        let set = key.set();
        let mut likely = equal_tags(self.tags[set], key.tag);
        while likely != 0 {
            let index = set * WAYS + likely.trailing_zeros() as usize / TAG_BITS;
            let EntryWords(words) = &self.words[index % ENTRIES];
            let words = words.iter().zip(&key.words);
            if words.fold(0, |differing, (one, other)| differing | one ^ other) == 0 {
                return Some(index);
            }
            likely &= likely - 1;
        }
        None
    }

    /// Looks up a packet. Returns the port by which it leaves, and counts it, if there is an entry
    /// and `may_egress` allows the port.
    #[inline(always)]
    pub(crate) fn look_up<const N: usize>(
        &mut self,
        key: &CacheKey<N>,
        (weight, now): (Totals, Instant),
        may_egress: impl FnOnce(PortNo) -> bool,
    ) -> Option<PortNo> {
        let index = self.find(key)?;
        let egress = &mut self.egress[index % ENTRIES];
        if !may_egress(egress.port) {
            return None;
        }
        egress.totals.packets = egress.totals.packets.wrapping_add(weight.packets);
        egress.totals.bytes = egress.totals.bytes.wrapping_add(weight.bytes);
        egress.used = now;
        if !egress.is_listed {
            egress.is_listed = true;
            self.pending.list(index);
        }
        Some(egress.port)
    }

    /// Adds an entry for a packet that matched these rules, in order, and left by `port`.
    pub(super) fn insert<'a>(
        &mut self,
        key: &CacheKey<CACHE_WORDS>,
        rules: impl Iterator<Item = &'a Rule>,
        port: PortNo,
    ) {
        if self.find(key).is_some() {
            return;
        }
        let set = key.set();
        let free = self.tags[set].iter().position(|tag| *tag == 0);
        // In a full set the hash selects the entry to replace, mostly another one each time.
        let way = free.unwrap_or_else(|| usize::from(key.bucket / SETS) % WAYS);
        let index = set * WAYS + way;
        self.flush_entry(index);
        self.tags[set][way] = key.tag;
        self.words[index] = EntryWords(key.words);
        self.egress[index].port = port;
        self.rules[index] = CachedRules::of(rules);
    }

    /// Removes all entries. Their rules are released later.
    pub(super) fn clear(&mut self) {
        self.flush_all();
        self.tags.fill([0; WAYS]);
        self.next_release = 0;
    }

    /// Releases the rules of the next entry if it was removed: one for each batch, so that no batch
    /// waits for all. Returns false if there was none left.
    #[inline]
    pub(super) fn release_next(&mut self) -> bool {
        let Some(rules) = self.rules.get_mut(self.next_release) else {
            return false;
        };
        if self.tags[self.next_release / WAYS][self.next_release % WAYS] == 0 {
            *rules = CachedRules::NONE;
        }
        self.next_release += 1;
        true
    }

    /// Number of entries that hold rules.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        let holds_rules = |rules: &&CachedRules| rules.counters().next().is_some();
        self.rules.iter().filter(holds_rules).count()
    }
}

/// An array on the heap, built without a copy on the stack.
pub(crate) fn boxed_array<T, const N: usize>(element: impl Fn() -> T) -> Box<[T; N]> {
    let all: Box<[T]> = (0..N).map(|_| element()).collect();
    all.try_into()
        .unwrap_or_else(|_| unreachable!("the slice has N elements"))
}

/// Bits of a tag.
const TAG_BITS: usize = u8::BITS as usize;

/// The uppermost bit of each byte that may equal `tag`, the first in the lowest bits. The lowest
/// bit that is set is exact.
#[inline(always)]
pub(crate) const fn equal_tags(tags: [u8; WAYS], tag: u8) -> u64 {
    /// The lowest bit of each tag, and the uppermost.
    const LOWEST: u64 = u64::from_le_bytes([1; WAYS]);
    const UPPERMOST: u64 = LOWEST << (TAG_BITS - 1);
    let differing = u64::from_le_bytes(tags) ^ u64::from_le_bytes([tag; WAYS]);
    differing.wrapping_sub(LOWEST) & !differing & UPPERMOST
}
