//! A bridge and all that belongs to it outside its own head: open ports, tasks,
//! sockets. Dropping it closes them.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::sync::mpsc::{Receiver, Sender, channel};
use base::{Instant, PortNo};
use packet::MacAddr;
use ports::shaping::{EffectiveQos, QosConfig};
use ports::{Port, Queue};

use super::seats::Seat;
use crate::connection::Speaking;
use crate::peers::Task;
use crate::rundir::SocketFile;
use config::reconcile::NumberedPort;
use config::{
    Affinity, AuxiliaryCount, ControllerConfig, InBandSettings, InterfaceConfig, ListenAddress,
    PacketRate, Policing,
};
use dataplane::messages::ReturnedQueue;
use dataplane::policer::{PacketInCounters, Policer, PortPolicing};
use switch::bridge::Bridge;
use switch::connection::ConnectionId;

/// A port that is wanted.
pub(super) struct PortSite {
    /// What was asked for.
    pub(super) wanted: NumberedPort,
    /// Its Ethernet address, if the switch is to give it one.
    pub(super) address: Option<MacAddr>,
    /// Which of its frames go to controllers.
    pub(super) policer: Arc<Policer>,
    /// What came of those, of each worker.
    pub(super) packet_in_counters: Vec<Arc<PacketInCounters>>,
    /// The places of the workers, in their order; none while it is not open.
    pub(super) seats: Vec<Seat>,
    /// Queues that only send, and that no worker needs now.
    pub(super) spare: Vec<Box<dyn Queue>>,
    /// Moves from worker to worker that are under way.
    pub(super) moves: usize,
    /// Who is to take its frames when these are done.
    pub(super) then: Option<Vec<usize>>,
    /// How queues come back from workers.
    pub(super) returned: (Sender<ReturnedQueue>, Receiver<ReturnedQueue>),
    /// How its frames come and go, where there is more than one way.
    pub(super) way: Option<String>,
    /// The open device; none while the interface is missing.
    pub(super) device: Option<Box<dyn Port>>,
    /// Why it is not open, as far as that was told.
    pub(super) problem: Option<String>,
    /// What it was to be given and could not be, and why.
    pub(super) complaint: Option<String>,
    /// The queues that it was given.
    pub(super) shaped: Option<(QosConfig, EffectiveQos)>,
    /// Whether something was at the other end when that was told last, and how often that
    /// has changed.
    pub(super) carrier: Option<bool>,
    /// See `carrier`.
    pub(super) link_resets: u64,
    /// The system's number for the interface; none while it is missing, or is in
    /// another network namespace, where its news do not reach us.
    pub(super) index: Option<u32>,
}

/// What is left of a port that was closed. The system's part of it goes with the value.
#[derive(Default)]
pub(super) struct Closed {
    /// Its queues.
    _queues: Vec<Box<dyn Queue>>,
    _device: Option<Box<dyn Port>>,
}

impl Closed {
    /// One of its queues, by itself.
    pub(super) fn of(queue: Box<dyn Queue>) -> Self {
        Self {
            _queues: vec![queue],
            _device: None,
        }
    }
}

/// A place where peers are waited for.
pub(super) struct ListenSite {
    /// The task that waits. It ends before the file goes.
    pub(super) _task: Task,
    /// The socket's file, if it has one.
    pub(super) _file: Option<SocketFile>,
}

/// When a controller came last, and when it went.
#[derive(Clone, Debug, Default)]
pub(super) struct Contact {
    /// When it came.
    pub(super) came: Option<Instant>,
    /// When it went.
    pub(super) went: Option<Instant>,
    /// Why it is not there, or was not the last time.
    pub(super) problem: Option<String>,
}

/// A bridge with all it has.
pub(super) struct Site {
    /// The bridge.
    pub(super) bridge: Bridge,
    /// The address of its own interface.
    pub(super) address: MacAddr,
    /// How it speaks with those that come.
    pub(super) speaking: Speaking,
    /// How many frames may go to controllers.
    pub(super) policing: Policing,
    /// Which workers take the frames of ports; all, of ports that are not named.
    pub(super) affinity: Vec<Affinity>,
    /// How many auxiliary connections it has to each controller.
    pub(super) auxiliary: AuxiliaryCount,
    /// What interfaces are given beside.
    pub(super) equipment: BTreeMap<String, InterfaceConfig>,
    /// Its ports.
    pub(super) ports: BTreeMap<PortNo, PortSite>,
    /// The controllers it connects to, each with the task that does; none, while rules are
    /// still to be restored.
    pub(super) controllers: BTreeMap<ControllerConfig, Option<Task>>,
    /// What passes through it whatever rules say, beside what goes to controllers.
    pub(super) in_band: InBandSettings,
    /// When each of them came and went.
    pub(super) contacts: BTreeMap<Arc<str>, Contact>,
    /// Where it listens.
    pub(super) listeners: BTreeMap<ListenAddress, ListenSite>,
    /// Where it was to listen and could not, and why.
    pub(super) not_listening: BTreeMap<ListenAddress, String>,
    /// Its management socket, for OpenFlow.
    pub(super) _management: ListenSite,
    /// Its socket for those who listen in.
    pub(super) _snoop: ListenSite,
    /// Its control socket, for unixctl.
    pub(super) _control: ListenSite,
}

