//! All rules of one shape: a hash table in segments, found by the upper bits of
//! the hash. A segment that is full is remade larger, or as two; so no insertion
//! costs more than the largest segment, whatever the size of the table.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::Arc;

use pipeline::Rule;
use sys::cache::prefetch;

use crate::ahead::{AHEAD, ask_for};
use crate::lanes::{Conditions, Lanes, Parts};
use crate::places::Places;
use crate::segment::{CAPACITY_MAX, CAPACITY_MIN, Epoch, Full, Line, Living, Segment, Sought};
use crate::shape::{Hash, Hasher, Key, Shape};

/// The most entries of a segment whose hashes are all the same, which no splitting
/// tells apart: an entry's number has sixteen bits.
const ALIKE_MAX: usize = 32_768;

/// How many bits of the hash choose a segment at most: all that are for it.
const BITS_MAX: u32 = u16::BITS;

/// There are too many rules that differ by nothing but their priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooManyAlike;

/// Segments by the upper bits of the hash; one that was not split as often as
/// others stands in several places.
#[derive(Clone, Debug)]
struct Directory {
    bits: u32,
    segments: Vec<Arc<Segment>>,
}

impl Directory {
    #[inline]
    fn place(&self, hash: Hash) -> usize {
        let upper = u32::from(hash.segment()) >> (BITS_MAX - self.bits);
        usize::try_from(upper).expect("it has sixteen bits at most")
    }

    #[inline]
    fn segment(&self, hash: Hash) -> &Arc<Segment> {
        &self.segments[self.place(hash)]
    }

    /// The places where the segment of `place` stands.
    fn places_of(&self, place: usize) -> std::ops::Range<usize> {
        let segment = &self.segments[place];
        let same = |other: &&Arc<Segment>| Arc::ptr_eq(other, segment);
        let before = self.segments[..place].iter().rev().take_while(same).count();
        let behind = self.segments[place..].iter().take_while(same).count();
        place - before..place + behind
    }

    /// Twice as many places, each segment in two.
    fn double(&mut self) {
        let twice = |segment: &Arc<Segment>| [Arc::clone(segment), Arc::clone(segment)];
        self.segments = self.segments.iter().flat_map(twice).collect();
        self.bits += 1;
    }
}

/// What a worker looks into.
#[derive(Clone, Debug)]
pub(crate) struct TupleView {
    shape: Arc<Shape>,
    /// No rule in it has a higher priority.
    pub(crate) highest: u16,
    directory: Arc<Directory>,
}

/// Segments of a tuple that is far away: so many have eight thousand entries, which take some
/// 800 kB with what they count.
const FAR: usize = 16;

