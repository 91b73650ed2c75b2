//! The active flows of real ports. Rules are compiled, and traffic sets up no flow, so that the list
//! is made on request: the first request has workers count received frames by flow, and is answered
//! after an observation. Workers stop to count when no request has arrived for some time
//! (decision 0057).

use std::time::Duration;

use base::Instant;
use base::sync::mpsc;

use super::Control;
use super::active_flows::FlowThread;
use crate::inbox::{CommandRequest, Input};
use dataplane::messages::{FlowRecord, WorkerCommand};
use dataplane::program::CrossingMode;
use switch::megaflow::PacketSummary;

/// The time between the first request and its answer.
const OBSERVATION: Duration = Duration::from_secs(1);

/// The time from a request to the end of the counts: the idle time of a flow in Open vSwitch.
const WATCH: Duration = Duration::from_secs(10);

/// The time in which a worker must answer: many of its turns.
const ANSWER: Duration = Duration::from_millis(20);

/// The maximum number of flows of a thread. Each is translated at a request after a change of the
/// rules, which takes some tens of microseconds.
pub(super) const WATCHED_FLOWS_MAX: usize = 1024;

/// The state of the counts by flow.
#[derive(Debug, Default)]
pub(super) struct FlowWatch {
    /// The time since which workers count, on the clock that is never stopped.
    since: Option<Instant>,
    /// The time of the last request, on the same clock.
    requested: Instant,
}

impl FlowWatch {
    /// Returns the time at which workers stop to count, on the clock that is never stopped.
    pub(super) fn end(&self) -> Option<Instant> {
        self.since.map(|_| self.requested + WATCH)
    }

    /// Begins or extends the counts. Returns the remaining time of the observation.
    fn request(&mut self, now: Instant) -> Duration {
        self.requested = now;
        let since = *self.since.get_or_insert(now);
        OBSERVATION.saturating_sub(now - since)
    }

    /// Ends the counts if they are due to end.
    fn expire(&mut self, now: Instant) -> bool {
        let is_due = self.end().is_some_and(|end| now >= end);
        if is_due {
            self.since = None;
        }
        is_due
    }
}

impl Control {
    /// Has workers count frames by flow. Returns the time until the list is meaningful; none if it
    /// is now. From the first dummy on, workers report all frames.
    pub(super) fn watch_flows(&mut self) -> Option<Duration> {
        if self.reports_flows() {
            return None;
        }
        let wait = self.flow_watch.request(self.tools.clock.unwarped());
        self.publications.set_crossing(CrossingMode::Count);
        self.publish_at_once();
        (!wait.is_zero()).then_some(wait)
    }

    /// True if workers report all frames.
    pub(super) fn reports_flows(&self) -> bool {
        self.publications.crossing() == CrossingMode::Report
    }

    /// Executes a command again after some time.
    pub(super) fn repeat_after(&self, wait: Duration, request: CommandRequest) {
        let inbox = self.tools.inbox.clone();
        drop(self.tools.runtime.spawn(async move {
            tokio::time::sleep(wait).await;
            inbox.send(Input::CommandRequest(request));
        }));
    }

    /// Ends the counts if no request has arrived for some time.
    pub(super) fn end_flow_watch(&mut self) {
        if self.flow_watch.expire(self.tools.clock.unwarped()) && !self.reports_flows() {
            self.publications.set_crossing(CrossingMode::Off);
            self.delete_flows();
        }
    }

    /// Makes the flows current if workers count them.
    pub(super) fn settle_watched_flows(&mut self) {
        if self.flow_watch.since.is_none() {
            return;
        }
        self.revalidate_flows();
        for worker in 0..self.tools.workers.len() {
            let (back, records) = mpsc::channel();
            let handle = &mut self.tools.workers[worker].handle;
            if handle.send(WorkerCommand::ReportFlows(back)).is_err() {
                continue;
            }
            let records = records.recv_timeout(ANSWER).unwrap_or_default();
            for record in records {
                self.count_record(&record, worker);
            }
        }
    }

    /// Counts the frames of a record in their flow, and sets up a flow if there is none.
    fn count_record(&mut self, record: &FlowRecord, worker: usize) {
        let (from, tunnel) = (record.from, record.tunnel.as_deref());
        let thread: FlowThread = self.flow_thread(from, worker);
        let Some(crossed) = self.crossed_frame(from, tunnel, &record.frame) else {
            return;
        };
        let exact = crossed.exact.clone();
        let summary = PacketSummary {
            exact: &exact,
            packets: record.packets,
            bytes: record.bytes - record.packets * crossed.header_len(),
            now: record.used,
        };
        if self.flows.count(thread, &summary) {
            return;
        }
        self.set_up_flow((from, thread), crossed, record.used);
        if !self.flows.count(thread, &summary) {
            self.counters.flows_unlisted += record.packets;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flow_watch_begins_with_a_request_and_ends_without_further_ones() {
        let at = |millis| Instant::START + Duration::from_millis(millis);
        let mut watch = FlowWatch::default();
        assert!(watch.end().is_none() && !watch.expire(at(60_000)));
        assert_eq!(watch.request(at(5000)), OBSERVATION);
        assert_eq!(watch.request(at(5600)), Duration::from_millis(400));
        assert_eq!(watch.request(at(6000)), Duration::ZERO);
        assert_eq!(watch.end(), Some(at(16_000)));
        assert_eq!(watch.request(at(9000)), Duration::ZERO);
        assert!(!watch.expire(at(18_999)) && watch.expire(at(19_000)));
        assert_eq!(watch.request(at(20_000)), OBSERVATION);
    }
}
