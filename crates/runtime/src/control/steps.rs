//! Execution of the steps between two configurations.

use std::collections::BTreeMap;

use base::{DatapathId, PortNo};
use packet::MacAddr;
use ports::dummy::DummyType;
use ports::{InterfaceName, OpenError};
use sys::interface::Interfaces;

use super::Control;
use super::bridge_runtime::{BridgeRuntime, PortRuntime};
use super::interfaces::open_problem;
use crate::error::SwitchError;
use crate::purpose::ChannelSettings;
use config::reconcile::{ConfigStep, NumberedPort, reconcile};
use config::{
    Affinity, BridgeAddress, BridgeConfig, Config, ControllerOptions, InterfaceConfig, Policing,
    PortKind, SpanningTreeConfig,
};
use dataplane::program::BridgeId;
use switch::bridge::{Bridge, Identity};
use switch::identity::{bridge_address, datapath_id};

/// The file with the machine's identifier (machine-id(5)).
const MACHINE_ID: &str = "/etc/machine-id";

/// The OpenFlow 1.0 number of the local port, which log lines have.
pub(super) const LOCAL_V10: u32 = 0xfffe;

impl Control {
    /// Applies `config`.
    ///
    /// # Errors
    /// A step failed; those before it remain applied.
    pub(crate) fn configure(&mut self, config: Config) -> Result<(), SwitchError> {
        self.tools.exchange.secrets.set(config.tls.clone());
        for step in self.prepare(&config) {
            self.apply_step(step)?;
        }
        self.update_controllers();
        self.set_bundle_timeouts(&config);
        self.configure_trackers(&config);
        self.connect_patches();
        self.update_pmds(&config);
        self.configuration.set(config);
        Ok(())
    }

    /// Reloads the configuration file and applies it as far as possible.
    pub(super) fn reload(&mut self) {
        let Some(file) = self.tools.file.clone() else {
            tracing::warn!("cannot reload: there is no --config file");
            return;
        };
        let config = match Config::from_file(&file) {
            Ok(config) => config,
            Err(error) => return tracing::error!("configuration not applied: {error}"),
        };
        self.apply_config(config);
    }

    /// Applies `config` as far as possible. [`Control::facts`] reports the failures; a bridge that
    /// could not be created is retried at the next configuration.
    pub(super) fn apply_config(&mut self, config: Config) {
        let tls = config.tls.clone().or_else(|| self.tools.tls.clone());
        self.tools.exchange.secrets.set(tls);
        for step in self.prepare(&config) {
            let bridge = match &step {
                ConfigStep::AddBridge(bridge) => Some(bridge.name.clone()),
                _ => None,
            };
            if let Err(error) = self.apply_step(step) {
                log_failure(&error);
                if let Some(bridge) = bridge {
                    self.configuration.record_failure(bridge, error.to_string());
                }
            }
        }
        self.update_controllers();
        self.set_bundle_timeouts(&config);
        self.configure_trackers(&config);
        self.restore_checkpoint(config.flow_restore_wait);
        if self.configuration.awaits_flows() && !config.flow_restore_wait {
            self.end_flow_restore();
        }
        self.connect_patches();
        self.follow_port_mtus();
        self.update_pmds(&config);
        let names = self.sites.values().map(|site| site.bridge.name());
        self.configuration.set_existing(config, &names.collect());
        self.reopen_deleted_ports();
        // Ports of earlier transactions have the lower numbers.
        self.datapath_ports();
        self.tools.facts_changed.notify_one();
    }

    fn set_bundle_timeouts(&mut self, config: &Config) {
        for site in self.sites.values_mut() {
            site.bridge.set_bundle_timeout(config.bundle_idle_timeout);
        }
    }

    /// Returns the steps to `config`. Ports and bridges to remove are already removed, and devices
    /// of new ports are open.
    fn prepare(&mut self, config: &Config) -> Vec<ConfigStep> {
        self.devices.reserve_for(config);
        let steps = reconcile(self.configuration.config(), config);
        self.counters.reconfigured += u64::from(!steps.is_empty());
        self.apply_removals(&steps);
        self.open_in_parallel(&steps, config);
        steps
    }

