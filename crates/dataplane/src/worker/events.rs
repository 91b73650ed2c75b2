//! Events of a worker for the control thread. Packet-ins are sent within the rate of their port, on
//! a ring that reserves some room for other events.

use std::sync::Arc;

use base::Instant;
use l2::fdb::FdbKey;
use packet::Frame;
use pipeline::{LearnRequest, PacketInMeta};
use rtrb::PushError;

use super::forwarder::BatchForwarder;
use super::{Turn, WorkerLinks};
use crate::counters::WorkerDrop;
use crate::messages::{PacketInEvent, WorkerEvent};
use crate::policer::{PacketInCounters, Policer, QueuedPacketIn};
use crate::slots::{PortKey, PortSlot};

/// The reciprocal of the part of the event ring that is reserved for events other than packet-ins:
/// addresses, learned rules, removed queues.
const OTHER_NEWS: usize = 8;

/// The length up to which a protocol frame is reported: no protocol has longer ones.
const PROTOCOL_LEN_MAX: usize = 2048;

/// The worker's ends of the shared state, and the result of the turn that they cause.
pub(super) struct EventReporter {
    pub(super) links: WorkerLinks,
    pub(super) turn: Turn,
    /// Events that must not be lost, and found the ring full: one for each removed queue.
    unsent: Vec<WorkerEvent>,
}

impl EventReporter {
    pub(super) fn new(links: WorkerLinks) -> Self {
        Self {
            links,
            turn: Turn::default(),
            unsent: Vec::new(),
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

    /// Sends a protocol frame; counts it if the ring of protocols is full.
    pub(super) fn report_protocol(&mut self, event: WorkerEvent) {
        match self.links.protocols.push(event) {
            Ok(()) => self.turn.news = true,
            Err(_) => self.links.counters.count(WorkerDrop::PuntQueueFull),
        }
    }

    /// Sends an event that must not be lost: if the ring of protocols is full, at a later turn.
    pub(super) fn report_reliably(&mut self, event: WorkerEvent) {
        self.unsent.push(event);
        self.send_unsent();
    }

    /// Sends the events that found the ring full, as far as there is room.
    #[inline]
    pub(super) fn send_unsent(&mut self) {
        while let Some(event) = self.unsent.pop() {
            match self.links.protocols.push(event) {
                Ok(()) => self.turn.news = true,
                Err(PushError::Full(event)) => {
                    self.unsent.push(event);
                    return;
                }
            }
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
    /// Reports an address to learn, within the rate of its port.
    pub(super) fn report_address(&mut self, from: PortKey, address: FdbKey) {
        match self.admits(from, Policer::admits_learning) {
            true => self.reporter.report(
                WorkerEvent::Learn(from, address),
                WorkerDrop::LearnQueueFull,
            ),
            false => self.reporter.count(WorkerDrop::LearnPoliced),
        }
    }

    /// Reports a rule to learn, within the rate of its port.
    pub(super) fn report_rule(&mut self, from: PortKey, learned: LearnRequest) {
        match self.admits(from, Policer::admits_learning) {
            true => self.reporter.report(
                WorkerEvent::LearnRule(from, Box::new(learned)),
                WorkerDrop::LearnQueueFull,
            ),
            false => self.reporter.count(WorkerDrop::LearnPoliced),
        }
    }

    /// Reports a multicast membership message, within the rate of its port.
    pub(super) fn report_membership(&mut self, from: PortKey, vid: u16, frame: &Frame) {
        match self.admits(from, Policer::admits_membership) {
            true => self.reporter.report(
                WorkerEvent::Membership(from, vid, frame.bytes().into()),
                WorkerDrop::MembershipQueueFull,
            ),
            false => self.reporter.count(WorkerDrop::MembershipPoliced),
        }
    }

    /// Reports a protocol frame, within the rate of its port.
    pub(super) fn report_punted(&mut self, from: PortKey, frame: &Frame) {
        match self.admits(from, Policer::admits_protocol) {
            true => {
                let bytes = &frame.bytes()[..frame.len().min(PROTOCOL_LEN_MAX)];
                let event = WorkerEvent::Punted(from, bytes.into());
                self.reporter.report_protocol(event);
            }
            false => self.reporter.count(WorkerDrop::PuntPoliced),
        }
    }

    /// Returns whether an event is within the rate of its port. A tunnel has no queue and no rate.
    fn admits(&mut self, from: PortKey, admits: fn(&Policer, Instant) -> bool) -> bool {
        let now = self.now;
        let slot = self.slots.find(from);
        slot.is_none_or(|slot| admits(&slot.policing.policer, now))
    }

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
