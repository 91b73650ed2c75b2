//! The decision whether a worker uses a cache: by the tables that packets visit, then by the share of
//! packets that hit. Traffic that a cache does not help costs an attempt now and then.

/// A cache stays enabled if at least one packet in so many hits.
const HIT_SHARE: u64 = 2;

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

/// State of a cache, and the time for which it is disabled next.
#[derive(Debug)]
pub(crate) struct CachePolicy {
    pub(crate) state: CacheState,
    pub(crate) disabled_windows: u32,
    /// Most windows for which it is disabled.
    disabled_max: u32,
}

impl CachePolicy {
    /// A cache that is not used yet, and is disabled for so many windows at most.
    pub(crate) const fn new(disabled_max: u32) -> Self {
        Self {
            state: CacheState::Disabled(0),
            disabled_windows: DISABLED_MIN,
            disabled_max,
        }
    }

    /// Uses the cache in any case.
    pub(crate) const fn force(&mut self) {
        self.state = CacheState::Forced;
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
    pub(crate) fn end_window(&mut self, is_promising: bool, packets: u64, hits: u64) -> bool {
        self.state = match self.state {
            CacheState::Disabled(0) if is_promising => CacheState::Learning,
            CacheState::Disabled(left) => CacheState::Disabled(left.saturating_sub(1)),
            CacheState::Learning => CacheState::Enabled,
            CacheState::Enabled if packets < HIT_SHARE * hits => {
                self.disabled_windows = DISABLED_MIN;
                CacheState::Enabled
            }
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
