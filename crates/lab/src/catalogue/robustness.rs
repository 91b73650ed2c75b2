//! Robustness: many flows, new flows, flows that defeat caches, link failures, long-term load, and
//! overload.

pub(super) mod controller_loss;
pub(super) mod flows;
pub(super) mod forwarding_rate;
pub(super) mod link_flap;
pub(super) mod masks;
pub(super) mod meters;
pub(super) mod soak;
pub(super) mod storm;
pub(super) mod tcp_requests;
