//! Events of a worker for the control thread. Packet-ins are sent within the rate of their port, on
//! a ring that reserves some room for other events.

use std::sync::Arc;

use base::Instant;
use packet::Frame;
use pipeline::PacketInMeta;

use super::forwarder::BatchForwarder;
use super::{Turn, WorkerLinks};
use crate::counters::WorkerDrop;
use crate::messages::{PacketInEvent, WorkerEvent};
use crate::policer::{PacketInCounters, QueuedPacketIn};
use crate::slots::{PortKey, PortSlot};

/// The reciprocal of the part of the event ring that is reserved for events other than packet-ins:
/// addresses, learned rules, removed queues.
const OTHER_NEWS: usize = 8;

/// The worker's ends of the shared state, and the result of the turn that they cause.
pub(super) struct EventReporter {
    pub(super) links: WorkerLinks,
    pub(super) turn: Turn,
}

impl EventReporter {
    pub(super) fn new(links: WorkerLinks) -> Self {
        Self {
            links,
            turn: Turn::default(),
        }
    }

    /// Counts a dropped frame or event.
    #[inline]
    pub(super) fn count(&self, reason: WorkerDrop) {
        self.links.counters.count(reason);
    }

    /// Sends an event; counts `otherwise` if the ring is full.
    pub(super) fn report(&mut self, event: WorkerEvent, otherwise: WorkerDrop) {
        match self.links.events.push(event) {
            Ok(()) => self.turn.news = true,
            Err(_) => self.links.counters.count(otherwise),
        }
    }

    /// Returns the number of free places in the ring, without those reserved for events other than
    /// packet-ins.
    fn unreserved_room(&self) -> usize {
        let events = &self.links.events;
        let spare = events.buffer().capacity() / OTHER_NEWS;
        events.slots().saturating_sub(spare)
    }

    /// Sends an event, unless the remaining room is reserved for other events.
    pub(super) fn report_if_room(&mut self, event: WorkerEvent, otherwise: WorkerDrop) -> bool {
        let sent = self.unreserved_room() > 0 && self.links.events.push(event).is_ok();
        match sent {
            true => self.turn.news = true,
            false => self.links.counters.count(otherwise),
        }
        sent
    }
}

impl BatchForwarder {
    /// Sends a copy of the frame, as it would be on the wire, to the control thread, within the
    /// rate of its port.
    pub(super) fn send_packet_ins(
        &mut self,
        from: PortKey,
        meta: &PacketInMeta,
        frame: &Frame,
        now: Instant,
    ) {
        let Some(PortSlot { policing, .. }) = self.slots.find(from) else {
            self.reporter.count(WorkerDrop::NoPort);
            return;
        };
        let count = frame.wire_frames();
        let passed = (0..count).take_while(|_| policing.policer.admits_packet_in(meta.cause, now));
        let passed = passed.count() as u64;
        policing.counters.add_policed(count - passed);
        if passed == 0 {
            return;
        }
        let counters = Arc::clone(&policing.counters);
        let sent = self.send_segments(from, meta, (frame, passed), &counters);
        counters.add_sent(sent);
    }

    /// Sends packet-ins for the first `count` of the frame's segments, within the port's share of
    /// the ring. Returns the number sent.
    fn send_segments(
        &mut self,
        from: PortKey,
        meta: &PacketInMeta,
        (frame, count): (&Frame, u64),
        counters: &Arc<PacketInCounters>,
    ) -> u64 {
        if counters.exceeds_share(self.reporter.unreserved_room()) {
            let lost = usize::try_from(count).unwrap_or(usize::MAX);
            let reason = WorkerDrop::PacketInQueueFull;
            self.reporter.links.counters.add(reason, lost);
            return 0;
        }
        let mut segments = Vec::new();
        if let Err(error) = packet::segment(frame, &mut self.pool, &mut segments) {
            let lost = usize::try_from(count).unwrap_or(usize::MAX);
            self.reporter.links.counters.add(error.into(), lost);
            return 0;
        }
        let mut sent = 0;
        for (segment, place) in segments.into_iter().zip(0..) {
            if place < count {
                let (data, meta) = (segment.bytes().to_vec(), meta.clone());
                let event = WorkerEvent::PacketIn(Box::new(PacketInEvent {
                    from,
                    meta,
                    data,
                    queued: QueuedPacketIn::new(counters),
                }));
                sent += u64::from(
                    self.reporter
                        .report_if_room(event, WorkerDrop::PacketInQueueFull),
                );
            }
            self.pool.put(segment);
        }
        sent
    }
}
