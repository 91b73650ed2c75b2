//! Scenario 3: one rule against a full table.

use base::SplitMix64;
use openflow::Message;

use super::filling::{self, Kind};
use super::{PACKETS, WARM_UP, echo};
use crate::catalogue::plane::{Plane, on_station};
use crate::catalogue::{
    Bound, Description, Experiment, Family, Parameter, Point, Setting, Values, View,
};
use crate::trial::{Measured, TrialError};

/// The experiment.
pub(crate) const RULES: Experiment = Experiment {
    description: Description {
        name: "echo-rules",
        title: "One rule against a full table",
        family: Family::DataPlanes,
        question: "Does a frame take longer when the table is full of rules that it does not match?",
        source: "Costa et al., scenario 3, table 5",
        steps: &[
            "One rule a direction matches all twelve fields of OpenFlow 1.0.",
            "In a full table there are others besides, of the same twelve fields, each for another destination: so many as the device was found to take (table-capacity), or as set.",
            "The rule towards the server is sent behind all others, before them, or amid them.",
            "UDP frames of 64 bytes go from the client to the server and back, one under way at a time, by a thread that never sleeps.",
        ],
        parameters: &[
            Parameter::axis(
                "table",
                "rules beside those that frames match: none, or as many as set",
                Values::Words {
                    quick: TABLES,
                    all: TABLES,
                },
            ),
            Parameter::axis(
                "place",
                "when the rule that frames match is sent",
                Values::Words {
                    quick: &["last"],
                    all: &["last", "first", "random"],
                },
            ),
            Parameter::constant(
                "rules",
                "rules of a full table",
                Values::Numbers {
                    quick: &[10_000],
                    paper: &[100_000],
                    rfc: &[100_000],
                    bound: Bound {
                        least: 1,
                        most: 4_000_000,
                    },
                },
            ),
            PACKETS,
            WARM_UP,
        ],
        figures: echo::FIGURES,
        views: &[
            View::Matrix {
                title: "Mean round trip by what the table holds",
                figure: "mean_us",
                across: "table",
                published: "rules",
            },
            View::Ratio {
                title: "What a full table costs: the median round trip with it, by that with one rule",
                figure: "p50_us",
                parameter: "table",
                of: "full",
                to: "one",
                published: "",
            },
            View::Runs {
                title: "Mean round trip, run by run",
                figure: "mean_us",
                across: "table",
            },
            View::Percentiles {
                title: "Round trips",
                histogram: "round_trip_ns",
            },
            echo::ALL_FIGURES,
        ],
        topology: None,
    },
    setting: Setting::Usual,
    takes: |device, _| device.speaks_openflow(),
    seconds: |point| {
        let full = point.word("table") == "full";
        let rules = if full { point.number("rules") } else { 0 };
        // Added, and deleted before the next test.
        echo::seconds(point) + rules as f64 * 30e-6
    },
    measure: |point, station, tools| on_station(point, station, tools, measure),
};

const TABLES: &[&str] = &["one", "full"];

pub(super) fn measure(point: &Point, plane: &mut dyn Plane) -> Result<Measured, TrialError> {
    let request = echo::request(plane, 64, None);
    let exact =
        |port, frame| filling::exact(port, frame).expect("fields follow their prerequisites");
    let towards_server = echo::rule(exact(1, &request), Vec::new(), true);
    let towards_client = echo::rule(exact(2, &request.reversed()), Vec::new(), false);
    plane.install(&[towards_client])?;
    let rules = match point.word("table") {
        "full" => point.small("rules"),
        _ => 0,
    };
    let before = match point.word("place") {
        "first" => 0,
        "random" => place(rules),
        _ => rules,
    };
    for (from, to, ours) in [(0, before, true), (before, rules, false)] {
        let filled = filling::fill(plane, Kind::Exact, from..to, request)?;
        if let Some(reason) = filled.refused {
            let accepted = from + filled.accepted;
            let reason = format!("of {rules} rules it took {accepted}: {reason}");
            return Ok(echo::nothing(point, &reason));
        }
        if ours {
            let done = plane.request(vec![Message::FlowMod(towards_server.clone())])?;
            done.all_done("the rule that frames match")?;
        }
    }
    echo::measure(point, [request, request], plane)
}

/// A place amid `rules` others, by chance and the same for every device.
fn place(rules: u32) -> u32 {
    let share = SplitMix64::new(rules.into()).next_u64() % u64::from(rules.max(1));
    u32::try_from(share).expect("less than the rules")
}
