//! The runtime of a bridge: everything outside its protocol state, such as open ports, tasks and
//! sockets. They close on drop.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::sync::mpsc::{Receiver, Sender, channel};
use base::{Instant, PortNo};
use packet::MacAddr;
use ports::shaping::{EffectiveQos, QosConfig};
use ports::{Port, Queue};
use tokio::sync::watch;

use super::rxq_assignment::WorkerQueue;
use crate::purpose::ChannelSettings;
use crate::rundir::SocketFile;
use crate::task::Task;
use config::reconcile::NumberedPort;
use config::{
    Affinity, AuxiliaryCount, ControllerConfig, ControllerOptions, InBandSettings, InterfaceConfig,
    ListenAddress, MonitoringConfig, PacketRate, Policing,
};
use dataplane::messages::ReturnedQueue;
use dataplane::policer::{PacketInCounters, Policer, PortPolicing};
use switch::bridge::Bridge;
use switch::connection::ConnectionId;

/// A configured port.
pub(super) struct PortRuntime {
    /// The configuration.
    pub(super) spec: NumberedPort,
    /// The MAC address, if the switch sets it.
    pub(super) address: Option<MacAddr>,
    /// The limits of the port's rates, packet-ins included.
    pub(super) policer: Arc<Policer>,
    /// The packet-in counters of each worker.
    pub(super) packet_in_counters: Vec<Arc<PacketInCounters>>,
    /// The queues of the workers, in their order; empty while the port is closed.
    pub(super) queues_of_workers: Vec<WorkerQueue>,
    /// Transmit-only queues that no worker uses.
    pub(super) spare: Vec<Box<dyn Queue>>,
    /// The number of queue moves in progress.
    pub(super) moves: usize,
    /// The assignment to apply after these moves.
    pub(super) next_assignment: Option<Vec<usize>>,
    /// The channel by which workers return queues.
    pub(super) returned: (Sender<ReturnedQueue>, Receiver<ReturnedQueue>),
    /// The I/O mode, if the backend has several.
    pub(super) io_mode: Option<String>,
    /// The open device; none while the interface is missing.
    pub(super) device: Option<Box<dyn Port>>,
    /// The reason why the port is closed, if known.
    pub(super) problem: Option<String>,
    /// The reason why a setting could not be applied.
    pub(super) complaint: Option<String>,
    /// The egress queues.
    pub(super) shaped: Option<(QosConfig, EffectiveQos)>,
    /// The last known carrier.
    pub(super) carrier: Option<bool>,
    /// Number of changes of the carrier.
    pub(super) link_resets: u64,
    /// The interface index; none while the interface is missing or in another network namespace, of
    /// which netlink reports nothing.
    pub(super) index: Option<u32>,
}

/// The resources of a closed port, released on drop.
#[derive(Default)]
pub(super) struct ClosedPort {
    /// The queues.
    _queues: Vec<Box<dyn Queue>>,
    _device: Option<Box<dyn Port>>,
}

impl ClosedPort {
    /// Wraps a single queue.
    pub(super) fn of(queue: Box<dyn Queue>) -> Self {
        Self {
            _queues: vec![queue],
            _device: None,
        }
    }
}

/// A socket that accepts peers.
pub(super) struct OpenListener {
    /// The accepting task. It ends before the file is removed.
    pub(super) _task: Task,
    /// The socket's file, if any.
    pub(super) _file: Option<SocketFile>,
}

/// The connections to a controller.
pub(super) struct ControllerRuntime {
    /// The connecting task; none while rules are still to be restored.
    pub(super) _task: Option<Task>,
    /// The options of the connections.
    pub(super) tuning: watch::Sender<ControllerOptions>,
}

/// The connection history of a controller.
#[derive(Clone, Debug, Default)]
pub(super) struct ControllerHistory {
    /// The time of the last connect.
    pub(super) connected: Option<Instant>,
    /// The time of the last disconnect.
    pub(super) disconnected: Option<Instant>,
    /// The reason for the last failure of the connection.
    pub(super) problem: Option<String>,
}

/// A bridge with its runtime.
pub(super) struct BridgeRuntime {
    /// The bridge.
    pub(super) bridge: Bridge,
    /// The MAC address of the local port.
    pub(super) address: MacAddr,
    /// The channel options for new connections.
    pub(super) channel_settings: ChannelSettings,
    /// The packet-in rate limits.
    pub(super) policing: Policing,
    /// The workers of each named port; other ports use all workers.
    pub(super) affinity: Vec<Affinity>,
    /// The number of auxiliary connections to each controller.
    pub(super) auxiliary: AuxiliaryCount,
    /// Settings of interfaces, by name.
    pub(super) interface_settings: BTreeMap<String, InterfaceConfig>,
    /// The ports.
    pub(super) ports: BTreeMap<PortNo, PortRuntime>,
    /// The controllers.
    pub(super) controllers: BTreeMap<ControllerConfig, ControllerRuntime>,
    /// The in-band settings: remotes, beside the controllers, whose frames bypass the rules.
    pub(super) in_band: InBandSettings,
    /// The connection history of each controller, by URI.
    pub(super) contacts: BTreeMap<Arc<str>, ControllerHistory>,
    /// The open listeners.
    pub(super) listeners: BTreeMap<ListenAddress, OpenListener>,
    /// Listeners that could not be opened, with the reason.
    pub(super) not_listening: BTreeMap<ListenAddress, String>,
    /// The OpenFlow management socket.
    pub(super) _management: OpenListener,
    /// The snoop socket.
    pub(super) _snoop: OpenListener,
    /// The control socket (unixctl).
    pub(super) _control: OpenListener,
}

