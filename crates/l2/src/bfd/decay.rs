//! Decay: while an interface receives little but control packets, a longer receive interval is
//! announced, so that idle sessions cost less (ovs-vswitchd.conf.db(5), `bfd:decay_min_rx`).

use std::time::Duration;

use base::Instant;

/// The shortest time between two checks: counters of an interface may be late.
const PERIOD_MIN: Duration = Duration::from_secs(2);

/// The decay of a session.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Decay {
    /// The receive interval of an idle interface; none disables the decay.
    pub(super) min_rx: Option<Duration>,
    /// The interface is idle.
    pub(super) is_active: bool,
    /// Frames that the interface had received at the last check.
    rx_frames: u64,
    /// Control packets received since the last check.
    pub(super) control_packets: u64,
    /// The time of the next check.
    next_check: Instant,
}

impl Decay {
    /// Begins a period.
    pub(super) fn begin(&mut self, rx_frames: u64, now: Instant) {
        self.rx_frames = rx_frames;
        self.control_packets = 0;
        self.next_check = now + self.min_rx.unwrap_or_default().max(PERIOD_MIN);
    }

    /// Checks at the end of a period if the interface is idle. Twice the control packets are
    /// allowed for, since the counters of the interface are not read at the same time.
    pub(super) fn check(&mut self, rx_frames: u64, now: Instant) {
        if self.min_rx.is_some() && now >= self.next_check {
            let received = rx_frames.saturating_sub(self.rx_frames);
            self.is_active = received <= 2 * self.control_packets.max(1);
            self.begin(rx_frames, now);
        }
    }

    /// Returns the time of the next check.
    pub(super) fn next_check(&self) -> Option<Instant> {
        self.min_rx.map(|_| self.next_check)
    }
}
