//! Encodings of sFlow, NetFlow and IPFIX, and the records that they encode.
//!
//! The crate does no I/O: it turns samples and counters into datagrams. The data plane selects the
//! sampled frames and counts flows; the runtime sends the datagrams.

mod excerpt;
pub mod flows;
pub mod ipfix;
pub mod netflow;
pub mod sflow;

pub use excerpt::FrameExcerpt;
