//! Command-line tools for OpenFlow: decoding and encoding of messages like `ovs-ofctl` of Open
//! vSwitch 3.1, and requests to a running switch.
//!
//! Functions take text and return text; the caller handles files and terminals. Switches are
//! accessed by OpenFlow, as by any controller.

mod capture;
mod client;
mod dump;
mod error;
mod hex;
mod parse;
mod print;
mod rules;

pub use capture::{PORTS, print_capture};
pub use client::{Atomicity, Client, Naming};
pub use dump::{ChangeRequest, Command, DumpRequest, change, difference, dump, replace};
pub use error::ToolError;
pub use openflow::{Detail, MessagePart, Version};
pub use parse::{LineSubject, parse_lines, parse_parts};
pub use print::{print_lines, print_parts, print_stream};
pub use rules::SortOrder;
