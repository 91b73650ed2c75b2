//! What a bridge tells collectors of the frames it has seen, in the collectors' own formats.
//!
//! Pure: samples and counters in, datagrams out. Which frames are sampled is
//! `dataplane::sampling`'s business, what is counted of flows `dataplane::flows`', and who sends datagrams is the shell's.

pub(crate) mod ipfix;
pub(crate) mod netflow;
pub(crate) mod sflow;
