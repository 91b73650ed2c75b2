//! Timers of the control thread, and its sleep until the next one.

use base::Instant;
use base::sync::thread;

use super::{Control, TURN_MAX};
use crate::clock::ClockReading;
use crate::watchdog::BEAT_INTERVAL;

impl Control {
    /// Runs the expired timers of bridges and ports.
    pub(super) fn handle_timeouts(&mut self) {
        let now = self.now();
        for site in self.sites.values_mut() {
            site.bridge.handle_timeout(now);
        }
        self.run_protocols(now);
        self.age_neighbours();
        self.export_due();
        self.poll_ports(now);
        self.end_unread_captures(now);
        self.drive_dummies(now);
        self.run_pmd_timers(now);
        self.end_flow_watch();
        self.maintain_flows(now);
        self.expire_connections(now);
    }

    /// Serves protocols (LACP, spanning tree, BFD) if the turn has taken its time since they were
    /// served: what messages of controllers cost does not delay them.
    pub(super) fn serve_overdue_protocols(&mut self) {
        if self.tools.clock.unwarped() >= self.protocols_served + TURN_MAX {
            self.read_protocols();
            self.run_protocols(self.now());
        }
    }

    /// Runs the expired timers of protocols, and sends their messages.
    fn run_protocols(&mut self, now: Instant) {
        self.protocols_served = self.tools.clock.unwarped();
        let mut due = Vec::new();
        for (id, site) in &mut self.sites {
            let mut effects = Vec::new();
            site.bridge.run_protocols(now, &mut effects);
            let bridge = &mut site.bridge;
            if bridge.poll_bonds() | bridge.poll_tree() | bridge.poll_monitors() {
                self.tools.facts_changed.notify_one();
            }
            if !effects.is_empty() {
                due.push((*id, effects));
            }
        }
        // Port states are published before the protocol messages (LACP, BPDU) that announce them.
        if !due.is_empty() && self.is_unpublished() {
            self.publish_at_once();
        }
        for (id, effects) in due {
            self.apply_effects(id, effects, &mut None);
        }
    }

    /// Sleeps until the next timer or wake-up. A wake-up before the sleep is not lost.
    pub(super) fn rest(&self) {
        let ClockReading { shown, real } = self.tools.clock.read();
        let bridges = self.sites.values();
        let due = bridges.filter_map(|site| site.bridge.next_timeout()).min();
        let due = [
            due,
            self.next_upkeep(),
            self.dummies.next_drive(),
            self.pmd.next_interval(),
            self.flows.next_maintenance(),
            self.trackers.next_expiry(),
            self.underlay.neighbours.next_timeout(),
        ];
        let due = due.into_iter().flatten().min().map(|due| due - shown);
        // Publications and the steps of a warp follow the real time.
        let publication = self.is_unpublished().then_some(self.publications.next_at());
        let awaited = [
            publication,
            self.commands.next_warp_step(),
            self.flow_watch.end(),
        ];
        let awaited = awaited.into_iter().flatten().map(|due| due - real);
        // The watchdog expects a turn in this interval.
        let wait = due.into_iter().chain(awaited).min();
        thread::park_timeout(wait.unwrap_or(BEAT_INTERVAL).min(BEAT_INTERVAL));
    }
}
