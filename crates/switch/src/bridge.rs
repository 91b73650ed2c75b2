//! One bridge: its tables, forwarding database, ports and connections, and the handling of every
//! message. Sans-I/O: the inputs are events with their time, the outputs are [`Effect`]s. No other
//! module changes the tables of a bridge.
//!
//! Changes reach the workers by publication. Effects that must not happen before the workers have
//! taken a change (barrier replies, the final counters of a removed rule) wait here until every
//! worker has passed the generation of that publication.

mod async_messages;
mod bonds;
mod bridge_tables;
mod checkpoint;
mod commit;
mod compaction;
mod controllers;
mod exporters;
mod flow_monitors;
mod forwarding_db;
mod frames;
mod in_band;
mod mirroring;
mod monitoring;
mod multicast;
mod notifications;
mod ports;
mod publication;
mod punt;
mod queues;
mod refusals;
mod requests;
mod schedule;
mod spanning;
mod statistics;
mod switching;
mod tables;

use std::net::SocketAddr;
use std::sync::Arc;

use base::{DatapathId, Instant, PortNo, TableId, Xid};
use fastpath::TableDescription;
use flow::{Action, FlowMod, FlowModCommand, Instructions, Match, PipelineFields, Refusal};
use openflow::{ControlChannelStatus, Excerpt, Message, WallTime};
use packet::Frame;
use pipeline::{MissPolicy, Removal};

use super::connection::{Connection, ConnectionId, Connections};
use super::dump::Dump;
use config::FailMode;

pub use bonds::BridgeBond;
use bridge_tables::BridgeTables;
pub use checkpoint::{RestoreCounts, checkpoint_addresses, checkpoint_messages};
use controllers::ControllerSet;
use exporters::BridgeExporters;
use frames::PacketOutExecutor;
pub use monitoring::PortMonitor;
use notifications::PendingNotifications;
use ports::PortEntries;
pub use ports::{CustomCounters, PortEntry};
use publication::PublicationState;
use punt::ControlProtocols;
use refusals::RefusalLog;
use schedule::BundleSchedule;
pub use spanning::BridgeSpanningTree;
use switching::NormalState;

/// An operation that the caller performs after a message or an event.
#[derive(Debug)]
pub enum Effect {
    /// Send a reply to a request.
    Reply(ConnectionId, Xid, Box<Message>),
    /// Refuse a request with an error message.
    Refuse(ConnectionId, Xid, Refusal, Excerpt),
    /// Reply to a request with rules, at the speed at which the peer reads.
    Dump(ConnectionId, Xid, Box<Dump>),
    /// Send flow monitor updates, at the speed at which the peer reads.
    Update(ConnectionId, Box<Dump>),
    /// Send a peer the message that its flow monitors are paused, and call
    /// [`Bridge::handle_drained`] once the peer has read it.
    Pause(ConnectionId, Box<Message>),
    /// Close the connection of a peer that does not read, because too many other peers do not.
    Disconnect(ConnectionId),
    /// Send a peer an asynchronous message.
    Notify(ConnectionId, Arc<Message>),
    /// Send a frame to a port; the pipeline fields matter if the port is a tunnel.
    Transmit(PortNo, Frame, Option<Box<PipelineFields>>),
    /// Set an interface administratively up or down.
    SetPortUp(PortNo, bool),
    /// Send this datagram to collectors.
    Export(Arc<[SocketAddr]>, Vec<u8>),
    /// Free removed rules after all their flow-removed messages are sent.
    Free(Vec<Removal>),
}

/// The identity and the fixed settings of a bridge.
#[derive(Clone, Debug)]
pub struct Identity {
    /// Its name.
    pub name: String,
    /// Its datapath id.
    pub datapath_id: DatapathId,
    /// The behaviour while no controller is connected.
    pub fail_mode: FailMode,
    /// The wall-clock time at [`Instant::START`].
    pub started: WallTime,
}

