//! The control thread: the only writer of all tables. It reads its inbox and the workers' rings,
//! passes the events to the bridges, carries out their effects, and publishes the changes once per
//! burst.

mod active_config;
mod active_flows;
mod backpressure;
mod bridge_runtime;
mod capturing;
mod checkpointing;
mod closing;
mod collectors;
mod commands;
mod connmgr;
mod datapath_ports;
mod dummies;
mod flow_watch;
mod host_ports;
mod in_band;
mod interfaces;
mod lookups;
mod neighbours;
mod opening;
mod peer_messages;
mod peer_table;
mod pmd;
mod publication;
mod reports;
mod rxq_assignment;
mod shaping;
mod state_report;
mod steps;
mod telemetry;
mod timers;
mod trackers;
mod turn_time;
mod underlay;
mod virtual_ports;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use base::Instant;
use base::sync::mpsc::TryRecvError;
use control_api::RunDir;
use openflow::{AsyncConfig, AsyncMasks};
use pipeline::Removal;
use tokio::runtime::Handle;
use tokio::sync::Notify;

use super::clock::Clock;
use super::inbox::{Inbox, InboxReceiver, Input};
use super::outbox::{Credit, Outbox, Outgoing};
use super::peers::Exchange;
use super::reaper::{LARGE, Reaper};
use super::worker_thread::WorkerThread;
use crate::checkpoint_file::CheckpointFile;
use crate::flushes::Flushes;
use crate::log_control::LogControl;
use crate::watchdog::Heartbeat;
use active_config::ActiveConfig;
use active_flows::ActiveFlows;
use bridge_runtime::BridgeRuntime;
use capturing::Capturing;
use checkpointing::Checkpoints;
use collectors::Collectors;
use commands::CommandState;
use config::{DummyMode, Tls};
use dataplane::program::{BridgeId, Publication};
use dataplane::slots::PortKey;
use dummies::Dummies;
use flow_watch::FlowWatch;
use opening::Devices;
use peer_table::PeerTable;
use pmd::PmdThreads;
use publication::Publications;
use switch::bridge::{Bridge, Effect};
use switch::connection::{Connection, ConnectionId};
use trackers::ConnectionTrackers;
use turn_time::{TurnTimer, TurnWork};
use underlay::UnderlaySources;

/// Messages whose memory is prefetched together. A processor has about a dozen cache misses in
/// flight at once.
const PREFETCH_BATCH: usize = 16;

/// The limit of inputs, and of events of each worker, between two publications: large enough to
/// make a burst of flow-mods cheap, small enough that a rule takes effect within a few
/// milliseconds.
const BURST_MAX: usize = 256;

/// The time that a burst takes before the events of workers, timers and protocols are served. A
/// burst of a thousand flow-mods takes about as long.
const TURN_MAX: Duration = Duration::from_millis(2);

/// Counters of the control thread that belong to no bridge or port.
#[derive(Debug, Default)]
pub(crate) struct ControlCounters {
    /// Malformed or unknown messages; the channels answer them.
    messages_refused: u64,
    /// Asynchronous messages dropped because the peer's queue was full.
    async_dropped: u64,
    /// Packet-out frames dropped because the worker's command ring was full.
    transmit_dropped: u64,
    exports_sent: u64,
    exports_lost: u64,
    /// Configurations that changed something.
    reconfigured: u64,
    turns: TurnTimer,
    checkpoint: Option<Arc<CheckpointFile>>,
    /// Packets that no listed flow of a real port counts.
    flows_unlisted: u64,
    /// Messages of bundles that found the memory of all connections exhausted.
    memory_refused: u64,
}

/// The names of a bridge's counters.
pub(crate) const BRIDGE_COUNTERS: [&str; 6] = [
    "fdb_evicted",
    "learn_refused",
    "packet_in_limited",
    "packet_out_limited",
    "rules_refused",
    "tree_guarded",
];

