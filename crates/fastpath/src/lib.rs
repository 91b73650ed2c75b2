//! The tables of a [`pipeline::Pipeline`] compiled for lookup, so that the cost
//! of a frame depends on the rules and never on the traffic: there is no cache
//! that traffic could thrash.
//!
//! A [`Classifier`], the one writer, follows the changes of a pipeline and
//! publishes [`View`]s; a [`Looker`] answers what the interpreter asks, from one
//! view. How the two get along without waiting is told in `segment`.
//!
//! It decides no meaning: where it differs from the interpreter, it is wrong.

mod classifier;
mod lanes;
mod segment;
mod shape;
mod tuple;

pub use classifier::{Classifier, Looker, Mark, Scratch, View};
