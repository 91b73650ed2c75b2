//! Scenario 3: one rule compared with a full table.

use base::SplitMix64;
use openflow::Message;

use super::filling::{self, TableKind};
use super::{PACKETS, WARM_UP, echo};
use crate::catalogue::plane::{Plane, on_setup};
use crate::catalogue::prelude::*;

/// The experiment "echo-rules".
pub(crate) const RULES: Experiment = Experiment {
    description: Description {
        name: "echo-rules",
        title: "One rule and a full table",
        family: Family::DataPlanes,
        question: "Is the round trip longer if the table is full of rules that the frames do not match?",
        source: "Costa et al., scenario 3, table 5",
        steps: &[
            "One rule per direction matches all twelve fields of OpenFlow 1.0.",
            "A full table has further rules of the same twelve fields, each for another destination: as many as the device accepts (table-capacity), or as given.",
            "The rule towards the server is added after all others, before them, or in the middle.",
            "A busy-polling thread sends UDP frames of 64 bytes from the client to the server and back, with one outstanding at a time.",
        ],
        parameters: &[
            Parameter::axis(
                "table",
                "further rules: none (one), or as many as given (full)",
                Values::words(TABLES, TABLES),
            ),
            Parameter::axis(
                "place",
                "order in which the matching rule is added",
                Values::words(&["last"], &["last", "first", "random"]),
            ),
            Parameter::constant(
                "rules",
                "rules of a full table",
                Values::numbers(&[10_000], &[100_000], &[100_000], [1, 4_000_000]),
            ),
            PACKETS,
            WARM_UP,
        ],
        figures: echo::FIGURES,
        views: &[
            View::Matrix {
                title: "Mean round trip by occupancy of the table",
                figure: "mean_us",
                across: "table",
                published: "rules",
            },
            View::Ratio {
                title: "Median round trip with a full table, relative to one rule",
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
                values: "round_trip_ns",
            },
            echo::ALL_FIGURES,
        ],
        ..Description::EMPTY
    },
    applies_to: |device, _| device.speaks_openflow(),
    seconds: |point| {
        let full = point.word("table") == "full";
        let rules = if full { point.number("rules") } else { 0 };
        // The time to add the rules, and to delete them before the next trial.
        echo::seconds(point) + rules as f64 * 30e-6
    },
    measure: |point, setup, tools| on_setup(point, setup, tools, measure),
    ..Experiment::BASE
};

const TABLES: &[&str] = &["one", "full"];

pub(super) fn measure(point: &Point, plane: &mut dyn Plane) -> Result<TrialResult, TrialError> {
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
        "random" => random_index(rules),
        _ => rules,
    };
    for (from, to, ours) in [(0, before, true), (before, rules, false)] {
        let outcome = filling::fill(plane, TableKind::Exact, from..to, request)?;
        if let Some(reason) = outcome.refused {
            let accepted = from + outcome.accepted;
            let reason = format!("the device accepted {accepted} of {rules} rules: {reason}");
            return Ok(echo::without_figures(point, &reason));
        }
        if ours {
            let done = plane.request(vec![Message::FlowMod(towards_server.clone())])?;
            done.all_done("the rule that frames match")?;
        }
    }
    echo::measure(point, [request, request], plane)
}

/// Returns a random position among `rules` others, the same for every device.
fn random_index(rules: u32) -> u32 {
    let share = SplitMix64::new(rules.into()).next_u64() % u64::from(rules.max(1));
    u32::try_from(share).expect("less than the rules")
}
