//! The control socket of a running switch, as its clients see it: where the socket is, how a
//! command is sent, and the types of the answers that programs parse.
//!
//! The daemon uses the same types to write its answers. This crate contains no part of the daemon.

pub mod capture;
mod client;
pub mod counters;
mod rundir;
pub mod telemetry;

pub use client::{RequestError, request, request_at};
pub use rundir::{RunDir, control_sockets, management_socket};
