//! Counters along the path of a trial's frames: of the hosts, of the kernel at the device's ends
//! of the links, and of the device itself. The traffic generator has counters of its own.
//!
//! ```text
//! host interface -> link -> device port (OpenFlow counters) -> link -> host interface
//!      sent       received      received   sent               sent       received
//! ```

use serde::{Deserialize, Serialize};

/// Counts of an interface or a port during a trial.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrameCounts {
    /// Received frames.
    pub received: u64,
    /// Received bytes, by the definition of the counter.
    pub received_bytes: u64,
    /// Frames dropped on reception.
    pub received_dropped: u64,
    /// Sent frames.
    pub sent: u64,
    /// Sent bytes.
    pub sent_bytes: u64,
    /// Frames dropped on transmission.
    pub sent_dropped: u64,
}

impl FrameCounts {
    /// Returns the difference from `earlier`; `None` if a counter was reset.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Option<Self> {
        Some(Self {
            received: self.received.checked_sub(earlier.received)?,
            received_bytes: self.received_bytes.checked_sub(earlier.received_bytes)?,
            received_dropped: self
                .received_dropped
                .checked_sub(earlier.received_dropped)?,
            sent: self.sent.checked_sub(earlier.sent)?,
            sent_bytes: self.sent_bytes.checked_sub(earlier.sent_bytes)?,
            sent_dropped: self.sent_dropped.checked_sub(earlier.sent_dropped)?,
        })
    }
}

/// Counts along the path from host to host, each list in the order of hosts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathCounters {
    /// Each host's interface.
    pub hosts: Vec<FrameCounts>,
    /// The device's end of the link to each host, by the kernel; empty if there are no links.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cables: Vec<FrameCounts>,
    /// The device's port to each host, by its OpenFlow port statistics; empty if they were not
    /// requested, or not returned.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<FrameCounts>,
    /// Reason for missing port statistics.
    #[serde(default, rename = "untold", skip_serializing_if = "Option::is_none")]
    pub port_stats_error: Option<String>,
    /// Packet-ins since the rules were installed; `None` without a controller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packet_ins: Option<u64>,
    /// Frames dropped by full backlogs of the whole machine; `None` if the kernel does not report
    /// them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backlog_dropped: Option<u64>,
    /// True if hosts sent segments larger than the MTU: the kernel counts such a segment as one
    /// frame, and the device may count it as many.
    pub segments: bool,
}

/// Difference of two counters that is not reported: devices and kernels send frames of their own.
const DIFFERENCE_MAX: u64 = 10;
/// Part of all frames that is not reported: one in so many.
const DIFFERENCE_PART: u64 = 1_000;

/// Least number of sent frames of which some must arrive.
const LOAD_MIN: u64 = 20;

