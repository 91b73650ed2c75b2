//! Delay variation by the three definitions of the RFCs, and the correlation of packets within a
//! run.

/// Returns the absolute difference of each packet's delay to that of the packet before it (IPDV:
/// RFC 3393, RFC 5481 section 4.1). A lost packet has no delay and breaks two pairs.
#[must_use]
pub fn inter_packet_variations(delays: &[Option<u32>]) -> Vec<u32> {
    delays
        .windows(2)
        .filter_map(|pair| Some(pair[0]?.abs_diff(pair[1]?)))
        .collect()
}

/// Returns the difference of each packet's delay to the minimum (PDV: RFC 5481 section 4.2).
#[must_use]
pub fn packet_delay_variations(delays: &[Option<u32>]) -> Vec<u32> {
    let least = delays.iter().flatten().min().copied().unwrap_or(0);
    delays.iter().flatten().map(|delay| delay - least).collect()
}

/// The smoothed jitter of RTP (RFC 3550, 6.4.1 and A.8), packet by packet: `J += (|D| - J) / 16`,
/// from zero. D is the difference of two packets' delays.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Jitter {
    smoothed: f64,
    last: Option<u64>,
}

impl Jitter {
    /// Handles the delay of the next packet, or `None` for a lost one, which breaks two pairs.
    pub fn handle(&mut self, delay: Option<u64>) {
        if let (Some(last), Some(delay)) = (self.last, delay) {
            self.smoothed += (last.abs_diff(delay) as f64 - self.smoothed) / 16.0;
        }
        self.last = delay;
    }

    /// Returns the jitter after the last packet, in the unit of the delays.
    #[must_use]
    pub const fn value(&self) -> f64 {
        self.smoothed
    }
}

/// Returns the smoothed jitter of RTP after the last packet ([`Jitter`]).
#[must_use]
pub fn interarrival_jitter(delays: &[Option<u32>]) -> f64 {
    let mut jitter = Jitter::default();
    for delay in delays {
        jitter.handle(delay.map(u64::from));
    }
    jitter.value()
}

/// Returns the number of independent packets with the same information: `n / (1 + 2 Σ ρₖ)`, summed
/// up to the first lag whose correlation is within noise.
#[must_use]
pub fn effective_size(delays: &[Option<u32>]) -> f64 {
    let values: Vec<f64> = delays
        .iter()
        .flatten()
        .map(|&delay| f64::from(delay))
        .collect();
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let centred: Vec<f64> = values.iter().map(|value| value - mean).collect();
    let variance: f64 = centred.iter().map(|value| value * value).sum();
    if variance <= 0.0 {
        return count;
    }
    let noise = 2.0 / count.sqrt();
    let correlation = |lag: usize| {
        let products = centred.iter().zip(&centred[lag..]);
        products.map(|(a, b)| a * b).sum::<f64>() / variance
    };
    let sum: f64 = (1..=values.len() / 4)
        .map(correlation)
        .take_while(|&rho| rho >= noise)
        .sum();
    count / (1.0 + 2.0 * sum)
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::SplitMix64;

    #[test]
    fn lost_packet_breaks_two_pairs() {
        let delays = [Some(10), Some(14), None, Some(11), Some(9)];
        assert_eq!(inter_packet_variations(&delays), [4, 2]);
        assert_eq!(packet_delay_variations(&delays), [1, 5, 2, 0]);
    }

    #[test]
    fn rtp_jitter_follows_its_formula() {
        // RFC 3550, A.8, by hand: J = 16/16 = 1, then 1 + (32 - 1)/16 = 2.9375.
        let delays = [Some(0), Some(16), Some(48)];
        assert!((interarrival_jitter(&delays) - 2.9375).abs() < 1e-12);
        assert!(interarrival_jitter(&[Some(5)]).abs() < 1e-12);
    }

    #[test]
    fn correlated_packets_count_for_less() {
        let mut random = SplitMix64::new(3);
        let mut noise = 0.0;
        let mut sample = |memory: f64| -> Vec<Option<u32>> {
            (0..20_000)
                .map(|_| {
                    noise = memory * noise + random.normal();
                    Some(whole(10_000.0 + 100.0 * noise))
                })
                .collect()
        };
        let independent = effective_size(&sample(0.0));
        assert!(
            (15_000.0..=20_000.0).contains(&independent),
            "{independent}"
        );
        // For an AR(1) process the true value is n (1 - memory) / (1 + memory).
        let correlated = effective_size(&sample(0.5));
        assert!((5_500.0..=8_000.0).contains(&correlated), "{correlated}");
    }

    #[test]
    fn constant_delays_are_taken_at_their_number() {
        assert!((effective_size(&[Some(5); 50]) - 50.0).abs() < 1e-12);
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the simulated delays are small and positive"
    )]
    fn whole(value: f64) -> u32 {
        value as u32
    }
}
