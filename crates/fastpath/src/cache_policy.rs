//! The decision whether a worker uses a cache: by the tables that packets visit, then by the share of
//! packets that hit. Traffic that a cache does not help costs an attempt now and then.

/// A cache stays enabled if at least one packet in so many hits.
const HIT_SHARE: u64 = 2;

/// With fewer hits it stays enabled as long as it learns: as long as each window has more hits than
/// the one before by at least one packet in so many.
const GROWTH_SHARE: u64 = 16;

/// Windows for which a cache is disabled at first; the number doubles each time.
pub(crate) const DISABLED_MIN: u32 = 32;

/// Use of a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CacheState {
    /// Not used for so many windows.
    Disabled(u32),
    /// Used, and too new to judge by its hits.
    Learning,
    /// Used as long as enough packets hit.
    Enabled,
    /// Always used, for tests.
    Forced,
}

/// Packets of a window, and hits of the cache.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WindowHits {
    /// Packets that were looked up in the cache.
    pub(crate) packets: u64,
    /// Packets for which it replaced all lookups in tables.
    pub(crate) full: u64,
    /// Entries that were found, of which a packet may need several.
    pub(crate) found: u64,
}

impl WindowHits {
    /// Measure of learning: some entries of a packet are found before all are.
    const fn learned(self) -> u64 {
        self.full + self.found
    }
}

/// State of a cache, and the time for which it is disabled next.
#[derive(Debug)]
pub(crate) struct CachePolicy {
    pub(crate) state: CacheState,
    /// Measure of learning of the window before.
    learned: u64,
    pub(crate) disabled_windows: u32,
    /// Most windows for which it is disabled.
    disabled_max: u32,
}

impl CachePolicy {
    /// A cache that is not used yet, and is disabled for so many windows at most.
    pub(crate) const fn new(disabled_max: u32) -> Self {
        Self {
            state: CacheState::Disabled(0),
            learned: 0,
            disabled_windows: DISABLED_MIN,
            disabled_max,
        }
    }

    /// Uses the cache in any case.
    pub(crate) const fn force(&mut self) {
        self.state = CacheState::Forced;
    }

    /// Lets the cache learn anew, since it was emptied.
    pub(crate) const fn restart_learning(&mut self) {
        self.learned = 0;
    }

    #[inline]
    pub(crate) const fn is_used(&self) -> bool {
        !matches!(self.state, CacheState::Disabled(_))
    }

    pub(crate) const fn is_forced(&self) -> bool {
        matches!(self.state, CacheState::Forced)
    }

    /// Decides the state for the next window. `is_promising` is true if the tables suggest that the
    /// cache helps. Returns true if the cache is disabled now, and was used before.
    pub(crate) fn end_window(&mut self, is_promising: bool, hits: WindowHits) -> bool {
        let learned = std::mem::replace(&mut self.learned, hits.learned());
        let grows = hits.learned() >= learned + hits.packets / GROWTH_SHARE;
        self.state = match self.state {
            CacheState::Disabled(0) if is_promising => CacheState::Learning,
            CacheState::Disabled(left) => CacheState::Disabled(left.saturating_sub(1)),
            CacheState::Learning => CacheState::Enabled,
            CacheState::Enabled if hits.packets < HIT_SHARE * hits.full => {
                self.disabled_windows = DISABLED_MIN;
                CacheState::Enabled
            }
            CacheState::Enabled if grows && hits.packets > 0 => CacheState::Enabled,
            CacheState::Enabled => return self.disable(),
            CacheState::Forced => CacheState::Forced,
        };
        false
    }

    /// Disables the cache. Returns true if it was used.
    pub(crate) fn disable(&mut self) -> bool {
        let was_used = self.is_used();
        let windows = self.disabled_windows;
        self.disabled_windows = (2 * windows).min(self.disabled_max);
        self.state = CacheState::Disabled(windows);
        was_used
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A cache that is used, with the hits of its windows so far.
    fn cache_with(windows: &[(u64, u64)]) -> CachePolicy {
        let mut policy = CachePolicy::new(64);
        policy.end_window(true, WindowHits::default());
        assert_eq!(policy.state, CacheState::Learning);
        for &(full, found) in windows {
            let packets = 1600;
            let hits = WindowHits {
                packets,
                full,
                found,
            };
            policy.end_window(true, hits);
        }
        policy
    }

    #[test]
    fn cache_is_enabled_while_it_learns() {
        let growing = [(0, 800), (0, 1600), (0, 1800), (200, 1900), (700, 2200)];
        assert_eq!(cache_with(&growing).state, CacheState::Enabled);
        let learned = [&growing[..], &[(900, 2500), (900, 2500)]].concat();
        assert_eq!(cache_with(&learned).state, CacheState::Enabled);
    }

    #[test]
    fn cache_that_learns_no_more_is_disabled() {
        let constant = [(0, 1600), (0, 1600)];
        assert_eq!(cache_with(&constant).state, CacheState::Disabled(32));
        let slow = [(50, 50), (74, 74)];
        assert_eq!(cache_with(&slow).state, CacheState::Disabled(32));
    }

    #[test]
    fn emptied_cache_learns_anew() {
        let mut policy = cache_with(&[(1600, 1600)]);
        policy.restart_learning();
        let hits = WindowHits {
            packets: 1600,
            full: 400,
            found: 400,
        };
        policy.end_window(true, hits);
        assert_eq!(policy.state, CacheState::Enabled);
    }
}
