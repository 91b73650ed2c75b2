//! Dispatch of OpenFlow messages: one `match` with a row for each kind.

use base::{GroupId, Instant, Xid};
use flow::{
    FlowMod, GroupKind, GroupMod, GroupModCommand, MeterMod, PacketInReason, PacketOut, PortConfig,
    PortMod, Refusal, Role, RoleRequest, SelectionMethod, SwitchConfig, TlvTableMod,
};
use openflow::{
    AsyncChange, BoxedMessage, ForwardedRequest, Message, MultipartRequest, ReceivedMessage,
    RoleReply, Version,
};

use super::{Bridge, ConnectionId, Effect};
use crate::connection::{Connection, ConnectionKind};
use crate::flow_mod_report::REPORT_INTERVAL;
use crate::monitors::Author;

impl Bridge {
    /// Prefetches the memory that the flow-mods among these messages will need. It has no effect on
    /// their results.
    pub fn prefetch(&mut self, messages: &[BoxedMessage]) {
        let flow_mods = messages
            .iter()
            .filter_map(|received| match &received.message {
                Message::FlowMod(command) => Some(command),
                _ => None,
            });
        self.tables.pipeline.prefetch(flow_mods);
    }

    /// Executes or refuses a request. A message of a closed connection is ignored. The call leaves
    /// `received` in an unspecified state.
    pub fn handle_message(
        &mut self,
        id: ConnectionId,
        received: &mut ReceivedMessage,
        now: Instant,
        effects: &mut Vec<Effect>,
    ) {
        if self.connections.find(id).is_none() {
            return;
        }
        // Earlier events are reported before the effects of this message.
        self.flush_notifications(effects);
        // A flow-mod, by far the most frequent message, is executed in place, because it is large.
        if let Message::FlowMod(command) = &received.message {
            if let Err(refusal) = self.flow_mod(id, received.xid, command, now) {
                self.log_refusal(id, command, refusal, now);
                let excerpt = std::mem::take(&mut received.excerpt);
                effects.push(Effect::Refuse(id, received.xid, refusal, excerpt));
            }
        } else {
            self.handle_other(id, std::mem::take(received), now, effects);
        }
        self.flush_notifications(effects);
    }

    fn handle_other(
        &mut self,
        id: ConnectionId,
        received: ReceivedMessage,
        now: Instant,
        effects: &mut Vec<Effect>,
    ) {
        let ReceivedMessage {
            xid,
            message,
            excerpt,
        } = received;
        match self.execute(id, xid, message, now, effects) {
            Ok(None) => {}
            Ok(Some(reply)) => effects.push(Effect::Reply(id, xid, Box::new(reply))),
            Err(refusal) => effects.push(Effect::Refuse(id, xid, refusal, excerpt)),
        }
    }

    pub(super) fn flow_mod(
        &mut self,
        id: ConnectionId,
        xid: Xid,
        command: &FlowMod,
        now: Instant,
    ) -> Result<(), Refusal> {
        let main = self.connections.main_of(id);
        self.peer(main)?.check_may_change()?;
        self.do_flow_mod(command, Some((main, xid)), now)?;
        self.peer(main)?.flow_mods.count(command.command, now);
        self.next_report.get_or_insert(now + REPORT_INTERVAL);
        Ok(())
    }

