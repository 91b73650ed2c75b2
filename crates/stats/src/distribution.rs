//! The empirical distribution of a quantity: quantiles and the cumulative curve.

/// Values in ascending order, at least one.
#[derive(Clone, Debug, PartialEq)]
pub struct Distribution {
    sorted: Vec<u32>,
}

impl Distribution {
    /// Creates the distribution of `values`, or `None` if there are none.
    #[must_use]
    pub fn new(values: impl IntoIterator<Item = u32>) -> Option<Self> {
        let mut sorted: Vec<u32> = values.into_iter().collect();
        sorted.sort_unstable();
        (!sorted.is_empty()).then_some(Self { sorted })
    }

    /// Returns the values, in ascending order.
    #[must_use]
    pub fn values(&self) -> &[u32] {
        &self.sorted
    }

    /// Returns the number of values.
    #[must_use]
    pub fn count(&self) -> usize {
        self.sorted.len()
    }

    /// Returns the mean.
    #[must_use]
    pub fn mean(&self) -> f64 {
        let sum: u64 = self.sorted.iter().map(|&value| u64::from(value)).sum();
        sum as f64 / self.count() as f64
    }

    /// Returns the smallest value.
    #[must_use]
    pub fn min(&self) -> u32 {
        self.sorted[0]
    }

    /// Returns the largest value.
    #[must_use]
    pub fn max(&self) -> u32 {
        self.sorted[self.count() - 1]
    }

    /// Returns the smallest value that `thousandths` of all values do not exceed: the inverse of
    /// the empirical distribution, hence a measured value.
    #[must_use]
    pub fn quantile(&self, thousandths: u16) -> u32 {
        let rank = (self.count() * usize::from(thousandths.min(1000))).div_ceil(1000);
        self.sorted[rank.saturating_sub(1)]
    }

    /// True if enough values are beyond the quantile: at least twenty.
    #[must_use]
    pub fn supports(&self, thousandths: u16) -> bool {
        self.count() * usize::from(1000_u16.saturating_sub(thousandths)) >= 20 * 1000
    }

    /// Returns the cumulative curve: values with the share of values that do not exceed them, at
    /// most `points` of them, including both ends.
    #[must_use]
    pub fn curve(&self, points: usize) -> Vec<(u32, f64)> {
        let count = self.count();
        let points = points.clamp(2, count.max(2));
        let mut curve: Vec<(u32, f64)> = Vec::with_capacity(points);
        for point in 0..points {
            let index = point * (count - 1) / (points - 1);
            let share = (index + 1) as f64 / count as f64;
            match curve.last_mut() {
                // One step for all equal values.
                Some(last) if last.0 == self.sorted[index] => last.1 = share,
                _ => curve.push((self.sorted[index], share)),
            }
        }
        curve
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_values_that_were_measured() {
        let ten = Distribution::new((1..=10).rev()).unwrap();
        assert_eq!((ten.min(), ten.max(), ten.count()), (1, 10, 10));
        assert_eq!(ten.quantile(500), 5);
        assert_eq!(ten.quantile(501), 6);
        assert_eq!(ten.quantile(990), 10);
        assert_eq!((ten.quantile(0), ten.quantile(1000)), (1, 10));
        assert!((ten.mean() - 5.5).abs() < 1e-12);
    }

    #[test]
    fn tails_need_twenty_values_beyond() {
        let thousand = Distribution::new(0..2_000).unwrap();
        assert!(thousand.supports(990) && !thousand.supports(999));
    }

    #[test]
    fn curve_has_both_ends_and_one_point_for_each_value() {
        let values = Distribution::new([5, 5, 5, 7]).unwrap();
        assert_eq!(values.curve(100), [(5, 0.75), (7, 1.0)]);
        let many = Distribution::new(0..10_000).unwrap().curve(101);
        assert_eq!(many.len(), 101);
        assert_eq!((many[0], many[100]), ((0, 0.0001), (9_999, 1.0)));
    }

    #[test]
    fn empty_input_has_no_distribution() {
        assert_eq!(Distribution::new([]), None);
    }
}
