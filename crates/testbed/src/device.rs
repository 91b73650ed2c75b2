//! Devices under test: what joins the two hosts of a [`Bench`](crate::Bench),
//! started the way its users start it.
//!
//! One file a kind; the set is closed, since each is set up with care for a fair
//! comparison. Rules and traffic are the caller's business.

mod comporta;
mod forwarder;
mod linux_bridge;
mod ovs;

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use crate::forwarder::Forwarder;
use crate::{
    Clock, Failure, Missing, Namespace, OpenVswitch, Process, Program, Requirement, Spawner, Usage,
};

/// The ports of a device, in the order of their OpenFlow numbers, from 1.
pub(crate) const PORTS: [&str; 2] = ["p1", "p2"];

/// How long a device may take to come up, and a tool of its to end.
const START: Duration = Duration::from_secs(20);

/// A kind of device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DeviceKind {
    /// This project's switch.
    Comporta,
    /// The same with ports of AF_XDP.
    ComportaXdp,
    /// The same with ports of DPDK, by packet sockets.
    ComportaDpdk,
    /// The same with TAP interfaces, which its hosts have as theirs.
    ComportaTap,
    /// The kernel's bridge, which learns addresses and knows no OpenFlow.
    LinuxBridge,
    /// Open vSwitch with its userspace data path on ordinary ports, as it comes.
    Ovs,
    /// The same with `userspace-tso-enable=true`, which is off unless asked for.
    OvsTso,
    /// The same with AF_XDP ports (`type=afxdp`), which poll without sleeping.
    OvsAfxdp,
    /// The same with ports of DPDK, by packet sockets, which poll without sleeping.
    OvsDpdk,
    /// The same with TAP interfaces, which its hosts have as theirs.
    OvsTap,
    /// The smallest forwarder on packet sockets: no switch at all.
    Forwarder,
    /// No device: one cable between the hosts, for calibration.
    Direct,
}

impl DeviceKind {
    /// Every kind, in the order of reports.
    pub const ALL: [Self; 12] = [
        Self::Comporta,
        Self::ComportaXdp,
        Self::ComportaDpdk,
        Self::ComportaTap,
        Self::Ovs,
        Self::OvsTso,
        Self::OvsAfxdp,
        Self::OvsDpdk,
        Self::OvsTap,
        Self::LinuxBridge,
        Self::Forwarder,
        Self::Direct,
    ];

