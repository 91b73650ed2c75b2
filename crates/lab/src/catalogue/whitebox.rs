//! vSDNBox, a low-cost whitebox switch: several bridges at once, frames up to 9,000 bytes,
//! dedicated cores, and the price of a gigabit per second.

pub(super) mod bridges;
