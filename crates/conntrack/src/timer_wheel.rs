//! Hierarchical timing wheels (Varghese and Lauck, "Hashed and hierarchical timing wheels", 1987)
//! with an occupancy bitmap for each level.
//!
//! ```text
//!  level 0   64 slots of one tick        [ | | |x| | ... ]   bitmap 0000...1000
//!  level 1   64 slots of 64 ticks        [ |x| | | | ... ]
//!  ...                                                       a slot is a doubly linked list
//!  level 5   64 slots of 64^5 ticks      [ | | | | |x... ]
//! ```
//!
//! The level of a timer is the highest group of six bits in which its tick differs from the wheel's
//! tick. So all timers of a level are in slots after the current one, lower levels are due earlier,
//! and the next slot is found from six bitmaps. A slot of a higher level is distributed over lower
//! ones when its first tick is reached.
//!
//! A packet of a connection prolongs it by writing the entry's expiry; the wheel is not touched
//! unless the new expiry is earlier than the tick of the timer. A timer that fires before its entry
//! expires is set again.
//!
//! Cost: setting, moving and removing a timer is constant. A timer moves at most once per level.
//! Ticks without timers cost nothing, however many pass. Memory: 1.5 KiB, and 8 bytes per entry.

use base::Instant;
use sys::cache::prefetch;

/// No entry.
const NIL: u32 = u32::MAX;
/// Bits of a level.
const LEVEL_BITS: u32 = 6;
/// Slots of a level.
const SLOTS: usize = 1 << LEVEL_BITS;
/// Levels: with ticks of 2^28 ns, all instants that [`Instant`] can express.
const LEVELS: usize = 6;
/// Bits of a tick's number below those of each level.
const LEVEL_SHIFTS: [u32; LEVELS] = [0, 6, 12, 18, 24, 30];
/// Nanoseconds of a tick, as a power of two: 268 ms. Timeouts are seconds, and the expiry of an
/// entry is exact in any case, because lookups compare it.
const TICK_BITS: u32 = 28;
/// Links grow by this part of their number, so that at most as much memory is unused.
const GROWTH: usize = 8;
/// Slot number of an entry without a timer, above all others.
const NO_SLOT: u16 = (1 << (u64::BITS - 2 * INDEX_BITS)) - 1;

/// Bits of an index in a link; those of the slot are the rest.
const INDEX_BITS: u32 = 27;
const INDEX_MASK: u32 = (1 << INDEX_BITS) - 1;
const _: () = assert!(
    LEVELS * SLOTS < 1 << (u64::BITS - 2 * INDEX_BITS),
    "slots fit"
);

/// Entries of a wheel, more than fit in memory.
pub(crate) const TIMERS_MAX: u32 = INDEX_MASK;

/// A timer's neighbours in its slot, and the slot, in one word.
#[derive(Clone, Copy, Debug)]
struct TimerLink(u64);

impl TimerLink {
    const NONE: Self = Self::new(NIL, NIL, NO_SLOT);

    /// Indices are below [`TIMERS_MAX`], or [`NIL`].
    const fn new(previous: u32, next: u32, slot: u16) -> Self {
        let [previous, next] = [previous & INDEX_MASK, next & INDEX_MASK];
        Self((slot as u64) << (2 * INDEX_BITS) | (previous as u64) << INDEX_BITS | next as u64)
    }

    const fn slot(self) -> u16 {
        let [high, low, ..] = (self.0 >> (2 * INDEX_BITS) << 48).to_be_bytes();
        u16::from_be_bytes([high, low])
    }

    const fn previous(self) -> u32 {
        index_of(self.0 >> INDEX_BITS)
    }

    const fn next(self) -> u32 {
        index_of(self.0)
    }

    const fn set_previous(&mut self, previous: u32) {
        *self = Self::new(previous, self.next(), self.slot());
    }

    const fn set_next(&mut self, next: u32) {
        *self = Self::new(self.previous(), next, self.slot());
    }
}

/// The index in the lowest bits of a word.
const fn index_of(word: u64) -> u32 {
    let [.., a, b, c, d] = word.to_be_bytes();
    match u32::from_be_bytes([a, b, c, d]) & INDEX_MASK {
        INDEX_MASK => NIL,
        index => index,
    }
}

