//! One bridge: its tables, stations, ports and peers, and what each message to
//! it means. Pure: it is told what happened and when, and returns what is to be
//! done about it. Only here are its tables changed.
//!
//! Changes reach the workers by publication. What must not happen before the
//! workers have taken a change (barrier replies, the final counts of a rule
//! that is gone) waits here for the publication's generation to be passed.

mod bonds;
mod commit;
mod controllers;
mod exporting;
mod frames;
mod in_band;
mod intercepted;
mod mirroring;
mod multicast;
mod notices;
mod ports;
mod publication;
mod queues;
mod requests;
mod schedule;
mod spanning;
mod stations;
mod statistics;
mod switching;
mod tables;
mod tidying;
mod watching;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;

use base::{DatapathId, Instant, PortNo, TableId, Xid};
use fastpath::{Classifier, LookupScratch, TableDescription};
use flow::{
    Action, FlowMod, FlowModCommand, Instructions, Match, PipelineFields, Refusal, SwitchConfig,
    TableStatus,
};
use openflow::{ControlChannelStatus, Excerpt, Message, WallTime};
use packet::{Frame, Pool};
use pipeline::{
    Changes, Interpreter, LearnRequest, Limits, MissPolicy, Pipeline, Removal, Verdict,
};

use super::connection::{Connection, ConnectionId, Connections, Kind};
use super::dump::Dump;
use super::monitors::{Author, Recorded};
use config::{AGEING_TIME, FDB_SIZE, FailMode, PacketRate};
use dataplane::in_band::InBand;
use dataplane::mirrors::Mirrors;
use dataplane::program::Generation;
use dataplane::punt::PuntTable;
use dataplane::stp_filter::StpFilter;
use dataplane::switching::SwitchingView;
use l2::fdb::ForwardingDatabase;
use l2::multicast_snooping::MulticastTable;

pub use bonds::Bonded;
use bonds::Bonds;
use exporting::Exporting;
pub use ports::PortEntry;
use publication::{Awaited, Waiting};
use schedule::Scheduled;
pub use spanning::Spanning;
use tidying::Tidying;

/// Buffers for frames that the control thread sends: a packet-out makes at most
/// one copy of its frame for each port.
const PACKET_OUT_BUFFERS: usize = 1024;

/// What is to be done about a message or an event.
#[derive(Debug)]
pub enum Effect {
    /// Answer a request.
    Reply(ConnectionId, Xid, Box<Message>),
    /// Refuse a request.
    Refuse(ConnectionId, Xid, Refusal, Excerpt),
    /// Answer a request with rules, as fast as the peer reads them.
    Dump(ConnectionId, Xid, Box<Dump>),
    /// Tell a peer what its monitors watch for, as fast as it reads.
    Update(ConnectionId, Box<Dump>),
    /// Tell a peer that its monitors are paused, and the bridge when it has read that.
    Pause(ConnectionId, Box<Message>),
    /// End the connection of a peer that does not read, while too many do not.
    Leave(ConnectionId),
    /// Tell a peer something it did not ask for.
    Tell(ConnectionId, Arc<Message>),
    /// Send a frame out of a port; what goes with it counts if that is a tunnel's.
    Transmit(PortNo, Frame, Option<Box<PipelineFields>>),
    /// Take an interface administratively up or down.
    SetPortUp(PortNo, bool),
    /// Send collectors this datagram.
    Export(Arc<[SocketAddr]>, Vec<u8>),
    /// Let go of rules that are gone, and that everybody was told of.
    Free(Vec<Removal>),
}

/// What a bridge is made of.
#[derive(Clone, Debug)]
pub struct Identity {
    /// Its name.
    pub name: String,
    /// Its datapath id.
    pub datapath_id: DatapathId,
    /// What it does while no controller is connected.
    pub fail_mode: FailMode,
    /// What the clock on the wall showed at [`Instant::START`].
    pub started: WallTime,
}

