//! The tables of a [`pipeline::Pipeline`] compiled for lookup, so that the cost
//! of a frame depends on the rules and never on the traffic: there is no cache
//! that traffic could thrash.
//!
//! It decides no meaning: where it differs from the interpreter, it is wrong.

mod classifier;
mod lanes;
mod segment;
mod shape;
mod tuple;

pub use classifier::{Classifier, Looker, Mark, Scratch, Uncompiled, View};