    /// The name it is asked for by.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Comporta => "comporta",
            Self::ComportaXdp => "comporta-xdp",
            Self::ComportaDpdk => "comporta-dpdk",
            Self::ComportaTap => "comporta-tap",
            Self::LinuxBridge => "linux-bridge",
            Self::Ovs => "ovs",
            Self::OvsTso => "ovs-tso",
            Self::OvsAfxdp => "ovs-afxdp",
            Self::OvsDpdk => "ovs-dpdk",
            Self::OvsTap => "ovs-tap",
            Self::Forwarder => "forwarder",
            Self::Direct => "direct",
        }
    }

    /// What it is, in a line.
    #[must_use]
    pub const fn about(self) -> &'static str {
        match self {
            Self::Comporta => "this project's switch, as a process of its own",
            Self::ComportaXdp => "the same with ports of AF_XDP",
            Self::ComportaDpdk => "the same with ports of DPDK, by packet sockets (net_af_packet)",
            Self::ComportaTap | Self::OvsTap => {
                "the same with TAP interfaces, which the hosts have as theirs"
            }
            Self::Ovs => "Open vSwitch's userspace data path on ordinary ports, as it comes",
            Self::OvsTso => "the same with userspace-tso-enable=true",
            Self::OvsAfxdp => "the same with ports of AF_XDP",
            Self::OvsDpdk => "the same with ports of DPDK, by packet sockets (net_af_packet)",
            Self::Forwarder => "the smallest forwarder on packet sockets, which reads no frame",
            Self::LinuxBridge => "the kernel's bridge, which knows no OpenFlow",
            Self::Direct => "no device: one cable between the hosts, for calibration",
        }
    }

    /// What must still be done before it can be used here, if anything; `comporta` is the
    /// program that would be started.
    ///
    /// # Errors
    /// The first requirement that is not met, with its remedy.
    pub fn check_requirements(self, comporta: &Path) -> Result<(), Missing> {
        crate::check(&self.requirements(comporta))
    }

    /// Whether it calls a controller.
    #[must_use]
    pub const fn speaks_openflow(self) -> bool {
        match self {
            Self::Comporta
            | Self::ComportaXdp
            | Self::ComportaDpdk
            | Self::ComportaTap
            | Self::Ovs
            | Self::OvsTso
            | Self::OvsAfxdp
            | Self::OvsDpdk
            | Self::OvsTap => true,
            Self::LinuxBridge | Self::Forwarder | Self::Direct => false,
        }
    }

    /// Whether it looks for frames without ever sleeping, and so takes a core from whatever
    /// else is on it.
    #[must_use]
    pub const fn polls(self) -> bool {
        match self {
            Self::ComportaDpdk | Self::OvsAfxdp | Self::OvsDpdk | Self::Forwarder => true,
            Self::Comporta
            | Self::ComportaXdp
            | Self::ComportaTap
            | Self::LinuxBridge
            | Self::Ovs
            | Self::OvsTso
            | Self::OvsTap
            | Self::Direct => false,
        }
    }

    /// Whether its ports are TAP interfaces: it makes them, and there are no cables.
    #[must_use]
    pub const fn makes_taps(self) -> bool {
        matches!(self, Self::ComportaTap | Self::OvsTap)
    }

    /// Whether its hosts may leave checksums and segmentation to the device.
    /// Open vSwitch's userspace ports pass frames on without the metadata that
    /// says so, unless TSO is enabled: the receiver would drop them. DPDK's packet sockets
    /// have no place for it.
    #[must_use]
    pub const fn bears_offloads(self) -> bool {
        match self {
            Self::ComportaDpdk
            | Self::Ovs
            | Self::OvsAfxdp
            | Self::OvsDpdk
            | Self::OvsTap
            | Self::Forwarder => false,
            Self::Comporta
            | Self::ComportaXdp
            | Self::ComportaTap
            | Self::LinuxBridge
            | Self::OvsTso
            | Self::Direct => true,
        }
    }

    /// What must be there for it to be set up; `comporta` is the program that would be
    /// started.
    #[must_use]
    pub fn requirements(self, comporta: &Path) -> Vec<Requirement> {
        let mut all = vec![Requirement::Namespaces, Requirement::Veth];
        match self {
            Self::Comporta | Self::ComportaXdp | Self::ComportaTap => all.push(Requirement::Tun),
            Self::ComportaDpdk => {
                all.extend([Requirement::Tun, Requirement::WithDpdk(comporta.to_owned())])
            }
            Self::OvsDpdk => all.extend(OpenVswitch::requirements_with_dpdk()),
            Self::LinuxBridge => all.push(Requirement::Bridge),
            Self::Ovs | Self::OvsTso | Self::OvsAfxdp => all.extend(OpenVswitch::requirements()),
            Self::OvsTap => {
                all.push(Requirement::Tun);
                all.extend(OpenVswitch::requirements());
            }
            Self::Forwarder | Self::Direct => {}
        }
        all
    }
}

impl fmt::Display for DeviceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The text names no kind of device.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no device '{0}': one of {all} is wanted", all = names())]
pub struct UnknownDevice(pub String);

fn names() -> String {
    DeviceKind::ALL.map(DeviceKind::name).join(", ")
}

impl FromStr for DeviceKind {
    type Err = UnknownDevice;

    fn from_str(text: &str) -> Result<Self, UnknownDevice> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.name() == text)
            .ok_or_else(|| UnknownDevice(text.to_owned()))
    }
}