/// One bridge.
pub struct Bridge {
    identity: Identity,
    pipeline: Pipeline,
    /// The tables of `pipeline`, compiled.
    compiled: Classifier,
    /// When they may be made tidy.
    tidying: Option<Tidying>,
    stations: ForwardingDatabase,
    /// Who is in which multicast group, if the bridge listens in.
    multicast: Option<MulticastTable>,
    /// What its ports are to `NORMAL`; none if all are plain.
    switching: Option<Arc<SwitchingView>>,
    /// What its ports take of what switches say to each other; none if nothing.
    punts: Option<Arc<PuntTable>>,
    /// What of its frames is copied, and where to; none if nothing.
    mirrors: Option<Arc<Mirrors>>,
    /// Its spanning tree, if it has one.
    spanning: Option<Spanning>,
    /// Ports that the tree keeps out; none if it keeps out none.
    stp_filter: Option<Arc<StpFilter>>,
    bonds: Bonds,
    /// The way to its controllers through itself; none if there is none.
    in_band: Option<Arc<InBand>>,
    /// What it tells collectors.
    exporting: Exporting,
    ports: BTreeMap<PortNo, PortEntry>,
    connections: Connections,
    /// Whether controllers are configured, connected or not.
    has_controllers: bool,
    /// Where they are met, each once.
    controllers: BTreeSet<Arc<str>>,
    config: SwitchConfig,
    interpreter: Interpreter,
    scratch: LookupScratch,
    pool: Pool,
    verdict: Verdict,
    /// Whether workers do not know the latest yet.
    unpublished: bool,
    /// What the next flow-mod comes to, once it is known.
    changes: Option<Box<Changes>>,
    /// How many rules are gone since the last publication.
    removed: usize,
    published: Generation,
    passed: Generation,
    waiting: VecDeque<Waiting>,
    /// Whether somebody has monitors.
    is_watched: bool,
    /// What happened to rules, still to be told to who watches.
    recorded: Vec<Recorded>,
    /// News of tables, still to be told.
    vacancies: Vec<TableStatus>,
    /// Rules that frames were to make and could not.
    learn_refused: u64,
    /// How many frames go to each controller that the bridge goes to; all, if there is no limit.
    packet_in_limit: Option<PacketRate>,
    /// Frames that were not sent to a controller since it had as many as it may have.
    packet_ins_limited: u64,
    /// Bundles that wait for their time.
    scheduled: Vec<Scheduled>,
    /// What is still to be done: about bundles whose time has come, and news of controllers.
    late: Vec<Effect>,
}

impl Bridge {
    /// A bridge without ports and peers. `writers` is how many count in its
    /// tables, itself last.
    pub fn new(identity: Identity, has_controllers: bool, writers: usize, now: Instant) -> Self {
        let mut bridge = Self {
            identity,
            pipeline: Pipeline::new(Limits::default(), writers),
            compiled: Classifier::new(),
            tidying: None,
            stations: ForwardingDatabase::new(FDB_SIZE, AGEING_TIME),
            multicast: None,
            switching: None,
            punts: None,
            mirrors: None,
            spanning: None,
            stp_filter: None,
            bonds: Bonds::new(writers),
            in_band: None,
            exporting: Exporting::default(),
            ports: BTreeMap::new(),
            connections: Connections::default(),
            has_controllers,
            controllers: BTreeSet::new(),
            config: SwitchConfig::default(),
            interpreter: Interpreter::new(writers - 1),
            scratch: LookupScratch::new(),
            pool: Pool::new(PACKET_OUT_BUFFERS),
            verdict: Verdict::default(),
            unpublished: true,
            changes: None,
            removed: 0,
            published: Generation::default(),
            passed: Generation::default(),
            waiting: VecDeque::new(),
            is_watched: false,
            recorded: Vec::new(),
            vacancies: Vec::new(),
            learn_refused: 0,
            packet_in_limit: None,
            packet_ins_limited: 0,
            scheduled: Vec::new(),
            late: Vec::new(),
        };
        bridge.start_over(now);
        bridge
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.identity.name
    }

    /// Takes note that a peer has said hello.
    pub fn handle_up(&mut self, id: ConnectionId, connection: Connection) {
        if connection.kind == Kind::Primary {
            let rate = connection.rate_limit.or(self.packet_in_limit);
            connection.policer.set(rate);
        }
        self.connections.insert(id, connection);
        self.note_channel(id, ControlChannelStatus::Up);
        self.settle_mode();
    }

    /// Takes note that a peer is gone.
    pub fn handle_down(&mut self, id: ConnectionId) {
        self.note_channel(id, ControlChannelStatus::Down);
        self.connections.remove(id);
        self.count_watchers();
        self.scheduled.retain(|waiting| !waiting.is_of(id));
        self.waiting.retain(|waiting| match waiting.what {
            Awaited::Barrier(at, _) | Awaited::Committed(at, ..) => at != id,
            Awaited::Removals(_) => true,
        });
        self.settle_mode();
    }

