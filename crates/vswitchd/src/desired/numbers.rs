//! Assignment of port numbers. Ports with the number that they request keep it; then requests apply,
//! even to numbers of ports that request none; then ports keep their numbers; then those of the last
//! run apply, and the others are chosen.

use std::collections::BTreeSet;

use base::PortNo;

use crate::rows::Record;
use config::{PORT_NUMBER_MAX, PortNumbering};

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

/// Returns a number for each port; none if no number is left. `numbering` has the numbers of the
/// bridge's earlier ports.
pub(super) fn number(
    candidates: &[NumberCandidates],
    numbering: &mut PortNumbering,
) -> Vec<Option<PortNo>> {
    let mut taken = BTreeSet::new();
    let mut numbers = vec![None; candidates.len()];
    let rounds: [fn(&NumberCandidates) -> Option<PortNo>; 4] = [
        |candidate| {
            candidate
                .current
                .filter(|_| candidate.requested == candidate.current)
        },
        |candidate| candidate.requested,
        // Also for ports whose requested number belongs to another.
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
    for number in &mut numbers {
        if number.is_none() {
            *number = numbering.choose(&taken);
            taken.extend(*number);
        }
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_takes_the_number_of_a_port_that_requests_none() {
        let port = |requested: Option<u32>, current| NumberCandidates {
            requested: requested.map(PortNo),
            current: Some(PortNo(current)),
            remembered: None,
        };
        let given = |candidates: &[NumberCandidates]| {
            let numbers = number(candidates, &mut PortNumbering::default());
            let numbers = numbers
                .into_iter()
                .map(|number| number.map(|number| number.0));
            numbers.collect::<Option<Vec<_>>>()
        };
        assert_eq!(given(&[port(None, 1), port(Some(1), 2)]), Some(vec![2, 1]));
        assert_eq!(
            given(&[port(Some(2), 1), port(Some(1), 2)]),
            Some(vec![2, 1])
        );
        assert_eq!(
            given(&[port(Some(1), 1), port(Some(1), 2)]),
            Some(vec![1, 2])
        );
        assert_eq!(given(&[port(None, 1), port(None, 2)]), Some(vec![1, 2]));
    }
}
