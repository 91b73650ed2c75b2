//! Delay of the first packet of a connection, and of later ones.

use super::conversation::ConversationPlan;
use super::conversation_frame::CONNECTIONS_MAX;
use super::{prepare_firewall, run, separate_setup, tracks_connections};
use crate::catalogue::prelude::*;
use crate::setup::{ConditionMonitor, TestSetup};
use crate::tools::Tools;

/// The experiment.
pub(crate) const FIRST_PACKET: Experiment = Experiment {
    description: Description {
        name: "first-packet",
        title: "First packet of a connection",
        family: Family::Stateful,
        question: "How much longer does the first packet of a connection take through a stateful firewall than the later ones?",
        source: "RFC 9411, section 7.2.3.4: time to first byte; RFC 2647, section 3.7",
        steps: &[
            "The device tracks all packets: connections from port 1 are permitted, and from port 2 only packets of such connections; a packet of port 2 without a connection is checked to be dropped.",
            "Connections of UDP are opened one at a time; each has two requests and two replies, one frame at a time.",
            "One busy-polling thread has both ends: a delay is the time from before the frame is sent until it is received at the other end.",
            "The delay of the first packet is that of the first request, and that of a later packet is that of the second request of the same connection.",
        ],
        parameters: &[Parameter::constant(
            "connections",
            "connections of a trial",
            Values::numbers(&[1_000], &[10_000], &[10_000], [10, CONNECTIONS_MAX]),
        )],
        figures: FIGURES,
        views: &[
            View::Bars {
                title: "Delay of the first packet, median",
                figure: "first_p50_us",
                across: "connections",
            },
            View::Table {
                title: "All figures",
                figures: &[
                    "first_p50_us",
                    "first_p99_us",
                    "later_p50_us",
                    "later_p99_us",
                    "lost",
                ],
            },
        ],
        ..Description::EMPTY
    },
    setup: SetupKind::Dedicated(separate_setup),
    applies_to: |device, _| tracks_connections(device),
    is_calibrated: true,
    seconds: |point| 0.5 + point.number("connections") as f64 * 200e-6,
    measure,
    ..Experiment::BASE
};

#[rustfmt::skip]
const FIGURES: &[Figure] = &[
    Figure::new("first_p50_us", "First packet, median", "µs", Better::Lower),
    Figure::new("first_p99_us", "First packet, 99 %", "µs", Better::Lower),
    Figure::new("later_p50_us", "Later packet, median", "µs", Better::Lower),
    Figure::new("later_p99_us", "Later packet, 99 %", "µs", Better::Lower),
    Figure::new("lost", "Lost", "connections", Better::Lower),
];

/// Connections before the trial, which warm up the tester and the device.
const WARM_UP: u32 = 100;

fn measure(
    point: &Point,
    setup: &mut TestSetup,
    tools: &Tools<'_>,
) -> Result<TrialResult, TrialError> {
    prepare_firewall(setup, tools)?;
    let plan = |range| ConversationPlan::udp(range).steps(0, 4).one_by_one();
    let warm = 1 + WARM_UP;
    run(&plan(1..warm), setup, tools)?;
    let watch = ConditionMonitor::begin(&setup.bench, tools.cores, tools.clock)?;
    let result = run(&plan(warm..warm + point.small("connections")), setup, tools)?;
    let conditions = watch.end(&setup.bench)?;
    let mut reading = Reading::at(point);
    reading.put("lost", f64::from(result.failed));
    for (step, figures) in [
        (0, ["first_p50_us", "first_p99_us"]),
        (2, ["later_p50_us", "later_p99_us"]),
    ] {
        let mut delays = result.delays_ns[step].clone();
        delays.sort_unstable();
        for (figure, share) in figures.into_iter().zip([0.5, 0.99]) {
            match quantile(&delays, share) {
                Some(delay) => reading.put(figure, delay as f64 / 1e3),
                None => reading.lack(figure, "no packet arrived"),
            }
        }
    }
    let mut measured = TrialResult::new(reading, conditions);
    measured.note_pressure();
    Ok(measured)
}

/// Returns the least value that at least this share of sorted values does not exceed.
fn quantile(sorted: &[u64], share: f64) -> Option<u64> {
    let count = sorted.len() as f64;
    let position = sorted.iter().zip(1_u32..);
    let found = position
        .map(|(value, number)| (*value, f64::from(number)))
        .find(|(_, number)| *number >= share * count);
    found.map(|(value, _)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantile_is_one_of_the_values() {
        let delays: Vec<u64> = (1..=100).collect();
        assert_eq!(quantile(&delays, 0.5), Some(50));
        assert_eq!(quantile(&delays, 0.99), Some(99));
        assert_eq!(quantile(&[], 0.5), None);
    }
}