/// How a device is set up.
#[derive(Clone, Debug)]
pub struct DeviceOptions {
    /// Which.
    pub kind: DeviceKind,
    /// An existing directory for its sockets, files and logs.
    pub directory: PathBuf,
    /// The cores it may use.
    pub cores: Vec<usize>,
    /// The program `comporta`.
    pub comporta: PathBuf,
}

impl DeviceOptions {
    /// The socket on which the device expects its controller; the name is the one
    /// that Open vSwitch insists on for a bridge called `br0`. Listen there
    /// before the device is started.
    #[must_use]
    pub fn controller_socket(&self) -> PathBuf {
        self.directory.join("br0.controller")
    }

    fn controller(&self) -> String {
        format!("unix:{}", self.controller_socket().display())
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }
}

/// A running device.
#[derive(Debug)]
pub struct Device {
    kind: DeviceKind,
    version: String,
    // Dropped in this order: what forwards goes before what it depends on.
    thread: Option<Forwarder>,
    forwarding: Option<Process>,
    helpers: Vec<Process>,
    commands: Vec<String>,
}

impl Device {
    pub(crate) fn start(
        spawner: &Spawner,
        clock: &Clock,
        inside: &Namespace,
        options: &DeviceOptions,
    ) -> Result<Self, Failure> {
        match options.kind {
            DeviceKind::Comporta
            | DeviceKind::ComportaXdp
            | DeviceKind::ComportaDpdk
            | DeviceKind::ComportaTap => comporta::start(spawner, inside, options),
            DeviceKind::LinuxBridge => linux_bridge::start(inside),
            DeviceKind::Forwarder => forwarder::start(inside, options),
            DeviceKind::Ovs
            | DeviceKind::OvsTso
            | DeviceKind::OvsAfxdp
            | DeviceKind::OvsDpdk
            | DeviceKind::OvsTap => ovs::start(spawner, clock, inside, options),
            DeviceKind::Direct => Ok(Self {
                kind: DeviceKind::Direct,
                version: "veth pair".to_owned(),
                thread: None,
                forwarding: None,
                helpers: Vec::new(),
                commands: Vec::new(),
            }),
        }
    }

    /// Its kind.
    #[must_use]
    pub const fn kind(&self) -> DeviceKind {
        self.kind
    }

    /// What it says of its version.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The commands that set it up, as one would type them.
    #[must_use]
    pub fn commands(&self) -> &[String] {
        &self.commands
    }

    /// Checks that its programs still run.
    ///
    /// # Errors
    /// The first that has ended, with its last words.
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

    /// What the process that forwards has used; none if that is the kernel itself.
    ///
    /// # Errors
    /// The process is gone.
    pub fn usage(&self) -> Result<Option<Usage>, Failure> {
        self.forwarding
            .as_ref()
            .map(Process::usage)
            .transpose()
            .map_err(Failure::to(format!("read what {} uses", self.kind)))
    }
}

/// The first line that `program --version` prints.
fn version(spawner: &Spawner, program: &str, options: &DeviceOptions) -> Result<String, Failure> {
    let file = options.file("version.txt");
    let asked = Program::new(program).arg("--version").output(&file);
    let mut process = spawner.start(asked)?;
    let status = process.wait(START)?;
    if !status.success() {
        return Err(process.failed(status));
    }
    let text = process.written()?;
    Ok(text.lines().next().unwrap_or_default().trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_read_by_the_name_they_print() {
        for kind in DeviceKind::ALL {
            assert_eq!(kind.to_string().parse(), Ok(kind));
        }
        assert_eq!(
            "bridge".parse::<DeviceKind>().unwrap_err().to_string(),
            "there is no device 'bridge': one of comporta, comporta-xdp, comporta-dpdk, comporta-tap, ovs, ovs-tso, ovs-afxdp, ovs-dpdk, ovs-tap, linux-bridge, forwarder, direct is wanted"
        );
    }
}
