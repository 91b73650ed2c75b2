//! Devices under test: they connect the hosts of a [`Bench`](crate::Bench), and are started as
//! their users start them.
//!
//! Each kind has a file. The set is closed, since each is configured with care for a fair
//! comparison. Rules and traffic are the caller's.

mod comporta;
mod description_file;
mod external;
mod forwarder;
mod impaired;
mod kind;
mod linux_bridge;
mod mode;
mod nftables;
mod ovs;
mod restart;

use std::path::PathBuf;
use std::time::Duration;

use crate::forwarder::Forwarder;
use crate::impairment::Impairment;
use crate::topology::BridgePlan;
use crate::{
    Clock, Failure, Impairments, Namespace, PortKind, Process, Program, Spawner, Topology, Usage,
    vlan,
};

pub use description_file::{DescriptionFile, near};
pub use external::External;
pub use kind::{DeviceKind, UnknownDevice};
pub use mode::{FailMode, Mode};
pub use restart::StopSignal;

/// Maximum time of a device's start, and of a tool.
const START: Duration = Duration::from_secs(20);

/// Options of a device.
#[derive(Clone, Debug)]
pub struct DeviceOptions {
    /// Kind.
    pub kind: DeviceKind,
    /// Existing directory for its sockets, files and logs.
    pub directory: PathBuf,
    /// Cores that it may use.
    pub cores: Vec<usize>,
    /// The program `comporta`.
    pub comporta: PathBuf,
}

/// The setup of a device.
#[derive(Clone, Debug, Default)]
pub struct Setup {
    /// Topology of bridges and hosts.
    pub topology: Topology,
    /// Forwarding mode; the default mode if `None`.
    pub mode: Option<Mode>,
    /// Behaviour without its controller.
    pub fail_mode: FailMode,
    /// Settings from its description file.
    pub settings: Settings,
}

/// Settings from a device's description file.
#[derive(Clone, Debug, Default)]
pub enum Settings {
    /// No file.
    #[default]
    None,
    /// The faults of [`DeviceKind::Impaired`].
    Impairments(Box<Impairments>),
    /// The description of [`DeviceKind::External`].
    External(Box<External>),
}

/// A device to start, and its links.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DevicePlan<'a> {
    options: &'a DeviceOptions,
    settings: &'a Settings,
    inside: &'a Namespace,
    bridges: &'a [BridgePlan],
    mode: Mode,
    fail_mode: FailMode,
    mtu: u32,
}

impl<'p> DevicePlan<'p> {
    pub(crate) fn of(
        options: &'p DeviceOptions,
        setup: &'p Setup,
        inside: &'p Namespace,
        bridges: &'p [BridgePlan],
    ) -> Self {
        let usual = options.kind.modes()[0];
        Self {
            options,
            settings: &setup.settings,
            inside,
            bridges,
            fail_mode: setup.fail_mode,
            mode: setup.mode.unwrap_or(usual),
            mtu: setup.topology.mtu(),
        }
    }

    /// Returns the ports of a bridge, each with its OpenFlow number and a number that is unique in
    /// the device, from 1.
    fn ports<'a>(&self, bridge: &'a BridgePlan) -> impl Iterator<Item = PlanPort<'a>> {
        let before = self
            .bridges
            .iter()
            .take_while(|one| one.name != bridge.name);
        let first: usize = 1 + before.map(|one| one.ports.len()).sum::<usize>();
        let ports = bridge.ports.iter().zip(1..).zip(first..);
        ports.map(|((name, number), unique)| PlanPort {
            name,
            number,
            unique,
        })
    }
}

/// A port of a bridge.
#[derive(Clone, Copy, Debug)]
struct PlanPort<'a> {
    name: &'a str,
    number: u32,
    unique: usize,
}

impl DeviceOptions {
    /// Returns the socket on which the device's first bridge expects its controller. Listen there
    /// before the device starts.
    #[must_use]
    pub fn controller_socket(&self) -> PathBuf {
        self.controller_socket_of("br0")
    }

    /// Returns the controller socket of a bridge. Open vSwitch dictates the names.
    #[must_use]
    pub fn controller_socket_of(&self, bridge: &str) -> PathBuf {
        self.directory.join(format!("{bridge}.controller"))
    }

    fn controller(&self, bridge: &str) -> String {
        format!("unix:{}", self.controller_socket_of(bridge).display())
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }
}

/// A thread of this process that forwards.
#[derive(Debug)]
enum ForwardingThread {
    Forwarder(Forwarder),
    Impairment(Impairment),
}

impl ForwardingThread {
    fn check(&self) -> Result<(), Failure> {
        match self {
            Self::Forwarder(forwarder) => forwarder.check(),
            Self::Impairment(impairment) => impairment.check(),
        }
    }
}

/// A running device.
#[derive(Debug)]
pub struct Device {
    kind: DeviceKind,
    mode: Mode,
    version: String,
    // Dropped in this order: the data path before its dependencies.
    thread: Option<ForwardingThread>,
    forwarding: Option<Process>,
    helpers: Vec<Process>,
    commands: Vec<String>,
}

