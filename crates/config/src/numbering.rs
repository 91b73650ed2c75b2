//! The choice of numbers for ports that request none. A number is not given again soon, because a
//! controller may still have rules for the port that had it (as in Open vSwitch).

use std::collections::BTreeSet;

use base::PortNo;

use crate::PORT_NUMBER_MAX;

/// The highest number that is chosen as long as any below is free; those above are for requests.
const CHOSEN_MAX: u32 = 32_767;

/// The released numbers that are remembered. The search continues behind the last chosen number, so
/// they matter only for requested numbers and after thousands of ports.
const RELEASED_MAX: usize = 256;

/// The numbers that a bridge has chosen and released.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortNumbering {
    /// The last chosen number.
    last: u32,
    /// Numbers that ports had, the latest last.
    released: Vec<PortNo>,
}

impl PortNumbering {
    /// Records that the ports with the numbers `before` are replaced by those with the numbers
    /// `after`.
    pub fn replace(&mut self, before: impl Iterator<Item = PortNo>, after: &BTreeSet<PortNo>) {
        self.released.retain(|number| !after.contains(number));
        for number in before.filter(|number| !after.contains(number)) {
            self.released.retain(|released| *released != number);
            self.released.push(number);
        }
        let surplus = self.released.len().saturating_sub(RELEASED_MAX);
        self.released.drain(..surplus);
    }

    /// Chooses a number outside `taken`; none if all are taken.
    pub fn choose(&mut self, taken: &BTreeSet<PortNo>) -> Option<PortNo> {
        let lower = (self.last + 1..=CHOSEN_MAX).chain(1..=self.last);
        let mut unused = lower
            .map(PortNo)
            .filter(|number| !taken.contains(number) && !self.released.contains(number));
        let unused = unused.next();
        let released = || {
            let mut released = self.released.iter();
            released.find(|number| !taken.contains(number)).copied()
        };
        let upper = || {
            let mut upper = (CHOSEN_MAX + 1..=PORT_NUMBER_MAX).map(PortNo);
            upper.find(|number| !taken.contains(number))
        };
        let chosen = unused.or_else(released).or_else(upper)?;
        self.last = chosen.0.min(CHOSEN_MAX);
        Some(chosen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(numbers: &[u32]) -> BTreeSet<PortNo> {
        numbers.iter().copied().map(PortNo).collect()
    }

    #[test]
    fn numbers_are_not_chosen_again_soon() {
        let mut numbering = PortNumbering::default();
        assert_eq!(numbering.choose(&set(&[])), Some(PortNo(1)));
        assert_eq!(numbering.choose(&set(&[1, 2])), Some(PortNo(3)));
        numbering.replace(set(&[1, 3, 4]).into_iter(), &set(&[1]));
        // Port 4 had a requested number.
        assert_eq!(numbering.choose(&set(&[1])), Some(PortNo(5)));
    }

    #[test]
    fn numbers_above_the_middle_are_for_requests() {
        let mut numbering = PortNumbering::default();
        let mut taken: BTreeSet<_> = (1..=CHOSEN_MAX).map(PortNo).collect();
        assert_eq!(numbering.choose(&taken), Some(PortNo(CHOSEN_MAX + 1)));
        taken.remove(&PortNo(7));
        numbering.replace([PortNo(7)].into_iter(), &taken);
        assert_eq!(numbering.choose(&taken), Some(PortNo(7)));
        taken.extend((1..=PORT_NUMBER_MAX).map(PortNo));
        assert_eq!(numbering.choose(&taken), None);
    }

    #[test]
    fn released_numbers_are_bounded() {
        let mut numbering = PortNumbering::default();
        let before: Vec<_> = (1..=1000).map(PortNo).collect();
        numbering.replace(before.into_iter(), &set(&[]));
        assert_eq!(numbering.released.len(), RELEASED_MAX);
    }
}
