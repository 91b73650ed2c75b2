//! Statistics of measurements: confidence intervals, comparisons, distributions, and the search
//! for throughput ([`mlrsearch`]).
//!
//! The unit of inference is the run. Packets of one run are correlated, and an interval over
//! packets is narrower than the difference between two runs of the same device. Intervals are
//! therefore computed over run means; packets only make distributions. Functions that work within
//! one run (batch means, blocks) say so in their names.
//!
//! Not here: what was measured, and how it is shown.

mod bootstrap;
mod comparison;
#[cfg(test)]
mod coverage;
mod distribution;
mod histogram;
mod interval;
mod loss;
pub mod mlrsearch;
mod order;
mod outliers;
mod proportion;
mod shift;
mod variation;
mod within;

pub use bootstrap::{BOOTSTRAP_RUNS_MIN, RESAMPLES, bootstrap_runs};
pub use comparison::{Contrast, Margin, Verdict, contrast, holm, paired_contrast, verdict};
pub use distribution::Distribution;
pub use histogram::{BadHistogram, Histogram};
pub use interval::{CONFIDENCE, Interval, mean_interval, ratio_interval};
pub use loss::{LossPattern, loss_pattern};
pub use order::{quantile_interval, supports_quantile};
pub use outliers::{OUTLIER_SCORE, modified_z_scores};
pub use proportion::{Proportion, proportion_interval, zero_events_bound};
pub use shift::{cliffs_delta, hodges_lehmann, kolmogorov_smirnov};
pub use variation::{
    Jitter, effective_size, inter_packet_variations, interarrival_jitter, packet_delay_variations,
};
pub use within::{Drift, batch_means_interval, block_bootstrap_interval, drift};
