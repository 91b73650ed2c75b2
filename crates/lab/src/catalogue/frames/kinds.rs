//! Frames of every kind, forwarded by one rule that matches only the ingress port.

use std::time::Duration;

use trafficgen::template::{Encapsulation, Label, Party, Protocol, Tag, Tunnel};
use trafficgen::{BadTemplate, Mix, Pace, Rate, Template};

use super::{CHANGED, DAMAGED, measured};
use crate::catalogue::offered::{FIGURES as LOAD, Load, offer};
use crate::catalogue::prelude::*;
use crate::setup::TestSetup;
use crate::tools::Tools;

/// The experiment.
pub(crate) const KINDS: Experiment = Experiment {
    description: Description {
        name: "frame-kinds",
        title: "Frame types and encapsulations",
        family: Family::Whitebox,
        question: "Do delay, loss and modification of frames depend on their protocols and encapsulation?",
        source: "vSDNBox, section 6, and RFC 6985 for mixed sizes",
        steps: &[
            "One rule per direction matches the ingress port: the device does not need to parse the frames.",
            "Frames of one type are offered at a given rate, all of the same size; the mix (IMIX) has 7 of 64 bytes, 4 of 570 and 1 of 1518 in turn.",
            "Each received frame is compared with the sent one up to its payload, and all checksums are verified, including those inside tunnels.",
        ],
        parameters: &[
            Parameter::axis(
                "kind",
                "type of the frames: IPv4 with UDP, TCP or ICMP, IPv6 with UDP; UDP after one or two VLAN tags or an MPLS label, or in a tunnel; IMIX",
                Values::words(&["vxlan"], NAMES),
            ),
            Parameter::constant(
                "size",
                "frame size in bytes, with the checksum (FCS)",
                Values::numbers(&[150], &[150], &[150], [128, 1_514]),
            ),
            Parameter::constant(
                "pps",
                "frames per second",
                Values::numbers(&[20_000], &[100_000], &[100_000], [100, 10_000_000]),
            ),
            Parameter::constant(
                "millis",
                "duration of the load in milliseconds",
                Values::numbers(&[100], &[3_000], &[60_000], [20, 3_600_000]),
            ),
        ],
        figures: FIGURES,
        views: &[
            View::Matrix {
                title: "Median delay by frame type",
                figure: "p50_us",
                across: "kind",
                published: "",
            },
            View::Matrix {
                title: "Lost frames by frame type",
                figure: "loss_percent",
                across: "kind",
                published: "",
            },
            View::Table {
                title: "All figures",
                figures: &[
                    "offered_kpps",
                    "received_kpps",
                    "loss_percent",
                    "mean_us",
                    "p50_us",
                    "p99_us",
                    "changed",
                    "damaged",
                ],
            },
        ],
        ..Description::EMPTY
    },
    seconds: |point| 0.3 + point.number("millis") as f64 / 1e3,
    measure,
    ..Experiment::BASE
};

const FIGURES: &[Figure] = &[
    LOAD[0], LOAD[1], LOAD[2], LOAD[3], LOAD[4], LOAD[5], LOAD[6], LOAD[7], LOAD[8], LOAD[9],
    LOAD[10], CHANGED, DAMAGED,
];

const NAMES: &[&str] = &[
    "udp", "tcp", "icmp", "ipv6-udp", "vlan", "qinq", "mpls", "vxlan", "gre", "geneve", "imix",
];

fn measure(
    point: &Point,
    setup: &mut TestSetup,
    tools: &Tools<'_>,
) -> Result<TrialResult, TrialError> {
    let size = u16::try_from(point.number("size")).expect("the bound says so");
    let frames = frames(point.word("kind"), size);
    let frames = frames.map_err(|error| TrialError::Impossible(error.to_string()))?;
    let pace = Pace::Constant(Rate::Frames(point.number("pps")));
    let length = Duration::from_millis(point.number("millis"));
    let mut load = Load::udp(size.into(), pace, length);
    load.frames = frames;
    let offered = offer(&load, setup, tools)?;
    let reading = offered.reading(point);
    Ok(measured(&offered, reading))
}

/// Returns frames of a kind.
fn frames(kind: &str, size: u16) -> Result<Mix, BadTemplate> {
    let mut frame = Template::udp(size);
    let tag = |vid| Tag { vid, pcp: 1 };
    // The endpoints of the tunnel are other stations than those inside.
    let tunnel = Tunnel {
        source: Party::numbered(11),
        destination: Party::numbered(12),
        vni: 0x1234,
    };
    match kind {
        "tcp" => frame.protocol = Protocol::Tcp,
        "icmp" => frame.protocol = Protocol::Icmp,
        "ipv6-udp" => frame.protocol = Protocol::Udp6,
        "vlan" => frame.encapsulation = Encapsulation::Vlan(tag(100)),
        "qinq" => {
            let (outer, inner) = (tag(200), tag(100));
            frame.encapsulation = Encapsulation::QinQ { outer, inner };
        }
        "mpls" => {
            let label = Label {
                value: 1_000,
                class: 1,
                ttl: 64,
            };
            frame.encapsulation = Encapsulation::Mpls(label);
        }
        "vxlan" => frame.encapsulation = Encapsulation::Vxlan(tunnel),
        "gre" => frame.encapsulation = Encapsulation::Gre(tunnel),
        "geneve" => frame.encapsulation = Encapsulation::Geneve(tunnel),
        "imix" => return Mix::imix(&Template::udp(64)),
        _ => {}
    }
    frame.check()?;
    Ok(frame.into())
}

#[cfg(test)]
mod tests;
