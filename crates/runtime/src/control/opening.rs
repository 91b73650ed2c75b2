//! Opening of ports in bulk: system calls run on several threads; the port's registration at its
//! bridge and at the workers runs in order.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::sync::Arc;

use base::PortNo;
use packet::MacAddr;
use ports::af_packet::{AfPacket, RingSize};
use ports::dummy::{DummyPort, DummyType, ReaderTimer};
use ports::replay::Replay;
use ports::tap::{self, Tap};
use ports::vport::VirtualPort;
use ports::xdp::{UmemPools, Xdp};
use ports::{InterfaceName, OpenError, Port, Queue, Status};

use super::datapath_ports::DatapathPorts;
use super::interfaces::PollSchedule;
use super::rxq_assignment::{WorkerQueue, assign_queues};
use super::{Control, bridge_runtime::PortRuntime};
use crate::parallel;
use config::reconcile::{ConfigStep, NumberedPort};
use config::{Affinity, Config, DummyMode, PortKind};
use dataplane::messages::WorkerCommand;
use dataplane::program::{BridgeId, CrossingMode};
use dataplane::slots::PortKey;

/// An open device, with a queue and its assignment for each worker.
pub(super) struct OpenDevice {
    device: Box<dyn Port>,
    queues: Vec<Box<dyn Queue>>,
    queues_of_workers: Vec<WorkerQueue>,
    status: Status,
}

/// A device to open.
struct DeviceRequest {
    spec: NumberedPort,
    address: Option<MacAddr>,
    rx_workers: Vec<usize>,
    workers: NonZeroUsize,
    ring: RingSize,
    /// The timers of the workers that receive from a dummy.
    timers: Vec<Arc<ReaderTimer>>,
}

impl DeviceRequest {
    /// Opens the device.
    fn open(&self, umem_pools: &mut UmemPools) -> Result<OpenDevice, OpenError> {
        self.finish(self.device(umem_pools)?)
    }

    /// Opens a device that [`opens_in_parallel`].
    fn open_unshared(&self) -> Result<OpenDevice, OpenError> {
        self.open(&mut UmemPools::default())
    }

    fn finish(&self, mut device: Box<dyn Port>) -> Result<OpenDevice, OpenError> {
        let assigned = assign_queues(device.as_mut(), &self.rx_workers, self.workers);
        let assigned = assigned.map_err(|error| OpenError::Failed {
            name: self.spec.name.clone(),
            step: "creating its queues",
            source: error,
        })?;
        let (queues, queues_of_workers) = assigned.into_iter().unzip();
        let status = device.status();
        Ok(OpenDevice {
            device,
            queues,
            queues_of_workers,
            status,
        })
    }

    /// Opens the device with a queue for each worker that receives its frames.
    fn device(&self, umem_pools: &mut UmemPools) -> Result<Box<dyn Port>, OpenError> {
        let queues = NonZeroUsize::new(self.rx_workers.len()).unwrap_or(NonZeroUsize::MIN);
        let address = self.address;
        let name = || -> InterfaceName {
            let name = self.spec.name.parse();
            name.expect("a checked configuration has only names of interfaces")
        };
        Ok(match &self.spec.kind {
            PortKind::Tap => Box::new(Tap::create(&name(), tap::TapOptions { address, queues })?),
            PortKind::Interface => Box::new(AfPacket::open_with(&name(), queues, self.ring)?),
            PortKind::Xdp(options) => {
                Box::new(Xdp::open(&name(), &self.rx_workers, *options, umem_pools)?)
            }
            PortKind::Dpdk(arguments) => dpdk::open(arguments, queues)?,
            PortKind::Patch(_) | PortKind::Tunnel(_) => {
                let mut port = VirtualPort::new(&self.spec.name, queues);
                // Until it turns out to have no peer.
                port.set_carrier(true);
                Box::new(port)
            }
            PortKind::Dummy(_) => {
                let opened = DummyPort::open(&self.spec.name, address, queues, &self.timers);
                let failed = |source| OpenError::Failed {
                    name: self.spec.name.clone(),
                    step: "creating a dummy",
                    source,
                };
                Box::new(opened.map_err(failed)?)
            }
            PortKind::Replay(file) => Box::new(Replay::open(&name(), file.as_deref(), queues)?),
        })
    }
}

