//! Carrying out steps towards a configuration.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::sync::Arc;

use base::sync::mpsc::channel;
use base::{DatapathId, PortNo};
use packet::MacAddr;
use ports::af_packet::AfPacket;
use ports::dummy::Dummy;
use ports::inner::Inner;
use ports::replay::Replay;
use ports::tap::{self, Tap};
use ports::xdp::{Memories, Xdp};
use ports::{InterfaceName, OpenError, Port, Status};
use sys::interface::Interfaces;

use super::site::{Closed, PortSite, Site};
use super::{Control, seats};
use crate::config::{BridgeAddress, BridgeConfig, Config, Policing, PortKind};
use crate::core::bridge::{Bridge, Identity};
use crate::core::identity::{bridge_address, datapath_id};
use crate::dataplane::messages::Command;
use crate::dataplane::program::BridgeId;
use crate::dataplane::slots::PortKey;
use crate::error::SwitchError;
use crate::reconcile::{NumberedPort, Step, reconcile};
use crate::shell::connection::Speaking;

/// Where a machine says who it is (machine-id(5)).
const MACHINE_ID: &str = "/etc/machine-id";

impl Control {
    /// Goes over to `config`.
    ///
    /// # Errors
    /// A step cannot be done; those before it are.
    pub(crate) fn configure(&mut self, config: Config) -> Result<(), SwitchError> {
        self.memories.make_for(xdp_ports(&config));
        self.tools.exchange.secrets.set(config.tls.clone());
        for step in reconcile(&self.config, &config) {
            tracing::info!("{step}");
            self.take(step)?;
        }
        self.settle_controllers();
        self.pair_up();
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
        self.go_over(config);
    }

    /// Goes over to `config` as far as that can be done. What could not be done is known
    /// to [`Control::facts`], and a bridge that could not be made is tried again.
    pub(super) fn go_over(&mut self, config: Config) {
        self.memories.make_for(xdp_ports(&config));
        let tls = config.tls.clone().or_else(|| self.tools.tls.clone());
        self.tools.exchange.secrets.set(tls);
        for step in reconcile(&self.config, &config) {
            tracing::info!("{step}");
            let bridge = match &step {
                Step::AddBridge(bridge) => Some(bridge.name.clone()),
                _ => None,
            };
            if let Err(error) = self.take(step) {
                tracing::error!("{error}");
                self.failed
                    .extend(bridge.map(|name| (name, error.to_string())));
            }
        }
        self.settle_controllers();
        if self.awaits_flows && !config.awaits_flows {
            self.end_wait();
        }
        self.pair_up();
        self.config = config;
        let names: BTreeSet<_> = self.sites.values().map(|site| site.bridge.name()).collect();
        let wanted = &mut self.config.bridges;
        self.failed.retain(|name, _| {
            !names.contains(name.as_str()) && wanted.iter().any(|bridge| bridge.name == *name)
        });
        wanted.retain(|bridge| names.contains(bridge.name.as_str()));
        self.tools.news.notify_one();
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
            Step::RemoveController(bridge, controller) => {
                self.remove_controller(&bridge, &controller);
            }
            Step::AddController(bridge, controller) => self.add_controller(&bridge, controller),
            Step::RemoveListener(bridge, listen) => self.remove_listener(&bridge, &listen),
            Step::AddListener(bridge, listen) => return self.add_listener(&bridge, listen),
            Step::SetFailMode(bridge, mode) => {
                let now = self.now();
                if let Some((_, site)) = self.site_named(&bridge) {
                    site.bridge.set_fail_mode(mode, now);
                }
            }
            Step::Identify(bridge, id) => {
                if let Some((_, site)) = self.site_named(&bridge) {
                    let id = id.unwrap_or_else(|| datapath_id(site.address));
                    site.bridge.set_datapath_id(id);
                }
                self.meet_anew(&bridge);
            }
            Step::Speak(bridge, versions) => {
                if let Some((_, site)) = self.site_named(&bridge) {
                    site.speaking.set_versions(versions);
                }
                self.meet_anew(&bridge);
            }
            Step::Assign(bridge, affinity) => self.on_site(&bridge, |control, id| {
                if let Some(site) = control.sites.get_mut(&id) {
                    site.affinity = affinity;
                }
                control.assign_all(id);
            }),
            Step::Switch(bridge, switching) => {
                if let Some((_, site)) = self.site_named(&bridge) {
                    site.bridge.set_switching(&switching);
                }
            }
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
        let socket = |suffix| self.tools.rundir.file(format!("{}.{suffix}", config.name));
        let speaking = Speaking::versions(config.protocols);
        let management = self.listen_unix(&config.name, &socket("mgmt"), &speaking)?;
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
            address,
            speaking,
            policing: Policing::default(),
            affinity: config.affinity.clone(),
            auxiliary: config.auxiliary,
            ports: BTreeMap::new(),
            controllers: BTreeMap::new(),
            contacts: BTreeMap::new(),
            listeners: BTreeMap::new(),
            not_listening: BTreeMap::new(),
            _management: management,
            _control: control,
        };
        site.police(config.policing());
        site.bridge.set_switching(&config.switching);
        for limit in &config.flow_limits {
            site.bridge.limit_flows(limit.table, limit.rules);
        }
        self.sites.insert(BridgeId(self.next_bridge), site);
        self.next_bridge += 1;
        let local = NumberedPort {
            number: PortNo::LOCAL,
            name: config.name.clone(),
            kind: match config.is_dummy {
                true => PortKind::Dummy(Arc::default()),
                false => PortKind::Tap,
            },
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
        self.open_port(id, number).map_err(|error| {
            self.note_problem(id, number, error.to_string());
            SwitchError::Port {
                bridge: bridge.to_owned(),
                port: name,
                problem: error.to_string(),
            }
        })
    }

