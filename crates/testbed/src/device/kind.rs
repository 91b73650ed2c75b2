//! The kinds of devices: names, capabilities and requirements.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use super::Mode;
use super::description_file::{DescriptionFile, near};
use crate::{Missing, OpenVswitch, Requirement, Topology};

/// A kind of device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DeviceKind {
    /// This project's switch.
    Comporta,
    /// This project's switch with AF_XDP ports.
    ComportaXdp,
    /// This project's switch with DPDK ports on packet sockets.
    ComportaDpdk,
    /// This project's switch with TAP interfaces, which are the interfaces of the hosts.
    ComportaTap,
    /// The Linux bridge, which learns MAC addresses and has no OpenFlow.
    LinuxBridge,
    /// The Linux bridge whose packets pass nftables and the kernel's connection tracking.
    Nftables,
    /// Open vSwitch with its userspace data path on system ports, in its default configuration.
    Ovs,
    /// Open vSwitch with `userspace-tso-enable=true`, which is off by default.
    OvsTso,
    /// Open vSwitch with AF_XDP ports (`type=afxdp`), which busy-poll.
    OvsAfxdp,
    /// Open vSwitch with DPDK ports on packet sockets, which busy-poll.
    OvsDpdk,
    /// Open vSwitch with TAP interfaces, which are the interfaces of the hosts.
    OvsTap,
    /// The minimal forwarder on packet sockets, not a switch.
    Forwarder,
    /// This project's switch behind a Linux bridge with a separate VLAN for each port.
    VlanBridge,
    /// Open vSwitch behind such a bridge.
    OvsVlanBridge,
    /// No device: one link between the hosts, for calibration.
    Direct,
    /// A forwarder with known faults, to validate the tester; with a description file, if any.
    Impaired(Option<DescriptionFile>),
    /// An external switch at network cards of this machine, from a description file.
    External(DescriptionFile),
}

impl DeviceKind {
    /// All comparable kinds in the order of reports, without those that a file describes.
    pub const ALL: [Self; 15] = [
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
        Self::Nftables,
        Self::VlanBridge,
        Self::OvsVlanBridge,
        Self::Forwarder,
        Self::Direct,
    ];

    /// The name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Comporta => "comporta",
            Self::ComportaXdp => "comporta-xdp",
            Self::ComportaDpdk => "comporta-dpdk",
            Self::ComportaTap => "comporta-tap",
            Self::LinuxBridge => "linux-bridge",
            Self::Nftables => "nftables",
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

    /// A description in one line.
    #[must_use]
    pub const fn about(self) -> &'static str {
        match self {
            Self::Comporta => "this project's switch, as a separate process",
            Self::ComportaXdp => "the same with AF_XDP ports",
            Self::ComportaDpdk => "the same with DPDK ports on packet sockets (net_af_packet)",
            Self::ComportaTap | Self::OvsTap => {
                "the same with TAP interfaces, which belong to the hosts"
            }
            Self::Ovs => "Open vSwitch's userspace data path on system ports, with its defaults",
            Self::OvsTso => "the same with userspace-tso-enable=true",
            Self::OvsAfxdp => "the same with AF_XDP ports",
            Self::OvsDpdk => "the same with DPDK ports on packet sockets (net_af_packet)",
            Self::Forwarder => "a minimal forwarder on packet sockets, which parses no frame",
            Self::LinuxBridge => "the Linux bridge, without OpenFlow",
            Self::Nftables => "the Linux bridge with nftables and the kernel's connection tracking",
            Self::VlanBridge => {
                "this project's switch behind a Linux bridge, with a VLAN for each port"
            }
            Self::OvsVlanBridge => "Open vSwitch behind a Linux bridge, with a VLAN for each port",
            Self::Direct => "no device: one cable between the hosts, for calibration",
            Self::Impaired(_) => "a forwarder with known faults, to validate the tester",
            Self::External(_) => "a switch at this machine's network cards, described by a file",
        }
    }

    /// Checks that it can be used here; `comporta` is the program to start.
    ///
    /// # Errors
    /// The first requirement that is not met, with its remedy.
    pub fn check_requirements(self, comporta: &Path) -> Result<(), Missing> {
        crate::check(&self.requirements(comporta))
    }

    /// Returns true if it connects to a controller in its default mode.
    #[must_use]
    pub const fn speaks_openflow(self) -> bool {
        matches!(self.modes(), [Mode::OpenFlow, ..])
    }

    /// The supported modes, the default first. A described device may support fewer.
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
            Self::LinuxBridge
            | Self::Nftables
            | Self::Forwarder
            | Self::Direct
            | Self::Impaired(_) => &[Mode::Legacy],
        }
    }

    /// The type of its ports, in a few words.
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
            Self::LinuxBridge | Self::Nftables => "veth in the kernel",
            Self::Direct => "none",
            Self::External(_) => "network cards",
        }
    }

    /// Checks that it supports `topology`.
    ///
    /// # Errors
    /// The reason why not.
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
            Self::External(_) => (topology.bridges().len() > 1).then_some("it is one switch"),
            _ => None,
        };
        let vlans = topology.ports() == crate::PortKind::Vlan;
        let unfit = unfit.or_else(|| {
            let has_none = self.makes_taps() || matches!(self, Self::Direct | Self::External(_));
            (vlans && has_none).then_some("it has no front bridge of the lab")
        });
        match unfit {
            Some(why) => Err(format!(
                "{self} cannot be in the topology {topology}: {why}"
            )),
            None => Ok(()),
        }
    }

    /// Returns true if it busy-polls, and thus occupies a core.
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
            | Self::Nftables
            | Self::VlanBridge
            | Self::OvsVlanBridge
            | Self::External(_)
            | Self::Ovs
            | Self::OvsTso
            | Self::OvsTap
            | Self::Direct => false,
        }
    }

    /// Returns true if its ports are TAP interfaces: it creates them, and there are no links.
    #[must_use]
    pub const fn makes_taps(self) -> bool {
        matches!(self, Self::ComportaTap | Self::OvsTap)
    }

    /// Returns true if its hosts may leave checksums and segmentation to the device. Open vSwitch's
    /// userspace ports forward frames without the offload metadata unless TSO is enabled, and the
    /// receiver would drop them. DPDK's packet sockets do not carry the metadata.
    #[must_use]
    pub const fn supports_offloads(self) -> bool {
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
            | Self::Nftables
            | Self::VlanBridge
            | Self::OvsTso
            | Self::Direct
            | Self::External(_) => true,
        }
    }

    /// Returns the requirements of its setup; `comporta` is the program to start.
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
            Self::Nftables => all.extend([
                Requirement::Bridge,
                Requirement::BridgeHooks,
                Requirement::Program {
                    program: "nft",
                    package: "nftables",
                },
            ]),
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

