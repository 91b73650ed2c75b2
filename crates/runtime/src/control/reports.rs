//! What workers tell the control thread: frames for controllers, stations, rules that frames
//! want, queues that have ended.

use super::{BURST_MAX, Control};
use dataplane::messages::Event;

impl Control {
    /// Takes what the workers tell, a burst of each. Tells whether nothing is left.
    pub(super) fn read_workers(&mut self) -> bool {
        for worker in 0..self.tools.workers.len() {
            for _ in 0..BURST_MAX {
                let Ok(event) = self.tools.workers[worker].events.pop() else {
                    break;
                };
                self.handle_event(event);
            }
        }
        self.take_returned();
        let mut workers = self.tools.workers.iter();
        workers.all(|worker| worker.events.is_empty())
    }

    fn handle_event(&mut self, event: Event) {
        let now = self.now();
        match event {
            Event::PacketIn(event) => {
                let Some(site) = self.sites.get_mut(&event.from.bridge) else {
                    return;
                };
                let mut effects = Vec::new();
                let bridge = event.from.bridge;
                site.bridge
                    .handle_packet_in(event.meta, event.data, now, &mut effects);
                self.carry_out(bridge, effects, &mut None);
            }
            Event::Learn(key, address) => {
                if let Some(site) = self.sites.get_mut(&key.bridge) {
                    site.bridge.handle_station(address, key.port, now);
                }
            }
            Event::LearnRule(key, learned) => {
                if let Some(site) = self.sites.get_mut(&key.bridge) {
                    site.bridge.handle_learned(&learned, now);
                }
            }
            Event::Intercepted(from, bytes) => {
                let Some(site) = self.sites.get_mut(&from.bridge) else {
                    return;
                };
                let mut effects = Vec::new();
                site.bridge
                    .handle_intercepted(from.port, &bytes, now, &mut effects);
                self.carry_out(from.bridge, effects, &mut None);
            }
            Event::Captured(record) => self.capturing.take(*record),
            Event::Membership(key, vid, frame) => {
                if let Some(site) = self.sites.get_mut(&key.bridge) {
                    site.bridge.handle_membership((key.port, vid), &frame, now);
                }
            }
            Event::Sampled(sampled) => self.handle_sampled(&sampled),
            Event::SampledByRule(sampled) => self.handle_sampled_by_rule(&sampled),
            Event::Flows(bridge, flows) => self.handle_flows(bridge, &flows),
            Event::Resolve(by, host) => self.handle_resolve(by, host),
            Event::QueueGone(key, error) => self.handle_queue_gone(key, &error),
        }
    }
}
