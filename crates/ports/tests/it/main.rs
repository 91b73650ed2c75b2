//! The ports on real interfaces, each test in a network namespace of its own that
//! vanishes with it. As root; elsewhere each says that it is skipped.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on must fail")]

mod af_packet;
mod loss;
mod net;
mod opening;
mod tap;
mod tcp;
mod xdp;
mod xdp_memory;
