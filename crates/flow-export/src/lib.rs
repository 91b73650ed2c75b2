//! Encodings of sFlow, NetFlow and IPFIX, and the records that they encode.
//!
//! Pure: samples and counters go in, datagrams come out. The data plane chooses the sampled frames
//! and counts flows; the runtime sends the datagrams.

mod excerpt;
pub mod flows;
pub mod ipfix;
pub mod netflow;
pub mod sflow;

pub use excerpt::FrameExcerpt;
