//! The interfaces of the ports.

use crate::finding::{Finding, Remedy};
use crate::{CpuList, Host, SwitchSetup};

/// Runs all checks of ports.
pub(crate) fn all(host: &Host, setup: &SwitchSetup) -> Vec<Finding> {
    let mut findings = Vec::new();
    for port in &setup.ports {
        if !host.has(format!("/sys/class/net/{port}")) {
            findings.push(Finding::fails(
                port,
                "no such interface",
                "the port cannot be opened",
                Remedy::Command(format!(
                    "ip link show; check its name, {port:?}, and its namespace"
                )),
            ));
            continue;
        }
        let before = findings.len();
        findings.extend(
            PORT_CHECKS
                .iter()
                .filter_map(|port_check| port_check(host, setup, port)),
        );
        if findings.len() == before {
            findings.push(Finding::fine(port, "no problems"));
        }
    }
    findings.extend(lengths(host, setup));
    findings
}

/// A check of one port; returns none if there is no problem.
type PortCheck = fn(&Host, &SwitchSetup, &str) -> Option<Finding>;

const PORT_CHECKS: [PortCheck; 8] = [
    state, carrier, node, steering, strictness, forwarding, merging, ring,
];

/// Checks that the interface is administratively up.
fn state(host: &Host, _: &SwitchSetup, port: &str) -> Option<Finding> {
    const UP: u64 = 1;
    let text = host.read(format!("/sys/class/net/{port}/flags"))?;
    let flags = u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()?;
    (flags & UP == 0).then(|| {
        Finding::costs(
            port,
            "down",
            "no frames are received or sent",
            Remedy::Command(format!("ip link set {port} up")),
        )
    })
}

fn carrier(host: &Host, _: &SwitchSetup, port: &str) -> Option<Finding> {
    // The file cannot be read while the interface is down.
    let carrier = host.number(format!("/sys/class/net/{port}/carrier"));
    (carrier == Some(0)).then(|| {
        Finding::costs(
            port,
            "up, but without carrier",
            "no frames are received, and sent frames are lost",
            Remedy::Advice("check the cable, and the device at its other end"),
        )
    })
}

/// Checks that the device is on the NUMA node of the workers' cores.
fn node(host: &Host, setup: &SwitchSetup, port: &str) -> Option<Finding> {
    let node = host.number(format!("/sys/class/net/{port}/device/numa_node"))?;
    let near = host.read(format!("/sys/devices/system/node/node{node}/cpulist"))?;
    let near: CpuList = near.parse().ok()?;
    let far = setup.cores.without(&near);
    (!far.is_empty()).then(|| {
        Finding::costs(
            port,
            format!("on NUMA node {node}, unlike core {far}"),
            "each frame crosses the link between NUMA nodes",
            Remedy::Advice("select cores of the device's node with --cores"),
        )
    })
}

/// Checks that the kernel does not steer the port's frames to the workers' cores (receive packet
/// steering).
fn steering(host: &Host, setup: &SwitchSetup, port: &str) -> Option<Finding> {
    let queues = format!("/sys/class/net/{port}/queues");
    let steered = host.names(&queues).into_iter().find_map(|queue| {
        let file = format!("{queues}/{queue}/rps_cpus");
        let cores = parse_cpu_mask(&host.read(&file)?)?.shared_with(&setup.cores);
        (!cores.is_empty()).then_some((file, cores))
    });
    steered.map(|(file, cores)| {
        Finding::costs(
            port,
            format!("RPS steers its frames to core {cores}"),
            "the kernel's processing of them interrupts the worker",
            Remedy::Write {
                file: file.into(),
                word: "0".to_owned(),
            },
        )
    })
}

/// Parses a mask of cores: hexadecimal words of 32 bits, the highest first.
fn parse_cpu_mask(text: &str) -> Option<CpuList> {
    let mut cores = Vec::new();
    for (index, word) in text.rsplit(',').enumerate() {
        let word = u32::from_str_radix(word, 16).ok()?;
        let base = u32::try_from(index).ok()? * u32::BITS;
        cores.extend(
            (0..u32::BITS)
                .filter(|bit| word >> bit & 1 == 1)
                .map(|bit| base + bit),
        );
    }
    Some(cores.into_iter().collect())
}

/// Checks for strict reverse path filtering (RFC 3704, 2.2).
fn strictness(host: &Host, _: &SwitchSetup, port: &str) -> Option<Finding> {
    const STRICT: u64 = 1;
    let of = |which: &str| host.number(format!("/proc/sys/net/ipv4/conf/{which}/rp_filter"));
    // The kernel uses the higher of the two values.
    let filter = of(port)?.max(of("all").unwrap_or(0));
    (filter == STRICT).then(|| {
        Finding::costs(
            port,
            "strict reverse path filtering is enabled",
            "if the port has an address, the host may drop frames to it that arrive on another port",
            Remedy::Write {
                file: format!("/proc/sys/net/ipv4/conf/{port}/rp_filter").into(),
                word: "2".to_owned(),
            },
        )
    })
}

/// Checks that the host does not route frames received on the port in addition to the switch.
fn forwarding(host: &Host, _: &SwitchSetup, port: &str) -> Option<Finding> {
    let file = format!("/proc/sys/net/ipv4/conf/{port}/forwarding");
    (host.number(&file)? != 0).then(|| {
        Finding::costs(
            port,
            "the host forwards IP packets received on it",
            "packets to the host's MAC address are forwarded by the host and by the switch, and so duplicated",
            Remedy::Write {
                file: file.into(),
                word: "0".to_owned(),
            },
        )
    })
}

fn merging(host: &Host, _: &SwitchSetup, port: &str) -> Option<Finding> {
    host.merges(port)?.then(|| {
        Finding::costs(
            port,
            "it merges received frames (LRO)",
            "merged frames exceed the MTU of other ports, and the original frames cannot be restored",
            Remedy::Command(format!("ethtool -K {port} lro off")),
        )
    })
}

fn ring(host: &Host, _: &SwitchSetup, port: &str) -> Option<Finding> {
    let rings = host.rings(port)?;
    (rings.receive < rings.receive_max).then(|| {
        Finding::costs(
            port,
            format!(
                "its receive ring has {} descriptors of at most {}",
                rings.receive, rings.receive_max
            ),
            "longer bursts are dropped while the worker is busy elsewhere",
            Remedy::Command(format!("ethtool -G {port} rx {}", rings.receive_max)),
        )
    })
}

/// Checks that all ports have the same MTU.
fn lengths(host: &Host, setup: &SwitchSetup) -> Option<Finding> {
    let mtu = |port: &str| host.number(format!("/sys/class/net/{port}/mtu"));
    let ports = setup.ports.iter();
    let lengths = ports.filter_map(|port| Some((mtu(port)?, port)));
    let lengths: Vec<_> = lengths.collect();
    let (least, small) = lengths.iter().min()?;
    let (most, _) = lengths.iter().max()?;
    (least < most).then(|| {
        Finding::costs(
            "ports",
            format!("{small} has MTU {least}, other ports up to {most}"),
            "longer packets to it are dropped",
            Remedy::Command(format!(
                "ip link set {small} mtu {most}, or set the others to {least}"
            )),
        )
    })
}
