//! Assignment of port numbers. Existing ports keep theirs, unless they request another; then
//! requested numbers apply, then those of the last run, then the lowest free ones.

use std::collections::BTreeSet;

use base::PortNo;

use crate::rows::Record;
use config::PORT_NUMBER_MAX;

/// The candidates for the number of a port.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct NumberCandidates {
    /// The requested number (`ofport_request`).
    pub(super) requested: Option<PortNo>,
    /// The current number.
    pub(super) current: Option<PortNo>,
    /// The number in the database, from the last run.
    pub(super) remembered: Option<PortNo>,
}

impl NumberCandidates {
    /// Returns the candidates for an interface whose current number is `current`.
    pub(super) fn of(interface: Record<'_>, current: Option<PortNo>) -> Self {
        let number = |column| {
            let number = interface.integer(column)?;
            let number = u32::try_from(number).ok().map(PortNo)?;
            (1..=PORT_NUMBER_MAX).contains(&number.0).then_some(number)
        };
        Self {
            requested: number("ofport_request"),
            current,
            remembered: number("ofport"),
        }
    }
}

/// Returns a number for each port; none if no number is left.
pub(super) fn number(candidates: &[NumberCandidates]) -> Vec<Option<PortNo>> {
    let mut taken = BTreeSet::new();
    let mut numbers = vec![None; candidates.len()];
    let rounds: [fn(&NumberCandidates) -> Option<PortNo>; 4] = [
        |candidate| {
            candidate.current.filter(|current| {
                candidate
                    .requested
                    .is_none_or(|requested| requested == *current)
            })
        },
        |candidate| candidate.requested,
        // For ports whose requested number belongs to another.
        |candidate| candidate.current,
        |candidate| candidate.remembered,
    ];
    for round in rounds {
        for (candidate, number) in candidates.iter().zip(&mut numbers) {
            if number.is_none() {
                *number = round(candidate).filter(|number| taken.insert(*number));
            }
        }
    }
    let mut free = (1..=PORT_NUMBER_MAX)
        .map(PortNo)
        .filter(|number| !taken.contains(number));
    for number in &mut numbers {
        if number.is_none() {
            *number = free.next();
        }
    }
    numbers
}