/// The timers of a shard: one for each entry, by its index.
#[derive(Debug)]
pub(crate) struct TimerWheel {
    /// Ticks that have passed.
    elapsed: u64,
    occupied: [u64; LEVELS],
    heads: Box<[u32]>,
    links: Vec<TimerLink>,
}

impl TimerWheel {
    pub(crate) fn new() -> Self {
        Self {
            elapsed: 0,
            occupied: [0; LEVELS],
            heads: vec![NIL; LEVELS * SLOTS].into_boxed_slice(),
            links: Vec::new(),
        }
    }

    /// Prefetches the memory of the entry that was added last.
    #[inline]
    pub(crate) fn prefetch_last(&self) {
        self.links.last().into_iter().for_each(prefetch);
    }

    /// Prefetches the timer of an entry.
    #[inline]
    pub(crate) fn prefetch_timer(&self, index: u32) {
        self.links
            .get(index as usize)
            .into_iter()
            .for_each(prefetch);
    }

    /// Prefetches the neighbors of the timer of an entry.
    #[inline]
    pub(crate) fn prefetch_neighbors(&self, index: u32) {
        if let Some(link) = self.links.get(index as usize) {
            self.prefetch_timer(link.previous());
            self.prefetch_timer(link.next());
        }
    }

    /// Sets the timer of an entry to the first tick after `expires`, or leaves it where it is if it
    /// fires earlier.
    pub(crate) fn set(&mut self, index: u32, expires: Instant) {
        let slot = self.slot_of(tick_after(expires));
        let at = index as usize;
        if at >= self.links.len() {
            if at >= self.links.capacity() {
                let more = (at / GROWTH).max(SLOTS);
                self.links.reserve_exact(at - self.links.len() + more);
            }
            self.links.resize(at + 1, TimerLink::NONE);
        }
        let current = self.links[at].slot();
        // Slot numbers grow with the level, and within a level with the tick.
        if current <= slot {
            return;
        }
        self.remove(index);
        self.insert(index, slot);
    }

    /// Removes the timer of an entry, if it has one.
    pub(crate) fn remove(&mut self, index: u32) {
        let Some(link) = self.links.get_mut(index as usize) else {
            return;
        };
        let link = std::mem::replace(link, TimerLink::NONE);
        let (previous, next, slot) = (link.previous(), link.next(), link.slot());
        if slot == NO_SLOT {
            return;
        }
        let slot = usize::from(slot);
        if previous == NIL {
            self.heads[slot] = next;
        } else {
            self.links[previous as usize].set_next(next);
        }
        if next != NIL {
            self.links[next as usize].set_previous(previous);
        }
        if self.heads[slot] == NIL {
            self.occupied[slot / SLOTS] &= !(1 << (slot % SLOTS));
        }
    }

    /// Removes and returns an entry whose timer fires at `now` or earlier. The caller sets the timer
    /// again if the entry has not expired.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<u32> {
        let limit = now.as_nanos() >> TICK_BITS;
        if let Some((slot, tick)) = self.next_slot()
            && tick <= limit
        {
            self.elapsed = self.elapsed.max(tick);
            let index = self.heads[slot];
            self.remove(index);
            return Some(index);
        }
        self.elapsed = self.elapsed.max(limit);
        None
    }

    /// Returns the slot with timers that is due first, and its first tick. A slot of a higher level
    /// that is being distributed is due before those that its timers were moved to.
    fn next_slot(&self) -> Option<(usize, u64)> {
        let slots = (0..LEVELS).filter_map(|level| {
            let shift = LEVEL_SHIFTS[level];
            let current = (self.elapsed >> shift) & (SLOTS as u64 - 1);
            let due = self.occupied[level] & (u64::MAX << current);
            if due == 0 {
                return None;
            }
            let slot = due.trailing_zeros();
            let lap = self.elapsed >> (shift + LEVEL_BITS) << (shift + LEVEL_BITS);
            let tick = lap | u64::from(slot) << shift;
            Some((level * SLOTS + slot as usize, tick))
        });
        slots.min_by_key(|(_, tick)| *tick)
    }

    /// Returns the slot of a tick, which is later than the current one.
    fn slot_of(&self, tick: u64) -> u16 {
        let tick = tick.max(self.elapsed + 1);
        let level = (tick ^ self.elapsed).ilog2() / LEVEL_BITS;
        let level = (level as usize).min(LEVELS - 1);
        let slot = (tick >> LEVEL_SHIFTS[level]) & (SLOTS as u64 - 1);
        let number = level as u64 * SLOTS as u64 + slot;
        u16::try_from(number).expect("six levels of 64 slots have numbers below 384")
    }

    fn insert(&mut self, index: u32, slot: u16) {
        let at = usize::from(slot);
        let head = std::mem::replace(&mut self.heads[at], index);
        if head != NIL {
            self.links[head as usize].set_previous(index);
        }
        self.links[index as usize] = TimerLink::new(NIL, head, slot);
        self.occupied[at / SLOTS] |= 1 << (at % SLOTS);
    }
}

