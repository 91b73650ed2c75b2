//! TCP by ports that are VLAN interfaces, beside ports that are cables.

use record::{Outcome, Reading};
use testbed::{PortKind, Topology};

use crate::catalogue::offered::figure;
use crate::catalogue::{
    Better, Description, Experiment, Family, Figure, Own, Parameter, Point, Setting, Values, View,
};
use crate::scenario::{Tools, tcp_throughput};
use crate::station::Station;
use crate::trial::{Measured, TrialError};

/// The experiment.
pub(crate) const VLAN_PORTS: Experiment = Experiment {
    description: Description {
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
        topology: Some(|point| {
            let ports = match point.word("ports") {
                "vlan" => PortKind::Vlan,
                _ => PortKind::Veth,
            };
            Topology::default().with_ports(ports)
        }),
    },
    setting: Setting::Own(|_| Own::default()),
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
    told(point, tcp_throughput::measure(station, tools)?)
}

/// A TCP stream as this experiment tells it.
fn told(point: &Point, mut measured: Measured) -> Result<Measured, TrialError> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use record::{Conditions, ProcessUse, TcpOutcome};

    fn stream() -> TcpOutcome {
        TcpOutcome {
            bits_per_second: 125e6,
            seconds: 4.0,
            retransmits: 17,
            sender_cpu_percent: 80.0,
            receiver_cpu_percent: 40.0,
            each_second: vec![125e6; 4],
        }
    }

    fn figures(process: Option<ProcessUse>) -> Reading {
        let conditions = Conditions {
            seconds: 4.0,
            process,
            ..Conditions::default()
        };
        let measured = Measured::new(Outcome::TcpThroughput(stream()), conditions);
        match told(&Point::default(), measured).unwrap().outcome {
            Outcome::Reading(reading) => reading,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_stream_is_told_with_the_share_of_a_core_that_the_switch_took() {
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
        let reason = &reading.absent["process_percent"];
        assert_eq!(reason, "the kernel itself forwards");
    }
}
