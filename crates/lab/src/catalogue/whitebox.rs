//! vSDNBox, a cheap whitebox: several bridges at once, frames up to 9,000 bytes, cores of one's
//! own, and what a gigabit costs.

pub(super) mod bridges;
