//! Statistics of measurements: confidence intervals, comparisons, distributions, and the search for
//! throughput ([`mlrsearch`]).
//!
//! The unit of inference is the run. Packets of one run are correlated, and an interval over
//! packets is narrower than the difference between two runs of the same device. Intervals are
//! therefore computed over the results of runs; packets only make distributions. Functions that
//! work within one run (batch means, blocks) say so in their names.
//!
//! | question | function |
//! |---|---|
//! | What is the mean, and how certain is it? | [`mean_interval`], [`ratio_interval`] |
//! | The same for a percentile or any other statistic | [`bootstrap_runs`], [`quantile_interval`] |
//! | Do two devices differ? | [`contrast`], [`paired_contrast`], [`verdict`]; without normality [`hodges_lehmann`], [`cliffs_delta`] |
//! | Which of many differences are real? | [`holm`] |
//! | How often does an event happen? | [`proportion_interval`]; if never, [`zero_events_bound`] |
//! | How does delay vary, and how are losses grouped? | [`inter_packet_variations`], [`interarrival_jitter`], [`loss_pattern`] |
//! | At which load does loss begin? | [`mlrsearch`] |
//! | Is one run steady? | [`drift`], [`batch_means_interval`], [`block_bootstrap_interval`] |
//!
//! All functions are pure; those that draw random numbers take a seed.
//!
//! # Examples
//!
//! ```
//! use stats::{CONFIDENCE, Margin, Verdict, ratio_interval, verdict, paired_contrast};
//!
//! // Rates of two devices in five interleaved runs.
//! let runs = [(10.1, 5.0), (9.8, 4.9), (10.4, 5.3), (9.9, 5.0), (10.2, 5.1)];
//! let ratio = ratio_interval(&runs, CONFIDENCE).unwrap();
//! assert!(ratio.low > 1.9 && ratio.high < 2.1);
//!
//! let pairs = runs.map(|(a, b): (f64, f64)| (b.ln(), a.ln()));
//! let difference = paired_contrast(&pairs, CONFIDENCE).unwrap();
//! assert_eq!(verdict(&difference.interval, Margin::of_ratio(0.05)), Verdict::More);
//! ```

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
