//! What a set of numbers says, and with what certainty.
//!
//! The unit of inference is the run: packets of one run are correlated, and an
//! interval over packets is narrower than the difference between two runs of the
//! same device. So intervals are made of run means, and packets only make
//! distributions.

mod distribution;
mod histogram;
mod interval;
mod variation;

pub use distribution::Distribution;
pub use histogram::{BadHistogram, Histogram};
pub use interval::{CONFIDENCE, Interval, mean_interval, ratio_interval};
pub use variation::{
    effective_size, inter_packet_variations, interarrival_jitter, packet_delay_variations,
};
