//! A device at its place in the lab: between its hosts, under its controllers, of which each
//! of its bridges has one.

mod calls;
pub(crate) mod companion;
pub(crate) mod passage;
mod restart;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use controller::{Application, Controller, ControllerError, Counts};
use flow::FlowMod;
use record::MatchSet;
use record::{DeviceRecord, OpenFlowEvidence};
use testbed::{
    Bench, Clock, DeviceKind, DeviceOptions, FailMode, Failure, Mode, Settings, Setup, Spawner,
    Topology,
};

use crate::cores::Cores;
use crate::devices::{self, Description, Ledger};
use crate::rules::{TOWARDS_CLIENT, TOWARDS_SERVER, rules_of_bridges};
use crate::{LabError, Options};
use calls::Calls;

pub(crate) use restart::Restarted;

/// How long a device may take to call its controller: Open vSwitch waits up to
/// eight seconds between two attempts.
const CALL: Duration = Duration::from_secs(20);
/// How long a device may take to tell what its rules have counted: Open vSwitch
/// gathers that from its data path every half second, or slower under load.
const SETTLE: Duration = Duration::from_secs(4);
/// What a device with known faults did, in its directory.
const TRUTH: &str = "what-was-done.txt";

/// What a station is to be.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    /// The device.
    pub(crate) kind: DeviceKind,
    /// How it decides where frames go; its usual mode, if none is said.
    pub(crate) mode: Option<Mode>,
    /// What it does while its controllers are gone.
    pub(crate) fail_mode: FailMode,
    /// How bridges and hosts are joined.
    pub(crate) topology: Topology,
    /// What its controllers do by themselves.
    pub(crate) application: Application,
    /// Whether there is another like it.
    pub(crate) apart: bool,
}

impl Request {
    /// The device in its usual mode between two hosts.
    pub(crate) fn of(kind: DeviceKind) -> Self {
        Self {
            kind,
            mode: None,
            fail_mode: FailMode::default(),
            topology: Topology::default(),
            application: Application::Silent,
            apart: false,
        }
    }

    /// What tells it from other stations of the same device; a path.
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
        if self.apart {
            name.push_str("-apart");
        }
        name
    }
}

/// A device, its hosts, its controllers.
pub(crate) struct Station {
    /// The device and its hosts.
    pub(crate) bench: Bench,
    /// Its directory, for files and logs.
    pub(crate) directory: PathBuf,
    description: Option<Description>,
    /// In the order of bridges; none in legacy mode.
    controllers: Vec<Controller>,
    /// What they do by themselves.
    application: Application,
    packet_ins: u64,
    // Dropped last: what it tells of is given back by then.
    _ledger: Ledger,
}

impl Station {
    /// Builds the bench and, if the device speaks OpenFlow, waits until it has called.
    pub(crate) fn build(
        kind: DeviceKind,
        options: &Options,
        cores: &Cores,
        spawner: &Spawner,
        clock: &Clock,
    ) -> Result<Self, LabError> {
        Self::build_as(Request::of(kind), options, cores, spawner, clock)
    }

    /// The same in another mode, or with other bridges and hosts. Until it is dropped, no
    /// other with the same request can be.
    pub(crate) fn build_as(
        request: Request,
        options: &Options,
        cores: &Cores,
        spawner: &Spawner,
        clock: &Clock,
    ) -> Result<Self, LabError> {
        let kind = request.kind;
        let name = request.name();
        let directory = directory(&name, options)?;
        let description = devices::describe(kind)?;
        let mode = mode(&request, description.as_ref())?;
        let setup = Setup {
            topology: request.topology,
            mode: Some(mode),
            fail_mode: request.fail_mode,
            settings: devices::settings(kind, description.as_ref())?,
        };
        let device = DeviceOptions {
            kind,
            directory: directory.clone(),
            cores: cores.device.clone(),
            comporta: options.comporta.clone(),
        };
        let nics = match &setup.settings {
            Settings::External(external) => &external.ports[..],
            Settings::None | Settings::Impairments(_) => &[],
        };
        let ledger = Ledger::write(Path::new(devices::STATE), &name, &directory, nics)?;
        let calls = match mode {
            Mode::OpenFlow => Some(Calls::await_of(
                &device,
                &setup,
                request.application.clone(),
                description.as_ref(),
            )?),
            Mode::Legacy => None,
        };
        let mut bench = Bench::build_as(spawner, clock, &device, &setup).map_err(|source| {
            LabError::Device {
                device: kind.to_string(),
                source,
            }
        })?;
        let controllers = match calls {
            Some(calls) => calls.accept(&mut bench, clock, CALL)?,
            None => Vec::new(),
        };
        Ok(Self {
            bench,
            directory,
            description,
            controllers,
            application: request.application,
            packet_ins: 0,
            _ledger: ledger,
        })
    }

    /// How a program of the device's has ended, if one has.
    pub(crate) fn death(&mut self) -> Option<String> {
        let running = self.bench.device_mut().check();
        running.err().map(|failure| failure.to_string())
    }