/// Point of the path, and the number of frames counted there.
type PathPoint = (&'static str, u64);

impl PathCounters {
    fn sum(counts: &[FrameCounts], of: fn(&FrameCounts) -> u64) -> u64 {
        counts.iter().map(of).sum()
    }

    /// Returns the frames that hosts sent.
    #[must_use]
    pub fn sent(&self) -> u64 {
        Self::sum(&self.hosts, |host| host.sent)
    }

    /// Returns the frames that hosts received.
    #[must_use]
    pub fn received(&self) -> u64 {
        Self::sum(&self.hosts, |host| host.received)
    }

    /// Returns the counts along the path, in its order.
    #[must_use]
    pub fn points(&self) -> Vec<PathPoint> {
        let mut points = vec![("sent by the hosts", self.sent())];
        let inner = [
            ("received at the device", &self.cables, true),
            ("counted in by the device", &self.ports, true),
            ("counted out by the device", &self.ports, false),
            ("sent at the device", &self.cables, false),
        ];
        for (point, counts, is_in) in inner {
            let of: fn(&FrameCounts) -> u64 = if is_in {
                |at| at.received
            } else {
                |at| at.sent
            };
            if !counts.is_empty() {
                points.push((point, Self::sum(counts, of)));
            }
        }
        points.push(("received by the hosts", self.received()));
        points
    }

    /// Returns the locations of losses in words, with the number of lost frames: between one
    /// point of [`Self::points`] and the next. Duplicated frames hide as many losses.
    #[must_use]
    pub fn losses(&self) -> Vec<(String, u64)> {
        if self.segments {
            return Vec::new();
        }
        let refused = Self::sum(&self.hosts, |host| host.sent_dropped);
        let at_hosts =
            (refused > 0).then(|| ("dropped by the hosts' interfaces".to_owned(), refused));
        let points = self.points();
        let steps = points.windows(2).filter_map(|pair| {
            let ((from, before), (to, after)) = (pair[0], pair[1]);
            let lost = before.checked_sub(after).filter(|lost| *lost > 0)?;
            Some((format!("{from}, not {to}"), lost))
        });
        at_hosts.into_iter().chain(steps).collect()
    }

    /// Returns all counts in a line.
    #[must_use]
    pub fn in_words(&self) -> String {
        let points = self.points().into_iter();
        let points: Vec<String> = points
            .map(|(point, frames)| format!("{frames} {point}"))
            .collect();
        format!("frames: {}", points.join(", "))
    }

    /// Returns true if load was offered and fewer than one frame in a hundred arrived.
    #[must_use]
    pub fn is_silent(&self) -> bool {
        self.sent() >= LOAD_MIN && self.received() < self.sent().div_ceil(100)
    }

    /// Returns the differences between the device's own counters and those of the hosts, in words.
    #[must_use]
    pub fn disagreements(&self) -> Vec<String> {
        if self.ports.is_empty() || self.segments {
            return Vec::new();
        }
        let (sent, received) = (self.sent(), self.received());
        let counted_in = Self::sum(&self.ports, |port| port.received);
        let counted_out = Self::sum(&self.ports, |port| port.sent);
        let pairs = [
            (counted_in, "in", sent, "the hosts sent"),
            (counted_out, "out", received, "the hosts received"),
        ];
        let differences = pairs.into_iter().filter_map(|(own, direction, theirs, verb)| {
            let difference = own.abs_diff(theirs);
            if difference <= DIFFERENCE_MAX.max(theirs / DIFFERENCE_PART) {
                return None;
            }
            let more = if own < theirs { "fewer" } else { "more" };
            Some(format!(
                "the device counted {difference} frames {more} {direction} than {verb} ({theirs})"
            ))
        });
        differences.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(received: u64, sent: u64) -> FrameCounts {
        FrameCounts {
            received,
            sent,
            received_bytes: received * 60,
            sent_bytes: sent * 60,
            ..FrameCounts::default()
        }
    }

    /// A thousand frames from the first host to the second.
    fn counters_of_a_thousand() -> PathCounters {
        PathCounters {
            hosts: vec![counts(0, 1_000), counts(1_000, 0)],
            cables: vec![counts(1_000, 0), counts(0, 1_000)],
            ports: vec![counts(1_000, 0), counts(0, 1_000)],
            ..PathCounters::default()
        }
    }

    #[test]
    fn counters_of_all_frames_show_no_loss() {
        let counters = counters_of_a_thousand();
        assert!(counters.losses().is_empty() && counters.disagreements().is_empty());
        assert!(!counters.is_silent());
        assert_eq!(
            counters.in_words(),
            "frames: 1000 sent by the hosts, 1000 received at the device, \
             1000 counted in by the device, 1000 counted out by the device, \
             1000 sent at the device, 1000 received by the hosts"
        );
    }

    #[test]
    fn losses_are_located_between_two_points() {
        let mut counters = counters_of_a_thousand();
        counters.hosts[0].sent_dropped = 7;
        counters.ports = vec![counts(700, 0), counts(0, 600)];
        counters.cables[1] = counts(0, 600);
        counters.hosts[1] = counts(590, 0);
        assert_eq!(
            counters.losses(),
            [
                ("dropped by the hosts' interfaces".to_owned(), 7),
                (
                    "received at the device, not counted in by the device".to_owned(),
                    300
                ),
                (
                    "counted in by the device, not counted out by the device".to_owned(),
                    100
                ),
                (
                    "sent at the device, not received by the hosts".to_owned(),
                    10
                ),
            ]
        );
        assert_eq!(
            counters.disagreements(),
            ["the device counted 300 frames fewer in than the hosts sent (1000)"],
            "ten may be frames of the machine itself"
        );
        counters.segments = true;
        assert!(counters.losses().is_empty() && counters.disagreements().is_empty());
    }

    #[test]
    fn disagreements_name_a_device_that_counts_more_than_arrived() {
        let mut counters = counters_of_a_thousand();
        counters.hosts[1] = counts(0, 0);
        assert_eq!(
            counters.disagreements(),
            ["the device counted 1000 frames more out than the hosts received (0)"]
        );
        assert!(counters.is_silent());
        counters.hosts[1] = counts(10, 0);
        assert!(!counters.is_silent());
        counters.ports.clear();
        assert!(
            counters.disagreements().is_empty(),
            "the device returned no statistics"
        );
    }

    #[test]
    fn counts_since_a_reset_are_none() {
        let (before, after) = (counts(10, 10), counts(9, 20));
        assert_eq!(after.since(&before), None);
        assert_eq!(counts(15, 10).since(&before), Some(counts(5, 0)));
    }
}
