//! Rate of new connections.

use super::conversation::ConversationPlan;
use super::conversation_frame::CONNECTIONS_MAX;
use super::{prepare_firewall, run, separate_setup, tracks_connections};
use crate::catalogue::prelude::*;
use crate::setup::{ConditionMonitor, TestSetup};
use crate::tools::Tools;

/// The experiment.
pub(crate) const CONNECTION_RATE: Experiment = Experiment {
    description: Description {
        name: "connection-rate",
        title: "New connections",
        family: Family::Stateful,
        question: "How many connections per second does a stateful firewall set up?",
        source: "RFC 9411, section 7.2: TCP connections per second",
        steps: &[
            "The device tracks all packets: connections from port 1 are permitted, and from port 2 only packets of such connections; a packet of port 2 without a connection is checked to be dropped.",
            "A connection of TCP has seven frames: handshake, request, reply, and a close from both sides; one of UDP has a request and a reply. Each has an address and a port of its own.",
            "One busy-polling thread has both ends and at most 64 connections open; it sends each frame when the one before it has arrived, so no protocol stack takes part. The bare link shows the thread's own limit.",
            "The rate is the number of completed connections divided by their time; a connection that lacks a frame for 200 ms has failed.",
        ],
        parameters: &[
            Parameter::axis(
                "protocol",
                "protocol of the connections",
                Values::words(&["tcp", "udp"], &["tcp", "udp"]),
            ),
            Parameter::constant(
                "connections",
                "connections of a trial",
                Values::numbers(&[5_000], &[100_000], &[100_000], [1, CONNECTIONS_MAX]),
            ),
        ],
        figures: FIGURES,
        views: &[
            View::Bars {
                title: "Connections per second",
                figure: "connections_s",
                across: "protocol",
            },
            View::Runs {
                title: "Connections per second, run by run",
                figure: "connections_s",
                across: "protocol",
            },
            View::Table {
                title: "All figures",
                figures: &["connections_s", "failed", "cpu_us"],
            },
        ],
        ..Description::EMPTY
    },
    setup: SetupKind::Dedicated(separate_setup),
    applies_to: |device, _| tracks_connections(device),
    is_calibrated: true,
    seconds: |point| 0.5 + point.number("connections") as f64 * 150e-6,
    measure,
    ..Experiment::BASE
};

#[rustfmt::skip]
const FIGURES: &[Figure] = &[
    Figure::new("connections_s", "Connections", "1/s", Better::Higher),
    Figure::new("failed", "Failed", "", Better::Lower),
    Figure::new("cpu_us", "Processor time of a connection", "µs", Better::Lower),
];

fn measure(
    point: &Point,
    setup: &mut TestSetup,
    tools: &Tools<'_>,
) -> Result<TrialResult, TrialError> {
    prepare_firewall(setup, tools)?;
    let connections = 1..1 + point.small("connections");
    let plan = match point.word("protocol") {
        "tcp" => ConversationPlan::tcp(connections),
        _ => ConversationPlan::udp(connections),
    };
    let watch = ConditionMonitor::begin(&setup.bench, tools.cores, tools.clock)?;
    let result = run(&plan, setup, tools)?;
    let conditions = watch.end(&setup.bench)?;
    let mut reading = Reading::at(point);
    let completed = f64::from(result.completed);
    reading.put("failed", f64::from(result.failed));
    match result.completed {
        0 => reading.lack("connections_s", "no connection was completed"),
        _ => reading.put("connections_s", completed / result.seconds),
    }
    match conditions.process {
        Some(used) if result.completed > 0 => {
            let seconds = used.user_seconds + used.system_seconds;
            reading.put("cpu_us", seconds * 1e6 / completed);
        }
        _ => reading.lack("cpu_us", "the device is not a process of its own"),
    }
    let mut measured = TrialResult::new(reading, conditions);
    measured.note_pressure();
    Ok(measured)
}