/// Returns the counters of a bridge, by name.
fn bridge_counters(bridge: &Bridge) -> impl Iterator<Item = (&'static str, u64)> {
    BRIDGE_COUNTERS.into_iter().zip([
        bridge.fdb().counts().evicted,
        bridge.learn_refused(),
        bridge.packet_ins_limited(),
        bridge.packet_outs_limited(),
        bridge.rules_refused(),
        bridge.tree_guarded(),
    ])
}

impl ControlCounters {
    /// Returns every counter by name.
    pub(crate) fn read(&self) -> [(&'static str, u64); 12] {
        let checkpoint = self.checkpoint.as_ref();
        let (written, failed) = checkpoint.map_or((0, 0), |file| file.counts());
        [
            ("messages_refused", self.messages_refused),
            ("async_dropped", self.async_dropped),
            ("transmit_dropped", self.transmit_dropped),
            ("exports_sent", self.exports_sent),
            ("exports_lost", self.exports_lost),
            ("reconfigured", self.reconfigured),
            ("checkpoints_written", written),
            ("checkpoints_failed", failed),
            ("turns_slow", self.turns.slow_turns()),
            ("turn_longest_us", self.turns.longest_us()),
            ("flows_unlisted", self.flows_unlisted),
            ("memory_refused", self.memory_refused),
        ]
    }
}

/// The environment of the control thread.
pub(crate) struct ControlEnvironment {
    /// The clock.
    pub(crate) clock: Clock,
    /// The runtime of the tasks.
    pub(crate) runtime: Handle,
    /// The runtime of the listeners and their peers.
    pub(crate) peers_runtime: Handle,
    /// The dependencies of connections.
    pub(crate) exchange: Exchange,
    /// The sending end of this thread's inbox.
    pub(crate) inbox: Inbox,
    /// The directory of the sockets.
    pub(crate) rundir: RunDir,
    /// The slot from which workers take programs.
    pub(crate) publication: Arc<Publication>,
    /// The workers.
    pub(crate) workers: Vec<WorkerThread>,
    /// The thread that frees large structures.
    pub(crate) reaper: Reaper,
    /// The proof of life of this thread.
    pub(crate) heartbeat: Arc<Heartbeat>,
    /// Notified when the facts have changed.
    pub(crate) facts_changed: Arc<Notify>,
    /// The requests to write the facts at once.
    pub(crate) flushes: Arc<Flushes>,
    /// The interfaces that are dummies.
    pub(crate) dummies: DummyMode,
    /// True if tunnels use the system's routes.
    pub(crate) system_routes: bool,
    /// The configuration file, which is read again on request.
    pub(crate) file: Option<PathBuf>,
    /// Key and certificates for peers, if the configuration names none.
    pub(crate) tls: Option<Tls>,
    /// The answer of the command `version`.
    pub(crate) version: &'static str,
    /// The process's log, if it can be changed.
    pub(crate) log: Option<Arc<dyn LogControl>>,
    /// The file of the checkpoint, if tables survive a crash.
    pub(crate) checkpoint: Option<Arc<CheckpointFile>>,
}

/// The control thread's state.
pub(crate) struct Control {
    tools: ControlEnvironment,
    inputs: InputQueue,
    configuration: ActiveConfig,
    sites: BTreeMap<BridgeId, BridgeRuntime>,
    peers: PeerTable,
    publications: Publications,
    devices: Devices,
    counters: ControlCounters,
    underlay: UnderlaySources,
    capturing: Capturing,
    collectors: Collectors,
    commands: CommandState,
    dummies: Dummies,
    pmd: PmdThreads,
    flows: ActiveFlows,
    flow_watch: FlowWatch,
    checkpoints: Checkpoints,
    /// The time at which protocols were served last.
    protocols_served: Instant,
    trackers: ConnectionTrackers,
}

/// The receiving end of the inbox.
struct InputQueue {
    receiver: InboxReceiver,
    /// True if the thread must end.
    stopped: bool,
}

impl Control {
    /// Returns a control thread without bridges.
    pub(crate) fn new(tools: ControlEnvironment, receiver: InboxReceiver) -> Self {
        Self {
            inputs: InputQueue {
                receiver,
                stopped: false,
            },
            configuration: ActiveConfig::default(),
            sites: BTreeMap::new(),
            peers: PeerTable::default(),
            publications: Publications::new(Arc::clone(&tools.publication)),
            devices: Devices::new(tools.dummies),
            counters: ControlCounters {
                checkpoint: tools.checkpoint.clone(),
                ..ControlCounters::default()
            },
            underlay: UnderlaySources::default(),
            capturing: Capturing::default(),
            collectors: Collectors::default(),
            commands: CommandState::default(),
            dummies: Dummies::default(),
            pmd: PmdThreads::default(),
            flows: ActiveFlows::default(),
            flow_watch: FlowWatch::default(),
            checkpoints: Checkpoints::new(tools.checkpoint.clone(), tools.clock),
            protocols_served: Instant::START,
            trackers: ConnectionTrackers::default(),
            tools,
        }
    }

