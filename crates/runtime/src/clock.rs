//! The one place of the daemon that reads a clock.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant as SystemInstant, SystemTime};

use base::Instant;
use openflow::WallTime;

/// The time since the daemon's start, the same for all its threads.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: SystemInstant,
    /// The same instant by the clock on the wall.
    wall: SystemTime,
    /// Those who may stop it and put it forward; none, unless it is for tests.
    hands: Option<&'static Hands>,
}

/// How a clock stands that can be stopped and put forward.
#[derive(Debug)]
struct Hands {
    /// Where it stands, in nanoseconds; [`RUNS`] if it does not.
    stands: AtomicU64,
    /// How far it is ahead, in nanoseconds.
    ahead: AtomicU64,
}

/// Said of a clock that does not stand still.
const RUNS: u64 = u64::MAX;

/// Those of the process: it has one clock, which all its threads have a copy of.
static HANDS: Hands = Hands {
    stands: AtomicU64::new(RUNS),
    ahead: AtomicU64::new(0),
};

/// What the clock on the wall shows, since 1970.
#[expect(
    clippy::disallowed_methods,
    reason = "this module is where the clock is read"
)]
pub fn wall() -> Duration {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.unwrap_or_default()
}

impl Hands {
    /// What the clock shows, so many nanoseconds after its start.
    fn read(&self, real: u64) -> u64 {
        match self.stands.load(Ordering::Relaxed) {
            RUNS => real.saturating_add(self.ahead.load(Ordering::Relaxed)),
            stands => stands,
        }
    }
}

impl Clock {
    /// A clock that starts now.
    #[expect(
        clippy::disallowed_methods,
        reason = "this module is where the clock is read"
    )]
    #[must_use]
    pub fn start() -> Self {
        Self {
            start: SystemInstant::now(),
            wall: SystemTime::now(),
            hands: None,
        }
    }

    /// A clock that starts now and can be stopped and put forward, for tests.
    pub(crate) fn start_that_stops() -> Self {
        Self {
            hands: Some(&HANDS),
            ..Self::start()
        }
    }

    /// Now.
    #[must_use]
    pub fn now(self) -> Instant {
        let real = self.real();
        let shown = self.hands.map_or(real, |hands| hands.read(real));
        Instant::from_nanos(shown)
    }

    /// Nanoseconds since the start, whatever the clock shows.
    fn real(self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Has it stand still. Tells whether it can.
    pub(crate) fn stop(self) -> bool {
        if let Some(hands) = self.hands {
            let now = hands.read(self.real());
            hands.stands.store(now, Ordering::Relaxed);
        }
        self.hands.is_some()
    }

    /// Puts it forward. Tells whether it can be.
    pub(crate) fn put_forward(self, by: Duration) -> bool {
        let by = u64::try_from(by.as_nanos()).unwrap_or(u64::MAX);
        if let Some(hands) = self.hands {
            match hands.stands.load(Ordering::Relaxed) {
                RUNS => drop(hands.ahead.fetch_add(by, Ordering::Relaxed)),
                stands => {
                    let then = stands.saturating_add(by).min(RUNS - 1);
                    hands.stands.store(then, Ordering::Relaxed);
                }
            }
        }
        self.hands.is_some()
    }

    /// What the clock on the wall showed at the start. Who sets it meanwhile is not heeded.
    pub(crate) fn started(self) -> WallTime {
        let since = self.wall.duration_since(SystemTime::UNIX_EPOCH);
        WallTime(since.unwrap_or_default())
    }

    /// The same instant on the system's clock, for a runtime's timers; of a clock that stands or is
    /// put forward, as far from now as it seems.
    #[must_use]
    pub fn to_system(self, instant: Instant) -> SystemInstant {
        match self.hands {
            None => self.start + instant.since(Instant::START),
            Some(_) => {
                let real = Duration::from_nanos(self.real());
                self.start + real + instant.since(self.now())
            }
        }
    }
}
