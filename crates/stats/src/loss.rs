//! Loss patterns (RFC 3357): the lengths of losses and the distances between them.

/// The loss pattern of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LossPattern {
    /// Lengths of runs of consecutive lost frames (loss period lengths, section 5.3).
    pub periods: Vec<u64>,
    /// Differences of the sequence numbers of successive lost frames (loss distances, section 3.2);
    /// 1 within a period.
    pub distances: Vec<u64>,
    /// Numbers of received frames between two periods (inter loss period lengths, section 5.4).
    pub between: Vec<u64>,
}

impl LossPattern {
    /// Returns the number of lost frames.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.periods.iter().sum()
    }

    /// Returns the share of losses within `delta` sequence numbers of the previous one, which a
    /// listener would notice (section 5.1), or `None` without losses.
    #[must_use]
    pub fn noticeable_share(&self, delta: u64) -> Option<f64> {
        let near = self.distances.iter().filter(|distance| **distance <= delta);
        let lost = self.lost();
        (lost > 0).then(|| near.count() as f64 / lost as f64)
    }
}

/// Returns the loss pattern of a stream, from the fate of each frame in the order of sending.
#[must_use]
pub fn loss_pattern(came: impl IntoIterator<Item = bool>) -> LossPattern {
    let mut pattern = LossPattern::default();
    let mut last_lost: Option<u64> = None;
    for (sequence, came) in (0_u64..).zip(came) {
        if came {
            continue;
        }
        let distance = last_lost.map(|last| sequence - last);
        match (distance, pattern.periods.last_mut()) {
            (Some(1), Some(period)) => *period += 1,
            (Some(distance), _) => {
                pattern.between.push(distance - 1);
                pattern.periods.push(1);
            }
            (None, _) => pattern.periods.push(1),
        }
        pattern.distances.extend(distance);
        last_lost = Some(sequence);
    }
    pattern
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_grouped_as_the_rfc_has_it() {
        // Lost: 2, 3, 4, 8, 9 of ten.
        let came = [
            true, true, false, false, false, true, true, true, false, false,
        ];
        let pattern = loss_pattern(came);
        assert_eq!(pattern.periods, [3, 2]);
        assert_eq!(pattern.distances, [1, 1, 4, 1]);
        assert_eq!(pattern.between, [3]);
        assert_eq!(pattern.lost(), 5);
        assert_eq!(pattern.noticeable_share(1), Some(0.6));
        assert_eq!(pattern.noticeable_share(4), Some(0.8));
    }

    #[test]
    fn stream_without_loss_has_no_pattern() {
        let pattern = loss_pattern([true; 5]);
        assert_eq!(pattern, LossPattern::default());
        assert_eq!(pattern.noticeable_share(9), None);
    }
}
