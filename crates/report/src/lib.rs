//! Reports of measurements: an HTML page, comparisons of two runs, thresholds, and exports to CSV
//! and Markdown. All of them are functions of the records, so that they can be made again, and
//! improved, long after the run.
//!
//! Experiments are known by their descriptions ([`record::Description`]) alone.

mod analysis;
pub mod compare;
pub mod export;
pub mod figures;
pub mod format;
pub mod html;
mod published;
pub mod summary;
pub mod threshold;

pub use html::{Language, glance, render};
pub use published::{
    PublishedCurve, PublishedCurves, PublishedData, PublishedDevice, PublishedResult,
    PublishedResults, PublishedRow, PublishedSpan, PublishedTable, Range, published,
};
