//! Ports on real interfaces. Each test runs in a separate network namespace that is removed
//! afterwards. Requires root; otherwise each test reports that it is skipped.

#![expect(clippy::unwrap_used, reason = "a test that cannot continue must fail")]

mod af_packet;
mod loss;
mod net;
mod open;
mod tap;
mod tcp;
mod xdp;
mod xdp_memory;
