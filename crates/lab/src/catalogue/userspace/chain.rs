//! Several switches in one box, in a row.

use testbed::Topology;

use crate::catalogue::data_planes::{PACKETS, WARM_UP, echo};
use crate::catalogue::{Bound, Experiment, Family, Own, Parameter, Point, Setting, Values, View};
use crate::scenario::Tools;
use crate::station::Station;
use crate::trial::{Measured, TrialError};

/// The experiment.
pub(crate) const CHAIN: Experiment = Experiment {
    name: "chain",
    title: "Switches in a row",
    family: Family::UserspaceSwitch,
    question: "What does each further switch in one box add to a round trip?",
    source: "Yasuda, section 4.2: several OpenFlow switches in one box",
    steps: &[
        "One process has so many bridges, joined in a row by cables; each has its own controller, and one rule a direction that matches the port of arrival.",
        "UDP frames of 64 bytes go from the client to the server and back, one under way at a time, by a thread that never sleeps.",
    ],
    parameters: &[
        Parameter::axis(
            "switches",
            "switches in a row",
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
            title: "Median round trip by switches in a row",
            figure: "p50_us",
            along: "switches",
            log: false,
        },
        echo::ALL_FIGURES,
    ],
    setting: Setting::Own(|point| {
        let switches = usize::try_from(point.number("switches")).expect("the bound says so");
        Own {
            topology: Topology::chain(switches).expect("the bound says so"),
            ..Own::default()
        }
    }),
    takes: |device, _| device.speaks_openflow() && !device.makes_taps(),
    seconds: |point| echo::seconds(point) * (1.0 + point.number("switches") as f64 / 2.0) + 1.0,
    measure: |point: &Point,
              station: &mut Station,
              tools: &Tools<'_>|
     -> Result<Measured, TrialError> {
        let request = echo::request(&station.bench, 64, None);
        echo::measure(point, [request, request], station, tools)
    },
};