/// The devices of the ports: resources for those to open, and the state of the open ones.
pub(super) struct Devices {
    umem_pools: UmemPools,
    /// Devices that were opened before their step, or the errors, by interface name.
    preopened: BTreeMap<String, Result<OpenDevice, OpenError>>,
    /// The size of the receive rings of ports that are opened.
    rings: RingSize,
    /// Ports whose queues are moving between workers.
    pub(super) moving: BTreeSet<PortKey>,
    /// The times of status checks of TAP interfaces in other namespaces.
    pub(super) polls: PollSchedule,
    /// The ports' numbers in the datapath.
    pub(super) datapath_ports: DatapathPorts,
}

impl Devices {
    /// Returns no devices; `dummies` decides on the ports' numbers in the datapath.
    pub(super) fn new(dummies: DummyMode) -> Self {
        Self {
            umem_pools: UmemPools::default(),
            preopened: BTreeMap::new(),
            rings: RingSize::default(),
            moving: BTreeSet::new(),
            polls: PollSchedule::default(),
            datapath_ports: DatapathPorts::new(dummies.is_enabled()),
        }
    }

    /// Reserves memory for the AF_XDP ports of `config`.
    pub(super) fn reserve_for(&mut self, config: &Config) {
        self.umem_pools.reserve_for(xdp_ports(config));
    }

    /// Returns the device of the request, which may be open already.
    fn open(&mut self, request: &DeviceRequest) -> Result<OpenDevice, OpenError> {
        let preopened = self.preopened.remove(&request.spec.name);
        preopened.unwrap_or_else(|| request.open(&mut self.umem_pools))
    }
}

impl Control {
    /// Opens the devices of all ports that `steps` add, as far as they can be opened in parallel.
    /// Each device then waits for its step.
    pub(super) fn open_in_parallel(&mut self, steps: &[ConfigStep], config: &Config) {
        self.devices.rings = self.ring_size(config);
        let affinity = |bridge: &str| {
            let bridges = &mut config.bridges.iter();
            let bridge = bridges.find(|of| of.name == bridge);
            bridge.map_or(&[][..], |bridge| &bridge.affinity)
        };
        let request = |step: &ConfigStep| match step {
            ConfigStep::AddPort(bridge, port) if opens_in_parallel(&port.kind) => {
                Some(self.request(port, None, affinity(bridge)))
            }
            _ => None,
        };
        let requests: Vec<_> = steps.iter().filter_map(request).collect();
        // A single device is opened at its step.
        if requests.len() > 1 {
            let opened = parallel::map(requests, |request| {
                let opened = request.open_unshared();
                (request.spec.name, opened)
            });
            self.devices.preopened = opened.into_iter().collect();
        }
    }

    fn request(
        &self,
        spec: &NumberedPort,
        address: Option<MacAddr>,
        affinity: &[Affinity],
    ) -> DeviceRequest {
        let workers = NonZeroUsize::new(self.tools.workers.len()).unwrap_or(NonZeroUsize::MIN);
        // A PMD thread can be any worker, so all of them have a queue.
        let rx_workers: Vec<_> = match spec.kind {
            PortKind::Dummy(DummyType::Pmd) => (0..workers.get()).collect(),
            _ => self.rx_workers(affinity, &spec.name),
        };
        let timer = |worker: &usize| Arc::clone(&self.tools.workers[*worker].timer);
        let timers = match spec.kind {
            PortKind::Dummy(_) => rx_workers.iter().map(timer).collect(),
            _ => Vec::new(),
        };
        DeviceRequest {
            rx_workers,
            timers,
            spec: spec.clone(),
            address,
            workers,
            ring: self.devices.rings,
        }
    }

    /// Returns the size of receive rings for the number of ports in `config`.
    fn ring_size(&self, config: &Config) -> RingSize {
        let ports = config.bridges.iter().flat_map(|bridge| &bridge.ports);
        let ports = ports.filter(|port| port.kind == PortKind::Interface);
        RingSize::for_rings(ports.count() * self.tools.workers.len())
    }

    /// Opens the device of a configured port, unless it is open already, and hands its queues to
    /// the workers.
    pub(super) fn open_port(&mut self, id: BridgeId, number: PortNo) -> Result<(), OpenError> {
        let site = self.sites.get(&id);
        let port = site.and_then(|site| Some((site, site.ports.get(&number)?)));
        let Some((site, port)) = port else {
            return Ok(());
        };
        let request = self.request(&port.spec, port.address, &site.affinity);
        let request = self.with_dummy_address(request);
        let opened = self.devices.open(&request)?;
        self.attach_port(
            PortKey {
                bridge: id,
                port: number,
            },
            opened,
        );
        Ok(())
    }

