//! A running measurement that another thread observes and may end early.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The shared state of a running measurement.
#[derive(Debug, Default)]
pub struct Live {
    should_end: AtomicBool,
    sent: AtomicU64,
    sent_bytes: AtomicU64,
    received: AtomicU64,
    delays_ns: AtomicU64,
    delay_max_ns: AtomicU64,
}

/// Totals of all streams so far, without the warm-up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LiveTotals {
    /// Frames sent.
    pub sent: u64,
    /// Bytes sent, with FCS.
    pub sent_bytes: u64,
    /// Distinct frames received at their destination port.
    pub received: u64,
    /// The sum of their delays in nanoseconds.
    pub delays_ns: u64,
    /// The maximum of their delays in nanoseconds.
    pub delay_max_ns: u64,
}

impl Live {
    /// Ends the measurement: transmission stops, the receiver waits for late frames, and the
    /// results are computed as if the request had this duration.
    pub fn end(&self) {
        self.should_end.store(true, Ordering::Relaxed);
    }

    /// Returns the totals so far. The values are a few microseconds old and not from one instant.
    #[must_use]
    pub fn totals(&self) -> LiveTotals {
        let read = |number: &AtomicU64| number.load(Ordering::Relaxed);
        LiveTotals {
            sent: read(&self.sent),
            sent_bytes: read(&self.sent_bytes),
            received: read(&self.received),
            delays_ns: read(&self.delays_ns),
            delay_max_ns: read(&self.delay_max_ns),
        }
    }

    /// Returns true if the measurement should end.
    pub(super) fn should_end(&self) -> bool {
        self.should_end.load(Ordering::Relaxed)
    }

    /// Publishes the sent frames and bytes.
    pub(super) fn publish_sent(&self, (frames, bytes): (u64, u64)) {
        self.sent.store(frames, Ordering::Relaxed);
        self.sent_bytes.store(bytes, Ordering::Relaxed);
    }

    /// Publishes the received frames, the sum of their delays and the maximum.
    pub(super) fn publish_received(&self, (frames, delays_ns, delay_max_ns): (u64, u64, u64)) {
        self.received.store(frames, Ordering::Relaxed);
        self.delays_ns.store(delays_ns, Ordering::Relaxed);
        self.delay_max_ns.store(delay_max_ns, Ordering::Relaxed);
    }
}
