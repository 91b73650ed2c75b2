//! Carrying out steps towards a configuration.

use std::collections::BTreeMap;
use std::net::TcpListener as StdTcpListener;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

use base::{DatapathId, PortNo};
use openflow::{Options, Versions};
use packet::MacAddr;
use ports::af_packet::AfPacket;
use ports::replay::Replay;
use ports::tap::{self, Tap};
use ports::xdp::{Memories, Xdp};
use ports::{InterfaceName, OpenError, Port, Status};
use sys::interface::Interfaces;
use tokio::net::{TcpListener, UnixListener};

use super::site::{ListenSite, PortSite, Site};
use super::{Control, seats};
use crate::config::{BridgeConfig, Config, Listen, Policing, PortKind, Target};
use crate::core::bridge::{Bridge, Identity};
use crate::core::connection::Kind;
use crate::core::identity::{bridge_address, datapath_id};
use crate::dataplane::messages::Command;
use crate::dataplane::program::BridgeId;
use crate::dataplane::slots::PortKey;
use crate::error::SwitchError;
use crate::reconcile::{NumberedPort, Step, reconcile};
use crate::shell::connection::Purpose;
use crate::shell::peers::{Listener, connect, listen};
use crate::shell::rundir::SocketFile;
use crate::shell::unixctl;

/// Where a machine says who it is (machine-id(5)).
const MACHINE_ID: &str = "/etc/machine-id";

impl Control {
    /// Goes over to `config`.
    ///
    /// # Errors
    /// A step cannot be done; those before it are.
    pub(crate) fn configure(&mut self, config: Config) -> Result<(), SwitchError> {
        self.memories.make_for(xdp_ports(&config));
        for step in reconcile(&self.config, &config) {
            tracing::info!("{step}");
            self.take(step)?;
        }
        self.config = config;
        Ok(())
    }

    /// Reads the configuration file again and goes over to it, as far as it can.
    pub(super) fn reload(&mut self) {
        let Some(file) = self.tools.file.clone() else {
            tracing::warn!("there is no --config file to read again");
            return;
        };
        let config = match Config::from_file(&file) {
            Ok(config) => config,
            Err(error) => return tracing::error!("not taken over: {error}"),
        };
        self.memories.make_for(xdp_ports(&config));
        for step in reconcile(&self.config, &config) {
            tracing::info!("{step}");
            if let Err(error) = self.take(step) {
                tracing::error!("{error}");
            }
        }
        self.config = config;
    }

    fn take(&mut self, step: Step) -> Result<(), SwitchError> {
        match step {
            Step::RemoveBridge(bridge) => self.remove_bridge(&bridge),
            Step::AddBridge(bridge) => return self.add_bridge(&bridge),
            Step::RemovePort(bridge, port) => self.on_site(&bridge, |control, id| {
                control.close_port(id, port.number);
                control.forget_port(id, port.number);
            }),
            Step::AddPort(bridge, port) => return self.add_port(&bridge, port, None),
            Step::RemoveController(bridge, target) => self.remove_controller(&bridge, &target),
            Step::AddController(bridge, target) => self.add_controller(&bridge, target),
            Step::RemoveListener(bridge, listen) => {
                if let Some((_, site)) = self.site_named(&bridge) {
                    site.listeners.remove(&listen);
                }
            }
            Step::AddListener(bridge, listen) => return self.add_listener(&bridge, listen),
            Step::Assign(bridge, affinity) => self.on_site(&bridge, |control, id| {
                if let Some(site) = control.sites.get_mut(&id) {
                    site.affinity = affinity;
                }
                control.assign_all(id);
            }),
            Step::Police(bridge, policing) => {
                if let Some((_, site)) = self.site_named(&bridge) {
                    site.police(policing);
                }
            }
        }
        Ok(())
    }

    fn on_site(&mut self, name: &str, action: impl FnOnce(&mut Self, BridgeId)) {
        if let Some((id, _)) = self.site_named(name) {
            action(self, id);
        }
    }

    fn add_bridge(&mut self, config: &BridgeConfig) -> Result<(), SwitchError> {
        let socket = |suffix| self.tools.rundir.file(&format!("{}.{suffix}", config.name));
        let options = speaking(config.protocols);
        let management = self.listen_unix(&config.name, &socket("mgmt"), options)?;
        let control = self.answer_at(&socket("ctl"))?;
        let address = address_of(config);
        let identity = Identity {
            name: config.name.clone(),
            datapath_id: config.datapath_id.unwrap_or_else(|| datapath_id(address)),
            fail_mode: config.fail_mode,
            started: self.tools.clock.started(),
        };
        let DatapathId(id) = identity.datapath_id;
        tracing::info!("{}: datapath id {id:016x}, address {address}", config.name);
        let writers = self.tools.workers.len() + 1;
        let has_controllers = !config.controllers.is_empty();
        let mut site = Site {
            bridge: Bridge::new(identity, has_controllers, writers, self.now()),
            protocols: config.protocols,
            policing: Policing::default(),
            affinity: config.affinity.clone(),
            auxiliary: config.auxiliary,
            ports: BTreeMap::new(),
            controllers: BTreeMap::new(),
            listeners: BTreeMap::new(),
            _management: management,
            _control: control,
        };
        site.police(config.policing());
        for limit in &config.flow_limits {
            site.bridge.limit_flows(limit.table, limit.rules);
        }
        self.sites.insert(BridgeId(self.next_bridge), site);
        self.next_bridge += 1;
        let local = NumberedPort {
            number: PortNo::LOCAL,
            name: config.name.clone(),
            kind: PortKind::Tap,
        };
        self.add_port(&config.name, local, Some(address))
    }

