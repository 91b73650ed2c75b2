//! Bidirectional Forwarding Detection: the state machine of a session (RFC 5880), asynchronous
//! mode without authentication and echo, with the extensions of Open vSwitch: decay of the receive
//! interval while the interface is idle, and received frames as a proof that the path forwards
//! (ovs-vswitchd.conf.db(5), "Bidirectional Forwarding Detection (BFD)").
//!
//! Pure: inputs are control packets, the number of frames received on the interface, and the time;
//! outputs are control packets, and whether the interface forwards.

mod decay;
mod intervals;
mod session;
mod status;

pub use session::BfdSession;
pub use status::{BfdEndStatus, BfdStatus, DiscardedBfd};

pub use config::BfdConfig;

/// The local numbers of a session, unique in the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BfdIdentity {
    /// The local discriminator, which is not zero.
    pub discriminator: u32,
    /// The UDP source port.
    pub udp_src: u16,
    /// The seed of the jitter.
    pub seed: u64,
}

#[cfg(test)]
mod tests;
