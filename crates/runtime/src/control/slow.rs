//! Peers that read more slowly than rules change: who reads slowly, and who has caught
//! up, their bridge is told. What comes of it, the bridge decides.

use super::Control;
use switch::bridge::{Bridge, Effect};
use switch::connection::ConnectionId;

impl Control {
    /// Tells a peer's bridge something about it, and carries out what comes of that.
    pub(super) fn tell_bridge_of(
        &mut self,
        id: ConnectionId,
        tell: fn(&mut Bridge, ConnectionId, &mut Vec<Effect>),
    ) {
        let Some(bridge) = self.peers.get(&id).map(|peer| peer.bridge) else {
            return;
        };
        let mut effects = Vec::new();
        if let Some(site) = self.sites.get_mut(&bridge) {
            tell(&mut site.bridge, id, &mut effects);
        }
        self.carry_out(bridge, effects, &mut None);
    }
}