    fn remove_bridge(&mut self, name: &str) {
        let Some((id, site)) = self.site_named(name) else {
            return;
        };
        let ports: Vec<_> = site.ports.keys().copied().collect();
        for port in ports {
            self.close_port(id, port);
        }
        self.peers.retain(|_, peer| peer.bridge != id);
        self.sites.remove(&id);
    }

    fn add_port(
        &mut self,
        bridge: &str,
        wanted: NumberedPort,
        address: Option<MacAddr>,
    ) -> Result<(), SwitchError> {
        let Some((id, site)) = self.site_named(bridge) else {
            return Ok(());
        };
        let (number, name) = (wanted.number, wanted.name.clone());
        let port = PortSite::new(wanted, address, site.policing.port);
        site.ports.insert(number, port);
        self.open_port(id, number)
            .map_err(|error| SwitchError::Port {
                bridge: bridge.to_owned(),
                port: name,
                problem: error.to_string(),
            })
    }

    /// Opens the device of a port that is wanted, and hands its queues out.
    pub(super) fn open_port(&mut self, id: BridgeId, number: PortNo) -> Result<(), OpenError> {
        let now = self.now();
        let workers = NonZeroUsize::new(self.tools.workers.len()).unwrap_or(NonZeroUsize::MIN);
        let site = self.sites.get(&id);
        let Some(port) = site.and_then(|site| site.ports.get(&number)) else {
            return Ok(());
        };
        let takers = self.takers(id, &port.wanted.name);
        let Some(site) = self.sites.get_mut(&id) else {
            return Ok(());
        };
        let Some(port) = site.ports.get_mut(&number) else {
            return Ok(());
        };
        let mut device = open_device(&port.wanted, port.address, &takers, &mut self.memories)?;
        let dealt = seats::deal(device.as_mut(), &takers, workers);
        let dealt = dealt.map_err(|error| OpenError::Failed {
            name: port.wanted.name.clone(),
            step: "making its queues",
            source: error,
        })?;
        let (queues, seats): (Vec<_>, Vec<_>) = dealt.into_iter().unzip();
        let counters = seats
            .iter()
            .map(|seat| Arc::clone(&seat.counters))
            .collect();
        let status = device.status();
        report(&status, device.as_ref());
        port.index = status.index.map(|index| index.0);
        port.way = status.way.clone();
        port.device = Some(device);
        port.seats = seats;
        let mut effects = Vec::new();
        site.bridge
            .handle_port_added(number, &status, counters, now, &mut effects);
        let key = PortKey {
            bridge: id,
            port: number,
        };
        port.gates.clear();
        for (worker, queue) in self.tools.workers.iter_mut().zip(queues) {
            worker
                .tether
                .tell_surely(Command::AddPort(key, queue, port.gate()));
        }
        self.carry_out(id, effects, &mut None);
        Ok(())
    }

    /// Closes the device of a port, which stays wanted.
    pub(super) fn close_port(&mut self, id: BridgeId, number: PortNo) {
        let Some(site) = self.sites.get_mut(&id) else {
            return;
        };
        let mut effects = Vec::new();
        site.bridge.handle_port_removed(number, &mut effects);
        if let Some(port) = site.ports.get_mut(&number) {
            port.close();
        }
        let key = PortKey {
            bridge: id,
            port: number,
        };
        for worker in &mut self.tools.workers {
            worker.tether.tell_surely(Command::RemovePort(key));
        }
        self.carry_out(id, effects, &mut None);
    }

    fn forget_port(&mut self, id: BridgeId, number: PortNo) {
        if let Some(site) = self.sites.get_mut(&id) {
            site.ports.remove(&number);
        }
    }

    fn add_controller(&mut self, bridge: &str, target: Target) {
        let (now, exchange) = (self.now(), self.tools.exchange.clone());
        let runtime = self.tools.runtime.clone();
        let Some((_, site)) = self.site_named(bridge) else {
            return;
        };
        let purpose = Purpose {
            bridge: Arc::from(bridge),
            kind: Kind::Primary,
            uri: Some(target.to_string().into()),
            options: speaking(site.protocols),
        };
        let _in_runtime = runtime.enter();
        let auxiliaries = site.auxiliary.count();
        let task = connect(target.clone(), auxiliaries, purpose, exchange);
        site.bridge.handle_controllers(true, now);
        site.bridge.handle_controller_added(&target.to_string());
        site.controllers.insert(target, task);
    }

