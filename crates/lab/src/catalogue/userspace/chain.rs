//! Several switches in a chain.

use testbed::Topology;

use crate::catalogue::data_planes::{PACKETS, WARM_UP, echo};
use crate::catalogue::plane::{Plane, on_setup};
use crate::catalogue::prelude::*;

/// The experiment.
pub(crate) const CHAIN: Experiment = Experiment {
    description: Description {
        name: "chain",
        title: "Chain of switches",
        family: Family::UserspaceSwitch,
        question: "How much does each further switch in one machine add to a round trip?",
        source: "Yasuda, section 4.2: several OpenFlow switches in one machine",
        steps: &[
            "One process has several bridges, which veth links connect to a chain; each has its own controller, and one rule per direction that matches the ingress port.",
            "A busy-polling thread sends UDP frames of 64 bytes from the client to the server and back, with one outstanding at a time.",
        ],
        parameters: &[
            Parameter::axis(
                "switches",
                "switches in the chain",
                Values::Numbers {
                    quick: &[1, 4],
                    paper: &[1, 2, 4, 8],
                    rfc: &[1, 2, 4, 8],
                    bound: Bound { least: 1, most: 16 },
                },
            ),
            PACKETS,
            WARM_UP,
        ],
        figures: echo::FIGURES,
        views: &[
            View::Lines {
                title: "Median round trip by number of switches",
                figure: "p50_us",
                along: "switches",
                log: false,
            },
            echo::ALL_FIGURES,
        ],
        topology: Some(|point| {
            let switches = usize::try_from(point.number("switches")).expect("the bound says so");
            Topology::chain(switches).expect("the bound says so")
        }),
        ..Description::EMPTY
    },
    setup: SetupKind::Dedicated(|_| DedicatedSetup::default()),
    applies_to: |device, _| device.speaks_openflow() && !device.makes_taps(),
    seconds: |point| echo::seconds(point) * (1.0 + point.number("switches") as f64 / 2.0) + 1.0,
    measure: |point, setup, tools| on_setup(point, setup, tools, measure),
    ..Experiment::BASE
};

fn measure(point: &Point, plane: &mut dyn Plane) -> Result<TrialResult, TrialError> {
    let request = echo::request(plane, 64, None);
    echo::measure(point, [request, request], plane)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::simulated::{
        DIGITS, Faults, SimulatedPlane, assert_near, figure, point, void,
    };
    use record::Value;

    /// Chain of switches that take 7 µs in one direction and 9 µs in the other; the last one loses
    /// one frame in a hundred.
    #[test]
    fn round_trip_includes_each_switch_of_a_chain() {
        for switches in [1, 2, 8] {
            let mut faults = Faults::slow(7_000 * switches, 9_000 * switches);
            faults.forth.lose_every = Some(100);
            let values = [("switches", switches), ("packets", 380), ("warm-up", 0)];
            let values = values.map(|(name, number)| (name, Value::Number(number)));
            let point = point(&CHAIN, &values);
            let measured = measure(&point, &mut SimulatedPlane::new(faults)).unwrap();
            for name in ["mean_us", "p50_us", "p99_us"] {
                assert_near(&measured, name, 16.0 * switches as f64, DIGITS);
            }
            // Twenty echoes precede the trial, until the rules are in force.
            assert_eq!(figure(&measured, "lost"), 4.0);
            assert!(void(&measured).is_empty());
        }
    }
}
