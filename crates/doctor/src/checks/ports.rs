//! The interfaces of the ports.

use crate::finding::{Finding, Mend};
use crate::{Asked, CpuList, Host};

/// Runs all checks of ports.
pub(crate) fn all(host: &Host, asked: &Asked) -> Vec<Finding> {
    let mut findings = Vec::new();
    for port in &asked.ports {
        if !host.has(format!("/sys/class/net/{port}")) {
            findings.push(Finding::fails(
                port,
                "there is no such interface",
                "the port cannot be opened",
                Mend::Command(format!(
                    "ip link show; is it in this namespace? is it {port:?}?"
                )),
            ));
            continue;
        }
        let before = findings.len();
        findings.extend(LOOKS.iter().filter_map(|look| look(host, asked, port)));
        if findings.len() == before {
            findings.push(Finding::fine(port, "as a port should be"));
        }
    }
    findings.extend(lengths(host, asked));
    findings
}

/// A check of one port; returns none if there is no problem.
type Look = fn(&Host, &Asked, &str) -> Option<Finding>;

const LOOKS: [Look; 7] = [
    carrier, node, steering, strictness, forwarding, merging, ring,
];

fn carrier(host: &Host, _: &Asked, port: &str) -> Option<Finding> {
    // The file cannot be read while the interface is down.
    let carrier = host.number(format!("/sys/class/net/{port}/carrier"));
    (carrier == Some(0)).then(|| {
        Finding::costs(
            port,
            "it is up and has no carrier",
            "nothing comes in, and what is sent is lost",
            Mend::Advice("see to the cable, or to what is at its other end"),
        )
    })
}

/// Checks that the device is on the NUMA node of the workers' cores.
fn node(host: &Host, asked: &Asked, port: &str) -> Option<Finding> {
    let node = host.number(format!("/sys/class/net/{port}/device/numa_node"))?;
    let near = host.read(format!("/sys/devices/system/node/node{node}/cpulist"))?;
    let near: CpuList = near.parse().ok()?;
    let far = asked.cores.without(&near);
    (!far.is_empty()).then(|| {
        Finding::costs(
            port,
            format!("at node {node}, and {far} is not"),
            "each frame crosses the link between the processors",
            Mend::Advice("name cores of the device's node by --cores"),
        )
    })
}

/// Checks that the kernel does not steer the port's frames to the workers' cores (receive packet
/// steering).
fn steering(host: &Host, asked: &Asked, port: &str) -> Option<Finding> {
    let queues = format!("/sys/class/net/{port}/queues");
    let steered = host.names(&queues).into_iter().find_map(|queue| {
        let file = format!("{queues}/{queue}/rps_cpus");
        let cores = of_mask(&host.read(&file)?)?.shared_with(&asked.cores);
        (!cores.is_empty()).then_some((file, cores))
    });
    steered.map(|(file, cores)| {
        Finding::costs(
            port,
            format!("its frames are steered to {cores}"),
            "the kernel's own work on them takes turns with the worker",
            Mend::Write {
                file: file.into(),
                word: "0".to_owned(),
            },
        )
    })
}

/// Parses a mask of cores: hexadecimal words of 32 bits, the highest first.
fn of_mask(text: &str) -> Option<CpuList> {
    let mut cores = Vec::new();
    for (place, word) in text.rsplit(',').enumerate() {
        let word = u32::from_str_radix(word, 16).ok()?;
        let base = u32::try_from(place).ok()? * u32::BITS;
        cores.extend(
            (0..u32::BITS)
                .filter(|bit| word >> bit & 1 == 1)
                .map(|bit| base + bit),
        );
    }
    Some(cores.into_iter().collect())
}

/// Checks for strict reverse path filtering (RFC 3704, 2.2).
fn strictness(host: &Host, _: &Asked, port: &str) -> Option<Finding> {
    const STRICT: u64 = 1;
    let of = |which: &str| host.number(format!("/proc/sys/net/ipv4/conf/{which}/rp_filter"));
    // The kernel uses the higher of the two values.
    let filter = of(port)?.max(of("all").unwrap_or(0));
    (filter == STRICT).then(|| {
        Finding::costs(
            port,
            "the host filters by the strict reverse path",
            "if the port has an address, the host may drop what was sent to it by another port",
            Mend::Write {
                file: format!("/proc/sys/net/ipv4/conf/{port}/rp_filter").into(),
                word: "2".to_owned(),
            },
        )
    })
}

/// Checks that the host does not route frames received on the port in addition to the switch.
fn forwarding(host: &Host, _: &Asked, port: &str) -> Option<Finding> {
    let file = format!("/proc/sys/net/ipv4/conf/{port}/forwarding");
    (host.number(&file)? != 0).then(|| {
        Finding::costs(
            port,
            "the host routes what comes in there",
            "what is addressed to the host is sent on by it and by the switch: it arrives twice",
            Mend::Write {
                file: file.into(),
                word: "0".to_owned(),
            },
        )
    })
}

fn merging(host: &Host, _: &Asked, port: &str) -> Option<Finding> {
    host.merges(port)?.then(|| {
        Finding::costs(
            port,
            "it merges frames that it receives (LRO)",
            "merged frames are too long for other ports, and cannot be cut as they were",
            Mend::Command(format!("ethtool -K {port} lro off")),
        )
    })
}

fn ring(host: &Host, _: &Asked, port: &str) -> Option<Finding> {
    let rings = host.rings(port)?;
    (rings.receive < rings.receive_max).then(|| {
        Finding::costs(
            port,
            format!(
                "its receive ring has room for {} frames of {} that it could have",
                rings.receive, rings.receive_max
            ),
            "a burst that comes while the worker is elsewhere is lost beyond that",
            Mend::Command(format!("ethtool -G {port} rx {}", rings.receive_max)),
        )
    })
}

/// Checks that all ports have the same MTU.
fn lengths(host: &Host, asked: &Asked) -> Option<Finding> {
    let mtu = |port: &str| host.number(format!("/sys/class/net/{port}/mtu"));
    let ports = asked.ports.iter();
    let lengths = ports.filter_map(|port| Some((mtu(port)?, port)));
    let lengths: Vec<_> = lengths.collect();
    let (least, small) = lengths.iter().min()?;
    let (most, _) = lengths.iter().max()?;
    (least < most).then(|| {
        Finding::costs(
            "ports",
            format!("{small} takes packets of {least} bytes, others of up to {most}"),
            "what is longer cannot leave by it, and is dropped there",
            Mend::Command(format!(
                "ip link set {small} mtu {most}, or the others' to {least}"
            )),
        )
    })
}
