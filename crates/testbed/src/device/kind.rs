//! The kinds of devices: their names, what each can do, and what must be there for it.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use super::Mode;
use super::described::{Described, near};
use crate::{Missing, OpenVswitch, Requirement, Topology};

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
    /// This project's switch behind a Linux bridge that gives each port a VLAN of its own.
    VlanBridge,
    /// Open vSwitch behind the same.
    OvsVlanBridge,
    /// No device: one cable between the hosts, for calibration.
    Direct,
    /// A forwarder with known faults, to check the tester with; by a file, if there is one.
    Impaired(Option<Described>),
    /// Any switch at network cards of this machine, as a file describes it.
    External(Described),
}

impl DeviceKind {
    /// Every kind that compares, in the order of reports: none that a file describes.
    pub const ALL: [Self; 14] = [
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
        Self::VlanBridge,
        Self::OvsVlanBridge,
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
            Self::VlanBridge => "vlan-bridge",
            Self::OvsVlanBridge => "ovs-vlan-bridge",
            Self::Direct => "direct",
            Self::Impaired(None) => IMPAIRED,
            Self::Impaired(Some(file)) | Self::External(file) => file.name(),
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
            Self::VlanBridge => "this project's switch on VLANs of a Linux bridge, one a port",
            Self::OvsVlanBridge => "Open vSwitch on VLANs of a Linux bridge, one a port",
            Self::Direct => "no device: one cable between the hosts, for calibration",
            Self::Impaired(_) => "a forwarder with known faults, to check the tester with",
            Self::External(_) => "a switch at this machine's network cards, as a file tells",
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

    /// Whether it calls a controller, unless it is told otherwise.
    #[must_use]
    pub const fn speaks_openflow(self) -> bool {
        matches!(self.modes(), [Mode::OpenFlow, ..])
    }

    /// The modes it can be in, the usual one first. What a file describes may have fewer.
    #[must_use]
    pub const fn modes(self) -> &'static [Mode] {
        match self {
            Self::Comporta
            | Self::ComportaXdp
            | Self::ComportaDpdk
            | Self::ComportaTap
            | Self::Ovs
            | Self::OvsTso
            | Self::OvsAfxdp
            | Self::OvsDpdk
            | Self::OvsTap
            | Self::VlanBridge
            | Self::OvsVlanBridge
            | Self::External(_) => &Mode::ALL,
            Self::LinuxBridge | Self::Forwarder | Self::Direct | Self::Impaired(_) => {
                &[Mode::Legacy]
            }
        }
    }

    /// What its ports are, in a few words.
    #[must_use]
    pub const fn port_kind(self) -> &'static str {
        match self {
            Self::Comporta | Self::Ovs | Self::OvsTso | Self::Forwarder | Self::Impaired(_) => {
                "veth by packet sockets"
            }
            Self::ComportaXdp | Self::OvsAfxdp => "veth by AF_XDP",
            Self::ComportaDpdk | Self::OvsDpdk => "veth by DPDK's packet sockets",
            Self::ComportaTap | Self::OvsTap => "TAP interfaces of its hosts",
            Self::VlanBridge | Self::OvsVlanBridge => "VLAN interfaces by packet sockets",
            Self::LinuxBridge => "veth in the kernel",
            Self::Direct => "none",
            Self::External(_) => "network cards",
        }
    }

    /// Whether it can be a part of `topology`.
    ///
    /// # Errors
    /// Why not.
    pub fn check_topology(self, topology: &Topology) -> Result<(), String> {
        let unfit = match self {
            Self::Direct => {
                (!topology.is_of_pairs() || topology.is_chain()).then_some("a cable has two ends")
            }
            Self::Forwarder | Self::Impaired(_) => {
                (topology.hosts() > 2 || topology.is_chain()).then_some("it has two ports")
            }
            Self::ComportaTap | Self::OvsTap => topology
                .is_chain()
                .then_some("its bridges would have to share TAP interfaces"),
            Self::External(_) => {
                (topology.bridges().len() > 1).then_some("it is one switch, whatever is in it")
            }
            _ => None,
        };
        let vlans = topology.ports() == crate::PortKind::Vlan;
        let unfit = unfit.or_else(|| {
            let has_none = self.makes_taps() || matches!(self, Self::Direct | Self::External(_));
            (vlans && has_none).then_some("no bridge of the lab's is before it")
        });
        match unfit {
            Some(why) => Err(format!(
                "{self} cannot be in the topology {topology}: {why}"
            )),
            None => Ok(()),
        }
    }

    /// Whether it looks for frames without ever sleeping, and so takes a core from whatever
    /// else is on it.
    #[must_use]
    pub const fn polls(self) -> bool {
        match self {
            Self::ComportaDpdk
            | Self::OvsAfxdp
            | Self::OvsDpdk
            | Self::Forwarder
            | Self::Impaired(_) => true,
            Self::Comporta
            | Self::ComportaXdp
            | Self::ComportaTap
            | Self::LinuxBridge
            | Self::VlanBridge
            | Self::OvsVlanBridge
            | Self::External(_)
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
            | Self::OvsVlanBridge
            | Self::Forwarder
            | Self::Impaired(_) => false,
            Self::Comporta
            | Self::ComportaXdp
            | Self::ComportaTap
            | Self::LinuxBridge
            | Self::VlanBridge
            | Self::OvsTso
            | Self::Direct
            | Self::External(_) => true,
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
            Self::VlanBridge => all.extend([Requirement::Bridge, Requirement::Tun]),
            Self::OvsVlanBridge => {
                all.push(Requirement::Bridge);
                all.extend(OpenVswitch::requirements());
            }
            Self::Forwarder | Self::Direct | Self::Impaired(_) | Self::External(_) => {}
        }
        all
    }
}