impl PortSite {
    /// A port that is not open yet.
    pub(super) fn new(
        wanted: NumberedPort,
        address: Option<MacAddr>,
        rate: Option<PacketRate>,
    ) -> Self {
        Self {
            wanted,
            address,
            policer: Policer::new(rate),
            packet_in_counters: Vec::new(),
            seats: Vec::new(),
            spare: Vec::new(),
            moves: 0,
            then: None,
            returned: channel(),
            way: None,
            device: None,
            problem: None,
            complaint: None,
            shaped: None,
            carrier: None,
            link_resets: 0,
            index: None,
        }
    }

    /// Lets go of its device and of the queues that no worker has.
    pub(super) fn close(&mut self) -> Closed {
        self.way = None;
        self.index = None;
        self.seats.clear();
        self.moves = 0;
        self.then = None;
        // What workers still give back is the old device's.
        self.returned = channel();
        Closed {
            _queues: std::mem::take(&mut self.spare),
            _device: self.device.take(),
        }
    }

    /// Takes note of whether something is at the other end.
    pub(super) fn note_carrier(&mut self, carrier: bool) {
        if self
            .carrier
            .replace(carrier)
            .is_some_and(|was| was != carrier)
        {
            self.link_resets += 1;
        }
    }

    /// Gives its device what it is to have.
    pub(super) fn equip(&mut self, equipment: &InterfaceConfig) {
        self.policer.limit_ingress(equipment.ingress);
        self.policer.limit_egress(equipment.egress);
        self.complaint = None;
        let (address, mtu) = (equipment.address, equipment.mtu);
        if let Some(device) = &mut self.device
            && (address.is_some() || mtu.is_some())
            && let Err(error) = device.set_link(address, mtu)
        {
            let what = match (address, mtu) {
                (Some(_), Some(_)) => "mac, mtu_request",
                (Some(_), None) => "mac",
                _ => "mtu_request",
            };
            self.complain(format!("{what}: {error}"));
        }
        self.shape(equipment.shape.as_ref());
    }

    /// Takes note of what could not be given to its device.
    pub(super) fn complain(&mut self, of: String) {
        tracing::warn!("{}: {of}", self.wanted.name);
        self.complaint = Some(match self.complaint.take() {
            Some(before) => format!("{before}; {of}"),
            None => of,
        });
    }

    /// The port's way to the controllers, for another worker.
    pub(super) fn add_policing(&mut self) -> PortPolicing {
        let counters = Arc::<PacketInCounters>::default();
        self.packet_in_counters.push(Arc::clone(&counters));
        PortPolicing {
            policer: Arc::clone(&self.policer),
            counters,
        }
    }

    /// What came of its frames for controllers, by name.
    pub(super) fn told(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.packet_in_counters
            .iter()
            .flat_map(|counters| counters.read())
    }
}

impl Site {
    /// Takes note that a controller came that the bridge goes to.
    pub(super) fn note_contact(&mut self, uri: Option<&Arc<str>>, now: Instant) {
        if let Some(uri) = uri {
            self.contacts.entry(Arc::clone(uri)).or_default().came = Some(now);
        }
    }

    /// Takes note that a peer goes: if it is such a controller, when.
    pub(super) fn note_leave(&mut self, id: ConnectionId, now: Instant) {
        if let Some(contact) = self
            .bridge
            .uri_of(id)
            .and_then(|uri| self.contacts.get_mut(&uri))
        {
            contact.went = Some(now);
        }
    }

    /// Lets so many frames go to controllers from now on.
    pub(super) fn set_policing(&mut self, policing: Policing) {
        self.policing = policing;
        for port in self.ports.values() {
            port.policer.set(policing.port);
        }
        self.bridge.limit_packet_ins(policing.controller);
    }
}
