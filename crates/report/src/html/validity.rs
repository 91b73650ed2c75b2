//! What is wrong with the run, as far as it knows itself: void tests, notes, and
//! tests that are missing.

use std::collections::{BTreeMap, BTreeSet};

use maud::{Markup, html};
use record::Results;
use record::{Flaw, Outcome, Trial};

use crate::format::count;

/// Tests named for one reason; the rest are counted.
const NAMED: usize = 6;

pub(super) fn section(results: &Results) -> Markup {
    let trials = results.trials();
    let valid = trials.iter().filter(|trial| trial.is_valid()).count();
    let proven = trials.iter().filter(|trial| is_proven(trial)).count();
    html! {
        section #validity {
            h2 { "Validity" }
            p {
                (count(valid as u64)) " of " (count(trials.len() as u64)) " tests count. "
                @if proven > 0 {
                    "In all " (count(proven as u64)) " echo tests by rules the device’s own counters prove that it forwarded by them: "
                    "no frame went to the controller, and the rules counted the very frames that the tester did."
                }
            }
            @if let Some((done, planned)) = missing(results) {
                p.warning {
                    "The run is not complete: " (count(done)) " of " (count(planned))
                    " planned tests were done. Go on with it by the same command and " code { "--resume" } "."
                }
            }
            (flaws(trials, true, "Void", "Not in any table or figure above."))
            (flaws(trials, false, "To be noted", "Counted, but worth knowing."))
            (super::steadiness::notes(results))
            (by_steal(trials))
        }
    }
}

/// Whether a valid echo test's rules were checked: those that fail are void.
fn is_proven(trial: &Trial) -> bool {
    let openflow = match &trial.outcome {
        Some(Outcome::Echo(echo)) => echo.openflow,
        Some(
            Outcome::TcpThroughput(_)
            | Outcome::ForwardingRate(_)
            | Outcome::FlowTable(_)
            | Outcome::Meter(_)
            | Outcome::Change(_)
            | Outcome::Requests(_)
            | Outcome::Reading(_),
        )
        | None => None,
    };
    openflow.is_some() && trial.is_valid()
}

/// How many tests were done, and planned by the last session; none if all were.
fn missing(results: &Results) -> Option<(u64, u64)> {
    let session = results.sessions().last()?;
    let planned = session.planned;
    let done = results.trials().len() as u64;
    (done < planned).then_some((done, planned))
}

/// Flaws of a kind, one line for all that differ in nothing but their numbers.
fn flaws(trials: &[Trial], void: bool, title: &str, meaning: &str) -> Markup {
    let mut groups: BTreeMap<String, Group<'_>> = BTreeMap::new();
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
struct Group<'a> {
    reasons: BTreeSet<&'a str>,
    ids: Vec<&'a str>,
}

impl Group<'_> {
    fn line(&self) -> Markup {
        let (reasons, ids) = (&self.reasons, &self.ids);
        let rest = ids.len().saturating_sub(NAMED);
        html! {
            @if ids.len() > 1 { (ids.len()) " tests, " @if reasons.len() > 1 { "for example " } }
            @if let Some(reason) = reasons.first() { (reason) }
            ": "
            @for (index, id) in ids.iter().take(NAMED).enumerate() {
                @if index > 0 { ", " }
                code { (id) }
            }
            @if rest > 0 { " and " (rest) " more" }
        }
    }
}

/// `reason` without its numbers.
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

/// How much of the time the machine was somebody else's.
fn by_steal(trials: &[Trial]) -> Markup {
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
                "While load was offered, the hypervisor gave "
                (crate::format::percent(stolen / seconds)) " of the cores’ time to others."
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_do_not_make_another_reason() {
        assert_eq!(pattern("lost 3 of 10.5 %"), pattern("lost 31 of 0.25 %"));
        assert_ne!(pattern("lost 3 of 10"), pattern("kept 3 of 10"));
    }
}
