//! TCP by ports that are VLAN interfaces, beside ports that are cables.

use testbed::{PortKind, Topology};

use crate::catalogue::offered::figure;
use crate::catalogue::{
    Better, Experiment, Family, Figure, Own, Parameter, Point, Setting, Values, View,
};
use crate::record::{Outcome, Reading};
use crate::scenario::{Tools, tcp_throughput};
use crate::station::Station;
use crate::trial::{Measured, TrialError};

/// The experiment.
pub(crate) const VLAN_PORTS: Experiment = Experiment {
    name: "vlan-ports",
    title: "Ports that are VLAN interfaces",
    family: Family::UserspaceSwitch,
    question: "What does TCP lose when each port of the switch is a VLAN interface of the box, as where one VLAN stands for one port?",
    source: "Yasuda, figures 2 and 3",
    steps: &[
        "Each host's cable is the access port of a VLAN of its own at a Linux bridge, and the switch has the bridge's VLAN interfaces for ports; or the switch has the cables themselves.",
        "One rule a direction matches the port of arrival.",
        "iperf3 sends one TCP stream, for as many seconds as tcp-throughput is set to; the processor time of the switch's process is taken meanwhile.",
    ],
    parameters: &[Parameter::axis(
        "ports",
        "what the switch's ports are",
        Values::Words {
            quick: PORTS,
            all: PORTS,
        },
    )],
    figures: FIGURES,
    views: &[
        View::Bars {
            title: "TCP throughput by what ports are",
            figure: "mbit_s",
            across: "ports",
        },
        View::Table {
            title: "All figures",
            figures: &["mbit_s", "retransmits", "process_percent"],
        },
    ],
    setting: Setting::Own(|point| {
        let ports = match point.word("ports") {
            "vlan" => PortKind::Vlan,
            _ => PortKind::Veth,
        };
        Own {
            topology: Topology::default().with_ports(ports),
            ..Own::default()
        }
    }),
    takes: |device, _| device.speaks_openflow() && !device.makes_taps() && !device.polls(),
    seconds: |_| 5.0,
    measure,
};

const PORTS: &[&str] = &["veth", "vlan"];

#[rustfmt::skip]
const FIGURES: &[Figure] = &[
    figure("mbit_s", "TCP", "Mbit/s", Better::Higher),
    figure("retransmits", "Sent again", "segments", Better::Lower),
    figure("process_percent", "Switch's process", "% of a core", Better::Lower),
];

fn measure(
    point: &Point,
    station: &mut Station,
    tools: &Tools<'_>,
) -> Result<Measured, TrialError> {
    let mut measured = tcp_throughput::measure(station, tools)?;
    let Outcome::TcpThroughput(tcp) = &measured.outcome else {
        return Err(TrialError::Impossible(
            "no TCP stream came of it".to_owned(),
        ));
    };
    let mut reading = Reading::at(point);
    reading.put("mbit_s", tcp.bits_per_second / 1e6);
    reading.put("retransmits", tcp.retransmits as f64);
    match measured.conditions.process {
        Some(used) => {
            let seconds = used.user_seconds + used.system_seconds;
            reading.put(
                "process_percent",
                seconds / measured.conditions.seconds * 100.0,
            );
        }
        None => reading.lack("process_percent", "the kernel itself forwards"),
    }
    measured.outcome = Outcome::Reading(reading);
    Ok(measured)
}