/// Returns the first tick that begins after `instant`.
const fn tick_after(instant: Instant) -> u64 {
    (instant.as_nanos() >> TICK_BITS) + 1
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Pops all timers that are due; an entry that has not expired is set again.
    fn expire(wheel: &mut TimerWheel, entries: &mut [Option<Instant>], now: Instant) {
        while let Some(index) = wheel.pop(now) {
            let entry = &mut entries[index as usize];
            match *entry {
                Some(expires) if expires > now => wheel.set(index, expires),
                Some(_) => *entry = None,
                None => panic!("timer {index} has no entry"),
            }
        }
    }

    proptest! {
        #[test]
        fn wheel_expires_entries_within_a_tick(
            steps in prop::collection::vec((0_u32..8, 0_u64..20_000, 0_u64..5_000), 1..200),
        ) {
            let mut wheel = TimerWheel::new();
            let mut entries = vec![None; 8];
            let mut now = Instant::START;
            for (index, timeout, pause) in steps {
                let expires = now + std::time::Duration::from_secs(timeout);
                entries[index as usize] = Some(expires);
                wheel.set(index, expires);
                now += std::time::Duration::from_millis(pause);
                expire(&mut wheel, &mut entries, now);
                let late = entries.iter().flatten().any(|expires| {
                    tick_after(*expires) <= now.as_nanos() >> TICK_BITS
                });
                prop_assert!(!late, "an entry expired more than a tick ago");
            }
            expire(&mut wheel, &mut entries, Instant::from_secs(1 << 30));
            prop_assert!(entries.iter().all(Option::is_none));
            prop_assert_eq!(wheel.occupied, [0; LEVELS]);
        }
    }

    #[test]
    fn link_holds_neighbours_and_slot() {
        assert_eq!(size_of::<TimerLink>(), 8);
        let last = u16::try_from(LEVELS * SLOTS - 1).expect("slots are few");
        let mut link = TimerLink::new(7, TIMERS_MAX - 1, last);
        let read = |link: TimerLink| (link.previous(), link.next(), link.slot());
        assert_eq!(read(link), (7, TIMERS_MAX - 1, last));
        link.set_previous(NIL);
        link.set_next(0);
        assert_eq!(read(link), (NIL, 0, last));
        assert_eq!(read(TimerLink::NONE), (NIL, NIL, NO_SLOT));
    }

    #[test]
    fn wheel_skips_years_without_timers() {
        let mut wheel = TimerWheel::new();
        assert_eq!(wheel.pop(Instant::from_secs(1 << 32)), None);
        wheel.set(3, Instant::from_nanos(u64::MAX));
        assert_eq!(wheel.pop(Instant::from_secs(1 << 33)), None);
        wheel.remove(3);
        assert_eq!(wheel.pop(Instant::from_nanos(u64::MAX)), None);
    }

    #[test]
    fn wheel_moves_a_timer_only_to_an_earlier_tick() {
        let mut wheel = TimerWheel::new();
        wheel.set(0, Instant::from_secs(1_000));
        wheel.set(0, Instant::from_secs(10));
        wheel.set(0, Instant::from_secs(2_000));
        assert_eq!(wheel.pop(Instant::from_secs(9)), None);
        assert_eq!(wheel.pop(Instant::from_secs(11)), Some(0));
        assert_eq!(wheel.pop(Instant::from_secs(5_000)), None);
    }
}
