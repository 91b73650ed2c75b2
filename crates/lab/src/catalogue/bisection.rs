//! Bisection: the greatest load that succeeds, with one trial for each load. The interval is
//! divided at its geometric mean, so the number of trials is known in advance.
//!
//! It suits searches that must be short; noisy results need [`stats::mlrsearch`].

/// Search over integer loads.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bisection {
    /// Greatest load that succeeded.
    good: Option<u64>,
    /// Least load that failed.
    bad: Option<u64>,
    least: u64,
    most: u64,
    /// Final width of the interval, as a share of its upper bound.
    width: f64,
}

impl Bisection {
    /// Returns a search from `least` to `most`; `most` is the first load.
    pub(super) fn new(least: u64, most: u64, width: f64) -> Self {
        let least = least.max(1);
        Self {
            good: None,
            bad: None,
            least,
            most: most.max(least),
            width,
        }
    }

    /// Returns the next load; `None` if the interval is narrow enough.
    pub(super) fn next(&self) -> Option<u64> {
        let Some(bad) = self.bad else {
            return self.good.is_none().then_some(self.most);
        };
        let Some(good) = self.good else {
            return (bad > self.least).then(|| match middle(self.least, bad) {
                // Close to the least load, that load itself decides.
                middle if bad - self.least <= 1 || self.is_close(middle, bad) => self.least,
                middle => middle,
            });
        };
        (!self.is_close(good, bad)).then(|| middle(good, bad))
    }

    fn is_close(&self, good: u64, bad: u64) -> bool {
        bad - good <= 1 || (bad - good) as f64 <= self.width * bad as f64
    }

    /// Adds the result of a trial of `load`.
    pub(super) fn handle(&mut self, load: u64, is_good: bool) {
        match is_good {
            true => self.good = Some(self.good.map_or(load, |good| good.max(load))),
            false => self.bad = Some(self.bad.map_or(load, |bad| bad.min(load))),
        }
    }

    /// Returns the greatest load that succeeded; `None` if the least one failed.
    pub(super) const fn found(&self) -> Option<u64> {
        self.good
    }

    /// Returns true if the greatest load succeeded: the limit may be above it.
    pub(super) const fn is_open(&self) -> bool {
        self.bad.is_none() && self.good.is_some()
    }

    /// Runs all trials.
    pub(super) fn run<E>(
        mut self,
        mut trial: impl FnMut(u64) -> Result<bool, E>,
    ) -> Result<Self, E> {
        while let Some(load) = self.next() {
            let is_good = trial(load)?;
            self.handle(load, is_good);
        }
        Ok(self)
    }
}

/// Returns the geometric mean, strictly between both if there is an integer between them.
fn middle(low: u64, high: u64) -> u64 {
    let mean = (low as f64 * high as f64).sqrt();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is between two loads"
    )]
    let mean = mean as u64;
    mean.clamp(low + 1, high.saturating_sub(1).max(low + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn search(limit: u64, least: u64, most: u64, width: f64) -> (Bisection, u32) {
        let mut trials = 0;
        let found = Bisection::new(least, most, width).run(|load| {
            trials += 1;
            assert!((least..=most).contains(&load), "{load}");
            Ok::<_, ()>(load <= limit)
        });
        (found.unwrap(), trials)
    }

    #[test]
    fn bisection_finds_the_limit_within_its_width() {
        for limit in [1_000, 1_001, 7_777, 123_456, 999_999] {
            let (found, trials) = search(limit, 1_000, 1_000_000, 0.1);
            let good = found.found().unwrap();
            assert!(
                good <= limit && good as f64 >= 0.89 * limit as f64,
                "{good} {limit}"
            );
            assert!(trials <= 9, "{trials}");
            assert!(!found.is_open());
        }
        let (found, _) = search(12_345, 1, 1_000_000, 0.0);
        assert_eq!(found.found(), Some(12_345));
    }

    #[test]
    fn bisection_reports_a_limit_outside_its_range() {
        let (found, trials) = search(u64::MAX, 10, 500, 0.1);
        assert_eq!(
            (found.found(), found.is_open(), trials),
            (Some(500), true, 1)
        );
        let (found, _) = search(9, 10, 500, 0.1);
        assert_eq!((found.found(), found.is_open()), (None, false));
        let (found, trials) = search(5, 5, 5, 0.1);
        assert_eq!((found.found(), trials), (Some(5), 1));
        let (found, trials) = search(4, 5, 5, 0.1);
        assert_eq!((found.found(), trials), (None, 1));
    }
}