impl fmt::Display for DeviceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What [`DeviceKind::Impaired`] is called.
const IMPAIRED: &str = "impaired";

/// The text names no kind of device.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no device '{text}': {hint}one of {all} is wanted, or external:FILE", all = names())]
pub struct UnknownDevice {
    text: String,
    hint: String,
}

impl UnknownDevice {
    fn new(text: &str) -> Self {
        let names = DeviceKind::ALL.map(DeviceKind::name);
        let hint = near(text, names.into_iter().chain([IMPAIRED]));
        Self {
            text: text.to_owned(),
            hint: hint.map_or_else(String::new, |name| format!("is {name} meant? ")),
        }
    }
}

fn names() -> String {
    DeviceKind::ALL.map(DeviceKind::name).join(", ")
}

impl FromStr for DeviceKind {
    type Err = UnknownDevice;

    /// Reads a name, or `external:FILE`, `impaired`, `impaired:FILE`.
    fn from_str(text: &str) -> Result<Self, UnknownDevice> {
        let unknown = || UnknownDevice::new(text);
        let is_known = |name: &str| Self::ALL.iter().any(|kind| kind.name() == name);
        // In records and reports devices are told apart by their names.
        let described = |path: &str| {
            let described = Described::by(path).filter(|file| !is_known(file.name()));
            described.ok_or_else(unknown)
        };
        match text.split_once(':') {
            Some(("external", path)) => Ok(Self::External(described(path)?)),
            Some((IMPAIRED, path)) => Ok(Self::Impaired(Some(described(path)?))),
            _ if text == IMPAIRED => Ok(Self::Impaired(None)),
            _ => Self::ALL
                .into_iter()
                .find(|kind| kind.name() == text)
                .ok_or_else(unknown),
        }
    }
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
            "there is no device 'bridge': one of comporta, comporta-xdp, comporta-dpdk, comporta-tap, ovs, ovs-tso, ovs-afxdp, ovs-dpdk, ovs-tap, linux-bridge, vlan-bridge, ovs-vlan-bridge, forwarder, direct is wanted, or external:FILE"
        );
        let error = "linux-brigde".parse::<DeviceKind>().unwrap_err();
        assert!(
            error.to_string().contains("is linux-bridge meant?"),
            "{error}"
        );
    }

    #[test]
    fn what_a_file_describes_is_called_as_the_file() {
        let external: DeviceKind = "external:lab/hp-2920.toml".parse().unwrap();
        assert_eq!(external.to_string(), "hp-2920");
        let impaired: DeviceKind = "impaired:slow.toml".parse().unwrap();
        assert_eq!(impaired.name(), "slow");
        assert_eq!("impaired".parse(), Ok(DeviceKind::Impaired(None)));
        assert!("external:ovs.toml".parse::<DeviceKind>().is_err(), "taken");
        assert!("external:".parse::<DeviceKind>().is_err());
    }

    #[test]
    fn devices_are_asked_only_what_they_can_be() {
        let chain = Topology::chain(4).unwrap();
        assert!(DeviceKind::Ovs.check_topology(&chain).is_ok());
        assert_eq!(
            DeviceKind::Direct.check_topology(&chain).unwrap_err(),
            "direct cannot be in the topology chain-4: a cable has two ends"
        );
        let jumbo = Topology::default().with_mtu(9_000).unwrap();
        assert!(DeviceKind::Forwarder.check_topology(&jumbo).is_ok());
        assert!(DeviceKind::Forwarder.check_topology(&chain).is_err());
        let vlans = Topology::default().with_ports(crate::PortKind::Vlan);
        assert!(DeviceKind::Forwarder.check_topology(&vlans).is_ok());
        assert!(DeviceKind::OvsTap.check_topology(&vlans).is_err());
    }
}