    fn apply_step(&mut self, step: ConfigStep) -> Result<(), SwitchError> {
        log_step(&step);
        match step {
            // Done in bulk by `prepare`.
            ConfigStep::RemoveBridge(_) | ConfigStep::RemovePort(..) => {}
            ConfigStep::AddBridge(bridge) => return self.add_bridge(&bridge),
            ConfigStep::AddPort(bridge, port) => return self.add_port(&bridge, port, None),
            ConfigStep::SetPatchPeer(bridge, port) => self.set_patch_peer(&bridge, port),
            ConfigStep::RemoveController(bridge, controller) => {
                self.remove_controller(&bridge, &controller);
            }
            ConfigStep::AddController(bridge, controller) => {
                self.add_controller(&bridge, controller)
            }
            ConfigStep::SetControllerTiming(bridge, to) => self.set_controller_timing(&bridge, to),
            ConfigStep::RemoveListener(bridge, listen) => self.remove_listener(&bridge, &listen),
            ConfigStep::AddListener(bridge, listen) => return self.add_listener(&bridge, listen),
            ConfigStep::SetFailMode(bridge, mode) => {
                let now = self.now();
                self.with_site(&bridge, |site| site.bridge.set_fail_mode(mode, now));
            }
            ConfigStep::SetDatapathId(bridge, id) => {
                self.with_site(&bridge, |site| {
                    let id = id.unwrap_or_else(|| datapath_id(site.address));
                    site.bridge.set_datapath_id(id);
                });
                self.reconnect_controllers(&bridge);
            }
            ConfigStep::SetProtocols(bridge, versions) => {
                self.with_site(&bridge, |site| site.channel_settings.set_versions(versions));
                self.reconnect_controllers(&bridge);
            }
            ConfigStep::SetAffinity(bridge, affinity) => self.set_affinity(&bridge, affinity),
            ConfigStep::SetSwitching(bridge, switching) => {
                let now = self.now();
                self.with_site(&bridge, |site| site.bridge.set_switching(&switching, now));
            }
            ConfigStep::SetMirrors(bridge, mirrors) => {
                self.with_site(&bridge, |site| site.bridge.set_mirrors(&mirrors));
            }
            ConfigStep::SetInBand(bridge, in_band) => {
                self.with_site(&bridge, |site| site.in_band = in_band)
            }
            ConfigStep::SetSpanningTree(bridge, spanning) => {
                self.set_spanning(&bridge, spanning.as_deref())
            }
            ConfigStep::SetExporters(bridge, exporters) => {
                self.configure_exporters(&bridge, &exporters)
            }
            ConfigStep::SetInterface(bridge, name, of) => self.set_interface(&bridge, name, *of),
            ConfigStep::SetTable(bridge, table, config) => {
                let now = self.now();
                self.with_site(&bridge, |site| {
                    site.bridge.configure_table(table, &config, now);
                });
            }
            ConfigStep::SetPolicing(bridge, policing) => {
                self.with_site(&bridge, |site| site.set_policing(policing))
            }
        }
        Ok(())
    }

    /// Sets the workers of a bridge's interfaces, and moves their queues.
    fn set_affinity(&mut self, bridge: &str, affinity: Vec<Affinity>) {
        if let Some((id, site)) = self.site_named(bridge) {
            site.affinity = affinity;
            self.assign_all(id);
        }
    }

    /// Sets or removes the spanning tree of a bridge.
    fn set_spanning(&mut self, bridge: &str, spanning: Option<&SpanningTreeConfig>) {
        let now = self.now();
        self.with_site(bridge, |site| {
            let address = site.address;
            site.bridge.set_spanning(spanning, address, now);
        });
    }

    /// Sets the peer of a patch port; the port remains.
    fn set_patch_peer(&mut self, bridge: &str, spec: NumberedPort) {
        self.with_site(bridge, |site| {
            if let Some(port) = site.ports.get_mut(&spec.number) {
                port.spec = spec;
            }
        });
    }

    /// Runs `action` on the runtime of a bridge, if it exists.
    fn with_site(&mut self, name: &str, action: impl FnOnce(&mut BridgeRuntime)) {
        if let Some((_, site)) = self.site_named(name) {
            action(site);
        }
    }

    fn add_bridge(&mut self, config: &BridgeConfig) -> Result<(), SwitchError> {
        let socket = |suffix| self.tools.rundir.file(format!("{}.{suffix}", config.name));
        let channel_settings = ChannelSettings::new(config.protocols, self.tools.dummies);
        let management = self.listen_unix(
            &config.name,
            &socket("mgmt"),
            &channel_settings,
            ControllerOptions::for_tools(),
        )?;
        let snoop = self.serve_snoop(&config.name, &socket("snoop"), &channel_settings)?;
        let control = self.serve_commands(&socket("ctl"))?;
        let address = address_of(config);
        let identity = Identity {
            name: config.name.clone(),
            datapath_id: config.datapath_id.unwrap_or_else(|| datapath_id(address)),
            fail_mode: config.fail_mode,
            started: self.tools.clock.started(),
        };
        let DatapathId(datapath_id) = identity.datapath_id;
        let writers = self.tools.workers.len() + 1;
        let has_controllers = !config.controllers.is_empty();
        let mut site = BridgeRuntime {
            bridge: Bridge::new(identity, has_controllers, writers, self.now()),
            address,
            channel_settings,
            policing: Policing::default(),
            affinity: config.affinity.clone(),
            auxiliary: config.auxiliary,
            interface_settings: BTreeMap::new(),
            ports: BTreeMap::new(),
            controllers: BTreeMap::new(),
            contacts: BTreeMap::new(),
            in_band: config.in_band.clone(),
            listeners: BTreeMap::new(),
            not_listening: BTreeMap::new(),
            _management: management,
            _snoop: snoop,
            _control: control,
        };
        self.attach_tracker(&mut site.bridge, config);
        site.set_policing(config.policing());
        site.bridge.set_switching(&config.switching, self.now());
        site.bridge.set_mirrors(&config.mirrors);
        if let Some(spanning) = &config.spanning {
            let now = self.now();
            site.bridge.set_spanning(Some(spanning), address, now);
        }
        for limit in &config.flow_limits {
            site.bridge.limit_flows(limit.table, limit.rules);
        }
        let id = self.configuration.allocate_bridge();
        self.sites.insert(id, site);
        self.configure_exporters(&config.name, &config.exporters);
        let added = self.add_port(&config.name, local_port(config), Some(address));
        tracing::info!(
            "bridge {}: using datapath ID {datapath_id:016x}",
            config.name
        );
        added
    }

