//! Void trials, notes, and missing trials.

use std::collections::{BTreeMap, BTreeSet};

use maud::{Markup, html};
use record::{Flaw, Results, Trial};

use crate::format::{count, percent};

/// Greatest number of trials that are named for one reason.
const NAMED_MAX: usize = 6;

pub(super) fn section(results: &Results) -> Markup {
    let trials = results.trials();
    let valid = trials.iter().filter(|trial| trial.is_valid()).count();
    let proven = trials.iter().filter(|trial| is_proven(trial)).count();
    html! {
        section #validity {
            h2 { "Validity" }
            p {
                (count(valid as u64)) " of " (count(trials.len() as u64)) " trials are valid. "
                @if proven > 0 {
                    "In " (count(proven as u64)) " trials the counters of the device prove that its rules forwarded: "
                    "no packet was sent to the controller, and the rules counted as many packets as the tester."
                }
            }
            @if let Some((done, planned)) = missing(results) {
                p.warning {
                    "The run is not complete: " (count(done)) " of " (count(planned))
                    " planned trials were done. The same command with " code { "--resume" } " continues it."
                }
            }
            (flaws(trials, true, "Void trials", "They are in no table or figure above."))
            (flaws(trials, false, "Notes", "These trials are valid."))
            (super::steadiness::notes(results))
            (steal(trials))
        }
    }
}

/// Returns true if a trial is valid and the counters of its rules were checked: a failed check makes
/// a trial void.
fn is_proven(trial: &Trial) -> bool {
    let reading = trial.reading.as_ref();
    trial.is_valid() && reading.is_some_and(|reading| reading.openflow.is_some())
}

/// Returns the numbers of done trials and of those that the last session planned; `None` if all were
/// done.
fn missing(results: &Results) -> Option<(u64, u64)> {
    let session = results.sessions().last()?;
    let planned = session.planned;
    let done = results.trials().len() as u64;
    (done < planned).then_some((done, planned))
}

/// Returns the flaws of a kind, in one line for all that differ in their numbers only.
fn flaws(trials: &[Trial], void: bool, title: &str, meaning: &str) -> Markup {
    let mut groups: BTreeMap<String, FlawGroup<'_>> = BTreeMap::new();
    let of_kind = |flaw: &&Flaw| flaw.void == void;
    for trial in trials {
        for flaw in trial.flaws.iter().filter(of_kind) {
            let group = groups.entry(pattern(&flaw.reason)).or_default();
            group.reasons.insert(&flaw.reason);
            group.ids.push(&trial.id);
        }
    }
    html! {
        @if !groups.is_empty() {
            h3 { (title) }
            p.fine { (meaning) }
            ul.flaws { @for group in groups.values() { li { (group.line()) } } }
        }
    }
}

/// Flaws of one pattern.
#[derive(Default)]
struct FlawGroup<'a> {
    reasons: BTreeSet<&'a str>,
    ids: Vec<&'a str>,
}

impl FlawGroup<'_> {
    fn line(&self) -> Markup {
        let (reasons, ids) = (&self.reasons, &self.ids);
        let rest = ids.len().saturating_sub(NAMED_MAX);
        html! {
            @if ids.len() > 1 { (ids.len()) " trials" @if reasons.len() > 1 { ", for example" } ": " }
            @if let Some(reason) = reasons.first() { (reason) }
            ": "
            @for (index, id) in ids.iter().take(NAMED_MAX).enumerate() {
                @if index > 0 { ", " }
                code { (id) }
            }
            @if rest > 0 { " and " (rest) " more" }
        }
    }
}

/// Returns `reason` without its numbers.
fn pattern(reason: &str) -> String {
    let mut pattern = String::new();
    for part in reason.split(|c: char| c.is_ascii_digit() || c == '.') {
        if !part.is_empty() {
            pattern.push_str(part);
            pattern.push('#');
        }
    }
    pattern
}

/// Returns the share of steal time in all trials.
fn steal(trials: &[Trial]) -> Markup {
    let (stolen, seconds) = trials
        .iter()
        .filter_map(|trial| trial.conditions.as_ref())
        .fold((0.0, 0.0), |(stolen, seconds), conditions| {
            (
                stolen + conditions.steal * conditions.seconds,
                seconds + conditions.seconds,
            )
        });
    html! {
        @if seconds > 0.0 {
            p.fine {
                "Steal time during the trials: the hypervisor gave "
                (percent(stolen / seconds)) " of the cores’ time to others."
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pattern_ignores_numbers() {
        assert_eq!(pattern("lost 3 of 10.5 %"), pattern("lost 31 of 0.25 %"));
        assert_ne!(pattern("lost 3 of 10"), pattern("kept 3 of 10"));
    }
}
