//! A device at its place in the lab: between its hosts, under its controller.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use flow::FlowMod;
use testbed::{Bench, Clock, DeviceKind, DeviceOptions, Failure, Spawner};

use crate::controller::{Controller, ControllerError, Counts, Listener};
use crate::cores::Cores;
use crate::record::{DeviceRecord, OpenFlowEvidence};
use crate::rules::{TOWARDS_CLIENT, TOWARDS_SERVER, rules};
use crate::{LabError, MatchSet, Options};

/// How long a device may take to call its controller: Open vSwitch waits up to
/// eight seconds between two attempts.
const CALL: Duration = Duration::from_secs(20);
/// How long a device may take to tell what its rules have counted: Open vSwitch
/// gathers that from its data path every half second, or slower under load.
const SETTLE: Duration = Duration::from_secs(4);
/// Tests in a row that cannot be done, before a device is given up.
const FAILURES_MAX: u32 = 3;
/// The longest path of a Unix socket, without the zero at its end (unix(7)).
const SOCKET_PATH_MAX: usize = 107;

/// A device, its hosts, its controller.
pub(crate) struct Station {
    /// The device and its hosts.
    pub(crate) bench: Bench,
    /// Its directory, for files and logs.
    pub(crate) directory: PathBuf,
    controller: Option<Controller>,
    packet_ins: u64,
    failures: u32,
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
        let directory = directory(kind, options)?;
        let device = DeviceOptions {
            kind,
            directory: directory.clone(),
            cores: cores.device.clone(),
            comporta: options.comporta.clone(),
        };
        let (bench, controller) = if kind.speaks_openflow() {
            let (bench, controller) = bring_together(&device, spawner, clock)?;
            (bench, Some(controller))
        } else {
            (bring_up(&device, spawner, clock)?, None)
        };
        Ok(Self {
            bench,
            directory,
            controller,
            packet_ins: 0,
            failures: 0,
        })
    }

    /// Takes note whether a test could be done.
    pub(crate) const fn note(&mut self, done: bool) {
        self.failures = if done { 0 } else { self.failures + 1 };
    }

    /// Whether the device has failed so often in a row that nothing more is
    /// expected of it: each failure may take as long as its patience.
    pub(crate) const fn is_given_up(&self) -> bool {
        self.failures >= FAILURES_MAX
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
            openflow: device.kind().speaks_openflow(),
            calibration: device.kind() == DeviceKind::Direct,
            host_offloads: offloads
                .iter()
                .map(|offload| offload.name().to_owned())
                .collect(),
            commands: device.commands().to_vec(),
        })
    }

    /// Sees to it that the device forwards by fresh rules of `set`, whose counters
    /// are at zero, and that its controller is silent from now on.
    pub(crate) fn prepare(&mut self, set: MatchSet) -> Result<(), ControllerError> {
        self.install(&rules(&self.bench, set))
    }

    /// Who tells the device its rules; none without OpenFlow.
    pub(crate) const fn controller(&self) -> Option<&Controller> {
        self.controller.as_ref()
    }

    /// Leaves the device with `rules` and no others, if it follows any.
    pub(crate) fn install(&mut self, rules: &[FlowMod]) -> Result<(), ControllerError> {
        let Some(controller) = &self.controller else {
            return Ok(());
        };
        controller.install(rules)?;
        self.packet_ins = controller.packet_ins();
        Ok(())
    }

    /// What the rules have counted since they were installed; none without OpenFlow.
    /// Waits a while for the counts to become `enough`, since some devices gather them late.
    pub(crate) fn evidence(
        &self,
        clock: &Clock,
        enough: impl Fn(&OpenFlowEvidence) -> bool,
    ) -> Result<Option<OpenFlowEvidence>, ControllerError> {
        let Some(controller) = &self.controller else {
            return Ok(None);
        };
        let deadline = clock.now() + SETTLE;
        loop {
            let counts = controller.counts()?;
            let evidence = OpenFlowEvidence {
                packet_ins: controller.packet_ins() - self.packet_ins,
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

fn bring_up(device: &DeviceOptions, spawner: &Spawner, clock: &Clock) -> Result<Bench, LabError> {
    Bench::build(spawner, clock, device).map_err(|source| LabError::Device {
        device: device.kind.to_string(),
        source,
    })
}

/// Listens, starts the device, and waits for its call.
fn bring_together(
    device: &DeviceOptions,
    spawner: &Spawner,
    clock: &Clock,
) -> Result<(Bench, Controller), LabError> {
    let path = device.controller_socket();
    if path.as_os_str().len() > SOCKET_PATH_MAX {
        return Err(LabError::PathTooLong(path.display().to_string()));
    }
    let failed = |source| LabError::Controller {
        device: device.kind.to_string(),
        source,
    };
    let listener = Listener::bind(&path).map_err(failed)?;
    let mut bench = bring_up(device, spawner, clock)?;
    let alive = || bench.device_mut().check();
    let controller = listener.accept(clock, CALL, alive).map_err(failed)?;
    Ok((bench, controller))
}

fn packets(counts: &Counts, cookie: base::Cookie) -> u64 {
    let of_rule = counts.iter().filter(|(rule, _)| *rule == cookie);
    of_rule.map(|(_, packets)| packets).sum()
}

/// Makes the device's directory, absolute, since the device's programs are told of it.
fn directory(kind: DeviceKind, options: &Options) -> Result<PathBuf, LabError> {
    let path = options.directory.join("devices").join(kind.name());
    fs::create_dir_all(&path)
        .and_then(|()| fs::canonicalize(&path))
        .map_err(Failure::to(format!(
            "make the directory {}",
            path.display()
        )))
        .map_err(LabError::from)
}
