//! The status of a session, as operators and the database show it.

use std::time::Duration;

use base::Instant;
use packet::wire::bfd::{BfdDiagnostic, BfdFlags, BfdState, MalformedBfd};

/// The state of a session, for operators and for the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BfdStatus {
    /// The interface forwards.
    pub is_forwarding: bool,
    /// The local detection multiplier.
    pub multiplier: u8,
    /// The path behind the interface is down.
    pub cpath_down: bool,
    /// The transmission interval without jitter.
    pub tx_interval: Duration,
    /// The interval at which the remote system transmits.
    pub rx_interval: Duration,
    /// The end of the detection time, if one runs or has run.
    pub detection_expires: Option<Instant>,
    /// The time of the next transmission; none is at once.
    pub next_tx: Option<Instant>,
    /// The time of the last transmission.
    pub last_tx: Option<Instant>,
    /// The local end.
    pub local: BfdEndStatus,
    /// The remote end.
    pub remote: BfdEndStatus,
    /// The remote detection multiplier; zero before the first control packet.
    pub remote_multiplier: u8,
    /// Number of changes between forwarding and not.
    pub flaps: u64,
}

/// The state of one end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BfdEndStatus {
    /// The flags.
    pub flags: BfdFlags,
    /// The state.
    pub state: BfdState,
    /// The diagnostic.
    pub diagnostic: BfdDiagnostic,
    /// The discriminator.
    pub discriminator: u32,
    /// The announced transmission interval.
    pub min_tx: Duration,
    /// The announced receive interval.
    pub min_rx: Duration,
}

/// The reason to discard a control packet of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DiscardedBfd {
    /// A router may have forwarded the packet (RFC 5881, 5).
    #[error("TTL {0}, not 255")]
    Ttl(u8),
    /// The packet is malformed.
    #[error(transparent)]
    Malformed(#[from] MalformedBfd),
    /// The packet belongs to another session.
    #[error("discriminator {0:#x} of another session")]
    Discriminator(u32),
    /// A session that is not down must know our discriminator.
    #[error("no discriminator of this session")]
    NoDiscriminator,
}