    /// Gives a dummy the next address, as in Open vSwitch, unless it has one.
    fn with_dummy_address(&mut self, mut request: DeviceRequest) -> DeviceRequest {
        if matches!(request.spec.kind, PortKind::Dummy(_)) {
            let next = self.dummies.next_address();
            request.address = request.address.or(Some(next));
        }
        request
    }

    /// Registers an open port at its bridge, and hands its queues to the workers.
    fn attach_port(&mut self, key: PortKey, opened: OpenDevice) {
        let now = self.now();
        let Some(site) = self.sites.get_mut(&key.bridge) else {
            return;
        };
        let Some(port) = site.ports.get_mut(&key.port) else {
            return;
        };
        let OpenDevice {
            device,
            queues,
            queues_of_workers,
            status,
        } = opened;
        let counters = queues_of_workers
            .iter()
            .map(|worker_queue| Arc::clone(&worker_queue.counters));
        let counters = counters.collect();
        log_status(&port.spec.kind, &status, device.as_ref());
        let dummy = device.dummy();
        if let Some(dummy) = dummy.clone() {
            self.dummies.insert(key, dummy);
            self.publications.set_crossing(CrossingMode::Report);
        }
        record_open(port, device, queues_of_workers, &status);
        if let Some(interface_settings) = site.interface_settings.get(&port.spec.name) {
            port.apply_settings(interface_settings, now);
        }
        self.tools.facts_changed.notify_one();
        let mut effects = Vec::new();
        site.bridge
            .handle_port_added(key.port, &status, counters, now, &mut effects);
        if let Some(dummy) = dummy {
            let custom = Arc::new(move || dummy.counters());
            site.bridge.set_dummy(key.port, custom, now);
        }
        if matches!(port.spec.kind, PortKind::Patch(_) | PortKind::Tunnel(_)) {
            site.bridge.set_virtual(key.port);
        }
        for (worker, queue) in self.tools.workers.iter_mut().zip(queues) {
            worker
                .handle
                .send_reliably(WorkerCommand::AddPort(key, queue, port.add_policing()));
        }
        site.update_queues(key.port, now);
        self.apply_effects(key.bridge, effects, &mut None);
    }
}

fn record_open(
    port: &mut PortRuntime,
    device: Box<dyn Port>,
    queues_of_workers: Vec<WorkerQueue>,
    status: &Status,
) {
    // The index of a dummy is that of no interface of the system.
    let index = status.index.filter(|_| device.dummy().is_none());
    port.index = index.map(|index| index.0);
    port.io_mode = status.io_mode.clone();
    port.device = Some(device);
    port.problem = None;
    port.queues_of_workers = queues_of_workers;
    port.packet_in_counters.clear();
    port.record_carrier(status.carrier);
}

/// Returns the number of `AF_XDP` ports of all bridges.
fn xdp_ports(config: &Config) -> usize {
    let ports = config.bridges.iter().flat_map(|bridge| &bridge.ports);
    ports
        .filter(|port| matches!(port.kind, PortKind::Xdp(_)))
        .count()
}

/// Returns true if ports of this kind share no resource with other ports and open on any thread.
const fn opens_in_parallel(kind: &PortKind) -> bool {
    match kind {
        PortKind::Interface | PortKind::Tap => true,
        PortKind::Xdp(_) | PortKind::Dpdk(_) => false,
        PortKind::Patch(_) | PortKind::Tunnel(_) | PortKind::Replay(_) | PortKind::Dummy(_) => {
            false
        }
    }
}

/// Logs the I/O mode of a device, its advice about settings that cause drops, and whether its
/// interface is down: the switch leaves the state of the host's interfaces to the host.
fn log_status(kind: &PortKind, status: &Status, device: &dyn Port) {
    let name = &status.name;
    if !status.up && matches!(kind, PortKind::Interface | PortKind::Xdp(_)) {
        tracing::warn!("{name} is down and forwards no frames: ip link set {name} up");
    }
    if let Some(io_mode) = &status.io_mode {
        tracing::info!("{}: {io_mode}", status.name);
    }
    for advice in device.advice() {
        tracing::warn!("{advice}");
    }
}
