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
    pub(super) asked: Option<PortNo>,
    /// The current number.
    pub(super) held: Option<PortNo>,
    /// The number in the database, from the last run.
    pub(super) remembered: Option<PortNo>,
}

impl NumberCandidates {
    /// Returns the candidates for an interface whose current number is `held`.
    pub(super) fn of(interface: Record<'_>, held: Option<PortNo>) -> Self {
        let number = |column| {
            let number = interface.integer(column)?;
            let number = u32::try_from(number).ok().map(PortNo)?;
            (1..=PORT_NUMBER_MAX).contains(&number.0).then_some(number)
        };
        Self {
            asked: number("ofport_request"),
            held,
            remembered: number("ofport"),
        }
    }
}

/// Returns a number for each port; none if no number is left.
pub(super) fn number(wishes: &[NumberCandidates]) -> Vec<Option<PortNo>> {
    let mut taken = BTreeSet::new();
    let mut numbers = vec![None; wishes.len()];
    let rounds: [fn(&NumberCandidates) -> Option<PortNo>; 4] = [
        |wish| {
            wish.held
                .filter(|held| wish.asked.is_none_or(|asked| asked == *held))
        },
        |wish| wish.asked,
        // For ports whose requested number belongs to another.
        |wish| wish.held,
        |wish| wish.remembered,
    ];
    for round in rounds {
        for (wish, number) in wishes.iter().zip(&mut numbers) {
            if number.is_none() {
                *number = round(wish).filter(|wished| taken.insert(*wished));
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
