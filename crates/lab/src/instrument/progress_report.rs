//! Progress report of about one second, as text and as JSON.

use report::format::{decimal, decimals, micros};
use serde_json::{Value, json};
use trafficgen::LiveTotals;

/// Counts of about one second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ProgressReport {
    /// End, in seconds from the beginning.
    pub at_seconds: f64,
    /// Duration in seconds.
    pub seconds: f64,
    /// Sent frames; `None` for a receiver.
    pub sent: Option<u64>,
    /// Bytes of sent frames, or of received frames for a receiver, with checksums.
    pub bytes: u64,
    /// Received frames; `None` without a receiver.
    pub received: Option<u64>,
    /// Mean delay in nanoseconds.
    pub delay_ns: Option<f64>,
}

impl ProgressReport {
    /// Returns the difference of two snapshots of a measurement.
    pub(super) fn between(
        (before, after): (&LiveTotals, &LiveTotals),
        at_seconds: f64,
        seconds: f64,
        has_receivers: bool,
    ) -> Self {
        let received = after.received - before.received;
        let delays = after.delays_ns - before.delays_ns;
        Self {
            at_seconds,
            seconds,
            sent: Some(after.sent - before.sent),
            bytes: after.sent_bytes - before.sent_bytes,
            received: has_receivers.then_some(received),
            delay_ns: (received > 0).then(|| delays as f64 / received as f64),
        }
    }

    fn rate(&self, frames: u64) -> f64 {
        frames as f64 / self.seconds
    }

    /// Returns the bits per second of the frames.
    fn bits(&self) -> f64 {
        8.0 * self.bytes as f64 / self.seconds
    }

    /// Returns the report as a line of text.
    #[must_use]
    pub fn line(&self) -> String {
        let mut parts = Vec::new();
        if let Some(sent) = self.sent {
            parts.push(format!("sent {}", pps(self.rate(sent))));
        }
        if let Some(received) = self.received {
            parts.push(format!("received {}", pps(self.rate(received))));
        }
        if self.bytes > 0 {
            parts.push(bits(self.bits()));
        }
        if let Some(delay) = self.delay_ns {
            parts.push(format!("mean delay {} µs", micros(delay)));
        }
        format!("{:>6.0} s   {}", self.at_seconds, parts.join("   "))
    }

    /// Returns the report as a line of JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        json!({
            "kind": "second",
            "at_seconds": self.at_seconds,
            "seconds": self.seconds,
            "sent": self.sent,
            "bytes": self.bytes,
            "received": self.received,
            "mean_delay_ns": self.delay_ns,
        })
    }
}

/// Formats frames per second with three significant digits and a unit.
pub(super) fn pps(value: f64) -> String {
    let (value, unit) = match value {
        small if small < 999.5 => (value, "pps"),
        middle if middle < 999_500.0 => (value / 1e3, "kpps"),
        _ => (value / 1e6, "Mpps"),
    };
    format!("{} {unit}", decimal(value, decimals(value)))
}

/// Formats bits per second with three significant digits and a unit.
pub(super) fn bits(value: f64) -> String {
    let (value, unit) = match value {
        small if small < 999_500.0 => (value / 1e3, "kbit/s"),
        middle if middle < 999.5e6 => (value / 1e6, "Mbit/s"),
        _ => (value / 1e9, "Gbit/s"),
    };
    format!("{} {unit}", decimal(value, decimals(value)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_the_difference_of_two_totals() {
        let before = LiveTotals {
            sent: 1_000,
            sent_bytes: 64_000,
            received: 900,
            delays_ns: 1_800_000,
            delay_max_ns: 9_000,
        };
        let after = LiveTotals {
            sent: 3_000,
            sent_bytes: 192_000,
            received: 1_900,
            delays_ns: 4_800_000,
            delay_max_ns: 9_000,
        };
        let report = ProgressReport::between((&before, &after), 2.0, 1.0, true);
        assert_eq!((report.sent, report.received), (Some(2_000), Some(1_000)));
        assert_eq!(report.delay_ns, Some(3_000.0));
        assert_eq!(
            report.line(),
            "     2 s   sent 2.00 kpps   received 1.00 kpps   1.02 Mbit/s   mean delay 3.00 µs"
        );
        assert_eq!(report.json()["received"], 1_000);
        let deaf = ProgressReport::between((&before, &after), 2.0, 1.0, false);
        assert_eq!(deaf.received, None);
    }

    #[test]
    fn units_follow_the_size() {
        assert_eq!(pps(12.0), "12.0 pps");
        assert_eq!(pps(1_488_095.0), "1.49 Mpps");
        assert_eq!(bits(672.0), "0.67 kbit/s");
        assert_eq!(bits(1e9), "1.00 Gbit/s");
    }
}