    /// Gives a bridge the connections and the held fragments of its datapath.
    fn attach_tracker(&mut self, bridge: &mut Bridge, config: &BridgeConfig) {
        let connections = self.trackers.of_bridge(config, self.now());
        bridge.set_tracker(connections);
        bridge.set_fragment_store(self.trackers.fragments_of_bridge(config));
    }

    fn add_port(
        &mut self,
        bridge: &str,
        spec: NumberedPort,
        address: Option<MacAddr>,
    ) -> Result<(), SwitchError> {
        let now = self.now();
        let Some((id, site)) = self.site_named(bridge) else {
            return Ok(());
        };
        let (number, name) = (spec.number, spec.name.clone());
        let port = PortRuntime::new(spec, address, site.policing.port);
        site.ports.insert(number, port);
        site.apply_monitoring(number, now);
        self.open_port(id, number).map_err(|error| {
            self.note_problem(id, number, open_problem(&error));
            SwitchError::Port {
                bridge: bridge.to_owned(),
                port: name.clone(),
                problem: error,
            }
        })?;
        // As `ovs-vswitchd` logs it.
        let openflow = match number {
            PortNo::LOCAL => LOCAL_V10,
            PortNo(number) => number,
        };
        tracing::info!("bridge {bridge}: added interface {name} on port {openflow}");
        Ok(())
    }

    /// Records the reason why a port is closed.
    pub(super) fn note_problem(&mut self, id: BridgeId, number: PortNo, problem: String) {
        let site = self.sites.get_mut(&id);
        let port = site.and_then(|site| site.ports.get_mut(&number));
        // A port is retried every second; the same failure is reported once.
        if let Some(port) = port.filter(|port| port.problem.as_ref() != Some(&problem)) {
            port.problem = Some(problem);
            self.tools.facts_changed.notify_one();
        }
    }

    /// Applies settings to an interface, now and whenever it is opened.
    fn set_interface(&mut self, bridge: &str, name: String, interface_settings: InterfaceConfig) {
        let now = self.now();
        let Some((_, site)) = self.site_named(bridge) else {
            return;
        };
        let mut ports = site.ports.iter_mut();
        let found = ports.find(|(_, port)| port.spec.name == name);
        let number = found.map(|(number, port)| {
            port.apply_settings(&interface_settings, now);
            *number
        });
        site.interface_settings.insert(name, interface_settings);
        if let Some(number) = number {
            site.update_queues(number, now);
            site.apply_monitoring(number, now);
        }
        self.dummies.handle_settings(now);
    }
}

/// Logs the failure of a step, at the level of `ovs-vswitchd`.
fn log_failure(error: &SwitchError) {
    match error {
        SwitchError::Port {
            problem: problem @ OpenError::Unknown { .. },
            ..
        } => tracing::warn!("{}", open_problem(problem)),
        SwitchError::Port { port, problem, .. } => {
            tracing::warn!("could not open network device {port} ({problem})");
        }
        error => tracing::error!("{error}"),
    }
}

/// Returns the local port of a bridge.
fn local_port(config: &BridgeConfig) -> NumberedPort {
    NumberedPort {
        number: PortNo::LOCAL,
        name: config.name.clone(),
        kind: match config.is_dummy {
            true => PortKind::Dummy(DummyType::Internal),
            false => PortKind::Tap,
        },
    }
}

/// Returns the bridge's MAC address.
fn address_of(config: &BridgeConfig) -> MacAddr {
    if let BridgeAddress::Given(address) = config.address {
        return address;
    }
    let machine = std::fs::read_to_string(MACHINE_ID).unwrap_or_default();
    let interfaces = Interfaces::current().ok();
    let address = |name: &str| {
        let name = name.parse::<InterfaceName>().ok()?;
        let hardware = interfaces.as_ref()?.hardware(&name).ok()?;
        Some(MacAddr(hardware.address))
    };
    let existing = config.ports.iter().filter(|port| port.kind.is_external());
    let addresses = existing.filter_map(|port| address(&port.name));
    bridge_address(addresses, machine.trim(), &config.name)
}

/// Logs a step. Added and removed bridges and ports are logged elsewhere, in the words of
/// `ovs-vswitchd`.
fn log_step(step: &ConfigStep) {
    match step {
        ConfigStep::AddBridge(_)
        | ConfigStep::AddPort(..)
        | ConfigStep::RemoveBridge(_)
        | ConfigStep::RemovePort(..) => tracing::debug!("{step}"),
        _ => tracing::info!("{step}"),
    }
}