impl PortRuntime {
    /// Returns a port that is not open yet.
    pub(super) fn new(
        spec: NumberedPort,
        address: Option<MacAddr>,
        rate: Option<PacketRate>,
    ) -> Self {
        Self {
            spec,
            address,
            policer: Policer::new(rate),
            packet_in_counters: Vec::new(),
            queues_of_workers: Vec::new(),
            spare: Vec::new(),
            moves: 0,
            next_assignment: None,
            returned: channel(),
            io_mode: None,
            device: None,
            problem: None,
            complaint: None,
            shaped: None,
            carrier: None,
            link_resets: 0,
            index: None,
        }
    }

    /// Detaches the device and the queues that no worker has.
    pub(super) fn close(&mut self) -> ClosedPort {
        self.io_mode = None;
        self.index = None;
        self.queues_of_workers.clear();
        self.moves = 0;
        self.next_assignment = None;
        // Queues that workers still return belong to the old device.
        self.returned = channel();
        ClosedPort {
            _queues: std::mem::take(&mut self.spare),
            _device: self.device.take(),
        }
    }

    /// Records the carrier.
    pub(super) fn record_carrier(&mut self, carrier: bool) {
        if self
            .carrier
            .replace(carrier)
            .is_some_and(|was| was != carrier)
        {
            self.link_resets += 1;
        }
    }

    /// Applies the interface settings to the device.
    pub(super) fn apply_settings(&mut self, interface_settings: &InterfaceConfig, now: Instant) {
        self.policer.limit_ingress(interface_settings.ingress);
        self.policer.limit_egress(interface_settings.egress);
        self.complaint = None;
        let (address, mtu) = (interface_settings.address, interface_settings.mtu);
        if let Some(device) = &mut self.device
            && (address.is_some() || mtu.is_some())
            && let Err(error) = device.set_link(address, mtu)
        {
            let what = match (address, mtu) {
                (Some(_), Some(_)) => "mac, mtu_request",
                (Some(_), None) => "mac",
                _ => "mtu_request",
            };
            self.record_complaint(format!("{what}: {error}"));
        }
        let dummy = self.device.as_ref().and_then(|device| device.dummy());
        let configured = dummy.map(|dummy| dummy.configure(&interface_settings.dummy, now));
        if let Some(Err(error)) = configured {
            self.record_complaint(format!("options: {error}"));
        }
        self.shape(interface_settings.shape.as_ref());
    }

    /// Records and logs a setting that could not be applied.
    pub(super) fn record_complaint(&mut self, of: String) {
        tracing::warn!("{}: {of}", self.spec.name);
        self.complaint = Some(match self.complaint.take() {
            Some(before) => format!("{before}; {of}"),
            None => of,
        });
    }

    /// Returns the policer and new packet-in counters, for one more worker.
    pub(super) fn add_policing(&mut self) -> PortPolicing {
        let counters = Arc::<PacketInCounters>::default();
        self.packet_in_counters.push(Arc::clone(&counters));
        PortPolicing {
            policer: Arc::clone(&self.policer),
            counters,
        }
    }

    /// Returns the packet-in counters by name.
    pub(super) fn packet_in_counts(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.packet_in_counters
            .iter()
            .flat_map(|counters| counters.read())
    }
}

impl BridgeRuntime {
    /// Records the connect of a controller.
    pub(super) fn record_connect(&mut self, uri: Option<&Arc<str>>, now: Instant) {
        if let Some(uri) = uri {
            self.contacts.entry(Arc::clone(uri)).or_default().connected = Some(now);
        }
    }

    /// Records the disconnect of a peer, if it is a configured controller.
    pub(super) fn record_disconnect(&mut self, id: ConnectionId, now: Instant) {
        if let Some(contact) = self
            .bridge
            .uri_of(id)
            .and_then(|uri| self.contacts.get_mut(&uri))
        {
            contact.disconnected = Some(now);
        }
    }

    /// Removes a port that is closed from the configuration.
    pub(super) fn remove_port(&mut self, number: PortNo, now: Instant) {
        if let Some(port) = self.ports.remove(&number) {
            let nothing = MonitoringConfig::default();
            let name = &port.spec.name;
            self.bridge.set_monitoring(number, name, &nothing, now);
        }
    }

    /// Applies the monitoring of a port from its interface settings.
    pub(super) fn apply_monitoring(&mut self, number: PortNo, now: Instant) {
        let name = self.ports.get(&number).map(|port| &port.spec.name);
        if let Some((name, settings)) =
            name.and_then(|name| self.interface_settings.get_key_value(name))
        {
            let monitoring = &settings.monitoring;
            self.bridge.set_monitoring(number, name, monitoring, now);
        }
    }

    /// Sets the packet-in rate limits.
    pub(super) fn set_policing(&mut self, policing: Policing) {
        self.policing = policing;
        for port in self.ports.values() {
            port.policer.set(policing.port);
        }
        self.bridge.limit_packet_ins(policing.controller);
    }
}
