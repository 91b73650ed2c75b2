//! One bridge: its tables, forwarding database, ports and connections, and the handling of every
//! message. Sans-I/O: the inputs are events with their time, the outputs are [`Effect`]s. No other
//! module changes the tables of a bridge.
//!
//! Changes reach the workers by publication. Effects that must not happen before the workers have
//! taken a change (barrier replies, the final counters of a removed rule) wait here until every
//! worker has passed the generation of that publication.

mod async_messages;
mod bonds;
mod commit;
mod compaction;
mod controllers;
mod exporters;
mod flow_monitors;
mod forwarding_db;
mod frames;
mod in_band;
mod mirroring;
mod multicast;
mod notifications;
mod ports;
mod publication;
mod punt;
mod queues;
mod requests;
mod schedule;
mod spanning;
mod statistics;
mod switching;
mod tables;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;

use base::{DatapathId, Instant, PortNo, TableId, Xid};
use fastpath::{Classifier, LookupScratch, TableDescription};
use flow::{
    Action, FlowMod, FlowModCommand, Instructions, Match, PipelineFields, Refusal, SwitchConfig,
};
use openflow::{ControlChannelStatus, Excerpt, Message, WallTime};
use packet::{Frame, Pool};
use pipeline::{
    Changes, Interpreter, LearnRequest, Limits, MissPolicy, Pipeline, Removal, Verdict,
};

use super::connection::{Connection, ConnectionId, ConnectionKind, Connections};
use super::dump::Dump;
use super::monitors::Author;
use config::{AGEING_TIME, FDB_SIZE, FailMode, PacketRate};
use dataplane::in_band::InBand;
use dataplane::mirrors::Mirrors;
use dataplane::punt::PuntTable;
use dataplane::stp_filter::StpFilter;
use dataplane::switching::SwitchingView;
use l2::fdb::ForwardingDatabase;
use l2::multicast_snooping::MulticastTable;

use bonds::Bonds;
pub use bonds::BridgeBond;
use compaction::CompactionTimer;
use exporters::BridgeExporters;
use notifications::PendingNotifications;
pub use ports::PortEntry;
use publication::PublicationState;
use schedule::BundleSchedule;
pub use spanning::BridgeSpanningTree;

/// Buffers for frames that the control thread sends: a packet-out makes at most one copy of its
/// frame for each port.
const PACKET_OUT_BUFFERS: usize = 1024;

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
    pipeline: Pipeline,
    /// The compiled tables of `pipeline`.
    compiled: Classifier,
    /// The pending compaction of the compiled tables.
    compaction: Option<CompactionTimer>,
    fdb: ForwardingDatabase,
    /// The members of multicast groups, if the bridge snoops.
    multicast: Option<MulticastTable>,
    /// Settings of `NORMAL` for the ports; none if all have defaults.
    switching: Option<Arc<SwitchingView>>,
    /// Control protocols that ports punt; none if no port punts.
    punts: Option<Arc<PuntTable>>,
    /// Mirrors; none if the bridge has none.
    mirrors: Option<Arc<Mirrors>>,
    /// The spanning tree, if it is enabled.
    spanning: Option<BridgeSpanningTree>,
    /// Ports that the spanning tree blocks; none if no port is blocked.
    stp_filter: Option<Arc<StpFilter>>,
    bonds: Bonds,
    /// The in-band control path to the controllers; none if it is disabled.
    in_band: Option<Arc<InBand>>,
    /// The flow exporters.
    exporters: BridgeExporters,
    ports: BTreeMap<PortNo, PortEntry>,
    connections: Connections,
    /// True if controllers are configured, connected or not.
    has_controllers: bool,
    /// The URIs of the configured controllers.
    controllers: BTreeSet<Arc<str>>,
    config: SwitchConfig,
    interpreter: Interpreter,
    scratch: LookupScratch,
    pool: Pool,
    verdict: Verdict,
    /// A buffer for the changes of the next flow-mod.
    changes: Option<Box<Changes>>,
    /// The publication of the state to the workers.
    publication: PublicationState,
    /// Notifications that wait for the next event.
    notifications: PendingNotifications,
    /// Number of learn requests that were refused.
    learn_refused: u64,
    /// Packet-ins that each controller may receive per second; none for no limit.
    packet_in_limit: Option<PacketRate>,
    /// Number of packet-ins that the rate limit dropped.
    packet_ins_limited: u64,
    /// Bundles that wait for their execution time.
    schedule: BundleSchedule,
}