    fn remove_controller(&mut self, bridge: &str, target: &Target) {
        let now = self.now();
        if let Some((_, site)) = self.site_named(bridge) {
            site.controllers.remove(target);
            site.bridge.handle_controller_removed(&target.to_string());
            site.bridge
                .handle_controllers(!site.controllers.is_empty(), now);
        }
    }

    fn add_listener(&mut self, bridge: &str, wanted: Listen) -> Result<(), SwitchError> {
        let Some((_, site)) = self.site_named(bridge) else {
            return Ok(());
        };
        let options = speaking(site.protocols);
        let listener = match &wanted {
            Listen::Unix(path) => self.listen_unix(bridge, path, options)?,
            Listen::Tcp(address) => {
                let socket = StdTcpListener::bind(address)
                    .and_then(|socket| socket.set_nonblocking(true).map(|()| socket));
                let socket = socket.map_err(|error| SwitchError::Tcp {
                    address: *address,
                    error,
                })?;
                let _in_runtime = self.tools.runtime.enter();
                let socket = TcpListener::from_std(socket)
                    .map_err(SwitchError::system("listening by TCP"))?;
                self.wait_at(bridge, Listener::Tcp(socket), None, options)
            }
        };
        if let Some((_, site)) = self.site_named(bridge) {
            site.listeners.insert(wanted, listener);
        }
        Ok(())
    }

    fn listen_unix(
        &self,
        bridge: &str,
        path: &Path,
        options: Options,
    ) -> Result<ListenSite, SwitchError> {
        let (socket, file) = SocketFile::bind(path)?;
        let _in_runtime = self.tools.runtime.enter();
        let socket = UnixListener::from_std(socket)
            .map_err(SwitchError::system("listening at a Unix socket"))?;
        Ok(self.wait_at(bridge, Listener::Unix(socket), Some(file), options))
    }

    /// Answers questions at a control socket.
    fn answer_at(&self, path: &Path) -> Result<ListenSite, SwitchError> {
        let (socket, file) = SocketFile::bind(path)?;
        let _in_runtime = self.tools.runtime.enter();
        let socket = UnixListener::from_std(socket)
            .map_err(SwitchError::system("listening at a Unix socket"))?;
        Ok(ListenSite {
            _task: unixctl::serve(socket, self.tools.inbox.clone()),
            _file: Some(file),
        })
    }

    /// Waits for peers at a socket. To be called within the runtime.
    fn wait_at(
        &self,
        bridge: &str,
        listener: Listener,
        file: Option<SocketFile>,
        options: Options,
    ) -> ListenSite {
        let purpose = Purpose {
            bridge: Arc::from(bridge),
            kind: Kind::Service,
            uri: None,
            options,
        };
        ListenSite {
            _task: listen(listener, purpose, self.tools.exchange.clone()),
            _file: file,
        }
    }
}

/// Tells by which way a device was opened, and what of it costs frames.
fn report(status: &Status, device: &dyn Port) {
    if let Some(way) = &status.way {
        tracing::info!("{}: {way}", status.name);
    }
    for advice in device.advice() {
        tracing::warn!("{advice}");
    }
}

/// How a bridge speaks that speaks these versions.
fn speaking(versions: Versions) -> Options {
    Options {
        versions,
        ..Options::default()
    }
}

/// The bridge's Ethernet address, from those of its ports.
fn address_of(config: &BridgeConfig) -> MacAddr {
    let machine = std::fs::read_to_string(MACHINE_ID).unwrap_or_default();
    let interfaces = Interfaces::here().ok();
    let address = |name: &str| {
        let name = name.parse::<InterfaceName>().ok()?;
        let hardware = interfaces.as_ref()?.hardware(&name).ok()?;
        Some(MacAddr(hardware.address))
    };
    let existing = config.ports.iter().filter(|port| port.kind.is_found());
    let addresses = existing.filter_map(|port| address(&port.name));
    bridge_address(addresses, machine.trim(), &config.name)
}

/// How many ports of all bridges are to be opened by `AF_XDP`.
fn xdp_ports(config: &Config) -> usize {
    let ports = config.bridges.iter().flat_map(|bridge| &bridge.ports);
    ports
        .filter(|port| matches!(port.kind, PortKind::Xdp(_)))
        .count()
}

/// Opens a port with a queue for each of the workers that take its frames.
fn open_device(
    wanted: &NumberedPort,
    address: Option<MacAddr>,
    takers: &[usize],
    memories: &mut Memories,
) -> Result<Box<dyn Port>, OpenError> {
    let queues = NonZeroUsize::new(takers.len()).unwrap_or(NonZeroUsize::MIN);
    let name = || -> InterfaceName {
        let name = wanted.name.parse();
        name.expect("a checked configuration has only names of interfaces")
    };
    Ok(match &wanted.kind {
        PortKind::Tap => Box::new(Tap::create(&name(), tap::Options { address, queues })?),
        PortKind::Interface => Box::new(AfPacket::open(&name(), queues)?),
        PortKind::Xdp(options) => Box::new(Xdp::open(&name(), takers, *options, memories)?),
        PortKind::Dpdk(arguments) => dpdk::open(arguments, queues)?,
        PortKind::Replay(file) => Box::new(Replay::open(&name(), file.as_deref(), queues)?),
    })
}