/// One bridge.
pub struct Bridge {
    identity: Identity,
    /// The tables and their compiled form.
    tables: BridgeTables,
    /// The state of `NORMAL`, and the mirrors.
    normal: NormalState,
    /// Protocols with other switches and with controllers behind ports.
    protocols: ControlProtocols,
    /// The flow exporters.
    exporters: BridgeExporters,
    ports: PortEntries,
    connections: Connections,
    /// The configured controllers.
    controllers: ControllerSet,
    /// The execution of packet-outs.
    executor: PacketOutExecutor,
    /// The publication of the state to the workers.
    publication: PublicationState,
    /// Notifications that wait for the next event.
    notifications: PendingNotifications,
    /// Bundles that wait for their execution time.
    schedule: BundleSchedule,
    /// The refused rules.
    refusals: RefusalLog,
    /// The time of the next report of flow-mods in the log; none if there is nothing to report.
    next_report: Option<Instant>,
    /// The end of the time in which a restored bridge keeps to its rules without controllers.
    restored_until: Option<Instant>,
}

impl Bridge {
    /// Returns a bridge without ports and connections. `writers` is the number of threads that
    /// count in its tables, the control thread last.
    pub fn new(identity: Identity, has_controllers: bool, writers: usize, now: Instant) -> Self {
        let WallTime(started) = identity.started;
        let seed = monitoring::seed(&identity.name, started);
        let mut bridge = Self {
            identity,
            tables: BridgeTables::new(writers),
            normal: NormalState::new(),
            protocols: ControlProtocols::new(writers, seed),
            exporters: BridgeExporters::default(),
            ports: PortEntries::new(),
            connections: Connections::default(),
            controllers: ControllerSet::new(has_controllers),
            executor: PacketOutExecutor::new(writers - 1),
            publication: PublicationState::new(),
            notifications: PendingNotifications::default(),
            schedule: BundleSchedule::default(),
            refusals: RefusalLog::default(),
            next_report: None,
            restored_until: None,
        };
        bridge.reset_tables(now);
        bridge
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.identity.name
    }

    /// Handles a peer that has sent its hello.
    pub fn handle_up(&mut self, id: ConnectionId, connection: Connection) {
        self.controllers.limit(&connection);
        self.connections.insert(id, connection);
        self.report_channel(id, ControlChannelStatus::Up);
        self.update_mode();
    }

    /// Handles a closed connection.
    pub fn handle_down(&mut self, id: ConnectionId, now: Instant) {
        self.report_channel(id, ControlChannelStatus::Down);
        if let Some(mut peer) = self.connections.remove(id) {
            report_flow_mods(&self.identity.name, &mut peer, now);
        }
        self.update_has_monitors();
        self.schedule.handle_down(id);
        self.publication.handle_down(id);
        self.update_mode();
    }

    /// Handles a change of whether any controllers are configured. Rules of a standalone switch are
    /// useless under a controller and vice versa, so the tables, the groups and the meters start
    /// over, as in Open vSwitch.
    pub fn handle_controllers(&mut self, any: bool, now: Instant) {
        if any != self.controllers.are_configured {
            self.controllers.are_configured = any;
            self.reset_tables(now);
        }
    }

    /// Handles the end of the wait for controllers: ports receive frames from now on.
    pub const fn handle_wait_over(&mut self) {
        self.publication.request();
    }

