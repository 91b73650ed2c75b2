//! The bodies of the fuzz targets under `fuzz/`, one for each interface that reads untrusted bytes.
//! Each accepts any input, and panics only if an invariant is violated. They are plain functions,
//! so that every file of the corpora also runs as an ordinary test (`tests/corpora.rs`).

mod checkpoint;
mod commands;
mod conntrack;
mod dummy_stream;
mod flow_text;
mod flush_request;
mod frame;
mod lacp;
mod monitoring;
mod odp;
pub mod openflow;
mod ovsdb;
mod tunnel;

pub use self::conntrack::conntrack;
pub use self::ovsdb::ovsdb;
pub use checkpoint::checkpoint;
pub use commands::commands;
pub use dummy_stream::dummy_stream;
pub use flow_text::flow_text;
pub use flush_request::flush_request;
pub use frame::frame;
pub use lacp::lacp;
pub use monitoring::{bfd, cfm, lldp};
pub use odp::odp;
pub use tunnel::tunnel;