    /// Serves until it is stopped.
    pub(crate) fn run(&mut self) {
        while !self.inputs.stopped {
            self.tools.heartbeat.beat();
            self.counters.turns.begin(self.tools.clock.unwarped());
            let mut drained = self.read_inbox();
            drained &= self.read_workers();
            self.end_part(TurnWork::Other("events of workers"));
            self.handle_timeouts();
            self.step_warp();
            self.write_checkpoint();
            self.end_part(TurnWork::Other("timers"));
            self.publish();
            self.end_part(TurnWork::Other("a publication"));
            self.complete_passed();
            self.resume_deferred();
            self.end_part(TurnWork::Other("messages behind barriers"));
            if let Some(slow) = self.counters.turns.end() {
                slow.warn();
            }
            // Messages deferred behind a barrier may have changed the tables again.
            let is_done = drained && !self.peers.has_resumable() && !self.is_publication_due();
            if is_done && !self.inputs.stopped {
                self.rest();
            }
        }
    }

    fn now(&self) -> Instant {
        self.tools.clock.now()
    }

    /// Ends a part of the turn.
    fn end_part(&mut self, work: TurnWork) {
        self.counters.turns.lap(self.tools.clock.unwarped(), work);
    }

    /// Reads one burst, within the time of a turn. Returns true if the inbox is empty.
    fn read_inbox(&mut self) -> bool {
        let end = self.tools.clock.unwarped() + TURN_MAX;
        for _ in 0..BURST_MAX {
            match self.inputs.receiver.try_recv() {
                Ok(input) => {
                    let work = TurnWork::of(&input);
                    self.handle(input);
                    self.end_part(work);
                }
                Err(TryRecvError::Empty) => return true,
                Err(TryRecvError::Disconnected) => self.inputs.stopped = true,
            }
            if self.inputs.stopped {
                return true;
            }
            if self.tools.clock.unwarped() >= end {
                return false;
            }
        }
        false
    }

    fn handle(&mut self, input: Input) {
        match input {
            Input::Up {
                id,
                purpose,
                version,
                outbox,
            } => self.handle_up(id, &purpose, version, outbox),
            Input::Missed {
                bridge,
                uri,
                problem,
            } => self.handle_missed(&bridge, &uri, problem),
            Input::Messages(id, messages, credit) => self.handle_messages(id, messages, credit),
            Input::Refused => self.counters.messages_refused += 1,
            Input::Drained(id) => self.notify_bridge(id, Bridge::handle_drained),
            Input::Down(id) => self.handle_down(id),
            Input::Garbage(garbage) => self.tools.reaper.free(garbage),
            Input::Link(event) => self.handle_link(event),
            Input::Underlay(tables) => self.handle_underlay(*tables),
            Input::CommandRequest(request) => self.handle_command_request(request),
            Input::Learned(bridge, lesson) => self.apply_lesson(bridge, &lesson),
            Input::Configure(config, done) => {
                self.apply_config(*config);
                // The caller may send frames as soon as it is notified.
                self.publish_at_once();
                // The caller may have stopped waiting.
                let _ = done.send(());
            }
            Input::Facts(answer) => drop(answer.send(self.facts())),
            Input::Telemetry(answer) => drop(answer.send(self.gather(0))),
            Input::Reload => self.reload(),
            Input::Stop => self.inputs.stopped = true,
        }
    }