    pub(super) fn execute(
        &mut self,
        id: ConnectionId,
        xid: Xid,
        message: Message,
        now: Instant,
        effects: &mut Vec<Effect>,
    ) -> Result<Option<Message>, Refusal> {
        // The main connection of the controller that sent the request.
        let main = self.connections.main_of(id);
        if modifies_switch(&message) {
            self.peer(main)?.check_may_change()?;
        }
        match message {
            Message::FeaturesRequest => self.features(id).map(Some),
            Message::GetConfigRequest => self.switch_config(main).map(Some),
            Message::SetConfig(config) => self.set_config(main, config).map(|()| None),
            Message::PacketOut(message) => self.packet_out(&message, now, effects).map(|()| None),
            Message::FlowMod(command) => self.flow_mod(id, xid, &command, now).map(|()| None),
            Message::Resume(message) => self.resume(&message, now, effects).map(|()| None),
            Message::ControllerId(number) => self.set_controller_id(main, number).map(|()| None),
            Message::TlvTableMod(change) => self.tlv_table_mod(&change).map(|()| None),
            Message::TlvTableRequest => Ok(Some(self.tlv_table())),
            Message::PortMod(command) => self.port_mod(id, command, effects).map(|()| None),
            Message::TableMod(command) => self.table_mod(id, &command).map(|()| None),
            Message::GroupMod(command) => self.group_mod(command, (main, xid), now, effects),
            Message::MeterMod(command) => self.meter_mod(command, (main, xid), now, effects),
            Message::MultipartRequest(request) => self.multipart(id, xid, request, now, effects),
            Message::MultipartFragment(part) => self.fragment(id, xid, part).map(|()| None),
            Message::BundleControl(control) => self.bundle_step(id, xid, control, now, effects),
            Message::BundleAdd(add) => self.bundle_add(id, xid, add, now).map(|()| None),
            Message::MonitorCancel(monitor) => self.cancel_monitor(id, monitor).map(|()| None),
            Message::BarrierRequest => {
                self.queue_barrier(id, xid, effects);
                Ok(None)
            }
            Message::QueueConfigRequest(port) => self.queues(port).map(Some),
            Message::RoleRequest(request) => self.role(main, request, effects).map(Some),
            Message::GetAsyncRequest => Ok(Some(Message::GetAsyncReply(self.peer(main)?.wants))),
            Message::SetAsync(change) => self.set_async(main, &change).map(|()| None),
            Message::FlushZone(_) | Message::FlushConnections(_) => {
                self.flush_connections(&message, now);
                Ok(None)
            }
            // The channel handles replies to its own echo requests; this one is unsolicited.
            Message::Error(_) | Message::EchoReply(_) => {
                log_message(self.name(), &message);
                Ok(None)
            }
            Message::Hello(_)
            | Message::EchoRequest(_)
            | Message::NiciraSetting(_)
            | Message::FeaturesReply(_)
            | Message::GetConfigReply(_)
            | Message::PacketIn(_)
            | Message::FlowRemoved(_)
            | Message::PortStatus(_)
            | Message::MultipartReply { .. }
            | Message::BarrierReply
            | Message::QueueConfigReply(_)
            | Message::RoleReply(_)
            | Message::RoleStatus(_)
            | Message::GetAsyncReply(_)
            | Message::MonitorPaused
            | Message::MonitorResumed
            | Message::TableStatus(_)
            | Message::ControllerStatus(_)
            | Message::RequestForward(_)
            | Message::TlvTableReply(_) => Err(Refusal::RequestBadType),
        }
    }

    pub(super) fn peer(&mut self, id: ConnectionId) -> Result<&mut Connection, Refusal> {
        self.connections.find(id).ok_or(Refusal::RequestPermission)
    }

    fn group_mod(
        &mut self,
        command: GroupMod,
        by: Author,
        now: Instant,
        effects: &mut Vec<Effect>,
    ) -> Result<Option<Message>, Refusal> {
        let mut changes = self.tables.pipeline.group_mod(&command, now)?;
        log_selection(&command);
        self.note(&mut changes, Some(by));
        self.forward(ForwardedRequest::GroupMod(command), by, effects);
        Ok(None)
    }

    fn meter_mod(
        &mut self,
        command: MeterMod,
        by: Author,
        now: Instant,
        effects: &mut Vec<Effect>,
    ) -> Result<Option<Message>, Refusal> {
        let mut changes = self.tables.pipeline.meter_mod(&command, now)?;
        self.note(&mut changes, Some(by));
        self.forward(ForwardedRequest::MeterMod(command), by, effects);
        Ok(None)
    }

    fn tlv_table(&self) -> Message {
        Message::TlvTableReply(self.tables.pipeline.tlv_table())
    }

    fn tlv_table_mod(&mut self, change: &TlvTableMod) -> Result<(), Refusal> {
        self.tables.pipeline.tlv_table_mod(change)?;
        self.publication.request();
        Ok(())
    }

    fn set_controller_id(&mut self, id: ConnectionId, controller: u16) -> Result<(), Refusal> {
        self.peer(id)?.controller = controller;
        self.update_mode();
        Ok(())
    }

    fn set_async(&mut self, id: ConnectionId, change: &AsyncChange) -> Result<(), Refusal> {
        let peer = self.peer(id)?;
        peer.wants = peer.wants.after(change);
        peer.listen();
        self.update_mode();
        Ok(())
    }

    fn switch_config(&mut self, id: ConnectionId) -> Result<Message, Refusal> {
        let fragments = self.tables.pipeline.fragments();
        let peer = self.peer(id)?;
        let reason = PacketInReason::InvalidTtl;
        Ok(Message::GetConfigReply(SwitchConfig {
            miss_send_len: peer.miss_send_len,
            invalid_ttl: peer.wants.active.wants_packet_in(reason, peer.version),
            fragments,
        }))
    }

    /// Configures the switch and the connection. The fragment mode is the switch's: it outlives the
    /// connection, and a slave leaves it as it is, as in Open vSwitch. A version that has the flag
    /// of an invalid TTL sets or clears it.
    fn set_config(&mut self, id: ConnectionId, wanted: SwitchConfig) -> Result<(), Refusal> {
        let peer = self.peer(id)?;
        if peer.kind != ConnectionKind::Primary || peer.role != Role::Slave {
            self.tables.pipeline.set_fragments(wanted.fragments)?;
        }
        let peer = self.peer(id)?;
        peer.miss_send_len = wanted.miss_send_len;
        if peer.version < Version::V13 {
            peer.wants.active.set_invalid_ttl(wanted.invalid_ttl);
        }
        self.update_mode();
        Ok(())
    }

