//! The MPLS label stack. No checksum covers it.

use super::checksum_update::Coverage;
use super::{Packet, RewriteError};
use crate::headers::Network;
use crate::wire::mpls::{self, Mpls};

impl Packet<'_> {
    /// Sets the label of the outermost entry to the lower twenty bits of `label`.
    pub fn set_mpls_label(&mut self, label: u32) {
        self.change_mpls(|entry| entry.label = label & 0x000f_ffff);
    }

    /// Sets the traffic class of the outermost entry to the lower three bits of `tc`.
    pub fn set_mpls_tc(&mut self, tc: u8) {
        self.change_mpls(|entry| entry.tc = tc & 7);
    }

    /// Sets the bottom-of-stack bit of the outermost entry.
    pub fn set_mpls_bos(&mut self, bottom: bool) {
        self.change_mpls(|entry| entry.bottom = bottom);
    }

    /// Sets the TTL of the outermost entry.
    pub fn set_mpls_ttl(&mut self, ttl: u8) {
        self.change_mpls(|entry| entry.ttl = ttl);
    }

    fn change_mpls(&mut self, change: impl FnOnce(&mut Mpls)) {
        if let Network::Mpls(entry) = &mut self.headers.network {
            change(entry);
            let bytes = entry.emit();
            self.write(self.headers.network_at(), bytes, Coverage::Nothing);
        }
    }

    /// Inserts an entry after the VLAN tags, before all other entries, and sets the EtherType to
    /// `eth_type`. Label, class and TTL are those of the previous outermost entry; without one, the
    /// TTL is that of IP and the others are zero (OF 1.3.5, 5.12.1).
    ///
    /// # Errors
    /// The headroom is exhausted.
    pub fn push_mpls(&mut self, eth_type: u16) -> Result<(), RewriteError> {
        let first = |ttl| Mpls {
            label: 0,
            tc: 0,
            bottom: true,
            ttl,
        };
        let entry = match &self.headers.network {
            Network::Mpls(outer) => Mpls {
                bottom: false,
                ..*outer
            },
            Network::Ipv4(ip) => first(ip.ttl),
            Network::Ipv6(ip) => first(ip.hop_limit),
            Network::None | Network::Pbb(_) | Network::Nsh(_) | Network::Arp(_) => first(0),
        };
        let at = self.headers.network_at();
        self.frame.insert_zeros(at, 4)?;
        self.write(at, entry.emit(), Coverage::Nothing);
        self.set_type(eth_type, 4);
        Ok(self.reparse()?)
    }

    /// Removes the outermost entry and sets the EtherType to `eth_type`, which the controller
    /// states for the rest of the frame. The next header may be malformed: a controller may be
    /// wrong about it ([`Self::malformed`]).
    ///
    /// # Errors
    /// The link layer is malformed.
    pub fn pop_mpls(&mut self, eth_type: u16) -> Result<(), RewriteError> {
        if matches!(self.headers.network, Network::Mpls(_)) {
            self.remove_bytes(self.headers.network_at(), 4);
            self.set_type(eth_type, -4);
            self.reparse_up_to_malformed()?;
        }
        Ok(())
    }
}

const _: () = assert!(mpls::LEN == 4, "an entry has four bytes");