    /// Checks that the device's programs run, and that it answers its controllers.
    ///
    /// # Errors
    /// Why it stands no more tests, in words.
    pub(crate) fn is_sound(&mut self) -> Result<(), String> {
        if let Some(reason) = self.death() {
            return Err(reason);
        }
        for controller in &self.controllers {
            if let Err(error @ (ControllerError::Down(_) | ControllerError::Silent(_))) =
                controller.is_there()
            {
                return Err(error.to_string());
            }
        }
        Ok(())
    }

    /// How the connections of its bridges are, in words, each behind a semicolon; nothing in
    /// legacy mode.
    pub(crate) fn diagnosis(&self) -> String {
        let controllers = self.controllers.iter();
        let words = controllers.map(|controller| format!("; {}", controller.diagnosis()));
        words.collect()
    }

    /// What the device is.
    pub(crate) fn kind(&self) -> DeviceKind {
        self.bench.device().kind()
    }

    /// How the device was set up, for the records.
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

    /// What its user says of it, if it is a switch of the user's.
    pub(crate) const fn description(&self) -> Option<&Description> {
        self.description.as_ref()
    }

    /// Who tells its first bridge the rules; none in legacy mode.
    pub(crate) fn controller(&self) -> Option<&Controller> {
        self.controllers.first()
    }

    /// The controllers of its bridges, in their order; none in legacy mode.
    #[cfg(test)]
    pub(crate) fn controllers(&self) -> &[Controller] {
        &self.controllers
    }

    /// Its controllers, in the order of bridges: the station has none until it is given some.
    pub(crate) fn take_controllers(&mut self) -> Vec<Controller> {
        std::mem::take(&mut self.controllers)
    }

    /// Gives it controllers that its bridges have called, in their order.
    pub(crate) fn give_controllers(&mut self, controllers: Vec<Controller>) {
        self.controllers = controllers;
        self.packet_ins = self.packet_ins_so_far();
    }

    /// Sees to it that the device forwards by fresh rules of `set`, whose counters
    /// are at zero, and that its controllers are silent from now on.
    pub(crate) fn prepare(&mut self, set: MatchSet) -> Result<(), ControllerError> {
        let rules = rules_of_bridges(&self.bench, set);
        for (controller, rules) in self.controllers.iter().zip(&rules) {
            controller.install(rules)?;
        }
        self.packet_ins = self.packet_ins_so_far();
        Ok(())
    }

    /// Leaves each bridge of the device with `rules` and no others, if it follows any.
    pub(crate) fn install(&mut self, rules: &[FlowMod]) -> Result<(), ControllerError> {
        for controller in &self.controllers {
            controller.install(rules)?;
        }
        self.packet_ins = self.packet_ins_so_far();
        Ok(())
    }

    /// Frames that the device sent to its controllers since it was given its rules.
    pub(crate) fn packet_ins(&self) -> u64 {
        self.packet_ins_so_far().saturating_sub(self.packet_ins)
    }

    fn packet_ins_so_far(&self) -> u64 {
        self.controllers.iter().map(Controller::packet_ins).sum()
    }

    /// What the rules have counted since they were installed; none without OpenFlow.
    /// Waits a while for the counts to become `enough`, since some devices gather them late.
    pub(crate) fn evidence(
        &self,
        clock: &Clock,
        enough: impl Fn(&OpenFlowEvidence) -> bool,
    ) -> Result<Option<OpenFlowEvidence>, ControllerError> {
        // Whatever crosses a chain crosses its last bridge.
        let telling = match self.bench.topology().is_chain() {
            true => &self.controllers[self.controllers.len().saturating_sub(1)..],
            false => &self.controllers[..],
        };
        if telling.is_empty() {
            return Ok(None);
        }
        let deadline = clock.now() + SETTLE;
        loop {
            let mut counts = Counts::new();
            for controller in telling {
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

impl Drop for Station {
    /// Leaves the truth of a device with known faults beside its log, to be held against what
    /// was measured.
    fn drop(&mut self) {
        if let Some(impairment) = self.bench.device().impairment() {
            let [forth, back] = impairment.counts();
            let text = format!("forth: {forth}\nback: {back}\n");
            // Whoever misses it finds the faults themselves in the records.
            let _ = fs::write(self.directory.join(TRUTH), text);
        }
    }
}

/// The mode that is asked for, or the usual one of what is asked for.
fn mode(request: &Request, description: Option<&Description>) -> Result<Mode, LabError> {
    let kind = request.kind;
    let modes = description.map_or_else(|| kind.modes(), Description::modes);
    match request.mode {
        None => Ok(modes[0]),
        Some(mode) if modes.contains(&mode) => Ok(mode),
        Some(mode) => {
            let text = format!("{kind} has no mode {mode}");
            Err(Failure::Unfit(text).into())
        }
    }
}

fn packets(counts: &Counts, cookie: base::Cookie) -> u64 {
    let of_rule = counts.iter().filter(|(rule, _)| *rule == cookie);
    of_rule.map(|(_, packets)| packets).sum()
}

/// Makes the device's directory, absolute, since the device's programs are told of it.
fn directory(name: &str, options: &Options) -> Result<PathBuf, LabError> {
    let path = options.directory.join("devices").join(name);
    fs::create_dir_all(&path)
        .and_then(|()| fs::canonicalize(&path))
        .map_err(Failure::to(format!(
            "make the directory {}",
            path.display()
        )))
        .map_err(LabError::from)
}

#[cfg(test)]
mod tests;
