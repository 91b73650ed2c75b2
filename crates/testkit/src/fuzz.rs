//! The bodies of the fuzz targets under `fuzz/`, one for each interface that reads untrusted bytes.
//! Each accepts any input, and panics only if an invariant is violated. They are plain functions,
//! so that every file of the corpora also runs as an ordinary test (`tests/corpora.rs`).

mod bpdu;
mod capture_file;
mod checkpoint;
mod commands;
mod configuration;
mod conntrack;
mod continuation;
mod draw;
mod dummy_stream;
mod fastpath;
mod flow_text;
mod flush_request;
mod frame;
mod in_band;
mod lacp;
mod monitoring;
mod multicast;
mod odp;
pub mod openflow;
mod ovsdb;
mod records;
mod tunnel;

pub use self::capture_file::capture_file;
pub use self::conntrack::conntrack;
pub use self::fastpath::fastpath;
pub use self::ovsdb::ovsdb;
pub use bpdu::bpdu;
pub use checkpoint::checkpoint;
pub use commands::commands;
pub use configuration::configuration;
pub use continuation::continuation;
pub use dummy_stream::dummy_stream;
pub use flow_text::flow_text;
pub use flush_request::flush_request;
pub use frame::frame;
pub use in_band::in_band;
pub use lacp::lacp;
pub use monitoring::{bfd, cfm, lldp};
pub use multicast::multicast;
pub use odp::odp;
pub use records::records;
pub use tunnel::tunnel;
