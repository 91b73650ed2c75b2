//! Flow monitors of a bridge: requests, and the updates that they send.

use std::sync::Arc;

use base::{GroupId, PortNo, TableId, Xid};
use flow::{Monitor, MonitorFlags, MonitorId, MonitorRequest, Refusal};
use openflow::{Message, MultipartReply};

use super::{Bridge, ConnectionId, Effect};
use crate::dump::Dump;
use crate::monitors::{self, Comparison};

impl Bridge {
    /// Adds, modifies or deletes monitors: all requests of a message or none.
    pub(super) fn monitor(
        &mut self,
        id: ConnectionId,
        xid: Xid,
        requests: Vec<MonitorRequest>,
        effects: &mut Vec<Effect>,
    ) -> Result<Option<Message>, Refusal> {
        requests.iter().try_for_each(check)?;
        let new = self.peer(id)?.monitors.apply(requests)?;
        self.update_has_monitors();
        let wants_initial = |monitor: &Monitor| monitor.flags.contains(MonitorFlags::INITIAL);
        let new: Vec<_> = new.into_iter().filter(wants_initial).collect();
        if new.is_empty() {
            let reply = MultipartReply::FlowMonitor(Vec::new());
            return Ok(Some(Message::reply(reply)));
        }
        let rules = Dump::Comparison(Box::new(Comparison::initial(&self.tables.pipeline, new)));
        effects.push(Effect::Dump(id, xid, Box::new(rules)));
        Ok(None)
    }

    /// Deletes a monitor, by the Nicira message of versions before 1.4.
    pub(super) fn cancel_monitor(
        &mut self,
        id: ConnectionId,
        monitor: MonitorId,
    ) -> Result<(), Refusal> {
        let request = MonitorRequest::Delete(monitor);
        self.peer(id)?.monitors.apply(vec![request])?;
        self.update_has_monitors();
        Ok(())
    }

    /// Updates whether any connection has monitors.
    pub(super) fn update_has_monitors(&mut self) {
        let mut peers = self.connections.iter();
        let has_monitors = peers.any(|(_, peer)| !peer.monitors.is_empty());
        self.notifications.set_has_monitors(has_monitors);
    }

    /// Sends pending effects, vacancy events and flow monitor updates.
    #[inline]
    pub(super) fn flush_notifications(&mut self, effects: &mut Vec<Effect>) {
        if self.notifications.is_empty() {
            return;
        }
        self.notifications.take_effects(effects);
        self.send_table_status(effects);
        self.send_monitor_updates(effects);
    }

    /// Sends the recorded rule events to connections with monitors.
    fn send_monitor_updates(&mut self, effects: &mut Vec<Effect>) {
        let changes = self.notifications.take_rule_events();
        if changes.is_empty() {
            return;
        }
        let changes = Arc::new(changes);
        for (id, peer) in self.connections.iter() {
            let own = self.connections.main_of(id);
            if let Some(updates) = peer.monitors.updates(&changes, own) {
                effects.push(Effect::Update(id, Box::new(Dump::Updates(updates))));
            }
        }
    }

    /// Handles a peer with more than [`monitors::WAITING_MAX`] unread changes: pauses its monitors,
    /// or closes the connection if too many are paused.
    pub fn handle_slow(&mut self, id: ConnectionId, effects: &mut Vec<Effect>) {
        self.send_monitor_updates(effects);
        let peers = self.connections.iter().map(|(_, peer)| peer);
        let paused = peers.filter(|peer| peer.monitors.are_paused()).count();
        let Some(peer) = self.connections.find(id) else {
            return;
        };
        if peer.monitors.are_paused() {
            return;
        }
        if paused >= monitors::PAUSED_MAX {
            effects.push(Effect::Disconnect(id));
        } else if peer.monitors.pause(&self.tables.pipeline) {
            let message = monitors::paused(peer.version);
            effects.push(Effect::Pause(id, Box::new(message)));
        }
    }

    /// Resumes the monitors of a peer that has read the pause message.
    pub fn handle_drained(&mut self, id: ConnectionId, effects: &mut Vec<Effect>) {
        self.send_monitor_updates(effects);
        if let Some(peer) = self.connections.find(id)
            && let Some(rules) = peer.monitors.resume(&self.tables.pipeline, peer.version)
        {
            effects.push(Effect::Update(
                id,
                Box::new(Dump::Comparison(Box::new(rules))),
            ));
        }
    }
}

/// Checks the table, port and group of a monitor.
fn check(request: &MonitorRequest) -> Result<(), Refusal> {
    let (MonitorRequest::Add(Monitor {
        request: selection, ..
    })
    | MonitorRequest::Modify(Monitor {
        request: selection, ..
    })) = request
    else {
        return Ok(());
    };
    if selection.table > TableId::LAST && selection.table != TableId::ALL {
        return Err(Refusal::MonitorBadTable);
    }
    let is_port = selection.out_port != PortNo(0);
    let is_group = selection.out_group <= GroupId::MAX || selection.out_group == GroupId::ANY;
    (is_port && is_group)
        .then_some(())
        .ok_or(Refusal::MonitorBadOut)
}