    fn handle_up(
        &mut self,
        id: ConnectionId,
        purpose: &super::purpose::Purpose,
        version: openflow::Version,
        outbox: Outbox,
    ) {
        let now = self.now();
        let memory = self.tools.exchange.admission.bundle_memory(purpose.kind);
        let Some((bridge, site)) = self.site_named(&purpose.bridge) else {
            return;
        };
        site.record_connect(purpose.uri.as_ref(), now);
        let mut connection = Connection::new(purpose.kind, version);
        connection.uri.clone_from(&purpose.uri);
        connection.name.clone_from(&purpose.peer);
        let tuning = *purpose.tuning.borrow();
        connection.rate_limit = tuning.rate_limit;
        connection.limit_memory(memory);
        if !tuning.asynchronous {
            connection.wants = AsyncConfig {
                active: AsyncMasks::default(),
                slave: AsyncMasks::default(),
            };
        }
        site.bridge.handle_up(id, connection);
        tracing::debug!(bridge = &*purpose.bridge, %version, "peer connected");
        self.peers.insert(id, purpose.kind, bridge, outbox);
        self.tools.facts_changed.notify_one();
    }

    fn handle_down(&mut self, id: ConnectionId) {
        let Some(bridge) = self.peers.remove(id) else {
            return;
        };
        let now = self.now();
        if let Some(site) = self.sites.get_mut(&bridge) {
            site.record_disconnect(id, now);
            site.bridge.handle_down(id, now);
        }
        self.tools.facts_changed.notify_one();
    }

    /// Carries out a bridge's effects. The first answer takes the request's credit.
    fn apply_effects(
        &mut self,
        bridge: BridgeId,
        effects: Vec<Effect>,
        credit: &mut Option<Credit>,
    ) {
        let mut slow = Vec::new();
        for effect in effects {
            match effect {
                Effect::Reply(id, xid, message) => {
                    self.peers.answer(id, Outgoing::Reply(xid, message), credit);
                }
                Effect::Refuse(id, xid, refusal, excerpt) => {
                    self.peers
                        .answer(id, Outgoing::Refusal(xid, refusal, excerpt), credit);
                }
                Effect::Dump(id, xid, dump) => {
                    self.peers.answer(id, Outgoing::Dump(xid, dump), credit);
                }
                Effect::Update(id, updates) => {
                    if self.peers.update(id, updates) {
                        slow.push(id);
                    }
                }
                Effect::Pause(id, message) => {
                    self.peers.answer(id, Outgoing::Paused(message), &mut None);
                }
                Effect::Disconnect(id) => self.peers.disconnect(id),
                Effect::Notify(id, message) => {
                    if !self.peers.notify(id, &message) {
                        self.counters.async_dropped += 1;
                    }
                }
                Effect::Transmit(port, frame, words) => {
                    let key = PortKey { bridge, port };
                    if !self.tools.workers[0].handle.transmit(key, frame, words) {
                        self.counters.transmit_dropped += 1;
                    }
                }
                Effect::Export(targets, datagram) => self.export(bridge, &targets, &datagram),
                Effect::SetPortUp(port, up) => self.set_port_up(bridge, port, up),
                Effect::Free(removals) => self.free(removals),
            }
        }
        for id in slow {
            self.notify_bridge(id, Bridge::handle_slow);
        }
    }

    /// Frees removed rules; many at once are freed by the reaper.
    fn free(&self, removals: Vec<Removal>) {
        if removals.len() >= LARGE {
            self.tools.reaper.free(Box::new(removals));
        }
    }

    fn site_named(&mut self, name: &str) -> Option<(BridgeId, &mut BridgeRuntime)> {
        let mut sites = self.sites.iter_mut();
        let found = sites.find(|(_, site)| site.bridge.name() == name);
        found.map(|(id, site)| (*id, site))
    }
}
