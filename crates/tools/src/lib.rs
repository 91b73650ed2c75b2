//! The codec in a person's hands, and a controller for a moment: messages as text,
//! text as messages, the way `ovs-ofctl` of Open vSwitch 3.1 does it, and what a switch
//! that runs holds.
//!
//! Text comes in and text goes out; files and terminals are the caller's. A switch is
//! met as any controller meets it, by OpenFlow.

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
