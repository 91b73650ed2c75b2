//! Result of a case: the comparison of the effects with the case, as far as a controller and links
//! can observe them.

use std::fs;
use std::path::Path;

use serde::Serialize;
use testbed::Failure;
use testkit::case::ReplayStep;

use crate::explained::Explanations;

/// Result of a case.
#[derive(Debug, Serialize)]
pub(crate) struct Outcome {
    /// Name of the case.
    pub(crate) case: String,
    /// First difference, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    difference: Option<String>,
    /// Explanation of the difference.
    #[serde(skip_serializing_if = "Option::is_none")]
    explanation: Option<String>,
    /// True if the case did not run to its end.
    cut_short: bool,
    /// True if the explanation expects that.
    #[serde(skip)]
    is_to_be_cut_short: bool,
}

impl Outcome {
    /// Compares the effects with the case, except words that begin with one of `uncertain`, which
    /// depend on the switch's clock.
    pub(crate) fn new(
        case: String,
        played: Result<Vec<ReplayStep>, String>,
        explained: &Explanations,
        uncertain: &[&str],
    ) -> Self {
        let cut_short = played.is_err();
        let difference = match played {
            Ok(steps) => steps.iter().find_map(|step| difference(step, uncertain)),
            Err(what) => Some(what),
        };
        let reason = explained.reason(&case);
        Self {
            explanation: reason.map(|reason| reason.text.clone()),
            is_to_be_cut_short: reason.is_some_and(|reason| reason.cut_short),
            difference,
            cut_short,
            case,
        }
    }

    /// Returns true if the case differs if and only if there is an explanation.
    pub(crate) fn is_as_explained(&self) -> bool {
        self.difference.is_some() == self.explanation.is_some()
            && self.cut_short == self.is_to_be_cut_short
    }
}

/// Returns the difference at a step, if there is one.
fn difference(step: &ReplayStep, uncertain: &[&str]) -> Option<String> {
    let visible = |lines: &[String]| visible(lines, uncertain);
    let (mut expected, mut actual) = (visible(&step.expected), visible(&step.actual));
    // Ports are separate links, so the order of frames of different ports is not observable.
    expected.sort();
    actual.sort();
    (expected != actual).then(|| {
        let list = |lines: &[String]| match lines {
            [] => "nothing".to_owned(),
            lines => lines.join("; "),
        };
        format!(
            "{}: the case says {}; what happens: {}",
            step.event.trim(),
            list(&expected),
            list(&actual)
        )
    })
}

/// Returns the lines as an OpenFlow 1.3 controller can observe them: without drops and samples,
/// with fewer packet-in reasons, and without the requested length of packet-ins.
fn visible(lines: &[String], uncertain: &[&str]) -> Vec<String> {
    let trimmed = lines.iter().map(|line| line.trim());
    let is_observable = |line: &&str| !line.starts_with("x ") && !line.starts_with("> collectors:");
    trimmed
        .filter(is_observable)
        .map(|line| as_reported(line, uncertain))
        .collect()
}

/// Words that OpenFlow 1.3 does not report: the ages of a rule.
const UNREPORTED: [&str; 2] = ["idle_age=", "hard_age="];

fn as_reported(line: &str, uncertain: &[&str]) -> String {
    let unreported = UNREPORTED.iter().chain(uncertain);
    let is_reported = |word: &&str| {
        !unreported
            .clone()
            .any(|unreported| word.starts_with(unreported))
    };
    let line: Vec<&str> = line.split_whitespace().filter(is_reported).collect();
    let line = &line.join(" ");
    let Some(packet_in) = line.strip_prefix("! packet_in ") else {
        return line.to_owned();
    };
    let (head, frame) = packet_in.split_once('|').unwrap_or((packet_in, ""));
    let words = head
        .split_whitespace()
        .filter(|word| !word.starts_with("max_len="));
    let words = words.map(|word| match word {
        "reason=miss" => "reason=no_match",
        "reason=action_set" | "reason=group" | "reason=packet_out" => "reason=action",
        word => word,
    });
    let words: Vec<&str> = words.collect();
    format!("! packet_in {} |{frame}", words.join(" "))
}

/// Writes a line of JSON for each case.
pub(crate) fn write(outcomes: &[Outcome], path: &Path) -> Result<(), Failure> {
    let failure = || Failure::to(format!("write {}", path.display()));
    let line = |outcome| serde_json::to_string(outcome).expect("the outcome can be serialized");
    let lines: Vec<String> = outcomes.iter().map(line).collect();
    let folder = path.parent().unwrap_or_else(|| Path::new("."));
    fs::create_dir_all(folder).map_err(failure())?;
    fs::write(path, lines.join("\n") + "\n").map_err(failure())
}

/// Prints the unexpected results, and returns true if there are none.
pub(crate) fn report(name: &str, outcomes: &[Outcome], stale: &[String], path: &Path) -> bool {
    for outcome in outcomes.iter().filter(|outcome| !outcome.is_as_explained()) {
        match &outcome.difference {
            Some(difference) if outcome.cut_short => {
                println!("{} cannot continue:\n    {difference}", outcome.case);
            }
            Some(difference) => println!("{} differs:\n    {difference}", outcome.case),
            None => println!(
                "{} does not differ, although the list explains it",
                outcome.case
            ),
        }
    }
    for name in stale {
        println!("the list explains {name}, which is not a case");
    }
    let surprises = outcomes.iter().filter(|outcome| !outcome.is_as_explained());
    let same = outcomes
        .iter()
        .filter(|outcome| outcome.difference.is_none());
    let count = surprises.count();
    println!(
        "cases on {name}: {} of {} without difference, {count} unexpected\noutcomes: {}",
        same.count(),
        outcomes.len(),
        path.display()
    );
    count == 0 && stale.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(expected: &[&str], actual: &[&str]) -> ReplayStep {
        let lines = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect();
        ReplayStep {
            event: "< 1 eth".to_owned(),
            expected: lines(expected),
            actual: lines(actual),
        }
    }

    #[test]
    fn unobservable_lines_are_no_difference() {
        let expected = ["> 2 eth", "> 1 eth", "x no_match"];
        assert_eq!(
            difference(&step(&expected, &["> 1 eth", "> 2 eth"]), &[]),
            None
        );
        let expected = ["! packet_in reason=miss table=0 max_len=9 | eth"];
        let actual = ["! packet_in reason=no_match table=0 | eth"];
        assert_eq!(difference(&step(&expected, &actual), &[]), None);
    }

    #[test]
    fn ages_of_a_real_clock_are_not_compared() {
        let flow_removed = |time| format!("! flow_removed table=0 reason=delete duration={time}");
        let step = step(&[&flow_removed("10s")], &[&flow_removed("10.003s")]);
        assert!(difference(&step, &[]).is_some());
        assert_eq!(difference(&step, &["duration="]), None);
    }

    #[test]
    fn missing_line_is_a_difference() {
        let text = difference(&step(&["> 2 eth"], &[]), &[]).expect("a difference");
        assert!(
            text.contains("> 2 eth") && text.contains("nothing"),
            "{text}"
        );
    }
}
