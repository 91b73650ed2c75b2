//! The test setup of a device: its hosts, links and controllers, of which each bridge has one
//! (RFC 2285).
//!
//! ```text
//!                      controller
//!                          |  OpenFlow
//!  client  --- link --- device under test --- link ---  server
//!  (host)                                               (host)
//! ```
//!
//! A run has one shared setup for each device. A trial that needs another one, with more hosts,
//! several bridges or another mode, has a dedicated setup.

mod listeners;
pub(crate) mod monitors;
pub(crate) mod path_counters;
mod restart;
mod watch;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use controller::{Application, Controller, ControllerError, Counts};
use flow::FlowMod;
use record::{DeviceRecord, OpenFlowEvidence};
use testbed::{
    Bench, Clock, DeviceKind, DeviceOptions, FailMode, Failure, Mode, Settings, Setup, Topology,
};

use crate::LabError;
use crate::devices::{self, Description, Ledger};
use crate::rules::{MatchSet, TOWARDS_CLIENT, TOWARDS_SERVER, rules_of_bridges};
use crate::tools::Tools;
use listeners::Listeners;

pub(crate) use restart::RestartTimes;
pub(crate) use watch::ConditionMonitor;

/// Time limit for the connections of a device: Open vSwitch waits up to eight seconds between two
/// attempts.
const CONNECT_LIMIT: Duration = Duration::from_secs(20);
/// Time limit for the counters of rules: Open vSwitch collects them from its data path every half
/// second, or slower under load.
const COUNTERS_LIMIT: Duration = Duration::from_secs(4);
/// File with the counts of a device with configured faults, in its directory.
const FAULT_COUNTS: &str = "what-was-done.txt";

/// Request for a test setup.
#[derive(Clone, Debug)]
pub(crate) struct SetupRequest {
    /// Device.
    pub(crate) kind: DeviceKind,
    /// Forwarding mode; the default mode of the device if `None`.
    pub(crate) mode: Option<Mode>,
    /// Behaviour without a controller.
    pub(crate) fail_mode: FailMode,
    /// Hosts, bridges and links.
    pub(crate) topology: Topology,
    /// Application of the controllers.
    pub(crate) application: Application,
    /// True if the device may use all cores, those of the tester included.
    pub(crate) on_all_cores: bool,
    /// True if another setup with the same properties exists.
    pub(crate) separate: bool,
}

impl SetupRequest {
    /// Returns the request for the device in its default mode between two hosts.
    pub(crate) fn of(kind: DeviceKind) -> Self {
        Self {
            kind,
            mode: None,
            fail_mode: FailMode::default(),
            topology: Topology::default(),
            application: Application::Silent,
            on_all_cores: false,
            separate: false,
        }
    }

    /// Returns the name that distinguishes setups of the same device, as a file name.
    fn name(&self) -> String {
        let mut name = self.kind.name().to_owned();
        if let Some(mode) = self.mode {
            name = format!("{name}-{mode}");
        }
        if self.fail_mode != FailMode::default() {
            name = format!("{name}-{}", self.fail_mode.name());
        }
        if !self.application.is_silent() {
            name.push_str("-reactive");
        }
        if self.topology != Topology::default() {
            name = format!("{name}-{}", self.topology);
        }
        if self.separate {
            name.push_str("-apart");
        }
        name
    }
}

/// Device with its hosts and controllers.
pub(crate) struct TestSetup {
    /// The device and its hosts.
    pub(crate) bench: Bench,
    /// Directory for files and logs.
    pub(crate) directory: PathBuf,
    description: Option<Description>,
    /// Controllers in the order of bridges; none in legacy mode.
    controllers: Vec<Controller>,
    /// Application of the controllers.
    application: Application,
    /// Packet-ins when the rules were installed.
    packet_ins: u64,
    /// Least resident memory of the device's process without flows.
    pub(crate) least_empty_bytes: Option<u64>,
    // Dropped last: the resources that it lists are released by then.
    _ledger: Ledger,
}

