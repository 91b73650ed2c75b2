//! Scales of axes, with round ticks.

use crate::format::decimal;

/// Scale of an axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Scale {
    /// Linear.
    Linear {
        /// Value at the start.
        low: f64,
        /// Value at the end.
        high: f64,
    },
    /// Logarithmic; both ends are positive.
    Log {
        /// Value at the start.
        low: f64,
        /// Value at the end.
        high: f64,
    },
    /// Shares by nines (see [`nines`]): 0 %, 90 %, 99 % and so on.
    Nines {
        /// Nines at the end.
        most: f64,
    },
    /// Groups side by side, without ticks.
    Groups {
        /// Number of groups.
        count: usize,
    },
}

/// Returns the number of nines of a share: 1 for 90 %, 2 for 99 %.
pub(super) fn nines(share: f64) -> f64 {
    -(1.0 - share).max(1e-12).log10()
}

impl Scale {
    /// Returns a linear scale from zero to a round number not below `most`.
    pub(super) fn from_zero(most: f64) -> Self {
        let most = if most > 0.0 { most } else { 1.0 };
        let step = step(most, 5.0);
        Self::Linear {
            low: 0.0,
            high: (most / step).ceil() * step,
        }
    }

    /// Returns a logarithmic scale from `least` to `most`, rounded outwards.
    pub(super) fn log(least: f64, most: f64) -> Self {
        let least = if least > 0.0 { least } else { 1.0 };
        let most = most.max(least);
        Self::Log {
            low: round_down(least),
            high: round_up(most.max(least * 1.01)),
        }
    }

    /// Returns the position of `value`, from 0 at the start to 1 at the end, clamped.
    pub(super) fn position(&self, value: f64) -> f64 {
        let position = match *self {
            Self::Linear { low, high } => (value - low) / (high - low),
            Self::Log { low, high } => (value.max(low) / low).ln() / (high / low).ln(),
            Self::Nines { most } => value / most,
            Self::Groups { count } => value / count as f64,
        };
        position.clamp(0.0, 1.0)
    }

    /// Returns true if `value` is beyond the end.
    pub(super) fn is_beyond(&self, value: f64) -> bool {
        value > self.end()
    }

    const fn end(&self) -> f64 {
        self.ends().1
    }

    /// Returns the values at the start and at the end.
    pub(super) const fn ends(&self) -> (f64, f64) {
        match *self {
            Self::Linear { low, high } | Self::Log { low, high } => (low, high),
            Self::Nines { most } => (0.0, most),
            Self::Groups { count } => (0.0, count as f64),
        }
    }

    /// Returns the label of a tick.
    pub(super) fn label(&self, tick: f64) -> String {
        match self {
            Self::Linear { .. } | Self::Log { .. } => label(tick),
            Self::Nines { .. } => match tick {
                none if none < 0.5 => "0 %".to_owned(),
                one if one < 1.5 => "90 %".to_owned(),
                two if two < 2.5 => "99 %".to_owned(),
                three if three < 3.5 => "99.9 %".to_owned(),
                _ => "99.99 %".to_owned(),
            },
            Self::Groups { .. } => String::new(),
        }
    }

    /// Returns the ticks in ascending order.
    pub(super) fn ticks(&self) -> Vec<f64> {
        match *self {
            Self::Linear { low, high } => {
                let step = step(high - low, 5.0);
                let count = ((high - low) / step + 1e-9).floor();
                let mut ticks = Vec::new();
                let mut index = 0.0;
                while index <= count {
                    ticks.push(low + index * step);
                    index += 1.0;
                }
                ticks
            }
            Self::Log { low, high } => log_ticks(low, high),
            Self::Nines { most } => {
                let mut ticks = vec![0.0];
                while ticks.last().is_some_and(|last| last + 1.0 <= most) {
                    ticks.push(ticks.len() as f64);
                }
                ticks
            }
            Self::Groups { .. } => Vec::new(),
        }
    }
}

/// Returns a number as the label of a tick.
pub(super) fn label(value: f64) -> String {
    let digits = match value.abs() {
        zero if zero < 1e-12 => 0,
        small if small < 0.0995 => 2,
        small if small < 0.995 || (value.fract().abs() > 1e-9 && small < 10.0) => 1,
        _ => 0,
    };
    decimal(value, digits)
}