    /// Takes note that controllers are configured, or no longer. The rules of one
    /// regime are not those of the other, so the tables start over, as with Open vSwitch.
    pub fn handle_controllers(&mut self, any: bool, now: Instant) {
        if any != self.has_controllers {
            self.has_controllers = any;
            self.start_over(now);
        }
    }

    /// Takes note that frames come from now on.
    pub const fn handle_wait_over(&mut self) {
        self.unpublished = true;
    }

    /// Does what a frame wants of the tables. What cannot be is not done, and nobody
    /// asked for it who could be told.
    pub fn handle_learned(&mut self, learned: &LearnRequest, now: Instant) {
        match self.pipeline.learn(learned, now) {
            Ok(mut changes) => self.note(&mut changes, None),
            Err(refusal) => {
                self.learn_refused += 1;
                // Frames may come by the million: each doubling is a line.
                if self.learn_refused.is_power_of_two() {
                    let (bridge, refused) = (self.name(), self.learn_refused);
                    tracing::warn!(bridge, refused, %refusal, "not learned");
                }
            }
        }
    }

    /// How many rules frames were to make and could not, since a table was full, say.
    pub const fn learn_refused(&self) -> u64 {
        self.learn_refused
    }

    /// Sends each controller that the bridge goes to so many frames from now on.
    pub fn limit_packet_ins(&mut self, rate: Option<PacketRate>) {
        self.packet_in_limit = rate;
        let peers = self.connections.iter().map(|(_, peer)| peer);
        let controllers = peers.filter(|peer| peer.kind == Kind::Primary);
        controllers.for_each(|peer| peer.policer.set(peer.rate_limit.or(rate)));
    }

    /// How many frames were not sent to a controller since it had as many as it may have.
    pub const fn packet_ins_limited(&self) -> u64 {
        self.packet_ins_limited
    }

    /// Does what is due: rules and stations whose time is over.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.pipeline.next_expiry().is_some_and(|due| due <= now) {
            let mut changes = self.pipeline.expire(now);
            self.note(&mut changes, None);
        }
        self.handle_due(now);
        self.tidy_when_quiet(now);
        self.expire_multicast(now);
        if self.stations.next_expiry().is_some_and(|due| due <= now) && self.stations.expire(now) {
            self.unpublished = true;
        }
    }

    /// When [`Bridge::handle_timeout`] has something to do.
    pub fn next_timeout(&self) -> Option<Instant> {
        let expiries = [
            self.pipeline.next_expiry(),
            self.stations.next_expiry(),
            self.multicast
                .as_ref()
                .and_then(MulticastTable::next_expiry),
            self.next_commit(),
            self.next_tidying(),
            self.next_of_tree(),
            self.next_of_bonds(),
            self.next_export(),
        ];
        expiries.into_iter().flatten().min()
    }

    /// How the tables find their rules, as workers have them.
    pub fn describe_tables(&self) -> Vec<TableDescription> {
        self.compiled.describe()
    }

    /// Does this without controllers from now on. Where none are configured, the rules of
    /// one mode are not those of the other, so the tables start over, as with Open vSwitch.
    pub fn set_fail_mode(&mut self, mode: FailMode, now: Instant) {
        self.identity.fail_mode = mode;
        if self.has_controllers {
            self.settle_mode();
        } else {
            self.start_over(now);
        }
    }

    /// Bears this id from now on. Who was told of another is to be met anew.
    pub fn set_datapath_id(&mut self, id: DatapathId) {
        self.identity.datapath_id = id;
    }

    /// Its datapath id.
    pub const fn datapath_id(&self) -> DatapathId {
        self.identity.datapath_id
    }

    /// Empties the tables, and lets a bridge that nobody is to control forward as
    /// an ordinary switch: by a rule, so that a tool can see it and replace it.
    fn start_over(&mut self, now: Instant) {
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
        self.settle_mode();
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

    /// Takes note of changes to the tables, and of whose they are.
    fn note(&mut self, changes: &mut Changes, by: Option<Author>) {
        self.unpublished = true;
        self.record(changes, by);
        self.note_vacancies();
        self.compiled.take_changes(changes);
        if !changes.removed.is_empty() {
            self.removed += changes.removed.len();
            let what = Awaited::Removals(std::mem::take(&mut changes.removed));
            self.waiting.push_back(Waiting {
                generation: None,
                what,
            });
        }
    }

    /// Goes over to the fail mode, or back, and settles who is told of misses.
    fn settle_mode(&mut self) {
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
        self.unpublished = true;
    }
}

#[cfg(test)]
mod tests;
