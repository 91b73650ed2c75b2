//! A measurement that another thread looks at while it goes on, and may end before its time.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// What a measurement shows while it goes on.
#[derive(Debug, Default)]
pub struct Live {
    is_enough: AtomicBool,
    sent: AtomicU64,
    sent_bytes: AtomicU64,
    received: AtomicU64,
    delays_ns: AtomicU64,
    delay_max_ns: AtomicU64,
}

/// What has come of all streams so far, warm-up left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Glance {
    /// Frames that were sent.
    pub sent: u64,
    /// Their bytes, with their checksums.
    pub sent_bytes: u64,
    /// Different frames that came out where they should.
    pub received: u64,
    /// Nanoseconds that these took, summed up.
    pub delays_ns: u64,
    /// The longest that one took, in nanoseconds.
    pub delay_max_ns: u64,
}

impl Live {
    /// Ends the measurement: nothing more is sent, stragglers are waited for, and the books are
    /// closed as if it had been asked for no longer.
    pub fn end(&self) {
        self.is_enough.store(true, Ordering::Relaxed);
    }

    /// What has come of it so far. Numbers are those of a few microseconds ago, and not all of one
    /// moment.
    #[must_use]
    pub fn glance(&self) -> Glance {
        let read = |number: &AtomicU64| number.load(Ordering::Relaxed);
        Glance {
            sent: read(&self.sent),
            sent_bytes: read(&self.sent_bytes),
            received: read(&self.received),
            delays_ns: read(&self.delays_ns),
            delay_max_ns: read(&self.delay_max_ns),
        }
    }

    /// Whether it is to end.
    pub(super) fn is_enough(&self) -> bool {
        self.is_enough.load(Ordering::Relaxed)
    }

    /// Shows what was sent: frames and bytes.
    pub(super) fn show_sent(&self, (frames, bytes): (u64, u64)) {
        self.sent.store(frames, Ordering::Relaxed);
        self.sent_bytes.store(bytes, Ordering::Relaxed);
    }

    /// Shows what came: frames, the sum of their delays, and the longest.
    pub(super) fn show_received(&self, (frames, delays_ns, delay_max_ns): (u64, u64, u64)) {
        self.received.store(frames, Ordering::Relaxed);
        self.delays_ns.store(delays_ns, Ordering::Relaxed);
        self.delay_max_ns.store(delay_max_ns, Ordering::Relaxed);
    }
}