    fn role(
        &mut self,
        id: ConnectionId,
        request: RoleRequest,
        effects: &mut Vec<Effect>,
    ) -> Result<Message, Refusal> {
        let before = self.connections.master();
        let role_snapshots = self.role_snapshots();
        let role = self.connections.take_role(id, request)?;
        if let Some(old) = before.filter(|old| *old != id && role == Role::Master) {
            self.send_role_status(old, effects);
        }
        self.report_role_changes(&role_snapshots, effects);
        self.update_mode();
        Ok(Message::RoleReply(RoleReply {
            role,
            generation: self.connections.generation(),
            short_id: self.peer(id)?.short_id,
        }))
    }

    fn port_mod(
        &mut self,
        id: ConnectionId,
        mut command: PortMod,
        effects: &mut Vec<Effect>,
    ) -> Result<(), Refusal> {
        if self.peer(id)?.version > Version::V10 {
            command = widen_no_recv(command);
        }
        let change = self.change_port(command)?;
        self.send_port_modified(command.port, &change.before, effects);
        if let Some(up) = change.set_up {
            effects.push(Effect::SetPortUp(command.port, up));
        }
        Ok(())
    }

    fn packet_out(
        &mut self,
        message: &PacketOut,
        now: Instant,
        effects: &mut Vec<Effect>,
    ) -> Result<(), Refusal> {
        self.tables.pipeline.check_packet_out(message)?;
        self.send_out(message, now, effects);
        Ok(())
    }
}

/// Logs the selection method of a new or changed select group, in the words of Open vSwitch: a hash
/// of the fields that the group names, or of the default fields.
fn log_selection(command: &GroupMod) {
    let is_definition = match command.command {
        GroupModCommand::Add | GroupModCommand::Modify | GroupModCommand::AddOrModify => true,
        GroupModCommand::Delete
        | GroupModCommand::InsertBuckets
        | GroupModCommand::RemoveBuckets => false,
    };
    if command.kind != GroupKind::Select || !is_definition {
        return;
    }
    let GroupId(group) = command.group;
    tracing::debug!(target: "ofproto_dpif", "Constructing select group {group}");
    let method = command
        .selection
        .as_ref()
        .map(|selection| &selection.method);
    let Some(SelectionMethod::Hash(fields)) = method else {
        tracing::debug!(target: "ofproto_dpif", "Falling back to default hash method.");
        return;
    };
    tracing::debug!(target: "ofproto_dpif", "Selection method specified: hash.");
    let names: Vec<_> = fields.iter().map(|(field, _)| field.info().ofctl).collect();
    if names.is_empty() {
        let text = "No hash fields. Falling back to default hash method.";
        tracing::debug!(target: "ofproto_dpif", "{text}");
    } else {
        let names = names.join(",");
        tracing::debug!(target: "ofproto_dpif", "Hash fields: {names}");
    }
}

/// Logs a message without an effect.
fn log_message(bridge: &str, message: &Message) {
    if let Message::Error(error) = message {
        tracing::debug!(bridge, ?error, "the peer sent an error");
    }
}

/// Adds `NO_RECV_STP` to `NO_RECV`: from OpenFlow 1.1 on, `NO_RECV` includes the spanning tree's
/// frames, for which 1.0 has a separate bit (OF 1.0.1, 5.2.1; OF 1.3.5, 7.2.1).
fn widen_no_recv(mut command: PortMod) -> PortMod {
    for bits in [&mut command.config, &mut command.mask] {
        if bits.contains(PortConfig::NO_RECV) {
            bits.0 |= PortConfig::NO_RECV_STP.0;
        }
    }
    command
}

/// Returns whether a message changes the switch, which a slave may not do (OF 1.3.5, 6.3).
fn modifies_switch(message: &Message) -> bool {
    matches!(
        message,
        Message::FlowMod(_)
            | Message::PacketOut(_)
            | Message::Resume(_)
            | Message::TlvTableMod(_)
            | Message::FlushZone(_)
            | Message::FlushConnections(_)
            | Message::PortMod(_)
            | Message::TableMod(_)
            | Message::GroupMod(_)
            | Message::MeterMod(_)
            | Message::BundleControl(_)
            | Message::BundleAdd(_)
    ) || matches!(
        message,
        Message::MultipartRequest(MultipartRequest::TableFeatures(wanted))
        | Message::MultipartFragment(MultipartRequest::TableFeatures(wanted)) if !wanted.is_empty()
    )
}