impl Device {
    /// Creates a device without processes.
    fn bare(plan: DevicePlan<'_>, version: impl Into<String>) -> Self {
        Self {
            kind: plan.options.kind,
            mode: plan.mode,
            version: version.into(),
            thread: None,
            forwarding: None,
            helpers: Vec::new(),
            commands: Vec::new(),
        }
    }

    /// Adds a note about its setup.
    fn with_note(mut self, note: Option<&str>) -> Self {
        self.commands.extend(note.map(|note| format!("# {note}")));
        self
    }

    /// Starts the device of `options` at the links in `inside`.
    pub(crate) fn start(
        spawner: &Spawner,
        clock: &Clock,
        inside: &Namespace,
        options: &DeviceOptions,
        setup: &Setup,
    ) -> Result<Self, Failure> {
        let bridges = setup.topology.bridges();
        let plan = DevicePlan::of(options, setup, inside, &bridges);
        let vlans = setup.topology.ports() == PortKind::Vlan;
        let device = Self::start_as(spawner, clock, plan)?;
        Ok(device.with_note(vlans.then(vlan::implementation)))
    }

    fn start_as(spawner: &Spawner, clock: &Clock, plan: DevicePlan<'_>) -> Result<Self, Failure> {
        match plan.options.kind {
            DeviceKind::VlanBridge | DeviceKind::OvsVlanBridge if plan.mode == Mode::Legacy => {
                Ok(linux_bridge::behind(plan))
            }
            DeviceKind::Comporta
            | DeviceKind::ComportaXdp
            | DeviceKind::ComportaDpdk
            | DeviceKind::ComportaTap
            | DeviceKind::VlanBridge => comporta::start(spawner, plan),
            DeviceKind::Ovs
            | DeviceKind::OvsTso
            | DeviceKind::OvsAfxdp
            | DeviceKind::OvsDpdk
            | DeviceKind::OvsTap
            | DeviceKind::OvsVlanBridge => ovs::start(spawner, clock, plan),
            DeviceKind::LinuxBridge => linux_bridge::start(plan),
            DeviceKind::Nftables => nftables::start(plan),
            DeviceKind::Forwarder => forwarder::start(plan),
            DeviceKind::Impaired(_) => impaired::start(clock, plan),
            DeviceKind::External(_) => external::start(spawner, plan),
            DeviceKind::Direct => Ok(Self::bare(plan, "veth pair")),
        }
    }

    /// Returns the kind.
    #[must_use]
    pub const fn kind(&self) -> DeviceKind {
        self.kind
    }

    /// Returns the forwarding mode.
    #[must_use]
    pub const fn mode(&self) -> Mode {
        self.mode
    }

    /// Returns its faults and their counts, or `None` if it has no known faults.
    #[must_use]
    pub const fn impairment(&self) -> Option<&Impairment> {
        match &self.thread {
            Some(ForwardingThread::Impairment(impairment)) => Some(impairment),
            _ => None,
        }
    }

    /// Returns the ids of its processes, the data path first.
    #[must_use]
    pub fn processes(&self) -> Vec<u32> {
        let all = self.forwarding.iter().chain(&self.helpers);
        all.map(Process::id).collect()
    }

    /// Returns its version text.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Returns the commands of its setup, as a user would type them.
    #[must_use]
    pub fn commands(&self) -> &[String] {
        &self.commands
    }

    /// Checks that its programs are running.
    ///
    /// # Errors
    /// A program has ended; the error has the end of its log.
    pub fn check(&mut self) -> Result<(), Failure> {
        if let Some(thread) = &self.thread {
            thread.check()?;
        }
        for process in self.forwarding.iter_mut().chain(&mut self.helpers) {
            if !process.is_running() {
                let status = process.wait(Duration::ZERO)?;
                return Err(process.failed(status));
            }
        }
        Ok(())
    }

    /// Returns the end of the data path's log, or `None` if it is no process.
    #[must_use]
    pub fn last_words(&self) -> Option<String> {
        self.forwarding.as_ref().map(Process::last_words)
    }

    /// Returns the resource usage of the data path, or `None` if that is the kernel.
    ///
    /// # Errors
    /// The process has ended.
    pub fn usage(&self) -> Result<Option<Usage>, Failure> {
        self.forwarding
            .as_ref()
            .map(Process::usage)
            .transpose()
            .map_err(Failure::to(format!(
                "read the resource usage of {}",
                self.kind
            )))
    }
}

/// Returns the first line of `program --version`.
fn version(spawner: &Spawner, program: &str, options: &DeviceOptions) -> Result<String, Failure> {
    let file = options.file("version.txt");
    let command = Program::new(program).arg("--version").output(&file);
    let mut process = spawner.start(command)?;
    let status = process.wait(START)?;
    if !status.success() {
        return Err(process.failed(status));
    }
    let text = process.written()?;
    Ok(text.lines().next().unwrap_or_default().trim().to_owned())
}
