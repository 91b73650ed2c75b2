//! The codec in a person's hands: messages as text, the way `ovs-ofctl` of Open
//! vSwitch 3.1 does it with its subcommands of the same names.
//!
//! Text comes in and text goes out; files and terminals are the caller's.

mod error;
mod hex;
mod print;

pub use error::ToolError;
pub use openflow::Detail;
pub use print::{print_lines, print_stream};
