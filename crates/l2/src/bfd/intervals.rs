//! The transmission and detection intervals of a session, and their jitter (RFC 5880, 6.8.2 to
//! 6.8.4 and 6.8.7).

use std::time::Duration;

use base::SplitMix64;
use packet::wire::bfd::BfdState;

/// The shortest transmission interval while the session is not up (RFC 5880, 6.8.3).
const SLOW_MIN_TX: Duration = Duration::from_secs(1);

/// The unit of configured intervals, and the shortest.
const UNIT: Duration = Duration::from_millis(1);

/// The intervals that both systems announce.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Intervals {
    /// `bfd.DesiredMinTxInterval`.
    pub(super) min_tx: Duration,
    /// `bfd.RequiredMinRxInterval`.
    pub(super) min_rx: Duration,
    /// The remote system's desired transmission interval.
    pub(super) remote_min_tx: Duration,
    /// `bfd.RemoteMinRxInterval`; zero if the remote system wants no periodic packets.
    pub(super) remote_min_rx: Duration,
}

impl Intervals {
    /// Returns the local transmission interval to announce.
    pub(super) fn desired_min_tx(&self, state: BfdState) -> Duration {
        match state {
            BfdState::Up => self.min_tx,
            BfdState::AdminDown | BfdState::Down | BfdState::Init => self.min_tx.max(SLOW_MIN_TX),
        }
    }

    /// Returns the transmission interval without jitter.
    pub(super) fn transmission(&self, state: BfdState) -> Duration {
        self.desired_min_tx(state).max(self.remote_min_rx)
    }

    /// Returns the interval at which the remote system transmits.
    pub(super) fn reception(&self) -> Duration {
        self.min_rx.max(self.remote_min_tx)
    }
}

/// Returns an interval that the remote system announced. Open vSwitch counts in milliseconds, and
/// an interval below one is one.
pub(super) fn announced(micros: u32) -> Duration {
    let interval = Duration::from_millis(u64::from(micros / 1000));
    interval.max(UNIT)
}

/// Returns an interval in microseconds.
pub(super) fn micros(interval: Duration) -> u32 {
    u32::try_from(interval.as_micros()).unwrap_or(u32::MAX)
}

/// Returns the interval less a random part: up to 25 %, and with a multiplier of one from 10 % to
/// 25 %, since the remote system waits for a single packet (RFC 5880, 6.8.7).
pub(super) fn jittered(interval: Duration, multiplier: u8, random: &mut SplitMix64) -> Duration {
    let percent = match multiplier {
        1 => 10 + random.below(16),
        _ => random.below(26),
    };
    let percent = u32::try_from(percent).unwrap_or_default();
    interval - interval * percent / 100
}