impl TestSetup {
    /// Builds the setup and, if the device speaks OpenFlow, waits for its connections. No other
    /// setup with the same request can exist at the same time.
    pub(crate) fn build(request: SetupRequest, tools: &Tools<'_>) -> Result<Self, LabError> {
        let kind = request.kind;
        let name = request.name();
        let directory = directory(&name, &tools.paths.directory)?;
        let description = devices::describe(kind)?;
        let mode = mode(&request, description.as_ref())?;
        let setup = Setup {
            topology: request.topology,
            mode: Some(mode),
            fail_mode: request.fail_mode,
            settings: devices::settings(kind, description.as_ref())?,
        };
        let mut cores = tools.cores.device.clone();
        if request.on_all_cores {
            cores.extend(&tools.cores.tester);
        }
        let device = DeviceOptions {
            kind,
            directory: directory.clone(),
            cores,
            comporta: tools.paths.comporta.clone(),
        };
        let nics = match &setup.settings {
            Settings::External(external) => &external.ports[..],
            Settings::None | Settings::Impairments(_) => &[],
        };
        let ledger = Ledger::write(Path::new(devices::STATE), &name, &directory, nics)?;
        let listeners = match mode {
            Mode::OpenFlow => Some(Listeners::open(
                &device,
                &setup,
                request.application.clone(),
                description.as_ref(),
            )?),
            Mode::Legacy => None,
        };
        let (spawner, clock) = (tools.spawner, tools.clock);
        let mut bench = Bench::build_as(spawner, clock, &device, &setup).map_err(|source| {
            LabError::Device {
                device: kind.to_string(),
                source,
            }
        })?;
        let controllers = match listeners {
            Some(listeners) => listeners.accept(&mut bench, clock, CONNECT_LIMIT)?,
            None => Vec::new(),
        };
        Ok(Self {
            bench,
            directory,
            description,
            controllers,
            application: request.application,
            packet_ins: 0,
            least_empty_bytes: None,
            _ledger: ledger,
        })
    }

    /// Returns how a program of the device has ended, if one has.
    pub(crate) fn exit_reason(&mut self) -> Option<String> {
        let running = self.bench.device_mut().check();
        running.err().map(|failure| failure.to_string())
    }

    /// Checks that the device's programs run, and that it replies to its controllers.
    ///
    /// # Errors
    /// The reason why no more trials are possible, in words.
    pub(crate) fn check_health(&mut self) -> Result<(), String> {
        if let Some(reason) = self.exit_reason() {
            return Err(reason);
        }
        for controller in &self.controllers {
            if let Err(error @ (ControllerError::Down(_) | ControllerError::Silent(_))) =
                controller.check_connection()
            {
                return Err(error.to_string());
            }
        }
        Ok(())
    }

    /// Returns the state of the bridges' connections in words, each after a semicolon; empty in
    /// legacy mode.
    pub(crate) fn diagnosis(&self) -> String {
        let controllers = self.controllers.iter();
        let words = controllers.map(|controller| format!("; {}", controller.diagnosis()));
        words.collect()
    }

    /// Returns the device.
    pub(crate) fn kind(&self) -> DeviceKind {
        self.bench.device().kind()
    }

    /// Returns the configuration of the device, for the records.
    pub(crate) fn record(&self) -> Result<DeviceRecord, Failure> {
        let device = self.bench.device();
        let offloads = self.bench.client().offloads()?;
        Ok(DeviceRecord {
            name: device.kind().name().to_owned(),
            version: device.version().to_owned(),
            openflow: device.mode() == Mode::OpenFlow,
            calibration: device.kind() == DeviceKind::Direct,
            host_offloads: offloads
                .iter()
                .map(|offload| offload.name().to_owned())
                .collect(),
            commands: device.commands().to_vec(),
            inventory: self.description.as_ref().map(|of| of.inventory.clone()),
            mode: Some(device.mode().name().to_owned()),
            ports: Some(device.kind().port_kind().to_owned()),
        })
    }

    /// Returns the description file of an external switch.
    pub(crate) const fn description(&self) -> Option<&Description> {
        self.description.as_ref()
    }

    /// Returns the controller of the first bridge; `None` in legacy mode.
    pub(crate) fn controller(&self) -> Option<&Controller> {
        self.controllers.first()
    }

    /// Returns the controllers in the order of bridges; none in legacy mode.
    #[cfg(test)]
    pub(crate) fn controllers(&self) -> &[Controller] {
        &self.controllers
    }

    /// Takes the controllers, in the order of bridges; the setup has none until the next
    /// [`Self::give_controllers`].
    pub(crate) fn take_controllers(&mut self) -> Vec<Controller> {
        std::mem::take(&mut self.controllers)
    }

