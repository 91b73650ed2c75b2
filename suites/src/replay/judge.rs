//! What a case came to: whether what happened is what it says, as far as a controller
//! and its cables can see it.

use std::fs;
use std::path::Path;

use serde::Serialize;
use testbed::Failure;
use testkit::case::ReplayStep;

use crate::explained::Explained;

/// What came of a case.
#[derive(Debug, Serialize)]
pub(crate) struct Outcome {
    /// Its name.
    pub(crate) case: String,
    /// The first difference; none if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    difference: Option<String>,
    /// Why there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    explanation: Option<String>,
    /// Whether it was not played to its end.
    cut_short: bool,
    /// Whether the explanation is of such a case.
    #[serde(skip)]
    is_to_be_cut_short: bool,
}

impl Outcome {
    /// Holds what happened against what the case says, but for words that begin with
    /// one of `uncertain`, where a switch has a clock of its own.
    pub(crate) fn new(
        case: String,
        played: Result<Vec<ReplayStep>, String>,
        explained: &Explained,
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

    /// Whether it differs if and only if somebody said why.
    pub(crate) fn is_as_explained(&self) -> bool {
        self.difference.is_some() == self.explanation.is_some()
            && self.cut_short == self.is_to_be_cut_short
    }
}

/// What is different at a step, if anything is.
fn difference(step: &ReplayStep, uncertain: &[&str]) -> Option<String> {
    let visible = |lines: &[String]| visible(lines, uncertain);
    let (mut wanted, mut happened) = (visible(&step.expected), visible(&step.actual));
    // Ports are different cables: nobody sees which frame left first.
    wanted.sort();
    happened.sort();
    (wanted != happened).then(|| {
        let list = |lines: &[String]| match lines {
            [] => "nothing".to_owned(),
            lines => lines.join("; "),
        };
        format!(
            "{}: the case says {}; what happens: {}",
            step.event.trim(),
            list(&wanted),
            list(&happened)
        )
    })
}

/// The lines as a controller of OpenFlow 1.3 can see them: drops and samples are not told, reasons
/// are fewer, and how much of a frame was asked for is not repeated.
fn visible(lines: &[String], uncertain: &[&str]) -> Vec<String> {
    let told = lines.iter().map(|line| line.trim());
    let is_seen = |line: &&str| !line.starts_with("x ") && !line.starts_with("> collectors:");
    told.filter(is_seen)
        .map(|line| as_told(line, uncertain))
        .collect()
}

/// What a message of 1.3 does not say: for how long a rule has been idle.
const UNTOLD: [&str; 2] = ["idle_age=", "hard_age="];

fn as_told(line: &str, uncertain: &[&str]) -> String {
    let untold = UNTOLD.iter().chain(uncertain);
    let is_told = |word: &&str| !untold.clone().any(|untold| word.starts_with(untold));
    let line: Vec<&str> = line.split_whitespace().filter(is_told).collect();
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
    let line = |outcome| serde_json::to_string(outcome).expect("it has nothing that JSON has not");
    let lines: Vec<String> = outcomes.iter().map(line).collect();
    let folder = path.parent().unwrap_or_else(|| Path::new("."));
    fs::create_dir_all(folder).map_err(failure())?;
    fs::write(path, lines.join("\n") + "\n").map_err(failure())
}

/// Prints what was not as explained, and says whether all was.
pub(crate) fn report(name: &str, outcomes: &[Outcome], stale: &[String], path: &Path) -> bool {
    for outcome in outcomes.iter().filter(|outcome| !outcome.is_as_explained()) {
        match &outcome.difference {
            Some(difference) if outcome.cut_short => {
                println!("{} cannot be played on:\n    {difference}", outcome.case);
            }
            Some(difference) => println!("{} differs:\n    {difference}", outcome.case),
            None => println!(
                "{} does not differ, though the list explains it",
                outcome.case
            ),
        }
    }
    for name in stale {
        println!("the list explains {name}, which is no case");
    }
    let surprises = outcomes.iter().filter(|outcome| !outcome.is_as_explained());
    let same = outcomes
        .iter()
        .filter(|outcome| outcome.difference.is_none());
    let count = surprises.count();
    println!(
        "cases on {name}: {} of {} as they are here, {count} not as explained\noutcomes: {}",
        same.count(),
        outcomes.len(),
        path.display()
    );
    count == 0 && stale.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(wanted: &[&str], happened: &[&str]) -> ReplayStep {
        let lines = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect();
        ReplayStep {
            event: "< 1 eth".to_owned(),
            expected: lines(wanted),
            actual: lines(happened),
        }
    }

    #[test]
    fn what_nobody_sees_is_no_difference() {
        let wanted = ["> 2 eth", "> 1 eth", "x no_match"];
        assert_eq!(
            difference(&step(&wanted, &["> 1 eth", "> 2 eth"]), &[]),
            None
        );
        let wanted = ["! packet_in reason=miss table=0 max_len=9 | eth"];
        let happened = ["! packet_in reason=no_match table=0 | eth"];
        assert_eq!(difference(&step(&wanted, &happened), &[]), None);
    }

    #[test]
    fn a_clock_of_its_own_tells_its_own_time() {
        let told = |time| format!("! flow_removed table=0 reason=delete duration={time}");
        let step = step(&[&told("10s")], &[&told("10.003s")]);
        assert!(difference(&step, &[]).is_some());
        assert_eq!(difference(&step, &["duration="]), None);
    }

    #[test]
    fn what_is_missing_is_a_difference() {
        let told = difference(&step(&["> 2 eth"], &[]), &[]).expect("a difference");
        assert!(
            told.contains("> 2 eth") && told.contains("nothing"),
            "{told}"
        );
    }
}
