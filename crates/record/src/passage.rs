//! What was counted at each place that frames of a test pass: by the hosts, by the kernel at the
//! device's ends of the cables, and by the device itself. Who offered load has counts of its own.

use serde::{Deserialize, Serialize};

/// What an interface or a port counted during a test.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrameCounts {
    /// Frames that came in.
    pub received: u64,
    /// Bytes of them, as whoever counts them does.
    pub received_bytes: u64,
    /// Frames that came in and found no room.
    pub received_dropped: u64,
    /// Frames that went out.
    pub sent: u64,
    /// Bytes of them.
    pub sent_bytes: u64,
    /// Frames that were to go out and could not.
    pub sent_dropped: u64,
}

impl FrameCounts {
    /// What was counted since `earlier`, if no counter began again.
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

/// Counts along the way from host to host, each list in the order of hosts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PassageRecord {
    /// Each host's interface.
    pub hosts: Vec<FrameCounts>,
    /// The device's end of the cable to each host, by the kernel; nothing if no cables lead to it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cables: Vec<FrameCounts>,
    /// The device's port to each host, by what it told its controller; nothing if it was not
    /// asked, or did not tell.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<FrameCounts>,
    /// Why the device told nothing of its ports, if it should have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub untold: Option<String>,
    /// Frames that the device sent to its controllers since it was given its rules; none if it
    /// has no controller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packet_ins: Option<u64>,
    /// Frames of the whole machine that found a core's backlog full; none if the kernel does
    /// not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backlog_dropped: Option<u64>,
    /// Whether hosts handed over segments larger than a frame may be: one that stands for many
    /// is counted as one by the kernel, and perhaps as many by the device.
    pub segments: bool,
}

/// A difference that is not told: what devices and kernels say by themselves, in frames and as a
/// part of all.
const SMALL: u64 = 10;
/// See there.
const SMALL_PART: u64 = 1_000;

/// Fewer frames than this are no load of which something must have come.
const SILENCE_MIN: u64 = 20;

