//! TCP throughput through ports that are VLAN interfaces, compared with veth ports.

use record::Conditions;
use testbed::{PortKind, Topology};

use super::tcp_throughput::{DIRECTION, SECONDS, STREAMS, Streams, TcpOutcome};
use crate::catalogue::IPERF3;
use crate::catalogue::offered::figure;
use crate::catalogue::prelude::*;
use crate::setup::TestSetup;
use crate::tools::Tools;

/// The experiment.
pub(crate) const VLAN_PORTS: Experiment = Experiment {
    description: Description {
        name: "vlan-ports",
        title: "VLAN interfaces as ports",
        family: Family::UserspaceSwitch,
        question: "How much lower is the throughput of TCP if each port of the switch is a VLAN interface of the machine?",
        source: "Yasuda, figures 2 and 3",
        steps: &[
            "Each host's link is the access port of a VLAN of a Linux bridge, and the ports of the switch are the VLAN interfaces of this bridge; for comparison, the links themselves are the ports.",
            "One rule per direction matches the ingress port.",
            "iperf3 sends TCP streams from the client to the server; the processor time of the switch's process is measured meanwhile.",
        ],
        parameters: &[
            Parameter::axis(
                "ports",
                "ports of the switch: VLAN interfaces or the links themselves",
                Values::words(PORTS, PORTS),
            ),
            SECONDS,
            STREAMS,
            DIRECTION,
        ],
        figures: FIGURES,
        views: &[
            View::Bars {
                title: "TCP throughput by type of port",
                figure: "mbit_s",
                across: "ports",
            },
            View::Table {
                title: "All figures",
                figures: &["mbit_s", "retransmits", "process_percent"],
            },
        ],
        topology: Some(|point| {
            let ports = match point.word("ports") {
                "vlan" => PortKind::Vlan,
                _ => PortKind::Veth,
            };
            Topology::default().with_ports(ports)
        }),
        ..Description::EMPTY
    },
    setup: SetupKind::Dedicated(|_| DedicatedSetup::default()),
    applies_to: |device, _| device.speaks_openflow() && !device.makes_taps() && !device.polls(),
    programs: &[IPERF3],
    seconds: |point| 1.0 + point.number("seconds") as f64,
    measure,
    ..Experiment::BASE
};

const PORTS: &[&str] = &["veth", "vlan"];

#[rustfmt::skip]
const FIGURES: &[Figure] = &[
    figure("mbit_s", "TCP", "Mbit/s", Better::Higher),
    figure("retransmits", "TCP retransmissions", "segments", Better::Lower),
    figure("process_percent", "Processor time", "% of a core", Better::Lower),
];

fn measure(
    point: &Point,
    setup: &mut TestSetup,
    tools: &Tools<'_>,
) -> Result<TrialResult, TrialError> {
    let streams = Streams::at(point);
    let (outcome, conditions) = streams.run(setup, tools)?;
    let mut measured = TrialResult::new(reading(point, &outcome, &conditions), conditions);
    streams.judge(outcome.seconds, setup, tools, &mut measured)?;
    Ok(measured)
}

fn reading(point: &Point, tcp: &TcpOutcome, conditions: &Conditions) -> Reading {
    let mut reading = Reading::at(point);
    reading.put("mbit_s", tcp.bits_per_second / 1e6);
    reading.put("retransmits", tcp.retransmits as f64);
    match conditions.process {
        Some(used) => {
            let seconds = used.user_seconds + used.system_seconds;
            reading.put("process_percent", seconds / conditions.seconds * 100.0);
        }
        None => reading.lack("process_percent", "the kernel forwards"),
    }
    reading
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::ProcessUse;

    fn figures(process: Option<ProcessUse>) -> Reading {
        let conditions = Conditions {
            seconds: 4.0,
            process,
            ..Conditions::default()
        };
        let tcp = TcpOutcome {
            bits_per_second: 125e6,
            seconds: 4.0,
            retransmits: 17,
            ..TcpOutcome::default()
        };
        reading(&Point::default(), &tcp, &conditions)
    }

    #[test]
    fn processor_time_is_a_share_of_a_core() {
        let reading = figures(Some(ProcessUse {
            user_seconds: 1.0,
            system_seconds: 0.5,
            resident_bytes: 0,
        }));
        let of = |name: &str| reading.figures[name];
        assert_eq!(of("mbit_s"), 125.0);
        assert_eq!(of("retransmits"), 17.0);
        assert_eq!(of("process_percent"), 37.5);
        let reading = figures(None);
        assert_eq!(reading.absent["process_percent"], "the kernel forwards");
    }
}
