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
pub use client::{Client, Naming, Together};
pub use dump::{Change, Command, Dump, change, difference, dump, replace};
pub use error::ToolError;
pub use openflow::{Detail, Piece, Version};
pub use parse::{Subject, parse_lines, parse_pieces};
pub use print::{print_lines, print_pieces, print_stream};
pub use rules::Order;