/// A place on the way, and how many frames were counted there.
type Rung = (&'static str, u64);

impl PassageRecord {
    fn sum(counts: &[FrameCounts], of: fn(&FrameCounts) -> u64) -> u64 {
        counts.iter().map(of).sum()
    }

    /// Frames that hosts sent.
    #[must_use]
    pub fn sent(&self) -> u64 {
        Self::sum(&self.hosts, |host| host.sent)
    }

    /// Frames that hosts received.
    #[must_use]
    pub fn received(&self) -> u64 {
        Self::sum(&self.hosts, |host| host.received)
    }

    /// The places that are known, in the order of the way.
    #[must_use]
    pub fn ladder(&self) -> Vec<Rung> {
        let mut rungs = vec![("left the hosts", self.sent())];
        let inner = [
            ("came to the device", &self.cables, true),
            ("were counted in by it", &self.ports, true),
            ("were counted out by it", &self.ports, false),
            ("left the device", &self.cables, false),
        ];
        for (place, counts, is_in) in inner {
            let of: fn(&FrameCounts) -> u64 = if is_in {
                |at| at.received
            } else {
                |at| at.sent
            };
            if !counts.is_empty() {
                rungs.push((place, Self::sum(counts, of)));
            }
        }
        rungs.push(("came to the hosts", self.received()));
        rungs
    }

    /// Where frames were lost, and how many: from one place of [`Self::ladder`] to the next, in
    /// words. Those that were copied meanwhile hide as many.
    #[must_use]
    pub fn losses(&self) -> Vec<(String, u64)> {
        if self.segments {
            return Vec::new();
        }
        let refused = Self::sum(&self.hosts, |host| host.sent_dropped);
        let at_hosts = (refused > 0).then(|| ("at the hosts' own interfaces".to_owned(), refused));
        let rungs = self.ladder();
        let steps = rungs.windows(2).filter_map(|pair| {
            let ((from, before), (to, after)) = (pair[0], pair[1]);
            let lost = before.checked_sub(after).filter(|lost| *lost > 0)?;
            Some((format!("that {from}, before they {to}"), lost))
        });
        at_hosts.into_iter().chain(steps).collect()
    }

    /// The ladder in a line.
    #[must_use]
    pub fn in_words(&self) -> String {
        let rungs = self.ladder().into_iter();
        let rungs: Vec<String> = rungs
            .map(|(place, frames)| format!("{frames} {place}"))
            .collect();
        format!("of frames, {}", rungs.join(", "))
    }

    /// Whether load was offered and next to nothing of it came out: not one frame in a hundred.
    #[must_use]
    pub fn is_silent(&self) -> bool {
        self.sent() >= SILENCE_MIN && self.received() < self.sent().div_ceil(100)
    }

    /// Where the device's own counters do not agree with what hosts sent and received.
    #[must_use]
    pub fn disagreements(&self) -> Vec<String> {
        if self.ports.is_empty() || self.segments {
            return Vec::new();
        }
        let (sent, received) = (self.sent(), self.received());
        let counted_in = Self::sum(&self.ports, |port| port.received);
        let counted_out = Self::sum(&self.ports, |port| port.sent);
        let pairs = [
            (counted_in, "in", sent, "left the hosts"),
            (counted_out, "out", received, "came to the hosts"),
        ];
        let told = pairs.into_iter().filter_map(|(own, way, theirs, place)| {
            let apart = own.abs_diff(theirs);
            if apart <= SMALL.max(theirs / SMALL_PART) {
                return None;
            }
            let more = if own < theirs { "fewer" } else { "more" };
            Some(format!(
                "the device counted {apart} frames {more} {way} than {place} ({theirs})"
            ))
        });
        told.collect()
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
    fn passage() -> PassageRecord {
        PassageRecord {
            hosts: vec![counts(0, 1_000), counts(1_000, 0)],
            cables: vec![counts(1_000, 0), counts(0, 1_000)],
            ports: vec![counts(1_000, 0), counts(0, 1_000)],
            ..PassageRecord::default()
        }
    }

    #[test]
    fn frames_that_pass_are_lost_nowhere() {
        let passage = passage();
        assert!(passage.losses().is_empty() && passage.disagreements().is_empty());
        assert!(!passage.is_silent());
        assert_eq!(
            passage.in_words(),
            "of frames, 1000 left the hosts, 1000 came to the device, 1000 were counted in by it, \
             1000 were counted out by it, 1000 left the device, 1000 came to the hosts"
        );
    }

    #[test]
    fn it_is_told_between_which_places_frames_were_lost() {
        let mut passage = passage();
        passage.hosts[0].sent_dropped = 7;
        passage.ports = vec![counts(700, 0), counts(0, 600)];
        passage.cables[1] = counts(0, 600);
        passage.hosts[1] = counts(590, 0);
        assert_eq!(
            passage.losses(),
            [
                ("at the hosts' own interfaces".to_owned(), 7),
                (
                    "that came to the device, before they were counted in by it".to_owned(),
                    300
                ),
                (
                    "that were counted in by it, before they were counted out by it".to_owned(),
                    100
                ),
                (
                    "that left the device, before they came to the hosts".to_owned(),
                    10
                ),
            ]
        );
        assert_eq!(
            passage.disagreements(),
            ["the device counted 300 frames fewer in than left the hosts (1000)"],
            "ten may be what the machine says by itself"
        );
        passage.segments = true;
        assert!(passage.losses().is_empty() && passage.disagreements().is_empty());
    }

    #[test]
    fn a_device_that_claims_more_than_came_out_is_told_of() {
        let mut passage = passage();
        passage.hosts[1] = counts(0, 0);
        assert_eq!(
            passage.disagreements(),
            ["the device counted 1000 frames more out than came to the hosts (0)"]
        );
        assert!(passage.is_silent());
        passage.hosts[1] = counts(10, 0);
        assert!(!passage.is_silent());
        passage.ports.clear();
        assert!(passage.disagreements().is_empty(), "nobody told anything");
    }

    #[test]
    fn counters_that_began_again_tell_nothing() {
        let (before, after) = (counts(10, 10), counts(9, 20));
        assert_eq!(after.since(&before), None);
        assert_eq!(counts(15, 10).since(&before), Some(counts(5, 0)));
    }
}