impl Bridge {
    /// Returns a bridge without ports and connections. `writers` is the number of threads that
    /// count in its tables, the control thread last.
    pub fn new(identity: Identity, has_controllers: bool, writers: usize, now: Instant) -> Self {
        let mut bridge = Self {
            identity,
            pipeline: Pipeline::new(Limits::default(), writers),
            compiled: Classifier::new(),
            compaction: None,
            fdb: ForwardingDatabase::new(FDB_SIZE, AGEING_TIME),
            multicast: None,
            switching: None,
            punts: None,
            mirrors: None,
            spanning: None,
            stp_filter: None,
            bonds: Bonds::new(writers),
            in_band: None,
            exporters: BridgeExporters::default(),
            ports: BTreeMap::new(),
            connections: Connections::default(),
            has_controllers,
            controllers: BTreeSet::new(),
            config: SwitchConfig::default(),
            interpreter: Interpreter::new(writers - 1),
            scratch: LookupScratch::new(),
            pool: Pool::new(PACKET_OUT_BUFFERS),
            verdict: Verdict::default(),
            changes: None,
            publication: PublicationState::new(),
            notifications: PendingNotifications::default(),
            learn_refused: 0,
            packet_in_limit: None,
            packet_ins_limited: 0,
            schedule: BundleSchedule::default(),
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
        if connection.kind == ConnectionKind::Primary {
            let rate = connection.rate_limit.or(self.packet_in_limit);
            connection.policer.set(rate);
        }
        self.connections.insert(id, connection);
        self.report_channel(id, ControlChannelStatus::Up);
        self.update_mode();
    }

    /// Handles a closed connection.
    pub fn handle_down(&mut self, id: ConnectionId) {
        self.report_channel(id, ControlChannelStatus::Down);
        self.connections.remove(id);
        self.update_has_monitors();
        self.schedule.handle_down(id);
        self.publication.handle_down(id);
        self.update_mode();
    }

    /// Handles a change of whether any controllers are configured. Rules of a standalone switch are
    /// useless under a controller and vice versa, so the tables start over, as in Open vSwitch.
    pub fn handle_controllers(&mut self, any: bool, now: Instant) {
        if any != self.has_controllers {
            self.has_controllers = any;
            self.reset_tables(now);
        }
    }

    /// Handles the end of the wait for controllers: ports receive frames from now on.
    pub const fn handle_wait_over(&mut self) {
        self.publication.request();
    }

    /// Installs the rule that a frame learned. An error is only counted and logged, because no peer
    /// requested the rule.
    pub fn handle_learned(&mut self, learned: &LearnRequest, now: Instant) {
        match self.pipeline.learn(learned, now) {
            Ok(mut changes) => self.note(&mut changes, None),
            Err(refusal) => {
                self.learn_refused += 1;
                // Frames may fail by the million, so only each doubling is logged.
                if self.learn_refused.is_power_of_two() {
                    let (bridge, refused) = (self.name(), self.learn_refused);
                    tracing::warn!(bridge, refused, %refusal, "cannot install a learned rule");
                }
            }
        }
    }

    /// Returns the number of rules that frames could not learn, for example because a table was
    /// full.
    pub const fn learn_refused(&self) -> u64 {
        self.learn_refused
    }

    /// Limits the packet-ins to each configured controller.
    pub fn limit_packet_ins(&mut self, rate: Option<PacketRate>) {
        self.packet_in_limit = rate;
        let peers = self.connections.iter().map(|(_, peer)| peer);
        let controllers = peers.filter(|peer| peer.kind == ConnectionKind::Primary);
        controllers.for_each(|peer| peer.policer.set(peer.rate_limit.or(rate)));
    }

    /// Returns the number of packet-ins that the rate limit dropped.
    pub const fn packet_ins_limited(&self) -> u64 {
        self.packet_ins_limited
    }

    /// Expires rules and forwarding database entries, and runs the other due timers.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.pipeline.next_expiry().is_some_and(|due| due <= now) {
            let mut changes = self.pipeline.expire(now);
            self.note(&mut changes, None);
        }
        self.commit_scheduled(now);
        self.compact_when_quiet(now);
        self.expire_multicast(now);
        if self.fdb.next_expiry().is_some_and(|due| due <= now) && self.fdb.expire(now) {
            self.publication.request();
        }
    }

    /// Returns the time of the next call of [`Bridge::handle_timeout`].
    pub fn next_timeout(&self) -> Option<Instant> {
        let expiries = [
            self.pipeline.next_expiry(),
            self.fdb.next_expiry(),
            self.multicast
                .as_ref()
                .and_then(MulticastTable::next_expiry),
            self.schedule.next_commit(),
            self.next_compaction(),
            self.next_tree_timeout(),
            self.next_bond_timeout(),
            self.next_export(),
        ];
        expiries.into_iter().flatten().min()
    }

    /// Describes the lookup form of each table, as the workers have it.
    pub fn describe_tables(&self) -> Vec<TableDescription> {
        self.compiled.describe()
    }

    /// Sets the fail mode. Without configured controllers the tables start over, as in Open
    /// vSwitch, because the rules of one mode are useless in the other.
    pub fn set_fail_mode(&mut self, mode: FailMode, now: Instant) {
        self.identity.fail_mode = mode;
        if self.has_controllers {
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

    /// Empties the tables. A standalone bridge without configured controllers receives one rule
    /// that forwards as a learning switch does: a rule, because tools can see and replace it.
    fn reset_tables(&mut self, now: Instant) {
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
        if !self.has_controllers && self.identity.fail_mode == FailMode::Standalone {
            let normal = Instructions::apply(vec![Action::output(PortNo::NORMAL)]);
            let rule = FlowMod::new(FlowModCommand::Add, 0, Match::any(), normal);
            self.do_flow_mod(&rule, None, now)
                .expect("an empty table has room for one rule");
        }
        self.update_mode();
    }

    fn do_flow_mod(
        &mut self,
        command: &FlowMod,
        by: Option<Author>,
        now: Instant,
    ) -> Result<(), Refusal> {
        let mut changes = self.changes.take().unwrap_or_default();
        let done = self.pipeline.flow_mod_into(command, now, &mut changes);
        let done = done.and_then(|()| {
            self.note(&mut changes, by);
            changes.deferred_refusal.take().map_or(Ok(()), Err)
        });
        self.changes = Some(changes);
        done
    }

    /// Processes changes of the tables and their author.
    fn note(&mut self, changes: &mut Changes, by: Option<Author>) {
        self.publication.request();
        self.notifications.record_changes(changes, by);
        self.record_vacancy_events();
        self.compiled.take_changes(changes);
        if !changes.removed.is_empty() {
            let removals = std::mem::take(&mut changes.removed);
            self.publication.queue_removals(removals);
        }
    }

    /// Enters or leaves the fail mode, and updates the table-miss policy.
    fn update_mode(&mut self) {
        let standalone = self.identity.fail_mode == FailMode::Standalone
            && self.has_controllers
            && !self.connections.any_primary();
        let miss = if self.connections.any_takes_misses() {
            MissPolicy::Controller
        } else {
            MissPolicy::Drop
        };
        self.pipeline.set_standalone(standalone);
        self.pipeline.set_miss_policy(miss);
        self.publication.request();
    }
}

#[cfg(test)]
mod tests;