    /// Expires rules and forwarding database entries, and runs the other due timers.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self
            .tables
            .pipeline
            .next_expiry()
            .is_some_and(|due| due <= now)
        {
            let mut changes = self.tables.pipeline.expire(now);
            self.note(&mut changes, None);
        }
        if self.restored_until.take_if(|end| *end <= now).is_some() {
            self.update_mode();
        }
        self.commit_scheduled(now);
        self.expire_bundles(now);
        self.report_due_flow_mods(now);
        let has_compacted = self.tables.compact_when_quiet(now);
        let has_expired = self.normal.handle_timeout(now);
        self.publication.request_if(has_compacted || has_expired);
    }

    /// Returns the time of the next call of [`Bridge::handle_timeout`].
    pub fn next_timeout(&self) -> Option<Instant> {
        let expiries = [
            self.tables.pipeline.next_expiry(),
            self.normal.next_expiry(),
            self.schedule.next_timeout(),
            self.tables.next_compaction(),
            self.protocols.next_timeout(&self.ports),
            self.exporters.next_timeout(),
            self.next_report,
            self.restored_until,
        ];
        expiries.into_iter().flatten().min()
    }

    /// Describes the lookup form of each table, as the workers have it.
    pub fn describe_tables(&self) -> Vec<TableDescription> {
        self.tables.compiled.describe()
    }

    /// Sets the fail mode. Without configured controllers the tables start over, as in Open
    /// vSwitch, because the rules of one mode are useless in the other.
    pub fn set_fail_mode(&mut self, mode: FailMode, now: Instant) {
        self.identity.fail_mode = mode;
        if self.controllers.are_configured {
            self.update_mode();
        } else {
            self.reset_tables(now);
        }
    }

    /// Sets the datapath id. The caller reconnects peers that know the old one.
    pub fn set_datapath_id(&mut self, id: DatapathId) {
        self.identity.datapath_id = id;
    }

    /// Returns the datapath id.
    pub const fn datapath_id(&self) -> DatapathId {
        self.identity.datapath_id
    }

    /// Deletes all rules, groups and meters. A standalone bridge without configured controllers
    /// receives one rule that forwards as a learning switch does: a rule, because tools can see and
    /// replace it.
    fn reset_tables(&mut self, now: Instant) {
        self.clear_tables(now);
        if !self.controllers.are_configured && self.identity.fail_mode == FailMode::Standalone {
            let normal = Instructions::apply(vec![Action::output(PortNo::NORMAL)]);
            let rule = FlowMod::new(FlowModCommand::Add, 0, Match::any(), normal);
            self.do_flow_mod(&rule, None, now)
                .expect("an empty table has room for one rule");
        }
        self.update_mode();
    }

    /// Deletes all rules, groups and meters.
    fn clear_tables(&mut self, now: Instant) {
        let everything = FlowMod {
            table: TableId::ALL,
            ..FlowMod::new(
                FlowModCommand::Delete,
                0,
                Match::any(),
                Instructions::default(),
            )
        };
        self.do_flow_mod(&everything, None, now)
            .expect("deleting everything is always legal");
        let mut changes = self.tables.pipeline.delete_groups_and_meters(now);
        self.note(&mut changes, None);
    }

    /// Logs the flow-mods of connections whose report is due.
    fn report_due_flow_mods(&mut self, now: Instant) {
        if self.next_report.is_none_or(|due| due > now) {
            return;
        }
        for (_, peer) in self.connections.iter_mut() {
            if peer.flow_mods.due().is_some_and(|due| due <= now) {
                report_flow_mods(&self.identity.name, peer, now);
            }
        }
        let peers = self.connections.iter();
        self.next_report = peers.filter_map(|(_, peer)| peer.flow_mods.due()).min();
    }

    /// Enters or leaves the fail mode, and updates the table-miss policy.
    fn update_mode(&mut self) {
        let standalone = self.identity.fail_mode == FailMode::Standalone
            && self.controllers.are_configured
            && self.restored_until.is_none()
            && !self.connections.any_primary();
        let miss = if self.connections.any_takes_misses() {
            MissPolicy::Controller
        } else {
            MissPolicy::Drop
        };
        self.tables.pipeline.set_standalone(standalone);
        self.tables.pipeline.set_miss_policy(miss);
        self.publication.request();
    }
}

/// Logs the flow-mods of a connection since its last report.
fn report_flow_mods(bridge: &str, peer: &mut Connection, now: Instant) {
    if let Some(text) = peer.flow_mods.take_text(now) {
        tracing::info!(target: "connmgr", "{bridge}<->{}: {text}", peer.name);
    }
}

#[cfg(test)]
mod tests;
