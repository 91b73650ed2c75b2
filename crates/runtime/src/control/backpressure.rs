//! Backpressure: the bridge is notified of peers that read more slowly than rules change, and of
//! those that have caught up; the bridge decides the reaction.

use super::Control;
use switch::bridge::{Bridge, Effect};
use switch::connection::ConnectionId;

impl Control {
    /// Notifies a peer's bridge, and carries out its effects.
    pub(super) fn notify_bridge(
        &mut self,
        id: ConnectionId,
        event: fn(&mut Bridge, ConnectionId, &mut Vec<Effect>),
    ) {
        let Some(bridge) = self.peers.bridge_of(id) else {
            return;
        };
        let mut effects = Vec::new();
        if let Some(site) = self.sites.get_mut(&bridge) {
            event(&mut site.bridge, id, &mut effects);
        }
        self.apply_effects(bridge, effects, &mut None);
    }
}