    /// Takes note of why a port is not open.
    pub(super) fn note_problem(&mut self, id: BridgeId, number: PortNo, problem: String) {
        let site = self.sites.get_mut(&id);
        let port = site.and_then(|site| site.ports.get_mut(&number));
        // One that is tried every second has the same to say each time.
        if let Some(port) = port.filter(|port| port.problem.as_ref() != Some(&problem)) {
            port.problem = Some(problem);
            self.tools.news.notify_one();
        }
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
        port.problem = None;
        self.tools.news.notify_one();
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
        let (mut is_found, mut closed) = (false, Closed::default());
        if let Some(port) = site.ports.get_mut(&number) {
            is_found = port.wanted.kind == PortKind::Interface;
            closed = port.close();
        }
        let key = PortKey {
            bridge: id,
            port: number,
        };
        let (back, returned) = channel();
        for worker in &mut self.tools.workers {
            let command = Command::RemovePort(key, back.clone());
            worker.tether.tell_surely(command);
        }
        drop(back);
        while let Ok(queue) = returned.recv() {
            closed.queues.push(queue);
        }
        if is_found {
            self.tools.reaper.free(Box::new(closed));
        } else {
            // What is of the switch's own making, or has one owner, may be made anew by the
            // next step.
            drop(closed);
        }
        self.carry_out(id, effects, &mut None);
    }

    fn forget_port(&mut self, id: BridgeId, number: PortNo) {
        if let Some(site) = self.sites.get_mut(&id) {
            site.ports.remove(&number);
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

/// The bridge's Ethernet address.
fn address_of(config: &BridgeConfig) -> MacAddr {
    let machine = std::fs::read_to_string(MACHINE_ID).unwrap_or_default();
    match config.address {
        BridgeAddress::Given(address) => return address,
        BridgeAddress::Name => return bridge_address([], machine.trim(), &config.name),
        BridgeAddress::Ports => {}
    }
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
        PortKind::Dummy(files) => {
            let opened = Dummy::open(&wanted.name, address, files, queues);
            let failed = |source| OpenError::Failed {
                name: wanted.name.clone(),
                step: "making a dummy",
                source,
            };
            Box::new(opened.map_err(failed)?)
        }
        PortKind::Patch(_) => Box::new(Inner::new(&wanted.name, queues)),
        PortKind::Replay(file) => Box::new(Replay::open(&name(), file.as_deref(), queues)?),
    })
}
