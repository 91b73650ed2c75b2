//! Numbers for ports: those that run keep theirs, whatever others ask for; then come
//! those that are asked for, then those of the last run, then the lowest that are free.

use std::collections::BTreeSet;

use base::PortNo;

use crate::rows::Record;
use config::PORT_NUMBER_MAX;

/// What is wished for a port.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Wish {
    /// The number that was asked for.
    pub(super) asked: Option<PortNo>,
    /// The number that it has.
    pub(super) held: Option<PortNo>,
    /// The number that the database remembers.
    pub(super) remembered: Option<PortNo>,
}

impl Wish {
    /// What is wished for this interface, which has the number `held`.
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

/// A number for each port; none, if there is none left.
pub(super) fn number(wishes: &[Wish]) -> Vec<Option<PortNo>> {
    let mut taken = BTreeSet::new();
    let mut numbers = vec![None; wishes.len()];
    let rounds: [fn(&Wish) -> Option<PortNo>; 4] = [
        |wish| {
            wish.held
                .filter(|held| wish.asked.is_none_or(|asked| asked == *held))
        },
        |wish| wish.asked,
        // Of those that asked for a number which another has, too.
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
