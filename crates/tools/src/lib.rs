//! The codec in a person's hands, and a controller for a moment: messages as text,
//! text as messages, the way `ovs-ofctl` of Open vSwitch 3.1 does it, and what a switch
//! that runs holds.
//!
//! Text comes in and text goes out; files and terminals are the caller's. A switch is
//! met as any controller meets it, by OpenFlow.

mod client;
mod dump;
mod error;
mod hex;
mod parse;
mod print;

pub use client::Client;
pub use dump::{Dump, change, dump};
pub use error::ToolError;
pub use openflow::{Detail, Version};
pub use parse::{Subject, parse_lines};
pub use print::{print_lines, print_stream};