/// Returns 1, 2 or 5 times a power of ten, such that about `count` steps span `range`.
fn step(range: f64, count: f64) -> f64 {
    let raw = range / count;
    let power = 10_f64.powf(raw.log10().floor());
    let factor = match raw / power {
        f if f <= 1.0 => 1.0,
        f if f <= 2.0 => 2.0,
        f if f <= 5.0 => 5.0,
        _ => 10.0,
    };
    factor * power
}

/// Round numbers of a decade.
const ROUND: [f64; 3] = [1.0, 2.0, 5.0];

fn round_down(value: f64) -> f64 {
    let power = 10_f64.powf(value.log10().floor());
    let factors = ROUND.iter().rev();
    let found = factors
        .map(|f| f * power)
        .find(|&round| round <= value * (1.0 + 1e-9));
    found.unwrap_or(power)
}

fn round_up(value: f64) -> f64 {
    let power = 10_f64.powf(value.log10().floor());
    let factors = ROUND.iter().chain(&[10.0]);
    let found = factors
        .map(|f| f * power)
        .find(|&round| round >= value * (1.0 - 1e-9));
    found.unwrap_or(10.0 * power)
}

/// Returns 1, 2 and 5 of each decade, or powers of ten only for many decades.
fn log_ticks(low: f64, high: f64) -> Vec<f64> {
    let decades = (high / low).log10();
    let factors: &[f64] = if decades > 3.5 { &ROUND[..1] } else { &ROUND };
    let mut ticks = Vec::new();
    let mut power = 10_f64.powf(low.log10().floor());
    while power <= high * (1.0 + 1e-9) {
        let within = |tick: &f64| *tick >= low * (1.0 - 1e-9) && *tick <= high * (1.0 + 1e-9);
        ticks.extend(factors.iter().map(|factor| factor * power).filter(within));
        power *= 10.0;
    }
    ticks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(scale: Scale) -> Vec<String> {
        scale.ticks().into_iter().map(label).collect()
    }

    #[test]
    fn ticks_are_round_numbers() {
        assert_eq!(
            labels(Scale::from_zero(9.4)),
            ["0", "2", "4", "6", "8", "10"]
        );
        assert_eq!(
            labels(Scale::from_zero(0.9)),
            ["0", "0.2", "0.4", "0.6", "0.8", "1"]
        );
        assert_eq!(
            labels(Scale::from_zero(870.0)),
            ["0", "200", "400", "600", "800", "1\u{202f}000"]
        );
        assert_eq!(
            labels(Scale::log(9.0, 412.0)),
            ["5", "10", "20", "50", "100", "200", "500"]
        );
        assert_eq!(labels(Scale::log(0.3, 1.9)), ["0.2", "0.5", "1", "2"]);
        assert_eq!(labels(Scale::log(1.0, 90_000.0)).len(), 6);
    }

    #[test]
    fn nines_are_labelled_as_shares() {
        let scale = Scale::Nines { most: 4.0 };
        let labels: Vec<String> = scale
            .ticks()
            .iter()
            .map(|tick| scale.label(*tick))
            .collect();
        assert_eq!(labels, ["0 %", "90 %", "99 %", "99.9 %", "99.99 %"]);
        assert!((nines(0.999) - 3.0).abs() < 1e-9);
        assert!(nines(1.0) >= 12.0);
    }

    #[test]
    fn positions_are_clamped() {
        let log = Scale::log(10.0, 1_000.0);
        assert_eq!((log.position(10.0), log.position(1_000.0)), (0.0, 1.0));
        assert!((log.position(100.0) - 0.5).abs() < 1e-12);
        assert_eq!((log.position(0.0), log.position(1e9)), (0.0, 1.0));
        assert_eq!(Scale::from_zero(10.0).position(5.0), 0.5);
    }

    #[test]
    fn empty_range_has_ticks() {
        assert!(Scale::from_zero(0.0).ticks().len() > 1);
        assert!(Scale::log(0.0, 0.0).ticks().len() > 1);
    }
}