    /// Sets controllers to which the bridges have connected, in the order of bridges.
    pub(crate) fn give_controllers(&mut self, controllers: Vec<Controller>) {
        self.controllers = controllers;
        self.packet_ins = self.packet_ins_so_far();
    }

    /// Installs new rules that match the fields of `set`, with counters at zero. The controllers
    /// are silent from now on.
    pub(crate) fn prepare(&mut self, set: MatchSet) -> Result<(), ControllerError> {
        let rules = rules_of_bridges(&self.bench, set);
        for (controller, rules) in self.controllers.iter().zip(&rules) {
            controller.install(rules)?;
        }
        self.packet_ins = self.packet_ins_so_far();
        Ok(())
    }

    /// Replaces the rules of each bridge by `rules`; does nothing in legacy mode.
    pub(crate) fn install(&mut self, rules: &[FlowMod]) -> Result<(), ControllerError> {
        for controller in &self.controllers {
            controller.install(rules)?;
        }
        self.packet_ins = self.packet_ins_so_far();
        Ok(())
    }

    /// Returns the packet-ins since the rules were installed.
    pub(crate) fn packet_ins(&self) -> u64 {
        self.packet_ins_so_far().saturating_sub(self.packet_ins)
    }

    fn packet_ins_so_far(&self) -> u64 {
        self.controllers.iter().map(Controller::packet_ins).sum()
    }

    /// Returns the counters of the rules since their installation; `None` without OpenFlow. Waits
    /// up to [`COUNTERS_LIMIT`] for counts that are `enough`, since some devices collect them late.
    pub(crate) fn evidence(
        &self,
        clock: &Clock,
        enough: impl Fn(&OpenFlowEvidence) -> bool,
    ) -> Result<Option<OpenFlowEvidence>, ControllerError> {
        // Frames through a chain pass its last bridge.
        let counting = match self.bench.topology().is_chain() {
            true => &self.controllers[self.controllers.len().saturating_sub(1)..],
            false => &self.controllers[..],
        };
        if counting.is_empty() {
            return Ok(None);
        }
        let deadline = clock.now() + COUNTERS_LIMIT;
        loop {
            let mut counts = Counts::new();
            for controller in counting {
                counts.extend(controller.counts()?);
            }
            let evidence = OpenFlowEvidence {
                packet_ins: self.packet_ins(),
                towards_server: packets(&counts, TOWARDS_SERVER),
                towards_client: packets(&counts, TOWARDS_CLIENT),
            };
            let now = clock.now();
            if enough(&evidence) || now >= deadline {
                return Ok(Some(evidence));
            }
            clock.sleep_until(now + Duration::from_millis(20));
        }
    }
}

impl Drop for TestSetup {
    /// Writes the counts of a device with configured faults next to its log, for comparison with
    /// the measurements.
    fn drop(&mut self) {
        if let Some(impairment) = self.bench.device().impairment() {
            let [forth, back] = impairment.counts();
            let text = format!("forth: {forth}\nback: {back}\n");
            // The records have the configured faults even if this fails.
            let _ = fs::write(self.directory.join(FAULT_COUNTS), text);
        }
    }
}

/// Returns the requested mode, or the default mode of the device.
fn mode(request: &SetupRequest, description: Option<&Description>) -> Result<Mode, LabError> {
    let kind = request.kind;
    let modes = description.map_or_else(|| kind.modes(), Description::modes);
    match request.mode {
        None => Ok(modes[0]),
        Some(mode) if modes.contains(&mode) => Ok(mode),
        Some(mode) => {
            let text = format!("device {kind} has no mode {mode}");
            Err(Failure::Unfit(text).into())
        }
    }
}

fn packets(counts: &Counts, cookie: base::Cookie) -> u64 {
    let of_rule = counts.iter().filter(|(rule, _)| *rule == cookie);
    of_rule.map(|(_, packets)| packets).sum()
}

/// Creates the directory of the device. Its path is absolute, since it is an argument of the
/// device's programs.
fn directory(name: &str, run: &Path) -> Result<PathBuf, LabError> {
    let path = run.join("devices").join(name);
    fs::create_dir_all(&path)
        .and_then(|()| fs::canonicalize(&path))
        .map_err(Failure::to(format!(
            "create the directory {}",
            path.display()
        )))
        .map_err(LabError::from)
}

#[cfg(test)]
mod tests;