/// Where the lookups of frames have come to, before any entry's line is read.
pub(crate) struct Lookups<'v> {
    /// The segment of each, and its hash.
    pub(crate) steps: [(&'v Segment, Hash); AHEAD],
    /// The line that may tell what it finds.
    pub(crate) lines: [Option<&'v Line>; AHEAD],
    /// Those of which it is known that they find nothing.
    pub(crate) missing: Places,
}

/// These bits of these words of a frame.
#[inline(always)]
pub(crate) fn words_of<const N: usize>(lanes: &Lanes, asked: [(u8, u64); N]) -> [u64; N] {
    asked.map(|(lane, mask)| lanes.word(lane) & mask)
}

impl TupleView {
    /// Begins to look these frames up where entries have lines: asks for the buckets of all of
    /// them, and then for the lines.
    #[inline(always)]
    pub(crate) fn begin_by_lines<const N: usize>(
        &self,
        hasher: Hasher,
        lanes: &[Lanes; AHEAD],
        of: Places,
        asked: [(u8, u64); N],
    ) -> Lookups<'_> {
        let mut steps: [(&Segment, Hash); AHEAD] = [(self.first_segment(), Hash::NONE); AHEAD];
        for place in of {
            let words = words_of(&lanes[place % AHEAD], asked);
            let hash = hasher.hash(words.into_iter());
            let segment = self.segment(hash);
            segment.prefetch_bucket(hash);
            steps[place % AHEAD] = (segment, hash);
        }
        let mut lines: [Option<&Line>; AHEAD] = [None; AHEAD];
        let mut missing = Places::NONE;
        for place in of {
            let (segment, hash) = steps[place % AHEAD];
            match segment.likely_line(hash) {
                Some(line) => {
                    prefetch(line);
                    lines[place % AHEAD] = Some(line);
                }
                None => missing.add(Places::of(place)),
            }
        }
        Lookups {
            steps,
            lines,
            missing,
        }
    }

    /// The rules that these frames find. What is far away is asked for all of them together,
    /// one thing after the other, and so comes together: buckets, entries and rules.
    pub(crate) fn find_each(
        &self,
        (hasher, epoch): (Hasher, Epoch),
        lanes: &[Lanes; AHEAD],
        of: Places,
    ) -> [Option<&Arc<Rule>>; AHEAD] {
        let first = &*self.directory.segments[0];
        let mut steps = [(Hash::NONE, first, None); AHEAD];
        for place in of {
            let hash = hasher.hash(self.shape.words(&lanes[place]));
            let segment = &**self.directory.segment(hash);
            segment.prefetch_bucket(hash);
            steps[place] = (hash, segment, None);
        }
        for place in of {
            let (hash, segment, number) = &mut steps[place];
            *number = segment.likely(*hash);
            if let Some(number) = *number {
                segment.prefetch_entry(number);
            }
        }
        let mut found = [None; AHEAD];
        for place in of {
            let (hash, segment, number) = steps[place];
            let Some(number) = number else {
                continue;
            };
            let sought = Sought::Lanes(&lanes[place]);
            let likely = segment.likely_rule(number, sought, epoch);
            found[place] = likely.or_else(|| segment.find(hash, sought, epoch, |_| true));
            found[place].into_iter().for_each(|rule| ask_for(rule));
        }
        found
    }

    /// Whether what its rules count is not in a cache of the second level, with all else that a
    /// frame needs of it.
    #[inline]
    pub(crate) fn is_far(&self) -> bool {
        self.directory.segments.len() >= FAR
    }

    /// The segment of a frame of this hash.
    #[inline]
    pub(crate) fn segment(&self, hash: Hash) -> &Segment {
        self.directory.segment(hash)
    }

    /// One of the segments: there is one at least.
    pub(crate) fn first_segment(&self) -> &Segment {
        &self.directory.segments[0]
    }

    #[inline]
    fn sought<'a>(&self, key: &'a Key, lanes: &'a Lanes) -> Sought<'a> {
        match self.shape.kept() {
            0 => Sought::Lanes(lanes),
            kept => Sought::Words(&key.words[..kept]),
        }
    }

    /// Which bits of which words it looks at.
    pub(crate) fn asked(&self) -> &[(u8, u64)] {
        self.shape.asked()
    }

    /// The parts of a frame that it looks at.
    pub(crate) fn parts(&self) -> Parts {
        self.shape.parts()
    }

    /// The rule of the highest priority that the frame fits among those that are wanted,
    /// as `epoch` saw it.
    #[inline]
    pub(crate) fn find(
        &self,
        lanes: &Lanes,
        hasher: Hasher,
        epoch: Epoch,
        wanted: impl Fn(&Rule) -> bool,
    ) -> Option<&Arc<Rule>> {
        let key = self.shape.key(lanes, hasher);
        let segment = self.directory.segment(key.hash);
        segment.find(key.hash, self.sought(&key, lanes), epoch, wanted)
    }
}

/// The writer's end.
#[derive(Debug)]
pub(crate) struct Tuple {
    shape: Arc<Shape>,
    hasher: Hasher,
    directory: Arc<Directory>,
    /// How many rules have which priority.
    priorities: BTreeMap<u16, usize>,
}

impl Tuple {
    pub(crate) fn new(shape: Shape, hasher: Hasher, epoch: Epoch) -> Self {
        let segment = Segment::new(CAPACITY_MIN, shape.kept(), epoch);
        Self {
            shape: Arc::new(shape),
            hasher,
            directory: Arc::new(Directory {
                bits: 0,
                segments: vec![Arc::new(segment)],
            }),
            priorities: BTreeMap::new(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.priorities.is_empty()
    }

    /// How many rules there are.
    pub(crate) fn len(&self) -> usize {
        self.priorities.values().sum()
    }

    /// The segments, each once: one that stands in several places does so side by side.
    fn segments(&self) -> Vec<Arc<Segment>> {
        let mut segments = self.directory.segments.clone();
        segments.dedup_by(|one, other| Arc::ptr_eq(one, other));
        segments
    }

    /// The bytes it takes, besides the rules.
    pub(crate) fn bytes(&self) -> usize {
        let of_segments = self.segments().into_iter().map(|segment| segment.bytes());
        of_segments.sum::<usize>() + self.directory.segments.len() * size_of::<Arc<Segment>>()
    }

    /// Some of the rules, at least one if there are any.
    pub(crate) fn some(&self) -> Vec<Arc<Rule>> {
        const SOME: usize = 8;
        for segment in self.segments() {
            let living = segment.living();
            if !living.is_empty() {
                let some = living.iter().take(SOME);
                return some.map(|one| Arc::clone(segment.rule_of(one))).collect();
            }
        }
        Vec::new()
    }

    /// All rules there are.
    pub(crate) fn living(&self) -> Vec<Arc<Rule>> {
        let of_segment = |segment: &Arc<Segment>| {
            let living = segment.living().into_iter();
            living
                .map(|one| Arc::clone(segment.rule_of(&one)))
                .collect::<Vec<_>>()
        };
        self.segments().iter().flat_map(of_segment).collect()
    }

    pub(crate) fn highest(&self) -> u16 {
        let last = self.priorities.last_key_value();
        last.map_or(0, |(priority, _)| *priority)
    }

    pub(crate) fn view(&self) -> TupleView {
        TupleView {
            shape: Arc::clone(&self.shape),
            highest: self.highest(),
            directory: Arc::clone(&self.directory),
        }
    }

    /// Where a rule of these conditions belongs.
    pub(crate) fn place_of(&self, conditions: &Conditions) -> (Arc<Shape>, Key) {
        let key = self.shape.key(&conditions.values, self.hasher);
        (Arc::clone(&self.shape), key)
    }

    /// Looks at the memory that rules of these hashes would be written to. It is far away
    /// in a large table, and what is asked for together comes together.
    pub(crate) fn foresee(&self, hashes: impl Iterator<Item = Hash> + Clone) {
        let segments = hashes.map(|hash| (hash, self.directory.segment(hash)));
        let near = segments.clone().map(|(_, segment)| segment.glance());
        black_box(near.sum::<usize>());
        // The farthest, and by themselves, so that all of them are under way at once.
        let far = segments.clone();
        far.for_each(|(hash, segment)| segment.prefetch_bucket(hash));
        let next = segments.map(|(_, segment)| segment.glance_at_next());
        black_box(next.sum::<usize>());
    }

    /// Puts a rule of this key in, to be seen from `epoch` on. Answers whether the tuple
    /// is to be shown anew.
    pub(crate) fn insert(
        &mut self,
        key: &Key,
        rule: &Arc<Rule>,
        epoch: Epoch,
    ) -> Result<bool, TooManyAlike> {
        let hash = key.hash;
        let highest = self.highest();
        let mut remade = self.renew(hash, epoch)?;
        while let Err(Full) = self.directory.segment(hash).insert(key, rule, epoch) {
            self.remake(hash, 1, epoch)?;
            remade = true;
        }
        *self.priorities.entry(rule.priority()).or_default() += 1;
        Ok(remade || rule.priority() > highest)
    }

    /// Takes a rule out as of `epoch`. Answers whether the tuple is to be shown
    /// anew; none if the rule is not there.
    pub(crate) fn remove(
        &mut self,
        conditions: &Conditions,
        rule: &Arc<Rule>,
        epoch: Epoch,
    ) -> Option<bool> {
        let hash = self.hash(conditions);
        let renewed = self.renew(hash, epoch).ok()?;
        let segment = Arc::clone(self.directory.segment(hash));
        if !segment.remove(hash, rule, epoch) {
            return None;
        }
        let highest = self.highest();
        if let Some(count) = self.priorities.get_mut(&rule.priority()) {
            *count -= 1;
            if *count == 0 {
                self.priorities.remove(&rule.priority());
            }
        }
        let remade = segment.is_mostly_dead() && self.remake(hash, 0, epoch).is_ok();
        Some(renewed || remade || self.highest() != highest)
    }

    fn hash(&self, conditions: &Conditions) -> Hash {
        self.hasher.hash(self.shape.words(&conditions.values))
    }

    /// Makes sure that the segment of `hash` can be written to. Answers whether it was
    /// remade for that.
    fn renew(&mut self, hash: Hash, epoch: Epoch) -> Result<bool, TooManyAlike> {
        let is_old = self.directory.segment(hash).is_old(epoch);
        if is_old {
            self.remake(hash, 0, epoch)?;
        }
        Ok(is_old)
    }

    /// Puts another segment, or two, in the place of the one of `hash`: without
    /// the dead, and with room for so many more.
    fn remake(&mut self, hash: Hash, more: usize, epoch: Epoch) -> Result<(), TooManyAlike> {
        let place = self.directory.place(hash);
        let old = Arc::clone(&self.directory.segments[place]);
        let living = old.living();
        let goes_on = more > 0 && old.can_be_inherited(epoch);
        let alike = living.windows(2).all(|two| two[0].hash == two[1].hash);
        // Full before its time: its buckets are too few for these hashes.
        let crowded = more > 0 && !old.is_used_up();
        let enough = if crowded { old.capacity() + 1 } else { 0 };
        let capacity = room_for(living.len() + more).max(enough.next_power_of_two());
        let directory = Arc::make_mut(&mut self.directory);
        let splits = capacity > CAPACITY_MAX && !alike && directory.bits < BITS_MAX;
        if !splits {
            let remade = fill(&old, living.iter(), capacity, epoch, goes_on)?;
            let places = directory.places_of(place);
            directory.segments[places].fill(Arc::new(remade));
            return Ok(());
        }
        if directory.places_of(place).len() == 1 {
            directory.double();
        }
        let places = directory.places_of(directory.place(hash));
        let middle = places.start + places.len() / 2;
        for half in [places.start..middle, middle..places.end] {
            let of_half = |entry: &&Living| half.contains(&directory.place(entry.hash));
            let part = living.iter().filter(of_half);
            let capacity = room_for(part.clone().count() + 1);
            let remade = fill(&old, part, capacity, epoch, goes_on)?;
            directory.segments[half].fill(Arc::new(remade));
        }
        Ok(())
    }
}

/// A segment of these entries of `old`, made in `epoch`, which may go on with its blocks: of
/// the capacity or, if its buckets do not serve, of the next that do.
fn fill<'a>(
    old: &Segment,
    living: impl Iterator<Item = &'a Living> + Clone,
    mut capacity: usize,
    epoch: Epoch,
    goes_on: bool,
) -> Result<Segment, TooManyAlike> {
    while capacity <= ALIKE_MAX {
        match old.with_those(living.clone(), capacity, epoch, goes_on) {
            Ok(segment) => return Ok(segment),
            Err(Full) => capacity *= 2,
        }
    }
    Err(TooManyAlike)
}

/// The capacity for so many entries and as many to come.
fn room_for(entries: usize) -> usize {
    (entries + entries / 2)
        .next_power_of_two()
        .max(CAPACITY_MIN)
}