/// The name of [`DeviceKind::Impaired`].
const IMPAIRED: &str = "impaired";

/// The text is not the name of a device kind.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown device '{text}': {hint}expected one of {all}, or external:FILE", all = names())]
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
            hint: hint.map_or_else(String::new, |name| format!("did you mean {name}? ")),
        }
    }
}

fn names() -> String {
    DeviceKind::ALL.map(DeviceKind::name).join(", ")
}

impl FromStr for DeviceKind {
    type Err = UnknownDevice;

    /// Parses a name, or `external:FILE`, `impaired`, `impaired:FILE`.
    fn from_str(text: &str) -> Result<Self, UnknownDevice> {
        let unknown = || UnknownDevice::new(text);
        let is_known = |name: &str| Self::ALL.iter().any(|kind| kind.name() == name);
        // Records and reports identify devices by their names, so a file may not use a built-in
        // one.
        let description_file = |path: &str| {
            let description_file = DescriptionFile::new(path).filter(|file| !is_known(file.name()));
            description_file.ok_or_else(unknown)
        };
        match text.split_once(':') {
            Some(("external", path)) => Ok(Self::External(description_file(path)?)),
            Some((IMPAIRED, path)) => Ok(Self::Impaired(Some(description_file(path)?))),
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
    fn device_kinds_parse_the_name_that_they_print() {
        for kind in DeviceKind::ALL {
            assert_eq!(kind.to_string().parse(), Ok(kind));
        }
        assert_eq!(
            "bridge".parse::<DeviceKind>().unwrap_err().to_string(),
            "unknown device 'bridge': expected one of comporta, comporta-xdp, comporta-dpdk, comporta-tap, ovs, ovs-tso, ovs-afxdp, ovs-dpdk, ovs-tap, linux-bridge, nftables, vlan-bridge, ovs-vlan-bridge, forwarder, direct, or external:FILE"
        );
        let error = "linux-brigde".parse::<DeviceKind>().unwrap_err();
        assert!(
            error.to_string().contains("did you mean linux-bridge?"),
            "{error}"
        );
    }

    #[test]
    fn device_kind_of_a_file_has_the_name_of_the_file() {
        let external: DeviceKind = "external:lab/hp-2920.toml".parse().unwrap();
        assert_eq!(external.to_string(), "hp-2920");
        let impaired: DeviceKind = "impaired:slow.toml".parse().unwrap();
        assert_eq!(impaired.name(), "slow");
        assert_eq!("impaired".parse(), Ok(DeviceKind::Impaired(None)));
        assert!("external:ovs.toml".parse::<DeviceKind>().is_err(), "taken");
        assert!("external:".parse::<DeviceKind>().is_err());
    }

    #[test]
    fn device_kinds_refuse_unsupported_topologies() {
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
