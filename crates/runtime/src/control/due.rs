//! What is due, and how long the control thread rests until something is.

use base::sync::thread;

use super::Control;

impl Control {
    /// Does what is due for bridges and ports.
    pub(super) fn handle_timeouts(&mut self) {
        let now = self.now();
        let mut due = Vec::new();
        for (id, site) in &mut self.sites {
            let mut effects = Vec::new();
            site.bridge.handle_timeout(now);
            site.bridge.run_protocols(now, &mut effects);
            if site.bridge.poll_bonds() | site.bridge.poll_tree() {
                self.tools.news.notify_one();
            }
            if !effects.is_empty() {
                due.push((*id, effects));
            }
        }
        // What ports may do because of what is said is known to the workers before.
        if !due.is_empty() && self.is_unpublished() {
            self.publish_at_once();
        }
        for (id, effects) in due {
            self.carry_out(id, effects, &mut None);
        }
        self.export_due();
        self.look_after_ports(now);
        self.end_unread_captures(now);
    }

    /// Rests until there is something to do. A wake-up in the meantime is not lost.
    pub(super) fn rest(&self) {
        let bridges = self.sites.values();
        let due = bridges.filter_map(|site| site.bridge.next_timeout()).min();
        let publication = self.is_unpublished().then_some(self.next_publication);
        let due = [due, publication, self.next_upkeep()];
        let due = due.into_iter().flatten().min();
        match due {
            Some(due) => thread::park_timeout(due - self.now()),
            None => thread::park(),
        }
    }
}
