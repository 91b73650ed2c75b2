//! SCTP associations (RFC 9260, 4), by the chunks that open and close them.
//!
//! ```text
//!  INIT          Opening --COOKIE ACK of the other end--> Established
//!  SHUTDOWN      any --> Closing --SHUTDOWN COMPLETE--> over
//!  ABORT         any --> over
//! ```
//!
//! Open vSwitch's userspace data path tracks SCTP by addresses; this machine follows the kernel's
//! `nf_conntrack_proto_sctp`. Verification tags are **not** checked.

use super::PacketEffect;
use crate::facts::SctpChunks;
use crate::key::TrafficDirection;
use crate::timeout::CtTimeout;

/// Phases of an association.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SctpPhase {
    /// From INIT to COOKIE ACK.
    Opening,
    /// Data is transferred.
    Established,
    /// From SHUTDOWN to SHUTDOWN COMPLETE.
    Closing,
    /// After SHUTDOWN COMPLETE or ABORT.
    Closed,
}

/// An association.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SctpAssociation {
    pub(crate) phase: SctpPhase,
    /// Packets of the other direction have arrived.
    has_reply: bool,
}

impl SctpAssociation {
    /// Returns an association after its first packet: one with INIT, or, for an association that is
    /// older than the table, one without a chunk that only the handshake or its end has.
    pub(super) const fn begin(chunks: SctpChunks) -> Option<Self> {
        let never_first = SctpChunks(
            SctpChunks::INIT_ACK.0
                | SctpChunks::ABORT.0
                | SctpChunks::COOKIE_ACK.0
                | SctpChunks::SHUTDOWN_COMPLETE.0,
        );
        if chunks.has(never_first) {
            return None;
        }
        Some(Self {
            phase: SctpPhase::Opening,
            has_reply: false,
        })
    }

    pub(super) const fn apply(
        &mut self,
        chunks: SctpChunks,
        direction: TrafficDirection,
    ) -> PacketEffect {
        if chunks.has(SctpChunks::INIT) && matches!(self.phase, SctpPhase::Closed) {
            return PacketEffect::Restart;
        }
        if let TrafficDirection::Reply = direction {
            self.has_reply = true;
        }
        self.phase = self.next_phase(chunks);
        let timeout = match self.phase {
            SctpPhase::Opening => CtTimeout::SctpOpening,
            SctpPhase::Established => CtTimeout::SctpEstablished,
            SctpPhase::Closing | SctpPhase::Closed => CtTimeout::SctpClosing,
        };
        if self.has_reply {
            PacketEffect::Established(timeout)
        } else {
            PacketEffect::StillNew(timeout)
        }
    }

    pub(super) const fn is_embryonic(&self) -> bool {
        matches!(self.phase, SctpPhase::Opening)
    }

    const fn next_phase(&self, chunks: SctpChunks) -> SctpPhase {
        let shutdown = SctpChunks(SctpChunks::SHUTDOWN.0 | SctpChunks::SHUTDOWN_ACK.0);
        let end = SctpChunks(SctpChunks::ABORT.0 | SctpChunks::SHUTDOWN_COMPLETE.0);
        // An association that is older than the table is open when both ends have sent data.
        let is_handshake = chunks.has(SctpChunks(
            SctpChunks::INIT.0 | SctpChunks::INIT_ACK.0 | SctpChunks::COOKIE_ECHO.0,
        ));
        match self.phase {
            _ if chunks.has(end) => SctpPhase::Closed,
            SctpPhase::Closed => SctpPhase::Closed,
            _ if chunks.has(shutdown) => SctpPhase::Closing,
            SctpPhase::Opening if self.has_reply && !is_handshake => SctpPhase::Established,
            SctpPhase::Opening => SctpPhase::Opening,
            SctpPhase::Established => SctpPhase::Established,
            SctpPhase::Closing => SctpPhase::Closing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sctp_association_opens_and_closes() {
        use TrafficDirection::{Original, Reply};
        let mut association = SctpAssociation::begin(SctpChunks::INIT).expect("INIT");
        let established = PacketEffect::Established(CtTimeout::SctpEstablished);
        let closing = PacketEffect::Established(CtTimeout::SctpClosing);
        association.apply(SctpChunks::INIT_ACK, Reply);
        association.apply(SctpChunks::COOKIE_ECHO, Original);
        assert!(association.is_embryonic());
        assert_eq!(
            association.apply(SctpChunks::COOKIE_ACK, Reply),
            established
        );
        assert_eq!(association.apply(SctpChunks(0), Original), established);
        assert_eq!(association.apply(SctpChunks::SHUTDOWN, Original), closing);
        association.apply(SctpChunks::SHUTDOWN_COMPLETE, Original);
        assert_eq!(association.phase, SctpPhase::Closed);
        assert_eq!(
            association.apply(SctpChunks::INIT, Original),
            PacketEffect::Restart
        );
    }

    #[test]
    fn sctp_answer_begins_no_association() {
        assert_eq!(SctpAssociation::begin(SctpChunks::INIT_ACK), None);
        assert_eq!(SctpAssociation::begin(SctpChunks::ABORT), None);
        assert!(SctpAssociation::begin(SctpChunks(0)).is_some());
    }
}
