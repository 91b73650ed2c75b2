//! Events from workers: packet-ins, MAC learning, learned rules, ended queues.

use super::{BURST_MAX, Control};
use dataplane::messages::WorkerEvent;

impl Control {
    /// Handles a burst of events of each worker. Returns true if no event is left.
    pub(super) fn read_workers(&mut self) -> bool {
        self.read_protocols();
        for worker in 0..self.tools.workers.len() {
            for _ in 0..BURST_MAX {
                let Ok(event) = self.tools.workers[worker].events.pop() else {
                    break;
                };
                self.handle_event(event, worker);
            }
        }
        self.handle_returned_queues();
        let mut workers = self.tools.workers.iter();
        workers.all(|worker| worker.events.is_empty() && worker.protocols.is_empty())
    }

    /// Handles a burst of protocol frames and removed queues of each worker.
    pub(super) fn read_protocols(&mut self) {
        for worker in 0..self.tools.workers.len() {
            for _ in 0..BURST_MAX {
                let Ok(event) = self.tools.workers[worker].protocols.pop() else {
                    break;
                };
                self.handle_event(event, worker);
            }
        }
    }

    fn handle_event(&mut self, event: WorkerEvent, worker: usize) {
        let now = self.now();
        match event {
            WorkerEvent::PacketIn(event) => {
                let Some(site) = self.sites.get_mut(&event.from.bridge) else {
                    return;
                };
                let mut effects = Vec::new();
                let bridge = event.from.bridge;
                site.bridge
                    .handle_packet_in(event.meta, event.data, now, &mut effects);
                self.apply_effects(bridge, effects, &mut None);
            }
            WorkerEvent::Learn(key, address) => {
                if let Some(site) = self.sites.get_mut(&key.bridge) {
                    site.bridge.handle_address(address, key.port, now);
                }
            }
            WorkerEvent::LearnRule(key, learned) => {
                if let Some(site) = self.sites.get_mut(&key.bridge) {
                    site.bridge.handle_learned(&learned, now);
                }
            }
            WorkerEvent::Punted(from, bytes) => {
                let Some(site) = self.sites.get_mut(&from.bridge) else {
                    return;
                };
                let mut effects = Vec::new();
                site.bridge
                    .handle_punted(from.port, &bytes, now, &mut effects);
                self.apply_effects(from.bridge, effects, &mut None);
            }
            WorkerEvent::Captured(record) => self.capturing.take(*record),
            WorkerEvent::Membership(key, vid, frame) => {
                if let Some(site) = self.sites.get_mut(&key.bridge) {
                    site.bridge.handle_membership((key.port, vid), &frame, now);
                }
            }
            WorkerEvent::Sampled(sampled) => self.handle_sampled(&sampled),
            WorkerEvent::SampledByRule(sampled) => self.handle_sampled_by_rule(&sampled),
            WorkerEvent::Flows(bridge, flows) => self.handle_flows(bridge, &flows),
            WorkerEvent::Crossed(report) => self.handle_crossed(&report, worker),
            WorkerEvent::Resolve(by, host) => self.handle_resolve(by, host),
            WorkerEvent::Neighbour(at, host, mac) => self.handle_neighbour(at, host, mac),
            WorkerEvent::QueueGone(key, error) => self.handle_queue_gone(key, &error),
        }
    }
}
