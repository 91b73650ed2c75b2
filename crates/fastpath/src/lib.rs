//! The tables of a [`pipeline::Pipeline`] compiled for lookup, so that the cost
//! of a frame depends on the rules and never on the traffic: no lookup needs a cache that
//! traffic could thrash. Where frames come by many tables, those of few flows are spared
//! most lookups (`trail`), and others pay nothing for that.
//!
//! A [`Classifier`], the one writer, follows the changes of a pipeline and
//! publishes [`View`]s; a [`ViewLookup`] answers what the interpreter asks, from one
//! view. How the two get along without waiting is told in `segment`.
//!
//! A [`Runner`] takes batches of frames through such a view: frames become words, rules
//! are found by them, and what rules do was compiled into simple steps. What is not is
//! left to the interpreter, and counted by its [`SlowPathReason`].
//!
//! It decides no meaning: where it differs from the interpreter, it is wrong.

mod ahead;
mod base;
mod bits;
mod change;
mod classifier;
mod direct;
mod doors;
mod lanes;
mod places;
mod prefix;
mod rows;
mod runner;
mod segment;
mod shape;
mod steps;
mod tally;
#[cfg(test)]
mod testing;
mod trail;
mod trial;
mod trunk;
mod tuple;
mod way;

pub use classifier::{Classifier, LookupScratch, Savepoint, TableDescription, View, ViewLookup};
pub use runner::{BatchContext, BatchRun, FrameOutcome, Runner};
pub use steps::SlowPathReason;
pub use trial::LookupProbe;
